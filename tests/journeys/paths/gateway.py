"""A whole gateway in memory: the real paths and database, a clock one can move, a relay that keeps copies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio

from answerback.channels.base import Note
from answerback.channels.mail.reception import Delivery
from answerback.gateway import intake, sending, timers
from answerback.gateway.context import Caller, Context
from answerback.gateway.verbs import table
from answerback.model import Envelope, Outcome, Receipt, RecipientResult, Scope

LIVE = Scope(tenant="default", environment="live")


@dataclass
class MovableClock:
    """A clock that stands still until it is moved; `step` moves the wall alone."""

    wall: datetime = datetime(2026, 12, 1, 10, tzinfo=UTC)
    steady: float = 0.0

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        return self.steady

    def go(self, delta: timedelta) -> None:
        self.wall += delta
        self.steady += delta.total_seconds()

    def step(self, delta: timedelta) -> None:
        self.wall += delta


@dataclass
class KeepingRelay:
    """Takes every envelope and answers each recipient as it was told to."""

    copies: list[Envelope] = field(default_factory=list)
    answers: dict[str, RecipientResult] = field(default_factory=dict)
    provider_id: str = ""

    async def hand_over(self, envelope: Envelope, *, note: Note) -> Receipt:
        note("during_send")
        self.copies.append(envelope)
        taken = RecipientResult(outcome=Outcome.SENT, code=250, text="2.0.0 taken")
        results = {name: self.answers.get(name, taken) for name in envelope.recipients}
        return Receipt(results=results, provider_id=self.provider_id)

    async def close(self) -> None:
        return None


@dataclass
class Gateway:
    """The parts of one gateway and the verbs of its only agent."""

    context: Context
    clock: MovableClock
    relay: KeepingRelay
    agent: Caller
    operator: Caller

    def call(self, verb: str, **given: object) -> dict[str, Any]:
        known = table.BY_NAME[verb]
        caller = self.operator if known.person or not known.scope else self.agent
        return table.call(self.context, caller, known, known.request.model_validate(given))

    def ask(self, key: str = "po-4711", **given: object) -> dict[str, Any]:
        mail = {"to": ["pat@supplier.example"], "subject": "PO 4711", "text": "When will it be delivered?"}
        expect = {"key": key, "schedule": given.pop("schedule", "vendor-quote")}
        return self.call("send", **mail | given, expect=expect)

    def drain(self) -> None:
        while anyio.run(sending.drain, self.context):
            continue

    def tick(self) -> None:
        timers.Tick(self.context)()
        self.drain()

    def receive(self, octets: bytes, recipient: str, mail_from: str = "pat@supplier.example") -> None:
        delivery = Delivery(
            mail_from=mail_from,
            recipients=(recipient,),
            octets=octets,
            peer="",
            helo="",
            tls=False,
            smtputf8=False,
        )
        intake.keep(self.context, [delivery])
        intake.process_all(self.context)

    def events(self) -> list[dict[str, Any]]:
        return [item["event"] for item in self.call("mailbox.read", since=0)["items"]]

    def types(self) -> list[str]:
        return [str(event["type"]).removeprefix("answerback.") for event in self.events()]

    def wait_state(self) -> str:
        return str(self.call("waits.list")["waits"][0]["state"])


Start = Callable[..., Gateway]
