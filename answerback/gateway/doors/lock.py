"""Lets one server at a time run on a home, and tells whether one does: a lock on `<home>/server.lock`."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from answerback.errors import AlreadyServing, NoDatabase

FILE_NAME = "server.lock"
#: a probe holds the lock for an instant; a starting server tries again for half a second
TRIES, PAUSE = 10, 0.05


@contextmanager
def held(home: Path) -> Iterator[None]:
    """Hold the lock; the system frees it when the process ends, however that happens.

    Raises:
        NoDatabase: there is no such home. AlreadyServing: another process holds the lock.
    """
    if not home.is_dir():
        raise NoDatabase(path=home)
    file = os.open(home / FILE_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if not any(_taken(file, fcntl.LOCK_EX, pause=PAUSE) for _ in range(TRIES)):
            raise AlreadyServing(home=home)
        yield
    finally:
        os.close(file)


def is_held(home: Path) -> bool:
    """Tell whether a server runs on this home."""
    try:
        file = os.open(home / FILE_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        return not _taken(file, fcntl.LOCK_SH, pause=0)
    finally:
        os.close(file)


def _taken(file: int, kind: int, *, pause: float) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(pause)
        return False
    return True
