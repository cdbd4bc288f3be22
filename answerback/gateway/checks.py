"""Checks what an agent wants sent or asked; whatever is wrong is said before anything is stored."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from typing import TYPE_CHECKING

from answerback.channels.mail.addresses import check
from answerback.errors import BadRequest, NoInbox, NoRelay, NotFound, Suppressed, UnknownSchedule
from answerback.gateway import calendars, delivery
from answerback.model import Attachment, Inbox, Json, Schedule, Scope, Trust, value
from answerback.store import schedules, tenants
from answerback.waits import plan as plans
from answerback.waits import schedule as policies
from answerback.waits.addresses import canonical_row
from answerback.waits.waitpoint import LONGEST, check_deadline

if TYPE_CHECKING:
    from answerback.gateway.context import Caller, Work
    from answerback.store.session import Tx

MAX_RECIPIENTS = 50
#: characters of a text or of its HTML form
MAX_TEXT = 1 << 20
#: octets of all attachments together
MAX_ATTACHMENTS = 10 << 20
#: business days a waitpoint outlives its wait where no deadline is given
EXPIRES_AFTER_ABANDON = 5


@value
class Mail:
    """What an agent wants sent; addresses as the agent wrote them."""

    to: tuple[str, ...]
    subject: str
    text: str
    cc: tuple[str, ...] = ()
    html: str | None = None
    attachments: tuple[Attachment, ...] = ()
    #: the inbox to write from: an address or id; "" where the agent has one only
    inbox: str = ""
    #: a message of the same inbox this one answers
    reply_to_message_id: str = ""


@value
class Question:
    """What an agent expects of a mail: a reply for a key, by a deadline, followed up by a schedule."""

    key: str
    schedule: str
    #: `10bd`, `36h`, or an ISO time with zone; "" is the abandon time + 5 business days, at most 30 days
    deadline: str = ""
    #: `email:…`, `email-domain:…`; empty means the To addresses
    responders: tuple[str, ...] = ()
    cc_may_answer: bool = False
    min_trust: Trust = Trust.UNAUTHENTICATED


def ready_inbox(work: Work, caller: Caller, mail: Mail) -> Inbox:
    """Return the inbox to write from.

    Raises:
        NoInbox: the agent has none. NotFound: it has not the named one.
        BadRequest: it has several and none was named.
        NoRelay: nothing can leave from a live inbox.
    """
    own = [inbox for inbox in tenants.inboxes(work.tx, work.scope) if inbox.agent_id == caller.agent_id]
    named = (
        [inbox for inbox in own if mail.inbox.lower() in (inbox.id, inbox.address.lower())]
        if mail.inbox
        else own
    )
    if not own:
        agent = tenants.agent(work.tx, work.scope, caller.agent_id)
        raise NoInbox(agent=agent.name if agent else caller.agent_id)
    if not named:
        raise NotFound(kind="inbox of this agent", id=mail.inbox)
    if len(named) > 1:
        raise BadRequest(field="inbox", problem="this agent has several inboxes; name the one to write from")
    if work.scope.environment == "live" and named[0].channel not in work.context.senders:
        raise NoRelay()
    return named[0]


def checked(tx: Tx, scope: Scope, mail: Mail) -> Mail:
    """Return the mail with normalised addresses.

    Raises:
        BadAddress, BadRequest: something can not be sent. Suppressed: an address we do not write to.
    """
    if not mail.to:
        raise BadRequest(field="to", problem="name at least one recipient")
    if len(mail.to) + len(mail.cc) > MAX_RECIPIENTS:
        raise BadRequest(field="to", problem=f"at most {MAX_RECIPIENTS} recipients in To and Cc together")
    if not mail.text.strip():
        raise BadRequest(field="text", problem="the text is empty; a person needs something to answer")
    if len(mail.text) > MAX_TEXT or len(mail.html or "") > MAX_TEXT:
        raise BadRequest(field="text", problem=f"longer than {MAX_TEXT} characters")
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029" for c in mail.subject):
        raise BadRequest(field="subject", problem="contains line breaks or control characters; take them out")
    if sum(len(attachment.content) for attachment in mail.attachments) > MAX_ATTACHMENTS:
        raise BadRequest(field="attachments", problem=f"larger than {MAX_ATTACHMENTS} octets together")
    to, cc = tuple(map(check, mail.to)), tuple(map(check, mail.cc))
    for address, reason in tenants.suppressed(tx, scope, "email", [*to, *cc]).items():
        raise Suppressed(address=address, reason=reason)
    return replace(mail, to=tuple(dict.fromkeys(to)), cc=tuple(dict.fromkeys(cc)))


def responders(tx: Tx, scope: Scope, default: tuple[str, ...], question: Question) -> tuple[str, ...]:
    """Return the responder set: the given names, else the addresses written to.

    Raises:
        BadRequest: an own address would answer, or a name is of no known kind.
    """
    if not question.key or len(question.key) > 200:
        raise BadRequest(field="key", problem="give a correlation key of 1 to 200 characters")
    if re.fullmatch(r"wp_[a-z2-7]{13}", question.key):
        raise BadRequest(field="key", problem="it looks like the id of a waitpoint; choose another one")
    names = question.responders or tuple(f"email:{address}" for address in default)
    admitted = tuple(dict.fromkeys(map(canonical_row, names)))
    for name in admitted:
        kind, _, rest = name.partition(":")
        if kind not in ("email", "email-domain") or not rest:
            raise BadRequest(field="responders", problem=f"{name} is none; write email:… or email-domain:…")
        if kind == "email-domain" and check(f"x@{rest}").rpartition("@")[2] != rest:
            raise BadRequest(
                field="responders", problem=f"{rest} is no domain; write one as supplier.example"
            )
        if kind == "email" and _is_own(tx, scope, check(rest)):
            raise BadRequest(
                field="responders", problem=f"{rest} is an inbox of ours; it can not answer itself"
            )
        if kind == "email-domain" and any(i.address.endswith("@" + rest) for i in tenants.inboxes(tx, scope)):
            raise BadRequest(
                field="responders", problem=f"{rest} is a domain of ours; it can not answer itself"
            )
    return admitted


def _is_own(tx: Tx, scope: Scope, address: str) -> bool:
    """Tell whether an address reaches an inbox of ours, directly or as a sub-address."""
    local, _, domain = address.rpartition("@")
    base = tenants.inbox(tx, scope, f"{local.partition('+')[0]}@{domain}".lower())
    return tenants.inbox(tx, scope, address.lower()) is not None or (base is not None and base.sub_addresses)


def schedule_named(tx: Tx, scope: Scope, name: str) -> Schedule:
    """Return the newest version of a schedule.

    Raises:
        UnknownSchedule: there is none of that name.
    """
    stored = schedules.schedule_policy(tx, scope, name)
    if stored is None:
        known = ", ".join(schedules.schedule_names(tx, scope)) or "none yet"
        raise UnknownSchedule(name=name, known=known)
    return policies.from_policy(name, *stored)


def deadline(work: Work, inbox: Inbox, recipient: str, schedule: Schedule, wanted: str) -> datetime:
    """Return expires_at: the wanted deadline, else the abandon time + 5 business days, at most 30 days.

    Raises:
        DeadlineInThePast, DeadlineTooFar, BadRequest: it can not be kept.
    """
    calendar, _ = calendars.of(work.tx, work.scope, recipient, inbox)
    if wanted:
        expires_at = policies.deadline(wanted, work.now, calendar)
        check_deadline(expires_at, work.now)
        return expires_at
    abandoned = plans.plan(schedule, nudges_made=0, since=work.now, calendar=calendar, end=None)[-1]
    return min(policies.deadline(f"{EXPIRES_AFTER_ABANDON}bd", abandoned, calendar), work.now + LONGEST)


def subject_digest(mail: Mail, admitted: tuple[str, ...]) -> str:
    """Return the digest of what is asked: recipients, words, files, responders; never times."""
    content: Json = {
        "to": sorted(mail.to),
        "cc": sorted(mail.cc),
        "subject": mail.subject,
        "text": mail.text,
        "html": mail.html,
        "attachments": [sha256(attachment.content).hexdigest() for attachment in mail.attachments],
        "responders": sorted(admitted),
    }
    return "sha256:" + sha256(delivery.canonical(content).encode()).hexdigest()
