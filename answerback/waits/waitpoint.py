"""Which deadlines a waitpoint can have, and how a reply stands in time to it."""

from __future__ import annotations

from datetime import datetime, timedelta

from answerback.errors import DeadlineInThePast, DeadlineTooFar
from answerback.model import Timing, Waitpoint, WaitpointState, WaitState

#: the longest anything is waited for
LONGEST = timedelta(days=30)
CLOSED = {
    WaitpointState.RESOLVED: Timing.AFTER_RESOLVED,
    WaitpointState.EXPIRED: Timing.LATE,
    WaitpointState.CANCELLED: Timing.AFTER_CANCELLED,
}


def check_deadline(expires_at: datetime, now: datetime) -> None:
    """Make sure a waitpoint opened now can expire then.

    Raises:
        DeadlineInThePast, DeadlineTooFar: it can not.
    """
    if expires_at <= now:
        raise DeadlineInThePast(deadline=expires_at.isoformat())
    if expires_at - now > LONGEST:
        raise DeadlineTooFar(deadline=expires_at.isoformat())


def timing(waitpoint: Waitpoint, wait_state: WaitState | None, responded_at: datetime) -> Timing:
    """Return how a reply stands in time to its waitpoint.

    `responded_at` is the instant its octets were stored. `wait_state` is that of the wait that follows the
    waitpoint, None where there is none. `early` is said by what opens a waitpoint for a reply already there.
    """
    if waitpoint.state in CLOSED:
        return CLOSED[waitpoint.state]
    if responded_at > waitpoint.expires_at:
        return Timing.LATE
    return Timing.AFTER_ABANDON if wait_state is WaitState.ABANDONED else Timing.ON_TIME
