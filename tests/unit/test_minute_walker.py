"""The minute walker against rows worked out by hand with a wall calendar: an oracle has to be right first."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from fractions import Fraction
from zoneinfo import ZoneInfo

import pytest

from tests.oracle.minute_walker import (
    BERLIN_OFFICE,
    WORKED_SINCE,
    WORKED_STEPS,
    WORKED_TABLE,
    Place,
    Step,
    add_business_days,
    after_working_minutes,
    first_at_or_after,
    next_working,
    plan,
    working_minutes,
)

WEEK = frozenset({1, 2, 3, 4, 5})
EVERY_DAY = frozenset(range(1, 8))
OFFICE = (time(9), time(17))
ALL_DAY = (time(0), time(23, 59))


def _place(
    zone: str,
    window: tuple[time, time] = OFFICE,
    workdays: frozenset[int] = WEEK,
    holidays: frozenset[date] = frozenset(),
) -> Place:
    return Place(zone=ZoneInfo(zone), workdays=workdays, holidays=holidays, window=window)


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


BERLIN = _place("Europe/Berlin")
EASTER = _place("Europe/Berlin", holidays=frozenset({date(2025, 4, 18), date(2025, 4, 21)}))
BERLIN_NIGHT = _place("Europe/Berlin", (time(1), time(4)), EVERY_DAY)
BERLIN_GAP = _place("Europe/Berlin", (time(2), time(3)), EVERY_DAY)
NEW_YORK = _place("America/New_York")
NEW_YORK_NIGHT = _place("America/New_York", (time(0), time(6)), EVERY_DAY)
TOKYO = _place("Asia/Tokyo")
KOLKATA = _place("Asia/Kolkata")
AUCKLAND = _place("Pacific/Auckland")
SAO_PAULO = _place("America/Sao_Paulo")
CAIRO = _place("Africa/Cairo", workdays=frozenset({7, 1, 2, 3, 4}))
CAIRO_ALWAYS = _place("Africa/Cairo", ALL_DAY, EVERY_DAY)
LORD_HOWE = _place("Australia/Lord_Howe")
LORD_HOWE_NIGHT = _place("Australia/Lord_Howe", (time(1), time(4)), EVERY_DAY)


@pytest.mark.parametrize(
    ("at", "count", "place", "due"),
    [
        # plain weeks
        ("2025-03-03T10:00+01:00", 0, BERLIN, "2025-03-03T10:00+01:00"),  # Monday, now
        ("2025-03-03T10:00+01:00", 1, BERLIN, "2025-03-04T10:00+01:00"),  # Monday to Tuesday
        ("2025-03-06T15:00+01:00", 2, BERLIN, "2025-03-10T15:00+01:00"),  # Thursday, Friday, Monday
        ("2025-03-03T10:00+01:00", 6, BERLIN, "2025-03-11T10:00+01:00"),  # Mon + 6 = Tuesday a week later
        # outside the window: first forward to it, then the days
        ("2025-03-03T07:30+01:00", 1, BERLIN, "2025-03-04T09:00+01:00"),  # before 9: Mon 9:00, Tue
        ("2025-03-03T17:00+01:00", 1, BERLIN, "2025-03-05T09:00+01:00"),  # 17:00 is out: Tue 9:00, Wed
        ("2025-03-03T16:59+01:00", 1, BERLIN, "2025-03-04T16:59+01:00"),  # the last minute is inside
        ("2025-03-08T12:00+01:00", 0, BERLIN, "2025-03-10T09:00+01:00"),  # Saturday: Monday 9:00
        ("2025-03-08T12:00+01:00", 2, BERLIN, "2025-03-12T09:00+01:00"),  # Saturday: Mon, Tue, Wed
        # holidays
        ("2025-04-17T10:00+02:00", 2, EASTER, "2025-04-23T10:00+02:00"),  # Thu; Tue, Wed
        ("2025-04-18T10:00+02:00", 0, EASTER, "2025-04-22T09:00+02:00"),  # Good Friday: Tuesday 9:00
        # the clock changes between: the local time stays
        ("2025-03-27T10:00+01:00", 2, BERLIN, "2025-03-31T10:00+02:00"),
        ("2025-10-24T10:00+02:00", 1, BERLIN, "2025-10-27T10:00+01:00"),
        ("2025-03-07T09:30-05:00", 1, NEW_YORK, "2025-03-10T09:30-04:00"),  # 9 March 2025
        ("2025-10-31T16:30-04:00", 1, NEW_YORK, "2025-11-03T16:30-05:00"),  # 2 November 2025
        ("2025-04-04T10:15+13:00", 1, AUCKLAND, "2025-04-07T10:15+12:00"),  # 6 April 2025
        ("2025-09-26T10:15+12:00", 1, AUCKLAND, "2025-09-29T10:15+13:00"),  # 28 September 2025
        ("2025-04-04T10:00+11:00", 1, LORD_HOWE, "2025-04-07T10:00+10:30"),  # half an hour only
        ("2025-10-03T10:00+10:30", 1, LORD_HOWE, "2025-10-06T10:00+11:00"),
        # zones without a change, one with half an hour
        ("2025-03-07T16:00+09:00", 1, TOKYO, "2025-03-10T16:00+09:00"),
        ("2025-03-06T23:30+00:00", 1, TOKYO, "2025-03-10T09:00+09:00"),  # it is Friday 8:30 there
        ("2025-08-14T12:45+05:30", 3, KOLKATA, "2025-08-19T12:45+05:30"),
        ("2026-02-13T18:00-03:00", 1, SAO_PAULO, "2026-02-17T09:00-03:00"),  # Fri evening: Mon, Tue
        # Sunday to Thursday; Cairo's summer begins on Friday 25 April 2025, 00:00
        ("2025-04-24T11:00+02:00", 1, CAIRO, "2025-04-27T11:00+03:00"),
        # a local time that is left out: the first instant after the gap
        ("2025-03-29T02:30+01:00", 1, BERLIN_NIGHT, "2025-03-30T03:00+02:00"),
        ("2025-03-08T02:30-05:00", 1, NEW_YORK_NIGHT, "2025-03-09T03:00-04:00"),
        ("2025-10-04T02:10+10:30", 1, LORD_HOWE_NIGHT, "2025-10-05T02:30+11:00"),
        ("2025-04-24T00:20+02:00", 1, CAIRO_ALWAYS, "2025-04-25T01:00+03:00"),
        # the gap swallows the window: the day has passed, the next window is tomorrow's
        ("2025-03-29T02:30+01:00", 1, BERLIN_GAP, "2025-03-31T02:00+02:00"),
        # a local time that comes twice: the first one
        ("2025-10-25T02:30+02:00", 1, BERLIN_NIGHT, "2025-10-26T02:30+02:00"),
        ("2025-11-01T01:30-04:00", 1, NEW_YORK_NIGHT, "2025-11-02T01:30-04:00"),
        ("2025-04-05T01:45+11:00", 1, LORD_HOWE_NIGHT, "2025-04-06T01:45+11:00"),
        ("2025-10-29T23:30+03:00", 1, CAIRO_ALWAYS, "2025-10-30T23:30+03:00"),  # Thursday's last hour, twice
        # sent in the second of the two: no days later is then, not an hour before
        ("2025-10-26T02:30+01:00", 0, BERLIN_NIGHT, "2025-10-26T02:30+01:00"),
        ("2025-10-26T02:30+01:00", 1, BERLIN_NIGHT, "2025-10-27T02:30+01:00"),
        # seconds ride along
        ("2025-03-06T15:00:07.5+01:00", 2, BERLIN, "2025-03-10T15:00:07.5+01:00"),
        ("2025-03-03T08:59:30+01:00", 1, BERLIN, "2025-03-04T09:00+01:00"),
    ],
)
def test_business_days_are_what_the_wall_calendar_says(at: str, count: int, place: Place, due: str) -> None:
    assert add_business_days(_utc(at), count, place) == _utc(due)


@pytest.mark.parametrize(
    ("at", "place", "first"),
    [
        ("2025-03-03T12:00+01:00", BERLIN, "2025-03-03T12:00+01:00"),
        ("2025-03-03T08:59+01:00", BERLIN, "2025-03-03T09:00+01:00"),
        ("2025-03-07T17:00+01:00", BERLIN, "2025-03-10T09:00+01:00"),  # Friday evening
        ("2025-04-17T18:00+02:00", EASTER, "2025-04-22T09:00+02:00"),  # over Easter
        ("2025-03-30T00:30+01:00", BERLIN_NIGHT, "2025-03-30T01:00+01:00"),
        ("2025-03-30T01:59+01:00", BERLIN_GAP, "2025-03-31T02:00+02:00"),  # no such hour on the 30th
        ("2025-10-26T02:59+02:00", BERLIN_GAP, "2025-10-26T02:59+02:00"),
        ("2025-03-06T23:59:30+00:00", TOKYO, "2025-03-07T09:00+09:00"),
    ],
)
def test_next_working_instant_is_now_or_the_next_window_start(at: str, place: Place, first: str) -> None:
    assert next_working(_utc(at), place) == _utc(first)


@pytest.mark.parametrize(
    ("start", "end", "place", "minutes"),
    [
        ("2025-03-03T10:00+01:00", "2025-03-03T10:00+01:00", BERLIN, 0),
        ("2025-03-03T00:00+01:00", "2025-03-04T00:00+01:00", BERLIN, 480),
        ("2025-03-03T16:00+01:00", "2025-03-04T10:00+01:00", BERLIN, 120),
        ("2025-03-07T16:30+01:00", "2025-03-10T09:30+01:00", BERLIN, 60),  # over the weekend
        ("2025-04-17T16:00+02:00", "2025-04-22T10:00+02:00", EASTER, 120),
        ("2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", BERLIN_NIGHT, 120),  # 2:00–3:00 is left out
        ("2025-10-26T00:00+02:00", "2025-10-27T00:00+01:00", BERLIN_NIGHT, 240),  # 2:00–3:00 twice
        ("2025-10-05T00:00+10:30", "2025-10-06T00:00+11:00", LORD_HOWE_NIGHT, 150),
        ("2025-04-06T00:00+11:00", "2025-04-07T00:00+10:30", LORD_HOWE_NIGHT, 210),
        ("2025-03-30T00:00+01:00", "2025-03-31T00:00+02:00", BERLIN_GAP, 0),
    ],
)
def test_working_minutes_are_real_minutes(start: str, end: str, place: Place, minutes: int) -> None:
    assert working_minutes(_utc(start), _utc(end), place) == minutes


def test_far_end_of_a_window_is_the_start_of_the_next() -> None:
    start = _utc("2025-03-03T16:00+01:00")
    assert after_working_minutes(start, Fraction(60), BERLIN) == _utc("2025-03-04T09:00+01:00")
    assert after_working_minutes(start, Fraction(119, 2), BERLIN) == _utc("2025-03-03T16:59:30+01:00")


def test_local_time_left_out_becomes_the_first_instant_after_the_gap() -> None:
    wall = datetime(2025, 3, 30, 2, 30)  # noqa: DTZ001 - a wall time is naive on purpose
    after = _utc("2025-03-29T12:00+00:00")
    assert first_at_or_after(wall, after, ZoneInfo("Europe/Berlin")) == _utc("2025-03-30T01:00+00:00")


@pytest.mark.parametrize("days", WORKED_TABLE)
def test_worked_table_of_ends(days: str) -> None:
    dues = WORKED_TABLE[days]
    assert plan(WORKED_STEPS, WORKED_SINCE, BERLIN_OFFICE, dues[-1]) == dues


@pytest.mark.parametrize(
    ("steps", "since", "end", "dues"),
    [
        # no end, and one after the abandonment
        (((2, "bd"), (3, "bd")), "2025-03-03T10:00+01:00", None, ("2025-03-05T10:00+01:00", "2025-03-10T10:00+01:00")),
        (((1, "bd"),), "2025-03-03T10:00+01:00", "2025-03-09T10:00+01:00", ("2025-03-04T10:00+01:00",)),
        # one nudge already made, 2bd and 3bd left, an end after 4bd: 960 · 4/5 = 768 min = 1bd + 4:48
        (
            ((2, "bd"), (3, "bd")),
            "2025-03-03T10:00+01:00",
            "2025-03-07T10:00+01:00",
            ("2025-03-04T14:48+01:00", "2025-03-07T10:00+01:00"),
        ),
        # exactly half is kept, one minute less is not
        (
            ((2, "bd"), (3, "bd")),
            "2025-03-03T10:00+01:00",
            "2025-03-05T14:00+01:00",
            ("2025-03-04T10:00+01:00", "2025-03-05T14:00+01:00"),
        ),
        (((2, "bd"), (3, "bd")), "2025-03-03T10:00+01:00", "2025-03-05T13:59+01:00", ("2025-03-05T13:59+01:00",)),
        # case 154: sent Mon 3 March 10:00, 2/2/2, end Mon 10 March 18:00. 2820 of 2880 working minutes: 47/48.
        # 940 min: Mon 10:00 +1bd = Tue 10:00, 420 min to 17:00, 40 more on Wed. 1880 min: Thu 10:00 + 440.
        (
            ((2, "bd"), (2, "bd"), (2, "bd")),
            "2025-03-03T10:00+01:00",
            "2025-03-10T18:00+01:00",
            ("2025-03-05T09:40+01:00", "2025-03-07T09:20+01:00", "2025-03-10T18:00+01:00"),
        ),
        # 540 minutes from Monday 16:00 end with Tuesday's window: Wednesday 9:00
        (((2, "bd"), (2, "bd")), "2025-03-03T16:00+01:00", "2025-03-06T10:00+01:00", ("2025-03-05T09:00+01:00", "2025-03-06T10:00+01:00")),
        # no working minute is left: only the end
        (((1, "bd"), (1, "bd")), "2025-03-07T18:00+01:00", "2025-03-09T12:00+01:00", ("2025-03-09T12:00+01:00",)),
        # plain durations shrink in real time and know no window
        (((3, "s"), (3, "s"), (3, "s")), "2025-03-08T23:00:00+01:00", None, ("2025-03-08T23:00:03+01:00", "2025-03-08T23:00:06+01:00", "2025-03-08T23:00:09+01:00")),
        (((3, "s"), (3, "s"), (3, "s")), "2025-03-08T23:00:00+01:00", "2025-03-08T23:00:06+01:00", ("2025-03-08T23:00:02+01:00", "2025-03-08T23:00:04+01:00", "2025-03-08T23:00:06+01:00")),
        (((3, "s"), (3, "s"), (3, "s")), "2025-03-08T23:00:00+01:00", "2025-03-08T23:00:04+01:00", ("2025-03-08T23:00:04+01:00",)),
    ],
)  # fmt: skip
def test_plans_are_as_worked_out(
    steps: tuple[Step, ...], since: str, end: str | None, dues: tuple[str, ...]
) -> None:
    found = plan(steps, _utc(since), BERLIN_OFFICE, _utc(end) if end else None)
    assert found == tuple(_utc(due) for due in dues)


def test_mixed_units_with_an_early_end_have_no_answer() -> None:
    with pytest.raises(ValueError, match="mixed units"):
        plan(((1, "bd"), (60, "s")), WORKED_SINCE, BERLIN_OFFICE, WORKED_SINCE)
