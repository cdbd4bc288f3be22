"""The clock: one tick at the earliest due time, one safety interval; the row is the truth."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from answerback.errors import DatabaseBusy
from answerback.gateway import advance, intake, sending
from answerback.model import OPEN_STATES, Scope
from answerback.store import outbox, reviews, waitpoints
from answerback.store import waits as waiting
from answerback.waits import events

if TYPE_CHECKING:
    from answerback.gateway.context import Context, Work

log = structlog.get_logger()

SAFETY = timedelta(seconds=15)
#: wall against monotonic: a larger difference since the last tick means the wall was moved
JUMP = timedelta(seconds=60)
#: how long nothing is claimed after a jump
HOLD = timedelta(minutes=2)
#: where a row stays due it is looked at again no sooner than this
SHORTEST = timedelta(seconds=1)
#: how long mail that can not be processed may hold up the end of a waitpoint
LONGEST_DELAY = timedelta(minutes=15)
#: why a row that failed is before a person
REASON = "unprocessable"
BATCH = 200


class Tick:
    """Decides everything that is due; remembers only what both clocks said last time."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last = (context.clock.now(), context.clock.monotonic())
        self._held_until = 0.0

    def __call__(self) -> int:
        """Process what came in, then let what is due happen; return how many rows were due.

        While the wall clock has just jumped nothing is claimed.
        """
        if self._jumped():
            return 0
        sending.recover(self._context)
        # Whoever wrote before this instant is not nagged.
        intake.process_all(self._context)
        done = self._waits() + self._waitpoints()
        if done:
            self._context.wake("outbox")
            self._context.wake("mailbox")
        return done

    def _jumped(self) -> bool:
        now, monotonic = self._context.clock.now(), self._context.clock.monotonic()
        wall, steady = now - self._last[0], timedelta(seconds=monotonic - self._last[1])
        self._last = (now, monotonic)
        if abs(wall - steady) > JUMP:
            self._held_until = monotonic + HOLD.total_seconds()
            log.warning("the clock was moved", action="hold_timers", seconds=(wall - steady).total_seconds())
        return monotonic < self._held_until

    def _waits(self) -> int:
        context = self._context
        with context.db.read() as tx:
            due = waiting.due_waits(tx, context.clock.now(), BATCH)
        return sum(self._alone(self._due, scope, wait_id) for scope, wait_id in due)

    def _due(self, scope: Scope, wait_id: str) -> int:
        context = self._context
        with context.db.write() as tx:
            work = context.work(tx, scope)
            row = waiting.wait(tx, scope, wait_id, lock=True)
            if row is None or row.wait.due_at is None or row.wait.due_at > work.now:
                return 0
            if intake.unread(work, row.conversation_id):
                return 0
            due = row.wait.due_at.isoformat()
            after = advance.advance(work, wait_id, events.Due(), cause={"due_at": due})
            context.crash("queued")
        return int(after != row)

    def _waitpoints(self) -> int:
        context = self._context
        with context.db.read() as tx:
            due = waitpoints.due_waitpoints(tx, context.clock.now(), BATCH)
        return sum(self._alone(self._expire, scope, waitpoint_id) for scope, waitpoint_id in due)

    def _expire(self, scope: Scope, waitpoint_id: str) -> int:
        context = self._context
        with context.db.write() as tx:
            work = context.work(tx, scope)
            waitpoint = waitpoints.waitpoint(tx, scope, waitpoint_id, lock=True)
            if waitpoint is None or waitpoint.state not in OPEN_STATES:
                return 0
            late = work.now >= waitpoint.expires_at + LONGEST_DELAY
            if not late and intake.unread(work, waitpoint.conversation_id):
                return 0
            advance.expire(work, waitpoint_id)
        return 1

    def _alone(self, decide: Callable[[Scope, str], int], scope: Scope, row_id: str) -> int:
        """Let one row happen; one that fails goes to a person and stops none of the others."""
        try:
            return decide(scope, row_id)
        except DatabaseBusy:
            log.warning("database busy", action="tick", row_id=row_id)
        except Exception as error:
            # The top of a loop: the row keeps its due time unless it can be set aside.
            log.exception("row failed", action="tick", row_id=row_id)
            set_aside(self._context, scope, row_id, type(error).__name__)
        return 0

    def next(self) -> datetime | None:
        """Return the earliest instant stored at which something is due, None where nothing waits."""
        with self._context.db.read() as tx:
            times = [waiting.next_due(tx), waitpoints.next_expiry(tx), outbox.next_lapse(tx)]
        return min((instant for instant in times if instant), default=None)

    def look_at(self) -> datetime | None:
        """Return when to look next: in a second where a row stays due, at its end during a hold."""
        earliest = self.next()
        if earliest is None:
            return None
        clock = self._context.clock
        held = timedelta(seconds=self._held_until - clock.monotonic())
        return max(earliest, clock.now() + max(held, SHORTEST))


def set_aside(context: Context, scope: Scope, row_id: str, problem: str) -> None:
    """Put a wait or waitpoint that failed before a person, once, and pause its wait; what fails is logged."""
    for attempt in (_review, _pause):
        try:
            with context.db.write() as tx:
                attempt(context.work(tx, scope), row_id, problem)
        except Exception:
            # The top of a loop: the row stays due and comes up again.
            log.exception("row not set aside", action="tick", row_id=row_id)


def _review(work: Work, row_id: str, problem: str) -> None:
    waitpoint = waitpoints.waitpoint(work.tx, work.scope, row_id)
    row = None if waitpoint else waiting.wait(work.tx, work.scope, row_id)
    place = waitpoint or row
    assert place is not None
    about = advance.About(conversation_id=place.conversation_id, wait_id=row.id if row else "")
    known = reviews.reviews(work.tx, work.scope)
    if not any(one.reason == REASON and one.details.get("row_id") == row_id for one in known):
        advance.open_review(work, REASON, about, {"row_id": row_id, "problem": problem})


def _pause(work: Work, row_id: str, problem: str) -> None:
    row = waiting.wait_for(work.tx, work.scope, row_id) or waiting.wait(work.tx, work.scope, row_id)
    if row:
        advance.advance(work, row.id, events.Failed(), cause={"problem": problem})


class Timers:
    """APScheduler as the clock of a running server; it stores nothing (measured: see the docs on timers)."""

    def __init__(self, context: Context) -> None:
        self._tick = Tick(context)
        self._context = context
        self._scheduler = AsyncIOScheduler(
            timezone="UTC", job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1}
        )
        self._armed: datetime | None = None
        self._running = asyncio.Lock()
        self._stopping = False

    def start(self) -> None:
        """Start the clock: a tick now, and one every 15 seconds whatever happens."""
        now = self._context.clock.now()
        self._scheduler.add_job(
            self._run, IntervalTrigger(seconds=int(SAFETY.total_seconds())), next_run_time=now
        )
        self._scheduler.start()

    async def stop(self) -> None:
        """Let a running tick end, then stop the clock; what is due stays in its rows."""
        self._stopping = True
        self._scheduler.pause()
        async with self._running:
            self._scheduler.shutdown(wait=False)

    async def pull(self) -> None:
        """Arm the tick for the next look, unless it comes as early already.

        It is never armed later than it was, so that many pulls in a row do not keep it away; every tick
        arms anew.
        """
        instant = await asyncio.to_thread(self._tick.look_at)
        if instant is None or (self._armed is not None and self._armed <= instant):
            return
        self._armed = instant
        # Never from inside the job itself under its own id: the run would be skipped and the clock stop.
        self._scheduler.add_job(
            self._run, DateTrigger(instant), id="tick", replace_existing=True, max_instances=3
        )

    async def _run(self) -> None:
        async with self._running:
            try:
                while await asyncio.to_thread(self._tick):
                    if self._stopping:
                        break
            except Exception:
                # The top of a loop: rows keep their due time and come up again at the next tick.
                log.exception("tick failed", action="tick")
        self._armed = None
        await self.pull()
