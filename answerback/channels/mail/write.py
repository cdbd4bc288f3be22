"""Turns a draft into the exact octets of a mail, and checks them before they leave."""

from __future__ import annotations

from collections.abc import Iterable
from email.utils import format_datetime

from answerback.channels.mail import bodies, headers
from answerback.channels.mail.headers import Header
from answerback.errors import BadRequest
from answerback.model import Address, Draft

_NEWEST = 48  # with the first and the parent 50 ids, which every reader we know takes


def chain(parent_references: Iterable[str], parent_id: str) -> tuple[str, ...]:
    """Return the References of a reply: the first id, the newest 48, then the parent; each once.

    At most 50 (RFC 5322 section 3.6.4 allows trimming). Ids nobody could write on one line are left out.
    """
    known = headers.writable_ids(dict.fromkeys(each for each in parent_references if each != parent_id))
    kept = known if len(known) <= _NEWEST + 1 else (known[0], *known[-_NEWEST:])
    return (*kept, *headers.writable_ids([parent_id]))


def compose(draft: Draft) -> bytes:
    """Return the mail as CRLF octets, no line over 998, every encoding reversible to the draft's words.

    Header octets are ASCII, except where an address's local part needs SMTPUTF8 (RFC 6531). Foreign ids that
    can not be written are left out. The octets are read again and compared with what was meant.
    Raises BadAddress, or BadRequest where the draft can not be written safely.
    """
    if not draft.to:
        raise BadRequest(field="to", problem="a mail needs at least one recipient")
    body = bodies.complete(_body(draft))
    fields = [*_addressing(draft), *_about(draft), ("MIME-Version", "1.0"), *body.headers]
    ids = _ids(draft)
    octets = headers.block(fields, ids=ids) + body.octets
    headers.check_lines(octets)
    if headers.names(octets) != [name for name, _ in fields] + [name for name, _ in ids]:
        raise BadRequest(field="mail", problem="its headers would be read differently")
    return octets


def _addressing(draft: Draft) -> list[Header]:
    fields = [("From", headers.mailbox(draft.sender)), ("To", headers.mailboxes(draft.to))]
    if draft.cc:
        fields.append(("Cc", headers.mailboxes(draft.cc)))
    if draft.reply_to:
        fields.append(("Reply-To", headers.mailbox(Address(email=draft.reply_to))))
    return fields


def _about(draft: Draft) -> list[Header]:
    if draft.date.tzinfo is None:
        raise BadRequest(field="date", problem="it has no time zone")
    fields = [("Subject", headers.unstructured(draft.subject)), ("Date", format_datetime(draft.date))]
    if draft.auto_submitted:
        fields.append(("Auto-Submitted", headers.clean(draft.auto_submitted)))
    return fields


def _ids(draft: Draft) -> list[tuple[str, tuple[str, ...]]]:
    own = headers.writable_ids([draft.message_id])
    if not own:
        raise BadRequest(field="message_id", problem="it is not of the form <token@domain>")
    *older, parent = draft.references or ("",)
    groups = [
        ("Message-ID", own),
        ("In-Reply-To", headers.writable_ids([draft.in_reply_to])),
        ("References", chain(older, parent)),
    ]
    return [(name, ids) for name, ids in groups if ids]


def _body(draft: Draft) -> bodies.Part:
    body = bodies.text(draft.text)
    if draft.html is not None:
        body = bodies.multipart(
            "alternative", [body, bodies.text(draft.html, subtype="html")], seed=draft.message_id
        )
    if draft.attachments:
        files = (bodies.attachment(each) for each in draft.attachments)
        body = bodies.multipart("mixed", [body, *files], seed=draft.message_id)
    return body
