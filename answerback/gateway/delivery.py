"""Puts facts into mailboxes as signed CloudEvents envelopes, tokens taken out."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from answerback.model import Json, Message, Part, PartKind
from answerback.store import mailboxes
from answerback.threading.tokens import redact

if TYPE_CHECKING:
    from answerback.gateway.context import Context, Work

PREFIX = "answerback."
OPENING, CLOSING = "⟦", "⟧"


def tell(work: Work, principals: Iterable[str], event: str, data: Json) -> str:
    """Append one event to the mailbox of each principal and return its id.

    Mailboxes are locked in the order of their names, so two transactions never wait for each other.
    """
    event_id = work.context.new_id("evt")

    def envelope(sequence: int) -> str:
        return seal(work, event_id, PREFIX + event, data, sequence)

    for principal in sorted(set(principals)):
        mailboxes.append(work.tx, work.scope, principal, event_id, PREFIX + event, work.now, envelope)
    return event_id


def seal(work: Work, event_id: str, event: str, data: Json, sequence: int) -> str:
    """Return the CloudEvents 1.0 envelope as JSON text, signed with the tenant's Ed25519 key.

    The extension attribute `signature` is `<key id>:<hex>` over the same JSON without that attribute,
    keys sorted, no blanks, UTF-8.
    """
    envelope: Json = {
        "specversion": "1.0",
        "type": event,
        "source": f"/tenants/{work.scope.tenant}/{work.scope.environment}",
        "id": event_id,
        "time": work.now.isoformat().replace("+00:00", "Z"),
        "sequence": str(sequence),
        "datacontenttype": "application/json",
        "data": data,
    }
    key_id, signature = work.context.keyring.sign(canonical(envelope).encode())
    return canonical({**envelope, "signature": f"{key_id}:{signature.hex()}"})


def canonical(value: Json) -> str:
    """Return JSON with sorted keys and no blanks: the form that is signed, hashed and compared."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def redacted(context: Context, text: str) -> str:
    """Return the text with every live token of ours shown as `[token]`."""
    return redact(text, context.keyring.mac_keys)[0]


def parts(context: Context, message: Message, pieces: Iterable[Part], nonce: str) -> list[Json]:
    """Return the typed, untrusted parts as an agent gets them."""
    author = redacted(context, f"email:{message.sender.email.lower()}")
    source: Json = {"author": author, "verified": False, "channel": "email"}
    shown: list[Json] = []
    for number, piece in enumerate(pieces, start=1):
        part: Json = {
            "id": f"p{number}",
            "kind": str(piece.kind),
            "audience": "agent",
            "trust": "untrusted",
            "source": source,
        }
        part |= _file(context, piece) if piece.kind == PartKind.ATTACHMENT else _words(context, piece, nonce)
        shown.append(part)
    return shown


def _file(context: Context, piece: Part) -> Json:
    return {
        "filename": redacted(context, piece.filename),
        "media_type": piece.media_type,
        "size": piece.size,
        "sha256": piece.sha256,
    }


def _words(context: Context, piece: Part, nonce: str) -> Json:
    inside = redacted(context, piece.text)
    forged = inside.count(OPENING) + inside.count(CLOSING)
    inside = inside.replace(OPENING, "[").replace(CLOSING, "]")
    words: Json = {
        "boundary": nonce,
        "text": f"{OPENING}{nonce} untrusted{CLOSING}\n{inside}\n{OPENING}/{nonce}{CLOSING}",
    }
    if forged:
        words["marker_forgery"] = forged
    if piece.known is not None:
        words["known"] = piece.known
    if piece.answers:
        words["answers"] = redacted(context, piece.answers)
    return words
