"""Named points at which a test process may die, to prove that nothing is lost or sent twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

POINTS = (
    "received",
    "stored",
    "matched",
    "queued",
    "before_send",
    "during_send",
    "after_send",
    "before_ack",
)

Crash = Callable[[str], None]


def survive(_point: str) -> None:
    """Do nothing: what a process that is not under test does at every point."""


def from_environment(environment: Mapping[str, str]) -> Crash:
    """Return the crash hook `ANSWERBACK_CRASH_AT=point[:n]` asks for: die at the n-th passing (default 1).

    With `@FILE` the file says `point[:n]`, read at every passing: a running process is armed by writing it,
    and passings count from then on. The process ends with exit code 137 through `os._exit`, as after
    `kill -9`: no handler, no flush.
    """
    wanted = environment.get("ANSWERBACK_CRASH_AT", "")
    if not wanted:
        return survive
    passed: dict[str, int] = {}

    def crash(passing: str) -> None:
        armed = _armed(wanted)
        point, _, count = armed.partition(":")
        if passing != point:
            return
        passed[armed] = passed.get(armed, 0) + 1
        if passed[armed] == int(count or 1):
            os._exit(137)

    return crash


def _armed(wanted: str) -> str:
    if not wanted.startswith("@"):
        return wanted
    file = Path(wanted[1:])
    return file.read_text("utf-8") if file.exists() else ""
