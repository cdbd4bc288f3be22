"""What came in: octets kept before anything is thought about them, and what became of each."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from sqlalchemy import Row, and_, bindparam, func, insert, or_, select, update

from answerback.model import Received, Scope
from answerback.store import tables
from answerback.store.columns import Moment, Words, here, of, scope_of
from answerback.store.session import Tx
from answerback.store.statements import insert_once, predicate

_OWN, _OCTETS = tables.received, tables.received_octets
_MESSAGES, _CONVERSATIONS = tables.messages, tables.conversations
_STORED = predicate("received.state = 'stored'")
_BOTH = and_(
    _OCTETS.c.tenant == _OWN.c.tenant,
    _OCTETS.c.environment == _OWN.c.environment,
    _OCTETS.c.received_id == _OWN.c.id,
)
_KEEP = insert_once(_OWN, ("inbox_id", "identity"), returning=("id",))
_KEEP_OCTETS = insert(_OCTETS)
_KEEP_CONTENT = insert_once(tables.contents, ("sha256",))
_WHOLE = select(_OWN, _OCTETS.c.octets).join_from(_OWN, _OCTETS, _BOTH)
_DUE = or_(_OWN.c.deferred_until.is_(None), _OWN.c.deferred_until <= bindparam("now", type_=Moment()))
_NEXT = _WHOLE.where(_STORED, _DUE).order_by(_OWN.c.at, _OWN.c.id).limit(1)
_BY_ID = _WHOLE.where(here(_OWN, "id"))
_BY_IDENTITY = select(_OWN).where(here(_OWN, "identity")).order_by(_OWN.c.at, _OWN.c.id)
_BEFORE = _OWN.c.at < bindparam("before")
_COUNT_BEFORE = select(func.count()).select_from(_OWN).where(here(_OWN, "inbox_id"), _STORED, _BEFORE)
_STATE = select(_OWN.c.state).where(here(_OWN, "id"))
_CHANGE = update(_OWN).where(here(_OWN, "id"))
_OLDEST = (
    select(_OWN.c.tenant, _OWN.c.environment, _OWN.c.id)
    .where(_STORED, _DUE)
    .order_by(_OWN.c.at, _OWN.c.id)
    .limit(1)
)
_COUNT_START = _CHANGE.values(attempts=_OWN.c.attempts + 1)
_TWIN = (
    select(_MESSAGES.c.id)
    .join(
        _CONVERSATIONS,
        and_(
            _CONVERSATIONS.c.tenant == _MESSAGES.c.tenant,
            _CONVERSATIONS.c.environment == _MESSAGES.c.environment,
            _CONVERSATIONS.c.id == _MESSAGES.c.conversation_id,
        ),
    )
    .where(
        here(_MESSAGES, "body_hash", "rfc_id"),
        _MESSAGES.c.direction == "in",
        func.lower(_MESSAGES.c.sender_email) == bindparam("author", type_=Words()),
        _CONVERSATIONS.c.inbox_id == bindparam("of_inbox_id"),
    )
    .order_by(_MESSAGES.c.at, _MESSAGES.c.id)
    .limit(1)
)
_CONTENT = select(tables.contents.c.octets).where(here(tables.contents, "sha256"))


def keep(tx: Tx, received: Received, source: str = "smtp") -> str | None:
    """Store a mail as it came and return its id, None where the inbox has that mail already.

    A mail to two inboxes is kept twice.
    """
    row = {
        **scope_of(received.scope),
        "id": received.id,
        "inbox_id": received.inbox_id,
        "identity": received.identity,
        "source": source,
        "mail_from": received.mail_from,
        "recipient": received.recipient,
        "at": received.at,
        "attempts": received.attempts,
        "state": "stored",
        "note": "",
    }
    if tx.one(_KEEP, row) is None:
        return None
    octets = {**scope_of(received.scope), "received_id": received.id, "octets": received.octets}
    tx.run(_KEEP_OCTETS, octets)
    return received.id


def next_received(tx: Tx, now: datetime) -> Received | None:
    """Return the oldest unprocessed mail of any tenant that is not deferred, locked until commit."""
    row = tx.one(tx.locked(_NEXT, skip=True), {"now": now})
    return _received(row) if row else None


def received(tx: Tx, scope: Scope, received_id: str) -> Received | None:
    """Return a mail with its octets, whatever became of it."""
    row = tx.one(_BY_ID, of(scope, id=received_id))
    return _received(row) if row else None


def outcomes(tx: Tx, scope: Scope, identity: str) -> tuple[tuple[str, str, str, str], ...]:
    """Return what became of a mail in every inbox it came to: (id, state, note, message id or "")."""
    rows = tx.all(_BY_IDENTITY, of(scope, identity=identity))
    return tuple((row.id, row.state, row.note, row.message_id or "") for row in rows)


def state(tx: Tx, scope: Scope, received_id: str) -> str:
    """Return where a mail stands: stored, processed, review or dropped; "" where there is none."""
    return str(tx.scalar(_STATE, of(scope, id=received_id)) or "")


def received_before(tx: Tx, scope: Scope, inbox_id: str, at: datetime) -> int:
    """Return how many mails to an inbox came in before an instant and are still unprocessed."""
    return int(tx.scalar(_COUNT_BEFORE, of(scope, inbox_id=inbox_id) | {"before": at}))


def settle(
    tx: Tx,
    scope: Scope,
    received_id: str,
    state: Literal["processed", "review", "dropped"],
    note: str,
    message_id: str | None,
) -> None:
    """Say what became of a mail, and the message it was read into."""
    became = {"state": state, "note": note, "message_id": message_id or None}
    tx.run(_CHANGE, of(scope, id=received_id) | became)


def defer(tx: Tx, scope: Scope, received_id: str, until: datetime) -> None:
    """Leave a mail unprocessed until an instant, as when the DNS does not answer."""
    tx.run(_CHANGE, of(scope, id=received_id) | {"deferred_until": until})


def count_start(tx: Tx, now: datetime) -> int:
    """Count a start of the server for the mail it processes first; return how many that are: 1 or 0.

    Mail is read oldest first, so no other can have ended the process before.
    """
    row = tx.one(tx.locked(_OLDEST), {"now": now})
    if row is None:
        return 0
    scope = Scope(tenant=row.tenant, environment=row.environment)
    return tx.run(_COUNT_START, of(scope, id=row.id))


def twin(tx: Tx, scope: Scope, inbox_id: str, rfc_id: str, author: str, body_hash: str) -> str | None:
    """Return the message of that inbox with the same Message-ID, author and author content, if there is one.

    A mail without Message-ID is nobody's twin.
    """
    if not rfc_id:
        return None
    same = of(scope, body_hash=body_hash, rfc_id=rfc_id, inbox_id=inbox_id)
    row = tx.one(_TWIN, same | {"author": author.lower()})
    return row.id if row else None


def keep_content(tx: Tx, scope: Scope, octets: bytes) -> str:
    """Store an attachment's octets once and return their SHA-256 in hex."""
    digest = sha256(octets).hexdigest()
    tx.run(_KEEP_CONTENT, {**scope_of(scope), "sha256": digest, "octets": octets})
    return digest


def content(tx: Tx, scope: Scope, digest: str) -> bytes | None:
    """Return the octets with that SHA-256."""
    octets = tx.scalar(_CONTENT, of(scope, sha256=digest))
    return None if octets is None else bytes(octets)


def _received(row: Row[Any]) -> Received:
    return Received(
        id=row.id,
        scope=Scope(tenant=row.tenant, environment=row.environment),
        inbox_id=row.inbox_id,
        identity=row.identity,
        octets=bytes(row.octets),
        mail_from=row.mail_from,
        recipient=row.recipient,
        at=row.at,
        attempts=row.attempts,
    )
