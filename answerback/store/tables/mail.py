"""Tables of what came in and goes out: octets, conversations, messages, ids, outbox."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Column, Computed, Index, UniqueConstraint, text

from answerback.model import OutboxState
from answerback.store.columns import (
    Words,
    document,
    moment,
    octets,
    of_tenant,
    one_of,
    refers,
    scoped,
    whole,
    words,
)

received = scoped(
    "received",
    words("id"),
    #: "" for mail to postmaster and abuse, which no inbox owns
    words("inbox_id"),
    Column("inbox_ref", Words(), Computed("nullif(inbox_id, '')", persisted=True)),
    words("identity"),
    words("source"),
    words("mail_from"),
    words("recipient"),
    moment("at"),
    whole("attempts"),
    words("state"),
    words("note"),
    words("message_id", null=True),
    moment("deferred_until", null=True),
    of_tenant(),
    refers("inbox_ref", "inboxes", name="inbox"),
    refers("message_id", "messages", late=True),
    one_of("state", ("stored", "processed", "review", "dropped")),
    UniqueConstraint("tenant", "environment", "inbox_id", "identity", name="identity"),
    Index(
        "ix_received_stored",
        "at",
        "id",
        sqlite_where=text("state = 'stored'"),
        postgresql_where=text("state = 'stored'"),
    ),
)

# apart from `received`: SQLite writes a whole row anew on every change of its state
received_octets = scoped(
    "received_octets",
    words("received_id"),
    octets("octets"),
    refers("received_id", "received"),
    key=("received_id",),
)

contents = scoped("contents", words("sha256"), octets("octets"), of_tenant(), key=("sha256",))

conversations = scoped(
    "conversations",
    words("id"),
    words("inbox_id"),
    words("agent_id"),
    words("channel"),
    words("subject"),
    moment("created_at"),
    refers("inbox_id", "inboxes"),
    refers("agent_id", "agents"),
    Index("ix_conversations_newest", "tenant", "environment", "created_at", "id"),
)

messages = scoped(
    "messages",
    words("id"),
    words("conversation_id"),
    #: order of storing inside the conversation, where instants are equal
    whole("number"),
    words("direction"),
    words("kind"),
    words("subject"),
    words("sender_email"),
    words("sender_name"),
    moment("at"),
    words("rfc_id"),
    words("parent_id", null=True),
    words("trust", null=True),
    words("body_hash"),
    words("received_id", null=True),
    words("wait_id", null=True),
    whole("nudge_number", null=True),
    document("content"),
    refers("conversation_id", "conversations"),
    refers("parent_id", "messages"),
    refers("received_id", "received"),
    refers("wait_id", "waits", late=True),
    one_of("direction", ("in", "out")),
    one_of("trust", ("authenticated", "unauthenticated", "spam", "blocked")),
    CheckConstraint(
        "nudge_number IS NULL OR (nudge_number >= 1 AND kind = 'nudge' AND wait_id IS NOT NULL)", name="nudge"
    ),
    Index(
        "ux_messages_nudge",
        "tenant",
        "environment",
        "wait_id",
        "nudge_number",
        unique=True,
        sqlite_where=text("nudge_number IS NOT NULL"),
        postgresql_where=text("nudge_number IS NOT NULL"),
    ),
    Index("ix_messages_conversation", "tenant", "environment", "conversation_id", "at"),
    Index("ix_messages_body_hash", "tenant", "environment", "body_hash"),
)

message_ids = scoped(
    "message_ids",
    words("rfc_id"),
    words("message_id"),
    words("source"),
    refers("message_id", "messages"),
    one_of("source", ("ours", "provider", "received")),
    key=("rfc_id", "message_id"),
)

outbox = scoped(
    "outbox",
    words("message_id"),
    words("recipient"),
    words("state"),
    whole("attempts"),
    moment("queued_at"),
    moment("next_attempt_at", null=True),
    moment("recorded_at", null=True),
    whole("code"),
    words("text"),
    words("reported"),
    moment("reported_at", null=True),
    words("wait_id", null=True),
    words("owner", null=True),
    moment("lease_until", null=True),
    refers("message_id", "messages"),
    refers("wait_id", "waits", late=True),
    one_of("state", OutboxState),
    CheckConstraint("(state IN ('queued', 'deferred')) = (next_attempt_at IS NOT NULL)", name="next_attempt"),
    CheckConstraint(
        "(state = 'handing_over') = (owner IS NOT NULL AND lease_until IS NOT NULL)", name="lease"
    ),
    Index(
        "ix_outbox_next_attempt",
        "next_attempt_at",
        "message_id",
        sqlite_where=text("next_attempt_at IS NOT NULL"),
        postgresql_where=text("next_attempt_at IS NOT NULL"),
    ),
    Index(
        "ix_outbox_lease",
        "lease_until",
        sqlite_where=text("lease_until IS NOT NULL"),
        postgresql_where=text("lease_until IS NOT NULL"),
    ),
    Index("ix_outbox_wait", "tenant", "environment", "wait_id"),
    key=("message_id", "recipient"),
)
