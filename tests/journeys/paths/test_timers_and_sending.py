"""One fault stays one fault: the clock, the way out and the way in go on when a row, a key or a disk fails."""

# long because: one gateway, one seam after the other, in the order of the paths

from __future__ import annotations

import asyncio
import socket
import sqlite3
import threading
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from answerback.channels.mail.reception import Delivery
from answerback.errors import BadRequest, BadSettings, DatabaseBusy
from answerback.gateway import app, intake, sending, timers
from answerback.gateway.changes import Changes
from answerback.gateway.settings import Dkim, Http, Settings, SmtpIn, SmtpOut
from answerback.model import Envelope, OutboxState, Outcome, Receipt, RecipientResult
from answerback.store import inbound, outbox
from answerback.store.session import Database
from tests.journeys.paths.gateway import LIVE, Gateway, KeepingRelay, MovableClock

if TYPE_CHECKING:
    from pathlib import Path

    from answerback.channels.base import Note
    from tests.journeys.paths.gateway import Start

SECOND, MINUTE, HOUR, DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
PAT, KIM = "pat@supplier.example", "kim@supplier.example"
SENT = RecipientResult(outcome=Outcome.SENT, code=250, text="2.0.0 taken")
LATER = RecipientResult(outcome=Outcome.DEFERRED, code=450, text="4.2.0 later")
LOST = RecipientResult(outcome=Outcome.UNKNOWN)


def mail(number: int = 1) -> Delivery:
    octets = f"From: a@b.example\r\nMessage-ID: <{number}@b.example>\r\n\r\nhello {number}\r\n".encode()
    return Delivery(
        mail_from="a@b.example",
        recipients=("buyer@gateway.example",),
        octets=octets,
        peer="",
        helo="",
        tls=False,
        smtputf8=False,
    )


def ask_for_an_hour(gateway: Gateway, key: str) -> dict[str, Any]:
    expect = {"key": key, "schedule": "verification-code", "deadline": "1h"}
    return gateway.call("send", to=[PAT], subject="PO 4711", text="When?", expect=expect)


def reasons(gateway: Gateway) -> list[str]:
    return [str(one["reason"]) for one in gateway.call("reviews.list")["reviews"]]


def states(gateway: Gateway, message_id: object) -> list[OutboxState]:
    with gateway.context.db.read() as tx:
        return [copy.state for copy in outbox.copies(tx, LIVE, str(message_id))]


def fails_once(at: str, error: Exception) -> tuple[list[str], Note]:
    """A crash hook that raises at its first passing once the list names the point."""
    armed: list[str] = []

    def hook(point: str) -> None:
        if point == at and point in armed:
            armed.remove(point)
            raise error

    return armed, hook


# What comes in


def test_three_starts_cost_only_the_oldest_stored_mail(start: Start) -> None:
    gateway = start(external="all")
    for number in (1, 2, 3):
        intake.keep(gateway.context, [mail(number)])
        gateway.clock.go(SECOND)
    for _ in range(3):
        intake.recover(gateway.context)
    intake.process_all(gateway.context)
    assert reasons(gateway) == ["unprocessable"]
    assert gateway.types() == ["message.received.unauthenticated"] * 2


def test_a_start_that_finds_its_port_taken_counts_against_no_mail(start: Start, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'answerback.db'}"
    gateway = start(url=url)
    intake.keep(gateway.context, [mail()])
    with socket.create_server(("127.0.0.1", 0)) as taken:
        settings = Settings(
            home=tmp_path,
            smtp_in=SmtpIn(port=0),
            http=Http(port=taken.getsockname()[1]),
        )
        gateway.context.keyring.save(settings.keyring_path)
        with pytest.raises(BadSettings, match="running already"):
            asyncio.run(app.serve(settings, lambda _context, _changes: None, ready=lambda _listening: None))
    with gateway.context.db.read() as tx:
        found = inbound.next_received(tx, gateway.clock.now())
    assert found is not None
    assert found.attempts == 0


def test_a_passing_fault_of_the_database_leaves_a_mail_stored_to_be_read_again(start: Start) -> None:
    armed, hook = fails_once("matched", DatabaseBusy(name="db", problem="locked"))
    gateway = start(crash=hook, external="all")
    intake.keep(gateway.context, [mail()])
    armed.append("matched")
    with pytest.raises(DatabaseBusy):
        intake.process_all(gateway.context)
    assert reasons(gateway) == []
    assert intake.process_all(gateway.context) == 1
    assert gateway.types() == ["message.received.unauthenticated"]


def test_a_locked_database_is_busy_and_a_wrong_statement_is_a_fault_of_ours(tmp_path: Path) -> None:
    path = tmp_path / "answerback.db"
    db = Database.open(f"sqlite:///{path}", create=True)
    with db.write() as tx:
        tx.connection.exec_driver_sql("PRAGMA busy_timeout=0")
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(DatabaseBusy, match="locked"), db.write():
        pass
    holder.close()
    with pytest.raises(Exception, match="no such table") as wrong, db.read() as tx:
        tx.connection.exec_driver_sql("SELECT 1 FROM nowhere")
    assert not isinstance(wrong.value, DatabaseBusy)
    db.close()


def test_a_mail_another_thread_settled_meanwhile_is_not_put_to_review(start: Start) -> None:
    gateway = start(external="all")
    intake.keep(gateway.context, [mail()])
    with gateway.context.db.read() as tx:
        seen = inbound.next_received(tx, gateway.clock.now())
    assert seen is not None
    intake.process_all(gateway.context)
    intake.give_up(gateway.context, seen)
    assert reasons(gateway) == []


def test_looking_for_mail_writes_nothing(start: Start) -> None:
    gateway = start()
    before = gateway.context.db.version()
    assert intake.process_all(gateway.context) == 0
    assert gateway.context.db.version() == before


def test_mail_is_read_in_batches_so_that_a_server_can_stop_between(start: Start) -> None:
    gateway = start()
    intake.keep(gateway.context, [mail(number) for number in range(3)])
    assert [intake.process_all(gateway.context, at_most=2) for _ in range(3)] == [2, 1, 0]


# The clock


def test_a_wait_that_fails_is_set_aside_and_the_others_go_on(start: Start) -> None:
    armed, hook = fails_once("queued", RuntimeError("a fault of ours"))
    gateway = start(crash=hook)
    for key in ("one", "two"):
        gateway.ask(key, schedule="verification-code")
    gateway.drain()
    gateway.clock.go(6 * MINUTE)
    armed.append("queued")
    gateway.tick()
    found = sorted((one["state"], one["reason"]) for one in gateway.call("waits.list")["waits"])
    assert found == [("abandoned", "no_reply"), ("paused", "failed")]
    assert reasons(gateway) == ["unprocessable", "failed"]


def test_a_wait_and_a_waitpoint_that_can_not_be_read_stop_nobody_and_are_reviewed_once(start: Start) -> None:
    gateway = start()
    broken = ask_for_an_hour(gateway, "broken")
    gateway.clock.go(SECOND)
    ask_for_an_hour(gateway, "whole")
    gateway.drain()
    with gateway.context.db.write() as tx:
        tx.connection.exec_driver_sql("UPDATE waits SET details = '{}' WHERE id = ?", (broken["wait_id"],))
    gateway.clock.go(2 * HOUR)
    for _ in range(3):
        gateway.tick()
    seen = {"broken": "open", "whole": "expired"}
    with gateway.context.db.read() as tx:
        rows = tx.connection.exec_driver_sql("SELECT correlation_key, state FROM waitpoints").all()
    assert {row[0]: row[1] for row in rows} == seen
    (review,) = gateway.call("reviews.list")["reviews"]
    assert (review["reason"], review["conversation_id"]) == ("unprocessable", broken["conversation_id"])


def test_what_is_due_during_a_hold_is_looked_at_when_the_hold_ends(start: Start) -> None:
    gateway = start()
    gateway.ask(schedule="verification-code")
    gateway.drain()
    gateway.clock.go(5 * MINUTE - SECOND)
    tick = timers.Tick(gateway.context)
    gateway.clock.step(61 * SECOND)
    assert tick() == 0
    assert tick.look_at() == gateway.clock.now() + timers.HOLD
    gateway.clock.go(timers.HOLD)
    assert tick() == 1


def test_a_row_that_stays_due_is_looked_at_again_after_a_second_not_at_once(start: Start) -> None:
    gateway = start()
    gateway.ask(schedule="verification-code")
    gateway.drain()
    tick = timers.Tick(gateway.context)
    gateway.clock.go(5 * MINUTE)
    keep_unread(gateway)
    gateway.clock.go(MINUTE)
    assert tick() == 0
    assert tick.look_at() == gateway.clock.now() + SECOND


def keep_unread(gateway: Gateway) -> None:
    """Store a mail that can not be processed for hours, as when the DNS does not answer."""
    intake.keep(gateway.context, [mail()])
    with gateway.context.db.write() as tx:
        found = inbound.next_received(tx, gateway.clock.now())
        assert found is not None
        inbound.defer(tx, LIVE, found.id, gateway.clock.now() + 9 * HOUR)


def test_an_expiry_waits_for_mail_that_came_before_it_for_a_quarter_of_an_hour(start: Start) -> None:
    gateway = start()
    ask_for_an_hour(gateway, "po-4711")
    gateway.drain()
    gateway.clock.go(59 * MINUTE)
    keep_unread(gateway)
    gateway.clock.go(15 * MINUTE)
    gateway.tick()
    assert gateway.call("waitpoints.show", key="po-4711")["state"] == "open"
    gateway.clock.go(2 * MINUTE)
    gateway.tick()
    assert gateway.call("waitpoints.show", key="po-4711")["state"] == "expired"


def test_the_clock_looks_when_a_lease_runs_out(start: Start) -> None:
    gateway = start()
    asked = gateway.ask()
    sending.claim(gateway.context, LIVE, str(asked["message_id"]))
    assert timers.Tick(gateway.context).next() == gateway.clock.now() + sending.lease(gateway.context)


def test_a_lost_hand_over_whose_wait_can_not_be_read_stops_nobody(start: Start) -> None:
    gateway = start()
    asked = [gateway.ask(key) for key in ("broken", "whole")]
    for one in asked:
        sending.claim(gateway.context, LIVE, str(one["message_id"]))
    with gateway.context.db.write() as tx:
        tx.connection.exec_driver_sql("UPDATE waits SET details = '{}' WHERE id = ?", (asked[0]["wait_id"],))
    gateway.clock.go(HOUR)
    assert sending.recover(gateway.context) == 1
    assert [states(gateway, one["message_id"]) for one in asked] == [["handing_over"], ["unknown"]]


def test_the_look_at_other_processes_goes_on_after_a_failure(start: Start) -> None:
    gateway = start()
    pulls: list[int] = []

    async def look_twice() -> None:
        stop = asyncio.Event()

        class Clock(timers.Timers):
            async def pull(self) -> None:
                pulls.append(len(pulls))
                commit(gateway)
                if len(pulls) > 1:
                    stop.set()
                raise RuntimeError("a fault of ours")

        look = app.look(
            gateway.context, Changes(asyncio.get_running_loop()), Clock(gateway.context), stop, every=0.001
        )
        task = asyncio.create_task(look)
        while not task.done() and not pulls:
            await asyncio.to_thread(commit, gateway)
        await asyncio.wait_for(task, 10)

    asyncio.run(look_twice())
    assert pulls == [0, 1]


def commit(gateway: Gateway) -> None:
    with gateway.context.db.write():
        pass


# The way out


@pytest.mark.parametrize("error", [OSError("no such file"), RuntimeError("a fault of ours")])
def test_a_hand_over_that_fails_before_anything_left_is_tried_again_later(
    start: Start, error: Exception
) -> None:
    armed, hook = fails_once("before_send", error)
    gateway = start(crash=hook)
    asked = gateway.ask()
    armed.append("before_send")
    gateway.drain()
    assert states(gateway, asked["message_id"]) == ["deferred"]
    gateway.clock.go(MINUTE)
    gateway.drain()
    assert states(gateway, asked["message_id"]) == ["sent"]


def test_a_key_that_does_not_sign_makes_no_mail_fail_for_good(start: Start) -> None:
    gateway = start()
    right = gateway.context
    dkim = Dkim(domain="gateway.example", selector="s")
    gateway.context = replace(
        right, settings=right.settings.model_copy(update={"dkim": dkim}), dkim_key=b"junk"
    )
    asked = gateway.ask()
    gateway.drain()
    assert states(gateway, asked["message_id"]) == ["deferred"]
    gateway.context = right
    gateway.clock.go(MINUTE)
    gateway.drain()
    assert states(gateway, asked["message_id"]) == ["sent"]


@pytest.mark.parametrize("content", [None, b"junk"])
def test_a_signing_key_that_can_not_be_used_is_said_at_the_start(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "key.pem"
    if content is not None:
        path.write_bytes(content)
    dkim = Dkim(domain="gateway.example", selector="s", private_key=path)
    with pytest.raises(BadSettings, match=r"dkim"):
        app.signing_key(Settings(home=tmp_path, dkim=dkim))
    assert app.signing_key(Settings(home=tmp_path)) == b""


@dataclass
class Refusing(KeepingRelay):
    """Finds that what it was given must not go onto the wire."""

    async def hand_over(self, envelope: Envelope, *, note: Note) -> Receipt:
        raise BadRequest(field="mail", problem="a bare line feed")


def test_what_the_channel_refuses_to_put_on_the_wire_has_failed_and_is_not_unknown(start: Start) -> None:
    gateway = start()
    gateway.context = replace(gateway.context, senders={"email": Refusing()})
    asked = gateway.ask()
    gateway.drain()
    assert states(gateway, asked["message_id"]) == ["failed"]
    assert (gateway.wait_state(), reasons(gateway)) == ("paused", ["failed"])
    assert gateway.call("suppressions.list")["suppressions"] == []


@dataclass
class Faulty(MovableClock):
    """Fails while it is broken, and counts how often it was asked then."""

    broken: bool = False
    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def now(self) -> datetime:
        if self.broken:
            self.asked.release()
            raise RuntimeError("a fault of ours")
        return super().now()


@dataclass
class Slow(KeepingRelay):
    """Takes longer than two renewals of the lease, both of which fail."""

    clock: Faulty = field(default_factory=Faulty)

    async def hand_over(self, envelope: Envelope, *, note: Note) -> Receipt:
        self.clock.broken = True
        for _ in range(2):
            assert await anyio.to_thread.run_sync(lambda: self.clock.asked.acquire(timeout=10))
        self.clock.broken = False
        return await super().hand_over(envelope, note=note)


def test_a_lease_that_can_not_be_renewed_breaks_no_running_hand_over(start: Start) -> None:
    gateway = start()
    slow = Slow()
    short = SmtpOut.model_construct(lease=0.003, connections=4)
    settings = gateway.context.settings.model_copy(update={"smtp_out": short})
    gateway.context = replace(gateway.context, senders={"email": slow}, clock=slow.clock, settings=settings)
    asked = gateway.ask()
    gateway.drain()
    assert states(gateway, asked["message_id"]) == ["sent"]


def test_one_lost_copy_is_reviewed_once_however_often_another_is_deferred(start: Start) -> None:
    gateway = start()
    gateway.relay.answers = {PAT: LOST, KIM: LATER}
    gateway.ask(to=[PAT, KIM])
    for _ in range(3):
        gateway.drain()
        gateway.clock.go(HOUR)
    assert len(gateway.relay.copies) == 3
    assert reasons(gateway) == ["submission_unknown"]


def test_a_copy_deferred_to_the_end_of_its_life_pauses_its_wait_and_suppresses_nobody(start: Start) -> None:
    gateway = start()
    gateway.relay.answers[PAT] = RecipientResult(outcome=Outcome.DEFERRED, text="connection refused")
    asked = gateway.ask(schedule="internal")
    gateway.drain()
    for _ in range(400):
        if gateway.wait_state() != "waiting":
            break
        gateway.clock.go(HOUR)
        gateway.tick()
    assert (gateway.wait_state(), reasons(gateway)) == ("paused", ["failed"])
    assert states(gateway, asked["message_id"]) == ["failed"]
    assert gateway.call("suppressions.list")["suppressions"] == []


def test_one_drain_is_one_batch_so_that_a_server_can_stop_between(start: Start) -> None:
    gateway = start()
    for key in ("one", "two", "three"):
        gateway.ask(key)

    async def batches() -> list[int]:
        return [await sending.drain(gateway.context, at_once=2) for _ in range(3)]

    assert anyio.run(batches) == [2, 1, 0]


def test_a_nudge_stays_where_it_is_while_mail_to_its_inbox_is_unread(start: Start) -> None:
    gateway = start()
    gateway.ask()
    gateway.drain()
    gateway.clock.go(6 * DAY + 4 * HOUR)
    timers.Tick(gateway.context)()
    assert gateway.wait_state() == "nudged"
    keep_unread(gateway)
    gateway.clock.go(MINUTE)
    gateway.drain()
    assert len(gateway.relay.copies) == 1
    gateway.clock.go(9 * HOUR)
    gateway.drain()
    assert len(gateway.relay.copies) == 2
