"""The one way a wait or a waitpoint changes: gather, decide by the table, apply, log."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Literal, assert_never

from answerback.gateway import delivery, facts, outgoing
from answerback.model import (
    ENDED,
    OPEN_STATES,
    Json,
    Resolution,
    Review,
    Schedule,
    Scope,
    Wait,
    Waitpoint,
    WaitpointState,
    WaitRow,
    WaitState,
    value,
)
from answerback.store import conversations, outbox, reviews, tenants, waitpoints
from answerback.store import waits as waiting
from answerback.waits import events, machine, templates

if TYPE_CHECKING:
    from answerback.gateway.context import Work
    from answerback.store.session import Tx


def advance(
    work: Work, wait_id: str, event: events.Event, *, cause: Json, as_of: datetime | None = None
) -> WaitRow:
    """Let one event happen to a wait, within the caller's transaction, and return the wait after it.

    `as_of` is the instant the event happened, where it is learned of later.

    An event the table has no row for changes nothing and is not logged.
    """
    row = waiting.wait(work.tx, work.scope, wait_id, lock=True)
    assert row is not None, wait_id
    known = facts.gather(work.tx, work.scope, row, as_of or work.now)
    step = machine.step(row.wait, event, known, as_of or work.now)
    if step.rule is None or step.wait is None:
        return row
    waiting.save_wait(work.tx, work.scope, wait_id, step.wait, work.now)
    _log(work, wait_id, event, step, str(row.wait.state), cause)
    changed = waiting.wait(work.tx, work.scope, wait_id)
    assert changed is not None
    for effect in step.effects:
        _apply(work, changed, effect, cause)
    return changed


def start(
    work: Work,
    conversation_id: str,
    waitpoint_id: str,
    schedule: Schedule,
    *,
    cause: Json,
    event: events.Event | None = None,
) -> WaitRow:
    """Start the clock of a conversation: the machine's first row, by default `Queued`."""
    row = WaitRow(
        id=work.context.new_id("wt"),
        conversation_id=conversation_id,
        waitpoint_id=waitpoint_id,
        schedule_name=schedule.name,
        schedule_version=schedule.version,
        wait=Wait(state=WaitState.WAITING, since=work.now),
        updated_at=work.now,
    )
    first = event or events.Queued(at=work.now)
    step = machine.step(None, first, facts.gather(work.tx, work.scope, row, work.now), work.now)
    assert step.wait is not None
    row = replace(row, wait=step.wait)
    waiting.add_wait(work.tx, work.scope, row)
    _log(work, row.id, first, step, "", cause)
    return row


def _log(work: Work, wait_id: str, event: events.Event, step: machine.Step, before: str, cause: Json) -> None:
    assert step.rule is not None
    assert step.wait is not None
    name, after = type(event).__name__, str(step.wait.state)
    waiting.append_log(work.tx, work.scope, wait_id, work.now, name, step.rule, before, after, cause)


def _apply(work: Work, row: WaitRow, effect: machine.Effect, cause: Json) -> None:
    match effect:
        case machine.SendNudge():
            _nudge(work, row, effect)
        case machine.WithdrawNudges():
            outbox.withdraw(work.tx, work.scope, row.id)
        case machine.Tell():
            data: Json = {"reason": effect.reason} if effect.reason else {}
            tell_about(work, row, effect.event, effect.audience, data)
        case machine.OpenReview():
            message_id = str(cause.get("message_id", ""))
            about = About(conversation_id=row.conversation_id, message_id=message_id, wait_id=row.id)
            open_review(work, effect.reason, about)
        case _:
            assert_never(effect)


def _nudge(
    work: Work,
    row: WaitRow,
    effect: machine.SendNudge,
) -> None:
    conversation = conversations.conversation(work.tx, work.scope, row.conversation_id)
    assert conversation is not None
    waitpoint = waitpoints.waitpoint(work.tx, work.scope, row.waitpoint_id) if row.waitpoint_id else None
    first = facts.first_message(work.tx, work.scope, row, waitpoint)
    assert first is not None
    # The parent is the last message really sent; before any was, the first.
    parent = conversations.last_sent(work.tx, work.scope, row.conversation_id) or first
    names = {a.email: a.name for a in outgoing.addresses(first.content, "to")}
    subject, text = templates.nudge(
        facts.schedule_of(work.tx, work.scope, row),
        effect.number,
        first.subject,
        str(first.content["text"]),
        next((names[address] for address in effect.to if names.get(address)), ""),
    )
    letter = outgoing.Letter(
        kind="nudge",
        subject=subject,
        content={
            "text": text,
            "html": None,
            "to": [{"email": address, "name": names.get(address, "")} for address in effect.to],
            "cc": [],
            "attachments": [],
        },
        parent_id=parent.id,
        wait_id=row.id,
        nudge_number=effect.number,
    )
    nudge = outgoing.store(work, conversation, letter)
    open_now = waitpoints.waitpoints_of(work.tx, work.scope, row.conversation_id)
    standing = [one.id for one in open_now if one.state in OPEN_STATES]
    waitpoints.link_nudge(work.tx, work.scope, nudge.id, standing)
    tell_about(work, row, "wait.nudged", ("waiter",), {"message_id": nudge.id, "nudge": effect.number})


def tell_about(
    work: Work,
    row: WaitRow,
    event: str,
    audience: tuple[str, ...],
    data: Json,
) -> None:
    """Tell the waiter, the owner or the operator something about one wait."""
    conversation = conversations.conversation(work.tx, work.scope, row.conversation_id)
    assert conversation is not None
    known: Json = {"wait_id": row.id, "conversation_id": row.conversation_id}
    if row.waitpoint_id:
        known["waitpoint_id"] = row.waitpoint_id
    tell_agent(work, conversation.agent_id, event, audience, known | data)


def tell_agent(work: Work, agent_id: str, event: str, audience: tuple[str, ...], data: Json) -> None:
    """Tell an agent (`waiter`), its `owner` or the `operator` something."""
    delivery.tell(work, audience_of(work.tx, work.scope, agent_id, audience), event, data)


def audience_of(tx: Tx, scope: Scope, agent_id: str, audience: tuple[str, ...]) -> list[str]:
    """Return the principals behind `waiter`, `owner` and `operator` for one agent."""
    agent = tenants.agent(tx, scope, agent_id)
    assert agent is not None
    principals = {"waiter": f"agent:{agent.id}", "owner": agent.owner, "operator": "operator"}
    return [principals[name] for name in audience]


@value
class About:
    """What a review is about; "" where it is about none."""

    conversation_id: str = ""
    message_id: str = ""
    received_id: str = ""
    wait_id: str = ""


def open_review(work: Work, reason: str, about: About, details: Json | None = None) -> Review:
    """Put an item before a person and return it."""
    review = Review(
        id=work.context.new_id("rev"),
        reason=reason,
        created_at=work.now,
        conversation_id=about.conversation_id,
        message_id=about.message_id,
        received_id=about.received_id,
        wait_id=about.wait_id,
        details=details or {},
    )
    reviews.add_review(work.tx, work.scope, review)
    return review


def open_waitpoint(work: Work, waitpoint: Waitpoint, schedule: Schedule) -> WaitRow | None:
    """Store a waitpoint and start the conversation's wait, unless one is there already; tell the waiter."""
    waitpoints.add_waitpoint(work.tx, work.scope, waitpoint)
    present = waiting.wait_of(work.tx, work.scope, waitpoint.conversation_id)
    row = None
    if present is None or present.wait.state in ENDED:
        cause: Json = {"waitpoint_id": waitpoint.id}
        row = start(work, waitpoint.conversation_id, waitpoint.id, schedule, cause=cause)
    data: Json = {
        "waitpoint_id": waitpoint.id,
        "conversation_id": waitpoint.conversation_id,
        "message_id": waitpoint.message_id,
        "correlation_key": waitpoint.correlation_key,
        "expires_at": waitpoint.expires_at.isoformat(),
    }
    delivery.tell(work, [waitpoint.waiter], "waitpoint.opened", data)
    return row


def resolve(work: Work, resolution: Resolution, *, cause: Json, admit: bool = False) -> None:
    """Close a waitpoint by its one reply and end its waits as replied; `admit` makes the author a responder.

    If other waitpoints of the conversation stay open, a new wait starts for them.
    """
    waitpoint = waitpoints.waitpoint(work.tx, work.scope, resolution.waitpoint_id, lock=True)
    assert waitpoint is not None
    if admit and resolution.responder not in waitpoint.responders:
        waitpoints.add_responder(work.tx, work.scope, waitpoint.id, resolution.responder)
    # The wait first: an abandoned one becomes replied only while its waitpoint is open. What counts is when
    # the reply came, not when it was read.
    _end_wait(work, waitpoint, events.Replied(), cause, as_of=resolution.responded_at)
    waitpoints.resolve(work.tx, work.scope, resolution)


def expire(work: Work, waitpoint_id: str) -> None:
    """Let a waitpoint's deadline pass: `expired`, its wait abandoned, the waiter told."""
    waitpoint = waitpoints.waitpoint(work.tx, work.scope, waitpoint_id, lock=True)
    if waitpoint is None or waitpoint.state not in OPEN_STATES or work.now < waitpoint.expires_at:
        return
    _close(work, waitpoint, WaitpointState.EXPIRED, "deadline", events.WaitpointExpired())


def cancel(work: Work, waitpoint_id: str, reason: str) -> None:
    """Cancel an open waitpoint and its wait; a closed one stays as it is."""
    waitpoint = waitpoints.waitpoint(work.tx, work.scope, waitpoint_id, lock=True)
    if waitpoint is None or waitpoint.state not in OPEN_STATES:
        return
    event = events.WaitpointCancelled(reason=reason)
    _close(work, waitpoint, WaitpointState.CANCELLED, reason, event)


def _close(
    work: Work,
    waitpoint: Waitpoint,
    state: Literal[WaitpointState.EXPIRED, WaitpointState.CANCELLED],
    reason: str,
    event: events.Event,
) -> None:
    waitpoints.close_waitpoint(work.tx, work.scope, waitpoint.id, state, work.now, reason)
    data: Json = {
        "waitpoint_id": waitpoint.id,
        "conversation_id": waitpoint.conversation_id,
        "correlation_key": waitpoint.correlation_key,
        "outcome": str(state),
        "reason": reason,
    }
    # The waiter before the owner: mailboxes are locked in the order of their names everywhere.
    delivery.tell(work, [waitpoint.waiter], f"waitpoint.{state}", data)
    _end_wait(work, waitpoint, event, {"waitpoint_id": waitpoint.id})


def _end_wait(
    work: Work, waitpoint: Waitpoint, event: events.Event, cause: Json, *, as_of: datetime | None = None
) -> None:
    row = waiting.wait_for(work.tx, work.scope, waitpoint.id)
    if row is None:
        return
    advance(work, row.id, event, cause=cause, as_of=as_of)
    for other in waitpoints.waitpoints_of(work.tx, work.scope, waitpoint.conversation_id):
        if other.state in OPEN_STATES and waiting.wait_for(work.tx, work.scope, other.id) is None:
            first = events.Sent(at=work.now)
            kept = facts.schedule_of(work.tx, work.scope, row)
            start(work, other.conversation_id, other.id, kept, cause=cause, event=first)
            return
