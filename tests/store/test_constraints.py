"""The database itself refuses what must never happen: raw SQL, once with the constraint and once without it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from sqlalchemy import create_mock_engine
from sqlalchemy.exc import DataError, IntegrityError

from answerback.model import value
from answerback.store import constraints, conversations, mailboxes, reviews, tables
from answerback.store.columns import microseconds
from answerback.store.session import Database, Tx
from tests.store.samples import ANSWER, BUYER, DAY, LIVE, NOW, REVIEW, asked

T = microseconds(NOW)
LATE = microseconds(NOW + 11 * DAY)
FAR = microseconds(NOW + 31 * DAY)
EXPIRES = microseconds(NOW + 10 * DAY)


def resolution(**changed: object) -> str:
    """Return the INSERT of a resolution that is in order but for what is changed."""
    row: dict[str, object] = {
        "tenant": "t1",
        "environment": "live",
        "waitpoint_id": "wp_1",
        "message_id": "msg_2",
        "responder": "email:pat@supplier.example",
        "author": "email:pat@supplier.example",
        "channel": "email",
        "evidence_level": "channel_claim",
        "trust": "authenticated",
        "timing": "on_time",
        "responded_at": T,
        "expires_at": EXPIRES,
        "subject_digest": "sha256:aa",
        "waiter": "agent:agt_1",
        "evidence": "{}",
    }
    return insert("resolutions", row | changed)


def insert(table: str, row: dict[str, object]) -> str:
    """Return an INSERT in plain SQL."""
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(map(repr, row.values()))})"


def copy(table: str, where: str, **changed: object) -> str:
    """Return an INSERT that repeats a row but for what is changed."""
    names = [column.name for column in tables.metadata.tables[table].columns if column.computed is None]
    shown = [
        ("NULL" if changed[name] is None else repr(changed[name])) if name in changed else name
        for name in names
    ]
    return f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(shown)} FROM {table} WHERE {where}"


WAITPOINT_2 = copy("waitpoints", "id = 'wp_1'", id="wp_2", correlation_key="po-2")
NUDGE: dict[str, object] = {"kind": "nudge", "wait_id": "wait_1", "nudge_number": 1}
WAITER_MAY = insert(
    "responders",
    {
        "tenant": "t1",
        "environment": "live",
        "waitpoint_id": "wp_1",
        "responder": "agent:agt_1",
        "position": 9,
    },
)
RESOLVED = f"UPDATE waitpoints SET state = 'resolved', closed_at = {T} WHERE id = 'wp_1'"
LOGGED = insert(
    "wait_log",
    {
        "tenant": "t1",
        "environment": "live",
        "wait_id": "wait_1",
        "number": 1,
        "at": T,
        "event": "Sent",
        "rule": "",
        "before": "",
        "after": "waiting",
        "cause": "{}",
    },
)
LEASED = f"UPDATE mailbox_items SET state = 'leased', lease_id = 'a', lease_until = {T}"
KEY: dict[str, object] = {
    "tenant": "t1",
    "environment": "live",
    "owner": "k",
    "key": "1",
    "digest": "d",
    "at": T,
}
SECRET: dict[str, object] = {
    "tenant": "t1",
    "environment": "live",
    "id": "key_1",
    "sha256": "00",
    "name": "k",
    "scopes": "[]",
    "created_at": T,
}
SENT = "UPDATE outbox SET state = 'sent', next_attempt_at = NULL"


@value
class Case:
    """Statements in order; the last one is what must not be."""

    name: str
    constraint: str
    sql: tuple[str, ...]


CAME_IN = {
    "tenant": "t1",
    "environment": "live",
    "id": "rcv_1",
    "inbox_id": "inb_1",
    "identity": "sha-1",
    "source": "smtp",
    "mail_from": "pat@supplier.example",
    "recipient": "buyer@agents.example",
    "at": T,
    "attempts": 0,
    "state": "stored",
    "note": "",
}

CASES = (
    Case(name="the same inbound twice", constraint="uq_received_identity", sql=(copy("received", "id = 'rcv_1'", id="rcv_2"),)),
    Case(name="two open waitpoints on one key", constraint="ux_waitpoints_open_key", sql=(copy("waitpoints", "id = 'wp_1'", id="wp_2"),)),
    Case(name="a stalled and an open waitpoint on one key", constraint="ux_waitpoints_open_key", sql=("UPDATE waitpoints SET state = 'stalled'", copy("waitpoints", "id = 'wp_1'", id="wp_2", state="open"))),
    Case(name="a nudge number twice", constraint="ux_messages_nudge", sql=(copy("messages", "id = 'msg_1'", id="msg_3", **NUDGE), copy("messages", "id = 'msg_1'", id="msg_4", **NUDGE))),
    Case(name="a nudge number without a wait", constraint="ck_messages_nudge", sql=("UPDATE messages SET kind = 'nudge', nudge_number = 1 WHERE id = 'msg_1'",)),
    Case(name="running without due time", constraint="ck_waits_running", sql=("UPDATE waits SET due_at = NULL",)),
    Case(name="stopped with due time", constraint="ck_waits_running", sql=("UPDATE waits SET state = 'paused'",)),
    Case(name="acknowledged while leased by another", constraint="ck_mailbox_items_acked_by_lease", sql=(LEASED, "UPDATE mailbox_items SET state = 'acked', acked_lease = 'b'")),
    Case(name="acknowledged without a lease", constraint="ck_mailbox_items_acked_by_lease", sql=("UPDATE mailbox_items SET state = 'acked'",)),
    Case(name="leased by nobody", constraint="ck_mailbox_items_leased", sql=("UPDATE mailbox_items SET state = 'leased'",)),
    Case(name="two mailbox rows with one number", constraint="pk_mailbox_items", sql=(copy("mailbox_items", "sequence = 1", event_id="evt_2"),)),
    Case(name="a mailbox number above the counter", constraint="tr_mailbox_items_counter", sql=(copy("mailbox_items", "sequence = 1", sequence=2),)),
    Case(name="a mailbox counter that jumps", constraint="tr_mailboxes_counter", sql=("UPDATE mailboxes SET last_sequence = last_sequence + 2",)),
    Case(name="a message in another tenant's conversation", constraint="fk_messages_conversation", sql=(copy("messages", "id = 'msg_1'", id="msg_3", tenant="t2"),)),
    Case(name="a message in another environment's conversation", constraint="fk_messages_conversation", sql=(copy("messages", "id = 'msg_1'", id="msg_3", environment="test"),)),
    Case(name="an inbox of another tenant's agent", constraint="fk_inboxes_agent", sql=(copy("inboxes", "id = 'inb_1'", tenant="t2", folded="new@agents.example"),)),
    Case(name="an outbox row of another environment's message", constraint="fk_outbox_message", sql=(copy("outbox", "recipient = 'pat@supplier.example'", environment="test", wait_id=None),)),
    Case(name="the waiter resolves its own waitpoint", constraint="ck_resolutions_not_waiter", sql=(WAITER_MAY, resolution(responder="agent:agt_1", author="agent:agt_1"))),
    Case(name="the waiter answers under another's responder row", constraint="ck_resolutions_not_waiter", sql=(resolution(author="agent:agt_1"),)),
    Case(name="a resolution that names another waiter", constraint="fk_resolutions_terms", sql=(resolution(waiter="agent:other"),)),
    Case(name="a resolution without a responder row", constraint="fk_resolutions_responder", sql=(resolution(responder="email:mallory@evil.example"),)),
    Case(name="a domain responder from another domain", constraint="ck_resolutions_domain", sql=(resolution(responder="email-domain:partner.example", author="email:kim@evil.example"),)),
    Case(name="a domain that only ends in the same letters", constraint="ck_resolutions_domain", sql=(resolution(responder="email-domain:partner.example", author="email:kim@notpartner.example"),)),
    Case(name="an author shorter than the domain", constraint="ck_resolutions_domain", sql=(resolution(responder="email-domain:partner.example", author="email:k@x"),)),
    Case(name="answered after the deadline", constraint="ck_resolutions_in_time", sql=(resolution(responded_at=LATE),)),
    Case(name="answered in time of a deadline it does not have", constraint="fk_resolutions_terms", sql=(resolution(responded_at=LATE, expires_at=LATE),)),
    Case(name="a resolution of another subject", constraint="fk_resolutions_terms", sql=(resolution(subject_digest="sha256:bb"),)),
    Case(name="one answer for two waitpoints", constraint="uq_resolutions_message", sql=(resolution(), WAITPOINT_2, "INSERT INTO responders SELECT tenant, environment, 'wp_2', responder, position FROM responders", resolution(waitpoint_id="wp_2"))),
    Case(name="a second resolution", constraint="pk_resolutions", sql=(resolution(), resolution(message_id="msg_1"))),
    Case(name="a resolution changed", constraint="tr_resolutions_no_update", sql=(resolution(), "UPDATE resolutions SET trust = 'spam'")),
    Case(name="a resolution removed", constraint="tr_resolutions_no_delete", sql=(resolution(), "DELETE FROM resolutions")),
    Case(name="a resolved waitpoint changed", constraint="tr_waitpoints_ended", sql=(RESOLVED, "UPDATE waitpoints SET reason = 'other'")),
    Case(name="an ended waitpoint opened again", constraint="tr_waitpoints_ended", sql=(RESOLVED.replace("resolved", "expired"), "UPDATE waitpoints SET state = 'open', closed_at = NULL")),
    Case(name="a resolved waitpoint removed", constraint="tr_waitpoints_kept", sql=(WAITPOINT_2, "UPDATE waitpoints SET state = 'resolved', closed_at = 1 WHERE id = 'wp_2'", "DELETE FROM waitpoints WHERE id = 'wp_2'")),
    Case(name="a deadline moved", constraint="tr_waitpoints_expires_at", sql=("UPDATE waitpoints SET expires_at = expires_at + 1",)),
    Case(name="an opening moved, and the 30 days with it", constraint="tr_waitpoints_expires_at", sql=("UPDATE waitpoints SET opened_at = opened_at + 1",)),
    Case(name="a deadline beyond 30 days", constraint="ck_waitpoints_thirty_days", sql=(copy("waitpoints", "id = 'wp_1'", id="wp_2", correlation_key="po-2", expires_at=FAR),)),
    Case(name="an open waitpoint that is closed", constraint="ck_waitpoints_closed", sql=("UPDATE waitpoints SET closed_at = 1",)),
    Case(name="the log of a wait changed", constraint="tr_wait_log_no_update", sql=(LOGGED, "UPDATE wait_log SET event = 'Due'")),
    Case(name="the log of a wait removed", constraint="tr_wait_log_no_delete", sql=(LOGGED, "DELETE FROM wait_log")),
    Case(name="an outbox state nobody knows", constraint="ck_outbox_state", sql=("UPDATE outbox SET state = 'lost', next_attempt_at = NULL",)),
    Case(name="sent, then queued again", constraint="tr_outbox_sent", sql=(SENT, "UPDATE outbox SET state = 'queued', next_attempt_at = 1")),
    Case(name="queued and never due", constraint="ck_outbox_next_attempt", sql=("UPDATE outbox SET next_attempt_at = NULL",)),
    Case(name="handed over by nobody", constraint="ck_outbox_lease", sql=("UPDATE outbox SET state = 'handing_over', next_attempt_at = NULL",)),
    Case(name="one idempotency key twice", constraint="pk_idempotency", sql=(insert("idempotency", KEY), insert("idempotency", KEY | {"digest": "e"}))),
    Case(name="one live address in two tenants", constraint="ux_inboxes_live_address", sql=(copy("agents", "id = 'agt_1'", tenant="t2"), copy("inboxes", "id = 'inb_1'", tenant="t2"))),
    Case(name="one address twice in a tenant", constraint="uq_inboxes_address", sql=(copy("agents", "id = 'agt_1'", environment="test"), copy("inboxes", "id = 'inb_1'", environment="test"), copy("inboxes", "environment = 'test'", id="inb_2"))),
    Case(name="a key of an unknown environment", constraint="ck_api_keys_environment", sql=(insert("api_keys", SECRET | {"environment": "staging"}),)),
    Case(name="two keys with one secret", constraint="uq_api_keys_sha256", sql=(insert("api_keys", SECRET), insert("api_keys", SECRET | {"id": "key_2", "tenant": "t2"}))),
    Case(name="a schedule version changed", constraint="tr_schedules_no_update", sql=("UPDATE schedules SET policy = '{}'",)),
    Case(name="a schedule version removed", constraint="tr_schedules_no_delete", sql=("INSERT INTO schedules SELECT tenant, environment, name, 2, policy, created_at FROM schedules", "DELETE FROM schedules WHERE version = 2")),
    Case(name="a review half decided", constraint="ck_reviews_decided", sql=("UPDATE reviews SET decision = 'discard'",)),
)  # fmt: skip


class Undone(Exception):
    """Rolls a transaction back: the rows and constraints of the next case are whole again."""


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A database with the sample rows; whoever writes rolls back."""
    if request.param == "sqlite":
        db = sqlite_of(sqlite_schema())
    else:
        db = Database.open(request.getfixturevalue("new_postgres")())
        db.migrate()
        fill(db)
    yield db
    db.close()


def fill(db: Database) -> None:
    """Store an ask and its answer. What came in is raw SQL, for `keep` leans on the constraint of a case."""
    with db.write() as tx:
        asked(tx)
        tx.connection.exec_driver_sql(insert("received", CAME_IN))
        conversations.add_message(tx, LIVE, ANSWER)
        mailboxes.append(tx, LIVE, BUYER, "evt_1", "answerback.message.received", NOW, "item {}".format)
        reviews.add_review(tx, LIVE, REVIEW)


def sqlite_of(statements: Iterable[str]) -> Database:
    """Return a database in memory with this schema and the sample rows."""
    db = Database.open("sqlite://")
    with db.write() as tx:
        run(tx, statements)
    fill(db)
    return db


def sqlite_schema(lacking: str = "") -> list[str]:
    """Return the statements that make the tables, without a trigger, an index or the line of a constraint."""
    made: list[str] = []

    def take(statement: Any, *_: object) -> None:
        made.append(str(statement.compile(dialect=engine.dialect)).strip())

    engine = create_mock_engine("sqlite://", take)
    tables.metadata.create_all(engine, checkfirst=False)
    if not lacking:
        return made
    line = re.compile(rf",\s*\n\s*CONSTRAINT {lacking} [^\n]*?(?=,? ?\n)")
    kept = [line.sub("", text) for text in made]
    assert kept != made
    return kept


def dropping(constraint: str) -> str:
    """Return the statement that takes a constraint, an index or a trigger from a database."""
    for trigger in constraints.TRIGGERS:
        if trigger.name == constraint:
            return f"DROP TRIGGER {constraint}"
    if constraint.startswith("ux_"):
        return f"DROP INDEX {constraint}"
    table = next(
        table.name
        for table in tables.metadata.tables.values()
        if constraint in {str(own.name) for own in table.constraints}
    )
    return f"ALTER TABLE {table} DROP CONSTRAINT {constraint}"


def run(tx: Tx, statements: Iterable[str]) -> None:
    """Execute everything."""
    for statement in statements:
        tx.connection.exec_driver_sql(statement)


@contextmanager
def tried(db: Database) -> Iterator[Tx]:
    """Give a transaction that is rolled back at its end."""
    with suppress(Undone), db.write() as tx:
        yield tx
        raise Undone


def refusing(db: Database, statements: Sequence[str]) -> str:
    """Return the name of the constraint that refuses the last statement, after the others went through."""
    with tried(db) as tx:
        run(tx, statements[:-1])
        with pytest.raises(IntegrityError) as refused:
            run(tx, statements[-1:])
    return constraints.constraint_of(refused.value)


def going_through(db: Database, statements: Iterable[str]) -> None:
    """Execute everything and roll it back."""
    with tried(db) as tx:
        run(tx, statements)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_database_forbids(case: Case, filled: Database) -> None:
    # SQLite does not say which foreign key refused
    unsaid = filled.dialect == "sqlite" and case.constraint.startswith("fk_")
    assert refusing(filled, case.sql) == ("foreign_key" if unsaid else case.constraint)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_nothing_but_that_constraint_forbids(case: Case, filled: Database) -> None:
    drop = dropping(case.constraint)
    if filled.dialect == "postgresql":
        table = "".join(
            f" ON {own.table.name}" for own in constraints.TRIGGERS if own.name == case.constraint
        )
        going_through(filled, [drop + table, *case.sql])
    elif drop.startswith("ALTER"):  # SQLite can not: it gets tables that never had the constraint
        lacking = sqlite_of(sqlite_schema(case.constraint))
        going_through(lacking, case.sql)
        lacking.close()
    else:
        going_through(filled, [drop, *case.sql])


@pytest.mark.parametrize("table", ["wait_log", "resolutions", "schedules"])
def test_postgresql_forbids_to_truncate_what_is_only_added_to(table: str, filled: Database) -> None:
    if filled.dialect == "sqlite":
        return  # it has no TRUNCATE
    truncate = f"TRUNCATE {table} CASCADE"
    assert refusing(filled, [truncate]).endswith("_no_truncate")
    drops = [
        f"{dropping(trigger.name)} ON {trigger.table.name}"
        for trigger in constraints.TRIGGERS
        if trigger.before == "TRUNCATE"
    ]
    going_through(filled, [*drops, truncate])


@pytest.mark.parametrize("author", ["email:kim@partner.example", "email:kim@sales.partner.example"])
def test_a_domain_responder_admits_its_domain_and_what_is_below(author: str, filled: Database) -> None:
    going_through(filled, [resolution(responder="email-domain:partner.example", author=author)])


NAIVE = "UPDATE waits SET updated_at = '2026-03-02T09:30:00'"


def test_a_naive_time_is_refused_by_the_columns_type(filled: Database) -> None:
    with tried(filled) as tx, pytest.raises((IntegrityError, DataError)):
        run(tx, [NAIVE])
    if filled.dialect == "postgresql":
        going_through(filled, ["ALTER TABLE waits ALTER updated_at TYPE text", NAIVE])
        return
    loose = sqlite_of(text.removesuffix("STRICT") for text in sqlite_schema())
    going_through(loose, [NAIVE])
    loose.close()


def test_every_trigger_has_a_case() -> None:
    tried = {case.constraint for case in CASES}
    truncates = {trigger.name for trigger in constraints.TRIGGERS if trigger.before == "TRUNCATE"}
    assert {trigger.name for trigger in constraints.TRIGGERS} == tried & {
        trigger.name for trigger in constraints.TRIGGERS
    } | truncates
