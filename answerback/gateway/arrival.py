"""What an inbound mail changes: gather its ids and waitpoints, judge by the table, apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from answerback.channels.mail.read import resplit
from answerback.gateway import advance, answers, outgoing, reports
from answerback.gateway.answers import Place
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
    Unmatched,
    Waitpoint,
    WaitState,
)
from answerback.store import conversations, inbound, tenants, waitpoints
from answerback.store import waits as waiting
from answerback.threading import refs, tokens
from answerback.threading.match import REPORTS, gather, match
from answerback.waits import events
from answerback.waits.addresses import canonical, responder_of
from answerback.waits.judgement import Answers, Asked, Asks, Away, Joins, Reply, judge

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
    found = match(clues, conversations.known(work.tx, work.scope, clues.ids))
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
    """Return why a mail is our own or goes round in circles, "" where it is neither."""
    if any(sender.email.lower() == inbox.address.lower() for sender in mail.senders):
        return "own_message"
    own = [
        row
        for one in refs.extract(mail.message_id)
        if (row := tokens.row_of(one, work.context.keyring.mac_keys)) is not None
    ]
    if own or _is_sent(work, mail):
        return "own_message"
    return "loop" if mail.received_count > MOST_HOPS else ""


def _is_sent(work: Work, mail: Inbound) -> bool:
    ids = [refs.normalise(one) for one in refs.extract(mail.message_id)]
    return any(one.outbound for one in conversations.known(work.tx, work.scope, ids))


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
            return conversations.known_message(work.tx, work.scope, tokens.public_id("msg", read[1]))
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
    authors = tuple(responder_name(sender.email) for sender in mail.senders)
    reply = Reply(
        kind=mail.kind,
        authors=authors,
        named=found.named,
        at=received.at,
        trust=message.trust or answers.TRUST,
        unreadable=mail.unreadable,
        through_list=mail.through_list,
    )
    judged = judge(reply, asked(work, found.conversation_id))
    match judged:
        case Answers():
            answers.resolve(work, message, judged.waitpoint, judged.responder, judged.timing)
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


def responder_name(address: str) -> str:
    """Return `email:` and an address as responders are compared."""
    return f"email:{canonical(address)}"


def asked(work: Work, conversation_id: str) -> tuple[Asked, ...]:
    """Return the conversation's waitpoints with what `judge` asks about each."""
    messages = conversations.messages(work.tx, work.scope, conversation_id)
    return tuple(
        _asked(work, one, messages) for one in waitpoints.waitpoints_of(work.tx, work.scope, conversation_id)
    )


def _asked(work: Work, waitpoint: Waitpoint, messages: tuple[Message, ...]) -> Asked:
    standing = frozenset(
        message.id
        for message in messages
        if message.direction == "out"
        and waitpoint.id in waitpoints.stands_for(work.tx, work.scope, message.id)
    )
    sent_to = {
        responder_name(address)
        for message in messages
        if message.id in standing
        for address in outgoing.recipients(message.content)
    }
    heard_from = {
        responder_name(message.sender.email)
        for message in messages
        if message.direction == "in" and message.kind == InboundKind.MESSAGE and message.parent_id in standing
    }
    to = frozenset(
        responder_name(address.email)
        for message in messages
        if message.id in standing
        for address in outgoing.addresses(message.content, "to")
    )
    row = waiting.wait_for(work.tx, work.scope, waitpoint.id)
    outsiders = [name for name in sent_to | heard_from if responder_of(name, waitpoint.responders) is None]
    return Asked(
        waitpoint=waitpoint,
        messages=standing,
        abandoned=row is not None and row.wait.state is WaitState.ABANDONED,
        exposed=bool(outsiders),
        to=to,
    )


def _joins(work: Work, message: Message, judged: Joins) -> None:
    row = waiting.wait_of(work.tx, work.scope, message.conversation_id)
    if row and not row.waitpoint_id and message.kind == InboundKind.MESSAGE:
        advance.advance(work, row.id, events.Replied(), cause={"message_id": message.id})
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
