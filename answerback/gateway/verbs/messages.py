"""Sending, asking, and looking at what became of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from answerback.errors import BadRequest, NotFound, ScopeMissing
from answerback.gateway import checks, delivery, early, outgoing, submit
from answerback.model import Attachment, Json, Message, Waitpoint
from answerback.store import conversations, inbound, outbox, waitpoints

if TYPE_CHECKING:
    from answerback.gateway.context import Caller, Work
    from answerback.gateway.verbs import requests


def send(work: Work, caller: Caller, request: requests.Send) -> Json:
    """Queue a mail; with `expect`, also open the waitpoint that waits for its answer."""
    if request.reply_to_message_id and "messages:read" not in caller.scopes:
        raise ScopeMissing(scope="messages:read")
    mail = checks.Mail(
        to=request.to,
        cc=request.cc,
        subject=request.subject,
        text=request.text,
        html=request.html,
        inbox=request.inbox,
        reply_to_message_id=request.reply_to_message_id,
        attachments=tuple(
            Attachment(filename=file.filename, media_type=file.media_type, content=file.content)
            for file in request.attachments
        ),
    )
    if request.expect is None:
        return submit.send(work, caller, mail)
    return submit.ask(work, caller, mail, question(request.expect))


def question(expect: requests.Expect) -> checks.Question:
    """Return the question behind the door's words."""
    return checks.Question(
        key=expect.key,
        schedule=expect.schedule,
        deadline=expect.deadline,
        responders=expect.responders,
        cc_may_answer=expect.cc_may_answer,
        min_trust=expect.min_trust,
    )


def open_waitpoint(work: Work, caller: Caller, request: requests.OpenWaitpoint) -> Json:
    """Expect an answer to a message already sent; an answer that is there already counts (`early`)."""
    waitpoint = early.open_on(
        work, caller, request.conversation_id, request.message_id, question(request.expect)
    )
    return submit.asked(work, waitpoint)


def show_waitpoint(work: Work, caller: Caller, request: requests.ByKey) -> Json:
    """Return a waitpoint by its key or id, with its resolution where it has one."""
    found = waitpoints.waitpoint(work.tx, work.scope, request.key) or waitpoints.waitpoint_by_key(
        work.tx, work.scope, "reply", request.key
    )
    if found is None or (caller.agent_id and found.waiter != caller.principal):
        raise NotFound(kind="waitpoint", id=request.key)
    return shown(work, caller, found)


def shown(work: Work, caller: Caller, waitpoint: Waitpoint) -> Json:
    """Return a waitpoint as the agent sees it."""
    view = submit.asked(work, waitpoint)
    del view["result"]
    resolution = waitpoints.resolution(work.tx, work.scope, waitpoint.id)
    if resolution:
        message = conversations.message(work.tx, work.scope, resolution.message_id)
        view["resolution"] = {
            "message_id": resolution.message_id,
            "responder": delivery.redacted(work.context, resolution.author),
            "channel": resolution.channel,
            "evidence_level": resolution.evidence_level,
            "trust_label": str(resolution.trust),
            "timing": str(resolution.timing),
            "responded_at": resolution.responded_at.isoformat(),
            "evidence": resolution.evidence,
            "parts": message.content.get("shown", []) if message else [],
        }
    responders = [delivery.redacted(work.context, name) for name in waitpoint.responders]
    return view | {"correlation_key": waitpoint.correlation_key, "responders": responders}


def answered(view: Json) -> bool:
    """Tell whether a view shows an end, an answer or a clean "no answer": what `wait` waits for."""
    return bool(view["ended"])


def show_message(work: Work, caller: Caller, request: requests.One) -> Json:
    """Return a message of the agent's own, tokens taken out, with the status of each copy."""
    message = conversations.message(work.tx, work.scope, request.id)
    conversation = (
        conversations.conversation(work.tx, work.scope, message.conversation_id) if message else None
    )
    if message is None or conversation is None or caller.agent_id not in ("", conversation.agent_id):
        raise NotFound(kind="message", id=request.id)
    if not _is_shown(work, caller, message):
        raise NotFound(kind="message", id=request.id)
    return message_view(work, caller, message)


def message_view(work: Work, caller: Caller, message: Message) -> Json:
    """Return a stored message as the agent sees it."""
    view: Json = {
        "message_id": message.id,
        "conversation_id": message.conversation_id,
        "direction": message.direction,
        "kind": message.kind,
        "subject": delivery.redacted(work.context, message.subject),
        "sender": delivery.redacted(work.context, message.sender.email),
        "at": message.at.isoformat(),
    }
    if message.direction == "in":
        return view | {"parts": message.content.get("shown", []), "trust_label": message.trust}
    copies = outbox.copies(work.tx, work.scope, message.id)
    return view | {
        "text": delivery.redacted(work.context, str(message.content.get("text", ""))),
        "to": [address.email for address in outgoing.addresses(message.content, "to")],
        "cc": [address.email for address in outgoing.addresses(message.content, "cc")],
        "delivery": [
            {
                "recipient": copy.recipient,
                "status": copy.reported or str(copy.state),
                "code": copy.code,
                "text": delivery.redacted(work.context, copy.text),
            }
            for copy in copies
        ],
    }


def show_conversation(work: Work, caller: Caller, request: requests.One) -> Json:
    """Return a conversation of the agent's own and its messages, oldest first."""
    conversation = conversations.conversation(work.tx, work.scope, request.id)
    if conversation is None or caller.agent_id not in ("", conversation.agent_id):
        raise NotFound(kind="conversation", id=request.id)
    messages = conversations.messages(work.tx, work.scope, conversation.id)
    return {
        "conversation_id": conversation.id,
        "subject": delivery.redacted(work.context, conversation.subject),
        "messages": [message_view(work, caller, one) for one in messages if _is_shown(work, caller, one)],
    }


def _is_shown(work: Work, caller: Caller, message: Message) -> bool:
    """Tell whether a caller may see a message: what a person has not decided, or discarded, is no agent's."""
    mine = message.direction == "out" or not caller.agent_id
    return mine or inbound.state(work.tx, work.scope, message.received_id) == "processed"


def require_agent(caller: Caller) -> str:
    """Return the agent the caller speaks for.

    Raises:
        BadRequest: the key speaks for no agent.
    """
    if not caller.agent_id:
        raise BadRequest(field="agent", problem="this needs an agent: use an agent's key, or --as NAME")
    return caller.agent_id
