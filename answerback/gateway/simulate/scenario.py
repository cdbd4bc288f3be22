"""Loads scenario folders: the state before, what happens, what is expected."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from answerback.errors import BadRequest
from answerback.gateway.simulate.matchers import Observed
from answerback.model import value

#: name of the one mail of a scenario without a timeline
SINGLE = "input"


@value
class Scenario:
    """One folder: `context.json`, `input.eml` or `input.json` with its mails, `expected.json`."""

    id: str
    folder: Path
    context: Observed
    events: tuple[Observed, ...]
    expected: Observed
    #: the instant the scenario begins at
    now: datetime

    def mail(self, name: str) -> bytes:
        """Return the octets of one of the scenario's mails.

        Raises:
            BadRequest: there is no such file.
        """
        path = self.folder / name
        if not path.is_file():
            raise BadRequest(field=f"{self.id}/{name}", problem="there is no such mail in the folder")
        return path.read_bytes()


def find(names: Iterable[str]) -> list[Path]:
    """Return the scenario folders among and below the given ones, in order of name.

    Raises:
        BadRequest: a folder is none, or holds no scenario.
    """
    found: list[Path] = []
    for name in names:
        folder = Path(name)
        inside = [folder] if _is_scenario(folder) else sorted(filter(_is_scenario, _children(folder)))
        if not inside:
            raise BadRequest(
                field=name, problem="holds no scenario: a folder with context.json and expected.json"
            )
        found += inside
    return found


def _children(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _is_scenario(folder: Path) -> bool:
    return (folder / "context.json").is_file() and (folder / "expected.json").is_file()


def load(folder: Path) -> Scenario:
    """Return the scenario of a folder.

    A folder with `input.eml` is a timeline of one: that mail arrives at the scenario's `now`.

    Raises:
        BadRequest: a file is missing or not JSON, or an instant can not be read.
    """
    context = _document(folder / "context.json")
    timeline = folder / "input.json"
    given = _document(timeline) if timeline.is_file() else {"events": [_single(context)]}
    events = tuple(given["events"])
    begin = min([instant(context["now"]), *(instant(event["at"]) for event in events[:1])])
    return Scenario(
        id=folder.resolve().name,
        folder=folder,
        context=context,
        events=events,
        expected=_document(folder / "expected.json"),
        now=begin,
    )


def _single(context: Observed) -> Observed:
    return {"at": context["now"], "do": "receive_email", "ref": SINGLE, "eml": f"{SINGLE}.eml"}


def _document(path: Path) -> Observed:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise BadRequest(field=str(path), problem=f"can not be read: {error}") from None
    if not isinstance(found, dict):
        raise BadRequest(field=str(path), problem="is no JSON object")
    return found


def instant(text: str) -> datetime:
    """Return an ISO 8601 time as an aware instant in UTC.

    Raises:
        BadRequest: it is none, or has no zone.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadRequest(field="time", problem=f"{text} is no ISO 8601 time") from None
    if found.tzinfo is None:
        raise BadRequest(field="time", problem=f"{text} has no zone; write 2025-03-04T12:00:00Z")
    return found.astimezone(UTC)


def written(at: datetime) -> str:
    """Return an instant as observations write it: `2025-03-04T12:00:00Z`, seconds and no fractions."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
