"""Tells whether a database can be used: there, whole, and not newer than this version."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError, OperationalError

from answerback.errors import CorruptDatabase, NewerDatabase, NoDatabase

#: octets; a larger file is only read in part at start
QUICK_CHECK_LIMIT = 256 << 20
VERSIONS = Path(__file__).parent / "migrations" / "versions"


def revisions() -> tuple[str, ...]:
    """Return the schema revisions this version knows, oldest first; files are `<revision>_<what>.py`."""
    return tuple(sorted(path.name.partition("_")[0] for path in VERSIONS.glob("[0-9]*.py")))


def revision(connection: Connection) -> str | None:
    """Return the revision a database is at, None where it holds none of our tables."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    return None if found is None else str(found)


def check(connection: Connection, name: str, path: Path | None) -> None:
    """Return where the database is whole and known; `Database.check` lists the errors."""
    found = revision(connection)
    if found is None:
        if inspect(connection).get_table_names():
            raise CorruptDatabase(path=name, problem="it holds other tables than answerback's")
        raise NoDatabase(path=name)
    if found not in revisions():
        raise NewerDatabase(path=name, found=found)
    if path is not None and path.stat().st_size <= QUICK_CHECK_LIMIT:
        result = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar_one()
        if result != "ok":
            raise CorruptDatabase(path=name, problem=" ".join(str(result).split()))


def damage(error: DBAPIError) -> str:
    """Return what SQLite says of a damaged file, "" for every other error."""
    damaged = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
    # the low byte is the error, the rest tells more (https://www.sqlite.org/rescode.html)
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    return str(error.orig) if code in damaged else ""


def passing(error: DBAPIError) -> bool:
    """Tell whether an error is of the moment (locked, full, connection lost), not of what was asked."""
    if error.connection_invalidated:
        return True
    if not isinstance(error, OperationalError):
        return False
    code = getattr(error.orig, "sqlite_errorcode", None)
    if code is not None:
        return code & 0xFF not in {sqlite3.SQLITE_ERROR, sqlite3.SQLITE_READONLY}
    # class 54: what was asked exceeds a limit (https://www.postgresql.org/docs/current/errcodes-appendix.html)
    return not str(getattr(error.orig, "sqlstate", None) or "").startswith("54")


def unreachable(error: DBAPIError) -> bool:
    """Tell whether the database could not even be connected to."""
    return isinstance(error, OperationalError) and error.statement is None
