"""The agent's mailbox: read, lease, ack, nack, extend."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

from answerback.gateway import delivery
from answerback.model import Json, MailboxItem
from answerback.store import mailboxes as boxes
from answerback.store import tenants

if TYPE_CHECKING:
    from answerback.gateway.context import Caller, Work
    from answerback.gateway.verbs import requests

#: deliveries before an item goes to the dead letters
MAX_ATTEMPTS = 5


def read(work: Work, caller: Caller, request: requests.ReadMailbox) -> Json:
    """Return items after `since`, whatever their state; nothing is taken.

    Without `since`: after the highest number up to which everything is acknowledged.
    """
    since = request.since
    if since is None:
        since = boxes.contiguous_ack(work.tx, work.scope, caller.principal)
    items = boxes.read(work.tx, work.scope, caller.principal, since, request.limit)
    return {"items": [shown(item) for item in items], "since": since}


def lease(work: Work, caller: Caller, request: requests.Lease) -> Json:
    """Take up to `max` items for `seconds`; each comes again unless it is acknowledged in that time."""
    lease_id = work.context.new_id("ls")
    until = work.now + timedelta(seconds=request.seconds)
    taken, died = boxes.lease(
        work.tx, work.scope, caller.principal, lease_id, until, work.now, request.max, MAX_ATTEMPTS
    )
    for item in died:
        _tell_owner(work, caller, item)
    return {"lease_id": lease_id, "lease_until": until.isoformat(), "items": [shown(item) for item in taken]}


def _tell_owner(work: Work, caller: Caller, item: MailboxItem) -> None:
    agent = tenants.agent(work.tx, work.scope, caller.agent_id)
    owner = agent.owner if agent else "operator"
    data: Json = {"mailbox": caller.principal, "sequence": item.sequence, "event_id": item.event_id}
    delivery.tell(work, [owner], "mailbox.dead_lettered", data)


def ack(work: Work, caller: Caller, request: requests.Leased) -> Json:
    """End items of a lease: they never come again."""
    work.context.crash("before_ack")
    count = boxes.ack(work.tx, work.scope, caller.principal, request.lease_id, request.sequences, work.now)
    return {"acknowledged": count}


def nack(work: Work, caller: Caller, request: requests.Leased) -> Json:
    """Give items of a lease back: they come again at once."""
    count = boxes.nack(work.tx, work.scope, caller.principal, request.lease_id, request.sequences, work.now)
    return {"returned": count}


def extend(work: Work, caller: Caller, request: requests.Extend) -> Json:
    """Keep items of a lease for `seconds` from now."""
    until = work.now + timedelta(seconds=request.seconds)
    count = boxes.extend(
        work.tx, work.scope, caller.principal, request.lease_id, request.sequences, work.now, until
    )
    return {"extended": count, "lease_until": until.isoformat()}


def shown(item: MailboxItem) -> Json:
    """Return an item as an agent sees it: its number, state and the stored envelope."""
    return {
        "sequence": item.sequence,
        "state": str(item.state),
        "attempts": item.attempts,
        "lease_until": item.lease_until.isoformat() if item.lease_until else None,
        "event": json.loads(item.envelope),
    }
