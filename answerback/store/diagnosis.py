"""Looks a database over for a person: is it whole, is it current, and what is stuck in it?"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Table, and_, func, select

from answerback.model import ItemState, OutboxState
from answerback.store import health, tables
from answerback.store.session import Tx


def integrity(tx: Tx) -> str:
    """Return `ok`, or what SQLite finds wrong in the whole file (PostgreSQL checks its own pages)."""
    if tx.dialect != "sqlite":
        return "ok"
    found = tx.connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
    return " ".join(str(found).split())


def current(tx: Tx) -> bool:
    """Tell whether the schema is the newest this version knows."""
    return health.revision(tx.connection) == health.revisions()[-1]


def newest(tx: Tx) -> datetime | None:
    """Return the latest instant anything was stored at, None in an empty database."""
    columns = (
        tables.tenants.c.created_at,
        tables.received.c.at,
        tables.messages.c.at,
        tables.mailbox_items.c.at,
        tables.waits.c.updated_at,
    )
    found = [tx.scalar(select(func.max(column))) for column in columns]
    return max((instant for instant in found if instant is not None), default=None)


def unprocessed(tx: Tx, before: datetime) -> int:
    """Return how many mails taken in before an instant were not processed yet."""
    return _count(tx, tables.received, tables.received.c.state == "stored", tables.received.c.at < before)


def copies(tx: Tx, state: OutboxState) -> int:
    """Return how many outgoing copies are in a state."""
    return _count(tx, tables.outbox, tables.outbox.c.state == state)


def undecided(tx: Tx) -> int:
    """Return how many reviews wait for a person."""
    return _count(tx, tables.reviews, tables.reviews.c.decided_at.is_(None))


def dead(tx: Tx) -> int:
    """Return how many mailbox items were delivered too often and are kept as dead letters."""
    return _count(tx, tables.mailbox_items, tables.mailbox_items.c.state == ItemState.DEAD)


def domains(tx: Tx) -> tuple[str, ...]:
    """Return the domains of the live mail inboxes, in order."""
    own = tables.inboxes.c
    rows = tx.all(select(own.address).where(own.environment == "live", own.channel == "email"))
    return tuple(sorted({row.address.rpartition("@")[2].lower() for row in rows}))


def _count(tx: Tx, table: Table, *conditions: ColumnElement[Any]) -> int:
    return int(tx.scalar(select(func.count()).select_from(table).where(and_(*conditions))))
