"""Who is here: tenants, agents, inboxes, contacts, keys, suppressed addresses, counters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, bindparam, delete, insert, or_, select, update

from answerback.model import Agent, ApiKey, Contact, Inbox, Scope, Suppression
from answerback.store import tables
from answerback.store.columns import among, here, of, scope_of
from answerback.store.mailboxes import ensure_mailbox
from answerback.store.session import Tx
from answerback.store.statements import increment, insert_once

_AGENTS, _INBOXES, _KEYS = tables.agents, tables.inboxes, tables.api_keys
_CONTACTS, _ADDRESSES = tables.contacts, tables.contact_addresses
_SUPPRESSED, _COUNTERS = tables.suppressions, tables.counters

_ADD_TENANT, _ADD_AGENT, _ADD_INBOX = insert(tables.tenants), insert(_AGENTS), insert(_INBOXES)
_ADD_CONTACT, _ADD_ADDRESS, _ADD_KEY = insert(_CONTACTS), insert(_ADDRESSES), insert(_KEYS)
_TENANTS = select(tables.tenants).order_by(tables.tenants.c.tenant)
_EVERY_AGENT = select(_AGENTS).where(here(_AGENTS)).order_by(_AGENTS.c.name)
_AGENT = select(_AGENTS).where(
    here(_AGENTS), or_(_AGENTS.c.id == bindparam("of_id"), _AGENTS.c.name == bindparam("of_id"))
)
_EVERY_INBOX = select(_INBOXES).where(here(_INBOXES)).order_by(_INBOXES.c.folded)
_INBOX = select(_INBOXES).where(
    here(_INBOXES), or_(_INBOXES.c.id == bindparam("of_id"), _INBOXES.c.folded == bindparam("of_folded"))
)
_LIVE_MAIL = select(_INBOXES).where(_INBOXES.c.environment == "live", _INBOXES.c.channel == "email")
_INBOX_AT = _LIVE_MAIL.where(_INBOXES.c.folded == bindparam("of_folded"))
_OWNER = select(_ADDRESSES.c.contact_id).where(here(_ADDRESSES, "channel", "folded"))
_CONTACT = select(_CONTACTS).where(here(_CONTACTS, "id"))
_EVERY_CONTACT = select(_CONTACTS).where(here(_CONTACTS)).order_by(_CONTACTS.c.name, _CONTACTS.c.id)
_REACHED_AT = select(_ADDRESSES).where(here(_ADDRESSES, "contact_id")).order_by(_ADDRESSES.c.position)
_EVERY_ADDRESS = select(_ADDRESSES).where(here(_ADDRESSES)).order_by(_ADDRESSES.c.position)
_KEY = select(_KEYS).where(_KEYS.c.sha256 == bindparam("of_sha256"))
_EVERY_KEY = select(_KEYS).where(here(_KEYS)).order_by(_KEYS.c.created_at, _KEYS.c.id)
_REVOKE = update(_KEYS).where(here(_KEYS, "id"), _KEYS.c.revoked_at.is_(None))
_SUPPRESS = insert_once(_SUPPRESSED, ("channel", "folded"), returning=("folded",))
_UNSUPPRESS = delete(_SUPPRESSED).where(here(_SUPPRESSED, "channel", "folded"))
_EVERY_SUPPRESSION = (
    select(_SUPPRESSED).where(here(_SUPPRESSED)).order_by(_SUPPRESSED.c.created_at, _SUPPRESSED.c.folded)
)
_REASONS = select(_SUPPRESSED).where(here(_SUPPRESSED, "channel"), among(_SUPPRESSED.c.folded, "addresses"))
_COUNT = increment(_COUNTERS, ("name",), "total")
_EVERY_COUNT = select(_COUNTERS).where(here(_COUNTERS)).order_by(_COUNTERS.c.name)


def add_tenant(tx: Tx, tenant: str, at: datetime) -> None:
    """Store a tenant; everything else belongs to one."""
    tx.run(_ADD_TENANT, {"tenant": tenant, "created_at": at})


def tenants(tx: Tx) -> tuple[str, ...]:
    """Return every tenant's name in order."""
    return tuple(row.tenant for row in tx.all(_TENANTS))


def add_agent(tx: Tx, scope: Scope, agent: Agent, at: datetime) -> None:
    """Store an agent with its mailbox and its owner's mailbox."""
    row = {
        **scope_of(scope),
        "id": agent.id,
        "name": agent.name,
        "owner": agent.owner,
        "identity_ref": agent.identity_ref,
        "state": agent.state,
        "created_at": at,
    }
    tx.run(_ADD_AGENT, row)
    ensure_mailbox(tx, scope, f"agent:{agent.id}")
    ensure_mailbox(tx, scope, agent.owner)


def agent(tx: Tx, scope: Scope, name_or_id: str) -> Agent | None:
    """Return the agent of that id, else of that name."""
    rows = tx.all(_AGENT, of(scope, id=name_or_id))
    found = sorted(rows, key=lambda row: bool(row.id != name_or_id))
    return _agent(found[0]) if found else None


def agents(tx: Tx, scope: Scope) -> tuple[Agent, ...]:
    """Return every agent in order of name."""
    return tuple(_agent(row) for row in tx.all(_EVERY_AGENT, of(scope)))


def _agent(row: Row[Any]) -> Agent:
    return Agent(id=row.id, name=row.name, owner=row.owner, identity_ref=row.identity_ref, state=row.state)


def add_inbox(tx: Tx, scope: Scope, inbox: Inbox, at: datetime) -> None:
    """Store an inbox; an address that is taken is a Conflict."""
    row = {
        **scope_of(scope),
        "id": inbox.id,
        "agent_id": inbox.agent_id,
        "channel": inbox.channel,
        "address": inbox.address,
        "folded": inbox.address.casefold(),
        "display_name": inbox.display_name,
        "sub_addresses": int(inbox.sub_addresses),
        "external": inbox.external,
        "zone": inbox.zone,
        "country": inbox.country,
        "created_at": at,
    }
    tx.run(_ADD_INBOX, row)


def inbox(tx: Tx, scope: Scope, id_or_address: str) -> Inbox | None:
    """Return the inbox of that id or address (compared case folded)."""
    row = tx.one(_INBOX, of(scope, id=id_or_address, folded=id_or_address.casefold()))
    return _inbox(row) if row else None


def inboxes(tx: Tx, scope: Scope) -> tuple[Inbox, ...]:
    """Return every inbox in order of address."""
    return tuple(_inbox(row) for row in tx.all(_EVERY_INBOX, of(scope)))


def inbox_at(tx: Tx, address: str) -> tuple[Scope, Inbox] | None:
    """Return the live inbox of any tenant that owns a mail address (compared case folded)."""
    row = tx.one(_INBOX_AT, {"of_folded": address.casefold()})
    return (Scope(tenant=row.tenant, environment=row.environment), _inbox(row)) if row else None


def inbox_of_domain(tx: Tx, domain: str) -> tuple[Scope, Inbox] | None:
    """Return the oldest live inbox of a mail domain: where mail to its postmaster goes (RFC 5321 4.5.1)."""
    ours = _INBOXES.c.folded.endswith(f"@{domain.casefold()}", autoescape=True)
    row = tx.one(_LIVE_MAIL.where(ours).order_by(_INBOXES.c.created_at, _INBOXES.c.id).limit(1))
    return (Scope(tenant=row.tenant, environment=row.environment), _inbox(row)) if row else None


def _inbox(row: Row[Any]) -> Inbox:
    return Inbox(
        id=row.id,
        agent_id=row.agent_id,
        address=row.address,
        channel=row.channel,
        display_name=row.display_name,
        sub_addresses=bool(row.sub_addresses),
        external=row.external,
        zone=row.zone,
        country=row.country,
    )


def add_contact(tx: Tx, scope: Scope, contact: Contact, at: datetime) -> None:
    """Store a contact with its addresses; an address that belongs to another contact is a Conflict."""
    row = {
        **scope_of(scope),
        "id": contact.id,
        "name": contact.name,
        "zone": contact.zone,
        "country": contact.country,
        "hours": contact.hours,
        "created_at": at,
    }
    tx.run(_ADD_CONTACT, row)
    addresses = [
        {
            **scope_of(scope),
            "channel": _channel(address),
            "folded": address.casefold(),
            "contact_id": contact.id,
            "address": address,
            "position": position,
        }
        for position, address in enumerate(contact.addresses)
    ]
    if addresses:
        tx.run(_ADD_ADDRESS, addresses)


def _channel(address: str) -> str:
    """A mail address has an @, a number starts with + (E.164), what is left is a chat user."""
    if "@" in address:
        return "email"
    return "sms" if address.startswith("+") else "chat"


def contact_of(tx: Tx, scope: Scope, address: str, channel: str = "email") -> Contact | None:
    """Return the contact an address belongs to (compared case folded)."""
    owner = tx.scalar(_OWNER, of(scope, channel=channel, folded=address.casefold()))
    if owner is None:
        return None
    own = of(scope, id=owner, contact_id=owner)
    return _contacts(tx.all(_CONTACT, own), tx.all(_REACHED_AT, own))[0]


def contacts(tx: Tx, scope: Scope) -> tuple[Contact, ...]:
    """Return every contact in order of name."""
    return _contacts(tx.all(_EVERY_CONTACT, of(scope)), tx.all(_EVERY_ADDRESS, of(scope)))


def _contacts(rows: Sequence[Row[Any]], listed: Sequence[Row[Any]]) -> tuple[Contact, ...]:
    addresses: dict[str, list[str]] = {}
    for row in listed:
        addresses.setdefault(row.contact_id, []).append(row.address)
    return tuple(
        Contact(
            id=row.id,
            name=row.name,
            addresses=tuple(addresses.get(row.id, ())),
            zone=row.zone,
            country=row.country,
            hours=row.hours,
        )
        for row in rows
    )


def add_key(tx: Tx, key: ApiKey, sha256_hex: str) -> None:
    """Store a key's hash and what it may do; the secret never comes here."""
    row = {
        **scope_of(key.scope),
        "id": key.id,
        "sha256": sha256_hex,
        "name": key.name,
        "scopes": list(key.scopes),
        "agent_id": key.agent_id or None,
        "created_at": key.created_at,
        "revoked_at": key.revoked_at,
    }
    tx.run(_ADD_KEY, row)


def key_by_hash(tx: Tx, sha256_hex: str) -> ApiKey | None:
    """Return the key with that hash, of any scope, a revoked one too."""
    row = tx.one(_KEY, {"of_sha256": sha256_hex})
    return _key(row) if row else None


def keys(tx: Tx, scope: Scope) -> tuple[ApiKey, ...]:
    """Return every key, oldest first, revoked ones too."""
    return tuple(_key(row) for row in tx.all(_EVERY_KEY, of(scope)))


def revoke_key(tx: Tx, scope: Scope, key_id: str, at: datetime) -> bool:
    """Return whether there was such a key still in force."""
    return tx.run(_REVOKE, of(scope, id=key_id) | {"revoked_at": at}) > 0


def _key(row: Row[Any]) -> ApiKey:
    return ApiKey(
        id=row.id,
        scope=Scope(tenant=row.tenant, environment=row.environment),
        name=row.name,
        scopes=tuple(row.scopes),
        created_at=row.created_at,
        agent_id=row.agent_id or "",
        revoked_at=row.revoked_at,
    )


def suppress(tx: Tx, scope: Scope, suppression: Suppression) -> bool:
    """Return True where the address is suppressed from now on, False where it was already."""
    values = {
        **scope_of(scope),
        "channel": suppression.channel,
        "folded": suppression.address.casefold(),
        "address": suppression.address,
        "reason": suppression.reason,
        "created_at": suppression.created_at,
    }
    return tx.one(_SUPPRESS, values) is not None


def unsuppress(tx: Tx, scope: Scope, channel: str, address: str) -> bool:
    """Return whether the address was suppressed."""
    return tx.run(_UNSUPPRESS, of(scope, channel=channel, folded=address.casefold())) > 0


def suppressions(tx: Tx, scope: Scope) -> tuple[Suppression, ...]:
    """Return every suppression, oldest first."""
    rows = tx.all(_EVERY_SUPPRESSION, of(scope))
    return tuple(
        Suppression(address=row.address, reason=row.reason, created_at=row.created_at, channel=row.channel)
        for row in rows
    )


def suppressed(tx: Tx, scope: Scope, channel: str, addresses: Sequence[str]) -> dict[str, str]:
    """Return the reason for each of the addresses that is suppressed, under the address as given."""
    folded = [address.casefold() for address in addresses]
    rows = tx.all(_REASONS, of(scope, channel=channel) | {"addresses": folded})
    reasons = {row.folded: row.reason for row in rows}
    return {given: reasons[given.casefold()] for given in addresses if given.casefold() in reasons}


def count(tx: Tx, scope: Scope, name: str, by: int = 1) -> None:
    """Add to a counter."""
    tx.run(_COUNT, {**scope_of(scope), "name": name, "total": by})


def counts(tx: Tx, scope: Scope) -> dict[str, int]:
    """Return every counter in order of name."""
    return {row.name: row.total for row in tx.all(_EVERY_COUNT, of(scope))}
