"""Remembers the answers to requests that carried an Idempotency-Key."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, select, update

from answerback.errors import IdempotencyMismatch, InProgress
from answerback.model import Remembered, Scope
from answerback.store import tables
from answerback.store.columns import here, scope_of
from answerback.store.session import Tx
from answerback.store.statements import insert_once

_OWN = tables.idempotency
_BEGIN = insert_once(_OWN, ("owner", "key"), returning=("key",))
#: a request that has not finished by then died with its process
ABANDONED_AFTER = timedelta(seconds=60)


def begin(tx: Tx, scope: Scope, owner: str, key: str, digest: str, at: datetime) -> Remembered | None:
    """Return the answer given before, None where the request is to be carried out now.

    Raises:
        IdempotencyMismatch: the key was used for another request (another digest).
        InProgress: the same request is being carried out (for less than `ABANDONED_AFTER`).
    """
    row = {**scope_of(scope), "owner": owner, "key": key, "digest": digest, "at": at}
    if tx.one(_BEGIN, row) is not None:
        return None
    found = tx.one(select(_OWN).where(_of(scope, owner, key)).with_for_update())
    assert found is not None
    if found.digest != digest:
        raise IdempotencyMismatch(key=key)
    if found.status is not None:
        return Remembered(status=found.status, body=found.body)
    if at - found.at < ABANDONED_AFTER:
        raise InProgress(key=key)
    tx.run(update(_OWN).where(_of(scope, owner, key)).values(at=at))
    return None


def finish(  # noqa: PLR0913, PLR0917 - whose key, and the answer
    tx: Tx, scope: Scope, owner: str, key: str, status: int, body: str, at: datetime
) -> None:
    """Remember the answer to a request that was begun."""
    tx.run(update(_OWN).where(_of(scope, owner, key)).values(status=status, body=body, at=at))


def forget(tx: Tx, scope: Scope, owner: str, key: str) -> None:
    """Free the key of a request whose answer is not final, such as a 503."""
    tx.run(delete(_OWN).where(_of(scope, owner, key), _OWN.c.status.is_(None)))


def _of(scope: Scope, owner: str, key: str) -> ColumnElement[bool]:
    return and_(here(_OWN, scope), _OWN.c.owner == owner, _OWN.c.key == key)
