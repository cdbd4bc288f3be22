"""Remembers the answers to requests that carried an Idempotency-Key."""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import select, update

from answerback.errors import IdempotencyMismatch, InProgress
from answerback.model import Remembered, Scope
from answerback.store import tables
from answerback.store.columns import here, of, scope_of
from answerback.store.session import Tx
from answerback.store.statements import insert_once

_OWN = tables.idempotency
_BEGIN = insert_once(_OWN, ("owner", "key"), returning=("key",))
_OF_KEY = here(_OWN, "owner", "key")
_REMEMBERED = select(_OWN).where(_OF_KEY)
_CHANGE = update(_OWN).where(_OF_KEY)
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
    found = tx.one(tx.locked(_REMEMBERED), of(scope, owner=owner, key=key))
    assert found is not None
    if found.digest != digest:
        raise IdempotencyMismatch(key=key)
    if found.status is not None:
        return Remembered(status=found.status, body=found.body)
    if at - found.at < ABANDONED_AFTER:
        raise InProgress(key=key)
    tx.run(_CHANGE, of(scope, owner=owner, key=key) | {"at": at})
    return None


def finish(  # noqa: PLR0913, PLR0917 - whose key, and the answer
    tx: Tx, scope: Scope, owner: str, key: str, status: int, body: str, at: datetime
) -> None:
    """Remember the answer to a request that was begun."""
    tx.run(_CHANGE, of(scope, owner=owner, key=key) | {"status": status, "body": body, "at": at})
