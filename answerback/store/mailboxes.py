"""Mailboxes: numbered facts without gap, leased, acknowledged, kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, Update, and_, bindparam, func, insert, or_, select, update

from answerback.errors import LeaseExpired, NotFound
from answerback.model import ItemState, MailboxItem, Scope
from answerback.store import tables
from answerback.store.columns import Moment, among, here, of, scope_of
from answerback.store.session import Tx
from answerback.store.statements import insert_once, predicate

_BOXES, _ITEMS = tables.mailboxes, tables.mailbox_items
_PENDING = predicate("mailbox_items.state IN ('ready', 'leased')")
_ENSURE = insert_once(_BOXES, ("principal",))
# the update locks the counter row until commit, so numbers are in the order of commits
_NEXT = (
    update(_BOXES)
    .where(here(_BOXES, "principal"))
    .values(last_sequence=_BOXES.c.last_sequence + 1)
    .returning(_BOXES.c.last_sequence)
)
_APPEND = insert(_ITEMS)
_OF = here(_ITEMS, "principal")
_NOW = bindparam("now", type_=Moment())
_LEASED = _ITEMS.c.state == ItemState.LEASED
_LEASE_OVER = and_(_LEASED, _ITEMS.c.lease_until <= _NOW)
_SINCE = (
    select(_ITEMS)
    .where(_OF, _ITEMS.c.sequence > bindparam("since"))
    .order_by(_ITEMS.c.sequence)
    .limit(bindparam("limit"))
)
_FIRST_PENDING = select(func.min(_ITEMS.c.sequence)).where(_OF, _PENDING)
_LAST = select(func.max(_ITEMS.c.sequence)).where(_OF)
_HOW_MANY = select(func.count()).select_from(_ITEMS).where(_OF, _PENDING)
_FREE = (
    select(_ITEMS.c.sequence)
    .where(_OF, _PENDING, or_(_ITEMS.c.state == ItemState.READY, _LEASE_OVER))
    .order_by(_ITEMS.c.sequence)
    .limit(bindparam("limit"))
)
_WORN = _FREE.where(_ITEMS.c.attempts >= bindparam("most"))
_FRESH = _FREE.where(_ITEMS.c.attempts < bindparam("most"))
_ACKED = select(_ITEMS.c.sequence).where(_OF, _ITEMS.c.acked_lease == bindparam("of_lease_id"))
_HELD = select(_ITEMS.c.sequence).where(
    here(_ITEMS, "principal", "lease_id"), _LEASED, _ITEMS.c.lease_until > _NOW
)
_NUMBERED = select(_ITEMS).where(_OF, among(_ITEMS.c.sequence, "numbers")).order_by(_ITEMS.c.sequence)
_CHANGE = update(_ITEMS).where(_OF, among(_ITEMS.c.sequence, "numbers"))
_LEASE = _CHANGE.values(attempts=_ITEMS.c.attempts + 1)


def ensure_mailbox(tx: Tx, scope: Scope, principal: str) -> None:
    """Make the mailbox of a principal where there is none."""
    tx.run(_ENSURE, {**scope_of(scope), "principal": principal, "last_sequence": 0})


def append(  # noqa: PLR0913, PLR0917 - an event's own attributes, in the order CloudEvents lists them
    tx: Tx,
    scope: Scope,
    principal: str,
    event_id: str,
    event_type: str,
    at: datetime,
    envelope: Callable[[int], str],
) -> int:
    """Store `envelope(sequence)` under the mailbox's next number and return that number.

    The mailbox stays locked until commit: whoever writes to several takes them in order of their names.
    """
    sequence = tx.scalar(_NEXT, of(scope, principal=principal))
    if sequence is None:
        raise NotFound(kind="mailbox", id=principal)
    item = {
        **scope_of(scope),
        "principal": principal,
        "sequence": sequence,
        "event_id": event_id,
        "type": event_type,
        "at": at,
        "state": ItemState.READY,
        "attempts": 0,
        "envelope": envelope(sequence),
    }
    tx.run(_APPEND, item)
    return int(sequence)


def read(tx: Tx, scope: Scope, principal: str, since: int, limit: int) -> tuple[MailboxItem, ...]:
    """Return items numbered above `since`, in order, whatever their state; reading consumes nothing."""
    return _items(tx.all(_SINCE, of(scope, principal=principal) | {"since": since, "limit": limit}))


def contiguous_ack(tx: Tx, scope: Scope, principal: str) -> int:
    """Return the highest number up to which every item is acknowledged or dead, 0 for none."""
    first = tx.scalar(_FIRST_PENDING, of(scope, principal=principal))
    if first is not None:
        return int(first) - 1
    return int(tx.scalar(_LAST, of(scope, principal=principal)) or 0)


def lease(  # noqa: PLR0913, PLR0917 - the terms of a lease
    tx: Tx,
    scope: Scope,
    principal: str,
    lease_id: str,
    until: datetime,
    now: datetime,
    limit: int,
    max_attempts: int,
) -> tuple[tuple[MailboxItem, ...], tuple[MailboxItem, ...]]:
    """Return the items leased until `until`, and those that died because they were leased too often.

    Free are ready items and those whose lease is over, in order. One that was leased `max_attempts` times
    before is dead: kept, but leased to nobody again.
    """
    own = of(scope, principal=principal)
    terms = own | {"now": now, "most": max_attempts, "limit": limit}
    worn = _locked(tx, _WORN, terms)
    _write(tx, _CHANGE, own | {"numbers": worn, "state": ItemState.DEAD})
    taken = _locked(tx, _FRESH, terms)
    held = {"state": ItemState.LEASED, "lease_id": lease_id, "lease_until": until}
    _write(tx, _LEASE, own | held | {"numbers": taken})
    return _numbered(tx, own, taken), _numbered(tx, own, worn)


def ack(
    tx: Tx,
    scope: Scope,
    principal: str,
    lease_id: str,
    sequences: Sequence[int] | None,
    now: datetime,
) -> int:
    """Return how many items of the lease were acknowledged now; None means all of it.

    Items acknowledged under this lease before are no error, so a call may be repeated.

    Raises:
        LeaseExpired: the lease is over, or one of the items is not under it.
    """
    held = _held(tx, scope, principal, lease_id, now)
    own = of(scope, principal=principal)
    acked = {row.sequence for row in tx.all(_ACKED, own | {"of_lease_id": lease_id})}
    wanted = held | acked if sequences is None else set(sequences)
    if not wanted or not wanted <= held | acked:
        raise LeaseExpired(lease_id=lease_id)
    done = {"numbers": sorted(wanted & held), "state": ItemState.ACKED, "acked_lease": lease_id}
    return _write(tx, _CHANGE, own | done)


def nack(
    tx: Tx,
    scope: Scope,
    principal: str,
    lease_id: str,
    sequences: Sequence[int] | None,
    now: datetime,
) -> int:
    """Return how many items of the lease were given back, to be leased again at once; None means all of it.

    Raises:
        LeaseExpired: the lease is over, or one of the items is not under it.
    """
    wanted = _wanted(tx, scope, principal, lease_id, sequences, now)
    freed = {"numbers": wanted, "state": ItemState.READY, "lease_id": None, "lease_until": None}
    return _write(tx, _CHANGE, of(scope, principal=principal) | freed)


def extend(  # noqa: PLR0913, PLR0917 - which items of which lease, when and how long
    tx: Tx,
    scope: Scope,
    principal: str,
    lease_id: str,
    sequences: Sequence[int] | None,
    now: datetime,
    until: datetime,
) -> int:
    """Return how many items of the lease are held until `until`; None means all of it.

    Raises:
        LeaseExpired: the lease is over, or one of the items is not under it.
    """
    wanted = _wanted(tx, scope, principal, lease_id, sequences, now)
    held = {"numbers": wanted, "lease_until": until}
    return _write(tx, _CHANGE, of(scope, principal=principal) | held)


def pending(tx: Tx, scope: Scope, principal: str) -> int:
    """Return how many items are neither acknowledged nor dead."""
    return int(tx.scalar(_HOW_MANY, of(scope, principal=principal)))


def _write(tx: Tx, change: Update, values: dict[str, object]) -> int:
    """Return how many items were changed; without numbers nothing is asked of the database."""
    return tx.run(change, values) if values["numbers"] else 0


def _locked(tx: Tx, wanted: Select[Any], terms: dict[str, object]) -> list[int]:
    """Return the numbers of the first matching items, passing over what another reader is leasing now."""
    return [row.sequence for row in tx.all(tx.locked(wanted, skip=True), terms)]


def _held(tx: Tx, scope: Scope, principal: str, lease_id: str, now: datetime) -> set[int]:
    """Return the numbers under a lease in force, locked."""
    under = of(scope, principal=principal, lease_id=lease_id) | {"now": now}
    return {row.sequence for row in tx.all(tx.locked(_HELD), under)}


def _wanted(
    tx: Tx,
    scope: Scope,
    principal: str,
    lease_id: str,
    sequences: Sequence[int] | None,
    now: datetime,
) -> list[int]:
    held = _held(tx, scope, principal, lease_id, now)
    wanted = held if sequences is None else set(sequences)
    if not wanted or not wanted <= held:
        raise LeaseExpired(lease_id=lease_id)
    return sorted(wanted)


def _numbered(tx: Tx, own: dict[str, object], numbers: Sequence[int]) -> tuple[MailboxItem, ...]:
    return _items(tx.all(_NUMBERED, own | {"numbers": numbers})) if numbers else ()


def _items(rows: Sequence[Row[Any]]) -> tuple[MailboxItem, ...]:
    return tuple(
        MailboxItem(
            sequence=row.sequence,
            event_id=row.event_id,
            type=row.type,
            envelope=row.envelope,
            state=ItemState(row.state),
            attempts=row.attempts,
            lease_id=row.lease_id or "",
            lease_until=row.lease_until,
        )
        for row in rows
    )
