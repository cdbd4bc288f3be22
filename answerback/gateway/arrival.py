"""What an inbound mail changes: gather its ids and waitpoints, judge by the table, apply."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, assert_never

from answerback.channels.mail.read import resplit
from answerback.gateway import advance, answers, reports
from answerback.gateway.answers import Place
from answerback.gateway.questions import asked, reply_of, responder_name
from answerback.model import (
    Address,
    Ambiguous,
    Inbound,
    InboundKind,
    Inbox,
    Json,
    Known,
    Matched,
    Message,
    Received,
    Timing,
    Unmatched,
)
from answerback.store import conversations, inbound, tenants, waitpoints
from answerback.store import waits as waiting
from answerback.threading import refs, tokens
from answerback.threading.match import REPORTS, gather, match
from answerback.waits import events
from answerback.waits.addresses import canonical
from answerback.waits.judgement import Answers, Asks, Away, Joins, judge

if TYPE_CHECKING:
    from answerback.gateway.context import Work

#: Received fields a mail may carry before it is called a loop
MOST_HOPS = 25


def arrive(work: Work, received: Received, mail: Inbound) -> None:
    """Let one stored mail change what it may, all in the caller's transaction."""
    inbox = tenants.inbox(work.tx, work.scope, received.inbox_id)
    assert inbox is not None
    if reason := own_or_loop(work, inbox, mail) or duplicate(work, received, mail):
        drop(work, received, reason)
        return
    count_forged(work, received.recipient)
    reply_address = named_by(work, inbox, "reply_address", received, mail)
    return_path = named_by(work, inbox, "return_path", received, mail)
    clues = gather(mail, reply_address=reply_address, return_path=return_path)
    found = match(clues, known_here(work, inbox, clues.ids))
    match found:
        case Matched():
            texts = conversations.sent_texts(work.tx, work.scope, found.conversation_id)
            joined(work, received, resplit(mail, texts), found)
        case Ambiguous():
            to_person(
                work, received, "ambiguous", {"candidates": [_candidate(one) for one in found.candidates]}
            )
        case Unmatched():
            unmatched(work, received, mail, inbox)
        case _:
            assert_never(found)


def own_or_loop(work: Work, inbox: Inbox, mail: Inbound) -> str:
    """Return why a mail is this inbox's own or goes round in circles, "" where it is neither."""
    if any(canonical(sender.email) == canonical(inbox.address) for sender in mail.senders):
        return "own_message"
    ids = [refs.normalise(one) for one in refs.extract(mail.message_id)]
    if any(one.outbound for one in known_here(work, inbox, ids)):
        return "own_message"
    return "loop" if mail.received_count > MOST_HOPS else ""


def known_here(work: Work, inbox: Inbox, ids: Sequence[str]) -> list[Known]:
    """Return the messages of this inbox that carry one of the ids; other inboxes' threads are not its."""
    known = conversations.known(work.tx, work.scope, ids)
    return [one for one in known if _is_here(work, inbox, one)]


def _is_here(work: Work, inbox: Inbox, known: Known) -> bool:
    conversation = conversations.conversation(work.tx, work.scope, known.conversation_id)
    return conversation is not None and conversation.inbox_id == inbox.id


def duplicate(work: Work, received: Received, mail: Inbound) -> str:
    """Return `duplicate` where the inbox has the same Message-ID, author and content already, else ""."""
    rfc_id = next(iter(refs.extract(mail.message_id)), "")
    author = mail.senders[0].email if mail.senders else received.mail_from
    twin = inbound.twin(work.tx, work.scope, received.inbox_id, rfc_id, author, mail.body_hash)
    return "duplicate" if twin else ""


def named_by(work: Work, inbox: Inbox, kind: tokens.Kind, received: Received, mail: Inbound) -> Known | None:
    """Return the message that a token in one of the addresses the mail was sent to names."""
    keys = work.context.keyring.mac_keys
    for address in (received.recipient, *(one.email for one in (*mail.to, *mail.cc))):
        read = tokens.read_address(address, kind, keys)
        if read and read[0].lower() == inbox.address.lower():
            known = conversations.known_message(work.tx, work.scope, tokens.public_id("msg", read[1]))
            return known if known and _is_here(work, inbox, known) else None
    return None


def count_forged(work: Work, recipient: str) -> None:
    """Count a sub-address that has the shape of ours and no MAC of ours; its mail is plain mail."""
    token, keys = recipient.rpartition("@")[0].rpartition("+")[2], work.context.keyring.mac_keys
    genuine = any(tokens.verify(kind, token, keys) is not None for kind in tokens.KINDS)
    if len(token) == tokens.LENGTH and not genuine:
        tenants.count(work.tx, work.scope, "bad_mac")


def drop(work: Work, received: Received, reason: str) -> None:
    """Count a mail that is nobody's news; its octets stay stored."""
    inbound.settle(work.tx, work.scope, received.id, "dropped", reason, None)
    tenants.count(work.tx, work.scope, reason)


def to_person(
    work: Work, received: Received, reason: str, details: Json, message: Message | None = None
) -> None:
    """Put a mail before a person; nobody else sees it until it is decided."""
    about = advance.About(
        conversation_id=message.conversation_id if message else "",
        message_id=message.id if message else "",
        received_id=received.id,
    )
    advance.open_review(work, reason, about, details)
    inbound.settle(work.tx, work.scope, received.id, "review", reason, message.id if message else None)


def _candidate(found: Matched) -> Json:
    return {
        "conversation_id": found.conversation_id,
        "matched_by": found.matched_by,
        "messages": list(found.named),
    }


def unmatched(work: Work, received: Received, mail: Inbound, inbox: Inbox) -> None:
    """Find a place for a mail without an id of ours: a person's choice, a new conversation, or none."""
    if mail.kind in REPORTS:
        # Only a report that returns an id we really sent may change anything; others can be forged.
        drop(work, received, "unknown_report")
        return
    if candidates := _open_with(work, inbox, mail.senders):
        to_person(work, received, "sender_match", {"candidates": candidates})
        return
    if mail.kind in (InboundKind.AUTO_REPLY, InboundKind.OUT_OF_OFFICE, InboundKind.CHALLENGE):
        drop(work, received, "unknown_automatic")
        return
    if inbox.external != "all":
        to_person(work, received, "external", {"policy": inbox.external})
        return
    place = Place(conversation_id=answers.new_conversation(work, received, mail).id)
    message = answers.store(work, received, mail, place)
    answers.deliver(work, message)
    inbound.settle(work.tx, work.scope, received.id, "processed", "new", message.id)


def _open_with(work: Work, inbox: Inbox, senders: tuple[Address, ...]) -> list[Json]:
    """Return the open waitpoints of this inbox that one of the senders could answer."""
    names = {responder_name(sender.email) for sender in senders}
    return [
        {"conversation_id": one.conversation_id, "waitpoint_id": one.id, "matched_by": "sender"}
        for one in waitpoints.open_for(work.tx, work.scope, inbox.id, names)
    ]


def joined(work: Work, received: Received, mail: Inbound, found: Matched) -> None:
    """Apply what a mail that belongs to a conversation means for it."""
    place = Place(
        conversation_id=found.conversation_id, parent_id=found.parent_id, matched_by=found.matched_by
    )
    message = answers.store(work, received, mail, place)
    if mail.kind in REPORTS:
        _reported(work, mail, found)
        inbound.settle(work.tx, work.scope, received.id, "processed", "report", message.id)
        return
    judged = judge(reply_of(message, found.named), asked(work, found.conversation_id))
    match judged:
        case Answers():
            answers.resolve(work, message, judged)
        case Joins():
            _joins(work, message, judged)
        case Away():
            _away(work, message, mail)
        case Asks():
            to_person(work, received, judged.reason, {"candidates": list(judged.candidates)}, message)
            return
        case _:
            assert_never(judged)
    inbound.settle(work.tx, work.scope, received.id, "processed", "joined", message.id)


def _joins(work: Work, message: Message, judged: Joins) -> None:
    if judged.timing is Timing.LATE:
        for waitpoint_id in waitpoints.stands_for(work.tx, work.scope, message.parent_id):
            rejected = (waitpoint_id, message.id, "late", message.body_hash)
            waitpoints.reject(work.tx, work.scope, *rejected, at=work.now)
    answers.deliver(work, message, timing=judged.timing)


def _away(work: Work, message: Message, mail: Inbound) -> None:
    conversation = conversations.conversation(work.tx, work.scope, message.conversation_id)
    assert conversation is not None
    back = {"return_date": mail.return_date.isoformat()} if mail.return_date else {}
    data = answers.facts(message, None) | back
    advance.tell_agent(work, conversation.agent_id, "message.auto_replied", ("waiter",), data)
    if row := waiting.wait_of(work.tx, work.scope, message.conversation_id):
        event = events.AutoReplied(recipient=canonical(message.sender.email), return_date=mail.return_date)
        advance.advance(work, row.id, event, cause={"message_id": message.id})


def _reported(work: Work, mail: Inbound, found: Matched) -> None:
    about = conversations.message(work.tx, work.scope, found.parent_id)
    if about is None or about.direction != "out":
        return
    for report in mail.reports:
        reports.apply(work, about, report)
