"""What became of each mail that arrived, in the words of the scenarios."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING

from answerback.channels.mail.read import read
from answerback.gateway.simulate.matchers import Observed
from answerback.gateway.simulate.scenario import written
from answerback.gateway.simulate.stage import Arrival, Stage
from answerback.gateway.simulate.world import SCOPE
from answerback.model import Inbound, InboundKind, MailboxItem, Message, PartKind
from answerback.store import conversations, inbound, mailboxes, reviews, waitpoints

if TYPE_CHECKING:
    from answerback.store.session import Tx

#: kinds no person wrote
_SYSTEM = frozenset(InboundKind) - {
    InboundKind.MESSAGE,
    InboundKind.FORWARD,
    InboundKind.REACTION,
    InboundKind.CALENDAR_RESPONSE,
    InboundKind.CALENDAR_INVITE,
}
_SPOKEN, _HISTORY = ("reply", "inline"), ("quoted", "forwarded")
#: event types that carry what a person answered
ANSWERS = ("answerback.message.received", "answerback.waitpoint.resolved")
#: items of one mailbox an observation looks at
MOST_ITEMS = 10_000


def messages(stage: Stage) -> Observed:
    """Return what became of every mail, under its reference."""
    with stage.context.db.read() as tx:
        return {ref: _message(tx, stage, one) for ref, one in stage.record.arrivals.items()}


def _message(tx: Tx, stage: Stage, arrival: Arrival) -> Observed:
    mail = read(arrival.octets)
    seen = _said(mail)
    stored = inbound.outcomes(tx, SCOPE, arrival.identity)
    if arrival.repeated:
        return seen | {"kind": "duplicate", "route": "drop", "thread": None}
    if not stored:
        return seen | {"kind": _word(mail.kind, joined=False), "route": "drop", "thread": None}
    received_id, _state, note, message_id = stored[0]
    message = conversations.message(tx, SCOPE, message_id) if message_id else None
    if message is None or message.received_id != received_id:
        return seen | _apart(tx, mail, received_id, note)
    return seen | _joined(tx, stage, message, mail)


def _said(mail: Inbound) -> Observed:
    """Return what the mail says by itself."""
    files = [part for part in mail.parts if part.kind is PartKind.ATTACHMENT]
    seen: Observed = {
        "message_id": mail.message_id or None,
        "from": mail.senders[0].email if mail.senders else None,
        "reply_text": mail.reply_text,
        "quoted_text": "\n".join(part.text for part in mail.parts if str(part.kind) in _HISTORY),
        "attachments": [
            {"filename": part.filename, "size": part.size, "sha256": part.sha256} for part in files
        ],
    }
    if mail.reports:
        report = mail.reports[0]
        bounce = {"recipient": report.recipient, "status": report.status}
        seen["bounce"] = bounce | {"class": report.outcome}
    return seen | {"emoji": mail.emoji or None, "partstat": mail.partstat or None}


def _apart(tx: Tx, mail: Inbound, received_id: str, note: str) -> Observed:
    """Return what became of a mail that joined no conversation."""
    asked = any(one.received_id == received_id for one in reviews.reviews(tx, SCOPE))
    kind = _OWN_WORDS.get(note) or _word(mail.kind, joined=False)
    role = "own" if kind == "own_message" else "system" if mail.kind in _SYSTEM else "third_party"
    return {"kind": kind, "thread": None, "route": "person" if asked else "drop", "sender_role": role}


_OWN_WORDS = {
    "own": "own_message",
    "own_message": "own_message",
    "loop": "own_message",
    "duplicate": "duplicate",
}


def _word(kind: str, *, joined: bool) -> str:
    if kind == InboundKind.MESSAGE:
        return "reply" if joined else "new"
    return {"challenge": "auto_reply", "delivery_notice": "delay_notice"}.get(str(kind), str(kind))


def _joined(tx: Tx, stage: Stage, message: Message, mail: Inbound) -> Observed:
    """Return what became of a stored message, its words as the agent gets them."""
    thread = _thread(stage, message)
    items = [item for item in answers(tx, stage) if data_of(item).get("message_id") == message.id]
    pending = [one for one in reviews.reviews(tx, SCOPE) if message.id == one.message_id]
    shown = message.content.get("shown")
    assert isinstance(shown, list)
    route = "deliver" if thread else "new"
    seen: Observed = {
        "kind": _word(message.kind, joined=thread is not None),
        "thread": thread,
        "route": "person" if pending else route if items or _told(tx, stage, message) else "drop",
        "trust": str(message.trust) if message.trust else None,
        "sender_role": _role(tx, message, mail),
        "reply_text": "\n".join(_plain(part) for part in shown if part["kind"] in _SPOKEN),
        "quoted_text": "\n".join(_plain(part) for part in shown if part["kind"] in _HISTORY),
        "late": any(data_of(item).get("timing") == "late" for item in items),
    }
    return seen


def _thread(stage: Stage, message: Message) -> str | None:
    ours = {known: name for name, known in stage.world.conversations.items()}
    return ours.get(message.conversation_id)


def _plain(part: Observed) -> str:
    """Return a part's words without the boundary lines an agent gets around them."""
    return "\n".join(str(part["text"]).split("\n")[1:-1])


def _role(tx: Tx, message: Message, mail: Inbound) -> str:
    if message.kind in _SYSTEM:
        return "system"
    if mail.through_list:
        return "list"
    author = f"email:{message.sender.email.lower()}"
    domain = f"email-domain:{message.sender.email.lower().rpartition('@')[2]}"
    known = waitpoints.waitpoints_of(tx, SCOPE, message.conversation_id)
    expected = any(name in waitpoint.responders for waitpoint in known for name in (author, domain))
    return "expected" if expected else "third_party"


def answers(tx: Tx, stage: Stage, agent_id: str = "") -> list[MailboxItem]:
    """Return the mailbox items that carry what a person answered, of one agent or of all."""
    return [item for item in items(tx, stage, agent_id) if item.type.startswith(ANSWERS)]


def items(tx: Tx, stage: Stage, agent_id: str = "") -> list[MailboxItem]:
    """Return every mailbox item of one agent, or of all."""
    wanted = [agent_id] if agent_id else stage.world.agents.values()
    return [item for one in wanted for item in mailboxes.read(tx, SCOPE, f"agent:{one}", 0, MOST_ITEMS)]


def _told(tx: Tx, stage: Stage, message: Message) -> bool:
    """Tell whether the agent was told of the message by an event that is no answer, as of an absence."""
    return any(data_of(item).get("message_id") == message.id for item in items(tx, stage))


def data_of(item: MailboxItem) -> Observed:
    """Return what an item says."""
    found = json.loads(item.envelope)["data"]
    assert isinstance(found, dict)
    return found


def delivered_at(stage: Stage) -> dict[str, str]:
    """Return when each mail's words reached a mailbox, under its reference."""
    with stage.context.db.read() as tx:
        times = {data_of(i).get("message_id"): json.loads(i.envelope)["time"] for i in answers(tx, stage)}
        known = {ref: inbound.outcomes(tx, SCOPE, one.identity) for ref, one in stage.record.arrivals.items()}
    return {
        ref: written(datetime.fromisoformat(times[found[0][3]]))
        for ref, found in known.items()
        if found and found[0][3] in times
    }


def words_of(data: Observed) -> str:
    """Return the words an item carries, as the agent gets them."""
    return "\n".join(_plain(part) for part in data.get("parts", []) if part["kind"] in _SPOKEN)
