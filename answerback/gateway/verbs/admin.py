"""The operator's verbs: agents, inboxes, contacts, keys, suppressions, schedules."""

from __future__ import annotations

import secrets
from datetime import date, time
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo, available_timezones

from answerback.channels.mail.addresses import check
from answerback.errors import BadRequest, NotFound
from answerback.model import Agent, ApiKey, Contact, Inbox, Json, Suppression
from answerback.store import schedules, tenants
from answerback.waits.schedule import from_policy

if TYPE_CHECKING:
    from answerback.gateway.context import Caller, Work
    from answerback.gateway.verbs import requests

SCOPES: Final = (
    "send",
    "waitpoints:open",
    "waitpoints:read",
    "messages:read",
    "mailbox:read",
    "mailbox:ack",
    "waits:read",
    "waits:manage",
    "reviews:read",
    "reviews:decide",
)
#: 64 octets less `+` and a 39-character token (RFC 5321 4.5.3.1.1)
LONGEST_LOCAL = 22


def add_agent(work: Work, caller: Caller, request: requests.AddAgent) -> Json:
    """Add an agent with its mailbox."""
    if tenants.agent(work.tx, work.scope, request.name):
        raise BadRequest(
            field="name", problem=f"there is an agent {request.name} already; choose another name"
        )
    agent_id = work.context.new_id("agt")
    agent = Agent(
        id=agent_id,
        name=request.name,
        owner=request.owner,
        identity_ref=request.identity_ref or f"local:{agent_id}",
    )
    tenants.add_agent(work.tx, work.scope, agent, work.now)
    return {
        "agent_id": agent.id,
        "name": agent.name,
        "owner": agent.owner,
        "identity_ref": agent.identity_ref,
    }


def list_agents(work: Work, caller: Caller, request: requests.Empty) -> Json:
    """Return the agents."""
    return {
        "agents": [
            {"agent_id": agent.id, "name": agent.name, "owner": agent.owner, "state": agent.state}
            for agent in tenants.agents(work.tx, work.scope)
        ]
    }


def add_inbox(work: Work, caller: Caller, request: requests.AddInbox) -> Json:
    """Add an address an agent writes from and is answered at."""
    agent = tenants.agent(work.tx, work.scope, request.agent)
    if agent is None:
        raise NotFound(kind="agent", id=request.agent)
    address = check(request.address).lower()
    local = address.rpartition("@")[0]
    if request.sub_addresses and (len(local) > LONGEST_LOCAL or "+" in local):
        problem = f"before @ at most {LONGEST_LOCAL} characters and no +; or switch sub-addresses off"
        raise BadRequest(field="address", problem=problem)
    if tenants.inbox(work.tx, work.scope, address):
        raise BadRequest(field="address", problem=f"there is an inbox {address} already")
    inbox = Inbox(
        id=work.context.new_id("inb"),
        agent_id=agent.id,
        address=address,
        display_name=request.display_name,
        sub_addresses=request.sub_addresses,
        external=request.external,
        zone=_zone(request.zone),
        country=request.country.upper(),
    )
    tenants.add_inbox(work.tx, work.scope, inbox, work.now)
    return {"inbox_id": inbox.id, "address": inbox.address, "agent_id": agent.id}


def list_inboxes(work: Work, caller: Caller, request: requests.Empty) -> Json:
    """Return the inboxes."""
    return {
        "inboxes": [
            {
                "inbox_id": inbox.id,
                "address": inbox.address,
                "agent_id": inbox.agent_id,
                "external": inbox.external,
            }
            for inbox in tenants.inboxes(work.tx, work.scope)
        ]
    }


def add_contact(work: Work, caller: Caller, request: requests.AddContact) -> Json:
    """Add an outside person with zone, country and hours."""
    hours: Json = {
        name: list(given)
        for name, given in (
            ("workdays", request.workdays),
            ("holidays", request.holidays),
            ("window", request.window),
        )
        if given
    }
    _check_hours(request)
    contact = Contact(
        id=work.context.new_id("ctc"),
        name=request.name,
        addresses=tuple(check(address).lower() for address in request.addresses),
        zone=_zone(request.zone),
        country=request.country.upper(),
        hours=hours,
    )
    tenants.add_contact(work.tx, work.scope, contact, work.now)
    return {"contact_id": contact.id, "addresses": list(contact.addresses)}


def _check_hours(request: requests.AddContact) -> None:
    for day in request.holidays:
        try:
            date.fromisoformat(day)
        except ValueError:
            raise BadRequest(field="holidays", problem=f"{day} is no day; write YYYY-MM-DD") from None
    if not request.window:
        return
    try:
        start, end = map(time.fromisoformat, request.window)
    except ValueError:
        start = end = time()
    if start >= end:
        raise BadRequest(field="window", problem="give its start and end as HH:MM HH:MM, the start first")


def list_contacts(work: Work, caller: Caller, request: requests.Empty) -> Json:
    """Return the contacts."""
    return {
        "contacts": [
            {
                "contact_id": contact.id,
                "name": contact.name,
                "addresses": list(contact.addresses),
                "zone": contact.zone,
                "country": contact.country,
                "hours": contact.hours,
            }
            for contact in tenants.contacts(work.tx, work.scope)
        ]
    }


def _zone(name: str) -> str:
    if name and name not in available_timezones():
        raise BadRequest(field="zone", problem=f"{name} is no IANA time zone; write one as Europe/Berlin")
    return str(ZoneInfo(name)) if name else ""


def create_key(work: Work, caller: Caller, request: requests.CreateKey) -> Json:
    """Make a key and return its secret, which is shown this once and stored only as SHA-256."""
    unknown = sorted(set(request.scopes) - set(SCOPES))
    if unknown:
        problem = f"unknown {', '.join(unknown)}; choose from {', '.join(SCOPES)}"
        raise BadRequest(field="scopes", problem=problem)
    decides = sorted(scope for scope in request.scopes if scope.startswith("reviews:"))
    if request.agent and decides:
        problem = f"{', '.join(decides)} is a person's; make an operator's key for it, without an agent"
        raise BadRequest(field="scopes", problem=problem)
    agent = tenants.agent(work.tx, work.scope, request.agent) if request.agent else None
    if request.agent and agent is None:
        raise NotFound(kind="agent", id=request.agent)
    secret = f"ab_{work.scope.environment}_{secrets.token_urlsafe(32)}"
    key = ApiKey(
        id=work.context.new_id("key"),
        scope=work.scope,
        name=request.name,
        scopes=tuple(dict.fromkeys(request.scopes)),
        created_at=work.now,
        agent_id=agent.id if agent else "",
    )
    tenants.add_key(work.tx, key, sha256(secret.encode()).hexdigest())
    return {
        "key_id": key.id,
        "key": secret,
        "scopes": list(key.scopes),
        "environment": work.scope.environment,
    }


def list_keys(work: Work, caller: Caller, request: requests.Empty) -> Json:
    """Return the keys without their secrets."""
    return {
        "keys": [
            {
                "key_id": key.id,
                "name": key.name,
                "scopes": list(key.scopes),
                "agent_id": key.agent_id or None,
                "created_at": key.created_at.isoformat(),
                "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
            }
            for key in tenants.keys(work.tx, work.scope)
        ]
    }


def revoke_key(work: Work, caller: Caller, request: requests.One) -> Json:
    """Refuse a key from work.now on."""
    if not tenants.revoke_key(work.tx, work.scope, request.id, work.now):
        raise NotFound(kind="key in force", id=request.id)
    return {"key_id": request.id, "revoked": True}


def suppress(work: Work, caller: Caller, request: requests.Suppress) -> Json:
    """Never write to an address again, until it is taken off the list."""
    address = check(request.address).lower()
    suppression = Suppression(address=address, reason=request.reason, created_at=work.now)
    return {"address": address, "added": tenants.suppress(work.tx, work.scope, suppression)}


def unsuppress(work: Work, caller: Caller, request: requests.Unsuppress) -> Json:
    """Let an address be written to again."""
    address = request.address.lower()
    if not tenants.unsuppress(work.tx, work.scope, "email", address):
        raise NotFound(kind="suppression of", id=address)
    return {"address": address, "removed": True}


def list_suppressions(work: Work, caller: Caller, request: requests.Empty) -> Json:
    """Return the addresses that are not written to, with the reason."""
    return {
        "suppressions": [
            {"address": one.address, "reason": one.reason, "created_at": one.created_at.isoformat()}
            for one in tenants.suppressions(work.tx, work.scope)
        ]
    }


def put_schedule(work: Work, caller: Caller, request: requests.PutSchedule) -> Json:
    """Store a new version of a follow-up policy; running waits keep theirs."""
    policy: Json = request.model_dump(exclude={"name"}, mode="json")
    from_policy(request.name, 1, policy)
    version = schedules.add_schedule(work.tx, work.scope, request.name, policy, work.now)
    return {"name": request.name, "version": version}


def list_schedules(work: Work, caller: Caller, request: requests.Empty) -> Json:
    """Return the follow-up policies in their newest version."""
    listed: list[Json] = []
    for name in schedules.schedule_names(work.tx, work.scope):
        stored = schedules.schedule_policy(work.tx, work.scope, name)
        assert stored is not None
        listed.append({"name": name, "version": stored[0], **stored[1]})
    return {"schedules": listed}
