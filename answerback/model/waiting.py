"""What happens while we wait: schedules, waits, waitpoints, resolutions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Literal

from answerback.model.inbound import Trust
from answerback.model.scope import Json, value


class WaitState(StrEnum):
    """The follow-up clock of one conversation."""

    WAITING = "waiting"
    NUDGED = "nudged"
    PAUSED = "paused"
    REPLIED = "replied"
    ABANDONED = "abandoned"
    CANCELLED = "cancelled"


RUNNING = frozenset({WaitState.WAITING, WaitState.NUDGED})
ENDED = frozenset({WaitState.REPLIED, WaitState.ABANDONED, WaitState.CANCELLED})


@value
class Gap:
    """One step of a schedule: `amount` business days, or plain seconds that ignore windows."""

    amount: int
    unit: Literal["bd", "s"]


@value
class Schedule:
    """An operator's named, versioned follow-up policy.

    `gaps` has one entry per nudge and a last one before the wait is abandoned.
    """

    name: str
    version: int
    gaps: tuple[Gap, ...]
    on_abandon: Literal["fail_step", "tell_owner", "hand_to_person", "stop_sequence"] = "tell_owner"
    sequence: bool = False
    #: business days a wait moves when an absence names no return date
    away_default: int = 3
    #: business days all moves together may reach
    away_limit: int = 20
    #: nudge text template; "" takes the built-in one
    nudge_text: str = ""


@value
class Wait:
    """The wait of one conversation: the values the machine decides on."""

    state: WaitState
    #: why paused, abandoned or cancelled; "" while running
    reason: str = ""
    #: nudges made so far
    nudges: int = 0
    #: the instant the current plan counts from
    since: datetime
    #: due times of the remaining steps: nudges, then the abandonment; kept over a pause for a stalled waiter,
    #: else empty when not running
    plan: tuple[datetime, ...] = ()
    #: times an absence moved the plan, and the instant the first move started from
    moves: int = 0
    moved_from: datetime | None = None
    #: state to return to when a pause ends
    resume_to: WaitState | None = None
    #: required recipients that answered automatically since the last send
    away: tuple[str, ...] = ()
    #: required recipients that can not be reached
    dead: tuple[str, ...] = ()

    @property
    def due_at(self) -> datetime | None:
        """The next instant something happens, None when not running."""
        return self.plan[0] if self.state in RUNNING and self.plan else None


class WaitpointState(StrEnum):
    """The life of an expectation."""

    OPEN = "open"
    STALLED = "stalled"
    RESOLVED = "resolved"
    EXPIRED = "expired"
    CANCELLED = "cancelled"


OPEN_STATES = frozenset({WaitpointState.OPEN, WaitpointState.STALLED})


class Timing(StrEnum):
    """When a reply came, seen from its waitpoint."""

    EARLY = "early"
    ON_TIME = "on_time"
    AFTER_ABANDON = "after_abandon"
    LATE = "late"
    AFTER_RESOLVED = "after_resolved"
    AFTER_CANCELLED = "after_cancelled"


@value
class Waitpoint:
    """A reply is expected for this correlation key, by this deadline."""

    id: str
    state: WaitpointState
    conversation_id: str
    #: the outbound message it was opened with
    message_id: str
    #: `agent:<id>`
    waiter: str
    event_type: str = "reply"
    correlation_key: str
    #: `email:pat@supplier.example`, `email-domain:supplier.example`
    responders: tuple[str, ...]
    opened_at: datetime
    expires_at: datetime
    subject_digest: str
    min_trust: Trust = Trust.UNAUTHENTICATED
    follows: str = ""


@value
class Resolution:
    """The one reply that closed a waitpoint."""

    waitpoint_id: str
    message_id: str
    #: the row of the responder set that admitted it
    responder: str
    #: who wrote it, `email:…`
    author: str
    channel: str
    evidence_level: Literal["channel_claim", "relay_session", "access_aas_ref"]
    trust: Trust
    timing: Timing
    responded_at: datetime
    evidence: Json
