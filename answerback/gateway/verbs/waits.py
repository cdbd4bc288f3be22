"""Looking at waits and steering them: cancel, pause, resume, wait again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from answerback.errors import BadRequest, NotFound, NotNow, WaitpointOpen
from answerback.gateway import advance, checks, facts, outgoing, submit
from answerback.model import OPEN_STATES, Json, Waitpoint, WaitpointState, WaitRow, WaitState
from answerback.store import conversations, reviews, tenants, waitpoints
from answerback.store import waits as waiting
from answerback.waits import events
from answerback.waits.waitpoint import LONGEST

if TYPE_CHECKING:
    from answerback.gateway.context import Caller, Work
    from answerback.gateway.verbs import requests


def listing(work: Work, caller: Caller, request: requests.ListWaits) -> Json:
    """Return the caller's waits, the last changed first."""
    states = (WaitState(request.state),) if request.state else None
    rows = waiting.waits(work.tx, work.scope, states, request.limit, agent_id=caller.agent_id)
    return {"waits": [shown(work, row) for row in rows]}


def show(work: Work, caller: Caller, request: requests.One) -> Json:
    """Return one wait with its log: every change and what caused it."""
    return _view(work, caller, _row(work, caller, request.id))


def cancel(work: Work, caller: Caller, request: requests.CancelWait) -> Json:
    """End a wait and the waitpoint it follows; no nudge is sent any more."""
    row = _row(work, caller, request.id)
    if row.waitpoint_id:
        advance.cancel(work, row.waitpoint_id, request.reason)
    event = events.Cancelled(reason=request.reason)
    advance.advance(work, row.id, event, cause=_by(caller))
    return _view(work, caller, row)


def pause(work: Work, caller: Caller, request: requests.One) -> Json:
    """Stop the clock of a wait until it is resumed; a reply still counts."""
    row = _row(work, caller, request.id)
    advance.advance(work, row.id, events.Paused(), cause=_by(caller))
    return _view(work, caller, row)


def resume(work: Work, caller: Caller, request: requests.ResumeWait) -> Json:
    """Let a paused wait go on; this step's gap counts from now.

    With `not_before` the step is due one business day after that date.

    Raises:
        NotNow: a message may or may not have been sent; a person says which first.
    """
    row = _row(work, caller, request.id)
    if row.wait.reason == "submission_unknown" and reviews.open_reviews(
        work.tx, work.scope, row.conversation_id
    ):
        raise NotNow(
            what="resuming",
            state="unknown whether the last message left",
            instead="Decide its review: `answerback reviews decide ID was_sent` or `send_again`.",
        )
    event = events.Resumed(not_before=request.not_before)
    advance.advance(work, row.id, event, cause=_by(caller))
    return _view(work, caller, row)


def again(work: Work, caller: Caller, request: requests.WaitAgain) -> Json:
    """Open a new waitpoint with a closed one's fields, its first deadline a business day after `not_before`.

    Raises:
        WaitpointOpen: the old one is still open.
    """
    row = _row(work, caller, request.id)
    old = waitpoints.waitpoint(work.tx, work.scope, row.waitpoint_id)
    if old is None:
        raise NotFound(kind="waitpoint of wait", id=row.id)
    if old.state in OPEN_STATES:
        raise WaitpointOpen(id=old.id)
    fresh = _follow(work, row, old, request)
    schedule = checks.schedule_named(work.tx, work.scope, row.schedule_name)
    started = advance.open_waitpoint(work, fresh, schedule)
    if started:
        event = events.Resumed(not_before=request.not_before)
        advance.advance(work, started.id, events.Paused(), cause=_by(caller))
        advance.advance(work, started.id, event, cause=_by(caller))
    return submit.asked(work, fresh)


def _follow(work: Work, row: WaitRow, old: Waitpoint, request: requests.WaitAgain) -> Waitpoint:
    first = conversations.message(work.tx, work.scope, old.message_id)
    assert first is not None
    inbox = tenants.inbox(work.tx, work.scope, first.sender.email)
    assert inbox is not None
    schedule = checks.schedule_named(work.tx, work.scope, row.schedule_name)
    counted = work if request.deadline else replace(work, now=max(work.now, request.not_before))
    recipient = outgoing.recipients(first.content)[0]
    if counted.now > work.now + LONGEST:
        raise BadRequest(field="not_before", problem="more than 30 days ahead; wait again later")
    expires_at = checks.deadline(counted, inbox, recipient, schedule, request.deadline)
    if not request.deadline:
        expires_at = min(expires_at, work.now + LONGEST)
    return replace(
        old,
        id=work.context.new_id("wp"),
        state=WaitpointState.OPEN,
        opened_at=work.now,
        expires_at=expires_at,
        follows=old.id,
    )


def _view(work: Work, caller: Caller, before: WaitRow) -> Json:
    return shown(work, _row(work, caller, before.id)) | {
        "log": list(waiting.wait_log(work.tx, work.scope, before.id))
    }


def _by(caller: Caller) -> Json:
    return {"by": caller.principal}


def _row(work: Work, caller: Caller, wait_id: str) -> WaitRow:
    row = waiting.wait(work.tx, work.scope, wait_id)
    if row is None or not _owned(work, caller, row):
        raise NotFound(kind="wait", id=wait_id)
    return row


def _owned(work: Work, caller: Caller, row: WaitRow) -> bool:
    conversation = conversations.conversation(work.tx, work.scope, row.conversation_id)
    return conversation is not None and caller.agent_id in ("", conversation.agent_id)


def shown(work: Work, row: WaitRow) -> Json:
    """Return a wait as a caller sees it: what it waits for, whom it was asked, and its clock."""
    due = row.wait.due_at
    waitpoint = waitpoints.waitpoint(work.tx, work.scope, row.waitpoint_id) if row.waitpoint_id else None
    first = facts.first_message(work.tx, work.scope, row, waitpoint)
    return {
        "wait_id": row.id,
        "correlation_key": waitpoint.correlation_key if waitpoint else None,
        "recipients": outgoing.recipients(first.content) if first else [],
        "conversation_id": row.conversation_id,
        "waitpoint_id": row.waitpoint_id or None,
        "schedule": {"name": row.schedule_name, "version": row.schedule_version},
        "state": str(row.wait.state),
        "reason": row.wait.reason or None,
        "nudges": row.wait.nudges,
        "due_at": due.isoformat() if due else None,
        "plan": [instant.isoformat() for instant in row.wait.plan],
    }
