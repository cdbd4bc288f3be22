"""The look-over counts what is stuck, in every scope."""

from __future__ import annotations

from answerback.model import OutboxState
from answerback.store import diagnosis, inbound, mailboxes, reviews
from answerback.store.session import Database
from tests.store.samples import BUYER, DAY, HOUR, LIVE, NOW, answered


def test_an_empty_database_is_whole_current_and_idle(db: Database) -> None:
    with db.read() as tx:
        assert diagnosis.integrity(tx) == "ok"
        assert diagnosis.current(tx)
        assert diagnosis.newest(tx) is None
        assert diagnosis.domains(tx) == ()


def test_what_is_stuck_is_counted(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        assert diagnosis.newest(tx) == NOW + HOUR
        assert diagnosis.domains(tx) == ("agents.example",)
        assert diagnosis.unprocessed(tx, NOW) == 0
        assert diagnosis.unprocessed(tx, NOW + DAY) == 1
        inbound.settle(tx, LIVE, "rcv_1", "processed", "", None)
        assert diagnosis.unprocessed(tx, NOW + DAY) == 0
        assert diagnosis.copies(tx, OutboxState.QUEUED) == 2
        assert diagnosis.copies(tx, OutboxState.UNKNOWN) == 0
        assert diagnosis.undecided(tx) == 1
        reviews.decide(tx, LIVE, "rev_1", "discard", "person:ops", NOW)
        assert diagnosis.undecided(tx) == 0
        assert diagnosis.dead(tx) == 0
        mailboxes.lease(tx, LIVE, BUYER, "a", NOW + HOUR, NOW, 10, 0)
        assert diagnosis.dead(tx) == 1
