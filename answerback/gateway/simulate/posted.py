"""What went out during a scenario, read from the wire by a parser that is not ours."""

from __future__ import annotations

from collections.abc import Mapping
from email import message_from_bytes
from email.message import Message as Parsed
from typing import TYPE_CHECKING

from answerback.gateway.simulate.edges import WireCopy
from answerback.gateway.simulate.matchers import Observed
from answerback.gateway.simulate.scenario import written
from answerback.gateway.simulate.stage import Stage
from answerback.gateway.simulate.world import SCOPE
from answerback.model import Message, OutboxState, value
from answerback.store import conversations, outbox
from answerback.store import waits as waiting

if TYPE_CHECKING:
    from answerback.store.session import Tx

_ON_ITS_WAY = frozenset(
    {
        OutboxState.QUEUED,
        OutboxState.HANDING_OVER,
        OutboxState.DEFERRED,
        OutboxState.SENT,
        OutboxState.UNKNOWN,
    }
)


@value
class Posted:
    """One message of ours and its copies on the wire."""

    message: Message
    copies: tuple[WireCopy, ...]
    #: it left, is about to, or was refused by a server: neither withdrawn nor held back
    went: bool


def posted(tx: Tx, stage: Stage) -> Observed:
    """Return the counts of each conversation, when waits were nudged, and what stood in each mail.

    Nudges are named `W1.nudge1` in `sent` and `sent_headers`, other mails by their reference. Every copy the
    relay took counts as one, and nudges are among `sends`.
    """
    wire = _by_id(stage.relay.wire)
    found = {name: _posted(tx, stage, known, wire) for name, known in stage.world.conversations.items()}
    nudges = [one for some in found.values() for one in some if one.message.kind == "nudge" and one.copies]
    nudged: Observed = {name: [] for name in stage.world.waitpoints}
    named: dict[str, WireCopy] = {}
    for nudge in nudges:
        waitpoint = _waitpoint_of(tx, stage, nudge.message)
        nudged.setdefault(waitpoint, []).append(written(nudge.copies[0].at))
        named[f"{waitpoint}.nudge{nudge.message.nudge_number}"] = nudge.copies[0]
    refs = {str(result.get("message_id")): ref for ref, result in stage.record.results.items()}
    for one in (one for some in found.values() for one in some):
        if one.copies and one.message.id in refs:
            named[refs[one.message.id]] = one.copies[0]
    return {
        "outbound": {name: _counts(some) for name, some in found.items()},
        "nudged_at": nudged,
        "sent": {name: _sent(copy) for name, copy in named.items()},
        "sent_headers": {name: _ids(copy) for name, copy in named.items()},
    }


def _by_id(wire: list[WireCopy]) -> dict[str, list[WireCopy]]:
    found: dict[str, list[WireCopy]] = {}
    for copy in wire:
        found.setdefault(_message_id(copy), []).append(copy)
    return found


def _posted(tx: Tx, stage: Stage, conversation: str, wire: Mapping[str, list[WireCopy]]) -> list[Posted]:
    ours = (one for one in conversations.messages(tx, SCOPE, conversation) if one.direction == "out")
    return [
        Posted(message=one, copies=tuple(wire.get(one.rfc_id, ())), went=_went(tx, one))
        for one in ours
        if one.id not in stage.world.before
    ]


def _went(tx: Tx, message: Message) -> bool:
    copies = outbox.copies(tx, SCOPE, message.id)
    return any(
        copy.state in _ON_ITS_WAY or (copy.state is OutboxState.FAILED and copy.code > 0) for copy in copies
    )


def _counts(found: list[Posted]) -> Observed:
    copies = [copy for one in found for copy in one.copies]
    return {
        "sends": sum(one.went for one in found),
        "nudges": sum(one.message.kind == "nudge" and bool(one.copies) for one in found),
        "wire_copies": len(copies),
        "distinct_message_ids": len({_message_id(copy) for copy in copies}),
    }


def _waitpoint_of(tx: Tx, stage: Stage, nudge: Message) -> str:
    row = waiting.wait(tx, SCOPE, nudge.wait_id)
    names = {known: name for name, known in stage.world.waitpoints.items()}
    return names.get(row.waitpoint_id if row else "", "")


def _parsed(copy: WireCopy) -> Parsed:
    return message_from_bytes(copy.envelope.octets)


def _message_id(copy: WireCopy) -> str:
    return "".join(str(_parsed(copy)["Message-ID"]).split())


def _sent(copy: WireCopy) -> Observed:
    parsed = _parsed(copy)
    body = next(part for part in parsed.walk() if part.get_content_type() == "text/plain")
    payload = body.get_payload(decode=True)
    assert isinstance(payload, bytes)
    text = payload.decode(body.get_content_charset("us-ascii"))
    return {
        "max_line": max(map(len, copy.envelope.octets.split(b"\r\n"))),
        "text_equals": text.replace("\r\n", "\n").removesuffix("\n"),
        "subject": parsed["Subject"],
        "recipients": list(copy.accepted),
    }


def _ids(copy: WireCopy) -> Observed:
    parsed = _parsed(copy)
    return {
        "message_id": _message_id(copy),
        "in_reply_to": str(parsed.get("In-Reply-To", "")).strip() or None,
        "references": str(parsed.get("References", "")).split(),
        "auto_submitted": parsed.get("Auto-Submitted"),
    }
