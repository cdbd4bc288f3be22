"""The way out: claims what is ready, hands it over, stores the receipt, and never sends twice on a guess."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import anyio
import structlog

from answerback.errors import DatabaseBusy, Refused
from answerback.gateway import advance, composing, intake, reports, verdicts
from answerback.model import (
    ENDED,
    RUNNING,
    Envelope,
    Json,
    Message,
    OutboxRow,
    OutboxState,
    Outcome,
    Receipt,
    RecipientResult,
    Scope,
    WaitRow,
)
from answerback.store import conversations, outbox, tenants
from answerback.store import waits as waiting
from answerback.waits import events

if TYPE_CHECKING:
    from answerback.gateway.context import Context, Work

log = structlog.get_logger()

#: a nudge is looked at again this soon where mail to its inbox is not read yet
UNREAD = timedelta(seconds=5)
#: seconds between attempts to store a receipt while the database is busy
RECORD_PAUSES = (0.5, 2.0, 5.0)
#: seconds between looks where nothing is known to come
SHORTEST_LOOK, LONGEST_LOOK = 1.0, 15.0
UNSENT = (OutboxState.QUEUED, OutboxState.HANDING_OVER, OutboxState.DEFERRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """A message this process holds the lease of, and the envelope to hand over."""

    scope: Scope
    message: Message
    envelope: Envelope
    attempts: int


async def drain(context: Context, *, at_once: int = 4) -> int:
    """Hand over up to `at_once` of the messages that are ready, side by side; return how many were looked at.

    One batch at a time, so that a server may stop between two. What failed without a trace does not count:
    0 says that looking again at once is of no use.
    """
    done: list[str] = []
    async with anyio.create_task_group() as group:
        for scope, message_id in await anyio.to_thread.run_sync(_ready, context, at_once):
            group.start_soon(_hand_over_alone, context, scope, message_id, done)
    return len(done)


def _ready(context: Context, limit: int) -> tuple[tuple[Scope, str], ...]:
    with context.db.read() as tx:
        return outbox.ready(tx, context.clock.now(), limit)


async def _hand_over_alone(context: Context, scope: Scope, message_id: str, done: list[str]) -> None:
    try:
        await hand_over(context, scope, message_id)
        done.append(message_id)
    except Exception:
        # The top of a loop: the other hand-overs go on, and this one's lease ends as `submission_unknown`.
        log.exception("hand-over failed", action="hand_over", message_id=message_id)


async def hand_over(context: Context, scope: Scope, message_id: str) -> None:
    """Hand one message over to its channel and store what came of it."""
    job = await anyio.to_thread.run_sync(_claim_or_defer, context, scope, message_id)
    if job is None:
        return
    async with anyio.create_task_group() as group:
        group.start_soon(_keep_lease, context, job)
        receipt = await _hand_to_channel(context, job)
        group.cancel_scope.cancel()
    context.crash("after_send")
    await _keep_receipt(context, job, receipt)


async def _keep_receipt(context: Context, job: HandOver, receipt: Receipt) -> None:
    """Store what the server said; a busy database is asked again, for what is lost here becomes unknown."""
    for pause in RECORD_PAUSES:
        try:
            return await anyio.to_thread.run_sync(partial(record, context, job, receipt))
        except DatabaseBusy:
            log.warning("receipt not stored yet", action="record", message_id=job.message.id)
            await anyio.sleep(pause)
    return await anyio.to_thread.run_sync(partial(record, context, job, receipt))


def _claim_or_defer(context: Context, scope: Scope, message_id: str) -> HandOver | None:
    try:
        return claim(context, scope, message_id)
    except Exception as error:
        # The top of a loop: nothing has left and nothing is said of the recipients, so it is tried again.
        log.exception("message waits", action="defer", message_id=message_id)
        _defer(context, scope, message_id, type(error).__name__)
    return None


def _defer(context: Context, scope: Scope, message_id: str, why: str) -> None:
    with context.db.write() as tx:
        work = context.work(tx, scope)
        message = conversations.message(tx, scope, message_id)
        assert message is not None
        result = RecipientResult(outcome=Outcome.DEFERRED, text=why)
        for copy in outbox.copies(tx, scope, message_id, lock=True):
            if _is_ready(copy, work.now):
                verdicts.apply(work, message, copy.attempts, copy.recipient, result)


async def _hand_to_channel(context: Context, job: HandOver) -> Receipt:
    try:
        return await context.senders["email"].hand_over(job.envelope, note=context.crash)
    except Refused as error:
        # Refused before a word of it was sent: surely not sent, and never to be.
        log.warning("not put on the wire", action="hand_over", message_id=job.message.id, code=error.code)
        failed = RecipientResult(outcome=Outcome.FAILED, text=error.code)
        return Receipt(results=dict.fromkeys(job.envelope.recipients, failed))


async def _keep_lease(context: Context, job: HandOver) -> None:
    while True:
        await anyio.sleep(context.settings.smtp_out.lease / 3)
        try:
            await anyio.to_thread.run_sync(_renew, context, job)
        except Exception:
            # The top of a loop: a renewal that fails must not break off the content that is being sent.
            log.exception("lease not renewed", action="renew_lease", message_id=job.message.id)


def _renew(context: Context, job: HandOver) -> None:
    until = context.clock.now() + lease(context)
    with context.db.write() as tx:
        outbox.renew(tx, job.scope, job.message.id, context.owner, until)
    log.info("hand-over goes on", action="renew_lease", message_id=job.message.id)


def lease(context: Context) -> timedelta:
    """Return how long a hand-over stays this process's own without a renewal."""
    return timedelta(seconds=context.settings.smtp_out.lease)


def claim(context: Context, scope: Scope, message_id: str) -> HandOver | None:
    """Take the lease of a message's unsent copies, or return None where nothing may leave.

    The wait is read again under its lock in the transaction that commits `handing_over`: a nudge whose
    wait has ended or paused was withdrawn there, so it is not among the copies any more.
    """
    with context.db.read() as tx:
        message = conversations.message(tx, scope, message_id)
        assert message is not None
        octets, return_path = _write(context.work(tx, scope), message)
    context.crash("before_send")
    if message.wait_id:
        # Whoever wrote before this instant is not nagged: what came in is read before the lock is taken.
        intake.process_all(context)
    with context.db.write() as tx:
        work = context.work(tx, scope)
        row = reports.wait_about(work, message)
        if row:
            row = waiting.wait(tx, scope, row.id, lock=True)
        if row and message.wait_id and row.wait.state in ENDED:
            outbox.withdraw(tx, scope, row.id)
        locked = outbox.copies(tx, scope, message_id, lock=True)
        copies = _drop_suppressed(work, message, [copy for copy in locked if _is_ready(copy, work.now)])
        if not octets:
            _give_up(work, message, copies)
        elif message.wait_id and intake.unread(work, message.conversation_id):
            _wait_for_mail(work, message, copies)
            return None
        if not copies or not octets:
            return None
        names = [copy.recipient for copy in copies]
        outbox.hand_over(tx, scope, message_id, names, context.owner, work.now + lease(context))
    envelope = Envelope(octets=octets, return_path=return_path, recipients=tuple(names))
    return HandOver(scope=scope, message=message, envelope=envelope, attempts=max(c.attempts for c in copies))


def _write(work: Work, message: Message) -> tuple[bytes, str]:
    """Return a message's octets and return path; no octets where it can never be written.

    Whatever else goes wrong (a key, a file, the database) is no fault of the message and passed on.
    """
    try:
        return composing.compose(work, message)
    except Refused as error:
        log.warning("message can not be written", action="compose", message_id=message.id, code=error.code)
        return b"", ""


def _give_up(work: Work, message: Message, copies: list[OutboxRow]) -> None:
    for copy in copies:
        state = OutboxState.FAILED
        outbox.record(
            work.tx, work.scope, message.id, copy.recipient, state, work.now, 0, "can not be written"
        )
    verdicts.fail(work, message)


def _wait_for_mail(work: Work, message: Message, copies: list[OutboxRow]) -> None:
    for copy in copies:
        state, again = OutboxState.DEFERRED, work.now + UNREAD
        outbox.record(
            work.tx, work.scope, message.id, copy.recipient, state, work.now, 0, "mail unread", again
        )


def _is_ready(copy: OutboxRow, now: datetime) -> bool:
    due = copy.next_attempt_at is None or copy.next_attempt_at <= now
    return copy.state in (OutboxState.QUEUED, OutboxState.DEFERRED) and due


def _drop_suppressed(
    work: Work,
    message: Message,
    copies: list[OutboxRow],
) -> list[OutboxRow]:
    reasons = tenants.suppressed(work.tx, work.scope, "email", [copy.recipient for copy in copies])
    for address in reasons:
        outbox.record(work.tx, work.scope, message.id, address, OutboxState.FAILED, work.now, 0, "suppressed")
        verdicts.undeliverable(work, message, address, "recipient_suppressed")
    return [copy for copy in copies if copy.recipient not in reasons]


def record(context: Context, job: HandOver, receipt: Receipt) -> None:
    """Store the server's word on every recipient and let the wait know."""
    with context.db.write() as tx:
        work = context.work(tx, job.scope)
        reports.hold(work, job.message)
        if receipt.provider_id:
            given = [(one, "provider") for one in verdicts.provider_ids(receipt.provider_id, job.message)]
            conversations.remember_ids(tx, job.scope, job.message.id, given)
        for address, result in receipt.results.items():
            verdicts.apply(work, job.message, job.attempts, address, result)
        lost = any(result.outcome is Outcome.UNKNOWN for result in receipt.results.values())
        settle(work, job.message, lost=lost)
    context.wake("timers")
    context.wake("mailbox")


def settle(work: Work, message: Message, *, lost: bool = False) -> None:
    """Once no copy is on its way any more count the wait from now; pause it where one has just been `lost`.

    A copy lost before is with a person already.
    """
    states = {copy.state for copy in outbox.copies(work.tx, work.scope, message.id)}
    row = reports.wait_about(work, message)
    if lost:
        _unknown(work, message, row)
    elif (
        row and OutboxState.UNKNOWN not in states and OutboxState.SENT in states and not states & set(UNSENT)
    ):
        advance.advance(work, row.id, events.Sent(at=work.now), cause={"message_id": message.id})


def _unknown(
    work: Work,
    message: Message,
    row: WaitRow | None,
) -> None:
    if row and row.wait.state in RUNNING:
        cause: Json = {"message_id": message.id}
        advance.advance(work, row.id, events.SubmissionUnknown(), cause=cause)
    else:
        wait_id = row.id if row else ""
        about = advance.About(conversation_id=message.conversation_id, message_id=message.id, wait_id=wait_id)
        advance.open_review(work, "submission_unknown", about)


def recover(context: Context) -> int:
    """Call hand-overs whose lease is over lost: `submission_unknown`, for a person to decide.

    Only a lapsed lease says so, never the mere start of a process. Returns how many messages there were.
    """
    with context.db.read() as tx:
        lost = outbox.lapsed(tx, context.clock.now())
    return sum(_lose_alone(context, scope, message_id) for scope, message_id in lost)


def _lose_alone(context: Context, scope: Scope, message_id: str) -> int:
    try:
        with context.db.write() as tx:
            # Asked again: it may have been renewed or recorded meanwhile.
            if (scope, message_id) not in outbox.lapsed(tx, context.clock.now()):
                return 0
            _lose(context.work(tx, scope), message_id)
    except Exception:
        # The top of a loop: the lease stays over and comes up again; the others are not held up.
        log.exception("lost hand-over not settled", action="recover", message_id=message_id)
        return 0
    return 1


def _lose(work: Work, message_id: str) -> None:
    message = conversations.message(work.tx, work.scope, message_id)
    assert message is not None
    reports.hold(work, message)
    for copy in outbox.copies(work.tx, work.scope, message_id, lock=True):
        if copy.state is OutboxState.HANDING_OVER:
            state = OutboxState.UNKNOWN
            outbox.record(work.tx, work.scope, message_id, copy.recipient, state, work.now, 0, "lease over")
    settle(work, message, lost=True)
    log.warning("hand-over lost", action="submission_unknown", message_id=message_id)


def seconds_to_next(context: Context) -> float:
    """Return how long until a deferred copy is tried again, at least 1 second and at most 15."""
    with context.db.read() as tx:
        instant = outbox.next_attempt(tx)
    if instant is None:
        return LONGEST_LOOK
    return min(max((instant - context.clock.now()).total_seconds(), SHORTEST_LOOK), LONGEST_LOOK)
