"""A place to knock at: a home with an agent, a relay that keeps what it gets, and a server process."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope, Session

from answerback.gateway import app
from answerback.gateway.doors import cli, local
from answerback.gateway.doors.line import Options
from answerback.gateway.settings import Settings
from answerback.gateway.verbs.admin import SCOPES
from answerback.model import Json

PATIENCE = 20.0


class Relay:
    """An SMTP server of another make that keeps every mail; it runs on a loop of its own."""

    def __init__(self) -> None:
        self._got: list[Message] = []
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(PATIENCE)
        self.port: int = self._server.sockets[0].getsockname()[1]

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(
            lambda: SMTP(self, hostname="relay.example", enable_SMTPUTF8=True, loop=self._loop),
            "127.0.0.1",
            0,
        )

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        assert isinstance(envelope.content, bytes)
        with self._changed:
            self._got.append(message_from_bytes(envelope.content))
            self._changed.notify_all()
        return "250 kept"

    def mails(self, subject: str) -> list[Message]:
        """Return what came with a subject."""
        with self._changed:
            return [mail for mail in self._got if mail["Subject"] == subject]

    def wait_for(self, subject: str, *, seconds: float) -> Message:
        """Return the first mail with a subject; fail when none has come in time."""
        with self._changed:
            came = self._changed.wait_for(lambda: any(m["Subject"] == subject for m in self._got), seconds)
        assert came, f"no mail {subject!r} within {seconds} s"
        return self.mails(subject)[0]

    def close(self) -> None:
        """Stop listening and end the thread."""

        async def stop() -> None:
            self._server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(PATIENCE)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()


@dataclass
class Place:
    """A home, and the server on it where one runs."""

    home: Path
    relay_port: int
    announced: dict[str, Any] = field(default_factory=dict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def settings(self) -> Settings:
        """The settings a process on this home has."""
        return Settings.model_validate(
            {
                "home": self.home,
                "smtp_in": {"port": 0, "hostname": "mx.shop.example"},
                "http": {"port": 0},
                "smtp_out": {"host": "127.0.0.1", "port": self.relay_port, "security": "none"},
            }
        )

    @property
    def url(self) -> str:
        """Where the server's HTTP is."""
        return str(self.announced["http_url"])

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a process on this home."""
        kept = {name: text for name, text in os.environ.items() if not name.startswith("ANSWERBACK_")}
        return kept | {"ANSWERBACK_HOME": str(self.home), "PYTHONSAFEPATH": "1", "NO_PROXY": "127.0.0.1"}

    def do(self, verb: str, *, inside: str = "live", **given: object) -> Json:
        """Carry a verb out on the database as the operator here."""
        options = Options(environment=inside)  # type: ignore[arg-type]
        with local.door(self.settings, options) as door:
            return door.call(verb, given)

    def key(self, *scopes: str, environment: str = "live", agent: str = "buyer") -> str:
        """Return a fresh key with the scopes, all an agent can have where none are given.

        One that decides reviews is an operator's: no agent has that scope.
        """
        wanted = scopes or tuple(scope for scope in SCOPES if not scope.startswith("reviews:"))
        made = self.do(
            "keys.create",
            inside=environment,
            name=self.fresh("key"),
            scopes=wanted,
            agent="" if any(scope.startswith("reviews:") for scope in wanted) else agent,
        )
        return str(made["key"])

    def fresh(self, what: str) -> str:
        """Return a name nobody has used here yet."""
        return f"{what}-{next(self._numbers)}"

    def counts(self) -> dict[str, int]:
        """Return how many rows each table has."""
        connection = sqlite3.connect(self.home / "answerback.db")
        try:
            names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
            return {
                name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for (name,) in names
            }
        finally:
            connection.close()


def furnish(home: Path, relay_port: int) -> Place:
    """Make a home with an agent that has an inbox in both environments."""
    place = Place(home, relay_port)
    app.initialise(place.settings)
    (home / "answerback.toml").write_text(
        f"""
        [smtp_in]
        port = 0
        hostname = "mx.shop.example"
        [http]
        port = 0
        [smtp_out]
        host = "127.0.0.1"
        port = {relay_port}
        security = "none"
        """
    )
    for environment in ("live", "test"):
        place.do("agents.add", inside=environment, name="buyer")
        place.do("inboxes.add", inside=environment, agent="buyer", address=f"desk-{environment}@shop.example")
    return place


def start(place: Place) -> subprocess.Popen[str]:
    """Start a server on the home and note what it announces."""
    with (place.home / "server.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "answerback", "serve", "--json"],
            env=place.environment,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        end(process)
        pytest.fail((place.home / "server.log").read_text())
    place.announced = json.loads(line)
    return process


def end(process: subprocess.Popen[str]) -> int:
    """Send SIGTERM and return the exit code."""
    process.send_signal(signal.SIGTERM)
    assert process.stdout is not None
    try:
        return process.wait(PATIENCE)
    finally:
        process.kill()
        process.stdout.close()


@pytest.fixture(scope="session")
def relay() -> Iterator[Relay]:
    relay = Relay()
    yield relay
    relay.close()


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory, relay: Relay) -> Iterator[Place]:
    """A place with a running server, shared by the tests: each uses names of its own."""
    place = furnish(tmp_path_factory.mktemp("served") / "home", relay.port)
    process = start(place)
    yield place
    assert end(process) == 0


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory, relay: Relay) -> Path:
    """A home as new, to be copied: that is faster than making one for every test."""
    return furnish(tmp_path_factory.mktemp("furnished") / "home", relay.port).home


@pytest.fixture
def quiet(tmp_path: Path, relay: Relay, furnished: Path) -> Place:
    """A place without a server."""
    return Place(Path(shutil.copytree(furnished, tmp_path / "home")), relay.port)


@pytest.fixture
def stopping(quiet: Place) -> Iterator[Callable[[], int]]:
    """Stop the server that was started on the quiet place, and return its exit code."""
    process = start(quiet)
    yield lambda: end(process)
    if process.poll() is None:
        end(process)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Carry a command out in this process, on a place's home, and return its code and what it printed."""

    def carry_out(place: Place, *words: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        with monkeypatch.context() as scope:
            scope.setenv("ANSWERBACK_HOME", str(place.home))
            for name, text in (env or {}).items():
                scope.setenv(name, text)
            capsys.readouterr()
            code = cli.run(words)
        out, err = capsys.readouterr()
        return code, out, err

    return carry_out
