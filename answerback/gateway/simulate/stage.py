"""One simulated gateway: the real parts over a database in memory, alive or dead, in virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TypeVar

from answerback.gateway import intake, keyring, sending, timers
from answerback.gateway.context import Caller, Context
from answerback.gateway.settings import Settings
from answerback.gateway.simulate import world
from answerback.gateway.simulate.edges import Crash, Killed, ScriptedRelay, VirtualClock, seeded_draw
from answerback.gateway.simulate.matchers import Observed
from answerback.gateway.simulate.scenario import Scenario
from answerback.gateway.verbs import table
from answerback.store import outbox
from answerback.store.session import Database

T = TypeVar("T")

#: instants one passage of time may stop at; more means that something is due for ever
MOST_STOPS = 20_000
#: what is due but not done (held clock, mail first) is looked at again after this, later on less often
LOOK_AGAIN, LOOK_RARELY, PATIENCE = timedelta(seconds=15), timedelta(minutes=15), 20


@dataclass
class Arrival:
    """One mail that reached us from outside, by its reference in the scenario."""

    octets: bytes
    #: what SMTP said after the final dot, 0 where nothing was said
    code: int
    #: it came after a mail with the same octets
    repeated: bool = False

    @property
    def identity(self) -> str:
        """What the mail is known by once stored."""
        return sha256(self.octets).hexdigest()


@dataclass
class Record:
    """What the outside saw and did, by the scenario's references."""

    arrivals: dict[str, Arrival] = field(default_factory=dict)
    #: what the verbs answered: {"status": code} and the result
    statuses: dict[str, int] = field(default_factory=dict)
    results: dict[str, Observed] = field(default_factory=dict)
    leases: dict[str, Observed] = field(default_factory=dict)
    #: Idempotency-Key → the message its first request answered
    parents: dict[str, str] = field(default_factory=dict)
    #: mails that come when the gateway is up again
    held: list[Callable[[], None]] = field(default_factory=list)
    accepted: int = 0
    errors: list[str] = field(default_factory=list)
    #: differences found by `check` events
    mismatches: list[str] = field(default_factory=list)


class Stage:
    """A scenario's gateway, its clock, its outside, and the record of what the outside saw."""

    def __init__(self, scenario: Scenario, runner: asyncio.Runner, db: Database) -> None:
        """Begin a scenario in an empty in-memory database."""
        self.scenario = scenario
        self.record = Record()
        self.clock = VirtualClock(scenario.now)
        self.relay = ScriptedRelay(self.clock)
        self.crash = Crash()
        self.runner = runner
        self.running = True
        self._lapses: list[datetime] = []
        self._draw = seeded_draw(scenario.id)
        self._starts = 0
        self._db = db
        self._db.migrate()
        self._ring = keyring.generate(_octets(scenario.id))
        self.context = self._wired()
        self.world = world.build(self.context, scenario)
        self.tick = timers.Tick(self.context)

    def _wired(self) -> Context:
        self._starts += 1
        return Context(
            db=self._db,
            keyring=self._ring,
            # The defaults: an operator's file and environment must not change what a scenario shows.
            settings=Settings.model_construct(tenant=world.SCOPE.tenant),
            clock=self.clock,
            senders={"email": self.relay},
            owner=f"simulation:{self._starts}",
            draw=self._draw,
            crash=self.crash,
            wake=lambda _part: None,
        )

    def do(self, work: Callable[[], T]) -> T | None:
        """Let the gateway do something; None where it is dead, dies, or fails (which is recorded)."""
        if not self.running:
            return None
        try:
            return work()
        except Killed:
            self.die()
        except BaseExceptionGroup as group:
            self._fail(group)
        except Exception as error:  # noqa: BLE001 - a fault of the product is what a simulation is to show
            self.record.errors.append(f"{type(error).__name__}: {error}")
        return None

    def _fail(self, group: BaseExceptionGroup[BaseException]) -> None:
        """A death anywhere in a group of tasks is everybody's; else it is an error like any other."""
        if group.subgroup(Killed):
            self.die()
        elif isinstance(group, Exception):
            self.record.errors.append(f"{type(group).__name__}: {group}")
        else:
            raise group

    def die(self) -> None:
        """End the process without a word; what it was handing over keeps its lease."""
        self.running = False
        self._lapses.append(self.clock.now() + sending.lease(self.context))

    def start(self) -> None:
        """Start the gateway over the same database; what waits outside comes in."""
        self.context = self._wired()
        self.running = True
        self.do(lambda: intake.recover(self.context))
        self.tick = timers.Tick(self.context)
        held, self.record.held = self.record.held, []
        for arrive in held:
            arrive()
        self.beat()

    def call(self, name: str, caller: Caller, fields: Observed, key: str = "") -> Observed:
        """Return what a verb answers, through the table every door uses."""
        verb = table.BY_NAME[name]
        return table.call(self.context, caller, verb, verb.request(**fields), key)

    def settle(self) -> int:
        """Process what came in and hand over what is ready, until nothing is left; return how much it was."""
        done = 0
        while self.running and (step := self.do(self._settle_once) or 0):
            done += step
        return done

    def _settle_once(self) -> int:
        done = intake.process_all(self.context)
        with self.context.db.read() as tx:
            ready = outbox.ready(tx, self.clock.now(), 1)
        return done + (self.runner.run(sending.drain(self.context)) if ready else 0)

    def beat(self) -> int:
        """Let what is due happen, then settle; return how much was done."""
        done = 0
        while self.running and (step := self.do(self.tick) or 0):
            done += step
        return done + self.settle()

    def pass_until(self, target: datetime, *, including: bool) -> None:
        """Let time pass; whatever falls due on the way happens at its instant.

        What is due exactly at the target happens only with `including`: events of that instant come first.
        """
        fruitless = 0
        for _ in range(MOST_STOPS):
            stop = self._next_stop(fruitless)
            if stop is None or stop > target or (stop == target and not including):
                break
            self.clock.pass_until(stop)
            fruitless = 0 if self.beat() else fruitless + 1
        else:
            self.record.errors.append(f"something is due for ever at {self.clock.now().isoformat()}")
        self.clock.pass_until(target)
        if including:
            self.beat()

    def _next_stop(self, fruitless: int) -> datetime | None:
        due = self.do(self._next_due)
        if due is None:
            return None
        pause = timedelta()
        if fruitless:
            pause = LOOK_AGAIN if fruitless < PATIENCE else LOOK_RARELY
        return max(due, self.clock.now() + pause)

    def _next_due(self) -> datetime | None:
        now = self.clock.now()
        with self.context.db.read() as tx:
            attempt = outbox.next_attempt(tx)
            lost = bool(outbox.lapsed(tx, now))
        self._lapses = [instant for instant in self._lapses if instant > now]
        known = [self.tick.next(), attempt, now if lost else None, *self._lapses]
        return min((instant for instant in known if instant), default=None)


def _octets(seed: str) -> Callable[[int], bytes]:
    """Return a source of octets for a keyring nobody keeps; the same in every run."""
    draw = seeded_draw(f"{seed}/keyring")
    return lambda count: b"".join(draw().to_bytes(8) for _ in range(-(-count // 8)))[:count]
