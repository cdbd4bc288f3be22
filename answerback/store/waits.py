"""Waits: the follow-up clock of each conversation, when it is due, and the log of every change."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, bindparam, exists, func, insert, select, update

from answerback.errors import NotFound
from answerback.model import Json, Scope, Wait, WaitRow, WaitState
from answerback.store import tables
from answerback.store.columns import Moment, among, here, instant, microseconds, of, scope_of
from answerback.store.session import Tx
from answerback.store.statements import predicate

_OWN, _LOG, _TALKS = tables.waits, tables.wait_log, tables.conversations
_RUNNING = predicate("waits.due_at IS NOT NULL")
_LAST = func.coalesce(func.max(_OWN.c.number), 0)
_LAST_LINE = func.coalesce(func.max(_LOG.c.number), 0)
_ADD = insert(_OWN).values(number=select(_LAST + 1).where(here(_OWN, "conversation_id")).scalar_subquery())
_BY_ID = select(_OWN).where(here(_OWN, "id"))
_NEWEST = select(_OWN).order_by(_OWN.c.number.desc(), _OWN.c.id.desc()).limit(1)
_OF_CONVERSATION = _NEWEST.where(here(_OWN, "conversation_id"))
_FOR_WAITPOINT = _NEWEST.where(here(_OWN, "waitpoint_id"))
_CHANGED = (
    select(_OWN).where(here(_OWN)).order_by(_OWN.c.updated_at.desc(), _OWN.c.id).limit(bindparam("limit"))
)
_CHANGED_IN = _CHANGED.where(among(_OWN.c.state, "states"))
_OF_AGENT = exists().where(
    _TALKS.c.tenant == _OWN.c.tenant,
    _TALKS.c.environment == _OWN.c.environment,
    _TALKS.c.id == _OWN.c.conversation_id,
    _TALKS.c.agent_id == bindparam("agent_id"),
)
_SAVE = update(_OWN).where(here(_OWN, "id"))
_DUE = (
    select(_OWN.c.tenant, _OWN.c.environment, _OWN.c.id)
    .where(_RUNNING, _OWN.c.due_at <= bindparam("now", type_=Moment()))
    .order_by(_OWN.c.due_at, _OWN.c.id)
    .limit(bindparam("limit"))
)
_NEXT_DUE = select(func.min(_OWN.c.due_at)).where(_RUNNING)
_APPEND = insert(_LOG).values(number=select(_LAST_LINE + 1).where(here(_LOG, "wait_id")).scalar_subquery())
_LINES = select(_LOG).where(here(_LOG, "wait_id")).order_by(_LOG.c.number)


def add_wait(tx: Tx, scope: Scope, row: WaitRow) -> None:
    """Store a wait."""
    values = {
        **scope_of(scope),
        "id": row.id,
        "conversation_id": row.conversation_id,
        "waitpoint_id": row.waitpoint_id or None,
        "schedule_name": row.schedule_name,
        "schedule_version": row.schedule_version,
        "updated_at": row.updated_at,
        **_stored(row.wait),
    }
    tx.run(_ADD, of(scope, conversation_id=row.conversation_id) | values)


def wait(tx: Tx, scope: Scope, wait_id: str, *, lock: bool = False) -> WaitRow | None:
    """Return the wait of that id, with `lock` held until commit."""
    return _found(tx, _BY_ID, of(scope, id=wait_id), lock=lock)


def wait_of(tx: Tx, scope: Scope, conversation_id: str, *, lock: bool = False) -> WaitRow | None:
    """Return the newest wait of a conversation, with `lock` held until commit."""
    return _found(tx, _OF_CONVERSATION, of(scope, conversation_id=conversation_id), lock=lock)


def wait_for(tx: Tx, scope: Scope, waitpoint_id: str, *, lock: bool = False) -> WaitRow | None:
    """Return the newest wait that follows a waitpoint, with `lock` held until commit."""
    return _found(tx, _FOR_WAITPOINT, of(scope, waitpoint_id=waitpoint_id), lock=lock)


def _found(tx: Tx, wanted: Select[Any], values: dict[str, object], *, lock: bool) -> WaitRow | None:
    row = tx.one(tx.locked(wanted) if lock else wanted, values)
    return _wait_row(row) if row else None


def waits(
    tx: Tx, scope: Scope, states: Iterable[WaitState] | None = None, limit: int = 100, *, agent_id: str = ""
) -> tuple[WaitRow, ...]:
    """Return waits in any of the states (None: all) of one agent ("": of all), the last changed first."""
    statement = _CHANGED if states is None else _CHANGED_IN
    values = of(scope) | {"limit": limit} | ({} if states is None else {"states": list(states)})
    if agent_id:
        statement, values = statement.where(_OF_AGENT), values | {"agent_id": agent_id}
    return tuple(_wait_row(row) for row in tx.all(statement, values))


def save_wait(tx: Tx, scope: Scope, wait_id: str, changed: Wait, at: datetime) -> None:
    """Store what a wait has become."""
    if tx.run(_SAVE, of(scope, id=wait_id) | {"updated_at": at, **_stored(changed)}) == 0:
        raise NotFound(kind="wait", id=wait_id)


def due_waits(tx: Tx, now: datetime, limit: int) -> tuple[tuple[Scope, str], ...]:
    """Return the running waits of any tenant that are due, earliest first, locked until commit.

    On PostgreSQL those another process has locked are passed over.
    """
    rows = tx.all(tx.locked(_DUE, skip=True), {"now": now, "limit": limit})
    return tuple((Scope(tenant=row.tenant, environment=row.environment), row.id) for row in rows)


def next_due(tx: Tx) -> datetime | None:
    """Return the earliest instant a wait of any tenant is due."""
    found: datetime | None = tx.scalar(_NEXT_DUE)
    return found


def append_log(  # noqa: PLR0913, PLR0917 - one line of the log
    tx: Tx,
    scope: Scope,
    wait_id: str,
    at: datetime,
    event: str,
    rule: str,
    before: str,
    after: str,
    cause: Json,
) -> None:
    """Add a line to a wait's log: event, the rule that decided, states before and after, cause."""
    line = {
        **scope_of(scope),
        "wait_id": wait_id,
        "at": at,
        "event": event,
        "rule": rule,
        "before": before,
        "after": after,
        "cause": cause,
    }
    tx.run(_APPEND, of(scope, wait_id=wait_id) | line)


def wait_log(tx: Tx, scope: Scope, wait_id: str) -> tuple[Json, ...]:
    """Return a wait's log, oldest first: {at (ISO 8601, UTC), event, rule, before, after, cause}."""
    rows = tx.all(_LINES, of(scope, wait_id=wait_id))
    return tuple(
        {
            "at": row.at.isoformat(),
            "event": row.event,
            "rule": row.rule,
            "before": row.before,
            "after": row.after,
            "cause": row.cause,
        }
        for row in rows
    )


def _stored(wait: Wait) -> dict[str, Any]:
    """State, reason and due time are columns; what only the machine reads is one document."""
    details: Json = {
        "nudges": wait.nudges,
        "since": microseconds(wait.since),
        "plan": [microseconds(at) for at in wait.plan],
        "moves": wait.moves,
        "moved_from": None if wait.moved_from is None else microseconds(wait.moved_from),
        "resume_to": wait.resume_to,
        "away": list(wait.away),
        "dead": list(wait.dead),
    }
    return {"state": wait.state, "reason": wait.reason, "due_at": wait.due_at, "details": details}


def _wait_row(row: Row[Any]) -> WaitRow:
    details = row.details
    return WaitRow(
        id=row.id,
        conversation_id=row.conversation_id,
        waitpoint_id=row.waitpoint_id or "",
        schedule_name=row.schedule_name,
        schedule_version=row.schedule_version,
        updated_at=row.updated_at,
        wait=Wait(
            state=WaitState(row.state),
            reason=row.reason,
            nudges=details["nudges"],
            since=instant(details["since"]),
            plan=tuple(instant(at) for at in details["plan"]),
            moves=details["moves"],
            moved_from=None if details["moved_from"] is None else instant(details["moved_from"]),
            resume_to=None if details["resume_to"] is None else WaitState(details["resume_to"]),
            away=tuple(details["away"]),
            dead=tuple(details["dead"]),
        ),
    )
