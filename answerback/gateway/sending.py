"""The way out: claims what is ready, hands it over, stores the receipt, and never sends twice on a guess."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING

import anyio
import structlog

from answerback.errors import AnswerbackError
from answerback.gateway import advance, composing, intake, outgoing, reports
from answerback.model import (
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
    Suppression,
    WaitRow,
)
from answerback.store import conversations, outbox, tenants
from answerback.store import waits as waiting
from answerback.threading import refs
from answerback.waits import events

if TYPE_CHECKING:
    from answerback.gateway.context import Context, Work

log = structlog.get_logger()

#: copies without a wait are given up after this long (RFC 5321 4.5.4.1: at least 4-5 days)
LIFE = timedelta(days=5)
FIRST_RETRY, LONGEST_RETRY = timedelta(minutes=1), timedelta(hours=1)
STATUS = re.compile(r"[245]\.\d{1,3}\.\d{1,3}")
#: seconds between looks where nothing is known to come
LONGEST_LOOK = 15.0
UNSENT = (OutboxState.QUEUED, OutboxState.HANDING_OVER, OutboxState.DEFERRED)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """A message this process holds the lease of, and the envelope to hand over."""

    scope: Scope
    message: Message
    envelope: Envelope
    attempts: int


async def drain(context: Context, *, at_once: int = 4) -> int:
    """Hand over everything that is ready, up to `at_once` messages side by side; return how many."""
    done = 0
    while ready := await anyio.to_thread.run_sync(_ready, context, at_once):
        async with anyio.create_task_group() as group:
            for scope, message_id in ready:
                group.start_soon(_hand_over_alone, context, scope, message_id)
        done += len(ready)
    return done


def _ready(context: Context, limit: int) -> tuple[tuple[Scope, str], ...]:
    with context.db.read() as tx:
        return outbox.ready(tx, context.clock.now(), limit)


async def _hand_over_alone(context: Context, scope: Scope, message_id: str) -> None:
    try:
        await hand_over(context, scope, message_id)
    except Exception:
        # The top of a loop: the other hand-overs go on, and this one's lease ends as `submission_unknown`.
        log.exception("hand-over failed", action="hand_over", message_id=message_id)


async def hand_over(context: Context, scope: Scope, message_id: str) -> None:
    """Hand one message over to its channel and store what came of it."""
    job = await anyio.to_thread.run_sync(claim, context, scope, message_id)
    if job is None:
        return
    async with anyio.create_task_group() as group:
        group.start_soon(_keep_lease, context, message_id)
        receipt = await context.senders["email"].hand_over(job.envelope, note=context.crash)
        group.cancel_scope.cancel()
    context.crash("after_send")
    await anyio.to_thread.run_sync(partial(record, context, job, receipt))


async def _keep_lease(context: Context, message_id: str) -> None:
    while True:
        await anyio.sleep(context.settings.smtp_out.lease / 3)
        await anyio.to_thread.run_sync(_renew, context, message_id)


def _renew(context: Context, message_id: str) -> None:
    with context.db.write() as tx:
        outbox.renew(tx, context.owner, context.clock.now() + lease(context))
    log.info("hand-over goes on", action="renew_lease", message_id=message_id)


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
        try:
            octets, return_path = composing.compose(context.work(tx, scope), message)
        except AnswerbackError as error:
            log.warning(
                "message can not be written", action="compose", message_id=message_id, code=error.code
            )
            octets, return_path = b"", ""
    context.crash("before_send")
    if message.wait_id:
        # Whoever wrote before this instant is not nagged: what came in is read before the lock is taken.
        intake.process_all(context)
    with context.db.write() as tx:
        work = context.work(tx, scope)
        if message.wait_id:
            waiting.wait(tx, scope, message.wait_id, lock=True)
        locked = outbox.copies(tx, scope, message_id, lock=True)
        copies = _drop_suppressed(work, message, [copy for copy in locked if _is_ready(copy, work.now)])
        if not octets:
            _give_up(work, message, copies)
        if not copies or not octets:
            return None
        names = [copy.recipient for copy in copies]
        outbox.hand_over(tx, scope, message_id, names, context.owner, work.now + lease(context))
    envelope = Envelope(octets=octets, return_path=return_path, recipients=tuple(names))
    return HandOver(scope=scope, message=message, envelope=envelope, attempts=max(c.attempts for c in copies))


def _give_up(work: Work, message: Message, copies: list[OutboxRow]) -> None:
    for copy in copies:
        state = OutboxState.FAILED
        outbox.record(
            work.tx, work.scope, message.id, copy.recipient, state, work.now, 0, "can not be written"
        )
    if row := reports.wait_about(work, message):
        advance.advance(work, row.id, events.Failed(), cause={"message_id": message.id})


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
        undeliverable(work, message, address, "recipient_suppressed")
    return [copy for copy in copies if copy.recipient not in reasons]


def record(context: Context, job: HandOver, receipt: Receipt) -> None:
    """Store the server's word on every recipient and let the wait know."""
    with context.db.write() as tx:
        work = context.work(tx, job.scope)
        if receipt.provider_id:
            given = [(one, "provider") for one in provider_ids(receipt.provider_id, job.message)]
            conversations.remember_ids(tx, job.scope, job.message.id, given)
        for address, result in receipt.results.items():
            _record_one(work, job, address, result)
        settle(work, job.message)
    context.wake("timers")
    context.wake("mailbox")


def provider_ids(given: str, message: Message) -> tuple[str, ...]:
    """Return the forms a provider's own id may come back in: as given, and with a domain of ours.

    Some providers return only the left side in their 250 and put their own domain behind it; the
    whole id is learned from the mail itself, so a bare id is kept in both forms.
    """
    ids = refs.extract(given if "@" in given else f"<{given}@{outgoing.domain(message.sender.email)}>")
    return tuple(
        dict.fromkeys([*(refs.normalise(one) for one in ids), refs.normalise(f"<{given.strip('<>')}>")])
    )


def _record_one(work: Work, job: HandOver, address: str, result: RecipientResult) -> None:
    tx, scope, message, now = work.tx, work.scope, job.message, work.now
    if result.outcome is Outcome.DEFERRED:
        retry = now + min(FIRST_RETRY * 2 ** min(job.attempts, 10), LONGEST_RETRY)
        if retry < end_of_life(work, message):
            state = OutboxState.DEFERRED
            outbox.record(tx, scope, message.id, address, state, now, result.code, result.text, retry)
            return
        result = replace(result, outcome=Outcome.FAILED)
    state = OutboxState(result.outcome)
    outbox.record(tx, scope, message.id, address, state, now, result.code, result.text)
    if state is OutboxState.FAILED:
        if reports.is_address_gone(enhanced(result.text)):
            suppression = Suppression(address=address.lower(), reason="bounce", created_at=now)
            tenants.suppress(tx, scope, suppression)
        _refused(work, message, address, enhanced(result.text))


def _refused(work: Work, message: Message, address: str, status: str) -> None:
    """A refusal of content or by policy is none of the address (RFC 3463 X.6, X.7): a person looks."""
    if not status.startswith(("5.6.", "5.7.")):
        undeliverable(work, message, address, "bounced")
    elif row := reports.wait_about(work, message):
        advance.advance(work, row.id, events.Failed(), cause={"message_id": message.id})


def enhanced(reply: str) -> str:
    """Return the enhanced status code a reply's text begins with (RFC 2034), "-" where it has none."""
    first = reply.split(maxsplit=1)[0] if reply.strip() else ""
    return first if STATUS.fullmatch(first) else "-"


def end_of_life(work: Work, message: Message) -> datetime:
    """Return the instant a deferred copy is given up: the end of its wait, else five days on."""
    row = reports.wait_about(work, message)
    return row.wait.plan[-1] if row and row.wait.plan else message.at + LIFE


def undeliverable(
    work: Work,
    message: Message,
    address: str,
    reason: str,
) -> None:
    """Let a message's wait know that a recipient can not be reached."""
    if row := reports.wait_about(work, message):
        event = events.Undeliverable(recipient=address, reason=reason)
        advance.advance(work, row.id, event, cause={"message_id": message.id})


def settle(work: Work, message: Message) -> None:
    """Once no copy is on its way any more: count the wait from now, or pause it where one is unknown."""
    states = {copy.state for copy in outbox.copies(work.tx, work.scope, message.id)}
    row = reports.wait_about(work, message)
    if OutboxState.UNKNOWN in states:
        _unknown(work, message, row)
    elif row and OutboxState.SENT in states and not states & set(UNSENT):
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
    with context.db.write() as tx:
        lost = outbox.lapsed(tx, context.clock.now())
        for scope, message_id in lost:
            _lose(context.work(tx, scope), message_id)
    return len(lost)


def _lose(work: Work, message_id: str) -> None:
    message = conversations.message(work.tx, work.scope, message_id)
    assert message is not None
    for copy in outbox.copies(work.tx, work.scope, message_id, lock=True):
        if copy.state is OutboxState.HANDING_OVER:
            state = OutboxState.UNKNOWN
            outbox.record(work.tx, work.scope, message_id, copy.recipient, state, work.now, 0, "lease over")
    settle(work, message)
    log.warning("hand-over lost", action="submission_unknown", message_id=message_id)


def seconds_to_next(context: Context) -> float:
    """Return how long until a deferred copy is tried again, at most 15 seconds."""
    with context.db.read() as tx:
        instant = outbox.next_attempt(tx)
    if instant is None:
        return LONGEST_LOOK
    return min(max((instant - context.clock.now()).total_seconds(), 0.05), LONGEST_LOOK)
