"""Plays three suppliers around a real gateway on this machine and shows what becomes of each question."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from answerback.client import Client
from answerback.errors import AnswerbackError, BadRequest
from answerback.gateway.doors import demo_checks, demo_stage
from answerback.gateway.doors.demo_mails import PEOPLE, SILENT
from answerback.gateway.doors.demo_show import Show
from answerback.gateway.doors.demo_stage import Note
from answerback.gateway.doors.demo_story import MAILBOX, QUESTIONS, Story
from answerback.model import Json

if TYPE_CHECKING:
    from answerback.gateway.doors.demo_stage import Stage

ROOM: Final = "answerback.gateway.doors"
AGENT, INBOX, SCHEDULE = "buyer", "buyer@gateway.example", "demo"
#: seconds of each gap of the schedule at speed 1
GAP = 3
#: seconds from the start to the end of the story at most, and of one long poll of the mailbox
LONGEST, POLL = 34.0, 5.0
SCOPES: Final = ("send", "messages:read", "waitpoints:read", "waits:read", "mailbox:read", "mailbox:ack")
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(*, once: bool, as_json: bool = False, home: str | None = None, speed: float = 1.0) -> int:
    """Play the demo and return 0 where every check holds, else 1.

    Without `once` the gateway goes on serving until Ctrl-C. With `as_json` standard output gets one JSON
    object and nothing else; the timeline then goes to standard error. `speed` divides every delay.

    Raises:
        BadRequest: `home` is a folder in use, or the speed is out of range. DemoFailed: a process ended.
    """
    if not 0.1 <= speed <= GAP:
        raise BadRequest(field="--speed", problem=f"is no factor from 0.1 to {GAP}")
    _let_signals_interrupt()
    with _folder(home) as folder:
        demo_stage.isolate(folder)
        show = Show(as_json=as_json)
        show.say(
            "Starting a gateway, its outgoing relay and three suppliers, each in its own process …", "dim"
        )
        with demo_stage.stage(folder) as stage:
            return Play(stage, show, speed).run(once=once)


def _let_signals_interrupt() -> None:
    """Let SIGTERM and SIGHUP end the demo as Ctrl-C does, so that it tidies up; once is enough."""

    def interrupt(_number: int, _frame: object) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    for number in SIGNALS:
        signal.signal(number, interrupt)


@contextlib.contextmanager
def _folder(home: str | None) -> Iterator[Path]:
    """Give the folder of the demo: a new one that goes away, or the one named, which stays."""
    if home is None:
        with tempfile.TemporaryDirectory(prefix="answerback-demo-", ignore_cleanup_errors=True) as name:
            yield Path(name)
        return
    folder = Path(home).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadRequest(field="--home", problem=f"{home} is in use; the demo wants a new or an empty folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    yield folder


class Play:
    """One performance."""

    def __init__(self, stage: Stage, show: Show, speed: float) -> None:
        self._stage = stage
        self._show = show
        self._speed = speed
        self._until = time.monotonic() + LONGEST
        self._story = Story()
        self._closing = threading.Event()
        #: what the gateway said when it listened
        self._at: Json = {}

    def run(self, *, once: bool) -> int:
        """Play, report, and return the exit code."""
        key = self._set_up()
        with Client(str(self._at["http_url"]), key) as client:
            watcher = threading.Thread(target=self._watch, args=(client,), daemon=True)
            watcher.start()
            try:
                self._ask(client)
                self._follow()
                report = self._report(client) | ({} if once else {"serving": self._at, "key": key})
                self._show.report(report)
                if not once:
                    self._serve_on(key)
            finally:
                self._closing.set()
                self._stage.end()
                watcher.join(POLL)
        return 0 if report["ok"] else 1

    def _set_up(self) -> str:
        """Start every process and return the agent's key."""
        stage = self._stage
        for person in PEOPLE.values():
            stage.start(person.address, f"{ROOM}.demo_people", person.domain, str(self._speed))
        stage.start("relay", f"{ROOM}.demo_relay")
        key = furnish(max(1, round(GAP / self._speed)))
        ready = stage.first("event", "ready", set(stage.children), self._until)
        stage.children["relay"].tell({one.domain: ready[one.address]["port"] for one in PEOPLE.values()})
        demo_stage.set_relay(ready["relay"]["port"])
        stage.start("gateway", f"{ROOM}.demo_leash", "answerback", "serve", "--json")
        self._at = stage.first("status", "serving", {"gateway"}, self._until)["gateway"]
        for person in PEOPLE.values():
            stage.children[person.address].tell({"mx": self._at["smtp_port"]})
        self._introduce({who: said["port"] for who, said in ready.items()})
        return key

    def _introduce(self, ports: dict[str, int]) -> None:
        pids = {who: child.pid for who, child in self._stage.children.items()}
        host, url = demo_stage.HOST, self._at["http_url"]
        for who, port in ports.items():
            self._show.line(who, f"takes mail on {host}:{port} (process {pids[who]})")
        what = f"takes mail on {host}:{self._at['smtp_port']}, HTTP on {url} (process {pids['gateway']})"
        self._show.line("gateway", what)

    def _ask(self, client: Client) -> None:
        for question in QUESTIONS:
            expect = {"key": question.key, "schedule": SCHEDULE}
            self._story.asked[question.key] = client.ask(
                [question.to], question.subject, question.text, expect=expect, idempotency_key=question.key
            )
            self._show.line("agent", f"asks {question.to}: “{question.subject}”, key {question.key}")

    def _watch(self, client: Client) -> None:
        """Read the mailbox by long poll and put what comes among the notes."""
        since = 0
        while not self._closing.is_set():
            try:
                items: Any = client.read(since, wait=POLL)["items"]
            except AnswerbackError as error:
                self._stage.notes.put(Note(who=MAILBOX, said={"event": "ended", "problem": error.message}))
                return
            for item in items:
                since = item["sequence"]
                self._stage.notes.put(Note(who=MAILBOX, said=item))

    def _follow(self) -> None:
        """Follow the story until it is over or its time is."""
        told = False
        while not self._story.over and (note := self._stage.next(self._until)):
            self._hear(note)
            if self._story.abandoned and not told:
                told = True
                self._stage.children[SILENT.address].tell({"answer": True})
        # What was said in the same moment as the last answer belongs to the story too.
        while not self._stage.notes.empty() and (note := self._stage.next(self._until)):
            self._hear(note)

    def _hear(self, note: Note) -> None:
        if what := self._story.hear(note):
            self._show.line(note.who, what)

    def _report(self, client: Client) -> Json:
        checks, story = demo_checks.examine(self._story), self._story
        return {
            "ok": all(check["holds"] for check in checks),
            "checks": checks,
            "asked": story.asked,
            "received": story.received,
            "sent": story.sent,
            "mailbox": story.mailbox,
            "waits": client.call("waits.list")["waits"],
            "timeline": self._show.timeline,
            "processes": {who: child.pid for who, child in self._stage.children.items()},
        }

    def _serve_on(self, key: str) -> None:
        """Leave the gateway serving until Ctrl-C; new mail is shown as it comes."""
        url = self._at["http_url"]
        self._show.say(f"\nThe gateway goes on serving at {url} until Ctrl-C. The agent's mailbox again:\n")
        self._show.say(f"  curl -s -H 'Authorization: Bearer {key}' '{url}/v1/mailbox?since=0'\n")
        with contextlib.suppress(KeyboardInterrupt):
            while note := self._stage.next(time.monotonic() + threading.TIMEOUT_MAX / 2):
                self._hear(note)


def furnish(gap: int) -> str:
    """Make the home with an agent, its inbox, the suppliers and a schedule in seconds; return a key."""
    from answerback.gateway import app, settings
    from answerback.gateway.doors import local
    from answerback.gateway.doors.line import Options

    app.initialise(settings.load())
    with local.door(settings.load(), Options()) as door:
        door.call("agents.add", {"name": AGENT})
        door.call("inboxes.add", {"address": INBOX, "agent": AGENT, "display_name": "Buyer"})
        for person in PEOPLE.values():
            contact: Json = {"name": person.name, "addresses": [person.address], "zone": "Europe/London"}
            door.call("contacts.add", contact)
        door.call("schedules.put", {"name": SCHEDULE, "gaps": [f"{gap}s"] * 3})
        made = door.call("keys.create", {"name": "demo", "scopes": SCOPES, "agent": AGENT})
    return str(made["key"])
