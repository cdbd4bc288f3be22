"""Named points at which a test process may die, to prove that nothing is lost or sent twice."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping

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

    The process ends with exit code 137 through `os._exit`, as after `kill -9`: no handler, no flush.
    """
    wanted = environment.get("ANSWERBACK_CRASH_AT", "")
    if not wanted:
        return survive
    point, _, count = wanted.partition(":")
    left = [int(count or 1)]

    def crash(passing: str) -> None:
        if passing != point:
            return
        left[0] -= 1
        if left[0] == 0:
            os._exit(137)

    return crash
