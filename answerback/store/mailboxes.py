"""Mailboxes: numbered facts without gap, leased, acknowledged, kept."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Row,
    Update,
    and_,
    bindparam,
    func,
    insert,
    or_,
    select,
    update,
)

from answerback.errors import LeaseExpired, NotFound
from answerback.model import ItemState, MailboxItem, Scope
from answerback.store import tables
from answerback.store.columns import here, scope_of
from answerback.store.session import Tx
from answerback.store.statements import insert_once, predicate

_BOXES, _ITEMS = tables.mailboxes, tables.mailbox_items
_PENDING = predicate("mailbox_items.state IN ('ready', 'leased')")
_ENSURE = insert_once(_BOXES, ("principal",))
# the update locks the counter row until commit, so numbers are in the order of commits
_NEXT = (
    update(_BOXES)
    .where(
        _BOXES.c.tenant == bindparam("of_tenant"),
        _BOXES.c.environment == bindparam("of_environment"),
        _BOXES.c.principal == bindparam("of_principal"),
    )
    .values(last_sequence=_BOXES.c.last_sequence + 1)
    .returning(_BOXES.c.last_sequence)
)
_APPEND = insert(_ITEMS)


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
    where = {"of_tenant": scope.tenant, "of_environment": scope.environment, "of_principal": principal}
    sequence = tx.scalar(_NEXT, where)
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
    wanted = and_(_of(scope, principal), _ITEMS.c.sequence > since)
    return _items(tx.all(select(_ITEMS).where(wanted).order_by(_ITEMS.c.sequence).limit(limit)))


def contiguous_ack(tx: Tx, scope: Scope, principal: str) -> int:
    """Return the highest number up to which every item is acknowledged or dead, 0 for none."""
    first = tx.scalar(select(func.min(_ITEMS.c.sequence)).where(_of(scope, principal), _PENDING))
    if first is not None:
        return int(first) - 1
    return int(tx.scalar(select(func.max(_ITEMS.c.sequence)).where(_of(scope, principal))) or 0)


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
    ended = and_(_ITEMS.c.state == ItemState.LEASED, _ITEMS.c.lease_until <= now)
    free = and_(_of(scope, principal), _PENDING, or_(_ITEMS.c.state == ItemState.READY, ended))
    worn = _locked(tx, and_(free, _ITEMS.c.attempts >= max_attempts), limit)
    tx.run(_change(scope, principal, worn).values(state=ItemState.DEAD))
    taken = _locked(tx, and_(free, _ITEMS.c.attempts < max_attempts), limit)
    tx.run(
        _change(scope, principal, taken).values(
            state=ItemState.LEASED, attempts=_ITEMS.c.attempts + 1, lease_id=lease_id, lease_until=until
        )
    )
    return _numbered(tx, scope, principal, taken), _numbered(tx, scope, principal, worn)


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
    done = select(_ITEMS.c.sequence).where(_of(scope, principal), _ITEMS.c.acked_lease == lease_id)
    acked = {row.sequence for row in tx.all(done)}
    wanted = held | acked if sequences is None else set(sequences)
    if not wanted or not wanted <= held | acked:
        raise LeaseExpired(lease_id=lease_id)
    change = _change(scope, principal, sorted(wanted & held))
    return tx.run(change.values(state=ItemState.ACKED, acked_lease=lease_id))


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
    change = _change(scope, principal, wanted)
    return tx.run(change.values(state=ItemState.READY, lease_id=None, lease_until=None))


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
    return tx.run(_change(scope, principal, wanted).values(lease_until=until))


def pending(tx: Tx, scope: Scope, principal: str) -> int:
    """Return how many items are neither acknowledged nor dead."""
    return int(tx.scalar(select(func.count()).select_from(_ITEMS).where(_of(scope, principal), _PENDING)))


def _of(scope: Scope, principal: str) -> ColumnElement[bool]:
    return and_(here(_ITEMS, scope), _ITEMS.c.principal == principal)


def _change(scope: Scope, principal: str, sequences: Sequence[int]) -> Update:
    return update(_ITEMS).where(_of(scope, principal), _ITEMS.c.sequence.in_(sequences))


def _locked(tx: Tx, wanted: ColumnElement[bool], limit: int) -> list[int]:
    """Return the numbers of the first matching items, passing over what another reader is leasing now."""
    chosen = select(_ITEMS.c.sequence).where(wanted).order_by(_ITEMS.c.sequence).limit(limit)
    return [row.sequence for row in tx.all(tx.locked(chosen, skip=True))]


def _held(tx: Tx, scope: Scope, principal: str, lease_id: str, now: datetime) -> set[int]:
    """Return the numbers under a lease in force, locked."""
    under = and_(
        _of(scope, principal),
        _ITEMS.c.state == ItemState.LEASED,
        _ITEMS.c.lease_id == lease_id,
        _ITEMS.c.lease_until > now,
    )
    return {row.sequence for row in tx.all(tx.locked(select(_ITEMS.c.sequence).where(under)))}


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


def _numbered(tx: Tx, scope: Scope, principal: str, sequences: Sequence[int]) -> tuple[MailboxItem, ...]:
    wanted = and_(_of(scope, principal), _ITEMS.c.sequence.in_(sequences))
    return _items(tx.all(select(_ITEMS).where(wanted).order_by(_ITEMS.c.sequence)))


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
