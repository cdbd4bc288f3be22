"""A lock that is given in the order it was asked for."""

from __future__ import annotations

import threading
from collections import deque
from types import TracebackType


class Turns:
    """Writers of one SQLite file wait here: a plain lock would let the lucky ones pass first."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._waiting: deque[threading.Lock] = deque()
        self._taken = False

    def waiting(self) -> int:
        """Return how many wait for their turn."""
        with self._guard:
            return len(self._waiting)

    def __enter__(self) -> None:
        with self._guard:
            if not self._taken:
                self._taken = True
                return
            turn = threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        turn.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._guard:
            if self._waiting:
                self._waiting.popleft().release()
            else:
                self._taken = False
