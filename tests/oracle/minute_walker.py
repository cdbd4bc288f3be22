"""Business days, working time and due times found by walking minute by minute, to check the product against."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from fractions import Fraction
from itertools import pairwise
from typing import Literal
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
#: no walk of a test is longer than this; a longer one is a calendar that never works
LONGEST_WALK = 400 * 24 * 60
HALF = Fraction(1, 2)

Step = tuple[int, Literal["bd", "s"]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the recipient works: zone, ISO weekdays, holidays, and the window [start, end) of each day."""

    zone: ZoneInfo
    workdays: frozenset[int]
    holidays: Container[date]
    window: tuple[time, time]

    def is_business_day(self, day: date) -> bool:
        """Whether the day counts: one of the weekdays and no holiday, whatever its window still holds."""
        return day.isoweekday() in self.workdays and day not in self.holidays

    def is_working(self, at: datetime) -> bool:
        """Whether the recipient's wall clock, read at this instant, stands in a window of a business day."""
        wall = at.astimezone(self.zone)
        first, end = self.window
        return first <= wall.time() < end and self.is_business_day(wall.date())


def minutes_from(at: datetime) -> Iterator[datetime]:
    """Yield every whole minute (UTC) from the one that holds `at` on, real time, so no clock change matters."""
    minute = at.astimezone(UTC).replace(second=0, microsecond=0)
    for _ in range(LONGEST_WALK):
        yield minute
        minute += MINUTE
    raise AssertionError(f"no end found within {LONGEST_WALK} minutes of {at}")


def next_working(at: datetime, place: Place) -> datetime:
    """Return `at` itself where the recipient works then, else the first working minute after it."""
    if place.is_working(at):
        return at.astimezone(UTC)
    return next(minute for minute in minutes_from(at) if minute > at and place.is_working(minute))


def first_at_or_after(wall: datetime, after: datetime, zone: ZoneInfo) -> datetime:
    """Return the first minute from `after` on whose wall clock shows `wall` (naive) or more.

    A wall time left out by a clock change gives the first valid instant after the gap, one that comes twice
    the first of the two.
    """
    return next(
        minute
        for minute in minutes_from(after)
        if minute >= after and minute.astimezone(zone).replace(tzinfo=None) >= wall
    )


def add_business_days(at: datetime, count: int, place: Place) -> datetime:
    """Return the instant `count` business days after `at`.

    No days added is the start itself, never an instant before it, even in an hour that comes twice.
    """
    start = next_working(at, place)
    if count == 0:
        return start
    wall = start.astimezone(place.zone)
    day, left = wall.date(), count
    for minute in minutes_from(start):
        today = minute.astimezone(place.zone).date()
        if today > day:
            day = today
            left -= place.is_business_day(day)
        if left == 0:
            return _land(datetime.combine(day, wall.time()), minute, place)
    raise AssertionError("unreachable: the walk ends by itself")


def _land(wall: datetime, midnight: datetime, place: Place) -> datetime:
    """Walk the last day, from its first minute on, to the wall time (naive) and into the window."""
    odd = timedelta(seconds=wall.second, microseconds=wall.microsecond)
    minute = first_at_or_after(wall - odd, midnight, place.zone)
    exists = minute.astimezone(place.zone).replace(tzinfo=None) == wall - odd
    return next_working(minute + odd if exists else minute, place)


def working_minutes(start: datetime, end: datetime, place: Place) -> int:
    """Return how many minutes of [start, end) are working ones; both must be whole minutes."""
    count = 0
    for minute in minutes_from(start):
        if minute >= end:
            break
        count += place.is_working(minute)
    return count


def after_working_minutes(start: datetime, wanted: Fraction, place: Place) -> datetime:
    """Return the working instant at which `wanted` minutes of working time lie between `start` and it.

    The end of one window and the start of the next are equally far: the instant inside a window is it.
    """
    done = 0
    for minute in minutes_from(start):
        if not place.is_working(minute):
            continue
        if done + 1 > wanted:
            return minute + timedelta(microseconds=round((wanted - done) * 60_000_000))
        done += 1
    raise AssertionError("unreachable: the walk ends by itself")


def unbounded_plan(steps: Sequence[Step], since: datetime, place: Place) -> tuple[datetime, ...]:
    """Return the due times of the steps, each counted from the one before, with no end given."""
    dues: list[datetime] = []
    at = since
    for amount, unit in steps:
        at = add_business_days(at, amount, place) if unit == "bd" else at + timedelta(seconds=amount)
        dues.append(at)
    return tuple(dues)


def plan(steps: Sequence[Step], since: datetime, place: Place, end: datetime | None) -> tuple[datetime, ...]:
    """Return the due times of the steps left: the nudges, then the abandonment.

    An end before the abandonment is fixed. A dropped nudge gives its gap to the last one, so the sum of the
    gaps, and with it the one factor all gaps shrink by, stays as it was. While the first of several gaps
    keeps less than half its length the last nudge goes. Steps of mixed units have no rule: ValueError.
    """
    dues = unbounded_plan(steps, since, place)
    if end is None or end >= dues[-1]:
        return dues
    units = {unit for _, unit in steps}
    if len(units) > 1:
        raise ValueError("the specification does not say how a plan of mixed units shrinks")
    if units == {"s"}:
        return _shrink_plain([amount for amount, _ in steps], since, end)
    marks = [since, *dues]
    gaps = [working_minutes(a, b, place) for a, b in pairwise(marks)]
    room = Fraction(working_minutes(since, end, place))
    reached = _reached(gaps, room)
    return (*(after_working_minutes(since, minutes, place) for minutes in reached), end)


def _shrink_plain(gaps: list[int], since: datetime, end: datetime) -> tuple[datetime, ...]:
    """Shrink plain durations in real time: they know no window."""
    room = Fraction((end - since) // timedelta(microseconds=1), 1_000_000)
    nudges = _reached(gaps, max(room, Fraction(0)))
    return (*(since + timedelta(microseconds=round(at * 1_000_000)) for at in nudges), end)


def _reached(gaps: list[int], room: Fraction) -> list[Fraction]:
    """Return how far from the start each nudge that is kept lies when the gaps together fill `room`."""
    left = list(gaps)
    while len(left) > 1 and left[0] * room / sum(left) < left[0] * HALF:
        last = left.pop()
        left[-1] += last
    factor = room / sum(left)
    return [factor * sum(left[: index + 1]) for index in range(len(left) - 1)]


# The worked table, by hand. Berlin, Mon–Fri, 09:00–17:00: a business day is 480 working
# minutes. Schedule 2bd, nudge, 2bd, nudge, 3bd: 960 + 960 + 1440 = 3360 minutes. Sent Monday 3 March 2025,
# 10:00 CET (09:00Z); no clock change until 30 March, so every local time below is UTC + 1.
#
# end 7bd  Wed 12 Mar 10:00  not before the abandonment: nothing changes. Nudges Wed 5 and Fri 7 March, 10:00.
# end 5bd  Mon 10 Mar 10:00  factor 2400/3360 = 5/7 ≥ ½: both nudges stay.
#          nudge 1 after 960 · 5/7 = 685 5/7 min = 1bd + 205 5/7 min: Tue 4 Mar 10:00 + 3 h 25 min 42.857143 s
#          nudge 2 after 1920 · 5/7 = 1371 3/7 min = 2bd + 411 3/7 min: Wed 5 Mar 10:00 + 6 h 51 min 25.714286 s
# end 3bd  Thu 6 Mar 10:00   factor 1440/3360 = 3/7 < ½. Without nudge 2 the gaps are 2/5: the first is still
#          3/7 of its 2bd. Without nudge 1 none is left: given up on Thursday, nobody was nudged.
# end 1bd  Tue 4 Mar 10:00   factor 1/7: the same, on Tuesday.
#
# What follows from "merges its gap into the last": the sum never changes, so either all nudges stay
# (factor ≥ ½) or all go. The row at exactly ½ (3.5bd, Thu 6 Mar 14:00) keeps both: after 480 and 960 minutes.
BERLIN_OFFICE = Place(
    zone=ZoneInfo("Europe/Berlin"),
    workdays=frozenset({1, 2, 3, 4, 5}),
    holidays=frozenset(),
    window=(time(9), time(17)),
)
WORKED_STEPS: tuple[Step, ...] = ((2, "bd"), (2, "bd"), (3, "bd"))
WORKED_SINCE = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)
WORKED_TABLE: dict[str, tuple[datetime, ...]] = {
    "7": (
        datetime(2025, 3, 5, 9, 0, tzinfo=UTC),
        datetime(2025, 3, 7, 9, 0, tzinfo=UTC),
        datetime(2025, 3, 12, 9, 0, tzinfo=UTC),
    ),
    "5": (
        datetime(2025, 3, 4, 12, 25, 42, 857143, tzinfo=UTC),
        datetime(2025, 3, 5, 15, 51, 25, 714286, tzinfo=UTC),
        datetime(2025, 3, 10, 9, 0, tzinfo=UTC),
    ),
    "3.5": (
        datetime(2025, 3, 4, 9, 0, tzinfo=UTC),
        datetime(2025, 3, 5, 9, 0, tzinfo=UTC),
        datetime(2025, 3, 6, 13, 0, tzinfo=UTC),
    ),
    "3": (datetime(2025, 3, 6, 9, 0, tzinfo=UTC),),
    "1": (datetime(2025, 3, 4, 9, 0, tzinfo=UTC),),
}
