"""Business days in a recipient's own zone: working instants, days added, working time measured."""

from __future__ import annotations

from collections.abc import Container, Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import takewhile
from zoneinfo import ZoneInfo

from answerback.errors import BadRequest
from answerback.model import value

#: days without a working one after which a calendar is called unusable
HORIZON = 400
WEEK = frozenset({1, 2, 3, 4, 5})
WINDOW = (time(9), time(17))
#: with no zone known: nowhere in Europe, Africa or the Americas is this the middle of the night
WINDOW_ANYWHERE = (time(13), time(16))
DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


@value
class Calendar:
    """When a recipient works: ISO weekdays (1 is Monday), days off, the window [start, end) of local time.

    Raises:
        BadRequest: there is no workday, or the window does not end after it starts.
    """

    zone: ZoneInfo
    workdays: frozenset[int] = WEEK
    holidays: Container[date] = frozenset()
    window: tuple[time, time] = WINDOW

    def __post_init__(self) -> None:
        if not self.workdays or not self.workdays <= set(range(1, 8)):
            raise BadRequest(field="workdays", problem="give at least one day from 1 (Monday) to 7 (Sunday)")
        if self.window[0] >= self.window[1]:
            raise BadRequest(field="window", problem="it must end later than it starts, on the same day")

    def is_business_day(self, day: date) -> bool:
        """Tell whether a local day counts: a workday and no holiday."""
        return day.isoweekday() in self.workdays and day not in self.holidays


def calendar_for(zone: str = "", country: str = "") -> Calendar:
    """Return the usual calendar of an IANA zone and an ISO 3166 country.

    The country gives public holidays and weekend; an unknown one has no holidays and works Monday to Friday.
    With no zone the window is 13-16 UTC.

    Raises:
        BadRequest: there is no such zone.
    """
    try:
        found = ZoneInfo(zone or "UTC")
    except (KeyError, OSError, ValueError):  # what ZoneInfo raises for an unknown, a broken, an unsafe name
        problem = f"there is no time zone {zone!r}; write one as Europe/Berlin"
        raise BadRequest(field="zone", problem=problem) from None
    return Calendar(
        zone=found,
        workdays=_workdays(country.upper()),
        holidays=PublicHolidays(country=country.upper()),
        window=WINDOW if zone else WINDOW_ANYWHERE,
    )


@value
class PublicHolidays:
    """The public holidays of an ISO 3166 country, for any year; an unknown country has none."""

    country: str

    def __contains__(self, day: object) -> bool:
        return isinstance(day, date) and day in _holidays(self.country, day.year)[0]


def _workdays(country: str) -> frozenset[int]:
    # A country's weekend does not change from year to year; any year tells it.
    return frozenset(range(1, 8)) - _holidays(country, 2025)[1]


@cache
def _holidays(country: str, year: int) -> tuple[frozenset[date], frozenset[int]]:
    """Return a year's public holidays and the ISO days of the weekend."""
    if not country:
        return frozenset(), frozenset({6, 7})
    # Here, not above: it takes 0.4 s to import, and most commands never ask for a holiday.
    from holidays import country_holidays  # noqa: PLC0415

    try:
        known = country_holidays(country, years=year, expand=False)
    except NotImplementedError:
        return frozenset(), frozenset({6, 7})
    return frozenset(known), frozenset(day + 1 for day in known.weekend)


def local_instant(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the instant, in UTC, at which the clock of a zone shows a naive local time.

    A time the clock skips gives the first valid instant after the gap, one it shows twice the first of them.
    """
    first = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
    if first.astimezone(zone).replace(tzinfo=None) == local:
        return first
    # PEP 495: in a gap fold=1 is read with the offset after it, so the two readings lie around the change.
    return _change(zone, local.replace(tzinfo=zone, fold=1).astimezone(UTC), first)


def _change(zone: ZoneInfo, before: datetime, after: datetime) -> datetime:
    """Return the first instant that has the offset of `after`; one change lies between the two."""
    before, after = before.replace(microsecond=0), after.replace(microsecond=0)
    offset = after.astimezone(zone).utcoffset()
    while after - before > SECOND:
        middle = before + (after - before) // SECOND // 2 * SECOND
        if middle.astimezone(zone).utcoffset() == offset:
            after = middle
        else:
            before = middle
    return after


def next_working_instant(at: datetime, calendar: Calendar) -> datetime:
    """Return `at` where the recipient works then, else the start of the next window; in UTC.

    Raises:
        BadRequest: the calendar has no working day for over a year.
    """
    start, _ = next(_windows_from(at, calendar))
    return start


def add_business_days(at: datetime, n: int, calendar: Calendar) -> datetime:
    """Return the instant `n` business days after `at`, in UTC.

    `at` first moves forward to the next working instant; `n` business days later the local time of day is the
    same; where a clock change pushes that out of the window, it moves forward to the next window.

    Raises:
        BadRequest: the calendar has no working day for over a year.
    """
    start = next_working_instant(at, calendar)
    if n == 0:
        return start
    wall = start.astimezone(calendar.zone).replace(tzinfo=None)
    days = _business_days(wall.date() + DAY, calendar)
    day = [next(days) for _ in range(n)][-1]
    landed = local_instant(datetime.combine(day, wall.time()), calendar.zone)
    return next_working_instant(landed, calendar)


def working_time(start: datetime, end: datetime, calendar: Calendar) -> timedelta:
    """Return how much of [start, end) lies in the recipient's windows.

    Raises:
        BadRequest: the calendar has no working day for over a year.
    """
    inside = takewhile(lambda window: window[0] < end, _windows_from(start, calendar))
    return sum((min(closes, end) - opens for opens, closes in inside), timedelta())


def add_working_time(start: datetime, delta: timedelta, calendar: Calendar) -> datetime:
    """Return the working instant before which `delta` of working time lies after `start`; in UTC.

    The end of one window and the start of the next are equally far: the start is it.

    Raises:
        BadRequest: the calendar has no working day for over a year.
    """
    left = delta
    windows = _windows_from(start, calendar)
    opens, closes = next(windows)
    while left >= closes - opens:
        left -= closes - opens
        opens, closes = next(windows)
    return opens + left


def _windows_from(at: datetime, calendar: Calendar) -> Iterator[tuple[datetime, datetime]]:
    """Yield the working intervals [start, end) from `at` on, in order, in UTC; the first may begin there."""
    at = at.astimezone(UTC)
    # The day before too: a clock set back over midnight shows it again.
    for day in _business_days(at.astimezone(calendar.zone).date() - DAY, calendar):
        for start, end in _intervals(day, calendar):
            if end > at:
                yield max(start, at), end


def _business_days(day: date, calendar: Calendar) -> Iterator[date]:
    """Yield the business days from `day` on."""
    idle = 0
    while idle < HORIZON:
        idle += 1
        if calendar.is_business_day(day) and _exists(day, calendar.zone):
            idle = 0
            yield day
        day += DAY
    problem = f"it has no working day in the {HORIZON} days before {day}; take holidays out of it"
    raise BadRequest(field="calendar", problem=problem)


def _exists(day: date, zone: ZoneInfo) -> bool:
    """Tell whether the calendar of a zone has a day: Samoa went from 29 to 31 December 2011."""
    return local_instant(datetime.combine(day, time.min), zone).astimezone(zone).date() == day


def _intervals(day: date, calendar: Calendar) -> Iterator[tuple[datetime, datetime]]:
    """Yield when the wall clock shows the window of one day: twice where the clock changes inside it."""
    opens, closes = (datetime.combine(day, edge, UTC) for edge in calendar.window)
    # Offsets lie between -12 and +14 hours, so the whole window lies between these two.
    earliest, latest = opens - timedelta(hours=15), closes + timedelta(hours=13)
    before, after = _offset(calendar.zone, earliest), _offset(calendar.zone, latest)
    if before == after:
        yield opens - before, closes - before
        return
    change = _change(calendar.zone, earliest, latest)
    for start, end in (
        (opens - before, min(closes - before, change)),
        (max(opens - after, change), closes - after),
    ):
        if start < end:
            yield start, end


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta()
