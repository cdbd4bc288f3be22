"""The questions the wait's table asks, each named as it is read aloud."""

from __future__ import annotations

from datetime import datetime

from answerback.waits import events
from answerback.waits.addresses import canonical
from answerback.waits.business_days import add_business_days
from answerback.waits.moment import Moment
from answerback.waits.plan import refit

#: times an absence may move a wait
MOST_MOVES = 3


def time_reached(moment: Moment) -> bool:
    """The due time is reached: a stale job that fires early finds nothing to do."""
    return moment.now >= moment.due


def unsent(moment: Moment) -> bool:
    """An outbound of this wait has not left yet."""
    return moment.facts.unsent


def review_open(moment: Moment) -> bool:
    """A review about this conversation is open: nobody who wrote is nagged."""
    return moment.facts.review_open


def nudges_remain(moment: Moment) -> bool:
    """The plan holds a nudge before its end, and somebody to send it to."""
    return len(moment.wait.plan) > 1 and bool(moment.reachable)


def none_remain(moment: Moment) -> bool:
    """Only the end of the plan is left."""
    return not nudges_remain(moment)


def past_deadline(moment: Moment) -> bool:
    """The waitpoint's deadline is over: nothing is sent after it."""
    return moment.facts.expires_at is not None and moment.now >= moment.facts.expires_at


def window_missed(moment: Moment) -> bool:
    """The nudge is long overdue and the recipient does not work now."""
    return moment.counts_days and refit(moment.due, moment.now, moment.facts.calendar) > moment.now


def for_a_person(moment: Moment) -> bool:
    """The schedule wants a person to take over."""
    return moment.facts.schedule.on_abandon == "hand_to_person"


def waitpoint_open(moment: Moment) -> bool:
    """The wait follows no waitpoint, or one that can still be answered."""
    return moment.facts.waitpoint_open and not past_deadline(moment)


def not_declined(moment: Moment) -> bool:
    """The recipient did not end it for good."""
    return moment.wait.reason != "declined"


def left_later(moment: Moment) -> bool:
    """The message left after the instant the plan counts from."""
    assert isinstance(moment.event, events.Sent)
    return moment.event.at > moment.wait.since


def required(moment: Moment) -> bool:
    """The recipient's answer is needed, and the address was not known to be dead."""
    assert isinstance(moment.event, events.Undeliverable | events.AutoReplied)
    return canonical(moment.event.recipient) in _living(moment)


def nobody_left(moment: Moment) -> bool:
    """It was the last required recipient that could be reached."""
    assert isinstance(moment.event, events.Undeliverable)
    return _living(moment) <= {canonical(moment.event.recipient)}


def news(moment: Moment) -> bool:
    """The absence is not known yet, or lasts longer than was known."""
    assert isinstance(moment.event, events.AutoReplied)
    is_known = canonical(moment.event.recipient) in moment.wait.away
    return not is_known or (moment.event.return_date is not None and moved_to(moment) != moment.due)


def all_away(moment: Moment) -> bool:
    """Every required recipient is away now."""
    assert isinstance(moment.event, events.AutoReplied)
    return _living(moment) <= {*moment.wait.away, canonical(moment.event.recipient)}


def moves(moment: Moment) -> bool:
    """The absence ends after the next step is due."""
    return moved_to(moment) != moment.due


def too_long(moment: Moment) -> bool:
    """The wait would move too often or too far."""
    return moved_to(moment) is None


def held(moment: Moment) -> bool:
    """It is paused because a nudge is held."""
    return moment.wait.reason == "held"


def stalled(moment: Moment) -> bool:
    """It is paused because whoever waits gave no sign of life."""
    return moment.wait.reason == "stalled"


def moved_to(moment: Moment) -> datetime | None:
    """Return where an absence moves the next due time: never earlier, never past the deadline.

    None where that is one move too many, or all moves together reach too far.
    """
    assert isinstance(moment.event, events.AutoReplied)
    back, due_at, calendar = moment.event.return_date, moment.due, moment.facts.calendar
    if back is not None and back <= moment.now:
        return due_at
    limit = add_business_days(moment.wait.moved_from or due_at, moment.facts.schedule.away_limit, calendar)
    if back is not None and back >= limit:
        # Before any arithmetic: a stranger's mail may say "back in the year 9999".
        return None
    if back is None:
        target = add_business_days(due_at, moment.facts.schedule.away_default, calendar)
    else:
        target = max(due_at, add_business_days(back, 1, calendar))
    if target > limit:
        return None
    target = min(target, moment.facts.expires_at or target)
    return None if target > due_at and moment.wait.moves >= MOST_MOVES else max(target, due_at)


def _living(moment: Moment) -> set[str]:
    return {canonical(one) for one in moment.reachable}
