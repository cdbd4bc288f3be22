"""Conversations, their messages, and every id a message is known by."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Select,
    and_,
    bindparam,
    func,
    insert,
    literal,
    or_,
    select,
    tuple_,
    update,
)

from answerback.model import Address, Conversation, Known, Message, OutboxState, Scope, Trust
from answerback.store import tables
from answerback.store.columns import Words, among, here, of, scope_of
from answerback.store.session import Tx
from answerback.store.statements import insert_once

#: PostgreSQL's index takes 2,704 octets a row; a longer id is kept by its hash
_LONGEST_ID = 1000
#: no chain of answers is followed further
_LONGEST_CHAIN = 1000

_OWN, _IDS, _CONVERSATIONS = tables.messages, tables.message_ids, tables.conversations
_ADD_CONVERSATION = insert(_CONVERSATIONS)
_CONVERSATION = select(_CONVERSATIONS).where(here(_CONVERSATIONS, "id"))
_NEXT_NUMBER = select(func.coalesce(func.max(_OWN.c.number), 0) + 1).where(here(_OWN, "conversation_id"))
_ADD = insert(_OWN).values(number=_NEXT_NUMBER.scalar_subquery())
_BY_ID = select(_OWN).where(here(_OWN, "id"))
_AGE = (_OWN.c.at, _OWN.c.number, _OWN.c.id)
_IN_CONVERSATION = select(_OWN).where(here(_OWN, "conversation_id")).order_by(*_AGE)
_SENT = select(_OWN.c.content).where(here(_OWN, "conversation_id"), _OWN.c.direction == "out").order_by(*_AGE)
_MOVE = update(_OWN).where(here(_OWN, "id"))
_REMEMBER = insert_once(_IDS, ("rfc_id", "message_id"))
_CARRIES = and_(
    _OWN.c.tenant == _IDS.c.tenant,
    _OWN.c.environment == _IDS.c.environment,
    _OWN.c.id == _IDS.c.message_id,
)
_KNOWN = (
    select(_IDS.c.rfc_id, _IDS.c.source, _OWN.c.id, _OWN.c.conversation_id, _OWN.c.direction)
    .join(_OWN, _CARRIES)
    .where(here(_IDS), among(_IDS.c.rfc_id, "ids"))
    .order_by(*_AGE)
)


def in_conversation() -> ColumnElement[bool]:
    """Return the condition that a message is in the conversation, or in the one of the wait, `of_place`."""
    waits, place = tables.waits, bindparam("of_place", type_=Words())
    of_wait = select(waits.c.conversation_id).where(here(waits), waits.c.id == place)
    return or_(_OWN.c.conversation_id == place, _OWN.c.conversation_id.in_(of_wait))


def _last_sent() -> Select[Any]:
    copies = tables.outbox
    sent = (
        select(copies.c.message_id)
        .where(here(copies), copies.c.message_id == _OWN.c.id, copies.c.state == OutboxState.SENT)
        .exists()
    )
    newest_first = (column.desc() for column in _AGE)
    return select(_OWN).where(here(_OWN), in_conversation(), sent).order_by(*newest_first).limit(1)


def _line() -> Select[Any]:
    start = (
        select(_OWN.c.parent_id, _OWN.c.rfc_id, literal(0).label("depth"))
        .where(here(_OWN, "id"))
        .cte("line", recursive=True)
    )
    upward = select(_OWN.c.parent_id, _OWN.c.rfc_id, start.c.depth + 1).where(
        here(_OWN), _OWN.c.id == start.c.parent_id, start.c.depth < _LONGEST_CHAIN
    )
    line = start.union_all(upward)
    return select(line.c.rfc_id).order_by(line.c.depth.desc())


_LAST_SENT, _LINE = _last_sent(), _line()


def add_conversation(tx: Tx, scope: Scope, conversation: Conversation) -> None:
    """Store a conversation."""
    row = {
        **scope_of(scope),
        "id": conversation.id,
        "inbox_id": conversation.inbox_id,
        "agent_id": conversation.agent_id,
        "channel": conversation.channel,
        "subject": conversation.subject,
        "created_at": conversation.created_at,
    }
    tx.run(_ADD_CONVERSATION, row)


def conversation(tx: Tx, scope: Scope, conversation_id: str, *, lock: bool = False) -> Conversation | None:
    """Return the conversation of that id, with `lock` until commit nobody else's."""
    row = tx.one(tx.locked(_CONVERSATION) if lock else _CONVERSATION, of(scope, id=conversation_id))
    return _conversation(row) if row else None


def conversations(
    tx: Tx, scope: Scope, agent_id: str | None = None, *, limit: int = 100, before_id: str | None = None
) -> tuple[Conversation, ...]:
    """Return conversations, newest first; `before_id` continues after the last one of the page before."""
    own = _CONVERSATIONS
    wanted = select(own).where(here(own))
    if agent_id is not None:
        wanted = wanted.where(own.c.agent_id == agent_id)
    if before_id is not None:
        last = select(own.c.created_at, own.c.id).where(here(own, "id"))
        wanted = wanted.where(tuple_(own.c.created_at, own.c.id) < last.scalar_subquery())
    newest = wanted.order_by(own.c.created_at.desc(), own.c.id.desc()).limit(limit)
    rows = tx.all(newest, of(scope, id=before_id))
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
    row = {
        **scope_of(scope),
        "id": message.id,
        "conversation_id": message.conversation_id,
        "direction": message.direction,
        "kind": message.kind,
        "subject": message.subject,
        "sender_email": message.sender.email,
        "sender_name": message.sender.name,
        "at": message.at,
        "rfc_id": message.rfc_id,
        "parent_id": message.parent_id or None,
        "trust": message.trust,
        "content": message.content,
        "body_hash": message.body_hash,
        "received_id": message.received_id or None,
        "wait_id": message.wait_id or None,
        "nudge_number": message.nudge_number,
    }
    tx.run(_ADD, of(scope, conversation_id=message.conversation_id) | row)


def message(tx: Tx, scope: Scope, message_id: str) -> Message | None:
    """Return the message of that id."""
    row = tx.one(_BY_ID, of(scope, id=message_id))
    return _message(row) if row else None


def messages(tx: Tx, scope: Scope, conversation_id: str) -> tuple[Message, ...]:
    """Return a conversation's messages, oldest first."""
    rows = tx.all(_IN_CONVERSATION, of(scope, conversation_id=conversation_id))
    return tuple(_message(row) for row in rows)


def move_message(tx: Tx, scope: Scope, message_id: str, conversation_id: str) -> None:
    """Put a message into another conversation, as a person decided."""
    number = tx.scalar(_NEXT_NUMBER, of(scope, conversation_id=conversation_id))
    tx.run(_MOVE, of(scope, id=message_id) | {"conversation_id": conversation_id, "number": number})


def remember_ids(tx: Tx, scope: Scope, message_id: str, ids: Iterable[tuple[str, str]]) -> None:
    """Note that a message carries these ids: (id, `ours` | `provider` | `received`); twice is as once."""
    rows = [
        scope_of(scope) | {"rfc_id": _indexable(rfc_id), "message_id": message_id, "source": source}
        for rfc_id, source in dict(ids).items()
    ]
    if rows:
        tx.run(_REMEMBER, rows)


def known(tx: Tx, scope: Scope, ids: Sequence[str]) -> tuple[Known, ...]:
    """Return every message that carries one of the ids, in the order of the ids; one id may have several."""
    asked = {_indexable(rfc_id): rfc_id for rfc_id in ids}
    rows = tx.all(_KNOWN, of(scope) | {"ids": list(asked)})
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
    rows = tx.all(_LINE, of(scope, id=message_id))
    return tuple(dict.fromkeys(row.rfc_id for row in rows if row.rfc_id))


def sent_texts(tx: Tx, scope: Scope, conversation_id: str) -> tuple[str, ...]:
    """Return the texts of what we wrote in a conversation, oldest first: quotations are compared with it."""
    rows = tx.all(_SENT, of(scope, conversation_id=conversation_id))
    return tuple(str(row.content.get("text") or "") for row in rows)


def last_sent(tx: Tx, scope: Scope, wait_or_conversation_id: str) -> Message | None:
    """Return the newest message of ours, in a conversation or a wait's, of which a copy was really sent."""
    row = tx.one(_LAST_SENT, of(scope, place=wait_or_conversation_id))
    return _message(row) if row else None


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
