"""Puts an inbound message where it belongs: into its conversation, the mailbox, or a resolution."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from answerback.channels.mail.read import read, resplit
from answerback.errors import BadRequest, NotFound
from answerback.gateway import advance, delivery
from answerback.model import (
    OPEN_STATES,
    Address,
    Conversation,
    Inbound,
    InboundKind,
    Json,
    Message,
    Received,
    Resolution,
    Review,
    Timing,
    Trust,
    Waitpoint,
    WaitState,
    value,
)
from answerback.store import conversations, inbound, tenants, waitpoints
from answerback.store import waits as waiting
from answerback.threading import refs
from answerback.waits import events
from answerback.waits.addresses import canonical, responder_of

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
        "evidence": evidence(received, mail, place),
        "unreadable": mail.unreadable,
        "partstat": mail.partstat,
    }
    message = replace(message, content=content)
    conversations.add_message(work.tx, work.scope, message)
    if message.rfc_id:
        conversations.remember_ids(
            work.tx, work.scope, message.id, [(refs.normalise(message.rfc_id), "received")]
        )
    return message


def evidence(received: Received, mail: Inbound, place: Place) -> Json:
    """Return what is known of who wrote a mail: claims only, until proof of origin is made."""
    return {
        "header_from": [sender.email for sender in mail.senders],
        "envelope_from": received.mail_from,
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


def resolve(work: Work, message: Message, waitpoint: Waitpoint, responder: str, timing: Timing) -> None:
    """Let a message close a waitpoint: one resolution, one mailbox row, and the wait ends as replied."""
    author = author_of(message)
    evidence_of = message.content["evidence"]
    assert isinstance(evidence_of, dict)
    resolution = Resolution(
        waitpoint_id=waitpoint.id,
        message_id=message.id,
        responder=responder,
        author=author,
        channel="email",
        evidence_level="channel_claim",
        trust=message.trust or TRUST,
        timing=timing,
        responded_at=message.at,
        evidence=evidence_of,
    )
    advance.resolve(work, resolution, cause={"message_id": message.id})
    first = next((part["id"] for part in _shown(message) if part["kind"] in ("reply", "inline")), None)
    data = facts(message, timing) | {
        "waitpoint_id": waitpoint.id,
        "correlation_key": waitpoint.correlation_key,
        "outcome": "resolved",
        "responder": author,
        "subject_digest": waitpoint.subject_digest,
        "response": {"part": first},
    }
    delivery.tell(work, [waitpoint.waiter], "waitpoint.resolved" + SUFFIX[message.trust or TRUST], data)


def author_of(message: Message) -> str:
    """Return who a message claims to be from, as responders are compared."""
    return f"email:{canonical(message.sender.email)}"


def _shown(message: Message) -> list[Json]:
    shown = message.content["shown"]
    assert isinstance(shown, list)
    return shown


def match_early(work: Work, waitpoint: Waitpoint) -> None:
    """Resolve a waitpoint just opened by a reply to its message that came before it and that none used."""
    row = waiting.wait_of(work.tx, work.scope, waitpoint.conversation_id)
    if row and row.wait.state is WaitState.PAUSED:
        return
    for message in conversations.messages(work.tx, work.scope, waitpoint.conversation_id):
        answers = message.direction == "in" and message.parent_id == waitpoint.message_id
        if not answers or message.kind != InboundKind.MESSAGE or message.content.get("unreadable"):
            continue
        responder = responder_of(author_of(message), waitpoint.responders)
        if responder and not waitpoints.answered(work.tx, work.scope, message.id):
            resolve(work, message, waitpoint, responder, Timing.EARLY)
            return


def message_under_review(work: Work, review: Review, conversation_id: str) -> Message | None:
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
        return conversations.message(work.tx, work.scope, review.message_id)
    received = inbound.received(work.tx, work.scope, review.received_id)
    if received is None:
        return None
    mail = read(received.octets)
    target = conversation_id or new_conversation(work, received, mail).id
    mail = resplit(mail, conversations.sent_texts(work.tx, work.scope, target))
    message = store(work, received, mail, Place(conversation_id=target, matched_by="person"))
    inbound.settle(work.tx, work.scope, received.id, "processed", "decided", message.id)
    return message


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


def decided_answer(work: Work, message: Message, waitpoint_id: str, by: str) -> None:
    """Let a message answer a waitpoint because a person says so; its author becomes a responder by that.

    Raises:
        NotFound, BadRequest: there is no such open waitpoint in the message's conversation.
    """
    open_ones = [
        one
        for one in waitpoints.waitpoints_of(work.tx, work.scope, message.conversation_id)
        if one.state in OPEN_STATES and (not waitpoint_id or one.id == waitpoint_id)
    ]
    if len(open_ones) != 1:
        problem = "name one open waitpoint of the message's conversation"
        raise BadRequest(field="waitpoint_id", problem=problem)
    author = author_of(message)
    if author not in open_ones[0].responders:
        waitpoints.add_responder(work.tx, work.scope, open_ones[0].id, author)
    row = waiting.wait_for(work.tx, work.scope, open_ones[0].id)
    abandoned = row is not None and row.wait.state is WaitState.ABANDONED
    resolve(work, message, open_ones[0], author, Timing.AFTER_ABANDON if abandoned else Timing.ON_TIME)
    if row and not row.waitpoint_id:
        advance.advance(work, row.id, events.Replied(), cause={"message_id": message.id, "by": by})
