"""Reads from a calendar part whether it invites or answers, and how."""

from __future__ import annotations

from collections.abc import Sequence

from answerback.channels.mail import fields
from answerback.channels.mail.mime import Entity
from answerback.model import Address, InboundKind

_MOST = 64 * 1024
_ANSWERS = {"accepted": "accepted", "declined": "declined", "tentative": "tentative"}


def calendar(entities: Sequence[Entity], senders: Sequence[Address]) -> tuple[InboundKind, str] | None:
    """Return the kind of a calendar mail (RFC 5546) and the sender's PARTSTAT, None where it is none.

    Only a text/calendar part that names its method counts; a calendar file beside a letter is a file.
    """
    for entity in entities:
        method = entity.parameters.get("method", "").upper()
        if (
            entity.media_type != "text/calendar"
            or entity.enclosed
            or not method
            or entity.disposition == "attachment"
        ):
            continue
        if method in ("REPLY", "COUNTER"):
            return InboundKind.CALENDAR_RESPONSE, _partstat(entity, senders)
        if method in ("REQUEST", "CANCEL", "ADD", "PUBLISH"):
            return InboundKind.CALENDAR_INVITE, ""
    return None


def _partstat(entity: Entity, senders: Sequence[Address]) -> str:
    """Return what the sender's ATTENDEE line says, else what the first does."""
    text = entity.text()[:_MOST].replace("\n ", "").replace("\n\t", "")
    lines = [line for line in text.split("\n") if line.upper().startswith("ATTENDEE")]
    emails = {address.email.lower() for address in senders}
    own = [line for line in lines if line.lower().rpartition("mailto:")[2].strip() in emails]
    for line in own or lines:
        _, named = fields.parameters(line.rpartition(":mailto:")[0] or line.rpartition(":MAILTO:")[0] or line)
        return _ANSWERS.get(named.get("partstat", "").lower(), "")
    return ""
