"""One event happening to one wait: what is asked about it and what it may cause."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from answerback.model import Schedule, Wait, value
from answerback.waits import events
from answerback.waits.business_days import Calendar


@value
class SendNudge:
    """Send nudge `number` to those whose answer is needed."""

    number: int
    to: tuple[str, ...]


@value
class WithdrawNudges:
    """Take back nudges that have not left."""


@value
class Tell:
    """Tell the waiter, the owner or the operator."""

    event: str
    audience: tuple[str, ...]
    reason: str = ""


@value
class OpenReview:
    """Put the wait before a person."""

    reason: str


Effect = SendNudge | WithdrawNudges | Tell | OpenReview


@value
class Facts:
    """What the table asks about besides the wait itself."""

    schedule: Schedule
    calendar: Calendar
    #: the waitpoint's deadline, None where the wait follows none
    expires_at: datetime | None
    #: it follows no waitpoint, or one that is open and whose deadline lies ahead
    waitpoint_open: bool
    #: a message of this wait has not left yet
    unsent: bool
    review_open: bool
    #: addresses whose answer is needed
    required: tuple[str, ...]


@value
class Step:
    """The wait after an event, what is to be done, and the row that said so (None: no row fits)."""

    wait: Wait | None
    effects: tuple[Effect, ...] = ()
    rule: str | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """One event happening to one wait."""

    wait: Wait
    event: events.Event
    facts: Facts
    now: datetime
