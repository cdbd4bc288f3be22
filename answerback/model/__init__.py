"""The words of answerback as frozen values that pass between its rooms."""

from answerback.model.inbound import (
    Address,
    Inbound,
    InboundKind,
    Part,
    PartKind,
    Removed,
    Report,
    Trust,
)
from answerback.model.match import Ambiguous, Known, Match, Matched, Unmatched
from answerback.model.outbound import (
    Attachment,
    Draft,
    Envelope,
    Outcome,
    OutboxState,
    Receipt,
    RecipientResult,
)
from answerback.model.records import (
    Agent,
    ApiKey,
    Contact,
    Conversation,
    Inbox,
    ItemState,
    MailboxItem,
    Message,
    OutboxRow,
    Received,
    Remembered,
    Review,
    Suppression,
    WaitRow,
)
from answerback.model.scope import Json, Scope, value
from answerback.model.waiting import (
    ENDED,
    OPEN_STATES,
    RUNNING,
    Gap,
    Resolution,
    Schedule,
    Timing,
    Wait,
    Waitpoint,
    WaitpointState,
    WaitState,
)

__all__ = [
    "ENDED", "OPEN_STATES", "RUNNING", "Address", "Agent", "Ambiguous", "ApiKey", "Attachment", "Contact",
    "Conversation", "Draft", "Envelope", "Gap", "Inbound", "InboundKind", "Inbox", "ItemState", "Json", "Known",
    "MailboxItem", "Match", "Matched", "Message", "Outcome", "OutboxRow", "OutboxState", "Part", "PartKind",
    "Receipt", "Received", "RecipientResult", "Remembered", "Removed", "Report", "Resolution", "Review", "Schedule", "Scope",
    "Suppression", "Timing", "Trust", "Unmatched", "Wait", "WaitRow", "WaitState", "Waitpoint", "WaitpointState", "value",
]
