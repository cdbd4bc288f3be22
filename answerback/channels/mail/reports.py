"""Reads what delivery, complaint and receipt reports say of which recipient and which mail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from email.message import Message
from typing import Literal

from flufl.bounce import all_failures

from answerback.channels.mail import fields
from answerback.channels.mail.fields import Fields
from answerback.channels.mail.mime import Entity
from answerback.model import Report

Outcome = Literal["hard", "soft", "delayed", "delivered", "complained"]

_MOST_RECIPIENTS = 200
_MOST_TEXT = 64 * 1024
_MOST_BLOCKS = 1000
_STATUS = re.compile(r"(?<![\d.])([245])\.(\d{1,3})\.(\d{1,3})(?![\d.])")
_REPLY_CODE = re.compile(r"(?<![\d.])([45])\d\d(?=[ -])")
_NAMED_ID = re.compile(
    r"(?:^|\n)[> \t]{0,6}(?:X-[\w-]{1,30}-)?(?:Original-)?Message-ID:\s{0,6}(<[^<>\s]{3,900}>)", re.IGNORECASE
)
_REFERENCE_ID = re.compile(
    r"(?:^|\n)[> \t]{0,6}(?:References|In-Reply-To):\s{0,6}((?:<[^<>\s]{3,900}>\s{0,4}){1,50})", re.IGNORECASE
)
_RECIPIENT = re.compile(
    r"(?:recipients?(?:\(s\))?|rcpt to|address(?:es)?|user|mailbox|empfänger\w*|destinataires?"
    r"|destinatarios?|to)\s{0,3}[:=]\s{0,6}"
    r"<?([^\s<>@:;,()]{1,64}@[\w.-]{1,255})|(?:^|\n)\s{0,8}<([^\s<>@]{1,64}@[\w.-]{1,255})>",
    re.IGNORECASE,
)
#: failures of the message, the moment or the policy, not of the address (RFC 3463; the classes big receivers
#: use)
_NOT_THE_ADDRESS = re.compile(
    r"5\.(?:2\.[23]|3\.[0-5]|4\.[0135-9]|4\.\d{2,3}|5\.[1-9]|6\.\d+|7\.(?!13\b)\d+|1\.[78]|0\.(?:9[0-9]{2}))"
)
_FOR_GOOD = re.compile(
    r"user (?:unknown|not found)|unknown (?:user|recipient|mailbox)|no such (?:user|recipient"
    r"|mailbox|address|person)"
    r"|does(?: not|n't) exist|not exist|invalid (?:recipient|mailbox|user)|recipient (?:rejected"
    r"|not found)|no mailbox here"
    r"|address (?:rejected|not found)|account (?:has been )?disabled|unbekannt|inconnu|desconocid"
    r"|(?:host|domain)[\w ]{0,20} not found",
    re.IGNORECASE,
)
_FOR_NOW = re.compile(
    r"quota|mailbox (?:is )?full|over ?quota|full mailbox|too (?:large|big)|greylist|try again"
    r"|temporar|spam|blocked|blacklist"
    r"|policy|timed? ?out|expired|rate limit|reputation",
    re.IGNORECASE,
)
_LATE = re.compile(
    r"\bdelay(?:ed)?\b|still (?:being )?(?:retr|trying)|will (?:keep|continue) (?:to )?(?:try|retry)"
    r"|not yet been delivered|warning: message"
    r"|you do not need to resend|verzögert|retard[ée]|retrasad|in ritardo|vertraagd",
    re.IGNORECASE,
)


def outcome(action: str, status: str, diagnostic: str) -> Outcome:
    """Return what a report means for its recipient: `hard` only where the address itself is at fault."""
    if action == "delayed":
        return "delayed"
    if action in ("delivered", "relayed", "expanded"):
        return "delivered"
    if status.startswith("4"):
        return "soft" if action == "failed" else "delayed"
    if _FOR_GOOD.search(diagnostic):
        return "hard"
    if _NOT_THE_ADDRESS.fullmatch(status) or _FOR_NOW.search(diagnostic):
        return "soft"
    return "soft" if not status and diagnostic.lstrip().startswith("4") else "hard"


def delivery(entities: Sequence[Entity]) -> tuple[Report, ...]:
    """Return the per-recipient reports of every delivery-status part (RFC 3464)."""
    found: list[Report] = []
    for entity in entities:
        if entity.media_type in ("message/delivery-status", "message/global-delivery-status"):
            named = ("final-recipient", "original-recipient", "action")
            found += [_recipient(block) for block in _blocks(entity) if block.has(*named)]
    return tuple(found[:_MOST_RECIPIENTS])


def _recipient(block: Fields) -> Report:
    named = [
        _typed(block.first(name)) for name in ("original-recipient", "final-recipient", "x-actual-recipient")
    ]
    recipient = next((text for text in named if "@" in text), named[1])
    action = block.first("action").partition(";")[0].strip().lower()
    diagnostic = _typed(block.first("diagnostic-code"))[:1000]
    status = _status(block.first("status")) or _status(diagnostic)
    return Report(
        outcome=outcome(action, status, diagnostic), recipient=recipient, status=status, diagnostic=diagnostic
    )


def _typed(text: str) -> str:
    """Return the value behind its type (`rfc822; pat@x.example`), without angle brackets."""
    kind, semicolon, rest = text.partition(";")
    return (rest if semicolon and "@" not in kind else text).strip().strip("<>").strip()


def _status(text: str) -> str:
    found = _STATUS.search(text[:2000])
    return found.group() if found else ""


def _blocks(entity: Entity) -> Iterator[Fields]:
    """Yield the groups of fields of a report part; they are separated by blank lines."""
    content = entity.octets()[:_MOST_TEXT]
    position = 0
    for _ in range(_MOST_BLOCKS):
        if position >= len(content):
            return
        block, after = fields.split(content, position, len(content))
        yield block
        position = max(after, position + 1)


def complaint(entity: Entity, returned: Iterable[Entity]) -> tuple[str, tuple[Report, ...]]:
    """Return the type of a feedback report (RFC 5965) and a report for each recipient it names."""
    merged = Fields(pairs=tuple(pair for block in _blocks(entity) for pair in block.pairs))
    named = [_typed(text) for text in (*merged.every("original-rcpt-to"), *merged.every("removal-recipient"))]
    if not named:
        named = [_typed(text) for mail in returned for text in (mail.fields.first("to"),) if "," not in text]
    kind = merged.first("feedback-type").lower()
    reports = tuple(
        Report(outcome="complained", recipient=text, diagnostic=kind) for text in named[:_MOST_RECIPIENTS]
    )
    return kind, reports or (Report(outcome="complained", diagnostic=kind),)


def returned_ids(entities: Sequence[Entity], text: str) -> tuple[str, ...]:
    """Return the raw id fields of mails that stand in reports: of returned mails, their headers, or lines of
    text.
    """
    found: list[str] = []
    for entity in entities:
        if entity.enclosed:
            found += _ids(entity.fields)
        elif entity.media_type in ("text/rfc822-headers", "text/rfc822-header", "message/global-headers"):
            for block in _blocks(entity):
                found += _ids(block)
        elif entity.media_type.startswith("message/") and not entity.children:
            for block in _blocks(entity):
                found += [*block.every("original-message-id"), *block.every("message-id")]
    found += _NAMED_ID.findall(text[:_MOST_TEXT]) + _REFERENCE_ID.findall(text[:_MOST_TEXT])
    return tuple(dict.fromkeys(value.strip() for value in found if value.strip()))[:_MOST_RECIPIENTS]


def _ids(found: Fields) -> list[str]:
    names = (
        "message-id",
        "x-microsoft-original-message-id",
        "x-google-original-message-id",
        "references",
        "in-reply-to",
    )
    return [text for name in names for text in found.every(name)]


def is_late(text: str) -> bool:
    """Return whether a notice only says that delivery takes longer."""
    return _LATE.search(text[:4000]) is not None


def plain(text: str, failed: Sequence[str]) -> tuple[Report, ...]:
    """Return reports read out of a bounce's words; `failed` are recipients its header fields name."""
    text = text[:_MOST_TEXT]
    top = re.split(
        r"\n[^\n]{0,40}(?:original message|header of the|returned message|below this line)",
        text,
        maxsplit=1,
        flags=re.IGNORECASE,
    )[0]
    named = [*failed, *(one or other for one, other in _RECIPIENT.findall(top)), *_by_detectors(text)]
    recipients = list(dict.fromkeys(address.strip(".").lower() for address in named))[:_MOST_RECIPIENTS]
    status = _status(top)
    code = _REPLY_CODE.search(top)
    action = "failed" if not is_late(top) or _FOR_GOOD.search(top) else "delayed"
    shown = status or (f"{code[1]}.0.0" if code else "")
    found = outcome(action, shown, top)
    diagnostic = " ".join(top.split())[:1000]
    return tuple(
        Report(outcome=found, recipient=address, status=status, diagnostic=diagnostic)
        for address in recipients or [""]
    )


def _by_detectors(text: str) -> list[str]:
    """Return the addresses flufl.bounce finds; its detectors raise on odd mail."""
    mail = Message()
    mail["From"] = "mailer-daemon@localhost"  # one detector fails on mail without
    mail["Content-Type"] = "text/plain"
    mail.set_payload(
        "\n".join(line[:500] for line in text[:8192].split("\n")).encode("ascii", "replace").decode()
    )
    try:
        temporary, permanent = all_failures(mail)
    except (AssertionError, AttributeError, IndexError, KeyError, LookupError, TypeError, ValueError):
        return []
    return sorted(address.decode("ascii", "replace") for address in temporary | permanent)
