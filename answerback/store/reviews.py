"""Reviews: what a person has to decide, and what was decided."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import Row, func, insert, select, update

from answerback.errors import AlreadyDecided, NotFound
from answerback.model import Review, Scope
from answerback.store import tables
from answerback.store.columns import here, of, scope_of
from answerback.store.session import Tx

_OWN = tables.reviews
_UNDECIDED = _OWN.c.decided_at.is_(None)
_ADD = insert(_OWN)
_BY_ID = select(_OWN).where(here(_OWN, "id"))
_EVERY = select(_OWN).where(here(_OWN)).order_by(_OWN.c.created_at, _OWN.c.id)
_OPEN = _EVERY.where(_UNDECIDED)
_DECIDE = update(_OWN).where(here(_OWN, "id"), _UNDECIDED)
_HOW_MANY = select(func.count()).select_from(_OWN).where(here(_OWN, "conversation_id"), _UNDECIDED)


def add_review(tx: Tx, scope: Scope, review: Review) -> None:
    """Store an item for a person to decide."""
    row = {
        **scope_of(scope),
        "id": review.id,
        "reason": review.reason,
        "created_at": review.created_at,
        "conversation_id": review.conversation_id or None,
        "message_id": review.message_id or None,
        "received_id": review.received_id or None,
        "wait_id": review.wait_id or None,
        "details": review.details,
        "decision": review.decision or None,
        "decided_by": review.decided_by or None,
        "decided_at": review.decided_at,
    }
    tx.run(_ADD, row)


def review(tx: Tx, scope: Scope, review_id: str, *, lock: bool = False) -> Review | None:
    """Return the review of that id, with `lock` held until commit."""
    row = tx.one(tx.locked(_BY_ID) if lock else _BY_ID, of(scope, id=review_id))
    return _review(row) if row else None


def reviews(tx: Tx, scope: Scope, *, open_only: bool = True) -> tuple[Review, ...]:
    """Return reviews, oldest first, without the decided ones unless asked for."""
    return tuple(_review(row) for row in tx.all(_OPEN if open_only else _EVERY, of(scope)))


def decide(tx: Tx, scope: Scope, review_id: str, decision: str, by: str, at: datetime) -> None:
    """Store a person's decision; the first one counts.

    Raises:
        AlreadyDecided: it was decided before.
        NotFound: there is no such review.
    """
    decided = {"decision": decision, "decided_by": by, "decided_at": at}
    if tx.run(_DECIDE, of(scope, id=review_id) | decided):
        return
    found = review(tx, scope, review_id)
    if found is None:
        raise NotFound(kind="review", id=review_id)
    raise AlreadyDecided(id=review_id, decision=found.decision)


def open_reviews(tx: Tx, scope: Scope, conversation_id: str) -> int:
    """Return how many reviews about a conversation are undecided."""
    return int(tx.scalar(_HOW_MANY, of(scope, conversation_id=conversation_id)))


def _review(row: Row[Any]) -> Review:
    return Review(
        id=row.id,
        reason=row.reason,
        created_at=row.created_at,
        conversation_id=row.conversation_id or "",
        message_id=row.message_id or "",
        received_id=row.received_id or "",
        wait_id=row.wait_id or "",
        details=row.details,
        decision=row.decision or "",
        decided_by=row.decided_by or "",
        decided_at=row.decided_at,
    )
