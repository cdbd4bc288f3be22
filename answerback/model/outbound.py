"""A mail that goes out, and what its hand-over came to."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum

from answerback.model.inbound import Address
from answerback.model.scope import value


@value
class Attachment:
    """A file we send."""

    filename: str
    media_type: str
    content: bytes = field(repr=False)


@value
class Draft:
    """Everything an outgoing mail says; `write` turns it into octets."""

    #: `<token@domain>`, minted before the message is stored
    message_id: str
    sender: Address
    to: tuple[Address, ...]
    subject: str
    text: str
    date: datetime
    cc: tuple[Address, ...] = ()
    reply_to: str = ""
    html: str | None = None
    attachments: tuple[Attachment, ...] = ()
    in_reply_to: str = ""
    references: tuple[str, ...] = ()
    #: value of Auto-Submitted, "" for none
    auto_submitted: str = ""


@value
class Envelope:
    """Octets and who they go to, as SMTP knows it."""

    octets: bytes = field(repr=False)
    return_path: str
    recipients: tuple[str, ...]


class Outcome(StrEnum):
    """What handing over to one recipient's server came to."""

    SENT = "sent"
    DEFERRED = "deferred"
    FAILED = "failed"
    UNKNOWN = "unknown"


@value
class RecipientResult:
    """The server's word on one recipient."""

    outcome: Outcome
    #: SMTP reply code, 0 where there was none
    code: int = 0
    text: str = ""


@value
class Receipt:
    """What a channel says after a hand-over: one result per recipient of the envelope."""

    results: dict[str, RecipientResult]
    #: the id the provider gave instead of ours, "" where it gave none
    provider_id: str = ""


class OutboxState(StrEnum):
    """Where one recipient's copy stands on its way out."""

    QUEUED = "queued"
    HANDING_OVER = "handing_over"
    SENT = "sent"
    DEFERRED = "deferred"
    FAILED = "failed"
    UNKNOWN = "unknown"
    WITHDRAWN = "withdrawn"
