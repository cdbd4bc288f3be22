"""Databases for the tests of the store: SQLite in memory and as a file, and a PostgreSQL started for the run."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from answerback.store import tables
from answerback.store.session import Database
from tests.databases import run_sql

# as the replication role no trigger and no foreign key speaks, so the append-only tables can be emptied too
WIPE = "; ".join(
    ["SET session_replication_role = replica", *(f"DELETE FROM {name}" for name in tables.metadata.tables)]
)


@pytest.fixture(scope="session")
def migrated_postgres(new_postgres: Callable[[], str]) -> str:
    """The URL of the PostgreSQL database the tests share, with our tables."""
    url = new_postgres()
    database = Database.open(url)
    database.migrate()
    database.close()
    return url


@pytest.fixture(scope="session")
def migrated_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with our tables, to be copied."""
    path = tmp_path_factory.mktemp("template") / "answerback.db"
    database = Database.open(f"sqlite:///{path}", create=True)
    database.migrate()
    database.close()
    return path


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database with our tables and no rows, which several connections can use."""
    return _url(request, request.param, tmp_path)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def db(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    """A database of each kind, with our tables and no rows."""
    database = Database.open(_url(request, request.param, tmp_path))
    if request.param == "memory":
        database.migrate()
    yield database
    database.close()


@pytest.fixture
def shared(url: str) -> Iterator[Database]:
    """A database several threads use at once, with our tables and no rows."""
    database = Database.open(url)
    yield database
    database.close()


def _url(request: pytest.FixtureRequest, kind: str, folder: Path) -> str:
    match kind:
        case "memory":
            return "sqlite://"
        case "sqlite":
            shutil.copy(request.getfixturevalue("migrated_sqlite"), folder / "answerback.db")
            return f"sqlite:///{folder / 'answerback.db'}"
    url: str = request.getfixturevalue("migrated_postgres")
    run_sql(url, WIPE)
    return url
