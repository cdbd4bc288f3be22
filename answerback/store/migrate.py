"""Brings a database to this version's schema with the packaged Alembic migrations."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Connection

from answerback.errors import NewerDatabase
from answerback.store import health

MIGRATIONS = Path(__file__).parent / "migrations"
#: any number, the same in every process: two servers starting at once upgrade one after the other
_ADVISORY_LOCK = 4_242_190_142


def upgrade(connection: Connection) -> None:
    """Run every missing migration inside the connection's transaction.

    Raises:
        NewerDatabase: the database is at a revision this version does not know.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_ADVISORY_LOCK})")
    found, known = health.revision(connection), health.revisions()
    if found == known[-1]:
        return
    if found is not None and found not in known:
        raise NewerDatabase(path=str(connection.engine.url.database), found=found)
    _run_alembic(connection)


def _run_alembic(connection: Connection) -> None:
    from alembic import command  # noqa: PLC0415 - takes a second to import, needed once in a database's life
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
