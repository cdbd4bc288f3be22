"""What the database forbids by triggers, and the error each constraint's name becomes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from sqlalchemy import DDL, Index, PrimaryKeyConstraint, Table, UniqueConstraint, event
from sqlalchemy.exc import IntegrityError

from answerback import errors
from answerback.model import value
from answerback.store import tables


@value
class Trigger:
    """A row may not be written so: refused before it happens, under a name."""

    #: also the name of the constraint in the error
    name: str
    table: Table
    #: INSERT, UPDATE or DELETE
    before: str
    #: SQL condition over OLD and NEW, the same on both databases; "" refuses always
    when: str = ""


def _never_changed(table: Table) -> tuple[Trigger, ...]:
    return tuple(
        Trigger(name=f"tr_{table.name}_no_{verb.lower()}", table=table, before=verb)
        for verb in ("UPDATE", "DELETE", "TRUNCATE")
    )


_COUNTER = (
    "SELECT last_sequence FROM mailboxes WHERE tenant = NEW.tenant AND environment = NEW.environment"
    " AND principal = NEW.principal"
)

TRIGGERS: tuple[Trigger, ...] = (
    *_never_changed(tables.resolutions),
    *_never_changed(tables.wait_log),
    *_never_changed(tables.schedules),
    Trigger(
        name="tr_waitpoints_ended",
        table=tables.waitpoints,
        before="UPDATE",
        when="OLD.state IN ('resolved', 'expired', 'cancelled')",
    ),
    Trigger(
        name="tr_waitpoints_kept",
        table=tables.waitpoints,
        before="DELETE",
        when="OLD.state = 'resolved'",
    ),
    Trigger(
        name="tr_waitpoints_expires_at",
        table=tables.waitpoints,
        before="UPDATE",
        when="NEW.expires_at <> OLD.expires_at OR NEW.opened_at <> OLD.opened_at",
    ),
    Trigger(
        name="tr_outbox_sent",
        table=tables.outbox,
        before="UPDATE",
        when="OLD.state = 'sent' AND NEW.state <> 'sent'",
    ),
    Trigger(
        name="tr_mailboxes_counter",
        table=tables.mailboxes,
        before="UPDATE",
        when="NEW.last_sequence NOT IN (OLD.last_sequence, OLD.last_sequence + 1)",
    ),
    # with the counter moving by one and the key, numbers are without gap and in the order of commits
    Trigger(
        name="tr_mailbox_items_counter",
        table=tables.mailbox_items,
        before="INSERT",
        when=f"NEW.sequence <> coalesce(({_COUNTER}), 0)",
    ),
)


def ddl(trigger: Trigger, dialect: str) -> Iterator[str]:
    """Yield the statements that make a trigger on a dialect: `sqlite` or `postgresql`.

    PostgreSQL takes no subquery in WHEN, so the condition stands in the function. SQLite knows no TRUNCATE.
    """
    if dialect == "sqlite":
        if trigger.before != "TRUNCATE":
            when = f"WHEN {trigger.when} " if trigger.when else ""
            yield (
                f"CREATE TRIGGER {trigger.name} BEFORE {trigger.before} ON {trigger.table.name} "
                f"FOR EACH ROW {when}BEGIN SELECT RAISE(ABORT, '{trigger.name}'); END"
            )
        return
    refusal = (
        f"RAISE EXCEPTION '{trigger.name}' USING ERRCODE = 'integrity_constraint_violation', "
        f"CONSTRAINT = '{trigger.name}', TABLE = '{trigger.table.name}';"
    )
    body = f"IF {trigger.when} THEN {refusal} END IF;" if trigger.when else refusal
    result = "OLD" if trigger.before == "DELETE" else "NEW"
    yield (
        f"CREATE FUNCTION {trigger.name}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN {body} RETURN {result}; END $$"
    )
    each = "STATEMENT" if trigger.before == "TRUNCATE" else "ROW"
    yield (
        f"CREATE TRIGGER {trigger.name} BEFORE {trigger.before} ON {trigger.table.name} "
        f"FOR EACH {each} EXECUTE FUNCTION {trigger.name}()"
    )


def _listen(table: Table, statement: str, dialect: str) -> None:
    make = DDL(statement.replace("%", "%%"))  # type: ignore[no-untyped-call]
    event.listen(table, "after_create", make.execute_if(dialect=dialect))


for _trigger in TRIGGERS:
    for _dialect in ("sqlite", "postgresql"):
        for _statement in ddl(_trigger, _dialect):
            _listen(_trigger.table, _statement, _dialect)


def _unique_columns() -> dict[str, str]:
    """Return `table.column, table.column` → constraint name: how SQLite names a key that is there already."""
    names: dict[str, str] = {}
    for table in tables.metadata.tables.values():
        keys = [c for c in table.constraints if isinstance(c, PrimaryKeyConstraint | UniqueConstraint)]
        uniques: list[PrimaryKeyConstraint | UniqueConstraint | Index] = [
            *keys,
            *(i for i in table.indexes if i.unique),
        ]
        for unique in uniques:
            listed = ", ".join(f"{table.name}.{column.name}" for column in unique.columns)
            names[listed] = str(unique.name)
    return names


_UNIQUE = _unique_columns()
_SQLITE_TELLS = re.compile(r"(?P<kind>UNIQUE|CHECK|NOT NULL) constraint failed: (?P<what>.+)")


def constraint_of(error: IntegrityError) -> str:
    """Return the name of the constraint that refused, `foreign_key` where SQLite does not say which."""
    diagnosis = getattr(error.orig, "diag", None)
    if diagnosis is not None:
        return diagnosis.constraint_name or f"nn_{diagnosis.table_name}_{diagnosis.column_name}"
    told = str(error.orig)
    match = _SQLITE_TELLS.fullmatch(told)
    if match is None:
        return "foreign_key" if told.startswith("FOREIGN KEY") else told
    what = match["what"]
    if match["kind"] == "UNIQUE":
        return _UNIQUE.get(what, what)
    return what if match["kind"] == "CHECK" else "nn_" + what.replace(".", "_")


def refusal(error: IntegrityError) -> errors.Conflict:
    """Return the domain error of the constraint that refused."""
    given = error.params if isinstance(error.params, Mapping) else {}
    return meaning(constraint_of(error), given)


def meaning(constraint: str, given: Mapping[str, object]) -> errors.Conflict:
    """Return the domain error of a constraint; `given` are the values that were to be stored."""
    match constraint:
        case "ux_waitpoints_open_key":
            return errors.KeyInUse(correlation_key=given.get("correlation_key", "given"))
        case "pk_idempotency":
            return errors.InProgress(key=given.get("key", "given"))
        case "ux_inboxes_live_address" | "uq_inboxes_address":
            return errors.Conflict(problem="This address already belongs to an inbox. Give another one.")
        case "uq_agents_name":
            return errors.Conflict(problem="There is an agent of this name already. Give another name.")
        case "pk_contact_addresses":
            return errors.Conflict(problem="One of the addresses already belongs to a contact.")
    return errors.Forbidden(constraint=constraint)
