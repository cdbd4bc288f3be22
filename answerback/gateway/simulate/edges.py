"""The scripted world outside: a virtual clock, a relay that fails on command, a death on command."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256

from answerback.channels.base import Note
from answerback.model import Envelope, Outcome, Receipt, RecipientResult, value

#: the crash point behind each `where` of a `fault`, besides our own names of them
POINTS = {
    "before_commit": "received",
    "after_commit": "stored",
    "after_smtp_250": "after_send",
}


class Killed(BaseException):
    """The simulated process is dead; no handler of the product may catch this, as none catches SIGKILL."""


class VirtualClock:
    """Wall and monotonic time that move only when told to."""

    def __init__(self, wall: datetime) -> None:
        self._wall = wall
        self._steady = 0.0

    def now(self) -> datetime:
        """Return the wall time, aware, UTC."""
        return self._wall

    def monotonic(self) -> float:
        """Return the seconds that passed since the scenario began."""
        return self._steady

    def pass_until(self, wall: datetime) -> None:
        """Let time pass until the wall shows an instant; one that is past already changes nothing."""
        gone = wall - self._wall
        if gone > timedelta():
            self._wall = wall
            self._steady += gone.total_seconds()

    def step(self, wall: datetime) -> None:
        """Set the wall clock; no time passes."""
        self._wall = wall


class Crash:
    """A crash hook that kills once at the armed point."""

    def __init__(self) -> None:
        self._armed = ""

    def arm(self, point: str) -> None:
        """Die when that point is passed next."""
        self._armed = point

    def __call__(self, point: str) -> None:
        """Raise Killed where this point is armed."""
        if point == self._armed:
            self._armed = ""
            raise Killed(point)


@value
class Refusal:
    """How a relay behaves towards some or all recipients, for a number of hand-overs."""

    #: `rcpt_reply`, `data_reply`, `unreachable`, `lost_after_dot`, `rename`
    kind: str
    #: what it says, beginning with the SMTP code; for `rename` the id it puts in the place of ours
    reply: str = ""
    #: "" for every recipient
    recipient: str = ""


@value
class WireCopy:
    """One mail a relay took: the octets and envelope of one SMTP transaction."""

    at: datetime
    envelope: Envelope
    accepted: tuple[str, ...]


@dataclass
class ScriptedRelay:
    """A Sender that takes everything, unless a fault is set; what it took can be looked at."""

    clock: VirtualClock
    wire: list[WireCopy] = field(default_factory=list)
    #: octets' Message-ID → the id this relay puts in its place
    renamed: dict[bytes, str] = field(default_factory=dict)
    _faults: list[tuple[Refusal, int | None]] = field(default_factory=list)

    def fail(self, refusal: Refusal, times: int | None) -> None:
        """Behave like this for the next `times` hand-overs it concerns, for ever with None."""
        self._faults.append((refusal, times))

    def heal(self) -> None:
        """Take everything again."""
        self._faults.clear()

    async def close(self) -> None:
        """Nothing is open."""

    async def hand_over(self, envelope: Envelope, *, note: Note) -> Receipt:
        """Return what the script says about every recipient; see `channels.base.Sender`."""
        fault = self._fault(envelope)
        if fault and fault.kind == "unreachable":
            return _all(envelope, RecipientResult(outcome=Outcome.DEFERRED, text="can not be reached"))
        results = {name: self._at_rcpt(fault, name) for name in envelope.recipients}
        accepted = tuple(name for name, result in results.items() if result.outcome is Outcome.SENT)
        if not accepted:
            return Receipt(results=results)
        note("during_send")
        if fault and fault.kind == "data_reply":
            return Receipt(results=results | dict.fromkeys(accepted, _said(fault.reply)))
        self.wire.append(WireCopy(at=self.clock.now(), envelope=envelope, accepted=accepted))
        if fault and fault.kind == "lost_after_dot":
            lost = RecipientResult(outcome=Outcome.UNKNOWN, text="connection lost")
            return Receipt(results=results | dict.fromkeys(accepted, lost))
        given = fault.reply if fault and fault.kind == "rename" else self._renamed(envelope)
        return Receipt(results=results, provider_id=given)

    def _fault(self, envelope: Envelope) -> Refusal | None:
        for place, (refusal, times) in enumerate(self._faults):
            if refusal.recipient and refusal.recipient not in envelope.recipients:
                continue
            left = None if times is None else times - 1
            self._faults[place : place + 1] = [] if left == 0 else [(refusal, left)]
            return refusal
        return None

    def _renamed(self, envelope: Envelope) -> str:
        return next((name for own, name in self.renamed.items() if own in envelope.octets), "")

    def _at_rcpt(self, fault: Refusal | None, name: str) -> RecipientResult:
        if fault and fault.kind == "rcpt_reply" and fault.recipient in ("", name):
            return _said(fault.reply)
        return RecipientResult(outcome=Outcome.SENT, code=250, text="2.0.0 taken")


def _all(envelope: Envelope, result: RecipientResult) -> Receipt:
    return Receipt(results=dict.fromkeys(envelope.recipients, result))


def _said(reply: str) -> RecipientResult:
    code, _, text = reply.partition(" ")
    outcome = Outcome.FAILED if code.startswith("5") else Outcome.DEFERRED
    return RecipientResult(outcome=outcome, code=int(code), text=text)


def seeded_draw(seed: str) -> Callable[[], int]:
    """Return a source of 64-bit numbers that is the same in every run with that seed."""
    count = itertools.count()
    return lambda: int.from_bytes(sha256(f"{seed}/{next(count)}".encode()).digest()[:8])
