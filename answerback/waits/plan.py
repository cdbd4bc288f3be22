"""Works out when nudges and the end of a wait fall due, squeezed in where a deadline comes first."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from fractions import Fraction

from answerback.model import Gap, Schedule
from answerback.waits.business_days import Calendar, add_working_time, next_working_instant, working_time
from answerback.waits.schedule import after

#: later than this a nudge was missed, and is fitted into the window again
OVERDUE = timedelta(minutes=5)
MICROSECOND = timedelta(microseconds=1)


def plan(
    schedule: Schedule, *, nudges_made: int, since: datetime, calendar: Calendar, end: datetime | None
) -> tuple[datetime, ...]:
    """Return the due times of the nudges still to come, then of the abandonment; in UTC, never empty.

    An `end` before the natural abandonment is fixed. A dropped nudge gives its gap to the
    last one, so the sum of the gaps, and the one factor (end - since) / sum they all shrink by, stays as it
    was: while it is at least a half every nudge stays, below that none does.
    """
    gaps = schedule.gaps[nudges_made:] or schedule.gaps[-1:]
    dues = _natural(gaps, since, calendar)
    if end is None or end >= dues[-1]:
        return dues
    return (*_squeezed(gaps, dues, since, calendar, end), end)


def plan_from(
    first: datetime, schedule: Schedule, *, nudges_made: int, calendar: Calendar, end: datetime | None
) -> tuple[datetime, ...]:
    """Return the plan whose next step is due at a given instant; the gaps after it count from there."""
    if end is not None and end <= first:
        return (end,)
    if nudges_made + 1 >= len(schedule.gaps):
        return (first,)
    return first, *plan(schedule, nudges_made=nudges_made + 1, since=first, calendar=calendar, end=end)


def refit(due: datetime, now: datetime, calendar: Calendar) -> datetime:
    """Return when a nudge due at `due` goes out: then, or in the next window where it is long overdue."""
    return next_working_instant(now, calendar) if now - due > OVERDUE else due


def _natural(gaps: Sequence[Gap], since: datetime, calendar: Calendar) -> tuple[datetime, ...]:
    dues: list[datetime] = []
    for gap in gaps:
        dues.append(after(gap, dues[-1] if dues else since, calendar))
    return tuple(dues)


def _squeezed(
    gaps: Sequence[Gap], dues: Sequence[datetime], since: datetime, calendar: Calendar, end: datetime
) -> tuple[datetime, ...]:
    """Return the due times of the nudges that stay where all gaps shrink to reach `end`."""
    total, room = working_time(since, dues[-1], calendar), working_time(since, end, calendar)
    if not total or all(gap.unit == "s" for gap in gaps):
        factor = _share(end - since, dues[-1] - since)
        reached = [since + _scaled(due - since, factor) for due in dues[:-1]]
    else:
        factor = _share(room, total)
        spans = [_scaled(working_time(since, due, calendar), factor) for due in dues[:-1]]
        reached = [add_working_time(since, span, calendar) for span in spans]
    return tuple(reached) if factor >= Fraction(1, 2) else ()


def _share(part: timedelta, whole: timedelta) -> Fraction:
    return Fraction(part // MICROSECOND, whole // MICROSECOND)


def _scaled(span: timedelta, factor: Fraction) -> timedelta:
    return round(span // MICROSECOND * factor) * MICROSECOND
