"""A place to crash at: a home, a receiving server and a gateway, the last two as processes of their own."""

from __future__ import annotations

import json
import os
import smtplib
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from answerback.client import Client
from answerback.errors import Unreachable
from answerback.gateway import app
from answerback.gateway.doors import local
from answerback.gateway.doors.line import Options
from answerback.gateway.settings import Settings
from answerback.gateway.verbs.admin import SCOPES
from answerback.model import Json

#: seconds anything may take that has to happen
PATIENCE = 60.0
KILLED = 137
T = TypeVar("T")
OUTGOING = ("queued", "handing_over", "deferred")


def until(look: Callable[[], T], what: str, seconds: float = PATIENCE) -> T:
    """Return what `look` returns once that is true; fail when it has not come in time."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, f"not within {seconds} s: {what}"
        time.sleep(0.02)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A mail the receiving server took, as its log says."""

    rfc_id: str
    recipients: tuple[str, ...]
    reply_to: str
    in_reply_to: str
    subject: str
    sha256: str


@dataclass(slots=True)
class Place:
    """One home with its processes."""

    home: Path
    #: bytecode is kept here where it may not be kept beside the source: a start then takes a third of the time
    bytecode: Path
    #: keys of the agent and of the person who decides
    key: str
    person: str
    principal: str
    receiver: subprocess.Popen[str] | None = None
    gateway: subprocess.Popen[str] | None = None
    ports: dict[str, Any] = field(default_factory=dict)
    #: sha256 of the octets our 250 was given for
    accepted: set[str] = field(default_factory=set)
    kills: int = 0
    #: seconds a hand-over stays with a process that has died
    lease: int = 1
    #: what was read of the receiving server's log, and up to which octet
    taken: list[Taken] = field(default_factory=list)
    read_to: int = 0
    reading: threading.Lock = field(default_factory=threading.Lock)
    #: what belongs to one thread
    mine: threading.local = field(default_factory=threading.local)

    @property
    def armed(self) -> Path:
        """The file a running gateway is armed by."""
        return self.home / "crash-at"

    def start_receiver(self) -> None:
        """Start the receiving server; it ends with this process."""
        script = Path(__file__).with_name("receiver.py")
        self.receiver = subprocess.Popen(
            [sys.executable, "-P", str(script), str(self.home / "receiver.log")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.receiver.stdout is not None
        self.ports["relay"] = json.loads(self.receiver.stdout.readline())["smtp_port"]

    def start(self, crash_at: str = "", *, announced: bool = True) -> None:
        """Start the gateway as it is used for real; with `announced`, wait until it says where it listens."""
        with (self.home / "gateway.log").open("a") as log:
            self.gateway = subprocess.Popen(
                [sys.executable, "-P", "-m", "answerback", "serve", "--json"],
                env=self._environment(crash_at),
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        if announced:
            assert self.gateway.stdout is not None
            line = self.gateway.stdout.readline()
            assert line, (self.home / "gateway.log").read_text()[-2000:]
            self.ports |= json.loads(line)

    def _environment(self, crash_at: str) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if not name.startswith("ANSWERBACK_")}
        if sys.dont_write_bytecode:
            kept.pop("PYTHONDONTWRITEBYTECODE", None)
            kept["PYTHONPYCACHEPREFIX"] = str(self.bytecode)
        return kept | {
            "ANSWERBACK_HOME": str(self.home),
            "ANSWERBACK_SMTP_IN__PORT": str(self.ports.get("smtp_port", 0)),
            "ANSWERBACK_SMTP_IN__HOSTNAME": "mx.shop.example",
            "ANSWERBACK_HTTP__PORT": str(self.ports.get("http_port", 0)),
            "ANSWERBACK_SMTP_OUT__HOST": "127.0.0.1",
            "ANSWERBACK_SMTP_OUT__PORT": str(self.ports["relay"]),
            "ANSWERBACK_SMTP_OUT__SECURITY": "none",
            "ANSWERBACK_SMTP_OUT__LEASE": str(self.lease),
            "ANSWERBACK_CRASH_AT": crash_at,
            "NO_PROXY": "127.0.0.1",
        }

    def await_death(self) -> int:
        """Return the exit code of the gateway once it has ended, and forget it."""
        assert self.gateway is not None
        code = self.gateway.wait(PATIENCE)
        self._forget()
        self.kills += 1
        return code

    def kill(self) -> None:
        """End the gateway by SIGKILL."""
        assert self.gateway is not None
        self.gateway.kill()
        self.gateway.wait(PATIENCE)
        self._forget()
        self.kills += 1

    def stop(self) -> int:
        """End the gateway by SIGTERM and return its exit code."""
        assert self.gateway is not None
        self.gateway.terminate()
        try:
            return self.gateway.wait(PATIENCE)
        finally:
            self.gateway.kill()
            self._forget()

    def _forget(self) -> None:
        assert self.gateway is not None
        if self.gateway.stdout:
            self.gateway.stdout.close()
        self.gateway = None

    def close(self) -> None:
        """End whatever still runs."""
        for process in (self.gateway, self.receiver):
            if process is not None:
                process.kill()
                process.wait(PATIENCE)
                for pipe in (process.stdin, process.stdout):
                    if pipe:
                        pipe.close()

    def rows(self, statement: str, *values: object) -> list[Any]:
        """Return what a statement reads from the database file."""
        url = f"file:{self.home / 'answerback.db'}?mode=ro"
        with closing(sqlite3.connect(url, uri=True, timeout=20)) as db:
            db.row_factory = sqlite3.Row
            return db.execute(statement, values).fetchall()

    def count(self, statement: str, *values: object) -> int:
        """Return the number a statement reads."""
        return int(self.rows(statement, *values)[0][0])

    def log(self) -> list[Taken]:
        """Return every mail the receiving server took, in order; each line is read once."""
        with self.reading, (self.home / "receiver.log").open("rb") as file:
            file.seek(self.read_to)
            whole = file.read().rpartition(b"\n")[0]
            if whole:
                self.taken += [_taken(json.loads(line)) for line in whole.split(b"\n")]
                self.read_to += len(whole) + 1
            return list(self.taken)

    def taken_by(self, recipient: str) -> list[Taken]:
        """Return what the receiving server took for an address."""
        return [mail for mail in self.log() if recipient in mail.recipients]

    def call(self, verb: str, *, once: str = "", **given: Any) -> dict[str, Any]:
        """Carry a verb out over HTTP as the agent; each thread keeps its connection."""
        return self._client(self.key).call(verb, idempotency_key=once, **given)

    def decide(self, review_id: str, choice: str) -> None:
        """Decide a review as a person does: an agent's key may not."""
        self._client(self.person).call("reviews.decide", id=review_id, choice=choice)

    def _client(self, key: str) -> Client:
        kept: dict[str, Client] = self.mine.__dict__
        if key not in kept:
            kept[key] = Client(str(self.ports["http_url"]), key, timeout=20)
        return kept[key]

    def hang_up(self) -> None:
        """Close this thread's connections."""
        kept: dict[str, Client] = self.mine.__dict__
        for client in kept.values():
            client.close()
        kept.clear()

    def ask(self, key: str, schedule: str) -> Json | None:
        """Ask the supplier of that name; None where the gateway died before it answered."""
        expect = {"key": key, "schedule": schedule, "deadline": "1h"}
        text = f"What do you charge for {key}?"
        with suppress(Unreachable):
            return self.call(
                "send", once=f"ask-{key}", to=[address(key)], subject=f"Quote {key}", text=text, expect=expect
            )
        return None

    def deliver(self, octets: bytes, recipient: str) -> bool:
        """Hand a mail to the gateway as a supplier's server does; return whether it answered 250."""
        try:
            with smtplib.SMTP("127.0.0.1", int(self.ports["smtp_port"]), timeout=20) as smtp:
                smtp.sendmail("pat@supplier.example", [recipient], octets)
                self.accepted.add(sha256(octets).hexdigest())  # before QUIT: the 250 is what counts
        except smtplib.SMTPResponseException as refusal:
            if refusal.smtp_code // 100 != 4:
                raise
            return False
        except (OSError, smtplib.SMTPException):
            return sha256(octets).hexdigest() in self.accepted
        return True

    def reviews(self, message_id: str = "") -> list[Any]:
        """Return the open reviews, of one message where one is named."""
        wanted = "SELECT * FROM reviews WHERE decided_at IS NULL AND (? = '' OR message_id = ?)"
        return self.rows(wanted, message_id, message_id)

    def leases_over(self) -> bool:
        """Tell whether no hand-over's lease is in force any more."""
        now = int(time.time() * 1_000_000)
        return self.count("SELECT count(*) FROM outbox WHERE lease_until > ?", now) == 0

    def is_idle(self) -> bool:
        """Tell whether nothing is on its way, in or out, and nothing is due soon."""
        soon = int((time.time() + 60) * 1_000_000)
        return not (
            self.count(f"SELECT count(*) FROM outbox WHERE state IN {OUTGOING}")
            or self.count("SELECT count(*) FROM received WHERE state = 'stored'")
            or self.count("SELECT count(*) FROM waits WHERE due_at < ?", soon)
        )

    def settle(self) -> None:
        """Wait until the gateway, which must stay alive, has nothing left to do."""
        assert self.gateway is not None
        gateway = self.gateway

        def idle() -> bool:
            assert gateway.poll() is None, "the gateway died by itself"
            return self.is_idle()

        until(idle, "the gateway is idle")


def address(key: str) -> str:
    """Return the address of the supplier who is asked for a key."""
    return f"{key}@supplier.example"


def _taken(entry: Json) -> Taken:
    recipients: Sequence[str] = entry["recipients"]  # type: ignore[assignment]
    return Taken(
        rfc_id=str(entry["Message-ID"]),
        recipients=tuple(recipients),
        reply_to=str(entry["Reply-To"]),
        in_reply_to=str(entry["In-Reply-To"]),
        subject=str(entry["Subject"]),
        sha256=str(entry["sha256"]),
    )


def reply_to(mail: Taken, key: str, words: str = "It is 40 EUR a piece.") -> bytes:
    """Return a supplier's answer to a mail, the same octets every time."""
    return (
        f"From: Pat <{address(key)}>\r\nTo: {mail.reply_to}\r\nSubject: Re: {mail.subject}\r\n"
        f"Message-ID: <answer-{sha256(f'{key} {mail.rfc_id} {words}'.encode()).hexdigest()[:24]}@supplier.example>\r\n"
        f"In-Reply-To: {mail.rfc_id}\r\nDate: Tue, 01 Dec 2026 10:00:00 +0000\r\n"
        f"Content-Type: text/plain; charset=utf-8\r\n\r\n{words}\r\n"
    ).encode()


def furnish(home: Path, bytecode: Path) -> Place:
    """Make a home with an agent, its inbox and key, and schedules that count in seconds."""
    settings = Settings(home=home)
    app.initialise(settings)
    with local.door(settings, Options()) as door:
        agent = door.call("agents.add", {"name": "buyer"})
        door.call("inboxes.add", {"agent": "buyer", "address": "quotes@shop.example"})
        door.call("schedules.put", {"name": "quick", "gaps": ["1s", "1s", "1s"]})
        door.call("schedules.put", {"name": "slow", "gaps": ["1h", "1h"]})
        deciding = {scope for scope in SCOPES if scope.startswith("reviews:")}
        working = sorted(set(SCOPES) - deciding)
        key = door.call("keys.create", {"name": "agent", "scopes": working, "agent": "buyer"})
        person = door.call("keys.create", {"name": "person", "scopes": sorted(deciding)})
    place = Place(home, bytecode, str(key["key"]), str(person["key"]), f"agent:{agent['agent_id']}")
    place.start_receiver()
    return place
