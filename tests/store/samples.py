"""The rows every test of the store begins with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from answerback.model import (
    Address,
    Agent,
    Contact,
    Conversation,
    Inbox,
    Message,
    Received,
    Review,
    Scope,
    Trust,
    Wait,
    Waitpoint,
    WaitpointState,
    WaitRow,
    WaitState,
)
from answerback.store import (
    conversations,
    inbound,
    mailboxes,
    outbox,
    reviews,
    schedules,
    tenants,
    waitpoints,
    waits,
)
from answerback.store.session import Tx

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
LIVE = Scope(tenant="t1", environment="live")
TEST = Scope(tenant="t1", environment="test")
OTHER = Scope(tenant="t2", environment="live")
SCOPES = (LIVE, TEST, OTHER)

AGENT = Agent(id="agt_1", name="buyer", owner="person:ops", identity_ref="key:1")
INBOX = Inbox(
    id="inb_1", agent_id="agt_1", address="Buyer@agents.example", display_name="Buyer", zone="Europe/Berlin"
)
CONTACT = Contact(
    id="con_1",
    name="Pat",
    addresses=("Pat@supplier.example", "+4930123"),
    country="DE",
    hours={"window": ["08:00", "16:00"]},
)
CONVERSATION = Conversation(
    id="cnv_1", inbox_id="inb_1", agent_id="agt_1", subject="Offer, please", created_at=NOW
)
ASKED = Message(
    id="msg_1",
    conversation_id="cnv_1",
    direction="out",
    kind="original",
    subject="Offer, please",
    sender=Address(email="Buyer@agents.example", name="Buyer"),
    at=NOW,
    rfc_id="<1@agents.example>",
    content={"text": "How much?", "to": [{"email": "pat@supplier.example", "name": ""}]},
)
MAIL = Received(
    id="rcv_1",
    scope=LIVE,
    inbox_id="inb_1",
    identity="sha-1",
    octets=b"Subject: Re\r\n\r\n41 EUR\r\n",
    mail_from="pat@supplier.example",
    recipient="buyer@agents.example",
    at=NOW + HOUR,
)
ANSWER = Message(
    id="msg_2",
    conversation_id="cnv_1",
    direction="in",
    kind="message",
    subject="Re: Offer, please",
    sender=Address(email="Pat@supplier.example", name="Pat"),
    at=NOW + HOUR,
    rfc_id="<2@supplier.example>",
    parent_id="msg_1",
    trust=Trust.AUTHENTICATED,
    content={"parts": [{"kind": "reply", "text": "41 €"}]},
    body_hash="body-1",
    received_id="rcv_1",
)
WAITPOINT = Waitpoint(
    id="wp_1",
    state=WaitpointState.OPEN,
    conversation_id="cnv_1",
    message_id="msg_1",
    waiter="agent:agt_1",
    correlation_key="po-1",
    responders=("email:pat@supplier.example", "email-domain:partner.example"),
    opened_at=NOW,
    expires_at=NOW + 10 * DAY,
    subject_digest="sha256:aa",
)
WAIT = WaitRow(
    id="wait_1",
    conversation_id="cnv_1",
    waitpoint_id="wp_1",
    schedule_name="vendor-quote",
    schedule_version=1,
    updated_at=NOW,
    wait=Wait(state=WaitState.WAITING, since=NOW, plan=(NOW + 2 * DAY, NOW + 4 * DAY)),
)
REVIEW = Review(
    id="rev_1", reason="ambiguous", created_at=NOW, conversation_id="cnv_1", details={"candidates": []}
)
RECIPIENTS = ("cc@supplier.example", "pat@supplier.example")
BUYER = "agent:agt_1"


def people(tx: Tx) -> None:
    """Store two tenants, and in t1 live an agent with inbox and schedule."""
    for tenant in ("t1", "t2"):
        tenants.add_tenant(tx, tenant, NOW)
    tenants.add_agent(tx, LIVE, AGENT, NOW)
    tenants.add_inbox(tx, LIVE, INBOX, NOW)
    schedules.add_schedule(tx, LIVE, "vendor-quote", {"gaps": ["2bd", "2bd"]}, NOW)


def asked(tx: Tx) -> None:
    """Store besides what one `ask` stores: conversation, message, ids, waitpoint, wait, outbox."""
    people(tx)
    conversations.add_conversation(tx, LIVE, CONVERSATION)
    conversations.add_message(tx, LIVE, ASKED)
    conversations.remember_ids(tx, LIVE, ASKED.id, [(ASKED.rfc_id, "ours")])
    waitpoints.add_waitpoint(tx, LIVE, WAITPOINT)
    waits.add_wait(tx, LIVE, WAIT)
    outbox.queue(tx, LIVE, ASKED.id, RECIPIENTS, NOW, WAIT.id)


def answered(tx: Tx) -> None:
    """Store besides an answer that came in, an item in the mailbox, and a review."""
    asked(tx)
    inbound.keep(tx, MAIL)
    conversations.add_message(tx, LIVE, ANSWER)
    conversations.remember_ids(tx, LIVE, ANSWER.id, [(ANSWER.rfc_id, "received")])
    mailboxes.append(tx, LIVE, BUYER, "evt_1", "answerback.message.received", NOW, "item {}".format)
    reviews.add_review(tx, LIVE, REVIEW)
