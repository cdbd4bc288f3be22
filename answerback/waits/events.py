"""What can happen to a wait, in the past tense."""

from __future__ import annotations

from datetime import datetime

from answerback.model import value


@value
class Queued:
    """The message was stored and is on its way out; the clock starts with it."""

    at: datetime


@value
class Sent:
    """A message of this wait has really left."""

    at: datetime


@value
class Due:
    """The clock reached the wait's due time, or passed it."""


@value
class Replied:
    """A reply came that counts as the answer."""


@value
class WaitpointExpired:
    """The deadline of the wait's waitpoint has passed."""


@value
class Undeliverable:
    """A recipient can not be reached."""

    recipient: str
    #: bounced, complained, opted_out, recipient_suppressed
    reason: str


@value
class AutoReplied:
    """A recipient's machine answered: an absence, or a notice without a date."""

    recipient: str
    #: the instant the person is back, aware; None where the notice names none
    return_date: datetime | None = None


@value
class SubmissionUnknown:
    """Nobody can say whether a message of this wait left."""


@value
class Failed:
    """A message of this wait did not leave, and not because its address is dead."""


@value
class NudgeHeld:
    """A nudge waits for somebody's approval."""


@value
class QuotaExceeded:
    """A nudge would have gone over the tenant's quota."""


@value
class WaiterStalled:
    """Whoever waits gave no sign of life in time."""


@value
class WaiterBack:
    """Whoever waits gave a sign of life again."""


@value
class Resumed:
    """A person lets the wait go on.

    The gap of the next step counts from now, unless an instant is given.
    """

    #: the next step is due one business day after it
    not_before: datetime | None = None


@value
class NudgeReleased:
    """A held nudge was approved."""


@value
class NudgeRejected:
    """A held nudge was refused."""


@value
class HoldExpired:
    """Nobody decided about a held nudge in time."""


@value
class AnsweredElsewhere:
    """The answer came in another conversation."""


@value
class WaitpointCancelled:
    """The wait's waitpoint was cancelled."""

    reason: str = "waitpoint_cancelled"


@value
class Cancelled:
    """Somebody called the wait off."""

    reason: str = "cancelled"


@value
class OwnerWrote:
    """The owner wrote into the conversation by hand (seen in Sent)."""


@value
class Misread:
    """The agent or a person says: what counted as the answer was none."""


@value
class Declined:
    """The recipient does not want to be asked again."""


@value
class Paused:
    """A person stopped the clock."""


@value
class Rescheduled:
    """A person set the next due time; it is obeyed literally."""

    at: datetime


Event = (
    Queued
    | Sent
    | Due
    | Replied
    | WaitpointExpired
    | Undeliverable
    | AutoReplied
    | SubmissionUnknown
    | Failed
    | NudgeHeld
    | QuotaExceeded
    | WaiterStalled
    | WaiterBack
    | Resumed
    | Rescheduled
    | NudgeReleased
    | NudgeRejected
    | HoldExpired
    | AnsweredElsewhere
    | WaitpointCancelled
    | Cancelled
    | OwnerWrote
    | Misread
    | Declined
    | Paused
)
