"""Conversations, their messages, and every id a message is known by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, insert, literal, or_, select, tuple_, update

from answerback.model import Address, Conversation, Known, Message, OutboxState, Scope, Trust
from answerback.store import tables
from answerback.store.columns import here, scope_of
from answerback.store.session import Tx
from answerback.store.statements import insert_once

_OWN, _IDS = tables.messages, tables.message_ids
_REMEMBER = insert_once(_IDS, ("rfc_id", "message_id"))

_AGE = (_OWN.c.at, _OWN.c.number, _OWN.c.id)

#: PostgreSQL's index takes 2,704 octets a row; a longer id is kept by its hash
_LONGEST_ID = 1000
#: no chain of answers is followed further
_LONGEST_CHAIN = 1000


def add_conversation(tx: Tx, scope: Scope, conversation: Conversation) -> None:
    """Store a conversation."""
    tx.run(
        insert(tables.conversations).values(
            **scope_of(scope),
            id=conversation.id,
            inbox_id=conversation.inbox_id,
            agent_id=conversation.agent_id,
            channel=conversation.channel,
            subject=conversation.subject,
            created_at=conversation.created_at,
        )
    )


def conversation(tx: Tx, scope: Scope, conversation_id: str) -> Conversation | None:
    """Return the conversation of that id."""
    own = tables.conversations
    row = tx.one(select(own).where(here(own, scope), own.c.id == conversation_id))
    return _conversation(row) if row else None


def conversations(
    tx: Tx, scope: Scope, agent_id: str | None = None, *, limit: int = 100, before_id: str | None = None
) -> tuple[Conversation, ...]:
    """Return conversations, newest first; `before_id` continues after the last one of the page before."""
    own = tables.conversations
    wanted = select(own).where(here(own, scope))
    if agent_id is not None:
        wanted = wanted.where(own.c.agent_id == agent_id)
    if before_id is not None:
        last = select(own.c.created_at, own.c.id).where(here(own, scope), own.c.id == before_id)
        wanted = wanted.where(tuple_(own.c.created_at, own.c.id) < last.scalar_subquery())
    rows = tx.all(wanted.order_by(own.c.created_at.desc(), own.c.id.desc()).limit(limit))
    return tuple(_conversation(row) for row in rows)


def _conversation(row: Row[Any]) -> Conversation:
    return Conversation(
        id=row.id,
        inbox_id=row.inbox_id,
        agent_id=row.agent_id,
        subject=row.subject,
        created_at=row.created_at,
        channel=row.channel,
    )


def add_message(tx: Tx, scope: Scope, message: Message) -> None:
    """Store a message; a nudge number twice for one wait is Forbidden."""
    tx.run(
        insert(_OWN).values(
            **scope_of(scope),
            id=message.id,
            conversation_id=message.conversation_id,
            number=_next_number(tx, scope, message.conversation_id),
            direction=message.direction,
            kind=message.kind,
            subject=message.subject,
            sender_email=message.sender.email,
            sender_name=message.sender.name,
            at=message.at,
            rfc_id=message.rfc_id,
            parent_id=message.parent_id or None,
            trust=message.trust,
            content=message.content,
            body_hash=message.body_hash,
            received_id=message.received_id or None,
            wait_id=message.wait_id or None,
            nudge_number=message.nudge_number,
        )
    )


def _next_number(tx: Tx, scope: Scope, conversation_id: str) -> int:
    wanted = and_(here(_OWN, scope), _OWN.c.conversation_id == conversation_id)
    return int(tx.scalar(select(func.max(_OWN.c.number)).where(wanted)) or 0) + 1


def message(tx: Tx, scope: Scope, message_id: str) -> Message | None:
    """Return the message of that id."""
    row = tx.one(select(_OWN).where(here(_OWN, scope), _OWN.c.id == message_id))
    return _message(row) if row else None


def messages(tx: Tx, scope: Scope, conversation_id: str) -> tuple[Message, ...]:
    """Return a conversation's messages, oldest first."""
    wanted = and_(here(_OWN, scope), _OWN.c.conversation_id == conversation_id)
    return tuple(_message(row) for row in tx.all(select(_OWN).where(wanted).order_by(*_AGE)))


def move_message(tx: Tx, scope: Scope, message_id: str, conversation_id: str) -> None:
    """Put a message into another conversation, as a person decided."""
    wanted = and_(here(_OWN, scope), _OWN.c.id == message_id)
    number = _next_number(tx, scope, conversation_id)
    tx.run(update(_OWN).where(wanted).values(conversation_id=conversation_id, number=number))


def remember_ids(tx: Tx, scope: Scope, message_id: str, ids: Iterable[tuple[str, str]]) -> None:
    """Note that a message carries these ids: (id, `ours` | `provider` | `received`); twice is as once."""
    for rfc_id, source in dict(ids).items():
        values = {"rfc_id": _indexable(rfc_id), "message_id": message_id, "source": source}
        tx.run(_REMEMBER, scope_of(scope) | values)


def known(tx: Tx, scope: Scope, ids: Sequence[str]) -> tuple[Known, ...]:
    """Return every message that carries one of the ids, in the order of the ids; one id may have several."""
    asked = {_indexable(rfc_id): rfc_id for rfc_id in ids}
    rows = tx.all(
        select(_IDS.c.rfc_id, _IDS.c.source, _OWN.c.id, _OWN.c.conversation_id, _OWN.c.direction)
        .join(_OWN, _carries())
        .where(here(_IDS, scope), _IDS.c.rfc_id.in_(list(asked)))
        .order_by(*_AGE)
    )
    order = {rfc_id: place for place, rfc_id in enumerate(asked)}
    return tuple(_known(row, asked[row.rfc_id]) for row in sorted(rows, key=lambda row: order[row.rfc_id]))


def known_message(tx: Tx, scope: Scope, message_id: str) -> Known | None:
    """Return what a token of ours points at: the message of that id, under its own Message-ID."""
    found = message(tx, scope, message_id)
    if found is None:
        return None
    return Known(
        rfc_id=found.rfc_id,
        message_id=found.id,
        conversation_id=found.conversation_id,
        source="ours",
        outbound=found.direction == "out",
    )


def chain(tx: Tx, scope: Scope, message_id: str) -> tuple[str, ...]:
    """Return the Message-IDs from the first message of a line of answers to this one, oldest first."""
    start = (
        select(_OWN.c.parent_id, _OWN.c.rfc_id, literal(0).label("depth"))
        .where(here(_OWN, scope), _OWN.c.id == message_id)
        .cte("line", recursive=True)
    )
    upward = select(_OWN.c.parent_id, _OWN.c.rfc_id, start.c.depth + 1).where(
        here(_OWN, scope), _OWN.c.id == start.c.parent_id, start.c.depth < _LONGEST_CHAIN
    )
    line = start.union_all(upward)
    rows = tx.all(select(line.c.rfc_id).order_by(line.c.depth.desc()))
    return tuple(dict.fromkeys(row.rfc_id for row in rows if row.rfc_id))


def sent_texts(tx: Tx, scope: Scope, conversation_id: str) -> tuple[str, ...]:
    """Return the texts of what we wrote in a conversation, oldest first: quotations are compared with it."""
    ours = (found for found in messages(tx, scope, conversation_id) if found.direction == "out")
    return tuple(str(found.content.get("text") or "") for found in ours)


def last_sent(tx: Tx, scope: Scope, wait_or_conversation_id: str) -> Message | None:
    """Return the newest message of ours, in a conversation or a wait's, of which a copy was really sent."""
    copies = tables.outbox
    sent = (
        select(copies.c.message_id)
        .where(here(copies, scope), copies.c.message_id == _OWN.c.id, copies.c.state == OutboxState.SENT)
        .exists()
    )
    wanted = and_(here(_OWN, scope), in_conversation(scope, wait_or_conversation_id), sent)
    row = tx.one(select(_OWN).where(wanted).order_by(*(column.desc() for column in _AGE)).limit(1))
    return _message(row) if row else None


def in_conversation(scope: Scope, wait_or_conversation_id: str) -> ColumnElement[bool]:
    """Return the condition that a message is in this conversation, or in the one of this wait."""
    waits = tables.waits
    of_wait = select(waits.c.conversation_id).where(here(waits, scope), waits.c.id == wait_or_conversation_id)
    return or_(_OWN.c.conversation_id == wait_or_conversation_id, _OWN.c.conversation_id.in_(of_wait))


def _carries() -> ColumnElement[bool]:
    return and_(
        _OWN.c.tenant == _IDS.c.tenant,
        _OWN.c.environment == _IDS.c.environment,
        _OWN.c.id == _IDS.c.message_id,
    )


def _indexable(rfc_id: str) -> str:
    octets = rfc_id.encode("utf-8", "replace")
    return rfc_id if len(octets) <= _LONGEST_ID else f"sha256:{sha256(octets).hexdigest()}"


def _known(row: Row[Any], rfc_id: str) -> Known:
    return Known(
        rfc_id=rfc_id,
        message_id=row.id,
        conversation_id=row.conversation_id,
        source=row.source,
        outbound=row.direction == "out",
    )


def _message(row: Row[Any]) -> Message:
    return Message(
        id=row.id,
        conversation_id=row.conversation_id,
        direction=row.direction,
        kind=row.kind,
        subject=row.subject,
        sender=Address(email=row.sender_email, name=row.sender_name),
        at=row.at,
        rfc_id=row.rfc_id,
        parent_id=row.parent_id or "",
        trust=Trust(row.trust) if row.trust else None,
        content=row.content,
        body_hash=row.body_hash,
        received_id=row.received_id or "",
        wait_id=row.wait_id or "",
        nudge_number=row.nudge_number,
    )
