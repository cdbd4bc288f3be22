"""The wait's rules as one table, to be read aloud from the top."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypedDict, Unpack

from answerback.model import ENDED, RUNNING, Wait, WaitState, value
from answerback.waits import changes, events, guards
from answerback.waits.moment import Effect, Moment, OpenReview, SendNudge, Tell, WithdrawNudges

#: a state to go to; to stay as it is; to go back to where a pause began
Target = WaitState | Literal["same", "back"]


def send_nudge(moment: Moment, wait: Wait) -> Effect:
    """Send the nudge just counted."""
    return SendNudge(number=wait.nudges, to=moment.reachable)


def withdraw(_moment: Moment, _wait: Wait) -> Effect:
    """Take back what has not left."""
    return WithdrawNudges()


def tell_paused(_moment: Moment, wait: Wait) -> Effect:
    """Say that it stands still, and why."""
    return Tell(event="wait.paused", audience=("waiter", "owner"), reason=wait.reason)


def tell_postponed(_moment: Moment, _wait: Wait) -> Effect:
    """Say that an absence moved it."""
    return Tell(event="wait.postponed", audience=("waiter",), reason="away")


def tell_abandoned(_moment: Moment, wait: Wait) -> Effect:
    """Say that it was given up, and why."""
    return Tell(event="wait.abandoned", audience=("waiter", "owner"), reason=wait.reason)


def tell_owner(_moment: Moment, wait: Wait) -> Effect:
    """Say it to the owner."""
    # The waiter is told by its waitpoint, which expires with the wait: one fact, one mailbox row.
    return Tell(event="wait.abandoned", audience=("owner",), reason=wait.reason)


def open_review(_moment: Moment, wait: Wait) -> Effect:
    """Let a person decide."""
    return OpenReview(reason=wait.reason)


def named(moment: Moment) -> str:
    """Return the reason the event names."""
    assert isinstance(moment.event, events.Undeliverable | events.WaitpointCancelled | events.Cancelled)
    return moment.event.reason


Guard = Callable[[Moment], bool]


class Rest(TypedDict, total=False):
    """What a row says besides when it fits."""

    reason: str | Callable[[Moment], str]
    change: Callable[[Moment], Wait]
    effects: tuple[Callable[[Moment, Wait], Effect], ...]


@value
class Rule:
    """One row: from these states, on this event, if all of this holds, to that state; then this is done."""

    states: frozenset[WaitState | None]
    event: type[events.Event]
    to: Target
    when: tuple[Guard, ...] = ()
    #: why the wait is paused, abandoned or cancelled then
    reason: str | Callable[[Moment], str] = ""
    change: Callable[[Moment], Wait] = changes.keep
    effects: tuple[Callable[[Moment, Wait], Effect], ...] = ()

    @property
    def name(self) -> str:
        """The row as the wait's log names it: event, conditions, where it leads."""
        said = (self.event.__name__, *(guard.__name__.replace("_", " ") for guard in self.when))
        return f"{', '.join(said)}: {self.to}"

    def fits(self, wait: Wait | None, moment: Moment) -> bool:
        """Tell whether the row is about this event in this state, and its conditions hold."""
        state = wait.state if wait else None
        if state not in self.states or not isinstance(moment.event, self.event):
            return False
        return all(guard(moment) for guard in self.when)


def row(
    states: frozenset[WaitState] | frozenset[None],
    event: type[events.Event],
    to: Target,
    *when: Guard,
    **rest: Unpack[Rest],
) -> Rule:
    """Return one row, written the way it is read: from where, on what, to where, if what."""
    return Rule(states=frozenset(states), event=event, to=to, when=when, **rest)


W = WaitState
NONE = frozenset({None})
LIVE = RUNNING | {W.PAUSED}
PAUSED, REPLIED, ABANDONED = frozenset({W.PAUSED}), frozenset({W.REPLIED}), frozenset({W.ABANDONED})

NUDGE = (guards.time_reached, guards.nudges_remain)
LAST = (guards.time_reached, guards.none_remain)
ABSENCE = (guards.required, guards.news)

# Whatever ends or pauses a wait takes its nudges back in the same step.
STOP = (withdraw,)
PAUSE = (withdraw, tell_paused)
ASK = (withdraw, tell_paused, open_review)
LOOK = (withdraw, open_review)
GIVE_UP = (withdraw, tell_abandoned)
PASS_ON = (withdraw, tell_abandoned, open_review)
EXPIRE = (withdraw, tell_owner)

#: Design §4, read from the top: the first row that fits decides; where none fits, nothing changes.
TABLE: tuple[Rule, ...] = (
    row(NONE, events.Queued, W.WAITING, change=changes.count_from_event),
    row(NONE, events.Sent, W.WAITING, change=changes.count_from_event),
    row(RUNNING, events.Sent, "same", guards.left_later, change=changes.count_from_event),
    row(RUNNING, events.Due, "same", guards.time_reached, guards.unsent, change=changes.delay),
    row(
        RUNNING, events.Due, W.PAUSED, guards.time_reached, guards.review_open, reason="review", effects=PAUSE
    ),
    row(RUNNING, events.Due, W.ABANDONED, *NUDGE, guards.past_deadline, reason="expired", effects=EXPIRE),
    row(RUNNING, events.Due, "same", *NUDGE, guards.window_missed, change=changes.fit),
    row(RUNNING, events.Due, W.NUDGED, *NUDGE, change=changes.make_nudge, effects=(send_nudge,)),
    row(RUNNING, events.Due, W.ABANDONED, *LAST, guards.for_a_person, reason="no_reply", effects=PASS_ON),
    row(RUNNING, events.Due, W.ABANDONED, *LAST, reason="no_reply", effects=GIVE_UP),
    row(LIVE, events.Replied, W.REPLIED, effects=STOP),
    row(ABANDONED, events.Replied, W.REPLIED, guards.waitpoint_open, guards.not_declined, effects=STOP),
    row(LIVE, events.WaitpointExpired, W.ABANDONED, reason="expired", effects=EXPIRE),
    row(
        LIVE,
        events.Undeliverable,
        W.ABANDONED,
        *(guards.required, guards.nobody_left),
        reason=named,
        change=changes.drop_recipient,
        effects=GIVE_UP,
    ),
    row(LIVE, events.Undeliverable, "same", guards.required, change=changes.drop_recipient),
    row(ENDED, events.Undeliverable, "same"),
    row(
        RUNNING,
        events.AutoReplied,
        W.PAUSED,
        *(*ABSENCE, guards.all_away, guards.too_long),
        reason="away",
        change=changes.note_absence,
        effects=ASK,
    ),
    row(
        RUNNING,
        events.AutoReplied,
        "same",
        *(*ABSENCE, guards.all_away, guards.moves),
        change=changes.move,
        effects=(tell_postponed,),
    ),
    row(RUNNING, events.AutoReplied, "same", *ABSENCE, change=changes.note_absence),
    row(RUNNING, events.SubmissionUnknown, W.PAUSED, reason="submission_unknown", effects=ASK),
    row(RUNNING, events.Failed, W.PAUSED, reason="failed", effects=ASK),
    row(RUNNING, events.NudgeHeld, W.PAUSED, reason="held", effects=ASK),
    row(RUNNING, events.QuotaExceeded, W.PAUSED, reason="quota", effects=ASK),
    row(RUNNING, events.WaiterStalled, W.PAUSED, reason="stalled", effects=PAUSE),
    row(RUNNING, events.Paused, W.PAUSED, reason="person", effects=PAUSE),
    row(PAUSED, events.Resumed, "back", change=changes.resume),
    row(RUNNING, events.Rescheduled, "same", change=changes.set_due),
    row(PAUSED, events.Rescheduled, "back", change=changes.set_due),
    row(PAUSED, events.NudgeReleased, "back", guards.held, change=changes.resume),
    row(PAUSED, events.WaiterBack, "back", guards.stalled, change=changes.take_up),
    row(PAUSED, events.NudgeRejected, W.PAUSED, guards.held, reason="nudge_rejected", effects=LOOK),
    row(PAUSED, events.HoldExpired, W.PAUSED, guards.held, reason="hold_expired", effects=LOOK),
    row(LIVE, events.AnsweredElsewhere, W.CANCELLED, reason="answered_elsewhere", effects=STOP),
    row(LIVE, events.WaitpointCancelled, W.CANCELLED, reason=named, effects=STOP),
    row(LIVE, events.Cancelled, W.CANCELLED, reason=named, effects=STOP),
    row(RUNNING, events.OwnerWrote, "same", change=changes.count_from_now),
    row(REPLIED, events.Misread, W.WAITING, guards.waitpoint_open, change=changes.reopen),
    row(LIVE | REPLIED, events.Declined, W.ABANDONED, reason="declined", effects=GIVE_UP),
)
