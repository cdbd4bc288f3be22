"""Prints the demo: the timeline as it happens, then the agent's mailbox and what was to be shown."""

from __future__ import annotations

import json
import sys
import time
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from answerback.gateway.doors import output
from answerback.gateway.doors.demo_story import MAILBOX
from answerback.model import Json

COLOURS: Final = {"agent": "bold cyan", MAILBOX: "cyan", "gateway": "magenta", "relay": "magenta"}


class Show:
    """Prints: lines for people on standard output, or beside the JSON on standard error."""

    def __init__(self, *, as_json: bool) -> None:
        for stream in (sys.stdout, sys.stderr):
            # An encoding without our marks must not end the demo.
            getattr(stream, "reconfigure", lambda **_: None)(errors="replace")
        self.as_json = as_json
        self.timeline: list[Json] = []
        self._began = time.monotonic()
        self._console = Console(stderr=as_json, highlight=False, markup=False, emoji=False)

    def line(self, who: str, what: str) -> None:
        """Print one line of the timeline."""
        seconds = time.monotonic() - self._began
        self.timeline.append({"seconds": round(seconds, 3), "who": who, "what": what})
        colour = COLOURS.get(who, "yellow")
        self._print(Text.assemble((f"{seconds:5.1f} s  ", "dim"), (f"{who:<23}", colour), output.clean(what)))

    def say(self, text: str, style: str = "") -> None:
        """Print a line that is no part of the timeline."""
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
