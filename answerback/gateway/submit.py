"""Takes what an agent wants to send or ask and stores everything about it in one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from answerback.errors import KeyInUse, NotFound
from answerback.gateway import advance, calendars, checks, facts, outgoing
from answerback.model import (
    ENDED,
    OPEN_STATES,
    Address,
    Conversation,
    Inbox,
    Json,
    Message,
    Waitpoint,
    WaitpointState,
)
from answerback.store import conversations, inbound, tenants, waitpoints
from answerback.store import waits as waiting

if TYPE_CHECKING:
    from answerback.gateway.context import Caller, Work


def send(work: Work, caller: Caller, mail: checks.Mail) -> Json:
    """Queue a mail that expects no answer and return its ids.

    Raises:
        BadAddress, BadRequest, NotFound, Suppressed, NoRelay: nothing was stored.
    """
    inbox = checks.ready_inbox(work, caller, mail)
    message = _store(work, caller, inbox, checks.checked(work.tx, work.scope, mail))
    return {"result": "queued", "message_id": message.id, "conversation_id": message.conversation_id}


def ask(work: Work, caller: Caller, mail: checks.Mail, question: checks.Question) -> Json:
    """Queue a mail and open the waitpoint that waits for its answer, all in the caller's transaction.

    Asking again with the same key and the same content returns the first ids and sends nothing.

    Raises:
        BadAddress, BadRequest, UnknownSchedule, DeadlineInThePast, DeadlineTooFar, KeyInUse,
        NotFound, Suppressed, NoRelay: nothing was stored.
    """
    inbox = checks.ready_inbox(work, caller, mail)
    mail = checks.checked(work.tx, work.scope, mail)
    asked_of = mail.to + (mail.cc if question.cc_may_answer else ())
    admitted = checks.responders(work.tx, work.scope, asked_of, question)
    digest = checks.subject_digest(mail, admitted)
    if earlier := same_question(work, caller, question.key, digest):
        return asked(work, earlier)
    schedule = checks.schedule_named(work.tx, work.scope, question.schedule)
    expires_at = checks.deadline(work, inbox, mail.to[0], schedule, question.deadline)
    message = _store(work, caller, inbox, mail)
    waitpoint = Waitpoint(
        id=work.context.new_id("wp"),
        state=WaitpointState.OPEN,
        conversation_id=message.conversation_id,
        message_id=message.id,
        waiter=caller.principal,
        correlation_key=question.key,
        responders=admitted,
        opened_at=work.now,
        expires_at=expires_at,
        subject_digest=digest,
        min_trust=question.min_trust,
    )
    advance.open_waitpoint(work, waitpoint, schedule)
    return asked(work, waitpoint)


def asked(work: Work, waitpoint: Waitpoint) -> Json:
    """Return what an agent is told about a question it asked."""
    conversation = conversations.conversation(work.tx, work.scope, waitpoint.conversation_id)
    assert conversation is not None
    inbox = tenants.inbox(work.tx, work.scope, conversation.inbox_id)
    assert inbox is not None
    row = waiting.wait_for(work.tx, work.scope, waitpoint.id)
    required = facts.required_recipients(work.tx, work.scope, row, waitpoint) if row else ()
    due = row.wait.due_at if row else None
    return {
        "result": "queued",
        "message_id": waitpoint.message_id,
        "conversation_id": waitpoint.conversation_id,
        "waitpoint_id": waitpoint.id,
        "wait_id": row.id if row else None,
        "state": str(waitpoint.state),
        "wait": {"state": str(row.wait.state), "reason": row.wait.reason or None} if row else None,
        "ended": waitpoint.state not in OPEN_STATES or (row is not None and row.wait.state in ENDED),
        "expires_at": waitpoint.expires_at.isoformat(),
        "next_due_at": due.isoformat() if due else None,
        "zone_source": calendars.of(work.tx, work.scope, required[0] if required else "", inbox)[1],
    }


def same_question(work: Work, caller: Caller, key: str, digest: str) -> Waitpoint | None:
    """Return the caller's open waitpoint on this key with this content, None where the key is free.

    Raises:
        KeyInUse: the key waits for an answer to something else, or for somebody else.
    """
    earlier = waitpoints.waitpoint_by_key(work.tx, work.scope, "reply", key)
    if earlier is None or earlier.state not in OPEN_STATES:
        return None
    if earlier.waiter != caller.principal or earlier.subject_digest != digest:
        raise KeyInUse(correlation_key=key)
    return earlier


def _store(work: Work, caller: Caller, inbox: Inbox, mail: checks.Mail) -> Message:
    parent = _parent(work, inbox, mail.reply_to_message_id)
    files = [
        {
            "filename": attachment.filename,
            "media_type": attachment.media_type,
            "sha256": inbound.keep_content(work.tx, work.scope, attachment.content),
        }
        for attachment in mail.attachments
    ]
    content: Json = {
        "text": mail.text,
        "html": mail.html,
        "to": outgoing.listed([Address(email=address) for address in mail.to]),
        "cc": outgoing.listed([Address(email=address) for address in mail.cc]),
        "attachments": files,
    }
    letter = outgoing.Letter(
        kind="original", subject=mail.subject, content=content, parent_id=parent.id if parent else ""
    )
    return outgoing.store(work, _conversation(work, caller, inbox, mail, parent), letter)


def _parent(work: Work, inbox: Inbox, message_id: str) -> Message | None:
    if not message_id:
        return None
    parent = conversations.message(work.tx, work.scope, message_id)
    conversation = conversations.conversation(work.tx, work.scope, parent.conversation_id) if parent else None
    if parent is None or conversation is None or conversation.inbox_id != inbox.id:
        raise NotFound(kind="message of this inbox", id=message_id)
    return parent


def _conversation(
    work: Work, caller: Caller, inbox: Inbox, mail: checks.Mail, parent: Message | None
) -> Conversation:
    if parent:
        known = conversations.conversation(work.tx, work.scope, parent.conversation_id)
        assert known is not None
        return known
    conversation = Conversation(
        id=work.context.new_id("cnv"),
        inbox_id=inbox.id,
        agent_id=caller.agent_id,
        subject=mail.subject,
        created_at=work.now,
    )
    conversations.add_conversation(work.tx, work.scope, conversation)
    return conversation
