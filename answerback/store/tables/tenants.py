"""Tables of who is here: tenants, agents, inboxes, contacts, keys, suppressions, counters, schedules."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Index, PrimaryKeyConstraint, Table, UniqueConstraint, text

from answerback.store.columns import (
    document,
    metadata,
    moment,
    of_tenant,
    one_of,
    refers,
    scoped,
    whole,
    words,
)

tenants = Table(
    "tenants",
    metadata,
    words("tenant"),
    moment("created_at"),
    PrimaryKeyConstraint("tenant"),
    sqlite_strict=True,
)

agents = scoped(
    "agents",
    words("id"),
    words("name"),
    words("owner"),
    words("identity_ref"),
    words("state"),
    moment("created_at"),
    of_tenant(),
    one_of("state", ("active", "suspended", "deleted")),
    UniqueConstraint("tenant", "environment", "name", name="name"),
)

inboxes = scoped(
    "inboxes",
    words("id"),
    words("agent_id"),
    words("channel"),
    words("address"),
    #: the address as it is compared: case folded
    words("folded"),
    words("display_name"),
    whole("sub_addresses"),
    words("external"),
    words("zone"),
    words("country"),
    moment("created_at"),
    refers("agent_id", "agents"),
    one_of("external", ("refuse", "verified", "all")),
    CheckConstraint("sub_addresses IN (0, 1)", name="sub_addresses"),
    UniqueConstraint("tenant", "environment", "channel", "folded", name="address"),
    # mail comes in by address alone, so no two tenants may own one
    Index(
        "ux_inboxes_live_address",
        "channel",
        "folded",
        unique=True,
        sqlite_where=text("environment = 'live'"),
        postgresql_where=text("environment = 'live'"),
    ),
)

contacts = scoped(
    "contacts",
    words("id"),
    words("name"),
    words("zone"),
    words("country"),
    document("hours"),
    moment("created_at"),
    of_tenant(),
)

contact_addresses = scoped(
    "contact_addresses",
    words("channel"),
    words("folded"),
    words("contact_id"),
    words("address"),
    whole("position"),
    refers("contact_id", "contacts"),
    key=("channel", "folded"),
)

api_keys = scoped(
    "api_keys",
    words("id"),
    words("sha256"),
    words("name"),
    document("scopes"),
    words("agent_id", null=True),
    moment("created_at"),
    moment("revoked_at", null=True),
    of_tenant(),
    refers("agent_id", "agents"),
    UniqueConstraint("sha256", name="sha256"),
)

suppressions = scoped(
    "suppressions",
    words("channel"),
    words("folded"),
    words("address"),
    words("reason"),
    moment("created_at"),
    of_tenant(),
    one_of("reason", ("bounce", "complaint", "opt_out", "manual")),
    key=("channel", "folded"),
)

counters = scoped("counters", words("name"), whole("total"), of_tenant(), key=("name",))

schedules = scoped(
    "schedules",
    words("name"),
    whole("version"),
    document("policy"),
    moment("created_at"),
    of_tenant(),
    CheckConstraint("version >= 1", name="version"),
    key=("name", "version"),
)
