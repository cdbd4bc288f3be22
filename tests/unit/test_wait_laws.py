"""The laws of a wait's history find every broken history shown here, and only those."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from tests.oracle.wait_laws import Step, Terms, violations

START = datetime(2025, 3, 3, 9, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
DUE = START + 100 * HOUR
FREE = Terms()


def _step(hour: float, event: str, before: str, after: str, nudges: tuple[int, ...] = ()) -> Step:
    due = DUE if after in {"waiting", "nudged"} else None
    return Step(event=event, at=START + hour * HOUR, before=before, after=after, nudges=nudges, due_at=due)


SENT = _step(0, "Sent", "", "waiting")
FIRST = _step(1, "Due", "waiting", "nudged", (1,))
SECOND = _step(2, "Due", "nudged", "nudged", (2,))
GIVEN_UP = _step(3, "Due", "nudged", "abandoned")
ANSWER = _step(3, "Replied", "nudged", "replied")
LATER_ANSWER = _step(4, "Replied", "abandoned", "replied")
MISREAD = _step(4, "Misread", "replied", "waiting")
DECLINED = _step(5, "Declined", "replied", "abandoned")


@pytest.mark.parametrize(
    "history",
    [
        [],
        [SENT, FIRST, SECOND, GIVEN_UP],
        [SENT, FIRST, SECOND, GIVEN_UP, LATER_ANSWER, DECLINED],
        [SENT, FIRST, ANSWER, MISREAD, _step(5, "Due", "waiting", "nudged", (2,)), _step(6, "Replied", "nudged", "replied")],
        [SENT, _step(1, "NudgeHeld", "waiting", "paused"), _step(2, "NudgeReleased", "paused", "nudged", (1,))],
        [SENT, FIRST, ANSWER, _step(4, "Undeliverable", "replied", "replied")],
        [SENT, FIRST, _step(2, "Cancelled", "nudged", "cancelled"), _step(3, "Undeliverable", "cancelled", "cancelled")],
    ],
)  # fmt: skip
def test_right_histories_break_no_law(history: list[Step]) -> None:
    assert violations(history, FREE) == []


@pytest.mark.parametrize(
    ("history", "broken"),
    [
        ([SENT, _step(1, "Due", "waiting", "nudged", (2,))], ["nudges are 1, 2, … at most once each (step 1)"]),
        ([SENT, FIRST, _step(2, "Due", "nudged", "nudged", (1,))], ["nudges are 1, 2, … at most once each (step 2)"]),
        ([SENT, FIRST, ANSWER, MISREAD, _step(5, "Due", "waiting", "nudged", (1,))], ["nudges are 1, 2, … at most once each (step 4)"]),
        ([SENT, _step(1, "Due", "waiting", "nudged", (1, 2))], ["one nudge at a time, by a wait that runs (step 1)"]),
        ([SENT, _step(1, "Due", "waiting", "paused", (1,))], ["one nudge at a time, by a wait that runs (step 1)"]),
        (
            [SENT, FIRST, ANSWER, _step(4, "Due", "replied", "replied", (2,))],
            ["one nudge at a time, by a wait that runs (step 3)", "no nudge after a reply (step 3)"],
        ),
        (
            [SENT, FIRST, ANSWER, _step(4, "Resumed", "replied", "waiting"), _step(5, "Due", "waiting", "nudged", (2,))],
            ["no nudge after a reply (step 4)", "ends once (step 3)"],
        ),
        ([SENT, FIRST, ANSWER, _step(4, "WaitpointExpired", "replied", "abandoned")], ["ends once (step 3)"]),
        ([SENT, FIRST, GIVEN_UP, _step(4, "Cancelled", "abandoned", "cancelled")], ["ends once (step 3)"]),
        (
            [SENT, FIRST, ANSWER, DECLINED, _step(6, "Replied", "abandoned", "replied")],
            ["declined is final (step 4)"],
        ),
        ([SENT, replace(FIRST, at=START - HOUR)], ["time runs forward (step 1)"]),
        ([SENT, SECOND, GIVEN_UP], ["states connect (step 1)", "nudges are 1, 2, … at most once each (step 1)"]),
        ([SENT, replace(FIRST, due_at=None)], ["running has a due time, stopped has none (step 1)"]),
        ([SENT, FIRST, replace(ANSWER, due_at=DUE)], ["running has a due time, stopped has none (step 2)"]),
    ],
)  # fmt: skip
def test_each_broken_history_is_named(history: list[Step], broken: list[str]) -> None:
    assert violations(history, FREE) == broken


def test_nothing_is_nudged_or_reopened_after_expiry() -> None:
    terms = Terms(expires_at=START + 2 * HOUR)
    history = [SENT, FIRST, replace(SECOND, at=START + 2.5 * HOUR), GIVEN_UP, LATER_ANSWER]
    assert violations(history, terms) == [
        "no nudge after expires_at (step 2)",
        "no reopening after expires_at (step 4)",
    ]
    assert violations([SENT, FIRST, SECOND], terms) == []


def test_nudge_outside_the_window_needs_a_person_or_plain_gaps() -> None:
    office = Terms(works_at=lambda at: at < START + HOUR)
    late = replace(FIRST, at=START + 1.5 * HOUR)
    assert violations([SENT, late], office) == ["no nudge outside the window (step 1)"]
    assert violations([SENT, replace(late, person_set=True)], office) == []
    assert violations([SENT, late], FREE) == []
    assert violations([SENT, replace(FIRST, at=START + HOUR + timedelta(minutes=4))], office) == []
