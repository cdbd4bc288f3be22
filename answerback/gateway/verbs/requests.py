"""What each verb takes, checked at the door: sizes, shapes and ranges."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field

from answerback.model import Trust

Id = Annotated[str, Field(min_length=1, max_length=80)]
Name = Annotated[str, Field(min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
#: what a whole number column holds
LARGEST = 2**63 - 1


def _instant(given: object) -> object:
    """Take a bare date as its first instant in UTC."""
    bare = isinstance(given, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", given)
    return f"{given}T00:00:00Z" if bare else given


#: an ISO time with zone, or a date
Instant = Annotated[AwareDatetime, BeforeValidator(_instant)]
Written = Annotated[str, Field(max_length=320)]


#: a media type a file can be sent as: one that may be base64 (RFC 2046 5.1, 5.2: these two may not)
_FILE_TYPE = r"^(application|audio|font|image|model|text|video|x-[a-z0-9-]+)/[a-z0-9.+-]+$"


def _decoded(text: object) -> object:
    """Return the octets that base64 text stands for; other characters in it are an error, not passed over."""
    try:
        return b64decode(text, validate=True) if isinstance(text, str) else text
    except ValueError:
        raise ValueError("it is no base64") from None


class Request(BaseModel):
    """A verb's parameters; an unknown one is an error, so that a typing mistake never goes unnoticed."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_bytes="base64")


class Empty(Request):
    """No parameters."""


class AttachmentIn(Request):
    """A file to send, its content in base64."""

    filename: Annotated[str, Field(min_length=1, max_length=200)]
    media_type: Annotated[str, Field(pattern=_FILE_TYPE, max_length=100)] = "application/octet-stream"
    content: Annotated[bytes, BeforeValidator(_decoded)]


class Expect(Request):
    """That an answer is expected: turns a send into an ask."""

    key: Annotated[str, Field(min_length=1, max_length=200)]
    schedule: Name = "vendor-quote"
    #: 10bd, 36h, or an ISO time with zone
    deadline: Annotated[str, Field(max_length=60)] = ""
    responders: Annotated[tuple[Written, ...], Field(max_length=50)] = ()
    cc_may_answer: bool = False
    min_trust: Literal[Trust.AUTHENTICATED, Trust.UNAUTHENTICATED] = Trust.UNAUTHENTICATED


class Send(Request):
    """A mail to a person."""

    to: Annotated[tuple[Written, ...], Field(min_length=1, max_length=50)]
    cc: Annotated[tuple[Written, ...], Field(max_length=50)] = ()
    subject: Annotated[str, Field(max_length=998)]
    text: Annotated[str, Field(max_length=1 << 20)]
    html: Annotated[str, Field(max_length=1 << 20)] | None = None
    attachments: Annotated[tuple[AttachmentIn, ...], Field(max_length=20)] = ()
    inbox: Written = ""
    reply_to_message_id: Annotated[str, Field(max_length=80)] = ""
    expect: Expect | None = None


class OpenWaitpoint(Request):
    """Expect an answer to a message that was sent already."""

    conversation_id: Id
    #: default: the conversation's last message of ours
    message_id: Annotated[str, Field(max_length=80)] = ""
    expect: Expect


class One(Request):
    """One thing by its id."""

    id: Id


class ByKey(Request):
    """A waitpoint by its correlation key or id."""

    key: Annotated[str, Field(min_length=1, max_length=200)]


class Page(Request):
    """How much of a list to return."""

    limit: Annotated[int, Field(ge=1, le=500)] = 100


class ListWaits(Page):
    """Waits, the last changed first."""

    state: Literal["waiting", "nudged", "paused", "replied", "abandoned", "cancelled"] | None = None


class ResumeWait(One):
    """Let a paused wait go on, now or not before a date."""

    not_before: Instant | None = None


class CancelWait(One):
    """End a wait and its waitpoint."""

    reason: Annotated[str, Field(max_length=200)] = "cancelled"


class WaitAgain(One):
    """Wait again for what a closed waitpoint waited for."""

    not_before: Instant
    #: the new waitpoint's deadline; default as for a new question, counted from not_before
    deadline: Annotated[str, Field(max_length=60)] = ""


class ReadMailbox(Request):
    """Look at the mailbox without taking anything."""

    since: Annotated[int, Field(ge=0, le=LARGEST)] | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 100


class Lease(Request):
    """Take items for a while."""

    seconds: Annotated[int, Field(ge=30, le=3600)] = 300
    max: Annotated[int, Field(ge=1, le=100)] = 10


class Leased(Request):
    """Items of a lease; all of them where no numbers are given."""

    lease_id: Id
    sequences: (
        Annotated[tuple[Annotated[int, Field(ge=1, le=LARGEST)], ...], Field(max_length=100)] | None
    ) = None


class Extend(Leased):
    """Keep items of a lease for longer."""

    seconds: Annotated[int, Field(ge=30, le=3600)] = 300


class ListReviews(Request):
    """Items for a person to decide."""

    all: bool = False


class Decide(One):
    """A person's decision on a review."""

    #: answer, not_an_answer, other_conversation, discard, was_sent, send_again, resume, cancel
    choice: Name
    waitpoint_id: Annotated[str, Field(max_length=80)] = ""
    conversation_id: Annotated[str, Field(max_length=80)] = ""


class AddAgent(Request):
    """A new agent."""

    name: Name
    #: who answers for it
    owner: Annotated[str, Field(min_length=1, max_length=200)] = "person:operator"
    identity_ref: Annotated[str, Field(max_length=200)] = ""


class AddInbox(Request):
    """An address an agent writes from."""

    agent: Id
    address: Written
    display_name: Annotated[str, Field(max_length=100, pattern=r"^[^\x00-\x1f\x7f]*$")] = ""
    sub_addresses: bool = True
    external: Literal["refuse", "verified", "all"] = "refuse"
    zone: Annotated[str, Field(max_length=60)] = ""
    country: Annotated[str, Field(max_length=2)] = ""


class AddContact(Request):
    """An outside person."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    addresses: Annotated[tuple[Written, ...], Field(min_length=1, max_length=20)]
    zone: Annotated[str, Field(max_length=60)] = ""
    country: Annotated[str, Field(max_length=2)] = ""
    workdays: Annotated[tuple[Annotated[int, Field(ge=1, le=7)], ...], Field(max_length=7)] = ()
    holidays: Annotated[
        tuple[Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")], ...], Field(max_length=400)
    ] = ()
    window: Annotated[tuple[Annotated[str, Field(pattern=r"^\d\d:\d\d$")], ...], Field(max_length=2)] = ()


class CreateKey(Request):
    """A new API key; its secret is shown once."""

    name: Annotated[str, Field(min_length=1, max_length=100)]
    scopes: Annotated[tuple[str, ...], Field(min_length=1, max_length=40)]
    #: "" makes an operator's key
    agent: Annotated[str, Field(max_length=80)] = ""


class Suppress(Request):
    """An address not to be written to again."""

    address: Written
    reason: Literal["bounce", "complaint", "opt_out", "manual"] = "manual"


class Unsuppress(Request):
    """An address that may be written to again."""

    address: Written


class PutSchedule(Request):
    """A new version of a follow-up policy."""

    name: Name
    gaps: Annotated[tuple[str, ...], Field(min_length=1, max_length=10)]
    on_abandon: Literal["fail_step", "tell_owner", "hand_to_person", "stop_sequence"] = "tell_owner"
    sequence: bool = False
    away_default: Annotated[int, Field(ge=1, le=30)] = 3
    away_limit: Annotated[int, Field(ge=1, le=60)] = 20
    nudge_text: Annotated[str, Field(max_length=4000)] = ""
