"""The laws every history of a wait obeys, checked on the history alone, without the machine that made it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

RUNNING = frozenset({"waiting", "nudged"})
ENDED = frozenset({"replied", "abandoned", "cancelled"})
#: the only ways out of an ended state: (before, event, after)
REOPENINGS = frozenset(
    {
        ("abandoned", "Replied", "replied"),
        ("replied", "Misread", "waiting"),
        ("replied", "Declined", "abandoned"),
    }
)
#: a nudge this late still goes out as planned; one later is fitted to the window again
SLACK = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One line of a wait's log: what happened when, what it changed, which nudges left because of it."""

    event: str
    at: datetime
    #: "" for the step that starts the wait
    before: str
    after: str
    nudges: tuple[int, ...] = ()
    #: the wait's due time after the step
    due_at: datetime | None = None
    #: a person set the time this step was due at: it is obeyed literally, whatever the window
    person_set: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the wait was started with."""

    expires_at: datetime | None = None
    #: whether the recipient works at an instant; None: the schedule's gaps are plain durations
    works_at: Callable[[datetime], bool] | None = None


def violations(history: Sequence[Step], terms: Terms) -> list[str]:
    """Return the broken laws, each as its name and the index of the step that breaks it, in the laws' order."""
    laws = (
        ("time runs forward", _backwards),
        ("states connect", _disconnected),
        ("nudges are 1, 2, … at most once each", _misnumbered),
        ("one nudge at a time, by a wait that runs", _unfounded),
        ("no nudge after a reply", _after_reply),
        ("ends once", _ends_again),
        ("declined is final", _after_declined),
        ("running has a due time, stopped has none", _due_mismatch),
    )
    found = [f"{name} (step {index})" for name, law in laws for index in law(history)]
    found += [f"no nudge after expires_at (step {index})" for index in _after_expiry(history, terms)]
    found += [f"no reopening after expires_at (step {index})" for index in _reopened_late(history, terms)]
    found += [f"no nudge outside the window (step {index})" for index in _outside(history, terms)]
    return found


def _backwards(history: Sequence[Step]) -> list[int]:
    return [index for index, (a, b) in enumerate(pairwise(history), 1) if b.at < a.at]


def _disconnected(history: Sequence[Step]) -> list[int]:
    first = [0] if history and history[0].before else []
    return first + [index for index, (a, b) in enumerate(pairwise(history), 1) if b.before != a.after]


def _misnumbered(history: Sequence[Step]) -> list[int]:
    broken: list[int] = []
    made = 0
    for index, step in enumerate(history):
        for number in step.nudges:
            if number != made + 1:
                broken.append(index)
            made = max(made, number)
    return broken


def _unfounded(history: Sequence[Step]) -> list[int]:
    """Nudges of a step that sends several, or that does not leave the wait nudged, or starts where it ended."""
    return [
        index
        for index, step in enumerate(history)
        if step.nudges and (len(step.nudges) > 1 or step.after != "nudged" or step.before in ENDED | {""})
    ]


def _after_reply(history: Sequence[Step]) -> list[int]:
    broken: list[int] = []
    answered = False
    for index, step in enumerate(history):
        if step.event == "Misread" and step.after == "waiting":
            answered = False
        if step.after == "replied":
            answered = True
        if answered and step.nudges:
            broken.append(index)
    return broken


def _ends_again(history: Sequence[Step]) -> list[int]:
    return [
        index
        for index, step in enumerate(history)
        if step.before in ENDED
        and step.after != step.before
        and (step.before, step.event, step.after) not in REOPENINGS
    ]


def _after_declined(history: Sequence[Step]) -> list[int]:
    broken: list[int] = []
    final = False
    for index, step in enumerate(history):
        if final and step.after != step.before:
            broken.append(index)
        if step.event == "Declined" and step.after == "abandoned" and step.before != "abandoned":
            final = True
    return broken


def _due_mismatch(history: Sequence[Step]) -> list[int]:
    return [
        index for index, step in enumerate(history) if (step.after in RUNNING) != (step.due_at is not None)
    ]


def _after_expiry(history: Sequence[Step], terms: Terms) -> list[int]:
    if terms.expires_at is None:
        return []
    return [index for index, step in enumerate(history) if step.nudges and step.at > terms.expires_at]


def _reopened_late(history: Sequence[Step], terms: Terms) -> list[int]:
    """An abandoned wait becomes replied only by what came in time."""
    if terms.expires_at is None:
        return []
    return [
        index
        for index, step in enumerate(history)
        if (step.before, step.after) == ("abandoned", "replied") and step.at > terms.expires_at
    ]


def _outside(history: Sequence[Step], terms: Terms) -> list[int]:
    works_at = terms.works_at
    if works_at is None:
        return []
    return [
        index
        for index, step in enumerate(history)
        if step.nudges and not step.person_set and not works_at(step.at) and not works_at(step.at - SLACK)
    ]
