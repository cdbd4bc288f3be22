"""The clock: one tick at the earliest due time, one safety interval; the row is the truth."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from apscheduler.schedulers.asyncio import AsyncIOScheduler
from apscheduler.triggers.date import DateTrigger
from apscheduler.triggers.interval import IntervalTrigger

from answerback.gateway import advance, intake, sending
from answerback.model import Scope
from answerback.store import conversations as talks
from answerback.store import inbound, waitpoints
from answerback.store import waits as waiting
from answerback.waits import events

if TYPE_CHECKING:
    from answerback.gateway.context import Context

log = structlog.get_logger()

SAFETY = timedelta(seconds=15)
#: wall against monotonic: a larger difference since the last tick means the wall was moved
JUMP = timedelta(seconds=60)
#: how long nothing is claimed after a jump
HOLD = timedelta(minutes=2)
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
        context, done = self._context, 0
        with context.db.read() as tx:
            due = waiting.due_waits(tx, context.clock.now(), BATCH)
        for scope, wait_id in due:
            done += self._due(scope, wait_id)
        return done

    def _due(self, scope: Scope, wait_id: str) -> int:
        context = self._context
        with context.db.write() as tx:
            work = context.work(tx, scope)
            row = waiting.wait(tx, scope, wait_id, lock=True)
            if row is None or row.wait.due_at is None or row.wait.due_at > work.now:
                return 0
            conversation = talks.conversation(tx, scope, row.conversation_id)
            assert conversation is not None
            if inbound.received_before(tx, scope, conversation.inbox_id, work.now):
                return 0
            due = row.wait.due_at.isoformat()
            after = advance.advance(work, wait_id, events.Due(), cause={"due_at": due})
            context.crash("queued")
        return int(after != row)

    def _waitpoints(self) -> int:
        context = self._context
        with context.db.read() as tx:
            due = waitpoints.due_waitpoints(tx, context.clock.now(), BATCH)
        for scope, waitpoint_id in due:
            with context.db.write() as tx:
                advance.expire(context.work(tx, scope), waitpoint_id)
        return len(due)

    def next(self) -> datetime | None:
        """Return the earliest due time stored, None where nothing waits."""
        with self._context.db.read() as tx:
            times = [waiting.next_due(tx), waitpoints.next_expiry(tx)]
        return min((instant for instant in times if instant), default=None)


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

    def start(self) -> None:
        """Start the clock: a tick now, and one every 15 seconds whatever happens."""
        now = self._context.clock.now()
        self._scheduler.add_job(
            self._run, IntervalTrigger(seconds=int(SAFETY.total_seconds())), next_run_time=now
        )
        self._scheduler.start()

    async def stop(self) -> None:
        """Let a running tick end, then stop the clock; what is due stays in its rows."""
        self._scheduler.pause()
        async with self._running:
            self._scheduler.shutdown(wait=False)

    async def pull(self) -> None:
        """Arm the tick at the earliest due time, earlier or later than it was."""
        earliest = await asyncio.to_thread(self._tick.next)
        if earliest is None or earliest == self._armed:
            return
        self._armed = earliest
        # Never from inside the job itself under its own id: the run would be skipped and the clock stop.
        self._scheduler.add_job(
            self._at_due, DateTrigger(earliest), id="tick", replace_existing=True, max_instances=3
        )

    async def _at_due(self) -> None:
        self._armed = None
        await self._run()

    async def _run(self) -> None:
        async with self._running:
            try:
                while await asyncio.to_thread(self._tick):
                    continue
            except Exception:
                # The top of a loop: rows keep their due time and come up again at the next tick.
                log.exception("tick failed", action="tick")
        await self.pull()
