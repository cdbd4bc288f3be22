"""Migrating an empty database makes exactly the tables, constraints and triggers that are defined."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import Connection, inspect

from answerback.store import tables
from answerback.store.session import Database

#: triggers, and indexes with their conditions, as the database itself tells them
WORDING = {
    "sqlite": "SELECT name, tbl_name, sql FROM sqlite_master WHERE type IN ('trigger', 'index') AND tbl_name <> 'alembic_version' ORDER BY name",
    "postgresql": """
        SELECT tgname, pg_get_triggerdef(pg_trigger.oid), prosrc FROM pg_trigger
        JOIN pg_proc ON pg_proc.oid = tgfoid WHERE NOT tgisinternal
        UNION SELECT indexname, indexdef, '' FROM pg_indexes
        WHERE schemaname = 'public' AND tablename <> 'alembic_version' ORDER BY 1
    """,
}


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[], Database]]:
    """Returns a database without tables."""
    made: list[Database] = []

    def make() -> Database:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path / f'{len(made)}.db'}"
        else:
            url = request.getfixturevalue("new_postgres")()
        made.append(Database.open(url, create=True))
        return made[-1]

    yield make
    for db in made:
        db.close()


def shape(connection: Connection) -> dict[str, Any]:
    """Return everything that `compare_metadata` does not compare: checks, keys, indexes, triggers."""
    found = inspect(connection)
    names = sorted(set(found.get_table_names()) - {"alembic_version"})
    return {
        "wording": [tuple(row) for row in connection.exec_driver_sql(WORDING[connection.dialect.name])],
        **{
            name: {
                "options": found.get_table_options(name),
                "columns": [
                    (column["name"], str(column["type"]), column["nullable"])
                    for column in found.get_columns(name)
                ],
                "key": found.get_pk_constraint(name),
                "checks": found.get_check_constraints(name),
                "unique": sorted(found.get_unique_constraints(name), key=lambda one: str(one["name"])),
                "foreign": sorted(found.get_foreign_keys(name), key=lambda one: str(one["name"])),
            }
            for name in names
        },
    }


def test_the_migrated_schema_is_the_defined_one(empty: Callable[[], Database]) -> None:
    migrated, defined = empty(), empty()
    migrated.migrate()
    with defined.write() as tx:
        tables.metadata.create_all(tx.connection)
    with migrated.read() as tx, defined.read() as other:
        assert compare_metadata(MigrationContext.configure(tx.connection), tables.metadata) == []
        assert shape(tx.connection) == shape(other.connection)


def test_every_table_is_strict_and_scoped(empty: Callable[[], Database]) -> None:
    db = empty()
    db.migrate()
    with db.read() as tx:
        found = inspect(tx.connection)
        for name in set(found.get_table_names()) - {"alembic_version", "tenants"}:
            key = found.get_pk_constraint(name)["constrained_columns"]
            assert (name, key[:2]) == (name, ["tenant", "environment"])
            if db.dialect == "sqlite":
                assert (name, found.get_table_options(name)) == (name, {"sqlite_strict": True})


def test_every_reference_stays_inside_its_scope() -> None:
    for table in tables.metadata.tables.values():
        for foreign in table.foreign_key_constraints:
            own = [column.name for column in foreign.columns]
            theirs = [element.column.name for element in foreign.elements]
            width = 1 if foreign.referred_table.name == "tenants" else 2
            assert own[:width] == theirs[:width] == ["tenant", "environment"][:width], foreign.name


def test_migrating_twice_changes_nothing(empty: Callable[[], Database]) -> None:
    db = empty()
    db.migrate()
    with db.read() as tx:
        before = shape(tx.connection)
    db.migrate()
    with db.read() as tx:
        assert shape(tx.connection) == before


def test_a_migration_that_fails_leaves_nothing_behind(empty: Callable[[], Database]) -> None:
    db = empty()
    with db.write() as tx:
        tx.connection.exec_driver_sql("CREATE TABLE wait_log (mine INTEGER)")
    with pytest.raises(Exception, match="wait_log"):
        db.migrate()
    with db.read() as tx:
        assert inspect(tx.connection).get_table_names() == ["wait_log"]
