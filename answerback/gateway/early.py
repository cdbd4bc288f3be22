"""Opens a waitpoint on a message already sent, and looks whether its answer is there already."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from answerback.errors import NotFound
from answerback.gateway import advance, answers, checks, outgoing, submit
from answerback.gateway.questions import asked, reply_of
from answerback.model import Conversation, Message, Timing, Waitpoint, WaitpointState
from answerback.store import conversations, inbound, tenants, waitpoints
from answerback.waits.judgement import Answers, judge

if TYPE_CHECKING:
    from answerback.gateway.context import Caller, Work


def open_on(
    work: Work, caller: Caller, conversation_id: str, message_id: str, question: checks.Question
) -> Waitpoint:
    """Open a waitpoint on a sent message; a reply to it that no waitpoint used resolves it at once.

    Raises:
        NotFound: no such conversation or message. KeyInUse: the key waits for something else.
        DeadlineInThePast, DeadlineTooFar, UnknownSchedule, BadRequest: nothing was stored.
    """
    conversation = conversations.conversation(work.tx, work.scope, conversation_id)
    if conversation is None or conversation.agent_id != caller.agent_id:
        raise NotFound(kind="conversation", id=conversation_id)
    sent = _sent(work, conversation, message_id)
    schedule = checks.schedule_named(work.tx, work.scope, question.schedule)
    waitpoint = _waitpoint(work, caller, sent, question)
    if earlier := submit.same_question(work, caller, question.key, waitpoint.subject_digest):
        return earlier
    advance.open_waitpoint(work, waitpoint, schedule)
    _match(work, waitpoint)
    return waitpoints.waitpoint(work.tx, work.scope, waitpoint.id) or waitpoint


def _match(work: Work, waitpoint: Waitpoint) -> None:
    """Resolve a waitpoint just opened by a reply to its message that came before, if it would count now."""
    (fresh,) = (one for one in asked(work, waitpoint.conversation_id) if one.waitpoint.id == waitpoint.id)
    for message in conversations.messages(work.tx, work.scope, waitpoint.conversation_id):
        if message.direction == "out" or message.parent_id != waitpoint.message_id:
            continue
        used = waitpoints.answered(work.tx, work.scope, message.id)
        if used or inbound.state(work.tx, work.scope, message.received_id) != "processed":
            continue
        judged = judge(reply_of(message, (waitpoint.message_id,)), (fresh,))
        if isinstance(judged, Answers):
            answers.resolve(work, message, replace(judged, timing=Timing.EARLY))
            return


def _sent(work: Work, conversation: Conversation, message_id: str) -> Message:
    sent = [m for m in conversations.messages(work.tx, work.scope, conversation.id) if m.direction == "out"]
    named = [m for m in sent if m.id == message_id] if message_id else sent[-1:]
    if not named:
        raise NotFound(kind="message of ours in this conversation", id=message_id or "at all")
    return named[0]


def _waitpoint(work: Work, caller: Caller, sent: Message, question: checks.Question) -> Waitpoint:
    to = tuple(address.email for address in outgoing.addresses(sent.content, "to"))
    cc = tuple(address.email for address in outgoing.addresses(sent.content, "cc"))
    mail = checks.Mail(to=to, cc=cc, subject=sent.subject, text=str(sent.content["text"]))
    admitted = checks.responders(work.tx, work.scope, to + (cc if question.cc_may_answer else ()), question)
    schedule = checks.schedule_named(work.tx, work.scope, question.schedule)
    inbox = tenants.inbox(work.tx, work.scope, sent.sender.email)
    assert inbox is not None
    return Waitpoint(
        id=work.context.new_id("wp"),
        state=WaitpointState.OPEN,
        conversation_id=sent.conversation_id,
        message_id=sent.id,
        waiter=caller.principal,
        correlation_key=question.key,
        responders=admitted,
        opened_at=work.now,
        expires_at=checks.deadline(work, inbox, to[0], schedule, question.deadline),
        subject_digest=checks.subject_digest(mail, admitted),
        min_trust=question.min_trust,
    )
