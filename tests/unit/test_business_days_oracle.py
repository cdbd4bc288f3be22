"""Business days, working time and plans are what a walk minute by minute finds."""

# long because: the worked rows stand beside the laws they illustrate

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from answerback.model.waiting import Gap, Schedule
from tests.oracle import minute_walker
from tests.oracle.minute_walker import MINUTE, WORKED_SINCE, WORKED_STEPS, WORKED_TABLE, Place, Step

if TYPE_CHECKING:
    from answerback.waits.business_days import Calendar

ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Asia/Tokyo",
    "Asia/Kolkata",
    "Pacific/Auckland",
    "America/Sao_Paulo",
    "Africa/Cairo",
    "Australia/Lord_Howe",
)
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
MINUTES = 4 * 365 * 24 * 60
#: offices, and windows that lie in the hours the clocks change
WINDOWS = (
    (time(9), time(17)),
    (time(8, 30), time(12)),
    (time(13), time(16)),
    (time(0), time(23, 59)),
    (time(0), time(6)),
    (time(1, 30), time(3, 30)),
    (time(2), time(3)),
    (time(2, 15), time(2, 45)),
    (time(23), time(23, 59)),
)
WEEKS = (frozenset({1, 2, 3, 4, 5}), frozenset({7, 1, 2, 3, 4}), frozenset(range(1, 8)), frozenset({5, 7}))

normal = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
thorough = settings(max_examples=1200, suppress_health_check=[HealthCheck.too_slow])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A start and the place it is seen from."""

    at: datetime
    place: Place


@cache
def _clock_changes(zone: str) -> tuple[datetime, ...]:
    """The instants (to the hour) at which the zone's offset changes in the years tested."""
    hours = [FIRST + timedelta(hours=hour) for hour in range(MINUTES // 60)]
    offsets = [hour.astimezone(ZoneInfo(zone)).utcoffset() for hour in hours]
    return tuple(hour for hour, a, b in zip(hours[1:], offsets, offsets[1:], strict=False) if a != b)


@st.composite
def cases(draw: st.DrawFn, weeks: tuple[frozenset[int], ...] = WEEKS) -> Case:
    """Draw a start, often in the days before a clock change, and a calendar with holidays soon after it."""
    zone = draw(st.sampled_from(ZONES))
    changes = _clock_changes(zone)
    near_a_change: bool = draw(st.booleans())
    if changes and near_a_change:
        at = draw(st.sampled_from(changes)) + MINUTE * draw(st.integers(-4 * 24 * 60, 180))
    else:
        at = FIRST + MINUTE * draw(st.integers(0, MINUTES - 1))
    offsets = draw(st.sets(st.integers(0, 14), max_size=5))
    place = Place(
        zone=ZoneInfo(zone),
        workdays=draw(st.sampled_from(weeks)),
        holidays=frozenset(at.date() + timedelta(days=days) for days in offsets),
        window=draw(st.sampled_from(WINDOWS)),
    )
    return Case(at=at, place=place)


gaps_bd = st.one_of(*(st.lists(st.integers(1, 3), min_size=size, max_size=size) for size in (3, 3, 2, 1)))
nudges_made = st.sampled_from((0, 0, 0, 1, 2))
#: where the end lies, in thousandths of the way to the abandonment; most where nudges begin to go
ends = st.one_of(st.integers(250, 600), st.integers(0, 1100), st.none())


def _calendar(place: Place) -> Calendar:
    from answerback.waits.business_days import Calendar

    return Calendar(zone=place.zone, workdays=place.workdays, holidays=place.holidays, window=place.window)


def _schedule(steps: tuple[Step, ...]) -> Schedule:
    return Schedule(name="test", version=1, gaps=tuple(Gap(amount=n, unit=unit) for n, unit in steps))


def _planned(
    steps: tuple[Step, ...], since: datetime, place: Place, end: datetime | None, made: int = 0
) -> tuple[datetime, ...]:
    from answerback.waits.plan import plan

    schedule, calendar = _schedule(steps), _calendar(place)
    return plan(schedule, nudges_made=made, since=since, calendar=calendar, end=end)


def _check_days(case: Case, count: int) -> None:
    from answerback.waits.business_days import add_business_days

    found = add_business_days(case.at, count, _calendar(case.place))
    assert found == minute_walker.add_business_days(case.at, count, case.place)


def _check_next(case: Case) -> None:
    from answerback.waits.business_days import next_working_instant

    assert next_working_instant(case.at, _calendar(case.place)) == minute_walker.next_working(
        case.at, case.place
    )


def _check_working_time(case: Case, length: int) -> None:
    from answerback.waits.business_days import working_time

    end = case.at + MINUTE * length
    wanted = MINUTE * minute_walker.working_minutes(case.at, end, case.place)
    assert working_time(case.at, end, _calendar(case.place)) == wanted


def _check_plan(case: Case, gaps: list[int], made: int, per_mille: int | None) -> None:
    """Compare a plan of business days; the end lies at so many thousandths of the way to the abandonment."""
    steps: tuple[Step, ...] = tuple((gap, "bd") for gap in gaps)
    made = min(made, len(steps) - 1)
    left = steps[made:]
    free = minute_walker.unbounded_plan(left, case.at, case.place)
    end = None
    if per_mille is not None:
        end = case.at + MINUTE * ((free[-1] - case.at) // MINUTE * per_mille // 1000)
    wanted = minute_walker.plan(left, case.at, case.place, end)
    _assert_same_plan(_planned(steps, case.at, case.place, end, made), wanted, case.place)


def _assert_same_plan(found: tuple[datetime, ...], wanted: tuple[datetime, ...], place: Place) -> None:
    """The same steps, the same end, and nudges less than one working minute apart, all inside the window.

    How a fraction of a minute is rounded is nobody's rule; a plan of whole minutes has no fraction.
    """
    assert len(found) == len(wanted), (found, wanted)
    assert found[-1] == wanted[-1], (found, wanted)
    assert list(found) == sorted(found)
    for due, right in zip(found[:-1], wanted[:-1], strict=True):
        assert place.is_working(due), (found, wanted)
        early, late = sorted((due, right))
        assert minute_walker.working_minutes(early, late, place) <= 1, (found, wanted)


@normal
@given(case=cases(), count=st.integers(0, 6))
def test_business_days_are_as_walked(case: Case, count: int) -> None:
    _check_days(case, count)


@pytest.mark.prove
@pytest.mark.timeout(600)
@thorough
@given(case=cases(), count=st.integers(0, 6))
def test_business_days_are_as_walked_many_times(case: Case, count: int) -> None:
    _check_days(case, count)


@normal
@given(case=cases())
def test_next_working_instant_is_as_walked(case: Case) -> None:
    _check_next(case)


@pytest.mark.prove
@pytest.mark.timeout(600)
@thorough
@given(case=cases())
def test_next_working_instant_is_as_walked_many_times(case: Case) -> None:
    _check_next(case)


@normal
@given(case=cases(), length=st.integers(0, 10 * 24 * 60))
def test_working_time_is_as_walked(case: Case, length: int) -> None:
    _check_working_time(case, length)


@pytest.mark.prove
@pytest.mark.timeout(600)
@thorough
@given(case=cases(), length=st.integers(0, 10 * 24 * 60))
def test_working_time_is_as_walked_many_times(case: Case, length: int) -> None:
    _check_working_time(case, length)


@normal
@given(case=cases(), gaps=gaps_bd, made=nudges_made, per_mille=ends)
def test_plans_are_as_walked(case: Case, gaps: list[int], made: int, per_mille: int | None) -> None:
    _check_plan(case, gaps, made, per_mille)


@pytest.mark.prove
@pytest.mark.timeout(900)
@thorough
@given(case=cases(), gaps=gaps_bd, made=nudges_made, per_mille=ends)
def test_plans_are_as_walked_many_times(
    case: Case, gaps: list[int], made: int, per_mille: int | None
) -> None:
    _check_plan(case, gaps, made, per_mille)


@normal
@given(
    case=cases(),
    gaps=st.lists(st.integers(1, 600), min_size=1, max_size=4),
    room=st.none() | st.integers(0, 2600),
)
def test_plain_durations_are_as_walked_and_know_no_window(
    case: Case, gaps: list[int], room: int | None
) -> None:
    steps: tuple[Step, ...] = tuple((gap, "s") for gap in gaps)
    end = None if room is None else case.at + timedelta(seconds=room)
    found = _planned(steps, case.at, case.place, end)
    wanted = minute_walker.plan(steps, case.at, case.place, end)
    assert len(found) == len(wanted)
    assert found[-1] == wanted[-1]
    assert all(abs(due - right) < timedelta(seconds=1) for due, right in zip(found, wanted, strict=True))


@normal
@given(
    case=cases(),
    days=st.integers(1, 3),
    seconds=st.integers(1, 200_000),
    days_first=st.booleans(),
    room=st.none() | st.integers(0, 10 * 24 * 60),
)
def test_plans_of_mixed_units_never_pass_their_end(
    case: Case, days: int, seconds: int, days_first: bool, room: int | None
) -> None:
    steps: tuple[Step, ...] = ((days, "bd"), (seconds, "s"))
    steps = steps if days_first else steps[::-1]
    free = minute_walker.unbounded_plan(steps, case.at, case.place)
    end = None if room is None else case.at + MINUTE * room
    found = _planned(steps, case.at, case.place, end)
    if end is None or end >= free[-1]:
        assert found == free
    else:
        assert found[-1] == end
        assert list(found) == sorted(found)
        assert len(found) <= len(steps)


@pytest.mark.parametrize("days", WORKED_TABLE)
def test_vendor_quote_fits_the_worked_table_of_ends(days: str) -> None:
    wanted = WORKED_TABLE[days]
    found = _planned(WORKED_STEPS, WORKED_SINCE, minute_walker.BERLIN_OFFICE, wanted[-1])
    assert len(found) == len(wanted)
    assert found[-1] == wanted[-1]
    assert all(abs(due - right) < timedelta(seconds=1) for due, right in zip(found, wanted, strict=True))


def test_nudge_that_would_lie_at_the_end_of_a_window_lies_at_the_start_of_the_next() -> None:
    """2/2 from Monday 16:00 local, the end on Thursday 10:00: 1080 of 1920 minutes, so 540 to the nudge."""
    found = _planned(
        ((2, "bd"), (2, "bd")),
        _utc("2025-03-03T15:00Z"),
        minute_walker.BERLIN_OFFICE,
        _utc("2025-03-06T09:00Z"),
    )
    assert found == (_utc("2025-03-05T08:00Z"), _utc("2025-03-06T09:00Z"))


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _office(zone: str, *holidays: date) -> Place:
    week = frozenset({1, 2, 3, 4, 5})
    return Place(zone=ZoneInfo(zone), workdays=week, holidays=frozenset(holidays), window=(time(9), time(17)))


EASTER = (date(2025, 4, 18), date(2025, 4, 21))


@pytest.mark.parametrize(
    ("sent_at", "gaps", "place", "dues"),
    [
        pytest.param(
            "2025-03-06T14:00Z", (2, 2, 2), _office("Europe/Berlin"),
            ("2025-03-10T14:00Z", "2025-03-12T14:00Z", "2025-03-14T14:00Z"),
            id="146-due-on-weekend",
        ),
        pytest.param(
            "2025-04-17T08:00Z", (2, 2, 2), _office("Europe/Berlin", *EASTER),
            ("2025-04-23T08:00Z", "2025-04-25T08:00Z", "2025-04-29T08:00Z"),
            id="148-public-holiday-skipped",
        ),
        pytest.param(
            "2025-03-27T09:00Z", (2, 2, 2), _office("Europe/Berlin"),
            ("2025-03-31T08:00Z", "2025-04-02T08:00Z", "2025-04-04T08:00Z"),
            id="150-dst-forward-between",
        ),
        pytest.param(
            "2025-03-07T07:00Z", (1, 2), _office("Asia/Tokyo"),
            ("2025-03-10T07:00Z", "2025-03-12T07:00Z"),
            id="152-recipient-far-timezone",
        ),
    ],
)  # fmt: skip
def test_given_cases_are_due_when_they_say(
    sent_at: str, gaps: tuple[int, ...], place: Place, dues: tuple[str, ...]
) -> None:
    wanted = tuple(_utc(due) for due in dues)
    steps: tuple[Step, ...] = tuple((gap, "bd") for gap in gaps)
    assert minute_walker.unbounded_plan(steps, _utc(sent_at), place) == wanted
    assert _planned(steps, _utc(sent_at), place, None) == wanted


def test_deadline_of_the_nonexistent_hour_case_shrinks_its_plan() -> None:
    """154-nonexistent-local-time: 2/2/2 from Monday 10:00 local, the end a week later at 18:00 (47/48)."""
    found = _planned(
        ((2, "bd"), (2, "bd"), (2, "bd")),
        _utc("2025-03-03T09:00Z"),
        _office("Europe/Berlin"),
        _utc("2025-03-10T17:00Z"),
    )
    assert found == (_utc("2025-03-05T08:40Z"), _utc("2025-03-07T08:20Z"), _utc("2025-03-10T17:00Z"))


@pytest.mark.parametrize(
    ("at", "count", "window", "due"),
    [
        # 154-nonexistent-local-time: 02:30 on 30 March 2025 does not exist in Berlin
        ("2025-03-29T01:30Z", 1, (time(0), time(23, 59)), "2025-03-30T01:00Z"),
        # 02:30 on 26 October 2025 comes twice: the first
        ("2025-10-25T00:30Z", 1, (time(0), time(23, 59)), "2025-10-26T00:30Z"),
        # sent in the second of the two: no days later is not an hour before
        ("2025-10-26T01:30Z", 0, (time(0), time(23, 59)), "2025-10-26T01:30Z"),
        # the gap swallows the whole window: tomorrow's
        ("2025-03-29T01:30Z", 1, (time(2), time(3)), "2025-03-31T00:00Z"),
    ],
)
def test_local_times_that_a_clock_change_leaves_out_or_repeats(
    at: str, count: int, window: tuple[time, time], due: str
) -> None:
    from answerback.waits.business_days import add_business_days

    place = Place(
        zone=ZoneInfo("Europe/Berlin"), workdays=frozenset(range(1, 8)), holidays=frozenset(), window=window
    )
    assert add_business_days(_utc(at), count, _calendar(place)) == _utc(due)


@pytest.mark.parametrize("check", [_check_next, lambda case: _check_working_time(case, 3 * 24 * 60)])
@pytest.mark.parametrize("zone", ZONES)
def test_hour_by_hour_around_every_clock_change_of_a_year(zone: str, check: Callable[[Case], None]) -> None:
    place = Place(
        zone=ZoneInfo(zone),
        workdays=frozenset(range(1, 8)),
        holidays=frozenset(),
        window=(time(1, 30), time(3, 30)),
    )
    for change in _clock_changes(zone)[:2]:
        for half_hour in range(-6, 7):
            check(Case(at=change + half_hour * timedelta(minutes=30), place=place))
