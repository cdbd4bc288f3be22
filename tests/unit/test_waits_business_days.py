"""Business days keep local time, skip holidays and survive clock changes."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from answerback.errors import BadRequest
from answerback.waits.business_days import (
    Calendar,
    add_business_days,
    add_working_time,
    calendar_for,
    local_instant,
    next_working_instant,
    working_time,
)

BERLIN = ZoneInfo("Europe/Berlin")
OFFICE = Calendar(zone=BERLIN)
EASTER = Calendar(zone=BERLIN, holidays=frozenset({date(2025, 4, 18), date(2025, 4, 21)}))
TOKYO = Calendar(zone=ZoneInfo("Asia/Tokyo"))
APIA = Calendar(zone=ZoneInfo("Pacific/Apia"))
#: a night shift across the hours the clock change touches
NIGHT = Calendar(zone=BERLIN, workdays=frozenset(range(1, 8)), window=(time(1, 30), time(4)))
#: the clock goes back from 00:00 to 23:00 of the day before
BEIRUT = Calendar(
    zone=ZoneInfo("Asia/Beirut"), workdays=frozenset(range(1, 8)), window=(time(22, 30), time(23, 30))
)


def z(text: str) -> datetime:
    """The instant of a UTC time."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("calendar", "start", "days", "expected"),
    [
        (OFFICE, "2025-03-06T14:00", 2, "2025-03-10T14:00"),  # Thursday 15:00, over a weekend
        (EASTER, "2025-04-17T08:00", 2, "2025-04-23T08:00"),  # Good Friday and Easter Monday
        (OFFICE, "2025-03-27T09:00", 2, "2025-03-31T08:00"),  # 10:00 before and after the clock change
        (TOKYO, "2025-03-07T07:00", 1, "2025-03-10T07:00"),  # Friday 16:00 in Tokyo
        (OFFICE, "2025-03-08T12:00", 1, "2025-03-11T08:00"),  # Saturday counts from Monday 9:00
        (OFFICE, "2025-03-06T05:00", 1, "2025-03-07T08:00"),  # before the window: from its start
        (OFFICE, "2025-03-06T16:00", 1, "2025-03-10T08:00"),  # the window's end is outside it
        (OFFICE, "2025-03-06T15:59", 1, "2025-03-07T15:59"),
        (OFFICE, "2025-03-06T20:00", 0, "2025-03-07T08:00"),  # none: only moved into the window
        (NIGHT, "2025-03-29T01:30", 1, "2025-03-30T01:00"),  # 2:30 does not exist: the first valid instant
        (APIA, "2011-12-28T20:00", 2, "2012-01-01T20:00"),  # Thursday, then Monday: there was no Friday 30
        (NIGHT, "2025-10-25T00:30", 1, "2025-10-26T00:30"),  # 2:30 comes twice: the first
    ],
)
def test_business_days_are_added_in_the_recipients_time(
    calendar: Calendar, start: str, days: int, expected: str
) -> None:
    assert add_business_days(z(start), days, calendar) == z(expected)


def test_a_landing_pushed_out_of_the_window_moves_to_the_next_one() -> None:
    # 2:15 is skipped on 30 March; 3:00, the first valid instant, is the window's end already.
    early = Calendar(zone=BERLIN, workdays=frozenset(range(1, 8)), window=(time(2), time(3)))
    assert add_business_days(z("2025-03-29T01:15"), 1, early) == z("2025-03-31T00:00")


def test_a_start_in_another_zone_is_the_same_instant() -> None:
    start = datetime(2025, 3, 6, 9, 0, tzinfo=ZoneInfo("America/New_York"))
    assert add_business_days(start, 2, OFFICE) == z("2025-03-10T14:00")
    assert next_working_instant(start, OFFICE).tzinfo is UTC


@pytest.mark.parametrize(
    ("local", "expected"),
    [
        ("2025-03-30T02:30", "2025-03-30T01:00"),
        ("2025-03-30T02:00", "2025-03-30T01:00"),
        ("2025-03-30T03:00", "2025-03-30T01:00"),
        ("2025-10-26T02:30", "2025-10-26T00:30"),
        ("2025-07-01T12:00", "2025-07-01T10:00"),
    ],
)
def test_a_local_time_is_its_first_valid_instant(local: str, expected: str) -> None:
    assert local_instant(datetime.fromisoformat(local), BERLIN) == z(expected)


@pytest.mark.parametrize(
    ("calendar", "start", "end", "hours"),
    [
        (OFFICE, "2025-03-07T15:00", "2025-03-10T09:00", 2),  # the last hour of Friday, the first of Monday
        (OFFICE, "2025-03-08T00:00", "2025-03-09T23:00", 0),
        (OFFICE, "2025-03-06T09:00", "2025-03-06T09:00", 0),
        (NIGHT, "2025-03-29T20:00", "2025-03-30T10:00", 1.5),  # an hour is missing
        (NIGHT, "2025-10-25T20:00", "2025-10-26T10:00", 3.5),  # an hour comes twice
        (BEIRUT, "2025-10-25T12:00", "2025-10-26T12:00", 1.5),  # 23:00 comes again after midnight
        (NIGHT, "2025-03-30T01:00", "2025-03-30T02:00", 1),
    ],
)
def test_working_time_is_what_lies_inside_the_windows(
    calendar: Calendar, start: str, end: str, hours: float
) -> None:
    assert working_time(z(start), z(end), calendar) == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("start", "hours", "expected"),
    [
        ("2025-03-07T15:00", 0.5, "2025-03-07T15:30"),
        ("2025-03-07T15:00", 1, "2025-03-10T08:00"),  # the end of a window is the start of the next
        ("2025-03-07T15:00", 9.5, "2025-03-11T08:30"),
        ("2025-03-08T15:00", 0, "2025-03-10T08:00"),
    ],
)
def test_working_time_is_added_across_windows(start: str, hours: float, expected: str) -> None:
    assert add_working_time(z(start), timedelta(hours=hours), OFFICE) == z(expected)


@pytest.mark.parametrize(
    ("workdays", "window", "field"),
    [
        (frozenset(), (time(9), time(17)), "workdays"),
        (frozenset({0, 1}), (time(9), time(17)), "workdays"),
        (frozenset({1}), (time(9), time(9)), "window"),
        (frozenset({1}), (time(22), time(6)), "window"),
    ],
)
def test_a_calendar_without_hours_is_refused(
    workdays: frozenset[int], window: tuple[time, time], field: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        Calendar(zone=BERLIN, workdays=workdays, window=window)
    assert refused.value.details["field"] == field


class EveryDay:
    """Holidays without end."""

    def __contains__(self, day: object) -> bool:
        return True


def test_endless_holidays_are_refused_instead_of_searched_for_ever() -> None:
    endless = Calendar(zone=BERLIN, holidays=EveryDay())
    with pytest.raises(BadRequest, match="no working day in the 400 days before 2026-04-09"):
        add_business_days(z("2025-03-06T14:00"), 1, endless)


def test_a_country_gives_holidays_and_weekend() -> None:
    german, saudi = calendar_for("Europe/Berlin", "de"), calendar_for("Asia/Riyadh", "SA")
    assert not german.is_business_day(date(2025, 10, 3))
    assert not german.is_business_day(date(2031, 10, 3))
    assert german.is_business_day(date(2025, 10, 2))
    assert (german.workdays, saudi.workdays) == (frozenset({1, 2, 3, 4, 5}), frozenset({1, 2, 3, 4, 7}))
    assert "2025-10-03" not in german.holidays


@pytest.mark.parametrize("country", ["", "ZZ", "nowhere"])
def test_an_unknown_country_has_no_holidays(country: str) -> None:
    calendar = calendar_for("Europe/Berlin", country)
    assert calendar.is_business_day(date(2025, 12, 25))
    assert (calendar.workdays, calendar.window) == (frozenset({1, 2, 3, 4, 5}), (time(9), time(17)))


def test_without_a_zone_the_window_is_13_to_16_utc() -> None:
    calendar = calendar_for()
    assert next_working_instant(z("2025-03-07T16:00"), calendar) == z("2025-03-10T13:00")
    assert next_working_instant(z("2025-03-07T15:59"), calendar) == z("2025-03-07T15:59")


@pytest.mark.parametrize("zone", ["Mars/Olympus", "../etc/passwd", "Europe"])
def test_an_unknown_zone_is_refused(zone: str) -> None:
    with pytest.raises(BadRequest, match="no time zone"):
        calendar_for(zone)
