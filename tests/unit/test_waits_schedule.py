"""Gaps, deadlines and policies are read strictly and written back the same."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.errors import BadRequest, BadSchedule, DeadlineTooFar
from answerback.model import Gap, Json, Schedule
from answerback.waits.business_days import Calendar
from answerback.waits.schedule import BUILT_IN, deadline, from_policy, parse_gap, spell_gap, to_policy

OFFICE = Calendar(zone=ZoneInfo("Europe/Berlin"))
NOW = datetime(2025, 3, 6, 14, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2bd", Gap(amount=2, unit="bd")),
        ("4h", Gap(amount=14400, unit="s")),
        ("5min", Gap(amount=300, unit="s")),
        (" 3s ", Gap(amount=3, unit="s")),
        ("60bd", Gap(amount=60, unit="bd")),
    ],
)
def test_a_gap_is_business_days_or_plain_time(text: str, expected: Gap) -> None:
    assert parse_gap(text) == expected


@pytest.mark.parametrize(
    "text", ["", "1d", "2 bd", "0bd", "0s", "-1h", "61bd", "1441h", "999999999h", "1.5h", "bd", "2BD", "٣s"]
)
def test_what_is_no_gap_is_refused(text: str) -> None:
    with pytest.raises(BadRequest, match="write it as 2bd") as refused:
        parse_gap(text)
    assert refused.value.code == "bad_request"


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("2026-12-05", "'2026-12-05' names no zone; write it as 2026-12-05T12:00:00Z or with +01:00"),
        (
            "2026-12-05T09:00",
            "'2026-12-05T09:00' names no zone; write it as 2026-12-05T09:00Z or with +01:00",
        ),
        ("0bd", "'0bd' is not ahead; write up to 30 days as 10bd or 36h"),
    ],
)
def test_a_deadline_that_is_none_says_how_to_write_it(text: str, suggestion: str) -> None:
    with pytest.raises(BadRequest) as refused:
        deadline(text, NOW, OFFICE)
    assert refused.value.details == {"field": "deadline", "problem": suggestion}


@pytest.mark.parametrize("text", ["61bd", "90bd", "1441h", "999999999h"])
def test_a_deadline_no_gap_reaches_is_too_far(text: str) -> None:
    with pytest.raises(DeadlineTooFar) as refused:
        deadline(text, NOW, OFFICE)
    assert refused.value.details == {"deadline": text}


@given(
    st.builds(Gap, amount=st.integers(1, 60), unit=st.just("bd"))
    | st.builds(Gap, amount=st.integers(1, 60 * 86400), unit=st.just("s"))
)
def test_a_spelled_gap_reads_back_the_same(gap: Gap) -> None:
    assert parse_gap(spell_gap(gap)) == gap


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2bd", "2025-03-10T14:00:00+00:00"),
        ("36h", "2025-03-08T02:00:00+00:00"),
        ("2025-03-10T12:00:00+01:00", "2025-03-10T11:00:00+00:00"),
        ("2025-03-10T12:00Z", "2025-03-10T12:00:00+00:00"),
    ],
)
def test_a_deadline_is_a_gap_or_an_instant(text: str, expected: str) -> None:
    found = deadline(text, NOW, OFFICE)
    assert (found.isoformat(), found.tzinfo) == (expected, UTC)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2025-03-10T12:00", "names no zone"),
        ("2025-03-10", "names no zone"),
        ("next week", "write 10bd, 36h or an ISO time"),
        ("", "write 10bd, 36h or an ISO time"),
        ("9999-12-31T23:59:59-10:00", "write 10bd, 36h or an ISO time"),
        ("0h", "is not ahead"),
    ],
)
def test_what_is_no_deadline_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        deadline(text, NOW, OFFICE)


def test_the_built_in_schedules_are_those_of_the_documentation() -> None:
    assert {one.name: ([spell_gap(gap) for gap in one.gaps], one.sequence) for one in BUILT_IN} == {
        "verification-code": (["5min"], False),
        "internal": (["1bd", "1bd"], False),
        "vendor-quote": (["2bd", "2bd", "3bd"], False),
        "cold-outreach": (["5bd", "5bd"], True),
    }


@pytest.mark.parametrize("schedule", BUILT_IN, ids=lambda one: str(one.name))
def test_a_policy_reads_back_as_the_same_schedule(schedule: Schedule) -> None:
    assert from_policy(schedule.name, 1, to_policy(schedule)) == schedule


def test_a_policy_needs_only_its_gaps() -> None:
    assert from_policy("short", 3, {"gaps": ["3s", "3s"]}) == Schedule(
        name="short", version=3, gaps=(Gap(amount=3, unit="s"), Gap(amount=3, unit="s"))
    )


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        ({}, "give 1 to 10 gaps"),
        ({"gaps": []}, "give 1 to 10 gaps"),
        ({"gaps": "2bd"}, "give 1 to 10 gaps"),
        ({"gaps": ["1bd"] * 11}, "give 1 to 10 gaps"),
        ({"gaps": ["1d"]}, "'1d' is none"),
        ({"gaps": [3]}, "'3' is none"),
        ({"gaps": ["0bd"]}, "not between"),
        ({"gaps": ["1bd"], "on_abandon": "shout"}, "on_abandon is one of fail_step, tell_owner"),
        ({"gaps": ["1bd"], "sequence": "yes"}, "sequence is true or false"),
        ({"gaps": ["1bd"] * 3, "sequence": True}, "a sequence makes at most one nudge"),
        ({"gaps": ["1bd"], "away_default": 0}, "away_default is a number of business days"),
        ({"gaps": ["1bd"], "away_default": True}, "away_default is a number of business days"),
        ({"gaps": ["1bd"], "away_limit": "20"}, "away_limit is a number of business days"),
        ({"gaps": ["1bd"], "nudge_text": 5}, "nudge_text is a text"),
        ({"gaps": ["1bd"], "nudge_text": "$secret"}, "is unknown; known are"),
    ],
)
def test_a_policy_that_can_not_be_followed_is_refused(policy: Json, problem: str) -> None:
    with pytest.raises(BadSchedule, match=problem) as refused:
        from_policy("mine", 1, policy)
    assert refused.value.message.startswith("The schedule mine can not be used: ")
