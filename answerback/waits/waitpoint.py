"""Which deadlines a waitpoint can have."""

from __future__ import annotations

from datetime import datetime, timedelta

from answerback.errors import DeadlineInThePast, DeadlineTooFar

#: the longest anything is waited for
LONGEST = timedelta(days=30)


def check_deadline(expires_at: datetime, now: datetime) -> None:
    """Return where a waitpoint opened now can expire then.

    Raises:
        DeadlineInThePast, DeadlineTooFar: it can not.
    """
    if expires_at <= now:
        raise DeadlineInThePast(deadline=expires_at.isoformat())
    if expires_at > now + LONGEST:
        raise DeadlineTooFar(deadline=expires_at.isoformat())
