"""A mail that came in, as read from its octets."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from answerback.model.scope import value


class PartKind(StrEnum):
    """What a piece of an inbound message is."""

    REPLY = "reply"
    INLINE = "inline"
    QUOTED = "quoted"
    SIGNATURE = "signature"
    FORWARDED = "forwarded"
    SUSPECT = "suspect"
    ATTACHMENT = "attachment"
    CHOICE = "choice"


class InboundKind(StrEnum):
    """What an inbound message is, as far as its own octets tell.

    `message` is a person's mail; whether it is a reply depends on the conversation it joins.
    """

    MESSAGE = "message"
    FORWARD = "forward"
    AUTO_REPLY = "auto_reply"
    OUT_OF_OFFICE = "out_of_office"
    CHALLENGE = "challenge"
    BOUNCE = "bounce"
    DELAY_NOTICE = "delay_notice"
    DELIVERY_NOTICE = "delivery_notice"
    COMPLAINT = "complaint"
    READ_RECEIPT = "read_receipt"
    CALENDAR_RESPONSE = "calendar_response"
    CALENDAR_INVITE = "calendar_invite"
    REACTION = "reaction"


class Trust(StrEnum):
    """How far the claimed sender is proven."""

    AUTHENTICATED = "authenticated"
    UNAUTHENTICATED = "unauthenticated"
    SPAM = "spam"
    BLOCKED = "blocked"


@value
class Address:
    """One mailbox of a mail header: `email` is local@domain as written, `name` the display name."""

    email: str
    name: str = ""


@value
class Part:
    """A typed piece of an inbound message; its text is untrusted, always."""

    kind: PartKind
    text: str = ""
    #: quoted and forwarded text: does it match something we sent? None where it was not compared
    known: bool | None = None
    #: inline: the quoted line this text answers
    answers: str = ""
    filename: str = ""
    media_type: str = ""
    #: attachments: octets after decoding
    size: int = 0
    sha256: str = ""


@value
class Report:
    """What a delivery, complaint or receipt report says about one recipient of ours."""

    outcome: Literal["hard", "soft", "delayed", "delivered", "complained"]
    #: the recipient the report names, as written; empty where it names none
    recipient: str = ""
    #: enhanced status code (RFC 3463), e.g. 5.1.1
    status: str = ""
    diagnostic: str = ""


@value
class Removed:
    """Hidden text that was taken out: the technique and how often."""

    technique: str
    count: int


@value
class Inbound:
    """One mail as read from its octets; every string in it was written by a stranger."""

    kind: InboundKind
    #: raw value of the Message-ID header, "" where absent
    message_id: str = ""
    #: raw values of In-Reply-To, References and kindred headers, in the order of the mail
    in_reply_to: str = ""
    references: str = ""
    #: raw id headers of mails returned inside reports (Message-ID first)
    returned_ids: tuple[str, ...] = ()
    #: every mailbox of every From field
    senders: tuple[Address, ...] = ()
    #: Sender, X-Original-From and the like: who else may have written it, never trusted
    on_behalf: tuple[Address, ...] = ()
    to: tuple[Address, ...] = ()
    cc: tuple[Address, ...] = ()
    reply_to: tuple[Address, ...] = ()
    subject: str = ""
    #: the Date header, aware; None where missing or unreadable
    date: datetime | None = None
    #: the author's visible text, history still in it
    text: str = ""
    parts: tuple[Part, ...] = ()
    reports: tuple[Report, ...] = ()
    #: out of office: the instant or day the person is back, aware
    return_date: datetime | None = None
    #: calendar_response: accepted, declined or tentative
    partstat: str = ""
    #: reaction: the emoji
    emoji: str = ""
    #: came through a mailing list or group (List-Id, rewritten From)
    through_list: bool = False
    #: number of Received fields: more than 25 is a loop
    received_count: int = 0
    #: hash of the decoded author content, trace headers apart: equal for copies of one mail
    body_hash: str = ""
    removed: tuple[Removed, ...] = ()
    #: why no words of a person could be read ("encrypted", "empty", "quote_only", "image_only",
    #: "suspect_only", "too_large", "unparsable"); "" where they could
    unreadable: str = ""

    @property
    def reply_text(self) -> str:
        """The words the author wrote now: `reply` and `inline` parts joined by a newline."""
        spoken = (PartKind.REPLY, PartKind.INLINE)
        return "\n".join(part.text for part in self.parts if part.kind in spoken)
