"""Lets waiting tasks know that there may be something new for them to look at."""

from __future__ import annotations

import asyncio
import contextlib

PARTS = ("received", "outbox", "timers", "mailbox")


class Changes:
    """Counts changes per part; a waiter passes the count it has seen and wakes when it is older.

    `wake` may be called from any thread.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._counts = dict.fromkeys(PARTS, 0)
        self._events = {part: asyncio.Event() for part in PARTS}

    def wake(self, part: str) -> None:
        """Say that a part may have changed."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._bump, part)

    def wake_all(self) -> None:
        """Say that anything may have changed."""
        for part in PARTS:
            self.wake(part)

    def _bump(self, part: str) -> None:
        self._counts[part] += 1
        self._events[part].set()
        self._events[part] = asyncio.Event()

    def seen(self, part: str) -> int:
        """Return the count of a part now; take it before looking, so that nothing is missed."""
        return self._counts[part]

    async def after(self, part: str, seen: int, *, seconds: float) -> None:
        """Wait until a part changed since `seen`, at most `seconds`."""
        if self._counts[part] != seen:
            return
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._events[part].wait(), seconds)
