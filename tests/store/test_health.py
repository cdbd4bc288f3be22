"""A database that is missing, damaged or newer is refused with what to do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from answerback.errors import CorruptDatabase, NewerDatabase, NoDatabase, Unable
from answerback.store import tenants
from answerback.store.session import Database
from tests.store.samples import NOW, answered

PAGE = 4096


@pytest.fixture
def path(migrated_sqlite: Path, tmp_path: Path) -> Path:
    """A whole database file with rows in it."""
    path = tmp_path / "answerback.db"
    path.write_bytes(migrated_sqlite.read_bytes())
    db = Database.open(f"sqlite:///{path}")
    with db.write() as tx:
        answered(tx)
    db.close()
    return path


def refused(path: Path, kind: type[Unable]) -> str:
    """Return the message the file is refused with."""
    db = Database.open(f"sqlite:///{path}")
    with pytest.raises(kind) as error:
        db.check()
    db.close()
    return str(error.value)


def test_a_whole_database_passes(db: Database) -> None:
    db.check()


def test_garbage_is_told_as_damage(path: Path) -> None:
    path.write_bytes(b"no database at all, but long enough for a header " * 100)
    assert refused(path, CorruptDatabase) == (
        f"The database {path} is damaged (file is not a database). Stop, keep a copy of the file, and restore"
        " your last backup."
    )


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_a_truncated_file_is_told_as_damage(path: Path, share: float) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    assert "is damaged" in refused(path, CorruptDatabase)


@pytest.mark.parametrize("place", [0.3, 0.5, 0.7])
def test_an_overwritten_page_is_told_as_damage(path: Path, place: float) -> None:
    whole = bytearray(path.read_bytes())
    start = int(len(whole) / PAGE * place) * PAGE
    whole[start : start + PAGE] = b"\xa5" * PAGE
    path.write_bytes(whole)
    assert "is damaged" in refused(path, CorruptDatabase)


def test_damage_found_while_running_is_told_as_damage(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    whole[PAGE:] = b"\xa5" * (len(whole) - PAGE)
    path.write_bytes(whole)
    db = Database.open(f"sqlite:///{path}")
    with pytest.raises(CorruptDatabase), db.write() as tx:
        tenants.add_tenant(tx, "t9", NOW)
    db.close()


def test_an_empty_file_is_no_database(path: Path) -> None:
    path.write_bytes(b"")
    assert refused(path, NoDatabase) == f"There is no database at {path}. `answerback init` makes one."


def test_a_file_removed_after_opening_is_no_database(path: Path) -> None:
    db = Database.open(f"sqlite:///{path}")
    path.unlink()
    with pytest.raises(NoDatabase):
        db.check()
    db.close()


def test_another_programs_database_is_not_ours(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    assert "it holds other tables than answerback's" in refused(path, CorruptDatabase)


def test_a_newer_database_is_left_alone(db: Database) -> None:
    with db.write() as tx:
        tx.connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(NewerDatabase, match="a newer answerback \\(schema 9999\\)"):
        db.check("answerback.db")
    with pytest.raises(NewerDatabase):
        db.migrate()
    with db.write() as tx:
        tx.connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")


def test_a_postgresql_database_without_tables_is_no_database(new_postgres: Callable[[], str]) -> None:
    db = Database.open(new_postgres())
    with pytest.raises(NoDatabase):
        db.check()
    db.migrate()
    db.check()
    db.close()
