"""Waitpoints: who may answer what by when, and the one answer that closed each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Row,
    and_,
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
from answerback.store.columns import here, scope_of
from answerback.store.session import Tx
from answerback.store.statements import insert_once, predicate

_OWN, _STANDS = tables.waitpoints, tables.stands
_OPEN = predicate("waitpoints.state IN ('open', 'stalled')")
_ADD = insert_once(
    _OWN, ("event_type", "correlation_key"), where=text("state IN ('open', 'stalled')"), returning=("id",)
)
_ADMIT = insert_once(tables.responders, ("waitpoint_id", "responder"))
_STAND = insert_once(_STANDS, ("message_id", "waitpoint_id"))
_REJECT = insert_once(tables.rejections, ("waitpoint_id", "message_id", "reason"))


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
        holder = waitpoint_by_key(tx, scope, waitpoint.event_type, waitpoint.correlation_key)
        assert holder is not None
        raise KeyInUse(correlation_key=waitpoint.correlation_key, waitpoint_id=holder.id)
    for responder in waitpoint.responders:
        add_responder(tx, scope, waitpoint.id, responder)
    link_nudge(tx, scope, waitpoint.message_id, [waitpoint.id])


def add_responder(tx: Tx, scope: Scope, waitpoint_id: str, responder: str) -> None:
    """Let one more answer a waitpoint, after the others; who may already stays where they are."""
    own = tables.responders
    listed = tx.scalar(
        select(func.count()).select_from(own).where(here(own, scope), own.c.waitpoint_id == waitpoint_id)
    )
    row = {"waitpoint_id": waitpoint_id, "responder": responder, "position": listed}
    tx.run(_ADMIT, scope_of(scope) | row)


def waitpoint(tx: Tx, scope: Scope, waitpoint_id: str, *, lock: bool = False) -> Waitpoint | None:
    """Return the waitpoint of that id, with `lock` held until commit."""
    wanted = select(_OWN).where(here(_OWN, scope), _OWN.c.id == waitpoint_id)
    row = tx.one(tx.locked(wanted) if lock else wanted)
    return _waitpoints(tx, scope, [row])[0] if row else None


def waitpoint_by_key(tx: Tx, scope: Scope, event_type: str, correlation_key: str) -> Waitpoint | None:
    """Return the open or stalled waitpoint of a key, else the newest that had it."""
    row = tx.one(
        select(_OWN)
        .where(here(_OWN, scope), _OWN.c.event_type == event_type, _OWN.c.correlation_key == correlation_key)
        .order_by(case((_OPEN, 0), else_=1), _OWN.c.opened_at.desc(), _OWN.c.id.desc())
        .limit(1)
    )
    return _waitpoints(tx, scope, [row])[0] if row else None


def waitpoints_of(tx: Tx, scope: Scope, conversation_id: str) -> tuple[Waitpoint, ...]:
    """Return a conversation's waitpoints, oldest first."""
    wanted = and_(here(_OWN, scope), _OWN.c.conversation_id == conversation_id)
    rows = tx.all(select(_OWN).where(wanted).order_by(_OWN.c.opened_at, _OWN.c.id))
    return _waitpoints(tx, scope, rows)


def open_for(tx: Tx, scope: Scope, inbox_id: str, responders: Iterable[str]) -> tuple[Waitpoint, ...]:
    """Return the unfinished waitpoints of an inbox that one of the responders may answer, oldest first."""
    may, conversations = tables.responders, tables.conversations
    named = select(may.c.waitpoint_id).where(here(may, scope), may.c.responder.in_(list(responders)))
    here_asked = select(conversations.c.id).where(
        here(conversations, scope), conversations.c.inbox_id == inbox_id
    )
    wanted = and_(here(_OWN, scope), _OPEN, _OWN.c.id.in_(named), _OWN.c.conversation_id.in_(here_asked))
    rows = tx.all(select(_OWN).where(wanted).order_by(_OWN.c.opened_at, _OWN.c.id))
    return _waitpoints(tx, scope, rows)


def link_nudge(tx: Tx, scope: Scope, message_id: str, waitpoint_ids: Iterable[str]) -> None:
    """Note the waitpoints an outbound message asks about: those open when a nudge was sent."""
    for waitpoint_id in waitpoint_ids:
        tx.run(_STAND, scope_of(scope) | {"message_id": message_id, "waitpoint_id": waitpoint_id})


def stands_for(tx: Tx, scope: Scope, message_id: str) -> tuple[str, ...]:
    """Return the ids of the waitpoints an outbound message asks about, oldest first, ended ones too."""
    rows = tx.all(
        select(_OWN.c.id)
        .join(_STANDS, _same(_STANDS, _OWN, "waitpoint_id"))
        .where(here(_STANDS, scope), _STANDS.c.message_id == message_id)
        .order_by(_OWN.c.opened_at, _OWN.c.id)
    )
    return tuple(row.id for row in rows)


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
    terms = tx.one(
        select(_OWN).where(here(_OWN, scope), _OWN.c.id == resolution.waitpoint_id).with_for_update()
    )
    if terms is None:
        raise NotFound(kind="waitpoint", id=resolution.waitpoint_id)
    tx.run(
        insert(tables.resolutions).values(
            **scope_of(scope),
            waitpoint_id=resolution.waitpoint_id,
            message_id=resolution.message_id,
            responder=resolution.responder,
            author=resolution.author,
            channel=resolution.channel,
            evidence_level=resolution.evidence_level,
            trust=resolution.trust,
            timing=resolution.timing,
            responded_at=resolution.responded_at,
            expires_at=terms.expires_at,
            subject_digest=terms.subject_digest,
            waiter=terms.waiter,
            evidence=resolution.evidence,
        )
    )
    _set(
        tx,
        scope,
        resolution.waitpoint_id,
        state=WaitpointState.RESOLVED,
        closed_at=resolution.responded_at,
    )


def resolution(tx: Tx, scope: Scope, waitpoint_id: str) -> Resolution | None:
    """Return the answer that closed a waitpoint."""
    own = tables.resolutions
    row = tx.one(select(own).where(here(own, scope), own.c.waitpoint_id == waitpoint_id))
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
    own = tables.resolutions
    row = tx.one(select(own.c.waitpoint_id).where(here(own, scope), own.c.message_id == message_id))
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
    own = tables.rejections
    wanted = and_(here(own, scope), own.c.waitpoint_id == waitpoint_id)
    rows = tx.all(select(own).where(wanted).order_by(own.c.at, own.c.message_id))
    return tuple((row.message_id, row.reason) for row in rows)


def due_waitpoints(tx: Tx, now: datetime, limit: int) -> tuple[tuple[Scope, str], ...]:
    """Return the unfinished waitpoints of any tenant whose deadline is reached, earliest first, locked."""
    due = (
        select(_OWN.c.tenant, _OWN.c.environment, _OWN.c.id)
        .where(_OPEN, _OWN.c.expires_at <= now)
        .order_by(_OWN.c.expires_at, _OWN.c.id)
        .limit(limit)
    )
    rows = tx.all(tx.locked(due, skip=True))
    return tuple((Scope(tenant=row.tenant, environment=row.environment), row.id) for row in rows)


def next_expiry(tx: Tx) -> datetime | None:
    """Return the earliest deadline of an unfinished waitpoint of any tenant."""
    found: datetime | None = tx.scalar(select(func.min(_OWN.c.expires_at)).where(_OPEN))
    return found


def _set(tx: Tx, scope: Scope, waitpoint_id: str, **values: object) -> None:
    wanted = and_(here(_OWN, scope), _OWN.c.id == waitpoint_id)
    if tx.run(update(_OWN).where(wanted).values(**values)) == 0:
        raise NotFound(kind="waitpoint", id=waitpoint_id)


def _same(child: Any, parent: Any, column: str) -> ColumnElement[bool]:
    return and_(
        child.c.tenant == parent.c.tenant,
        child.c.environment == parent.c.environment,
        child.c[column] == parent.c.id,
    )


def _waitpoints(tx: Tx, scope: Scope, rows: Sequence[Row[Any]]) -> tuple[Waitpoint, ...]:
    own = tables.responders
    wanted = and_(here(own, scope), own.c.waitpoint_id.in_([row.id for row in rows]))
    may: dict[str, list[str]] = {row.id: [] for row in rows}
    for row in tx.all(select(own).where(wanted).order_by(own.c.position)):
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
