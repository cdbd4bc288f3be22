"""Waitpoints: who may answer what by when, and the one answer that closed each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import (
    Row,
    and_,
    bindparam,
    case,
    func,
    insert,
    select,
    text,
    update,
)

from answerback.errors import KeyInUse, NotFound
from answerback.model import Resolution, Scope, Timing, Trust, Waitpoint, WaitpointState
from answerback.store import tables
from answerback.store.columns import Moment, among, here, of, scope_of
from answerback.store.session import Tx
from answerback.store.statements import insert_once, predicate

_OWN, _STANDS, _MAY = tables.waitpoints, tables.stands, tables.responders
_RESOLUTIONS, _REJECTIONS, _CONVERSATIONS = tables.resolutions, tables.rejections, tables.conversations
_OPEN = predicate("waitpoints.state IN ('open', 'stalled')")
_ADD = insert_once(
    _OWN, ("event_type", "correlation_key"), where=text("state IN ('open', 'stalled')"), returning=("id",)
)
_ADMIT = insert_once(_MAY, ("waitpoint_id", "responder"))
_ADMITTED = select(func.count()).select_from(_MAY).where(here(_MAY, "waitpoint_id"))
_WHO_MAY = select(_MAY).where(here(_MAY), among(_MAY.c.waitpoint_id, "ids")).order_by(_MAY.c.position)
_STAND = insert_once(_STANDS, ("message_id", "waitpoint_id"))
_REJECT = insert_once(_REJECTIONS, ("waitpoint_id", "message_id", "reason"))
_REJECTED = (
    select(_REJECTIONS)
    .where(here(_REJECTIONS, "waitpoint_id"))
    .order_by(_REJECTIONS.c.at, _REJECTIONS.c.message_id)
)
_BY_ID = select(_OWN).where(here(_OWN, "id"))
_CHANGE = update(_OWN).where(here(_OWN, "id"))
_BY_KEY = (
    select(_OWN)
    .where(here(_OWN, "event_type", "correlation_key"))
    .order_by(case((_OPEN, 0), else_=1), _OWN.c.opened_at.desc(), _OWN.c.id.desc())
    .limit(1)
)
_AGE = (_OWN.c.opened_at, _OWN.c.id)
_IN_CONVERSATION = select(_OWN).where(here(_OWN, "conversation_id")).order_by(*_AGE)
_NAMED = select(_MAY.c.waitpoint_id).where(here(_MAY), among(_MAY.c.responder, "responders"))
_ASKED_HERE = select(_CONVERSATIONS.c.id).where(here(_CONVERSATIONS, "inbox_id"))
_OPEN_FOR = (
    select(_OWN)
    .where(here(_OWN), _OPEN, _OWN.c.id.in_(_NAMED), _OWN.c.conversation_id.in_(_ASKED_HERE))
    .order_by(*_AGE)
)
_STANDS_FOR = (
    select(_OWN.c.id)
    .join(
        _STANDS,
        and_(
            _STANDS.c.tenant == _OWN.c.tenant,
            _STANDS.c.environment == _OWN.c.environment,
            _STANDS.c.waitpoint_id == _OWN.c.id,
        ),
    )
    .where(here(_STANDS, "message_id"))
    .order_by(*_AGE)
)
_RESOLVE = insert(_RESOLUTIONS)
_RESOLUTION = select(_RESOLUTIONS).where(here(_RESOLUTIONS, "waitpoint_id"))
_ANSWERED = select(_RESOLUTIONS.c.waitpoint_id).where(here(_RESOLUTIONS, "message_id"))
_DUE = (
    select(_OWN.c.tenant, _OWN.c.environment, _OWN.c.id)
    .where(_OPEN, _OWN.c.expires_at <= bindparam("now", type_=Moment()))
    .order_by(_OWN.c.expires_at, _OWN.c.id)
    .limit(bindparam("limit"))
)
_NEXT_EXPIRY = select(func.min(_OWN.c.expires_at)).where(_OPEN)


def add_waitpoint(tx: Tx, scope: Scope, waitpoint: Waitpoint) -> None:
    """Store a waitpoint with its responders; the message it was opened with stands for it.

    Raises:
        KeyInUse: an open or stalled waitpoint has that key.
    """
    values = {
        **scope_of(scope),
        "id": waitpoint.id,
        "state": waitpoint.state,
        "conversation_id": waitpoint.conversation_id,
        "message_id": waitpoint.message_id,
        "waiter": waitpoint.waiter,
        "event_type": waitpoint.event_type,
        "correlation_key": waitpoint.correlation_key,
        "opened_at": waitpoint.opened_at,
        "expires_at": waitpoint.expires_at,
        "subject_digest": waitpoint.subject_digest,
        "min_trust": waitpoint.min_trust,
        "follows": waitpoint.follows or None,
        "reason": "",
    }
    if tx.one(_ADD, values) is None:
        raise KeyInUse(correlation_key=waitpoint.correlation_key)
    for responder in waitpoint.responders:
        add_responder(tx, scope, waitpoint.id, responder)
    link_nudge(tx, scope, waitpoint.message_id, [waitpoint.id])


def add_responder(tx: Tx, scope: Scope, waitpoint_id: str, responder: str) -> None:
    """Let one more answer a waitpoint, after the others; who may already stays where they are."""
    listed = tx.scalar(_ADMITTED, of(scope, waitpoint_id=waitpoint_id))
    row = {"waitpoint_id": waitpoint_id, "responder": responder, "position": listed}
    tx.run(_ADMIT, scope_of(scope) | row)


def waitpoint(tx: Tx, scope: Scope, waitpoint_id: str, *, lock: bool = False) -> Waitpoint | None:
    """Return the waitpoint of that id, with `lock` held until commit."""
    row = tx.one(tx.locked(_BY_ID) if lock else _BY_ID, of(scope, id=waitpoint_id))
    return _waitpoints(tx, scope, [row])[0] if row else None


def waitpoint_by_key(tx: Tx, scope: Scope, event_type: str, correlation_key: str) -> Waitpoint | None:
    """Return the open or stalled waitpoint of a key, else the newest that had it."""
    row = tx.one(_BY_KEY, of(scope, event_type=event_type, correlation_key=correlation_key))
    return _waitpoints(tx, scope, [row])[0] if row else None


def waitpoints_of(tx: Tx, scope: Scope, conversation_id: str) -> tuple[Waitpoint, ...]:
    """Return a conversation's waitpoints, oldest first."""
    return _waitpoints(tx, scope, tx.all(_IN_CONVERSATION, of(scope, conversation_id=conversation_id)))


def open_for(tx: Tx, scope: Scope, inbox_id: str, responders: Iterable[str]) -> tuple[Waitpoint, ...]:
    """Return the unfinished waitpoints of an inbox that one of the responders may answer, oldest first."""
    asked = of(scope, inbox_id=inbox_id) | {"responders": list(responders)}
    return _waitpoints(tx, scope, tx.all(_OPEN_FOR, asked))


def link_nudge(tx: Tx, scope: Scope, message_id: str, waitpoint_ids: Iterable[str]) -> None:
    """Note the waitpoints an outbound message asks about: those open when a nudge was sent."""
    rows = [
        scope_of(scope) | {"message_id": message_id, "waitpoint_id": waitpoint_id}
        for waitpoint_id in waitpoint_ids
    ]
    if rows:
        tx.run(_STAND, rows)


def stands_for(tx: Tx, scope: Scope, message_id: str) -> tuple[str, ...]:
    """Return the ids of the waitpoints an outbound message asks about, oldest first, ended ones too."""
    return tuple(row.id for row in tx.all(_STANDS_FOR, of(scope, message_id=message_id)))


def stall(tx: Tx, scope: Scope, waitpoint_id: str, state: Literal["open", "stalled"]) -> None:
    """Set an unfinished waitpoint open or stalled; one that ended is Forbidden."""
    _set(tx, scope, waitpoint_id, state=state)


def close_waitpoint(
    tx: Tx,
    scope: Scope,
    waitpoint_id: str,
    state: Literal[WaitpointState.EXPIRED, WaitpointState.CANCELLED],
    at: datetime,
    reason: str,
) -> None:
    """End a waitpoint without an answer; one that ended before is Forbidden."""
    _set(tx, scope, waitpoint_id, state=state, closed_at=at, reason=reason)


def resolve(tx: Tx, scope: Scope, resolution: Resolution) -> None:
    """Store the answer and close its waitpoint; whatever may not answer it is Forbidden."""
    terms = tx.one(tx.locked(_BY_ID), of(scope, id=resolution.waitpoint_id))
    if terms is None:
        raise NotFound(kind="waitpoint", id=resolution.waitpoint_id)
    answer = {
        **scope_of(scope),
        "waitpoint_id": resolution.waitpoint_id,
        "message_id": resolution.message_id,
        "responder": resolution.responder,
        "author": resolution.author,
        "channel": resolution.channel,
        "evidence_level": resolution.evidence_level,
        "trust": resolution.trust,
        "timing": resolution.timing,
        "responded_at": resolution.responded_at,
        "expires_at": terms.expires_at,
        "subject_digest": terms.subject_digest,
        "waiter": terms.waiter,
        "evidence": resolution.evidence,
    }
    tx.run(_RESOLVE, answer)
    _set(
        tx,
        scope,
        resolution.waitpoint_id,
        state=WaitpointState.RESOLVED,
        closed_at=resolution.responded_at,
    )


def resolution(tx: Tx, scope: Scope, waitpoint_id: str) -> Resolution | None:
    """Return the answer that closed a waitpoint."""
    row = tx.one(_RESOLUTION, of(scope, waitpoint_id=waitpoint_id))
    if row is None:
        return None
    return Resolution(
        waitpoint_id=row.waitpoint_id,
        message_id=row.message_id,
        responder=row.responder,
        author=row.author,
        channel=row.channel,
        evidence_level=row.evidence_level,
        trust=Trust(row.trust),
        timing=Timing(row.timing),
        responded_at=row.responded_at,
        evidence=row.evidence,
    )


def answered(tx: Tx, scope: Scope, message_id: str) -> str | None:
    """Return the id of the waitpoint an inbound message resolved."""
    row = tx.one(_ANSWERED, of(scope, message_id=message_id))
    return row.waitpoint_id if row else None


def reject(  # noqa: PLR0913, PLR0917 - what was refused, why and when
    tx: Tx, scope: Scope, waitpoint_id: str, message_id: str, reason: str, digest: str, at: datetime
) -> None:
    """Record an answer that did not count; the same one twice is recorded once."""
    row = {
        "waitpoint_id": waitpoint_id,
        "message_id": message_id,
        "reason": reason,
        "digest": digest,
        "at": at,
    }
    tx.run(_REJECT, scope_of(scope) | row)


def rejections(tx: Tx, scope: Scope, waitpoint_id: str) -> tuple[tuple[str, str], ...]:
    """Return (message id, reason) of the answers to a waitpoint that did not count, oldest first."""
    rows = tx.all(_REJECTED, of(scope, waitpoint_id=waitpoint_id))
    return tuple((row.message_id, row.reason) for row in rows)


def due_waitpoints(tx: Tx, now: datetime, limit: int) -> tuple[tuple[Scope, str], ...]:
    """Return the unfinished waitpoints of any tenant whose deadline is reached, earliest first, locked."""
    rows = tx.all(tx.locked(_DUE, skip=True), {"now": now, "limit": limit})
    return tuple((Scope(tenant=row.tenant, environment=row.environment), row.id) for row in rows)


def next_expiry(tx: Tx) -> datetime | None:
    """Return the earliest deadline of an unfinished waitpoint of any tenant."""
    found: datetime | None = tx.scalar(_NEXT_EXPIRY)
    return found


def _set(tx: Tx, scope: Scope, waitpoint_id: str, **values: object) -> None:
    if tx.run(_CHANGE, of(scope, id=waitpoint_id) | values) == 0:
        raise NotFound(kind="waitpoint", id=waitpoint_id)


def _waitpoints(tx: Tx, scope: Scope, rows: Sequence[Row[Any]]) -> tuple[Waitpoint, ...]:
    if not rows:
        return ()
    may: dict[str, list[str]] = {row.id: [] for row in rows}
    for row in tx.all(_WHO_MAY, of(scope) | {"ids": list(may)}):
        may[row.waitpoint_id].append(row.responder)
    return tuple(_waitpoint(row, tuple(may[row.id])) for row in rows)


def _waitpoint(row: Row[Any], may: tuple[str, ...]) -> Waitpoint:
    return Waitpoint(
        id=row.id,
        state=WaitpointState(row.state),
        conversation_id=row.conversation_id,
        message_id=row.message_id,
        waiter=row.waiter,
        event_type=row.event_type,
        correlation_key=row.correlation_key,
        responders=may,
        opened_at=row.opened_at,
        expires_at=row.expires_at,
        subject_digest=row.subject_digest,
        min_trust=Trust(row.min_trust),
        follows=row.follows or "",
    )
