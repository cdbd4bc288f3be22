"""What the rows of the wait's table do: the wait afterwards, and its effects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from answerback.model import Wait, WaitState
from answerback.waits import events
from answerback.waits.business_days import add_business_days, next_working_instant
from answerback.waits.guards import moved_to, reachable
from answerback.waits.moment import Effect, Moment, OpenReview, SendNudge, Tell, WithdrawNudges
from answerback.waits.plan import plan, refit

WAITING, NUDGED, PAUSED = WaitState.WAITING, WaitState.NUDGED, WaitState.PAUSED
REPLIED, ABANDONED, CANCELLED = WaitState.REPLIED, WaitState.ABANDONED, WaitState.CANCELLED
#: how long an unsent message postpones what is due
UNSENT_DELAY = timedelta(minutes=15)

Change = tuple[Wait, tuple[Effect, ...]]
Action = Callable[[Moment], Change]


def count_from_now(moment: Moment) -> Change:
    """Plan the remaining steps anew from now."""
    return _planned(moment, moment.now, moment.now), ()


def count_from_sent(moment: Moment) -> Change:
    """Plan the remaining steps anew from the instant the message left."""
    assert isinstance(moment.event, events.Sent)
    return replace(_planned(moment, moment.event.at, moment.now), away=()), ()


def postpone(moment: Moment) -> Change:
    """Look again in 15 minutes."""
    first, *rest = moment.wait.plan
    later = moment.now + UNSENT_DELAY
    return replace(moment.wait, plan=(later, *(max(due, later) for due in rest))), ()


def nudge(moment: Moment) -> Change:
    """Send the next nudge, unless it is long overdue and the window is closed: then in the next window."""
    due = moment.wait.plan[0]
    fitted = refit(due, moment.now, moment.facts.calendar) if _counts_days(moment) else due
    if fitted > moment.now:
        return replace(moment.wait, plan=(fitted, *(max(one, fitted) for one in moment.wait.plan[1:]))), ()
    number = moment.wait.nudges + 1
    made = replace(moment.wait, state=NUDGED, nudges=number)
    planned = _planned(_of(moment, made), moment.now, moment.now)
    return planned, (SendNudge(number=number, to=reachable(moment)),)


def abandon(moment: Moment) -> Change:
    """Give up: no answer came."""
    effects: tuple[Effect, ...] = (
        WithdrawNudges(),
        Tell(event="wait.abandoned", audience=("waiter", "owner"), reason="no_reply"),
    )
    if moment.facts.schedule.on_abandon == "hand_to_person":
        effects += (OpenReview(reason="abandoned"),)
    return _ended(moment.wait, ABANDONED, "no_reply"), effects


def reply(moment: Moment) -> Change:
    """End: the answer is there."""
    return _ended(moment.wait, REPLIED, ""), (WithdrawNudges(),)


def decline(moment: Moment) -> Change:
    """End for good: the person does not want to be asked."""
    tell = Tell(event="wait.abandoned", audience=("waiter", "owner"), reason="declined")
    return _ended(moment.wait, ABANDONED, "declined"), (WithdrawNudges(), tell)


def expire(moment: Moment) -> Change:
    """End with the waitpoint's deadline; the waitpoint itself tells the waiter."""
    return _ended(moment.wait, ABANDONED, "expired"), (WithdrawNudges(),)


def cancel(moment: Moment) -> Change:
    """End because somebody said so."""
    match moment.event:
        case events.Cancelled() | events.WaitpointCancelled():
            reason = moment.event.reason
        case _:
            reason = "answered_elsewhere"
    return _ended(moment.wait, CANCELLED, reason), (WithdrawNudges(),)


def give_up(moment: Moment) -> Change:
    """End at once: nobody can be reached."""
    assert isinstance(moment.event, events.Undeliverable)
    reason = moment.event.reason
    tell = Tell(event="wait.abandoned", audience=("waiter", "owner"), reason=reason)
    return _ended(_with_dead(moment), ABANDONED, reason), (WithdrawNudges(), tell)


def drop_recipient(moment: Moment) -> Change:
    """Write to the others only."""
    return _with_dead(moment), ()


def note_absence(moment: Moment) -> Change:
    """Remember who is away; the others are still waited for."""
    return _with_away(moment), ()


def move(moment: Moment) -> Change:
    """Move everything to one business day after the return."""
    until = moved_to(moment)
    assert until is not None
    moved_from = moment.wait.moved_from or moment.now
    wait = replace(_with_away(moment), moves=moment.wait.moves + 1, moved_from=moved_from)
    first, *rest = moment.wait.plan
    shifted = tuple(_capped(max(due + (until - first), until), moment) for due in rest)
    tell = Tell(event="wait.postponed", audience=("waiter",), reason="away")
    return replace(wait, plan=(_capped(until, moment), *shifted)), (tell,)


def pause_away(moment: Moment) -> Change:
    """Stop: the absence lasts longer than the schedule bears."""
    return _paused(_with_away(moment), "away"), _paused_effects("away")


def pause_review(moment: Moment) -> Change:
    """Stop until the open review is decided."""
    tell = Tell(event="wait.paused", audience=("waiter", "owner"), reason="review")
    return _paused(moment.wait, "review"), (WithdrawNudges(), tell)


def pause_stalled(moment: Moment) -> Change:
    """Stop until the waiter is back; the owner is told."""
    tell = Tell(event="wait.paused", audience=("owner",), reason="waiter_stalled")
    return _paused(moment.wait, "waiter_stalled"), (WithdrawNudges(), tell)


def pause_person(moment: Moment) -> Change:
    """Stop because a person said so."""
    tell = Tell(event="wait.paused", audience=("waiter", "owner"), reason="person")
    return _paused(moment.wait, "person"), (WithdrawNudges(), tell)


def pause_for(reason: str) -> Action:
    """Return the action that stops a wait for a reason a person has to look at."""

    def pause(moment: Moment) -> Change:
        return _paused(moment.wait, reason), _paused_effects(reason)

    return pause


def ask_person(moment: Moment) -> Change:
    """Stay paused and put it before a person."""
    return moment.wait, (OpenReview(reason="held_nudge"),)


def resume(moment: Moment) -> Change:
    """Go on in the same step; its gap counts from now, or from the given instant."""
    wait = replace(moment.wait, state=moment.wait.resume_to or WAITING, reason="", resume_to=None, away=())
    again = _of(moment, wait)
    not_before = moment.event.not_before if isinstance(moment.event, events.Resumed) else None
    if not_before is None or not_before <= moment.now:
        return _planned(again, moment.now, moment.now), ()
    first = add_business_days(not_before, 1, moment.facts.calendar)
    rest = _planned(again, not_before, not_before).plan[1:]
    plan_ = tuple(_capped(max(due, first), moment) for due in rest)
    return replace(wait, since=not_before, plan=(_capped(first, moment), *plan_)), ()


def take_up(moment: Moment) -> Change:
    """Go on where the waiter left: the old due time, or the next working instant."""
    wait = replace(moment.wait, state=moment.wait.resume_to or WAITING, reason="", resume_to=None)
    old = wait.plan or _planned(_of(moment, wait), wait.since, wait.since).plan
    soon = next_working_instant(moment.now, moment.facts.calendar)
    return replace(wait, plan=tuple(_capped(due if due > moment.now else soon, moment) for due in old)), ()


def set_due(moment: Moment) -> Change:
    """Obey the person who set the next due time."""
    assert isinstance(moment.event, events.Rescheduled)
    wait = moment.wait
    if wait.state is PAUSED:
        wait = replace(wait, state=wait.resume_to or WAITING, reason="", resume_to=None)
        wait = _planned(_of(moment, wait), moment.now, moment.now)
    at = moment.event.at
    return replace(wait, plan=(at, *(max(due, at) for due in wait.plan[1:]))), ()


def reopen(moment: Moment) -> Change:
    """Wait on: what came was no answer."""
    return _planned(_of(moment, replace(moment.wait, state=WAITING, reason="")), moment.now, moment.now), ()


def record(moment: Moment) -> Change:
    """Only remember it: the wait has ended."""
    return _with_dead(moment), ()


def _of(moment: Moment, wait: Wait) -> Moment:
    return replace(moment, wait=wait)


def _ended(wait: Wait, state: WaitState, reason: str) -> Wait:
    return replace(wait, state=state, reason=reason, plan=(), resume_to=None)


def _paused(wait: Wait, reason: str) -> Wait:
    return replace(wait, state=PAUSED, reason=reason, resume_to=wait.state, plan=())


def _paused_effects(reason: str) -> tuple[Effect, ...]:
    tell = Tell(event="wait.paused", audience=("waiter", "owner"), reason=reason)
    return WithdrawNudges(), tell, OpenReview(reason=reason)


def _planned(moment: Moment, since: datetime, now: datetime) -> Wait:
    due = plan(
        moment.facts.schedule,
        nudges_made=moment.wait.nudges,
        since=since,
        calendar=moment.facts.calendar,
        end=moment.facts.expires_at,
    )
    return replace(moment.wait, since=since, plan=tuple(max(one, now) for one in due))


def _counts_days(moment: Moment) -> bool:
    return any(gap.unit == "bd" for gap in moment.facts.schedule.gaps)


def _with_dead(moment: Moment) -> Wait:
    assert isinstance(moment.event, events.Undeliverable)
    dead = dict.fromkeys([*moment.wait.dead, moment.event.recipient.lower()])
    return replace(moment.wait, dead=tuple(dead))


def _with_away(moment: Moment) -> Wait:
    assert isinstance(moment.event, events.AutoReplied)
    away = dict.fromkeys([*moment.wait.away, moment.event.recipient.lower()])
    return replace(moment.wait, away=tuple(away))


def _capped(due: datetime, moment: Moment) -> datetime:
    return min(due, moment.facts.expires_at) if moment.facts.expires_at else due
