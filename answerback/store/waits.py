"""Waits: the follow-up clock of each conversation, when it is due, and the log of every change."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, func, insert, select, update

from answerback.errors import NotFound
from answerback.model import Json, Scope, Wait, WaitRow, WaitState
from answerback.store import tables
from answerback.store.columns import here, instant, microseconds, scope_of
from answerback.store.session import Tx
from answerback.store.statements import predicate

_OWN, _LOG = tables.waits, tables.wait_log
_DUE = predicate("waits.due_at IS NOT NULL")


def add_wait(tx: Tx, scope: Scope, row: WaitRow) -> None:
    """Store a wait."""
    last = select(func.max(_OWN.c.number)).where(
        here(_OWN, scope), _OWN.c.conversation_id == row.conversation_id
    )
    tx.run(
        insert(_OWN).values(
            **scope_of(scope),
            id=row.id,
            number=int(tx.scalar(last) or 0) + 1,
            conversation_id=row.conversation_id,
            waitpoint_id=row.waitpoint_id or None,
            schedule_name=row.schedule_name,
            schedule_version=row.schedule_version,
            updated_at=row.updated_at,
            **_stored(row.wait),
        )
    )


def wait(tx: Tx, scope: Scope, wait_id: str, *, lock: bool = False) -> WaitRow | None:
    """Return the wait of that id, with `lock` held until commit."""
    wanted = select(_OWN).where(here(_OWN, scope), _OWN.c.id == wait_id)
    row = tx.one(tx.locked(wanted) if lock else wanted)
    return _wait_row(row) if row else None


def wait_of(tx: Tx, scope: Scope, conversation_id: str, *, lock: bool = False) -> WaitRow | None:
    """Return the newest wait of a conversation, with `lock` held until commit."""
    return _newest(tx, scope, _OWN.c.conversation_id == conversation_id, lock=lock)


def wait_for(tx: Tx, scope: Scope, waitpoint_id: str, *, lock: bool = False) -> WaitRow | None:
    """Return the newest wait that follows a waitpoint, with `lock` held until commit."""
    return _newest(tx, scope, _OWN.c.waitpoint_id == waitpoint_id, lock=lock)


def _newest(tx: Tx, scope: Scope, condition: ColumnElement[bool], *, lock: bool) -> WaitRow | None:
    wanted = (
        select(_OWN)
        .where(here(_OWN, scope), condition)
        .order_by(_OWN.c.number.desc(), _OWN.c.id.desc())
        .limit(1)
    )
    row = tx.one(tx.locked(wanted) if lock else wanted)
    return _wait_row(row) if row else None


def waits(
    tx: Tx, scope: Scope, states: Iterable[WaitState] | None = None, limit: int = 100
) -> tuple[WaitRow, ...]:
    """Return waits in any of the states (None: all), the last changed first."""
    wanted = select(_OWN).where(here(_OWN, scope))
    if states is not None:
        wanted = wanted.where(_OWN.c.state.in_(list(states)))
    rows = tx.all(wanted.order_by(_OWN.c.updated_at.desc(), _OWN.c.id).limit(limit))
    return tuple(_wait_row(row) for row in rows)


def save_wait(tx: Tx, scope: Scope, wait_id: str, changed: Wait, at: datetime) -> None:
    """Store what a wait has become."""
    wanted = and_(here(_OWN, scope), _OWN.c.id == wait_id)
    if tx.run(update(_OWN).where(wanted).values(updated_at=at, **_stored(changed))) == 0:
        raise NotFound(kind="wait", id=wait_id)


def due_waits(tx: Tx, now: datetime, limit: int) -> tuple[tuple[Scope, str], ...]:
    """Return the running waits of any tenant that are due, earliest first, locked until commit.

    On PostgreSQL those another process has locked are passed over.
    """
    due = (
        select(_OWN.c.tenant, _OWN.c.environment, _OWN.c.id)
        .where(_DUE, _OWN.c.due_at <= now)
        .order_by(_OWN.c.due_at, _OWN.c.id)
        .limit(limit)
    )
    rows = tx.all(tx.locked(due, skip=True))
    return tuple((Scope(tenant=row.tenant, environment=row.environment), row.id) for row in rows)


def next_due(tx: Tx) -> datetime | None:
    """Return the earliest instant a wait of any tenant is due."""
    found: datetime | None = tx.scalar(select(func.min(_OWN.c.due_at)).where(_DUE))
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
    last = tx.scalar(select(func.max(_LOG.c.number)).where(here(_LOG, scope), _LOG.c.wait_id == wait_id))
    line = {
        **scope_of(scope),
        "wait_id": wait_id,
        "number": int(last or 0) + 1,
        "at": at,
        "event": event,
        "rule": rule,
        "before": before,
        "after": after,
        "cause": cause,
    }
    tx.run(insert(_LOG), line)


def wait_log(tx: Tx, scope: Scope, wait_id: str) -> tuple[Json, ...]:
    """Return a wait's log, oldest first: {at (ISO 8601, UTC), event, rule, before, after, cause}."""
    rows = tx.all(select(_LOG).where(here(_LOG, scope), _LOG.c.wait_id == wait_id).order_by(_LOG.c.number))
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
