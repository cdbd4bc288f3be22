"""The operator's schedules, every version kept."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, insert, select

from answerback.model import Json, Scope
from answerback.store import tables
from answerback.store.columns import here, scope_of
from answerback.store.session import Tx

_OWN = tables.schedules


def add_schedule(tx: Tx, scope: Scope, name: str, policy: Json, at: datetime) -> int:
    """Store a policy as the next version of a name and return its number, from 1."""
    latest = tx.scalar(select(func.max(_OWN.c.version)).where(here(_OWN, scope), _OWN.c.name == name))
    version = int(latest or 0) + 1
    values = scope_of(scope) | {"name": name}
    tx.run(insert(_OWN).values(**values, version=version, policy=policy, created_at=at))
    return version


def schedule_policy(tx: Tx, scope: Scope, name: str, version: int | None = None) -> tuple[int, Json] | None:
    """Return version and policy, of the latest version where none is named."""
    wanted = select(_OWN).where(here(_OWN, scope), _OWN.c.name == name)
    if version is not None:
        wanted = wanted.where(_OWN.c.version == version)
    row = tx.one(wanted.order_by(_OWN.c.version.desc()).limit(1))
    return (row.version, row.policy) if row else None


def schedule_names(tx: Tx, scope: Scope) -> tuple[str, ...]:
    """Return every schedule's name in order."""
    rows = tx.all(select(_OWN.c.name).distinct().where(here(_OWN, scope)).order_by(_OWN.c.name))
    return tuple(row.name for row in rows)
