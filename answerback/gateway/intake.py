"""The way in: admits a recipient, stores the octets before the 250, then processes what was stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import structlog

from answerback.channels.mail.reception import Delivery, Verdict
from answerback.errors import Unable
from answerback.gateway import advance, answers, arrival
from answerback.model import Received, Scope
from answerback.store import conversations, inbound, tenants

if TYPE_CHECKING:
    from answerback.gateway.context import Context, Work
    from answerback.store.session import Tx

log = structlog.get_logger()

#: starts a stored mail may kill before a person looks at it
MAX_STARTS = 3
#: mails processed before whoever asked for it looks around again
BATCH = 100
STORED = Verdict(code=250, text="2.0.0 stored")
#: recipients remembered as ours; an inbox is never taken away while the server runs
MOST_REMEMBERED = 10_000
#: local parts that reach the operator of any domain of ours (RFC 2142, RFC 5321 4.5.1)
ROLES = ("postmaster", "abuse")


@dataclass(frozen=True, slots=True)
class Route:
    """Whose a recipient address is: an inbox's, or ("") the operator's."""

    scope: Scope
    inbox_id: str


class Gate:
    """The SMTP edge: says who is an inbox here, and stores what comes in groups that share one commit.

    While one commit runs, further mails gather for the next: the disk is asked once for all of them.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._admitted: set[str] = set()
        self._waiting: list[tuple[Delivery, asyncio.Future[tuple[Verdict, ...]]]] = []
        self._flusher: asyncio.Task[None] | None = None

    async def admit(self, recipient: str) -> bool:
        """Tell whether a recipient is an inbox, one of its sub-addresses, or a role of a domain of ours."""
        if recipient in self._admitted:
            return True
        if await asyncio.to_thread(_look_up, self._context, recipient) is None:
            return False
        if len(self._admitted) >= MOST_REMEMBERED:
            self._admitted.clear()
        self._admitted.add(recipient)
        return True

    async def accept(self, delivery: Delivery) -> tuple[Verdict, ...]:
        """Store a mail for each of its recipients and return their verdicts once it is committed."""
        done: asyncio.Future[tuple[Verdict, ...]] = asyncio.get_running_loop().create_future()
        self._waiting.append((delivery, done))
        if self._flusher is None or self._flusher.done():
            self._flusher = asyncio.create_task(self._flush())
        return await done

    async def _flush(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await asyncio.to_thread(keep, self._context, [delivery for delivery, _ in batch])
            except Exception as error:
                # The edge of the room: nothing was stored, so every peer is told to try again.
                log.exception("mail not stored", action="keep")
                for _, done in batch:
                    if not done.done():
                        done.set_exception(error)
                continue
            for delivery, done in batch:
                if not done.done():
                    done.set_result((STORED,) * len(delivery.recipients))


def find_route(tx: Tx, recipient: str, tenant: str = "default") -> Route | None:
    """Return where an address leads: an inbox, exact or by sub-address, or a role of its domain.

    `<postmaster>` without a domain is the operator of the given tenant (RFC 5321 4.5.1).
    """
    local, at, domain = recipient.lower().rpartition("@")
    if not at:
        home = Scope(tenant=tenant, environment="live")
        return Route(home, "") if domain == "postmaster" else None
    if found := tenants.inbox_at(tx, f"{local}@{domain}"):
        return Route(found[0], found[1].id)
    base, plus, _ = local.partition("+")
    if plus and (found := tenants.inbox_at(tx, f"{base}@{domain}")) and found[1].sub_addresses:
        return Route(found[0], found[1].id)
    if local in ROLES and (found := tenants.inbox_of_domain(tx, domain)):
        return Route(found[0], "")
    return None


def _look_up(context: Context, recipient: str) -> Route | None:
    with context.db.read() as tx:
        return find_route(tx, recipient, context.settings.tenant)


def keep(context: Context, batch: Sequence[Delivery]) -> None:
    """Store every mail of a batch for every recipient in one transaction (RFC 5321 4.2.5: 250 means kept)."""
    with context.db.write() as tx:
        for delivery in batch:
            for recipient in delivery.recipients:
                inbound.keep(tx, _received(context, tx, delivery, recipient))
        context.crash("received")
    context.crash("stored")
    context.wake("received")


def _received(context: Context, tx: Tx, delivery: Delivery, recipient: str) -> Received:
    route = find_route(tx, recipient, context.settings.tenant)
    if route is None:
        # An inbox is never taken away; without one nothing may be promised.
        raise LookupError("an admitted recipient is no inbox any more")
    return Received(
        id=context.new_id("rcv"),
        scope=route.scope,
        inbox_id=route.inbox_id,
        identity=sha256(delivery.octets).hexdigest(),
        octets=delivery.octets,
        mail_from=delivery.mail_from,
        recipient=recipient,
        at=context.clock.now(),
    )


def process_all(context: Context, *, at_most: int = BATCH) -> int:
    """Process stored mails, oldest first, up to a limit, and return how many there were.

    Whoever comes second waits: then the mail it came for is processed.

    Raises:
        Unable: the database can not be used just now; the mail stays stored.
    """
    done = 0
    with context.processing:
        while done < at_most and process_next(context):
            done += 1
    if done:
        for part in ("mailbox", "timers", "outbox"):
            context.wake(part)
    return done


def process_next(context: Context) -> bool:
    """Process the oldest stored mail; what can not be processed goes to review with its octets.

    Raises:
        Unable: the database can not be used just now, which says nothing about the mail: it stays stored.
    """
    with context.db.read() as tx:
        waiting = inbound.next_received(tx, context.clock.now())
    if waiting is None:
        return False
    try:
        _process(context, waiting)
    except Unable:
        raise
    except Exception:
        # The top of a loop: the mail goes to a person, never away, and the next one is not delayed.
        log.exception("mail not processed", action="process", received_id=waiting.id)
        give_up(context, waiting)
    return True


def unread(work: Work, conversation_id: str) -> bool:
    """Tell whether mail to a conversation's inbox that came in before now is still to be processed.

    Whoever has written is not nagged, so a nudge, an abandonment and an expiry wait for it.
    """
    conversation = conversations.conversation(work.tx, work.scope, conversation_id)
    assert conversation is not None
    return inbound.received_before(work.tx, work.scope, conversation.inbox_id, work.now) > 0


def give_up(context: Context, waiting: Received) -> None:
    """Put a stored mail before a person as `unprocessable`, unless somebody else was done with it first."""
    with context.db.write() as tx:
        if _is_next(context, tx, waiting):
            _to_review(context.work(tx, waiting.scope), waiting, "unprocessable")


def _is_next(context: Context, tx: Tx, waiting: Received) -> bool:
    """Tell whether a mail is still the oldest stored one, and hold its row until commit."""
    row = inbound.next_received(tx, context.clock.now())
    return row is not None and row.id == waiting.id


def _process(context: Context, waiting: Received) -> None:
    if waiting.attempts >= MAX_STARTS:
        raise RuntimeError("a mail that ended the process three times is not read again")
    mail = answers.read_received(waiting)
    with context.db.write() as tx:
        if not _is_next(context, tx, waiting):
            return  # another process was faster
        work = context.work(tx, waiting.scope)
        if waiting.inbox_id:
            arrival.arrive(work, waiting, mail)
        else:
            _to_review(work, waiting, "postmaster")
        context.crash("matched")


def _to_review(work: Work, waiting: Received, reason: str) -> None:
    advance.open_review(work, reason, advance.About(received_id=waiting.id))
    inbound.settle(work.tx, work.scope, waiting.id, "review", reason, None)


def recover(context: Context) -> int:
    """Count a start for the mail that is processed first; return how many that are: 1 or 0.

    Only that one can have ended the process before.
    """
    with context.db.write() as tx:
        return inbound.count_start(tx, context.clock.now())
