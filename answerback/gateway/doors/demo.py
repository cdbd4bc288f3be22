"""Plays three suppliers around a real gateway on this machine and shows what becomes of each question."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from answerback.client import Client
from answerback.errors import AnswerbackError, BadRequest
from answerback.gateway.doors import demo_checks, demo_stage, output
from answerback.gateway.doors.demo_mails import PEOPLE, SILENT
from answerback.gateway.doors.demo_stage import Note, Stage
from answerback.gateway.doors.demo_story import MAILBOX, QUESTIONS, Story
from answerback.model import Json

if TYPE_CHECKING:
    from rich.console import Console

AGENT, INBOX, SCHEDULE = "buyer", "buyer@gateway.example", "demo"
#: seconds: each gap of the schedule at speed 1; the start; the story; one long poll of the mailbox
GAP, START, PLAY, POLL = 3, 20.0, 30.0, 5.0
SCOPES: Final = (
    "send",
    "messages:read",
    "waitpoints:read",
    "waits:read",
    "mailbox:read",
    "mailbox:ack",
)
COLOURS: Final = {"agent": "bold cyan", MAILBOX: "cyan", "gateway": "magenta", "relay": "magenta"}
ROOM: Final = "answerback.gateway.doors"


def main(*, once: bool, as_json: bool = False, home: str | None = None, speed: float = 1.0) -> int:
    """Play the demo and return 0 where every check holds, else 1.

    Without `once` the gateway goes on serving until Ctrl-C. With `as_json` standard output gets one JSON
    object and nothing else; the timeline then goes to standard error. `speed` divides every delay.

    Raises:
        BadRequest: `home` is a folder in use, or the speed is out of range. DemoFailed: a process ended.
    """
    if not 0.1 <= speed <= GAP:
        raise BadRequest(field="--speed", problem=f"is no factor from 0.1 to {GAP}")
    with _signals(), _folder(home) as folder:
        demo_stage.isolate(folder)
        with demo_stage.stage(folder) as stage:
            show = Show(as_json=as_json)
            return Play(stage, show, speed).run(once=once)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the demo as Ctrl-C does, so that it tidies up."""

    def interrupt(_number: int, _frame: object) -> None:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # what follows is bounded
        raise KeyboardInterrupt

    for number in SIGNALS:
        signal.signal(number, interrupt)
    yield


SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def _folder(home: str | None) -> Iterator[Path]:
    """Give the folder of the demo: a new one that goes away, or the one named, which stays."""
    if home is None:
        with tempfile.TemporaryDirectory(prefix="answerback-demo-", ignore_cleanup_errors=True) as name:
            yield Path(name)
        return
    folder = Path(home).absolute()
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise BadRequest(field="--home", problem=f"{home} is in use; the demo wants a new or empty folder")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    yield folder


class Show:
    """Prints: lines for people on standard output, or beside the JSON on standard error."""

    def __init__(self, *, as_json: bool) -> None:
        from rich.console import Console

        for stream in (sys.stdout, sys.stderr):
            # An encoding without our marks must not end the demo.
            getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
        self.as_json = as_json
        self.timeline: list[Json] = []
        self._began = time.monotonic()
        self._console: Console = Console(stderr=as_json, highlight=False, markup=False, emoji=False)

    def line(self, who: str, what: str) -> None:
        """Print one line of the timeline."""
        from rich.text import Text

        seconds = time.monotonic() - self._began
        self.timeline.append({"seconds": round(seconds, 3), "who": who, "what": what})
        colour = COLOURS.get(who, "yellow")
        self._print(Text.assemble((f"{seconds:5.1f} s  ", "dim"), (f"{who:<20}", colour), output.clean(what)))

    def say(self, text: str, style: str = "") -> None:
        """Print a line that is no part of the timeline."""
        from rich.text import Text

        self._print(Text(output.clean(text), style=style))

    def _print(self, text: Any) -> None:
        self._console.print(text, soft_wrap=True)

    def report(self, report: Json) -> None:
        """Print the mailbox and the checks, or all of the report as JSON."""
        if self.as_json:
            print(json.dumps(report, default=str), flush=True)
            return
        self.say("\nThe agent's mailbox:\n", "bold")
        self.say(json.dumps(report["mailbox"], indent=2, ensure_ascii=False))
        self.say("\nWhat was to be shown:\n", "bold")
        checks: Any = report["checks"]
        for check in checks:
            mark, style = ("✓", "green") if check["holds"] else ("✗", "bold red")
            self.say(f"{mark} {check['says']}", style)


class Play:
    """One performance."""

    def __init__(self, stage: Stage, show: Show, speed: float) -> None:
        self._stage = stage
        self._show = show
        self._speed = speed
        self._story = Story()
        self._closing = threading.Event()
        self._at: Json = {}

    def run(self, *, once: bool) -> int:
        """Play, report, and return the exit code."""
        key = self._set_up()
        with Client(str(self._at["http_url"]), key) as client:
            watcher = threading.Thread(target=self._watch, args=(client,), daemon=True)
            watcher.start()
            try:
                self._ask(client)
                self._until_over()
                checks = demo_checks.examine(self._story)
                self._show.report(self._report(checks, key, once=once))
                if not once:
                    self._serve_on(key)
            finally:
                self._closing.set()
                self._stage.end()
                watcher.join(POLL)
        return 0 if all(check["holds"] for check in checks) else 1

    def _set_up(self) -> str:
        """Start every process and return the agent's key."""
        stage, until = self._stage, time.monotonic() + START
        for person in PEOPLE.values():
            stage.start(person.address, f"{ROOM}.demo_people", person.domain, str(self._speed))
        stage.start("relay", f"{ROOM}.demo_relay")
        key = furnish(max(1, round(GAP / self._speed)))
        ready = stage.first(lambda said: said.get("event") == "ready", set(stage.children), until)
        ports = {domain: ready[person.address]["port"] for domain, person in PEOPLE.items()}
        stage.children["relay"].tell(ports)
        demo_stage.set_relay(ready["relay"]["port"])
        stage.start("gateway", f"{ROOM}.demo_leash", "answerback", "serve", "--json")
        self._at = stage.first(lambda said: said.get("status") == "serving", {"gateway"}, until)["gateway"]
        for person in PEOPLE.values():
            stage.children[person.address].tell({"mx": self._at["smtp_port"]})
        self._introduce(ready)
        return key

    def _introduce(self, ready: Json) -> None:
        children = self._stage.children
        for who, said in ready.items():
            port: Any = said
            self._show.line(who, f"takes mail on {demo_stage.HOST}:{port['port']}, process {children[who].pid}")
        mail = f"{self._at['smtp_host']}:{self._at['smtp_port']}"
        what = f"takes mail on {mail}, HTTP on {self._at['http_url']}, process {children['gateway'].pid}"
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
                if not self._closing.is_set():
                    self._stage.notes.put(Note(who=MAILBOX, said={"event": "ended", "problem": error.message}))
                return
            for item in items:
                since = item["sequence"]
                self._stage.notes.put(Note(who=MAILBOX, said=item))

    def _until_over(self) -> None:
        """Follow the story until it is over, at most PLAY seconds."""
        until, told = time.monotonic() + PLAY, False
        while not self._story.over and (note := self._stage.next(until)):
            self._hear(note)
            if self._story.abandoned and not told:
                told = True
                self._stage.children[SILENT.address].tell({"answer": True})
        # What was said at the same time as the last answer belongs to the story too.
        while not self._stage.notes.empty() and (note := self._stage.next(until)):
            self._hear(note)

    def _hear(self, note: Note) -> None:
        if what := self._story.hear(note):
            self._show.line(note.who, what)

    def _report(self, checks: list[Json], key: str, *, once: bool) -> Json:
        story = self._story
        report: Json = {
            "ok": all(check["holds"] for check in checks),
            "checks": checks,
            "asked": story.asked,
            "received": story.received,
            "sent": story.sent,
            "mailbox": story.mailbox,
            "timeline": self._show.timeline,
            "processes": {who: child.pid for who, child in self._stage.children.items()},
        }
        return report if once else report | {"serving": self._at, "key": key}

    def _serve_on(self, key: str) -> None:
        """Leave the gateway serving until Ctrl-C; new mail is shown as it comes."""
        url = self._at["http_url"]
        self._show.say(f"\nThe gateway goes on serving at {url} until Ctrl-C. Look at the mailbox yourself:")
        self._show.say(f"  curl -s -H 'Authorization: Bearer {key}' '{url}/v1/mailbox?since=0'\n")
        with contextlib.suppress(KeyboardInterrupt):
            while note := self._stage.next(threading.TIMEOUT_MAX):
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
            contact = {"name": person.name, "addresses": [person.address], "zone": "Europe/London"}
            door.call("contacts.add", contact)
        door.call("schedules.put", {"name": SCHEDULE, "gaps": [f"{gap}s"] * 3})
        made = door.call("keys.create", {"name": "demo", "scopes": SCOPES, "agent": AGENT})
    return str(made["key"])
