"""One event happening to one wait: what the table asks about, and what may have to be done."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from answerback.model import Schedule, Wait, value
from answerback.waits.addresses import canonical
from answerback.waits.business_days import Calendar
from answerback.waits.events import Event

Audience = Literal["waiter", "owner", "operator"]


@value
class SendNudge:
    """Send nudge `number` in the thread, to those whose answer is needed."""

    number: int
    to: tuple[str, ...]


@value
class WithdrawNudges:
    """Take back every nudge of this wait that has not been handed over."""


@value
class Tell:
    """Put an event into the mailboxes of its audience."""

    event: str
    audience: tuple[Audience, ...]
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
    #: the waitpoint's deadline, None where the wait follows no waitpoint
    expires_at: datetime | None = None
    #: the wait follows no waitpoint, or one that is still open and whose deadline lies ahead
    waitpoint_open: bool = True
    #: a message of this wait is queued, deferred or being handed over
    unsent: bool = False
    #: a person has something to decide about the conversation
    review_open: bool = False
    #: addresses of the required recipients: To addresses that are responders
    required: tuple[str, ...] = ()


@value
class Moment:
    """One event happening to one wait; `wait` is a fresh one where the event may begin it."""

    wait: Wait
    event: Event
    facts: Facts
    now: datetime

    @property
    def due(self) -> datetime:
        """When the next step is due; the wait runs."""
        return self.wait.plan[0]

    @property
    def counts_days(self) -> bool:
        """Tell whether the step that is next counts business days, and so keeps to the window."""
        gaps = self.facts.schedule.gaps
        return gaps[min(self.wait.nudges, len(gaps) - 1)].unit == "bd"

    @property
    def reachable(self) -> tuple[str, ...]:
        """The required recipients that are not known to be dead."""
        return tuple(one for one in self.facts.required if canonical(one) not in self.wait.dead)
