"""Gathers what the judgement asks about: each waitpoint of a conversation, and the reply itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from answerback.gateway import outgoing
from answerback.model import InboundKind, Message, Trust, Waitpoint, WaitState
from answerback.store import conversations, waitpoints
from answerback.store import waits as waiting
from answerback.waits.addresses import canonical, responder_of
from answerback.waits.judgement import Asked, Reply

if TYPE_CHECKING:
    from answerback.gateway.context import Work


def responder_name(address: str) -> str:
    """Return `email:` and an address as responders are compared."""
    return f"email:{canonical(address)}"


def reply_of(message: Message, named: tuple[str, ...]) -> Reply:
    """Return what is known of a stored message; `named` holds the messages it names, the answered first."""
    read = message.content["read"]
    assert isinstance(read, dict)
    return Reply(
        kind=InboundKind(message.kind),
        authors=tuple(map(str, read["authors"])),
        named=named,
        at=message.at,
        trust=message.trust or Trust.UNAUTHENTICATED,
        unreadable=str(read["unreadable"]),
        through_list=bool(read["through_list"]),
    )


def asked(work: Work, conversation_id: str) -> tuple[Asked, ...]:
    """Return the conversation's waitpoints; the conversation is locked, so that replies come one by one."""
    conversations.conversation(work.tx, work.scope, conversation_id, lock=True)
    messages = conversations.messages(work.tx, work.scope, conversation_id)
    found = waitpoints.waitpoints_of(work.tx, work.scope, conversation_id)
    return tuple(_asked(work, one, messages) for one in found)


def _asked(work: Work, waitpoint: Waitpoint, messages: tuple[Message, ...]) -> Asked:
    sent = [
        message
        for message in messages
        if message.direction == "out"
        and waitpoint.id in waitpoints.stands_for(work.tx, work.scope, message.id)
    ]
    standing = frozenset(message.id for message in sent)
    sent_to = {responder_name(name) for message in sent for name in outgoing.recipients(message.content)}
    heard_from = {
        responder_name(message.sender.email)
        for message in messages
        if message.direction == "in" and message.kind == InboundKind.MESSAGE and message.parent_id in standing
    }
    row = waiting.wait_for(work.tx, work.scope, waitpoint.id)
    outsiders = [name for name in sent_to | heard_from if responder_of(name, waitpoint.responders) is None]
    return Asked(
        waitpoint=waitpoint,
        messages=standing,
        abandoned=row is not None and row.wait.state is WaitState.ABANDONED,
        exposed=bool(outsiders),
        to=frozenset(
            responder_name(one.email) for message in sent for one in outgoing.addresses(message.content, "to")
        ),
    )
