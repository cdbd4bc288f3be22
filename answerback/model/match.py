"""Whose reply a message is, as far as its ids tell."""

from __future__ import annotations

from typing import Literal

from answerback.model.scope import value


@value
class Known:
    """An id we know: the message that carries it and where that message stands."""

    rfc_id: str
    message_id: str
    conversation_id: str
    source: Literal["ours", "provider", "received"]
    #: the message is one we sent (original, nudge, notice)
    outbound: bool


@value
class Matched:
    """The message belongs to one conversation."""

    conversation_id: str
    #: the message that is answered: what In-Reply-To names, else the newest known reference
    parent_id: str
    matched_by: Literal["in_reply_to", "references", "reply_address", "return_path", "returned_id"]
    #: every known message named, the answered one first
    named: tuple[str, ...] = ()


@value
class Ambiguous:
    """Two or more conversations are named: a person chooses."""

    candidates: tuple[Matched, ...]


@value
class Unmatched:
    """No id of ours: a new conversation or a person's choice, never a guess."""


Match = Matched | Ambiguous | Unmatched
