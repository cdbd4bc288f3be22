"""How a wait's plan and counters change; the state itself is the table's business."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from answerback.model import Wait
from answerback.waits import events
from answerback.waits.addresses import canonical
from answerback.waits.business_days import add_business_days, next_working_instant
from answerback.waits.guards import moved_to
from answerback.waits.moment import Moment
from answerback.waits.plan import plan, plan_from, refit

#: how long an outbound that has not left holds up what is due
UNSENT_DELAY = timedelta(minutes=15)


def keep(moment: Moment) -> Wait:
    """Leave everything as it is."""
    return moment.wait


def count_from_event(moment: Moment) -> Wait:
    """Count the gap of the next step from the instant the event names."""
    assert isinstance(moment.event, events.Queued | events.Sent)
    return _counted(moment, moment.wait, moment.event.at)


def count_from_now(moment: Moment) -> Wait:
    """Count the gap of the next step from now."""
    return _counted(moment, moment.wait, moment.now)


def make_nudge(moment: Moment) -> Wait:
    """Count the nudge and plan on from now; who is away has to say so again."""
    return _counted(moment, replace(moment.wait, nudges=moment.wait.nudges + 1, away=()), moment.now)


def delay(moment: Moment) -> Wait:
    """Look again in 15 minutes; what leaves until then is still counted from when it left."""
    delayed = _due(moment, moment.wait, _in_window(moment, moment.now + UNSENT_DELAY))
    return replace(delayed, since=moment.wait.since)


def fit(moment: Moment) -> Wait:
    """Move what was missed into the next window."""
    return _due(moment, moment.wait, refit(moment.due, moment.now, moment.facts.calendar))


def drop_recipient(moment: Moment) -> Wait:
    """Write no further nudge to the recipient."""
    assert isinstance(moment.event, events.Undeliverable)
    return replace(moment.wait, dead=(*moment.wait.dead, canonical(moment.event.recipient)))


def note_absence(moment: Moment) -> Wait:
    """Remember that the recipient is away."""
    assert isinstance(moment.event, events.AutoReplied)
    away = dict.fromkeys((*moment.wait.away, canonical(moment.event.recipient)))
    return replace(moment.wait, away=tuple(away))


def move(moment: Moment) -> Wait:
    """Move the next step to where the absence ends, and the steps after it with it."""
    target = moved_to(moment)
    assert target is not None
    moved_from = moment.wait.moved_from or moment.due
    wait = replace(note_absence(moment), moves=moment.wait.moves + 1, moved_from=moved_from)
    return _due(moment, wait, target)


def resume(moment: Moment) -> Wait:
    """Go on with the same step: its gap from now, or as the person said; absences count anew."""
    wait = replace(moment.wait, away=(), moves=0, moved_from=None)
    event = moment.event
    if isinstance(event, events.Resumed) and event.not_before and event.not_before > moment.now:
        return _due(moment, wait, add_business_days(event.not_before, 1, moment.facts.calendar))
    return _counted(moment, wait, moment.now)


def set_due(moment: Moment) -> Wait:
    """Obey the person who set the next due time, whatever the window; the steps after it count from there."""
    assert isinstance(moment.event, events.Rescheduled)
    return _due(moment, moment.wait, moment.event.at)


def take_up(moment: Moment) -> Wait:
    """Go on with the plan kept; where its next step is overdue, at the next working instant."""
    if moment.due > moment.now:
        return moment.wait
    return _due(moment, moment.wait, _in_window(moment, moment.now))


def reopen(moment: Moment) -> Wait:
    """Wait on with the nudges that remain, counted from now."""
    return _counted(moment, replace(moment.wait, away=()), moment.now)


def _counted(moment: Moment, wait: Wait, since: datetime) -> Wait:
    facts = moment.facts
    dues = plan(
        facts.schedule, nudges_made=wait.nudges, since=since, calendar=facts.calendar, end=facts.expires_at
    )
    return replace(wait, since=since, plan=dues)


def _due(moment: Moment, wait: Wait, first: datetime) -> Wait:
    """Return the wait with its next step due at an instant, which the plan counts from then on."""
    facts = moment.facts
    dues = plan_from(
        first, facts.schedule, nudges_made=wait.nudges, calendar=facts.calendar, end=facts.expires_at
    )
    return replace(wait, since=dues[0], plan=dues)


def _in_window(moment: Moment, at: datetime) -> datetime:
    return next_working_instant(at, moment.facts.calendar) if moment.counts_days else at
