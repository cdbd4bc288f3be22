"""The wait as a table: what happens, in which states, leads where and causes what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from answerback.model import ENDED, RUNNING, Wait, WaitState
from answerback.waits import actions, events, guards
from answerback.waits.actions import Action
from answerback.waits.moment import Effect, Facts, Moment, OpenReview, SendNudge, Step, Tell, WithdrawNudges

__all__ = [
    "TABLE",
    "Effect",
    "Facts",
    "OpenReview",
    "Rule",
    "SendNudge",
    "Step",
    "Tell",
    "WithdrawNudges",
    "step",
]

ALIVE = RUNNING | {WaitState.PAUSED}
PAUSED, ABANDONED, REPLIED = (
    frozenset({WaitState.PAUSED}),
    frozenset({WaitState.ABANDONED}),
    frozenset({WaitState.REPLIED}),
)


@dataclass(frozen=True, slots=True)
class Rule:
    """One row: in these states, on this event, where the guard holds, do the action."""

    states: frozenset[WaitState]
    event: type[events.Event]
    action: Action
    #: the state it leads to, in words
    target: str
    guard: Callable[[Moment], bool] | None = None

    @property
    def name(self) -> str:
        """The row as the wait's log names it."""
        condition = f", {self.guard.__name__.replace('_', ' ')}" if self.guard else ""
        return f"{self.event.__name__}{condition}: {self.target}"

    def fits(self, moment: Moment) -> bool:
        """Tell whether this row is the one for a moment."""
        here = moment.wait.state in self.states and isinstance(moment.event, self.event)
        return here and (self.guard is None or self.guard(moment))


#: The first row that fits decides; where none fits, nothing changes.
TABLE: tuple[Rule, ...] = (
    Rule(RUNNING, events.Sent, actions.count_from_sent, "same"),
    Rule(RUNNING, events.Due, actions.postpone, "same", guards.unsent),
    Rule(RUNNING, events.Due, actions.pause_review, "paused", guards.review_open),
    Rule(RUNNING, events.Due, actions.nudge, "nudged", guards.nudges_remain),
    Rule(RUNNING, events.Due, actions.abandon, "abandoned"),
    Rule(ALIVE, events.Replied, actions.reply, "replied"),
    Rule(ABANDONED, events.Replied, actions.reply, "replied", guards.waitpoint_open),
    Rule(ALIVE | REPLIED, events.Declined, actions.decline, "abandoned"),
    Rule(ALIVE, events.WaitpointExpired, actions.expire, "abandoned"),
    Rule(ALIVE, events.Undeliverable, actions.give_up, "abandoned", guards.all_dead),
    Rule(ALIVE, events.Undeliverable, actions.drop_recipient, "same", guards.one_dead),
    Rule(ENDED, events.Undeliverable, actions.record, "same", guards.one_dead),
    Rule(RUNNING, events.AutoReplied, actions.pause_away, "paused", guards.all_away_too_long),
    Rule(RUNNING, events.AutoReplied, actions.move, "same", guards.all_away),
    Rule(RUNNING, events.AutoReplied, actions.note_absence, "same", guards.one_away),
    Rule(RUNNING, events.SubmissionUnknown, actions.pause_for("submission_unknown"), "paused"),
    Rule(RUNNING, events.Failed, actions.pause_for("failed"), "paused"),
    Rule(RUNNING, events.NudgeHeld, actions.pause_for("held"), "paused"),
    Rule(RUNNING, events.QuotaExceeded, actions.pause_for("quota"), "paused"),
    Rule(RUNNING, events.WaiterStalled, actions.pause_stalled, "paused"),
    Rule(RUNNING, events.Paused, actions.pause_person, "paused"),
    Rule(PAUSED, events.Resumed, actions.resume, "waiting or nudged"),
    Rule(PAUSED, events.NudgeReleased, actions.resume, "waiting or nudged"),
    Rule(PAUSED, events.WaiterBack, actions.take_up, "waiting or nudged"),
    Rule(PAUSED, events.NudgeRejected, actions.ask_person, "same"),
    Rule(PAUSED, events.HoldExpired, actions.ask_person, "same"),
    Rule(ALIVE, events.Rescheduled, actions.set_due, "waiting or nudged"),
    Rule(ALIVE, events.AnsweredElsewhere, actions.cancel, "cancelled"),
    Rule(ALIVE, events.WaitpointCancelled, actions.cancel, "cancelled"),
    Rule(ALIVE, events.Cancelled, actions.cancel, "cancelled"),
    Rule(RUNNING, events.OwnerWrote, actions.count_from_now, "same"),
    Rule(REPLIED, events.Misread, actions.reopen, "waiting", guards.waitpoint_open),
)


def step(wait: Wait | None, event: events.Event, facts: Facts, now: datetime) -> Step:
    """Return the wait after an event, its effects, and the row of the table that says so.

    Without a wait only `Queued` and `Sent` begin one; `SendHeld` begins none. Where no row fits nothing
    changes: illegal moves change nothing, and what happens twice happens once.
    """
    if wait is None:
        return _begin(event, facts, now)
    moment = Moment(wait, event, facts, now)
    rule = next((rule for rule in TABLE if rule.fits(moment)), None)
    if rule is None:
        return Step(wait=wait)
    changed, effects = rule.action(moment)
    return Step(wait=changed, effects=effects, rule=rule.name)


def _begin(event: events.Event, facts: Facts, now: datetime) -> Step:
    if not isinstance(event, events.Queued | events.Sent):
        return Step(wait=None)
    fresh = Wait(state=WaitState.WAITING, since=event.at)
    wait, _ = actions.count_from_sent(Moment(fresh, events.Sent(at=event.at), facts, now))
    return Step(wait=wait, rule=f"{type(event).__name__}: waiting")
