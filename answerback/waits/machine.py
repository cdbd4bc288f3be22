"""Lets events happen to a wait: a pure step from one value to the next, by the table."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from answerback.model import ENDED, Wait, WaitState, value
from answerback.waits.events import Event
from answerback.waits.moment import Effect, Facts, Moment, OpenReview, SendNudge, Tell, WithdrawNudges
from answerback.waits.table import TABLE, Rule

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


@value
class Step:
    """The wait after an event, what is to be done now, and the row that says so (None: no row fits)."""

    wait: Wait | None
    effects: tuple[Effect, ...] = ()
    rule: str | None = None


def step(wait: Wait | None, event: Event, facts: Facts, now: datetime) -> Step:
    """Return the wait after an event and what is to be done, by the first row of the table that fits.

    Where no row fits nothing changes: an illegal move changes nothing, and what is told twice happens once.
    """
    moment = Moment(wait=wait or Wait(state=WaitState.WAITING, since=now), event=event, facts=facts, now=now)
    rule = next((rule for rule in TABLE if rule.fits(wait, moment)), None)
    if rule is None:
        return Step(wait=wait)
    after = _arrived(rule, moment)
    return Step(wait=after, effects=tuple(make(moment, after) for make in rule.effects), rule=rule.name)


def _arrived(rule: Rule, moment: Moment) -> Wait:
    """Return the changed wait in the state the row leads to."""
    wait = rule.change(moment)
    if rule.to == "same":
        return wait
    if rule.to == "back":
        return replace(wait, state=wait.resume_to or WaitState.WAITING, reason="", resume_to=None)
    reason = rule.reason if isinstance(rule.reason, str) else rule.reason(moment)
    arrived = replace(wait, state=rule.to, reason=reason, resume_to=None)
    if rule.to is WaitState.PAUSED:
        # A stalled wait keeps its plan: it goes on where it was once the waiter is back.
        plan = wait.plan if reason == "stalled" else ()
        return replace(arrived, resume_to=wait.resume_to or wait.state, plan=plan)
    return replace(arrived, plan=()) if rule.to in ENDED else arrived
