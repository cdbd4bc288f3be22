"""Reads one mail from its octets: who wrote it, what kind it is, what the author wrote, what came along."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256

from answerback.channels.mail import absence, automatic, calendars, fields, mime, quotes, reports
from answerback.channels.mail.content import MOST_LINES, MOST_TEXT, Content, content
from answerback.channels.mail.fields import Fields, TooLarge
from answerback.channels.mail.mailboxes import mailboxes
from answerback.channels.mail.mime import Entity
from answerback.model import Address, Inbound, InboundKind, Part, PartKind

_SPOKEN = (PartKind.REPLY, PartKind.INLINE)
#: unreadable for another reason than what the split leaves: a second split changes nothing
_SETTLED = frozenset({"encrypted", "signed_opaque", "too_large", "unparsable"})
_VIA = re.compile(r"\bvia\b|\bpor medio de\b|\büber\b", re.IGNORECASE)


def read(raw: bytes) -> Inbound:
    """Return the mail as far as it can be read; never raises.

    `unreadable` says why no words of a person could be read: `too_large` beyond the bounds of `mime` and
    `fields`, `unparsable` where reading failed, and then all headers that could be had are there.
    """
    try:
        entities = mime.parse(raw)
    except TooLarge:
        return _headers_only(raw, "too_large")
    try:
        return _inbound(raw, entities)
    except Exception:  # noqa: BLE001 - the edge to strangers' octets: the mail goes to a person, never away
        return _headers_only(raw, "unparsable")


def resplit(inbound: Inbound, sent: Sequence[str]) -> Inbound:
    """Return the mail with its parts decided anew, knowing the texts we sent in its conversation."""
    kept = tuple(part for part in inbound.parts if _is_apart(part))
    parts = quotes.split(inbound.text, sent) + kept
    if inbound.unreadable in _SETTLED:
        return replace(inbound, parts=parts)
    pictured = inbound.unreadable == "image_only"
    return replace(inbound, parts=parts, unreadable=_unreadable(parts, pictured=pictured))


def _is_apart(part: Part) -> bool:
    """Return whether a part does not stem from the split of the text."""
    return (
        part.kind in (PartKind.ATTACHMENT, PartKind.SUSPECT, PartKind.CHOICE)
        or part.media_type == "message/rfc822"
    )


def _headers_only(raw: bytes, reason: str) -> Inbound:
    try:
        found, _ = fields.split(raw[: fields.MOST_OCTETS], 0, min(len(raw), fields.MOST_OCTETS))
    except TooLarge:
        found = Fields()
    return replace(_addressed(found), unreadable=reason, body_hash=sha256(raw).hexdigest())


def _addressed(found: Fields) -> Inbound:
    """Return what the header fields say by themselves."""
    senders = mailboxes(found.every("from"))
    parent = found.first("in-reply-to") or found.first("x-ms-exchange-parent-message-id")
    rewritten = mailboxes(found.every("x-original-from") + found.every("x-original-sender"))
    reply_to = mailboxes(found.every("reply-to"))
    via = any(_VIA.search(address.name) for address in senders) and bool(rewritten or reply_to)
    listed = found.has("list-id", "list-post") or via
    behind = rewritten + mailboxes(found.every("sender")) + (reply_to if via else ())
    return Inbound(
        kind=InboundKind.MESSAGE,
        message_id=found.first("message-id"),
        in_reply_to=" ".join(found.every("in-reply-to")) or parent,
        references=" ".join(found.every("references")),
        senders=senders,
        on_behalf=_without(behind, senders),
        to=mailboxes(found.every("to")),
        cc=mailboxes(found.every("cc")),
        reply_to=reply_to,
        subject=fields.decoded(found.first("subject"))[:2000],
        date=_date(found.first("date")),
        through_list=listed,
        received_count=len(found.every("received")),
    )


def _without(addresses: Sequence[Address], known: Sequence[Address]) -> tuple[Address, ...]:
    seen = {address.email.lower() for address in known}
    found = []
    for address in addresses:
        if address.email.lower() not in seen:
            seen.add(address.email.lower())
            found.append(address)
    return tuple(found)


def _date(text: str) -> datetime | None:
    try:
        found = parsedate_to_datetime(text[:100])
        found.astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError, AttributeError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _inbound(raw: bytes, entities: list[Entity]) -> Inbound:
    found, said = entities[0].fields, content(entities)
    text = "\n".join(said.text[:MOST_TEXT].split("\n", MOST_LINES)[:MOST_LINES]).strip("\n")
    split = quotes.split(text)
    parts = (*split, *said.forwarded, *_suspect(said), *said.attachments)
    inbound = replace(
        _addressed(found),
        text=text,
        parts=parts,
        removed=said.removed,
        body_hash=_hash(text, said, raw, entities[0]),
    )
    reason = said.sealed if said.sealed and not _speaks(parts) else ""
    reason = reason or ("too_large" if said.is_too_long else _unreadable(parts, pictured=said.pictured))
    return _natured(replace(inbound, unreadable=reason), entities, found)


def _suspect(said: Content) -> tuple[Part, ...]:
    return tuple(Part(kind=PartKind.SUSPECT, text=text[:MOST_TEXT]) for text in said.suspect)


def _natured(inbound: Inbound, entities: Sequence[Entity], found: Fields) -> Inbound:
    """Return the mail with its kind: reports first, then what only looks like a person's answer."""
    nature = automatic.report(entities) or automatic.plain_bounce(
        found, inbound.senders, inbound.subject, inbound.text
    )
    if nature is not None:
        returned = reports.returned_ids(entities, inbound.text)
        return replace(inbound, kind=nature.kind, reports=nature.reports, returned_ids=returned)
    dated = calendars.calendar(entities, inbound.senders)
    if dated is not None:
        return replace(inbound, kind=dated[0], partstat=dated[1])
    written = inbound.reply_text or inbound.text
    nature = automatic.reaction(entities, inbound.parts) or automatic.answering_machine(
        found, inbound.subject, written
    )
    if nature is not None:
        away = nature.kind is InboundKind.OUT_OF_OFFICE
        back = absence.return_date(found, f"{written}\n{inbound.subject}", inbound.date) if away else None
        return replace(inbound, kind=nature.kind, emoji=nature.emoji, return_date=back)
    forward = automatic.is_forward(inbound.subject, inbound.parts)
    return replace(inbound, kind=InboundKind.FORWARD) if forward else inbound


def _speaks(parts: Sequence[Part]) -> bool:
    return any(
        part.kind in _SPOKEN and any(char.isalnum() or ord(char) > 0x2000 for char in part.text)
        for part in parts
    )


def _unreadable(parts: Sequence[Part], *, pictured: bool) -> str:
    """Return why the author's words can not be read; "" where there are some, if only a sign such as 👍."""
    if _speaks(parts):
        return ""
    kinds = {part.kind for part in parts}
    if PartKind.SUSPECT in kinds:
        return "suspect_only"
    if kinds & {PartKind.QUOTED, PartKind.FORWARDED}:
        return "quote_only"
    files = [part for part in parts if part.kind is PartKind.ATTACHMENT]
    return (
        "image_only" if pictured and all(part.media_type.startswith("image/") for part in files) else "empty"
    )


def _hash(text: str, said: Content, raw: bytes, root: Entity) -> str:
    """Return the hash of what the author wrote and attached, equal for copies of one mail."""
    digest = sha256(" ".join(text.split()).encode("utf-8", "replace"))
    for part in said.attachments:
        digest.update(b"\0" + part.sha256.encode())
    if not text and not said.attachments:
        digest.update(raw[root.start : root.end].strip())
    return digest.hexdigest()
