"""What the store keeps and hands out: one value per kind of row."""

from __future__ import annotations

from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Literal

from answerback.model.inbound import Address, Trust
from answerback.model.outbound import OutboxState
from answerback.model.scope import Json, Scope, value
from answerback.model.waiting import Wait


@value
class Agent:
    """A software agent that writes from its inboxes and reads its mailbox."""

    id: str
    name: str
    #: who answers for it, a principal such as `person:ops`
    owner: str
    identity_ref: str
    state: Literal["active", "suspended", "deleted"] = "active"


@value
class Inbox:
    """One address an agent writes from and is answered at."""

    id: str
    agent_id: str
    address: str
    channel: str = "email"
    display_name: str = ""
    #: the host delivers local+anything@domain to this inbox
    sub_addresses: bool = True
    external: Literal["refuse", "verified", "all"] = "refuse"
    #: IANA zone and ISO 3166 country the inbox's recipients are assumed to live in
    zone: str = ""
    country: str = ""


@value
class Contact:
    """An outside person: addresses, time zone, country."""

    id: str
    name: str
    addresses: tuple[str, ...]
    zone: str = ""
    country: str = ""
    #: what differs from the usual week:
    #: {"workdays": [1, …, 7], "holidays": ["2026-12-24"], "window": ["09:00", "17:00"]}
    hours: Json = field(default_factory=dict)


@value
class ApiKey:
    """A credential of one environment; the secret itself is never stored."""

    id: str
    scope: Scope
    name: str
    scopes: tuple[str, ...]
    created_at: datetime
    #: the agent it speaks for, "" for an owner's or operator's key
    agent_id: str = ""
    revoked_at: datetime | None = None


@value
class Suppression:
    """An address we do not write to again."""

    address: str
    reason: Literal["bounce", "complaint", "opt_out", "manual"]
    created_at: datetime
    channel: str = "email"


@value
class Conversation:
    """One exchange on one channel, threaded by ids."""

    id: str
    inbox_id: str
    agent_id: str
    subject: str
    created_at: datetime
    channel: str = "email"


@value
class Message:
    """One stored item of a conversation, inbound or outbound."""

    id: str
    conversation_id: str
    direction: Literal["in", "out"]
    #: inbound: an InboundKind; outbound: original, nudge, escalation, notice
    kind: str
    subject: str
    sender: Address
    at: datetime
    #: the Message-ID with its brackets, "" where the mail had none
    rfc_id: str = ""
    #: the message of ours or theirs this one answers
    parent_id: str = ""
    trust: Trust | None = None
    #: inbound: {"parts": […], "removed": […], …}; outbound: {"text", "html", "to", "cc", "attachments"}
    content: Json = field(default_factory=dict)
    #: inbound: hash of the author content; outbound: ""
    body_hash: str = ""
    #: inbound: the stored octets it was read from
    received_id: str = ""
    #: nudge: the wait it was made by, and its number from 1
    wait_id: str = ""
    nudge_number: int | None = None


@value
class Received:
    """Octets as they came, before anything was thought about them."""

    id: str
    scope: Scope
    inbox_id: str
    #: what makes the same mail the same: for SMTP the sha256 of the octets as received
    identity: str
    octets: bytes = field(repr=False)
    mail_from: str
    recipient: str
    at: datetime
    #: starts of the server that found it still unprocessed
    attempts: int = 0


@value
class OutboxRow:
    """One recipient's copy of an outbound message on its way out."""

    scope: Scope
    message_id: str
    recipient: str
    state: OutboxState
    attempts: int = 0
    next_attempt_at: datetime | None = None
    code: int = 0
    text: str = ""
    #: what later reports said: delivered, delayed, bounced, complained; "" for nothing
    reported: str = ""


class ItemState(StrEnum):
    """Where a mailbox item stands."""

    READY = "ready"
    LEASED = "leased"
    ACKED = "acked"
    DEAD = "dead"


@value
class MailboxItem:
    """One numbered fact in a mailbox."""

    sequence: int
    event_id: str
    type: str
    #: the stored envelope, byte for byte what every redelivery shows
    envelope: str
    state: ItemState
    #: times it was leased
    attempts: int = 0
    lease_id: str = ""
    lease_until: datetime | None = None


@value
class Review:
    """An item a person decides."""

    id: str
    #: ambiguous, unknown_responder, empty, sender_match, unprocessable, submission_unknown, …
    reason: str
    created_at: datetime
    conversation_id: str = ""
    message_id: str = ""
    received_id: str = ""
    wait_id: str = ""
    #: candidates and the evidence for each
    details: Json = field(default_factory=dict)
    decision: str = ""
    decided_by: str = ""
    decided_at: datetime | None = None


@value
class WaitRow:
    """A stored wait: what the machine decides on, and where it belongs."""

    id: str
    conversation_id: str
    #: the schedule version it keeps, whatever is stored later under that name
    schedule_name: str
    schedule_version: int
    wait: Wait
    #: the last change, an instant
    updated_at: datetime
    #: "" where the wait follows no waitpoint
    waitpoint_id: str = ""


@value
class Remembered:
    """What a finished request with an Idempotency-Key was answered."""

    #: HTTP status
    status: int
    body: str
