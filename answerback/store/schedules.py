"""The operator's schedules, every version kept."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, insert, select

from answerback.model import Json, Scope
from answerback.store import tables
from answerback.store.columns import here, of, scope_of
from answerback.store.session import Tx

_OWN = tables.schedules
_ADD = insert(_OWN)
_LATEST_VERSION = select(func.max(_OWN.c.version)).where(here(_OWN, "name"))
_LATEST = select(_OWN).where(here(_OWN, "name")).order_by(_OWN.c.version.desc()).limit(1)
_VERSION = select(_OWN).where(here(_OWN, "name", "version"))
_NAMES = select(_OWN.c.name).distinct().where(here(_OWN)).order_by(_OWN.c.name)


def add_schedule(tx: Tx, scope: Scope, name: str, policy: Json, at: datetime) -> int:
    """Store a policy as the next version of a name and return its number, from 1."""
    version = int(tx.scalar(_LATEST_VERSION, of(scope, name=name)) or 0) + 1
    values = {"name": name, "version": version, "policy": policy, "created_at": at}
    tx.run(_ADD, scope_of(scope) | values)
    return version


def schedule_policy(tx: Tx, scope: Scope, name: str, version: int | None = None) -> tuple[int, Json] | None:
    """Return version and policy, of the latest version where none is named."""
    wanted = _LATEST if version is None else _VERSION
    row = tx.one(wanted, of(scope, name=name, version=version))
    return (row.version, row.policy) if row else None


def schedule_names(tx: Tx, scope: Scope) -> tuple[str, ...]:
    """Return every schedule's name in order."""
    rows = tx.all(_NAMES, of(scope))
    return tuple(row.name for row in rows)
