"""How things stand after the last event, in the words of the scenarios."""

from __future__ import annotations

from collections import Counter
from hashlib import sha256
from typing import TYPE_CHECKING

from answerback.gateway.simulate import posted, reading
from answerback.gateway.simulate.matchers import Observed
from answerback.gateway.simulate.scenario import written
from answerback.gateway.simulate.stage import Stage
from answerback.gateway.simulate.world import SCOPE
from answerback.model import RUNNING, WaitpointState, WaitRow, WaitState
from answerback.store import inbound, reviews, tenants, waitpoints
from answerback.store import waits as waiting

if TYPE_CHECKING:
    from answerback.store.session import Tx

#: why a wait was abandoned → why it stopped; what is not here was abandoned for want of an answer
_STOPPED = {"bounced": "bounce", "complained": "complaint", "opted_out": "opt_out"}
_SILENT = ("no_reply", "expired", "")


def final(stage: Stage) -> Observed:
    """Return how waits, mailboxes, outbox and reviews stand now."""
    record = stage.record
    with stage.context.db.read() as tx:
        seen = _waits(tx, stage) | _mailboxes(tx, stage) | posted.posted(tx, stage) | _received(tx, stage)
        failed = sum(one.reason == "unprocessable" for one in reviews.reviews(tx, SCOPE, open_only=False))
        seen["person_queue"] = len(reviews.reviews(tx, SCOPE))
        seen["suppressed"] = [one.address for one in tenants.suppressions(tx, SCOPE)]
    return seen | {
        "delivered_at": reading.delivered_at(stage),
        "api": {ref: {"status": status} for ref, status in record.statuses.items()},
        "results": record.results,
        "leases": record.leases,
        "smtp": {ref: one.code for ref, one in record.arrivals.items()},
        "messages_accepted": record.accepted,
        "errors": len(record.errors) + failed,
    }


def _waits(tx: Tx, stage: Stage) -> Observed:
    states: Observed = {}
    reasons: Observed = {}
    due: Observed = {}
    deadlines: Observed = {}
    for name, known in stage.world.waitpoints.items():
        waitpoint = waitpoints.waitpoint(tx, SCOPE, known)
        assert waitpoint is not None
        row = waiting.wait_for(tx, SCOPE, known)
        states[name], reasons[name] = _state(row, waitpoint.state)
        due[name] = _next_nudge(row)
        deadlines[name] = written(waitpoint.expires_at)
    return {"wait_state": states, "stop_reason": reasons, "next_nudge": due, "deadline_utc": deadlines}


def _state(row: WaitRow | None, waitpoint: WaitpointState) -> tuple[str, str | None]:
    """Return a waitpoint's state and why it stopped; one without a clock of its own shares another's."""
    if waitpoint is WaitpointState.RESOLVED:
        return "replied", None
    if row is None:
        shared = {WaitpointState.EXPIRED: "abandoned", WaitpointState.CANCELLED: "stopped"}
        return shared.get(waitpoint, "waiting"), None
    wait = row.wait
    if wait.state is WaitState.CANCELLED:
        return "stopped", wait.reason
    if wait.state is WaitState.ABANDONED and wait.reason not in _SILENT:
        return "stopped", _STOPPED.get(wait.reason, wait.reason)
    return str(wait.state), wait.reason or None


def _next_nudge(row: WaitRow | None) -> str | None:
    """The last step of a plan is the abandonment."""
    if row is None or row.wait.state not in RUNNING or len(row.wait.plan) < 2:
        return None
    return written(row.wait.plan[0])


def _mailboxes(tx: Tx, stage: Stage) -> Observed:
    ours = {known: name for name, known in stage.world.conversations.items()}
    delivered: Counter[str] = Counter(dict.fromkeys(ours.values(), 0))
    texts: dict[str, list[str]] = {name: [] for name in ours.values()}
    for item in reading.answers(tx, stage):
        data = reading.data_of(item)
        name = ours.get(str(data.get("conversation_id")))
        # An early answer keeps its first row and adds a second about the same delivery.
        if name and data.get("timing") != "early":
            delivered[name] += 1
            texts[name].append(reading.words_of(data))
    waiting_items = {name: _pending(tx, stage, agent) for name, agent in stage.world.agents.items()}
    dead = {name: _dead(tx, stage, agent) for name, agent in stage.world.agents.items()}
    return {
        "deliveries": dict(delivered),
        "mailbox_items": waiting_items,
        "dead_letter": dead,
        "delivered_text_joined": {name: "".join(found) for name, found in texts.items()},
    }


def _pending(tx: Tx, stage: Stage, agent_id: str) -> int:
    return sum(item.state in ("ready", "leased") for item in reading.answers(tx, stage, agent_id))


def _dead(tx: Tx, stage: Stage, agent_id: str) -> int:
    return sum(item.state == "dead" for item in reading.items(tx, stage, agent_id))


def _received(tx: Tx, stage: Stage) -> Observed:
    stored = {r: inbound.outcomes(tx, SCOPE, one.identity) for r, one in stage.record.arrivals.items()}
    kept = {ref: inbound.received(tx, SCOPE, found[0][0]) for ref, found in stored.items() if found}
    messages = {found[0][3] for found in stored.values() if found and found[0][3]}
    return {
        "messages_stored": len(messages),
        "raw_kept": list(kept),
        "raw_sha256": {ref: sha256(one.octets).hexdigest() for ref, one in kept.items() if one},
    }
