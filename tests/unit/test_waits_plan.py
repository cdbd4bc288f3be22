"""The plan of due times: natural, squeezed by an end, or starting at a given instant."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.model import Schedule
from answerback.waits.business_days import Calendar
from answerback.waits.plan import plan, plan_from, refit
from answerback.waits.schedule import parse_gap
from tests.oracle.minute_walker import WORKED_SINCE, WORKED_TABLE

OFFICE = Calendar(zone=ZoneInfo("Europe/Berlin"))


def z(text: str) -> datetime:
    """The instant of a UTC time."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def schedule(*gaps: str) -> Schedule:
    """A schedule with these gaps."""
    return Schedule(name="test", version=1, gaps=tuple(map(parse_gap, gaps)))


QUOTE = schedule("2bd", "2bd", "3bd")


@pytest.mark.parametrize("days", WORKED_TABLE)
def test_a_plan_shrinks_as_the_worked_table_says(days: str) -> None:
    expected = WORKED_TABLE[days]
    assert plan(QUOTE, nudges_made=0, since=WORKED_SINCE, calendar=OFFICE, end=expected[-1]) == expected


@pytest.mark.parametrize("end", [None, "2025-03-12T09:00", "2025-04-01T09:00"])
def test_an_end_at_or_after_the_abandonment_changes_nothing(end: str | None) -> None:
    found = plan(QUOTE, nudges_made=0, since=WORKED_SINCE, calendar=OFFICE, end=z(end) if end else None)
    assert found == WORKED_TABLE["7"]


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (1, ("2025-03-05T09:00", "2025-03-10T09:00")),
        (2, ("2025-03-06T09:00",)),
        (3, ("2025-03-06T09:00",)),  # a shorter version of the schedule: its last gap is left
    ],
)
def test_nudges_made_are_not_planned_again(made: int, expected: tuple[str, ...]) -> None:
    found = plan(QUOTE, nudges_made=made, since=WORKED_SINCE, calendar=OFFICE, end=None)
    assert found == tuple(map(z, expected))


def test_plain_durations_shrink_in_elapsed_time_and_ignore_windows() -> None:
    night = z("2025-03-08T22:00")
    found = plan(schedule("4h", "4h"), nudges_made=0, since=night, calendar=OFFICE, end=z("2025-03-09T04:00"))
    assert found == (z("2025-03-09T01:00"), z("2025-03-09T04:00"))


def test_a_mixed_plan_shrinks_in_working_time() -> None:
    # 1h + 1bd from Monday 10:00 is 1 h + 8 h of work; two thirds of that are 6 h, the end is at 16:00.
    found = plan(
        schedule("1h", "1bd"), nudges_made=0, since=WORKED_SINCE, calendar=OFFICE, end=z("2025-03-03T15:00")
    )
    assert found == (z("2025-03-03T09:40"), z("2025-03-03T15:00"))


def test_an_end_that_is_past_leaves_only_itself() -> None:
    end = WORKED_SINCE - timedelta(hours=1)
    assert plan(QUOTE, nudges_made=0, since=WORKED_SINCE, calendar=OFFICE, end=end) == (end,)


@pytest.mark.parametrize(
    ("made", "end", "expected"),
    [
        (0, None, ("2025-03-20T09:00", "2025-03-24T09:00", "2025-03-27T09:00")),
        (2, None, ("2025-03-20T09:00",)),
        (0, "2025-03-21T09:00", ("2025-03-20T09:00", "2025-03-21T09:00")),
        (0, "2025-03-19T09:00", ("2025-03-19T09:00",)),
    ],
)
def test_a_plan_from_a_given_instant_keeps_it_and_counts_on(
    made: int, end: str | None, expected: tuple[str, ...]
) -> None:
    found = plan_from(
        z("2025-03-20T09:00"), QUOTE, nudges_made=made, calendar=OFFICE, end=z(end) if end else None
    )
    assert found == tuple(map(z, expected))


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2025-03-05T09:05", "2025-03-05T09:00"),
        ("2025-03-05T09:06", "2025-03-05T09:06"),
        ("2025-03-05T20:00", "2025-03-06T08:00"),
    ],
)
def test_a_due_time_missed_by_more_than_five_minutes_is_fitted_into_the_window(
    now: str, expected: str
) -> None:
    assert refit(z("2025-03-05T09:00"), z(now), OFFICE) == z(expected)


@given(
    gaps=st.lists(st.sampled_from(["1bd", "2bd", "3bd", "3s", "5min", "4h", "30h"]), min_size=1, max_size=5),
    made=st.integers(0, 5),
    minutes=st.integers(0, 30 * 1440),
    room=st.none() | st.integers(0, 30 * 86400),
)
def test_a_plan_never_goes_back_nor_leaves_its_bounds(
    gaps: list[str], made: int, minutes: int, room: int | None
) -> None:
    since = z("2025-03-10T00:00") + timedelta(minutes=minutes)
    end = None if room is None else since + timedelta(seconds=room)
    found = plan(schedule(*gaps), nudges_made=made, since=since, calendar=OFFICE, end=end)
    assert list(found) == sorted(found)
    assert found[0] >= since
    assert end is None or found[-1] <= end
    assert 1 <= len(found) <= max(len(gaps) - made, 1)
