"""Every table, defined once; `constraints` adds the triggers."""

from answerback.store.columns import metadata
from answerback.store.tables.mail import (
    contents,
    conversations,
    message_ids,
    messages,
    outbox,
    received,
    received_octets,
)
from answerback.store.tables.records import idempotency, mailbox_items, mailboxes, reviews
from answerback.store.tables.tenants import (
    agents,
    api_keys,
    contact_addresses,
    contacts,
    counters,
    inboxes,
    schedules,
    suppressions,
    tenants,
)
from answerback.store.tables.waiting import (
    rejections,
    resolutions,
    responders,
    stands,
    wait_log,
    waitpoints,
    waits,
)

__all__ = [
    "agents",
    "api_keys",
    "contact_addresses",
    "contacts",
    "contents",
    "conversations",
    "counters",
    "idempotency",
    "inboxes",
    "mailbox_items",
    "mailboxes",
    "message_ids",
    "messages",
    "metadata",
    "outbox",
    "received",
    "received_octets",
    "rejections",
    "resolutions",
    "responders",
    "reviews",
    "schedules",
    "stands",
    "suppressions",
    "tenants",
    "wait_log",
    "waitpoints",
    "waits",
]
