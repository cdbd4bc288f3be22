"""Transactions, and how the store opens, watches and refuses a database."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy.exc import DBAPIError

from answerback.errors import BadSettings, Conflict, Forbidden, InProgress, KeyInUse, NoDatabase
from answerback.store import constraints, inbound, outbox, schedules, tenants, waitpoints, waits
from answerback.store.session import Database
from answerback.store.turns import Turns
from tests.store.samples import AGENT, DAY, INBOX, LIVE, MAIL, NOW, OTHER, answered, people


def test_a_transaction_is_kept_whole(db: Database) -> None:
    with db.write() as tx:
        tenants.add_tenant(tx, "t1", NOW)
        tenants.add_tenant(tx, "t2", NOW)
    with db.read() as tx:
        assert tenants.tenants(tx) == ("t1", "t2")


def test_an_exception_leaves_nothing_behind(db: Database) -> None:
    def fail() -> None:
        with db.write() as tx:
            tenants.add_tenant(tx, "t1", NOW)
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    with db.read() as tx:
        assert tenants.tenants(tx) == ()


def test_a_reader_can_not_write(db: Database) -> None:
    with pytest.raises(DBAPIError), db.read() as tx:
        tenants.add_tenant(tx, "t1", NOW)
    with db.write() as tx:
        tenants.add_tenant(tx, "t1", NOW)


def test_a_reader_looks_at_what_is_due_without_holding_it(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
    later = NOW + 20 * DAY
    with db.read() as tx:
        assert outbox.ready(tx, later, 10) == ((LIVE, "msg_1"),)
        assert outbox.copies(tx, LIVE, "msg_1", lock=True) == outbox.copies(tx, LIVE, "msg_1")
        assert waits.due_waits(tx, later, 10) == ((LIVE, "wait_1"),)
        assert waitpoints.due_waitpoints(tx, later, 10) == ((LIVE, "wp_1"),)
        assert inbound.next_received(tx, later) == MAIL


def test_a_transaction_inside_another_is_an_error(db: Database) -> None:
    with db.write(), pytest.raises(RuntimeError, match="open in this thread"), db.read():
        pass
    with db.read(), pytest.raises(RuntimeError, match="open in this thread"), db.write():
        pass
    with db.write() as tx:
        tenants.add_tenant(tx, "t1", NOW)


def test_a_naive_time_is_a_value_error(db: Database) -> None:
    with pytest.raises(ValueError, match="naive time 2026-03-02T09:30:00"), db.write() as tx:
        tenants.add_tenant(tx, "t1", datetime(2026, 3, 2, 9, 30))  # noqa: DTZ001 - that is the point


def test_what_is_no_json_is_a_type_error(db: Database) -> None:
    with db.write() as tx:
        tenants.add_tenant(tx, "t1", NOW)
    with pytest.raises(TypeError, match="set is not JSON serializable"), db.write() as tx:
        schedules.add_schedule(tx, LIVE, "odd", {"gaps": {1, 2}}, NOW)


def test_a_refusal_names_its_constraint(db: Database) -> None:
    with db.write() as tx:
        tenants.add_tenant(tx, "t1", NOW)
    with pytest.raises(Forbidden) as refused, db.write() as tx:
        tenants.add_tenant(tx, "t1", NOW)
    assert refused.value.details == {"constraint": "pk_tenants"}


def test_an_address_that_is_taken_is_a_conflict_in_plain_words(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        tenants.add_agent(tx, OTHER, AGENT, NOW)
    with pytest.raises(Conflict, match="already belongs to an inbox"), db.write() as tx:
        tenants.add_inbox(tx, OTHER, INBOX, NOW)
    with pytest.raises(Conflict, match="agent of this name"), db.write() as tx:
        tenants.add_agent(tx, LIVE, replace(AGENT, id="agt_2"), NOW)


def test_a_missing_value_names_its_column(db: Database) -> None:
    with pytest.raises(Forbidden) as refused, db.write() as tx:
        tx.connection.exec_driver_sql("INSERT INTO tenants (tenant) VALUES ('t1')")
    assert refused.value.details == {"constraint": "nn_tenants_created_at"}


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("ux_waitpoints_open_key", KeyInUse),
        ("pk_idempotency", InProgress),
        ("pk_contact_addresses", Conflict),
    ],
)
def test_constraints_with_a_meaning_of_their_own_become_that_error(name: str, error: type[Conflict]) -> None:
    assert type(constraints.meaning(name, {})) is error


def test_a_commit_of_another_process_changes_the_version(shared: Database, url: str) -> None:
    other = Database.open(url)
    before = shared.version()
    with other.write() as tx:
        tenants.add_tenant(tx, "t1", NOW)
    after = shared.version()
    assert after != before
    with other.read() as tx:
        tenants.tenants(tx)
    if shared.dialect == "sqlite":  # on PostgreSQL anything may have happened meanwhile
        assert shared.version() == after
    other.close()


def test_a_commit_of_this_process_changes_the_version(db: Database) -> None:
    before = db.version()
    with db.write() as tx:
        tenants.add_tenant(tx, "t1", NOW)
    assert db.version() != before


def test_a_transaction_that_began_first_and_ends_last_changes_the_version(shared: Database, url: str) -> None:
    if shared.dialect == "sqlite":
        return  # it has one writer at a time
    slow = Database.open(url)
    with slow.write() as tx:
        tenants.add_tenant(tx, "t1", NOW)
        with shared.write() as quick:
            tenants.add_tenant(quick, "t2", NOW)
        before = shared.version()
    assert shared.version() != before
    slow.close()


def test_a_missing_file_is_no_database_and_is_not_made(tmp_path: Path) -> None:
    path = tmp_path / "answerback.db"
    with pytest.raises(NoDatabase, match=r"There is no database at .*answerback\.db"):
        Database.open(f"sqlite:///{path}")
    assert not path.exists()


def test_a_new_file_is_its_owners_alone(tmp_path: Path) -> None:
    db = Database.open(f"sqlite:///{tmp_path / 'answerback.db'}", create=True)
    db.migrate()
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
    db.close()


def test_a_file_that_can_not_be_made_is_a_setting_to_mend(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="can not be made: No such file or directory"):
        Database.open(f"sqlite:///{tmp_path / 'missing' / 'answerback.db'}", create=True)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("answerback.db", "answerback.db is no database URL"),
        ("mysql://host/name", "only sqlite:// and postgresql:// are supported"),
        ("postgresql+psycopg2://host/name", "psycopg2 is missing; install answerback[postgres]"),
    ],
)
def test_a_url_of_no_use_is_a_setting_to_mend(url: str, problem: str) -> None:
    with pytest.raises(BadSettings) as refused:
        Database.open(url)
    assert refused.value.details == {"setting": "database", "problem": problem}


def test_a_server_that_does_not_answer_is_a_setting_to_mend(tmp_path: Path) -> None:
    db = Database.open(f"postgresql+psycopg://answerback:secret@/x?host={tmp_path}")
    with pytest.raises(BadSettings, match="The setting database can not be used") as refused, db.read():
        pass
    assert "secret" not in str(refused.value)
    db.close()


def test_sqlite_is_durable_and_strict(tmp_path: Path) -> None:
    db = Database.open(f"sqlite:///{tmp_path / 'answerback.db'}", create=True)
    wanted = {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 10000,
        "trusted_schema": 0,
    }
    with db.read() as tx:
        found = {name: tx.connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in wanted}
    assert found == wanted
    db.close()


def test_a_database_in_memory_is_one_for_all_threads() -> None:
    db = Database.open("sqlite://")
    db.migrate()
    names = [f"t{number:02}" for number in range(20)]

    def add(name: str) -> None:
        with db.write() as tx:
            tenants.add_tenant(tx, name, NOW)
        with db.read() as tx:
            assert name in tenants.tenants(tx)

    threads = [Thread(target=add, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with db.read() as tx:
        assert tenants.tenants(tx) == tuple(names)
    db.close()


def test_turns_are_given_in_the_order_they_were_asked_for() -> None:
    turns, passed = Turns(), []

    def take(number: int) -> None:
        with turns:
            passed.append(number)

    threads = [Thread(target=take, args=(number,)) for number in range(5)]
    with turns:
        for place, thread in enumerate(threads, start=1):
            thread.start()
            while turns.waiting() < place:
                Event().wait(0.001)
    for thread in threads:
        thread.join()
    assert passed == [0, 1, 2, 3, 4]
