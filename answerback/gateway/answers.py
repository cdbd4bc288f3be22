"""Puts an inbound message where it belongs: into its conversation, the mailbox, or a resolution."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from answerback.channels.mail.read import read, resplit
from answerback.errors import BadRequest, NotFound
from answerback.gateway import advance, delivery
from answerback.gateway.questions import responder_name
from answerback.model import (
    OPEN_STATES,
    Address,
    Conversation,
    Inbound,
    Json,
    Message,
    Received,
    Resolution,
    Review,
    Timing,
    Trust,
    WaitState,
    value,
)
from answerback.store import conversations, inbound, tenants, waitpoints
from answerback.store import waits as waiting
from answerback.threading import refs
from answerback.waits.judgement import Answers

if TYPE_CHECKING:
    from answerback.gateway.context import Work

#: no proof of origin is made yet, so no mail is more than this (said in every event)
TRUST, TRUST_REASON = Trust.UNAUTHENTICATED, "not_checked"
SUFFIX = {Trust.AUTHENTICATED: "", Trust.UNAUTHENTICATED: ".unauthenticated", Trust.SPAM: ".spam"}


@value
class Place:
    """Where a message belongs and how that is known."""

    conversation_id: str
    parent_id: str = ""
    matched_by: str = ""


def store(work: Work, received: Received, mail: Inbound, place: Place) -> Message:
    """Store a read mail as a message of a conversation, with its parts as an agent gets them."""
    number = work.context.draw()
    sender = mail.senders[0] if mail.senders else Address(email=received.mail_from)
    message = Message(
        id=work.context.new_id("msg"),
        conversation_id=place.conversation_id,
        direction="in",
        kind=str(mail.kind),
        subject=mail.subject,
        sender=sender,
        at=received.at,
        rfc_id=next(iter(refs.extract(mail.message_id)), ""),
        parent_id=place.parent_id,
        trust=TRUST,
        body_hash=mail.body_hash,
        received_id=received.id,
    )
    # The boundary is unknown to the sender and stays the same at every redelivery.
    nonce = f"u{number:016x}{work.context.draw():016x}"
    content: Json = {
        "shown": delivery.parts(work.context, message, mail.parts, nonce),
        "hidden": {
            "removed": sum(one.count for one in mail.removed),
            "reasons": sorted({one.technique for one in mail.removed}),
        },
        "evidence": evidence(work, received, mail, place),
        "partstat": mail.partstat,
        "read": {
            "authors": [responder_name(one.email) for one in mail.senders],
            "unreadable": mail.unreadable,
            "through_list": mail.through_list,
        },
    }
    message = replace(message, content=content)
    conversations.add_message(work.tx, work.scope, message)
    if message.rfc_id:
        conversations.remember_ids(
            work.tx, work.scope, message.id, [(refs.normalise(message.rfc_id), "received")]
        )
    return message


def evidence(work: Work, received: Received, mail: Inbound, place: Place) -> Json:
    """Return what is known of who wrote a mail: claims only, until proof of origin is made."""
    return {
        "header_from": [delivery.redacted(work.context, sender.email) for sender in mail.senders],
        "envelope_from": delivery.redacted(work.context, received.mail_from),
        "authentication": {"result": TRUST_REASON},
        "matched_by": place.matched_by or None,
        "raw_sha256": received.identity,
    }


def facts(message: Message, timing: Timing | None) -> Json:
    """Return what an event says about an inbound message, its parts included."""
    known: Json = {
        "conversation_id": message.conversation_id,
        "message_id": message.id,
        "kind": message.kind,
        "channel": "email",
        "evidence_level": "channel_claim",
        "trust_label": str(message.trust),
        "trust_reason": TRUST_REASON,
        "evidence": message.content["evidence"],
        "parts": message.content["shown"],
        "hidden": message.content["hidden"],
    }
    if message.content.get("partstat"):
        known["partstat"] = message.content["partstat"]
    return known | ({"timing": str(timing)} if timing else {})


def deliver(work: Work, message: Message, *, timing: Timing | None = None, data: Json | None = None) -> None:
    """Put a message into its agent's mailbox as `message.received`."""
    conversation = conversations.conversation(work.tx, work.scope, message.conversation_id)
    assert conversation is not None
    event = "message.received" + SUFFIX[message.trust or TRUST]
    known = (
        facts(message, timing) | {"subject": delivery.redacted(work.context, message.subject)} | (data or {})
    )
    delivery.tell(work, [f"agent:{conversation.agent_id}"], event, known)


def resolve(
    work: Work, message: Message, answer: Answers, *, admit: bool = False, cause: Json | None = None
) -> None:
    """Let a message close a waitpoint: one resolution, one mailbox row, and the wait ends as replied.

    With `admit` its author becomes a responder by that: a person said so.
    """
    waitpoint, timing, author = answer.waitpoint, answer.timing, responder_name(message.sender.email)
    evidence_of = message.content["evidence"]
    assert isinstance(evidence_of, dict)
    resolution = Resolution(
        waitpoint_id=waitpoint.id,
        message_id=message.id,
        responder=answer.responder,
        author=author,
        channel="email",
        evidence_level="channel_claim",
        trust=message.trust or TRUST,
        timing=timing,
        responded_at=message.at,
        evidence=evidence_of,
    )
    caused = {"message_id": message.id} | (cause or {})
    advance.resolve(work, resolution, admit=admit, cause=caused)
    first = next((part["id"] for part in _shown(message) if part["kind"] in ("reply", "inline")), None)
    data = facts(message, timing) | {
        "waitpoint_id": waitpoint.id,
        "correlation_key": waitpoint.correlation_key,
        "outcome": "resolved",
        "responder": delivery.redacted(work.context, author),
        "subject_digest": waitpoint.subject_digest,
        "response": {"part": first},
    }
    delivery.tell(work, [waitpoint.waiter], "waitpoint.resolved" + SUFFIX[message.trust or TRUST], data)


def _shown(message: Message) -> list[Json]:
    shown = message.content["shown"]
    assert isinstance(shown, list)
    return shown


def read_received(received: Received) -> Inbound:
    """Return a stored mail as it is read: its return path on top, as in delivered mail (RFC 5321 4.4)."""
    path = received.mail_from.encode("utf-8", "replace")
    return read(b"Return-Path: <" + path + b">\r\n" + received.octets)


def message_under_review(work: Work, review: Review, conversation_id: str) -> Message:
    """Return the message a review is about, stored or moved into the conversation a person named.

    A mail that joined no conversation is read again from its octets; without a named conversation it
    starts one of its own.

    Raises:
        NotFound: the conversation is not there.
    """
    if conversation_id and not conversations.conversation(work.tx, work.scope, conversation_id):
        raise NotFound(kind="conversation", id=conversation_id)
    if review.message_id:
        if conversation_id:
            conversations.move_message(work.tx, work.scope, review.message_id, conversation_id)
        message = conversations.message(work.tx, work.scope, review.message_id)
        assert message is not None
        return message
    received = inbound.received(work.tx, work.scope, review.received_id)
    assert received is not None
    mail = read_received(received)
    target = conversation_id or new_conversation(work, received, mail).id
    mail = resplit(mail, conversations.sent_texts(work.tx, work.scope, target))
    return store(work, received, mail, Place(conversation_id=target, matched_by="person"))


def preview(work: Work, received_id: str) -> Json:
    """Return what a mail that belongs nowhere yet says, for the person who decides."""
    received = inbound.received(work.tx, work.scope, received_id)
    assert received is not None
    mail = read_received(received)
    return {
        "subject": delivery.redacted(work.context, mail.subject),
        "sender": delivery.redacted(work.context, ", ".join(one.email for one in mail.senders)),
        "kind": str(mail.kind),
        "parts": [
            {
                "kind": str(part.kind),
                "filename": delivery.redacted(work.context, part.filename),
                "text": delivery.redacted(work.context, part.text),
            }
            for part in mail.parts
        ],
    }


def new_conversation(work: Work, received: Received, mail: Inbound) -> Conversation:
    """Start the conversation of a mail that belongs to none."""
    inbox = tenants.inbox(work.tx, work.scope, received.inbox_id)
    assert inbox is not None
    conversation = Conversation(
        id=work.context.new_id("cnv"),
        inbox_id=inbox.id,
        agent_id=inbox.agent_id,
        subject=mail.subject,
        created_at=received.at,
    )
    conversations.add_conversation(work.tx, work.scope, conversation)
    return conversation


def decided_answer(work: Work, message: Message, waitpoint_id: str, cause: Json) -> None:
    """Let a message answer a waitpoint because a person says so; its author becomes a responder by that.

    Raises:
        BadRequest: there is no such open waitpoint in the message's conversation.
    """
    open_ones = [
        one
        for one in waitpoints.waitpoints_of(work.tx, work.scope, message.conversation_id)
        if one.state in OPEN_STATES and (not waitpoint_id or one.id == waitpoint_id)
    ]
    if len(open_ones) != 1:
        problem = "name one open waitpoint of the message's conversation"
        raise BadRequest(field="waitpoint_id", problem=problem)
    row = waiting.wait_for(work.tx, work.scope, open_ones[0].id)
    abandoned = row is not None and row.wait.state is WaitState.ABANDONED
    answer = Answers(
        waitpoint=open_ones[0],
        responder=responder_name(message.sender.email),
        timing=Timing.AFTER_ABANDON if abandoned else Timing.ON_TIME,
    )
    resolve(work, message, answer, admit=True, cause=cause)
