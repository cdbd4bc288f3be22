"""What agents and persons do in a scenario, through the same verbs as every door."""

from __future__ import annotations

from typing import Any

from answerback.errors import AnswerbackError
from answerback.gateway import outgoing
from answerback.gateway.context import Caller
from answerback.gateway.simulate.matchers import Observed
from answerback.gateway.simulate.scenario import instant
from answerback.gateway.simulate.stage import Stage
from answerback.gateway.simulate.world import SCHEDULE, SCOPE, deadline_for_opening, responders
from answerback.gateway.verbs import table
from answerback.model import Message
from answerback.store import conversations
from answerback.store import waits as waiting

_SCOPES = frozenset(verb.scope for verb in table.VERBS)
#: what a caller sees while the gateway is down
DOWN = 503


def agent(agent_id: str) -> Caller:
    """Return an agent that may use every verb."""
    return Caller(scope=SCOPE, principal=f"agent:{agent_id}", agent_id=agent_id, scopes=_SCOPES)


def operator() -> Caller:
    """Return the person at the operator's desk."""
    return Caller(scope=SCOPE, principal="person:operator", agent_id="", scopes=_SCOPES)


def call(
    stage: Stage, ref: str, name: str, caller: Caller, fields: Observed, key: str = ""
) -> Observed | None:
    """Return what a verb answers, None where it was refused; the status is recorded under the reference."""
    record = stage.record
    record.statuses[ref] = DOWN

    def answer() -> Observed | None:
        try:
            result = stage.call(name, caller, fields, key)
        except AnswerbackError as refused:
            record.statuses[ref] = refused.status
            record.results[ref] = table.as_json(refused)
            return None
        record.statuses[ref] = 200
        record.results[ref] = result
        return result

    return stage.do(answer)


def send(stage: Stage, event: Observed) -> None:
    """Let the conversation's agent write in it; the relay may give the mail another id (`message_id`)."""
    conversation = stage.world.conversations[event["conversation"]]
    said = stage.do(lambda: _messages(stage, conversation))
    if not said:
        stage.record.statuses[event["ref"]] = DOWN
        return
    fields: Observed = {
        "to": event.get("to") or [one.email for one in outgoing.addresses(said[0].content, "to")],
        "cc": event.get("cc", []),
        "subject": event.get("subject") or said[0].subject,
        "text": event["text"],
        "reply_to_message_id": said[-1].id,
    }
    key = event.get("idempotency_key", "")
    if key:
        # Who tries again sends the request it made, not a new one.
        fields["reply_to_message_id"] = stage.record.parents.setdefault(key, said[-1].id)
    caller = agent(stage.world.agent_of(stage.scenario, event["conversation"]))
    sent = call(stage, event["ref"], "send", caller, fields, key)
    if sent and event.get("message_id"):
        message = next(one for one in _messages(stage, conversation) if one.id == sent["message_id"])
        stage.relay.renamed[message.rfc_id.encode()] = event["message_id"]


def _messages(stage: Stage, conversation_id: str) -> tuple[Message, ...]:
    with stage.context.db.read() as tx:
        return conversations.messages(tx, SCOPE, conversation_id)


def open_waitpoint(stage: Stage, event: Observed) -> None:
    """Open a waitpoint of the context (named) or the one given; `after` names the send it is about."""
    given: Any = event["waitpoint"]
    named = isinstance(given, str)
    if named:
        given = next(one for one in stage.scenario.context["waitpoints"] if one["id"] == given)
    about = stage.record.results.get(given.get("after", ""), {}).get("message_id", "")
    wanted = given["deadline"]
    fields = {
        "conversation_id": stage.world.conversations[given["conversation"]],
        "message_id": about,
        "expect": {
            "key": given["correlation_key"],
            "schedule": SCHEDULE,
            "deadline": deadline_for_opening(wanted, stage.clock.now()) if named else wanted,
            "responders": responders(given["expected_from"]),
        },
    }
    caller = agent(stage.world.agent_of(stage.scenario, given["conversation"]))
    opened = call(stage, event.get("ref", given["id"]), "waitpoints.open", caller, fields)
    if opened:
        stage.world.waitpoints[given["id"]] = opened["waitpoint_id"]


def lease(stage: Stage, event: Observed) -> None:
    """Let an agent take what is in its mailbox."""
    ref = event["ref"]
    caller = agent(stage.world.agents[event["mailbox"]])
    fields = {"seconds": event["seconds"], "max": event.get("max", 100)}
    taken = call(stage, ref, "mailbox.lease", caller, fields)
    if taken is None:
        return
    numbers = [item["sequence"] for item in taken["items"]]
    earlier = [name for name, one in stage.record.leases.items() if numbers and one["sequences"] == numbers]
    seen: Observed = {
        "lease_id": taken["lease_id"],
        "mailbox": event["mailbox"],
        "items": len(numbers),
        "sequences": numbers,
        "attempt": max((item["attempts"] for item in taken["items"]), default=0),
    }
    stage.record.leases[ref] = seen | ({"same_seq_as": earlier[0]} if earlier else {})


def lease_and_fail(stage: Stage, event: Observed) -> None:
    """Let an agent take what is in its mailbox and give it back, `times` times."""
    for _ in range(event.get("times", 1)):
        lease(stage, {"seconds": 60, "ref": event.get("ref", "fail"), **event})
        held = stage.record.leases.get(event.get("ref", "fail"))
        if held and held["items"]:
            caller = agent(stage.world.agents[event["mailbox"]])
            call(stage, "nack", "mailbox.nack", caller, {"lease_id": held["lease_id"]})


def ack(stage: Stage, event: Observed) -> None:
    """Let an agent acknowledge a lease it got."""
    held = stage.record.leases[event["lease"]]
    caller = agent(stage.world.agents[held["mailbox"]])
    call(stage, event["ref"], "mailbox.ack", caller, {"lease_id": held["lease_id"]})


def decide(stage: Stage, event: Observed) -> None:
    """Let a person decide the oldest open review (of a `reason`)."""
    listed = call(stage, "reviews", "reviews.list", operator(), {})
    wanted = event.get("reason")
    found = [one for one in (listed or {}).get("reviews", []) if wanted in (None, one["reason"])]
    review_id = found[0]["review_id"] if found else "none"
    fields: Observed = {"id": review_id, "choice": event["choice"]}
    if "waitpoint" in event:
        fields["waitpoint_id"] = stage.world.waitpoints[event["waitpoint"]]
    if "conversation" in event:
        fields["conversation_id"] = stage.world.conversations[event["conversation"]]
    call(stage, event.get("ref", "decide"), "reviews.decide", operator(), fields)


def steer(stage: Stage, event: Observed) -> None:
    """Let a person `pause`, `resume`, `cancel` a wait, or wait `again`."""
    fields: Observed = {"id": wait_id(stage, event["waitpoint"])}
    if "not_before" in event:
        fields["not_before"] = instant(event["not_before"])
    verb = str(event["do"])
    caller = operator()
    if verb == "again":
        given = next(one for one in stage.scenario.context["waitpoints"] if one["id"] == event["waitpoint"])
        caller = agent(stage.world.agent_of(stage.scenario, given["conversation"]))
    result = call(stage, event.get("ref") or verb, f"waits.{verb}", caller, fields)
    if result and verb == "again":
        name = str(event.get("as") or event["waitpoint"])
        stage.world.waitpoints[name] = str(result["waitpoint_id"])


def suppress(stage: Stage, event: Observed) -> None:
    """Let the operator put an address on the suppression list."""
    fields = {"address": event["address"], "reason": event.get("reason", "manual")}
    call(stage, event.get("ref", "suppress"), "suppressions.add", operator(), fields)


def wait_id(stage: Stage, waitpoint: str) -> str:
    """Return the id of the wait that follows a waitpoint of the scenario, else its conversation's newest."""
    with stage.context.db.read() as tx:
        known = stage.world.waitpoints[waitpoint]
        row = waiting.wait_for(tx, SCOPE, known)
        return row.id if row else ""
