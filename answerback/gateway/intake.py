"""The way in: admits a recipient, stores the octets before the 250, then processes what was stored."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

import structlog

from answerback.channels.mail.reception import Delivery, Verdict
from answerback.gateway import advance, answers, arrival
from answerback.model import Received, Scope
from answerback.store import inbound, tenants

if TYPE_CHECKING:
    from answerback.gateway.context import Context, Work
    from answerback.store.session import Tx

log = structlog.get_logger()

#: starts a stored mail may kill before a person looks at it
MAX_STARTS = 3
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


def process_all(context: Context) -> int:
    """Process every stored mail, oldest first, and return how many there were."""
    done = 0
    while process_next(context):
        done += 1
    if done:
        for part in ("mailbox", "timers", "outbox"):
            context.wake(part)
    return done


def process_next(context: Context) -> bool:
    """Process the oldest stored mail; what can not be processed goes to review with its octets."""
    with context.db.write() as tx:
        waiting = inbound.next_received(tx, context.clock.now())
    if waiting is None:
        return False
    try:
        _process(context, waiting)
    except Exception:
        # The top of a loop: the mail goes to a person, never away, and the next one is not delayed.
        log.exception("mail not processed", action="process", received_id=waiting.id)
        with context.db.write() as tx:
            _to_review(context.work(tx, waiting.scope), waiting, "unprocessable")
    return True


def _process(context: Context, waiting: Received) -> None:
    if waiting.attempts >= MAX_STARTS:
        raise RuntimeError("a mail that ended the process three times is not read again")
    mail = answers.read_received(waiting)
    with context.db.write() as tx:
        row = inbound.next_received(tx, context.clock.now())
        if row is None or row.id != waiting.id:
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
    """Count a start for every mail an ended process left unprocessed; return how many there are."""
    with context.db.write() as tx:
        return inbound.count_starts(tx)
