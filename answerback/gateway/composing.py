"""Turns a stored outbound message into the octets that leave, and its return path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from answerback.channels.mail import signing, write
from answerback.gateway import outgoing
from answerback.model import Attachment, Draft, Inbox, Message, Scope
from answerback.store import conversations, inbound, tenants
from answerback.threading import tokens

if TYPE_CHECKING:
    from answerback.gateway.context import Work
    from answerback.store.session import Tx


def compose(work: Work, message: Message) -> tuple[bytes, str]:
    """Return a stored message's octets, signed where a DKIM key is set, and its return path."""
    inbox = _inbox_of(work.tx, work.scope, message)
    number, keys = tokens.number_of(message.id), work.context.keyring.mac_keys
    parent = conversations.message(work.tx, work.scope, message.parent_id) if message.parent_id else None
    chain = conversations.chain(work.tx, work.scope, parent.id) if parent else ()
    html = message.content.get("html")
    draft = Draft(
        message_id=message.rfc_id,
        sender=message.sender,
        to=outgoing.addresses(message.content, "to"),
        cc=outgoing.addresses(message.content, "cc"),
        subject=message.subject,
        text=str(message.content["text"]),
        html=str(html) if html else None,
        date=message.at,
        reply_to=_token_address(inbox, number, "reply_address", keys) if inbox.sub_addresses else "",
        in_reply_to=parent.rfc_id if parent else "",
        references=write.chain(chain, parent.rfc_id) if parent else (),
        attachments=_attachments(work.tx, work.scope, message),
    )
    octets = write.compose(draft)
    if key := work.context.dkim_key:
        dkim = work.context.settings.dkim
        octets = signing.sign(octets, domain=dkim.domain, selector=dkim.selector, key=key)
    return octets, _token_address(
        inbox, number, "return_path", keys
    ) if inbox.sub_addresses else inbox.address


def _token_address(inbox: Inbox, number: int, kind: tokens.Kind, keys: tuple[bytes, ...]) -> str:
    return tokens.sub_address(inbox.address, number, kind, keys)


def _inbox_of(tx: Tx, scope: Scope, message: Message) -> Inbox:
    conversation = conversations.conversation(tx, scope, message.conversation_id)
    assert conversation is not None
    inbox = tenants.inbox(tx, scope, conversation.inbox_id)
    assert inbox is not None
    return inbox


def _attachments(tx: Tx, scope: Scope, message: Message) -> tuple[Attachment, ...]:
    listed = message.content.get("attachments") or []
    assert isinstance(listed, list)
    return tuple(
        Attachment(
            filename=entry["filename"],
            media_type=entry["media_type"],
            content=inbound.content(tx, scope, entry["sha256"]) or b"",
        )
        for entry in listed
    )
