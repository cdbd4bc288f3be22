"""The outbox: one row per recipient's copy, from queued to sent, never back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Row, Select, bindparam, func, insert, select, update

from answerback.errors import NotFound
from answerback.model import OutboxRow, OutboxState, Scope
from answerback.store import tables
from answerback.store.columns import Moment, Words, among, here, of, scope_of
from answerback.store.conversations import in_conversation
from answerback.store.session import Tx
from answerback.store.statements import predicate

_OWN, _MESSAGES = tables.outbox, tables.messages
_WAITS_FOR_TURN = predicate("outbox.next_attempt_at IS NOT NULL")
_LEASED = predicate("outbox.lease_until IS NOT NULL")
_TO_SEND = (OutboxState.QUEUED, OutboxState.DEFERRED)
_UNSENT = (*_TO_SEND, OutboxState.HANDING_OVER)


def _oldest(condition: ColumnElement[bool], since: ColumnElement[Any]) -> Select[Any]:
    """PostgreSQL locks no DISTINCT rows, so the rows are locked and the messages counted in `_messages`."""
    return (
        select(_OWN.c.tenant, _OWN.c.environment, _OWN.c.message_id)
        .where(condition, since <= bindparam("now", type_=Moment()))
        .order_by(since, _OWN.c.message_id, _OWN.c.recipient)
    )


_QUEUE = insert(_OWN)
_READY = _oldest(_WAITS_FOR_TURN, _OWN.c.next_attempt_at).limit(bindparam("limit"))
_LAPSED = _oldest(_LEASED, _OWN.c.lease_until)
_COPIES = select(_OWN).where(here(_OWN, "message_id")).order_by(_OWN.c.recipient)
_HAND_OVER = (
    update(_OWN)
    .where(here(_OWN, "message_id"), among(_OWN.c.recipient, "recipients"), _OWN.c.state.in_(_TO_SEND))
    .values(state=OutboxState.HANDING_OVER, next_attempt_at=None)
)
_RENEW = update(_OWN).where(here(_OWN, "message_id"), _LEASED, _OWN.c.owner == bindparam("of_owner"))
_NEXT_LAPSE = select(func.min(_OWN.c.lease_until)).where(_LEASED)
_RECORD = (
    update(_OWN)
    .where(here(_OWN, "message_id", "recipient"))
    .values(attempts=_OWN.c.attempts + 1, owner=None, lease_until=None)
)
_NUDGES = select(_MESSAGES.c.id).where(here(_MESSAGES, "wait_id"), _MESSAGES.c.kind == "nudge")
_WITHDRAW = (
    update(_OWN)
    .where(here(_OWN), _OWN.c.message_id.in_(_NUDGES), _OWN.c.state.in_(_TO_SEND))
    .values(state=OutboxState.WITHDRAWN, next_attempt_at=None)
)
_OURS = select(_MESSAGES.c.id).where(here(_MESSAGES), in_conversation())
_FIRST_UNSENT = (
    select(_OWN.c.message_id)
    .where(here(_OWN), _OWN.c.message_id.in_(_OURS), _OWN.c.state.in_(_UNSENT))
    .limit(1)
)
_REPORT = update(_OWN).where(
    here(_OWN, "message_id"),
    func.lower(_OWN.c.recipient) == bindparam("of_recipient", type_=Words()),
)
_NEXT_ATTEMPT = select(func.min(_OWN.c.next_attempt_at)).where(_WAITS_FOR_TURN)


def queue(
    tx: Tx,
    scope: Scope,
    message_id: str,
    recipients: Iterable[str],
    at: datetime,
    wait_id: str | None = None,
) -> None:
    """Store one queued copy per recipient, ready to be sent at `at`."""
    rows = [
        {
            **scope_of(scope),
            "message_id": message_id,
            "recipient": recipient,
            "state": OutboxState.QUEUED,
            "attempts": 0,
            "queued_at": at,
            "next_attempt_at": at,
            "code": 0,
            "text": "",
            "reported": "",
            "wait_id": wait_id or None,
        }
        for recipient in dict.fromkeys(recipients)
    ]
    if rows:
        tx.run(_QUEUE, rows)


def ready(tx: Tx, now: datetime, limit: int) -> tuple[tuple[Scope, str], ...]:
    """Return the messages of any tenant with copies to be sent now, the longest waiting first.

    `limit` counts copies. They are locked until commit, and those another process has locked are passed over.
    A message may have more copies than were found: `copies(lock=True)` tells the truth.
    """
    return _messages(tx, _READY, {"now": now, "limit": limit})


def lapsed(tx: Tx, now: datetime) -> tuple[tuple[Scope, str], ...]:
    """Return the messages of any tenant with copies whose process let its lease run out meanwhile."""
    return _messages(tx, _LAPSED, {"now": now})


def copies(tx: Tx, scope: Scope, message_id: str, *, lock: bool = False) -> tuple[OutboxRow, ...]:
    """Return a message's copies in order of recipient, with `lock` held until commit."""
    rows = tx.all(tx.locked(_COPIES) if lock else _COPIES, of(scope, message_id=message_id))
    return tuple(_copy(row) for row in rows)


def hand_over(
    tx: Tx,
    scope: Scope,
    message_id: str,
    recipients: Sequence[str],
    owner: str,
    lease_until: datetime,
) -> int:
    """Return how many of the copies go to the server now: those that were queued or deferred until now."""
    held = {"recipients": list(recipients), "owner": owner, "lease_until": lease_until}
    return tx.run(_HAND_OVER, of(scope, message_id=message_id) | held)


def renew(tx: Tx, scope: Scope, message_id: str, owner: str, lease_until: datetime) -> int:
    """Return how many copies of a message this process is handing over; they are leased until then."""
    held = {"of_owner": owner, "lease_until": lease_until}
    return tx.run(_RENEW, of(scope, message_id=message_id) | held)


def next_lapse(tx: Tx) -> datetime | None:
    """Return the earliest instant the lease of a copy of any tenant runs out."""
    found: datetime | None = tx.scalar(_NEXT_LAPSE)
    return found


def record(  # noqa: PLR0913, PLR0917 - the server's whole answer
    tx: Tx,
    scope: Scope,
    message_id: str,
    recipient: str,
    state: OutboxState,
    at: datetime,
    code: int,
    text: str,
    next_attempt_at: datetime | None = None,
) -> None:
    """Store what an attempt came to (or what a person decided), and count the attempt.

    A copy that is to be sent again is due at `next_attempt_at`, at once where that is None.
    """
    due = (next_attempt_at or at) if state in _TO_SEND else None
    values = {
        "state": state,
        "recorded_at": at,
        "code": code,
        "text": text,
        "next_attempt_at": due,
    }
    if tx.run(_RECORD, of(scope, message_id=message_id, recipient=recipient) | values) == 0:
        raise NotFound(kind="copy", id=f"{message_id} to {recipient}")


def withdraw(tx: Tx, scope: Scope, wait_id: str) -> int:
    """Return how many of a wait's nudge copies are withdrawn: all that were still queued or deferred."""
    return tx.run(_WITHDRAW, of(scope, wait_id=wait_id))


def unsent(tx: Tx, scope: Scope, wait_or_conversation_id: str) -> bool:
    """Tell whether a copy of ours, in a conversation or a wait's, is queued, deferred or handed over now."""
    return tx.one(_FIRST_UNSENT, of(scope, place=wait_or_conversation_id)) is not None


def report(tx: Tx, scope: Scope, message_id: str, recipient: str, reported: str, at: datetime) -> int:
    """Return how many copies a later report is about: `delivered`, `delayed`, `bounced`, `complained`.

    Recipients are compared without case, as servers write them.
    """
    about = of(scope, message_id=message_id, recipient=recipient.lower())
    return tx.run(_REPORT, about | {"reported": reported, "reported_at": at})


def next_attempt(tx: Tx) -> datetime | None:
    """Return the earliest instant a copy of any tenant is to be sent."""
    found: datetime | None = tx.scalar(_NEXT_ATTEMPT)
    return found


def _messages(tx: Tx, oldest: Select[Any], values: dict[str, object]) -> tuple[tuple[Scope, str], ...]:
    rows = tx.all(tx.locked(oldest, skip=True), values)
    found = ((Scope(tenant=row.tenant, environment=row.environment), row.message_id) for row in rows)
    return tuple(dict.fromkeys(found))


def _copy(row: Row[Any]) -> OutboxRow:
    return OutboxRow(
        scope=Scope(tenant=row.tenant, environment=row.environment),
        message_id=row.message_id,
        recipient=row.recipient,
        state=OutboxState(row.state),
        attempts=row.attempts,
        next_attempt_at=row.next_attempt_at,
        code=row.code,
        text=row.text,
        reported=row.reported,
    )
