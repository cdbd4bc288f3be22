"""Stores what is to be sent: the message with its minted id, its ids, and one outbox row per recipient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from answerback.model import Address, Conversation, Json, Message, value
from answerback.store import conversations, outbox, tenants
from answerback.threading import tokens

if TYPE_CHECKING:
    from answerback.gateway.context import Work


@value
class Letter:
    """What one outbound message says and why it is sent.

    `content` holds `text`, `html`, `to`, `cc` (lists of {email, name}) and `attachments`
    (filename, media_type, sha256).
    """

    kind: str
    subject: str
    content: Json
    parent_id: str = ""
    wait_id: str = ""
    nudge_number: int | None = None


def store(work: Work, conversation: Conversation, letter: Letter) -> Message:
    """Store one outbound message with its outbox rows and return it.

    The Message-ID carries a keyed MAC: nobody can guess one, and ours are known as ours.
    """
    inbox = tenants.inbox(work.tx, work.scope, conversation.inbox_id)
    assert inbox is not None
    number = work.context.draw()
    message = Message(
        id=tokens.public_id("msg", number),
        conversation_id=conversation.id,
        direction="out",
        kind=letter.kind,
        subject=letter.subject,
        sender=Address(email=inbox.address, name=inbox.display_name),
        at=work.now,
        rfc_id=tokens.message_id(number, domain(inbox.address), work.context.keyring.mac_keys),
        parent_id=letter.parent_id,
        content=letter.content,
        wait_id=letter.wait_id,
        nudge_number=letter.nudge_number,
    )
    conversations.add_message(work.tx, work.scope, message)
    conversations.remember_ids(work.tx, work.scope, message.id, [(message.rfc_id, "ours")])
    copies = recipients(letter.content)
    outbox.queue(work.tx, work.scope, message.id, copies, work.now, wait_id=letter.wait_id or None)
    return message


def recipients(content: Json) -> list[str]:
    """Return the addresses of To and Cc, each once, in order."""
    listed = [*addresses(content, "to"), *addresses(content, "cc")]
    return list(dict.fromkeys(address.email for address in listed))


def addresses(content: Json, field: str) -> tuple[Address, ...]:
    """Return one address list of a stored message's content."""
    listed = content.get(field) or []
    assert isinstance(listed, list)
    return tuple(Address(email=entry["email"], name=entry["name"]) for entry in listed)


def listed(mailboxes: Sequence[Address]) -> list[Json]:
    """Return addresses as they stand in a message's content."""
    return [{"email": mailbox.email, "name": mailbox.name} for mailbox in mailboxes]


def domain(address: str) -> str:
    """Return the part after the last @."""
    return address.rpartition("@")[2]
