"""What is asked every few milliseconds is answered from an index, however many rows there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from answerback.store import inbound, mailboxes, outbox, waitpoints, waits
from answerback.store.session import Database, Tx
from tests.store.samples import BUYER, DAY, LIVE, NOW, answered

QUESTIONS: tuple[tuple[str, Callable[[Tx], object]], ...] = (
    ("ix_received_stored", lambda tx: inbound.next_received(tx, NOW + DAY)),
    ("ix_received_stored", lambda tx: inbound.count_start(tx, NOW + DAY)),
    ("ix_waits_due", lambda tx: waits.due_waits(tx, NOW + DAY, 10)),
    ("ix_waits_due", waits.next_due),
    ("ix_waitpoints_expiry", lambda tx: waitpoints.due_waitpoints(tx, NOW + DAY, 10)),
    ("ix_waitpoints_expiry", waitpoints.next_expiry),
    ("ix_outbox_next_attempt", lambda tx: outbox.ready(tx, NOW + DAY, 10)),
    ("ix_outbox_next_attempt", outbox.next_attempt),
    ("ix_outbox_lease", lambda tx: outbox.lapsed(tx, NOW + DAY)),
    ("ix_outbox_lease", outbox.next_lapse),
    ("ix_mailbox_items_pending", lambda tx: mailboxes.pending(tx, LIVE, BUYER)),
    ("ix_mailbox_items_pending", lambda tx: mailboxes.contiguous_ack(tx, LIVE, BUYER)),
)


def plan(tx: Tx, ask: Callable[[Tx], object]) -> str:
    """Return the plan of the first statement a question runs."""
    seen: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: object) -> None:
        seen.append((statement, values))

    event.listen(tx.connection, "before_cursor_execute", note)
    ask(tx)
    event.remove(tx.connection, "before_cursor_execute", note)
    statement, values = seen[0]
    explain = "EXPLAIN QUERY PLAN " if tx.dialect == "sqlite" else "EXPLAIN "
    return "\n".join(str(row) for row in tx.connection.exec_driver_sql(explain + statement, values))


@pytest.mark.parametrize(("index", "ask"), QUESTIONS)
def test_a_frequent_question_uses_its_index(
    index: str, ask: Callable[[Tx], object], shared: Database
) -> None:
    with shared.write() as tx:
        answered(tx)
        if tx.dialect == "postgresql":  # which reads so few rows whole otherwise
            tx.connection.exec_driver_sql("SET LOCAL enable_seqscan = off")
        assert index in plan(tx, ask)


@pytest.mark.parametrize(("_index", "ask"), QUESTIONS)
def test_a_frequent_question_is_not_built_anew_each_time(
    _index: str, ask: Callable[[Tx], object], shared: Database
) -> None:
    asked: list[Any] = []

    def note(_connection: Any, statement: Any, *_: object) -> None:
        asked.append(statement)

    with shared.write() as tx:
        event.listen(tx.connection, "before_execute", note)
        ask(tx)
        once = len(asked)
        ask(tx)
        event.remove(tx.connection, "before_execute", note)
    assert [id(statement) for statement in asked[:once]] == [id(statement) for statement in asked[once:]]
