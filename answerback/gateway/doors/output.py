"""Prints results and refusals: JSON for programs, plain lines and tables for people."""

from __future__ import annotations

import json
import sys
import unicodedata
from typing import TYPE_CHECKING, Any

from answerback.errors import AnswerbackError
from answerback.model import Json

if TYPE_CHECKING:
    from rich.console import Console

#: levels of nesting that are laid out as lines; deeper ones as JSON
DEEPEST = 8
WIDE = 240
#: change the direction text is shown in (Unicode UAX 9), so could make one text look like another
TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def result(content: Json, *, as_json: bool) -> None:
    """Print what a verb returned."""
    if as_json:
        # ASCII only: other people's text can not steer a terminal from inside an escape.
        print(json.dumps(content, default=str, indent=2 if sys.stdout.isatty() else None))
        return
    from rich.console import Console

    # A table that goes to a file or a pipe is not folded to the width of a terminal.
    width = None if sys.stdout.isatty() else WIDE
    console = Console(highlight=False, markup=False, emoji=False, width=width)
    with console.capture() as captured:  # printing itself it would end the process at a closed pipe
        _lay_out(console, content, 0)
    print(captured.get(), end="")


def refusal(error: AnswerbackError, *, as_json: bool) -> None:
    """Print what was refused: one sentence on stderr, or one object on stdout."""
    if as_json:
        told = {"code": error.code, "message": error.message, "details": error.details}
        print(json.dumps({"error": told}, default=str))
    else:
        print(f"answerback: {clean(error.message)}", file=sys.stderr)


def checklist(report: Json) -> None:
    """Print what `doctor` found: a line per check, and below it what to do."""
    checks: Any = report["checks"]
    for one in checks:
        print(clean(f"{one['state']:<6} {one['check']}: {one['says']}"))
        if one["do"]:
            print(clean(f"       {one['do']}"))


def clean(text: str) -> str:
    """Return the text with everything that could steer a terminal written as an escape."""
    return "".join(c if c in "\n\t" or not _steers(c) else f"\\u{ord(c):04x}" for c in text)


def _steers(character: str) -> bool:
    return character in TURNS or unicodedata.category(character) in ("Cc", "Cs")


def _lay_out(console: Console, content: Json, depth: int) -> None:
    for name, value in content.items():
        label = "  " * depth + name.replace("_", " ")
        match value:
            case dict() if value and depth < DEEPEST:
                console.print(f"{label}:", soft_wrap=True)
                _lay_out(console, value, depth + 1)
            case list() if value and depth < DEEPEST and all(isinstance(row, dict) for row in value):
                console.print(f"{label}:", soft_wrap=True)
                _list(console, value, depth)
            case _:
                console.print(f"{label}: {_words(value, depth)}", soft_wrap=True)


def _list(console: Console, rows: list[Json], depth: int) -> None:
    if any(_nested(value) for row in rows for value in row.values()):
        for row in rows:
            _lay_out(console, row, depth + 1)
            console.print()
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in rows[0]:
        table.add_column(name.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(_words(row.get(name), 0)) for name in rows[0]))
    console.print(table)


def _nested(value: object) -> bool:
    inner = value if isinstance(value, list) else [value]
    return any(isinstance(one, dict) and one for one in inner)


def _words(value: object, depth: int) -> str:
    match value:
        case None | "" | [] | {}:
            return "-"
        case bool():
            return "yes" if value else "no"
        case str():
            return clean(value).replace("\n", "\n" + "  " * (depth + 1))
        case list() if all(isinstance(one, str | int) for one in value):
            return clean(", ".join(map(str, value)))
        case _:
            return clean(json.dumps(value, default=str, ensure_ascii=False))
