"""The processes of the demo: each is started on a leash, heard line by line, and ended whatever happens."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from answerback.errors import DemoFailed
from answerback.model import Json, value

if TYPE_CHECKING:
    from typing import IO

HOST = "127.0.0.1"
#: seconds the processes have to end in good order, all of them together
PATIENCE = 5.0
#: octets at the end of the log that say why a process has ended
LAST_WORDS = 600


@value
class Note:
    """One thing a process said."""

    who: str
    said: Json


Notes = SimpleQueue[Note]


class Child:
    """One process; closing its standard input ends it, so it also ends when this process is killed."""

    def __init__(self, who: str, words: tuple[str, ...], notes: Notes, log: IO[bytes]) -> None:
        self.who = who
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
            # Ctrl-C reaches this process alone, which then ends the others in order.
            start_new_session=True,
        )
        self._listener = threading.Thread(target=self._listen, args=(notes,), daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def has_ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def _listen(self, notes: Notes) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):
                notes.put(Note(who=self.who, said=json.loads(line)))
        notes.put(Note(who=self.who, said={"event": "ended"}))

    def tell(self, order: Mapping[str, object]) -> None:
        """Give it one line of JSON."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # it has ended, which its last note says
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()

    def let_go(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()

    def end(self, until: float) -> None:
        """Wait until it has ended, and kill it once the monotonic clock says `until`."""
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join(1)
        if self._process.stdout and not self._listener.is_alive():
            self._process.stdout.close()


class Stage:
    """All processes of one demo and the one queue of what they say."""

    def __init__(self, log: IO[bytes]) -> None:
        self.notes: Notes = SimpleQueue()
        self.children: dict[str, Child] = {}
        self._log = log

    def start(self, who: str, module: str, *words: str) -> None:
        """Start a module as a process."""
        self.children[who] = Child(who, (module, *words), self.notes, self._log)

    def next(self, until: float) -> Note | None:
        """Return the next note, or None once the monotonic clock says `until`.

        Raises:
            DemoFailed: a process has ended.
        """
        try:
            note = self.notes.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return None
        if note.said.get("event") == "ended":
            raise DemoFailed(problem=self._why_ended(note))
        return note

    def _why_ended(self, note: Note) -> str:
        who = next((child.who for child in self.children.values() if child.has_ended), note.who)
        if who not in self.children:
            return str(note.said["problem"])
        text = Path(self._log.name).read_bytes()[-LAST_WORDS:].decode("utf-8", "replace").strip()
        return f"the process of {who} has ended. The log ends with: {text or 'nothing'}"

    def first(self, name: str, wanted: str, whom: set[str], until: float) -> dict[str, Any]:
        """Return of each of several processes its first note where the field `name` says `wanted`.

        Raises:
            DemoFailed: one has not said it in time, or has ended.
        """
        found: dict[str, Any] = {}
        while whom - found.keys():
            note = self.next(until)
            if note is None:
                missing = ", ".join(sorted(whom - found.keys()))
                raise DemoFailed(problem=f"{missing} did not start in time; is this machine very busy?")
            if note.said.get(name) == wanted:
                found.setdefault(note.who, note.said)
        return found

    def end(self) -> None:
        """End every process."""
        until = time.monotonic() + PATIENCE
        for child in self.children.values():
            child.let_go()
        for child in self.children.values():
            child.end(until)


@contextlib.contextmanager
def stage(home: Path) -> Iterator[Stage]:
    """Give an empty stage; all that was started on it is ended with the block."""
    with (home / "demo.log").open("ab") as log:
        found = Stage(log)
        try:
            yield found
        finally:
            found.end()


def isolate(home: Path) -> None:
    """Let this process and its children see no other settings than the demo's own."""
    for name in [
        name for name in os.environ if name.startswith("ANSWERBACK_") and name != "ANSWERBACK_DEBUG"
    ]:
        del os.environ[name]
    os.environ |= {
        "ANSWERBACK_HOME": str(home),
        "ANSWERBACK_SMTP_IN__HOST": HOST,
        "ANSWERBACK_SMTP_IN__PORT": "0",
        "ANSWERBACK_SMTP_IN__HOSTNAME": "mx.gateway.example",
        "ANSWERBACK_HTTP__HOST": HOST,
        "ANSWERBACK_HTTP__PORT": "0",
        # A proxy of the surroundings has no business between two processes of this machine.
        "NO_PROXY": HOST,
        "no_proxy": HOST,
    }


def set_relay(port: int) -> None:
    """Let children started from now on hand their mail to the relay on this port."""
    os.environ |= {
        "ANSWERBACK_SMTP_OUT__HOST": HOST,
        "ANSWERBACK_SMTP_OUT__PORT": str(port),
        "ANSWERBACK_SMTP_OUT__SECURITY": "none",
    }
