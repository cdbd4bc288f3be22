"""The given cases, as far as reading alone decides them, with what we sent taken from their context."""

from __future__ import annotations

import json
import re
import unicodedata
from pathlib import Path

import pytest

from answerback.channels.mail.read import read, resplit
from answerback.model import Inbound, PartKind

CASES = Path(__file__).parents[2] / "fixtures" / "cases"
#: words of the cases → our kinds; `reply` and its relatives depend on the conversation, not on the octets
KINDS = {"reply": "message", "new": "message", "duplicate": "message"}
OURS = {"own_message", "command", "edit", "update"}


def _mails() -> list[tuple[str, str]]:
    found = []
    for folder in sorted(CASES.iterdir()) if CASES.is_dir() else []:
        expected = folder / "expected.json"
        if expected.is_file():
            names = json.loads(expected.read_text("utf-8")).get("messages", {})
            found += [(folder.name, name) for name in names if (folder / f"{name}.eml").is_file()]
    return found


def _norm(text: str) -> str:
    text = unicodedata.normalize("NFC", text.replace("\r\n", "\n").replace("\xa0", " "))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in text.split("\n"))).strip()


def _kinds_match(wanted: object, inbound: Inbound) -> bool:
    words = wanted["any"] if isinstance(wanted, dict) else [wanted]
    return bool(OURS & set(words)) or inbound.kind.value in {KINDS.get(str(word), word) for word in words}


def _text_matches(wanted: object, text: str) -> bool:
    if isinstance(wanted, dict):
        has = all(_norm(words) in _norm(text) for words in wanted.get("contains", []))
        return has and not any(words in text for words in wanted.get("excludes", []))
    return _norm(str(wanted)) == _norm(text)


def _files(inbound: Inbound) -> list[tuple[str, int, str]]:
    parts = (part for part in inbound.parts if part.kind is PartKind.ATTACHMENT)
    return sorted((part.filename, part.size, part.sha256) for part in parts)


def _history(inbound: Inbound) -> str:
    return "\n".join(p.text for p in inbound.parts if p.kind in (PartKind.QUOTED, PartKind.FORWARDED))


def _differences(wanted: dict[str, object], inbound: Inbound) -> list[str]:
    """Return the keys of an expectation that do not hold."""
    wrong = []
    for key, value in wanted.items():
        match key, value:
            case "kind", _:
                holds = _kinds_match(value, inbound)
            case "reply_text", _:
                holds = _text_matches(value, inbound.reply_text)
            case "attachments", list():
                holds = _files(inbound) == sorted((a["filename"], a["size"], a["sha256"]) for a in value)
            case "attachments_min", int():
                holds = len(_files(inbound)) >= value
            case "quoted_contains", list():
                holds = all(_norm(words) in _norm(_history(inbound)) for words in value)
            case "bounce", dict():
                report = inbound.reports[0] if inbound.reports else None
                seen = (
                    {}
                    if report is None
                    else {"class": report.outcome, "recipient": report.recipient, "status": report.status}
                )
                holds = all(seen.get(name) == text for name, text in value.items())
            case "from", str():
                holds = [address.email for address in inbound.senders] == [value]
            case (("message_id" | "emoji" | "partstat"), str()):
                holds = getattr(inbound, key) == value
            case "one_of", list():
                holds = any("route" in one or not _differences(one, inbound) for one in value)
            case _:
                holds = True
        if not holds:
            wrong.append(key)
    return wrong


@pytest.mark.parametrize(("case", "name"), _mails())
def test_a_given_mail_is_read_as_its_case_expects(case: str, name: str) -> None:
    folder = CASES / case
    context = json.loads((folder / "context.json").read_text("utf-8"))
    sent = [mail.get("text", "") for talk in context.get("conversations", []) for mail in talk["outbound"]]
    wanted = json.loads((folder / "expected.json").read_text("utf-8"))["messages"][name]
    inbound = resplit(read((folder / f"{name}.eml").read_bytes()), sent)
    assert _differences(wanted, inbound) == []
