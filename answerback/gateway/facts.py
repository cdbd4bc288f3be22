"""Gathers what the table of a wait asks about: schedule, calendar, recipients, what is still unsent."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from answerback.gateway import calendars, outgoing
from answerback.model import OPEN_STATES, Message, Schedule, Scope, Waitpoint, WaitRow
from answerback.store import conversations, outbox, reviews, schedules, tenants, waitpoints
from answerback.waits import machine
from answerback.waits.addresses import responder_of
from answerback.waits.schedule import from_policy

if TYPE_CHECKING:
    from answerback.store.session import Tx


def gather(tx: Tx, scope: Scope, row: WaitRow, now: datetime) -> machine.Facts:
    """Return everything the table asks about a wait."""
    conversation = conversations.conversation(tx, scope, row.conversation_id)
    assert conversation is not None
    inbox = tenants.inbox(tx, scope, conversation.inbox_id)
    assert inbox is not None
    waitpoint = waitpoints.waitpoint(tx, scope, row.waitpoint_id) if row.waitpoint_id else None
    required = required_recipients(tx, scope, row, waitpoint)
    calendar, _ = calendars.of(tx, scope, required[0] if required else "", inbox)
    return machine.Facts(
        schedule=schedule_of(tx, scope, row),
        calendar=calendar,
        expires_at=waitpoint.expires_at if waitpoint else None,
        waitpoint_open=waitpoint is None or (waitpoint.state in OPEN_STATES and now < waitpoint.expires_at),
        unsent=outbox.unsent(tx, scope, row.id),
        review_open=reviews.open_reviews(tx, scope, row.conversation_id) > 0,
        required=required,
    )


def schedule_of(tx: Tx, scope: Scope, row: WaitRow) -> Schedule:
    """Return the schedule version a running wait keeps."""
    stored = schedules.schedule_policy(tx, scope, row.schedule_name, row.schedule_version)
    assert stored is not None, row.schedule_name
    return from_policy(row.schedule_name, *stored)


def required_recipients(tx: Tx, scope: Scope, row: WaitRow, waitpoint: Waitpoint | None) -> tuple[str, ...]:
    """Return the To addresses whose answer is needed: those that are responders."""
    first = first_message(tx, scope, row, waitpoint)
    to = [address.email for address in outgoing.addresses(first.content, "to")] if first else []
    if waitpoint is None:
        return tuple(to)
    needed = [address for address in to if responder_of(f"email:{address}", waitpoint.responders)]
    return tuple(needed or to)


def first_message(tx: Tx, scope: Scope, row: WaitRow, waitpoint: Waitpoint | None) -> Message | None:
    """Return the outbound message a wait follows up: its waitpoint's, else the conversation's first."""
    if waitpoint:
        return conversations.message(tx, scope, waitpoint.message_id)
    sent = (m for m in conversations.messages(tx, scope, row.conversation_id) if m.direction == "out")
    return next(sent, None)
