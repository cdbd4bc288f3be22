"""Tables of mailboxes, reviews and remembered requests."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Index, text

from answerback.model import ItemState
from answerback.store.columns import document, moment, of_tenant, one_of, refers, scoped, whole, words

_PENDING = text("state IN ('ready', 'leased')")
_UNDECIDED = text("decided_at IS NULL")

mailboxes = scoped(
    "mailboxes",
    words("principal"),
    whole("last_sequence"),
    of_tenant(),
    CheckConstraint("last_sequence >= 0", name="last_sequence"),
    key=("principal",),
)

mailbox_items = scoped(
    "mailbox_items",
    words("principal"),
    whole("sequence"),
    words("event_id"),
    words("type"),
    moment("at"),
    words("state"),
    whole("attempts"),
    words("lease_id", null=True),
    moment("lease_until", null=True),
    words("acked_lease", null=True),
    words("envelope"),
    refers("principal", "mailboxes", "principal"),
    one_of("state", ItemState),
    CheckConstraint("sequence >= 1", name="sequence"),
    CheckConstraint("state <> 'leased' OR (lease_id IS NOT NULL AND lease_until IS NOT NULL)", name="leased"),
    CheckConstraint(
        "state <> 'acked' OR (acked_lease IS NOT NULL AND lease_id IS NOT NULL AND acked_lease = lease_id)",
        name="acked_by_lease",
    ),
    Index(
        "ix_mailbox_items_pending",
        "tenant",
        "environment",
        "principal",
        "sequence",
        sqlite_where=_PENDING,
        postgresql_where=_PENDING,
    ),
    key=("principal", "sequence"),
)

reviews = scoped(
    "reviews",
    words("id"),
    words("reason"),
    moment("created_at"),
    words("conversation_id", null=True),
    words("message_id", null=True),
    words("received_id", null=True),
    words("wait_id", null=True),
    words("decision", null=True),
    words("decided_by", null=True),
    moment("decided_at", null=True),
    document("details"),
    of_tenant(),
    refers("conversation_id", "conversations"),
    refers("message_id", "messages"),
    refers("received_id", "received"),
    refers("wait_id", "waits"),
    CheckConstraint(
        "(decided_at IS NULL) = (decision IS NULL) AND (decided_at IS NULL) = (decided_by IS NULL)",
        name="decided",
    ),
    Index(
        "ix_reviews_open",
        "tenant",
        "environment",
        "created_at",
        sqlite_where=_UNDECIDED,
        postgresql_where=_UNDECIDED,
    ),
)

idempotency = scoped(
    "idempotency",
    words("owner"),
    words("key"),
    words("digest"),
    moment("at"),
    whole("status", null=True),
    words("body", null=True),
    of_tenant(),
    CheckConstraint("(status IS NULL) = (body IS NULL)", name="finished"),
    key=("owner", "key"),
)
