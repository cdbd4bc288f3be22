"""Every verb once: its name, what it takes, the scope it needs and the route it has on HTTP."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Literal

from answerback.errors import AnswerbackError, Refused, ScopeMissing
from answerback.gateway.verbs import admin, mailboxes, messages, requests, reviews, waits
from answerback.model import Json
from answerback.store import idempotency

if TYPE_CHECKING:
    from answerback.gateway.context import Caller, Context

#: remembered refusals: those of the request itself, which no retry can change
FINAL = frozenset({"bad_request", "bad_address"})


@dataclass(frozen=True, slots=True)
class Verb:
    """One thing a caller can do, whatever the door."""

    name: str
    run: Callable[..., Json]
    request: type[requests.Request]
    #: scope a key needs; "" is the operator's, on this machine only
    scope: str
    method: Literal["GET", "POST"]
    #: path below /v1; "" where the verb has no HTTP route
    path: str
    #: needs a caller that speaks for an agent
    agent: bool = False
    #: is a person's: no agent looks at it or decides it, its own least of all
    person: bool = False

    @property
    def writes(self) -> bool:
        """Tell whether the verb may change something."""
        return self.method == "POST"


VERBS: tuple[Verb, ...] = (
    Verb("send", messages.send, requests.Send, "send", "POST", "/messages", agent=True),
    Verb("messages.show", messages.show_message, requests.One, "messages:read", "GET", "/messages/{id}"),
    Verb(
        "conversations.show",
        messages.show_conversation,
        requests.One,
        "messages:read",
        "GET",
        "/conversations/{id}",
    ),
    Verb(
        "waitpoints.open",
        messages.open_waitpoint,
        requests.OpenWaitpoint,
        "waitpoints:open",
        "POST",
        "/waitpoints",
        agent=True,
    ),
    Verb(
        "waitpoints.show",
        messages.show_waitpoint,
        requests.ByKey,
        "waitpoints:read",
        "GET",
        "/waitpoints/{key}",
    ),
    Verb("mailbox.read", mailboxes.read, requests.ReadMailbox, "mailbox:read", "GET", "/mailbox"),
    Verb("mailbox.lease", mailboxes.lease, requests.Lease, "mailbox:ack", "POST", "/mailbox/lease"),
    Verb("mailbox.ack", mailboxes.ack, requests.Leased, "mailbox:ack", "POST", "/mailbox/ack"),
    Verb("mailbox.nack", mailboxes.nack, requests.Leased, "mailbox:ack", "POST", "/mailbox/nack"),
    Verb("mailbox.extend", mailboxes.extend, requests.Extend, "mailbox:ack", "POST", "/mailbox/extend"),
    Verb("waits.list", waits.listing, requests.ListWaits, "waits:read", "GET", "/waits"),
    Verb("waits.show", waits.show, requests.One, "waits:read", "GET", "/waits/{id}"),
    Verb("waits.cancel", waits.cancel, requests.CancelWait, "waits:manage", "POST", "/waits/{id}/cancel"),
    Verb("waits.pause", waits.pause, requests.One, "waits:manage", "POST", "/waits/{id}/pause"),
    Verb("waits.resume", waits.resume, requests.ResumeWait, "waits:manage", "POST", "/waits/{id}/resume"),
    Verb(
        "waits.again",
        waits.again,
        requests.WaitAgain,
        "waits:manage",
        "POST",
        "/waits/{id}/again",
        agent=True,
    ),
    Verb(
        "reviews.list", reviews.listing, requests.ListReviews, "reviews:read", "GET", "/reviews", person=True
    ),
    Verb("reviews.show", reviews.show, requests.One, "reviews:read", "GET", "/reviews/{id}", person=True),
    Verb(
        "reviews.decide",
        reviews.decide,
        requests.Decide,
        "reviews:decide",
        "POST",
        "/reviews/{id}/decide",
        person=True,
    ),
    Verb("agents.add", admin.add_agent, requests.AddAgent, "", "POST", ""),
    Verb("agents.list", admin.list_agents, requests.Empty, "", "GET", ""),
    Verb("inboxes.add", admin.add_inbox, requests.AddInbox, "", "POST", ""),
    Verb("inboxes.list", admin.list_inboxes, requests.Empty, "", "GET", ""),
    Verb("contacts.add", admin.add_contact, requests.AddContact, "", "POST", ""),
    Verb("contacts.list", admin.list_contacts, requests.Empty, "", "GET", ""),
    Verb("keys.create", admin.create_key, requests.CreateKey, "", "POST", ""),
    Verb("keys.list", admin.list_keys, requests.Empty, "", "GET", ""),
    Verb("keys.revoke", admin.revoke_key, requests.One, "", "POST", ""),
    Verb("suppressions.add", admin.suppress, requests.Suppress, "", "POST", ""),
    Verb("suppressions.remove", admin.unsuppress, requests.Unsuppress, "", "POST", ""),
    Verb("suppressions.list", admin.list_suppressions, requests.Empty, "", "GET", ""),
    Verb("schedules.put", admin.put_schedule, requests.PutSchedule, "", "POST", ""),
    Verb("schedules.list", admin.list_schedules, requests.Empty, "", "GET", ""),
)
BY_NAME = {verb.name: verb for verb in VERBS}


def call(context: Context, caller: Caller, verb: Verb, request: requests.Request, key: str = "") -> Json:
    """Carry a verb out in one transaction and return its result.

    With an Idempotency-Key the first result is remembered and given again; a refusal that a
    retry can not change is remembered too.

    Raises:
        ScopeMissing: the caller's key lacks the verb's scope. Refused: as the verb says; nothing was stored.
    """
    if verb.scope not in caller.scopes:
        raise ScopeMissing(scope=verb.scope or "operator")
    if verb.agent:
        messages.require_agent(caller)
    if verb.person and caller.agent_id and "" not in caller.scopes:
        raise ScopeMissing(scope="operator")
    if not verb.writes:
        with context.db.read() as tx:
            return verb.run(context.work(tx, caller.scope), caller, request)
    result = _once(context, caller, verb, request, key) if key else _write(context, caller, verb, request)
    for part in ("outbox", "timers", "mailbox"):
        context.wake(part)
    return result


def _write(context: Context, caller: Caller, verb: Verb, request: requests.Request) -> Json:
    with context.db.write() as tx:
        result = verb.run(context.work(tx, caller.scope), caller, request)
        context.crash("queued")
        return result


def _once(context: Context, caller: Caller, verb: Verb, request: requests.Request, key: str) -> Json:
    digest = sha256(f"{verb.name}\n{request.model_dump_json()}".encode()).hexdigest()
    owner, now = caller.key_id or caller.principal, context.clock.now()
    try:
        with context.db.write() as tx:
            remembered = idempotency.begin(tx, caller.scope, owner, key, digest, now)
            if remembered is None:
                result = verb.run(context.work(tx, caller.scope), caller, request)
                idempotency.finish(tx, caller.scope, owner, key, 200, json.dumps(result), now)
                context.crash("queued")
                return result
    except Refused as refused:
        if refused.code in FINAL:
            with context.db.write() as tx:
                if idempotency.begin(tx, caller.scope, owner, key, digest, now) is None:
                    body = json.dumps(as_json(refused), default=str)
                    idempotency.finish(tx, caller.scope, owner, key, refused.status, body, now)
        raise
    return replay(remembered.status, json.loads(remembered.body))


def as_json(error: AnswerbackError) -> Json:
    """Return an error as every door shows it."""
    return {"error": {"code": error.code, "message": error.message, "details": error.details}}


def replay(status: int, body: Json) -> Json:
    """Return a remembered result, or raise the remembered refusal again."""
    if status < 400:
        return body
    raise Remembered(status, body)


class Remembered(Refused):
    """The same request was refused before."""

    def __init__(self, status: int, body: Json) -> None:
        error: Any = body["error"]
        self._message = str(error["message"])
        super().__init__(**error["details"])
        self.status, self.code = status, str(error["code"])

    @property
    def message(self) -> str:
        """The sentence given the first time."""
        return self._message
