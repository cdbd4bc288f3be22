"""Tables of what is awaited: waitpoints, responders, resolutions, waits and their log."""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Index, UniqueConstraint, text

from answerback.model import Timing, Trust, WaitpointState, WaitState
from answerback.store.columns import document, moment, one_of, refers, scoped, whole, words

_TERMS = ("expires_at", "subject_digest", "waiter")
_OPEN = text("state IN ('open', 'stalled')")
_DUE = text("due_at IS NOT NULL")
_THIRTY_DAYS = 30 * 24 * 3600 * 1_000_000  # microseconds

waitpoints = scoped(
    "waitpoints",
    words("id"),
    words("state"),
    words("conversation_id"),
    words("message_id"),
    words("waiter"),
    words("event_type"),
    words("correlation_key"),
    moment("opened_at"),
    moment("expires_at"),
    words("subject_digest"),
    words("min_trust"),
    words("follows", null=True),
    moment("closed_at", null=True),
    words("reason"),
    refers("conversation_id", "conversations"),
    refers("message_id", "messages"),
    refers("follows", "waitpoints"),
    one_of("state", WaitpointState),
    one_of("min_trust", Trust),
    CheckConstraint(f"expires_at <= opened_at + {_THIRTY_DAYS}", name="thirty_days"),
    CheckConstraint("(state IN ('open', 'stalled')) = (closed_at IS NULL)", name="closed"),
    # what a resolution copies, so that the database can compare it
    UniqueConstraint("tenant", "environment", "id", *_TERMS, name="terms"),
    Index(
        "ux_waitpoints_open_key",
        "tenant",
        "environment",
        "event_type",
        "correlation_key",
        unique=True,
        sqlite_where=_OPEN,
        postgresql_where=_OPEN,
    ),
    Index("ix_waitpoints_key", "tenant", "environment", "correlation_key", "event_type"),
    Index("ix_waitpoints_conversation", "tenant", "environment", "conversation_id"),
    Index("ix_waitpoints_expiry", "expires_at", "id", sqlite_where=_OPEN, postgresql_where=_OPEN),
)

responders = scoped(
    "responders",
    words("waitpoint_id"),
    words("responder"),
    whole("position"),
    refers("waitpoint_id", "waitpoints"),
    key=("waitpoint_id", "responder"),
)

resolutions = scoped(
    "resolutions",
    words("waitpoint_id"),
    words("message_id"),
    words("responder"),
    words("author"),
    words("channel"),
    words("evidence_level"),
    words("trust"),
    words("timing"),
    moment("responded_at"),
    moment("expires_at"),
    words("subject_digest"),
    words("waiter"),
    document("evidence"),
    refers(("waitpoint_id", *_TERMS), "waitpoints", ("id", *_TERMS), name="terms"),
    refers(("waitpoint_id", "responder"), "responders", ("waitpoint_id", "responder"), name="responder"),
    refers("message_id", "messages"),
    one_of("evidence_level", ("channel_claim", "relay_session", "access_aas_ref")),
    one_of("trust", Trust),
    one_of("timing", Timing),
    CheckConstraint("responded_at <= expires_at", name="in_time"),
    CheckConstraint("author <> waiter AND responder <> waiter", name="not_waiter"),
    # the domain stands from the 14th character on; before it in the author comes @ or a dot
    CheckConstraint(
        "substr(responder, 1, 13) <> 'email-domain:' OR (length(author) > length(responder) - 13 AND "
        "substr(author, length(author) - length(responder) + 13) IN "
        "('@' || substr(responder, 14), '.' || substr(responder, 14)))",
        name="domain",
    ),
    UniqueConstraint("tenant", "environment", "message_id", name="message"),
    key=("waitpoint_id",),
)

rejections = scoped(
    "rejections",
    words("waitpoint_id"),
    words("message_id"),
    words("reason"),
    words("digest"),
    moment("at"),
    refers("waitpoint_id", "waitpoints"),
    refers("message_id", "messages"),
    key=("waitpoint_id", "message_id", "reason"),
)

#: which waitpoints an outbound message asks about: its own, or those open when a nudge was sent
stands = scoped(
    "stands",
    words("message_id"),
    words("waitpoint_id"),
    refers("message_id", "messages"),
    refers("waitpoint_id", "waitpoints"),
    key=("message_id", "waitpoint_id"),
)

waits = scoped(
    "waits",
    words("id"),
    #: order of storing, where instants are equal
    whole("number"),
    words("conversation_id"),
    words("waitpoint_id", null=True),
    words("schedule_name"),
    whole("schedule_version"),
    words("state"),
    words("reason"),
    moment("due_at", null=True),
    moment("updated_at"),
    document("details"),
    refers("conversation_id", "conversations"),
    refers("waitpoint_id", "waitpoints"),
    refers(("schedule_name", "schedule_version"), "schedules", ("name", "version"), name="schedule"),
    one_of("state", WaitState),
    CheckConstraint("(state IN ('waiting', 'nudged')) = (due_at IS NOT NULL)", name="running"),
    Index("ix_waits_due", "due_at", "id", sqlite_where=_DUE, postgresql_where=_DUE),
    Index("ix_waits_waitpoint", "tenant", "environment", "waitpoint_id"),
    Index("ix_waits_conversation", "tenant", "environment", "conversation_id", "number"),
)

wait_log = scoped(
    "wait_log",
    words("wait_id"),
    whole("number"),
    moment("at"),
    words("event"),
    words("rule"),
    words("before"),
    words("after"),
    document("cause"),
    refers("wait_id", "waits"),
    key=("wait_id", "number"),
)
