"""Builds the state a scenario begins with: agents, contacts, conversations already sent, open waitpoints."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from answerback.gateway import advance, outgoing
from answerback.gateway.context import Work
from answerback.gateway.simulate.matchers import Observed
from answerback.gateway.simulate.scenario import Scenario, instant
from answerback.model import (
    RUNNING,
    Address,
    Agent,
    Contact,
    Conversation,
    Inbox,
    Json,
    Message,
    OutboxState,
    Scope,
    Suppression,
    Waitpoint,
    WaitpointState,
    WaitRow,
    WaitState,
)
from answerback.store import conversations, outbox, schedules, tenants, waitpoints
from answerback.store import waits as waiting
from answerback.threading import refs
from answerback.waits import events
from answerback.waits.schedule import from_policy, to_policy

if TYPE_CHECKING:
    from answerback.gateway.context import Context

SCOPE = Scope(tenant="simulation", environment="live")
#: name of the one schedule of a scenario
SCHEDULE = "scenario"
#: a waitpoint lives no longer
LONGEST = timedelta(days=30)
_WAIT_STATES = {
    "waiting": (WaitState.WAITING, ""),
    "nudged": (WaitState.NUDGED, ""),
    "paused": (WaitState.PAUSED, "person"),
    "replied": (WaitState.REPLIED, ""),
    "abandoned": (WaitState.ABANDONED, "no_reply"),
    "stopped": (WaitState.CANCELLED, "cancelled"),
}


@dataclass
class World:
    """The names a scenario uses for things, and what they are here."""

    #: mailbox name → agent id
    agents: dict[str, str] = field(default_factory=dict)
    #: conversation id of the scenario → ours
    conversations: dict[str, str] = field(default_factory=dict)
    #: waitpoint id of the scenario → ours
    waitpoints: dict[str, str] = field(default_factory=dict)
    #: every message that was there before the first event
    before: set[str] = field(default_factory=set)
    #: the address mail without Delivered-To goes to
    recipient: str = ""

    def agent_of(self, scenario: Scenario, conversation: str) -> str:
        """Return the agent whose conversation it is."""
        for one in scenario.context["conversations"]:
            if one["id"] == conversation:
                return self.agents[one["mailbox"]]
        return next(iter(self.agents.values()))


def build(context: Context, scenario: Scenario) -> World:
    """Store everything a scenario's `context.json` says; nothing of it counts as observed.

    Waits are made by the machine itself, at the instant the last message was sent.
    """
    world, given = World(), scenario.context
    later = {event["waitpoint"] for event in scenario.events if _opens_known(event)}
    with context.db.write() as tx:
        work = Work(tx, context, SCOPE, scenario.now)
        tenants.add_tenant(tx, SCOPE.tenant, scenario.now)
        _schedule(work, given["schedule"])
        _inboxes(work, world, given)
        _contacts(work, given)
        for one in given["conversations"]:
            _conversation(work, world, one)
            for side in one.get("side_threads", []):
                _conversation(work, world, {"mailbox": one["mailbox"], **side})
        for one in given["waitpoints"]:
            if one["id"] not in later:
                _waitpoint(work, world, one)
        for one in given.get("suppressions", []):
            suppression = Suppression(
                address=one["address"], reason=one.get("reason", "manual"), created_at=scenario.now
            )
            tenants.suppress(tx, SCOPE, suppression)
    return world


def _opens_known(event: Observed) -> bool:
    return event["do"] == "open_waitpoint" and isinstance(event["waitpoint"], str)


def _schedule(work: Work, given: Observed) -> None:
    plain = [f"{days}bd" for days in given["nudge_after_business_days"]]
    gaps = given.get("gaps") or [*plain, f"{given['abandon_after_business_days']}bd"]
    policy = to_policy(from_policy(SCHEDULE, 1, {"gaps": gaps}))
    schedules.add_schedule(work.tx, SCOPE, SCHEDULE, policy, work.now)


def _inboxes(work: Work, world: World, given: Observed) -> None:
    for name, addresses in given["own"]["mailboxes"].items():
        agent = Agent(
            id=work.context.new_id("agt"), name=name, owner="person:operator", identity_ref=f"local:{name}"
        )
        tenants.add_agent(work.tx, SCOPE, agent, work.now)
        world.agents[name] = agent.id
        for address in addresses:
            world.recipient = world.recipient or address
            inbox = Inbox(
                id=work.context.new_id("inb"),
                agent_id=agent.id,
                address=address,
                external=given.get("external", "all"),
            )
            tenants.add_inbox(work.tx, SCOPE, inbox, work.now)


def _contacts(work: Work, given: Observed) -> None:
    for address, about in given.get("recipients", {}).items():
        contact = Contact(
            id=work.context.new_id("ctc"),
            name=about.get("name", address),
            addresses=(address, *about.get("addresses", ())),
            zone=about.get("tz", ""),
            country=about.get("country", ""),
            hours={
                "workdays": about.get("workdays", [1, 2, 3, 4, 5]),
                "holidays": about.get("holidays", []),
                "window": given["schedule"].get("window", ["09:00", "17:00"]),
            },
        )
        tenants.add_contact(work.tx, SCOPE, contact, work.now)


def _conversation(work: Work, world: World, given: Observed) -> None:
    inbox = tenants.inbox(work.tx, SCOPE, _own_address(work, world, given))
    assert inbox is not None
    sent = given.get("outbound", [])
    conversation = Conversation(
        id=work.context.new_id("cnv"),
        inbox_id=inbox.id,
        agent_id=inbox.agent_id,
        subject=given.get("subject", ""),
        created_at=instant(sent[0]["sent_at"]) if sent else work.now,
    )
    conversations.add_conversation(work.tx, SCOPE, conversation)
    world.conversations[given["id"]] = conversation.id
    for one in sent:
        _outbound(work, world, conversation, inbox, one)
    for one in given.get("inbound", []):
        _inbound(work, world, conversation, one)


def _own_address(work: Work, world: World, given: Observed) -> str:
    named = [one["from"] for one in given.get("outbound", []) if one.get("from")]
    if named and tenants.inbox(work.tx, SCOPE, named[0]):
        return str(named[0])
    agent = world.agents[given["mailbox"]]
    return next(one.address for one in tenants.inboxes(work.tx, SCOPE) if one.agent_id == agent)


def _outbound(work: Work, world: World, conversation: Conversation, inbox: Inbox, given: Observed) -> None:
    at = instant(given["sent_at"])
    listed = {
        name: outgoing.listed([Address(email=one) for one in given.get(name, [])]) for name in ("to", "cc")
    }
    message = Message(
        id=work.context.new_id("msg"),
        conversation_id=conversation.id,
        direction="out",
        kind="original",
        subject=conversation.subject,
        sender=Address(email=inbox.address),
        at=at,
        rfc_id=given["message_id"],
        parent_id=_message_of(work, given.get("in_reply_to")),
        content={"text": given["text"], "html": None, **listed, "attachments": []},
    )
    conversations.add_message(work.tx, SCOPE, message)
    world.before.add(message.id)
    ids = [(given["message_id"], "ours"), *((one, "provider") for one in given.get("provider_ids", []))]
    normal = [(refs.normalise(rfc_id), source) for rfc_id, source in ids]
    conversations.remember_ids(work.tx, SCOPE, message.id, normal)
    copies = outgoing.recipients(message.content)
    outbox.queue(work.tx, SCOPE, message.id, copies, at)
    outbox.hand_over(work.tx, SCOPE, message.id, copies, "before", at)
    for copy in copies:
        outbox.record(work.tx, SCOPE, message.id, copy, OutboxState.SENT, at, 250, "taken before")


def _message_of(work: Work, rfc_id: str | None) -> str:
    known = conversations.known(work.tx, SCOPE, [refs.normalise(rfc_id)]) if rfc_id else ()
    return known[0].message_id if known else ""


def _inbound(work: Work, world: World, conversation: Conversation, given: Observed) -> None:
    message = Message(
        id=work.context.new_id("msg"),
        conversation_id=conversation.id,
        direction="in",
        kind="message",
        subject=conversation.subject,
        sender=Address(email=given["from"]),
        at=instant(given["received_at"]),
        rfc_id=given["message_id"],
    )
    conversations.add_message(work.tx, SCOPE, message)
    world.before.add(message.id)
    known = [(refs.normalise(given["message_id"]), "received")]
    conversations.remember_ids(work.tx, SCOPE, message.id, known)


def _waitpoint(work: Work, world: World, given: Observed) -> None:
    conversation_id = world.conversations[given["conversation"]]
    sent = [m for m in conversations.messages(work.tx, SCOPE, conversation_id) if m.direction == "out"]
    asked = [m for m in sent if m.rfc_id == given.get("message_id")] or sent[:1]
    conversation = conversations.conversation(work.tx, SCOPE, conversation_id)
    assert conversation is not None
    waitpoint = Waitpoint(
        id=work.context.new_id("wp"),
        state=WaitpointState.OPEN,
        conversation_id=conversation_id,
        message_id=asked[0].id,
        waiter=f"agent:{conversation.agent_id}",
        correlation_key=given["correlation_key"],
        responders=responders(given["expected_from"]),
        opened_at=asked[0].at,
        expires_at=deadline(given["deadline"], asked[0].at, work.now),
        subject_digest=f"sha256:{given['id']}",
    )
    waitpoints.add_waitpoint(work.tx, SCOPE, waitpoint)
    world.waitpoints[given["id"]] = waitpoint.id
    for message in sent[sent.index(asked[0]) :]:
        waitpoints.link_nudge(work.tx, SCOPE, message.id, [waitpoint.id])
    running = waiting.wait_of(work.tx, SCOPE, conversation_id)
    if running is None or running.wait.state not in RUNNING:
        _wait(work, waitpoint, sent, given["state"])


def _wait(work: Work, waitpoint: Waitpoint, sent: list[Message], state: str) -> None:
    """Let the machine begin the wait, then put it into the state the scenario names."""
    wanted, reason = _WAIT_STATES[state]
    first = sent[0].at if wanted is WaitState.NUDGED else sent[-1].at
    row = _begun(replace(work, now=first), waitpoint)
    if wanted is WaitState.WAITING:
        return
    last = replace(work, now=sent[-1].at)
    wait = replace(row.wait, state=wanted, reason=reason)
    if wanted is WaitState.NUDGED:
        wait = replace(wait, nudges=max(len(sent) - 1, 1), plan=row.wait.plan[1:] or row.wait.plan)
    else:
        resume_to = WaitState.WAITING if wanted is WaitState.PAUSED else None
        wait = replace(wait, plan=(), resume_to=resume_to)
    waiting.save_wait(work.tx, SCOPE, row.id, wait, last.now)
    # Counts the remaining gaps from the last nudge; a wait that stands still or has ended ignores it.
    advance.advance(last, row.id, events.Sent(at=last.now), cause={"scenario": state})


def _begun(work: Work, waitpoint: Waitpoint) -> WaitRow:
    stored = schedules.schedule_policy(work.tx, SCOPE, SCHEDULE)
    assert stored is not None
    schedule = from_policy(SCHEDULE, *stored)
    sent = events.Sent(at=work.now)
    cause: Json = {"scenario": str(waitpoint.correlation_key)}
    return advance.start(work, waitpoint.conversation_id, waitpoint.id, schedule, cause=cause, event=sent)


def responders(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return a scenario's `expected_from` as responders: `email:…`, or `email-domain:…` for `@domain`."""
    return tuple(
        f"email-domain:{one[1:].lower()}" if one.startswith("@") else f"email:{one.lower()}"
        for one in addresses
    )


def deadline(text: str, opened_at: datetime, now: datetime) -> datetime:
    """Return a known waitpoint's `expires_at`: its deadline, at most 30 days after it was opened.

    A deadline already past when the scenario begins contradicts the state "open"; the state wins, and the
    waitpoint lives as long as it may.
    """
    wanted = instant(text)
    return min(wanted if wanted > now else opened_at + LONGEST, opened_at + LONGEST)


def deadline_for_opening(text: str, now: datetime) -> str:
    """Return the deadline to open a known waitpoint with: its own, at most 30 days from now."""
    return min(instant(text), now + LONGEST).isoformat()
