"""The questions the wait's table asks, each named as it is read aloud."""

from __future__ import annotations

from datetime import datetime

from answerback.waits import events
from answerback.waits.business_days import add_business_days
from answerback.waits.moment import Moment

#: times an absence may move a wait
MOST_MOVES = 3


def unsent(moment: Moment) -> bool:
    """A message of this wait has not left yet."""
    return moment.facts.unsent


def review_open(moment: Moment) -> bool:
    """A review about this conversation is open: nobody who wrote is nagged."""
    return moment.facts.review_open


def nudges_remain(moment: Moment) -> bool:
    """The plan holds a nudge before the end."""
    return len(moment.wait.plan) > 1 and bool(reachable(moment))


def none_remain(moment: Moment) -> bool:
    """The end of the plan has come."""
    return not nudges_remain(moment)


def waitpoint_open(moment: Moment) -> bool:
    """No waitpoint is followed, or its deadline lies ahead."""
    return moment.facts.waitpoint_open


def all_dead(moment: Moment) -> bool:
    """With this one, nobody whose answer is needed can be reached."""
    assert isinstance(moment.event, events.Undeliverable)
    return _is_required(moment, moment.event.recipient) and not _alive_without(moment, moment.event.recipient)


def one_dead(moment: Moment) -> bool:
    """One of several whose answer is needed can not be reached."""
    assert isinstance(moment.event, events.Undeliverable)
    return _is_required(moment, moment.event.recipient)


def all_away(moment: Moment) -> bool:
    """With this one, everybody whose answer is needed is away."""
    assert isinstance(moment.event, events.AutoReplied)
    away = {*moment.wait.away, moment.event.recipient.lower()}
    return _is_required(moment, moment.event.recipient) and all(
        address.lower() in away for address in reachable(moment)
    )


def all_away_too_long(moment: Moment) -> bool:
    """Everybody is away, and for longer or more often than the schedule bears."""
    return all_away(moment) and moved_to(moment) is None


def one_away(moment: Moment) -> bool:
    """One of several whose answer is needed is away."""
    assert isinstance(moment.event, events.AutoReplied)
    return _is_required(moment, moment.event.recipient)


def _is_required(moment: Moment, recipient: str) -> bool:
    return recipient.lower() in {address.lower() for address in moment.facts.required}


def reachable(moment: Moment) -> tuple[str, ...]:
    """Return the required recipients that are not known to be dead."""
    dead = set(moment.wait.dead)
    return tuple(address for address in moment.facts.required if address.lower() not in dead)


def _alive_without(moment: Moment, recipient: str) -> tuple[str, ...]:
    return tuple(address for address in reachable(moment) if address.lower() != recipient.lower())


def moved_to(moment: Moment) -> datetime | None:
    """Return where an absence moves the next due time, None where it moves it too far or too often."""
    assert isinstance(moment.event, events.AutoReplied)
    schedule, calendar, back = moment.facts.schedule, moment.facts.calendar, moment.event.return_date
    until = (
        add_business_days(back, 1, calendar)
        if back and back > moment.now
        else add_business_days(moment.now, schedule.away_default, calendar)
    )
    limit = add_business_days(moment.wait.moved_from or moment.now, schedule.away_limit, calendar)
    if moment.wait.moves >= MOST_MOVES or until > limit:
        return None
    return max(until, moment.wait.plan[0])
