"""The two clocks the core reads: the wall's and one that never jumps."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for decisions, monotonic time to notice that the wall was moved."""

    def now(self) -> datetime:
        """Return the wall time, aware, UTC."""

    def monotonic(self) -> float:
        """Return seconds that only ever grow, from an arbitrary start."""


class SystemClock:
    """The clock of this machine."""

    def now(self) -> datetime:
        """Return the wall time, aware, UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return the operating system's monotonic seconds."""
        return time.monotonic()
