"""Who is here: tenants, agents, inboxes, contacts, keys, suppressed addresses, counters."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, and_, delete, insert, or_, select, update

from answerback.model import Agent, ApiKey, Contact, Inbox, Scope, Suppression
from answerback.store import tables
from answerback.store.columns import here, scope_of
from answerback.store.mailboxes import ensure_mailbox
from answerback.store.session import Tx
from answerback.store.statements import increment, insert_once

_SUPPRESS = insert_once(tables.suppressions, ("channel", "folded"), returning=("folded",))
_COUNT = increment(tables.counters, ("name",), "total")


def add_tenant(tx: Tx, tenant: str, at: datetime) -> None:
    """Store a tenant; everything else belongs to one."""
    tx.run(insert(tables.tenants).values(tenant=tenant, created_at=at))


def tenants(tx: Tx) -> tuple[str, ...]:
    """Return every tenant's name in order."""
    return tuple(row.tenant for row in tx.all(select(tables.tenants).order_by(tables.tenants.c.tenant)))


def add_agent(tx: Tx, scope: Scope, agent: Agent, at: datetime) -> None:
    """Store an agent with its mailbox and its owner's mailbox."""
    tx.run(
        insert(tables.agents).values(
            **scope_of(scope),
            id=agent.id,
            name=agent.name,
            owner=agent.owner,
            identity_ref=agent.identity_ref,
            state=agent.state,
            created_at=at,
        )
    )
    ensure_mailbox(tx, scope, f"agent:{agent.id}")
    ensure_mailbox(tx, scope, agent.owner)


def agent(tx: Tx, scope: Scope, name_or_id: str) -> Agent | None:
    """Return the agent of that id, else of that name."""
    columns = tables.agents.c
    rows = tx.all(
        select(tables.agents).where(
            here(tables.agents, scope), or_(columns.id == name_or_id, columns.name == name_or_id)
        )
    )
    found = sorted(rows, key=lambda row: bool(row.id != name_or_id))
    return _agent(found[0]) if found else None


def agents(tx: Tx, scope: Scope) -> tuple[Agent, ...]:
    """Return every agent in order of name."""
    rows = tx.all(select(tables.agents).where(here(tables.agents, scope)).order_by(tables.agents.c.name))
    return tuple(_agent(row) for row in rows)


def _agent(row: Row[Any]) -> Agent:
    return Agent(id=row.id, name=row.name, owner=row.owner, identity_ref=row.identity_ref, state=row.state)


def add_inbox(tx: Tx, scope: Scope, inbox: Inbox, at: datetime) -> None:
    """Store an inbox; an address that is taken is a Conflict."""
    tx.run(
        insert(tables.inboxes).values(
            **scope_of(scope),
            id=inbox.id,
            agent_id=inbox.agent_id,
            channel=inbox.channel,
            address=inbox.address,
            folded=inbox.address.casefold(),
            display_name=inbox.display_name,
            sub_addresses=int(inbox.sub_addresses),
            external=inbox.external,
            zone=inbox.zone,
            country=inbox.country,
            created_at=at,
        )
    )


def inbox(tx: Tx, scope: Scope, id_or_address: str) -> Inbox | None:
    """Return the inbox of that id or address (compared case folded)."""
    columns = tables.inboxes.c
    row = tx.one(
        select(tables.inboxes).where(
            here(tables.inboxes, scope),
            or_(columns.id == id_or_address, columns.folded == id_or_address.casefold()),
        )
    )
    return _inbox(row) if row else None


def inboxes(tx: Tx, scope: Scope) -> tuple[Inbox, ...]:
    """Return every inbox in order of address."""
    rows = tx.all(select(tables.inboxes).where(here(tables.inboxes, scope)).order_by(tables.inboxes.c.folded))
    return tuple(_inbox(row) for row in rows)


def inbox_at(tx: Tx, address: str) -> tuple[Scope, Inbox] | None:
    """Return the live inbox of any tenant that owns a mail address (compared case folded)."""
    columns = tables.inboxes.c
    row = tx.one(
        select(tables.inboxes).where(
            columns.environment == "live", columns.channel == "email", columns.folded == address.casefold()
        )
    )
    return (Scope(tenant=row.tenant, environment=row.environment), _inbox(row)) if row else None


def inbox_of_domain(tx: Tx, domain: str) -> tuple[Scope, Inbox] | None:
    """Return the oldest live inbox of a mail domain: where mail to its postmaster goes (RFC 5321 4.5.1)."""
    columns = tables.inboxes.c
    row = tx.one(
        select(tables.inboxes)
        .where(
            columns.environment == "live",
            columns.channel == "email",
            columns.folded.endswith(f"@{domain.casefold()}", autoescape=True),
        )
        .order_by(columns.created_at, columns.id)
        .limit(1)
    )
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
    tx.run(
        insert(tables.contacts).values(
            **scope_of(scope),
            id=contact.id,
            name=contact.name,
            zone=contact.zone,
            country=contact.country,
            hours=contact.hours,
            created_at=at,
        )
    )
    for position, address in enumerate(contact.addresses):
        tx.run(
            insert(tables.contact_addresses).values(
                **scope_of(scope),
                channel=_channel(address),
                folded=address.casefold(),
                contact_id=contact.id,
                address=address,
                position=position,
            )
        )


def _channel(address: str) -> str:
    """A mail address has an @, a number starts with + (E.164), what is left is a chat user."""
    if "@" in address:
        return "email"
    return "sms" if address.startswith("+") else "chat"


def contact_of(tx: Tx, scope: Scope, address: str, channel: str = "email") -> Contact | None:
    """Return the contact an address belongs to (compared case folded)."""
    listed = tables.contact_addresses
    owner = tx.one(
        select(listed.c.contact_id).where(
            here(listed, scope), listed.c.channel == channel, listed.c.folded == address.casefold()
        )
    )
    found = _contacts(tx, scope, owner.contact_id) if owner else ()
    return found[0] if found else None


def contacts(tx: Tx, scope: Scope) -> tuple[Contact, ...]:
    """Return every contact in order of name."""
    return _contacts(tx, scope, None)


def _contacts(tx: Tx, scope: Scope, contact_id: str | None) -> tuple[Contact, ...]:
    own, listed = tables.contacts, tables.contact_addresses
    wanted = here(own, scope) if contact_id is None else and_(here(own, scope), own.c.id == contact_id)
    addresses: dict[str, list[str]] = {}
    for row in tx.all(select(listed).where(here(listed, scope)).order_by(listed.c.position)):
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
        for row in tx.all(select(own).where(wanted).order_by(own.c.name, own.c.id))
    )


def add_key(tx: Tx, key: ApiKey, sha256_hex: str) -> None:
    """Store a key's hash and what it may do; the secret never comes here."""
    tx.run(
        insert(tables.api_keys).values(
            **scope_of(key.scope),
            id=key.id,
            sha256=sha256_hex,
            name=key.name,
            scopes=list(key.scopes),
            agent_id=key.agent_id or None,
            created_at=key.created_at,
            revoked_at=key.revoked_at,
        )
    )


def key_by_hash(tx: Tx, sha256_hex: str) -> ApiKey | None:
    """Return the key with that hash, of any scope, a revoked one too."""
    row = tx.one(select(tables.api_keys).where(tables.api_keys.c.sha256 == sha256_hex))
    return _key(row) if row else None


def keys(tx: Tx, scope: Scope) -> tuple[ApiKey, ...]:
    """Return every key, oldest first, revoked ones too."""
    columns = tables.api_keys.c
    rows = tx.all(
        select(tables.api_keys).where(here(tables.api_keys, scope)).order_by(columns.created_at, columns.id)
    )
    return tuple(_key(row) for row in rows)


def revoke_key(tx: Tx, scope: Scope, key_id: str, at: datetime) -> bool:
    """Return whether there was such a key still in force."""
    own = tables.api_keys
    wanted = and_(here(own, scope), own.c.id == key_id, own.c.revoked_at.is_(None))
    return tx.run(update(own).where(wanted).values(revoked_at=at)) > 0


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
    own = tables.suppressions
    wanted = and_(here(own, scope), own.c.channel == channel, own.c.folded == address.casefold())
    return tx.run(delete(own).where(wanted)) > 0


def suppressions(tx: Tx, scope: Scope) -> tuple[Suppression, ...]:
    """Return every suppression, oldest first."""
    own = tables.suppressions
    rows = tx.all(select(own).where(here(own, scope)).order_by(own.c.created_at, own.c.folded))
    return tuple(
        Suppression(address=row.address, reason=row.reason, created_at=row.created_at, channel=row.channel)
        for row in rows
    )


def suppressed(tx: Tx, scope: Scope, channel: str, addresses: Sequence[str]) -> dict[str, str]:
    """Return the reason for each of the addresses that is suppressed, under the address as given."""
    own = tables.suppressions
    folded = [address.casefold() for address in addresses]
    rows = tx.all(select(own).where(here(own, scope), own.c.channel == channel, own.c.folded.in_(folded)))
    reasons = {row.folded: row.reason for row in rows}
    return {given: reasons[given.casefold()] for given in addresses if given.casefold() in reasons}


def count(tx: Tx, scope: Scope, name: str, by: int = 1) -> None:
    """Add to a counter."""
    tx.run(_COUNT, {**scope_of(scope), "name": name, "total": by})


def counts(tx: Tx, scope: Scope) -> dict[str, int]:
    """Return every counter in order of name."""
    own = tables.counters
    rows = tx.all(select(own).where(here(own, scope)).order_by(own.c.name))
    return {row.name: row.total for row in rows}
