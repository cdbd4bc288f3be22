"""What the server's word on one recipient means: tried again, suppressed, or before a person."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from answerback.gateway import advance, delivery, outgoing, reports
from answerback.model import RUNNING, Json, Message, OutboxState, Outcome, RecipientResult, Suppression
from answerback.store import conversations, outbox, tenants
from answerback.threading import refs
from answerback.waits import events

if TYPE_CHECKING:
    from answerback.gateway.context import Work

#: copies without a wait are given up after this long (RFC 5321 4.5.4.1: at least 4-5 days)
LIFE = timedelta(days=5)
FIRST_RETRY, LONGEST_RETRY = timedelta(minutes=1), timedelta(hours=1)
STATUS = re.compile(r"[245]\.\d{1,3}\.\d{1,3}")


def provider_ids(given: str, message: Message) -> tuple[str, ...]:
    """Return the forms a provider's own id may come back in: as given, and with a domain of ours.

    Some providers return only the left side in their 250 and put their own domain behind it; the
    whole id is learned from the mail itself, so a bare id is kept in both forms.
    """
    ids = refs.extract(given if "@" in given else f"<{given}@{outgoing.domain(message.sender.email)}>")
    return tuple(
        dict.fromkeys([*(refs.normalise(one) for one in ids), refs.normalise(f"<{given.strip('<>')}>")])
    )


def apply(work: Work, message: Message, attempts: int, address: str, result: RecipientResult) -> None:
    """Store what an attempt came to for one recipient, and let the wait know where it failed."""
    state, retry = OutboxState(result.outcome), None
    if state is OutboxState.DEFERRED:
        retry = work.now + min(FIRST_RETRY * 2 ** min(attempts, 10), LONGEST_RETRY)
        if message.wait_id and _has_ended(work, message):
            # A nudge whose wait has ended while it was handed over: nobody who answered is nagged.
            state, retry = OutboxState.WITHDRAWN, None
        elif retry >= end_of_life(work, message):
            state, retry = OutboxState.FAILED, None
    outbox.record(work.tx, work.scope, message.id, address, state, work.now, result.code, result.text, retry)
    if state is not OutboxState.FAILED:
        return
    _tell(work, message, address, result)
    if result.outcome is Outcome.FAILED and result.code:
        _refused(work, message, address, enhanced(result.text))
    else:
        # Nobody has refused the recipient for good: the relay was away, or the mail was not put on the wire.
        fail(work, message)


def _tell(work: Work, message: Message, address: str, result: RecipientResult) -> None:
    """Tell the agent, whether or not it waits for an answer."""
    conversation = conversations.conversation(work.tx, work.scope, message.conversation_id)
    assert conversation is not None
    data: Json = {
        "conversation_id": message.conversation_id,
        "message_id": message.id,
        "recipient": address,
        "code": result.code,
        "text": delivery.redacted(work.context, result.text),
    }
    advance.tell_agent(work, conversation.agent_id, "message.failed", ("waiter",), data)


def _has_ended(work: Work, message: Message) -> bool:
    row = reports.wait_about(work, message)
    return row is not None and row.wait.state not in RUNNING


def _refused(work: Work, message: Message, address: str, status: str) -> None:
    """A refusal of content or by policy is none of the address (RFC 3463 X.6, X.7): a person looks."""
    if reports.is_address_gone(status):
        suppression = Suppression(address=address.lower(), reason="bounce", created_at=work.now)
        tenants.suppress(work.tx, work.scope, suppression)
    if status.startswith(("5.6.", "5.7.")):
        fail(work, message)
    else:
        undeliverable(work, message, address, "bounced")


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


def fail(work: Work, message: Message) -> None:
    """Pause a message's wait for a person; nothing is said of its recipients."""
    if row := reports.wait_about(work, message):
        advance.advance(work, row.id, events.Failed(), cause={"message_id": message.id})
