"""Opens the database and hands out transactions: one writer at a time on SQLite, many on PostgreSQL."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from typing import Any
from zlib import crc32

from sqlalchemy import URL, Connection, Engine, Executable, Row, Select, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, StatementError
from sqlalchemy.pool import PoolProxiedConnection, StaticPool

from answerback.errors import BadSettings, CorruptDatabase, DatabaseBusy, NoDatabase
from answerback.store import constraints, health, migrate
from answerback.store.turns import Turns

#: a statement, or one per dialect where the two databases spell it differently
Statement = Executable | Mapping[str, Executable]
Values = Mapping[str, object] | Sequence[Mapping[str, object]]

PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    "busy_timeout=10000",
    "trusted_schema=OFF",
)


_READING: dict[str, dict[str, Any]] = {
    "sqlite": {"readonly": True},
    "postgresql": {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True},
}


class Tx:
    """An open transaction; it ends with the `with` block that gave it."""

    __slots__ = ("_readonly", "connection", "dialect")

    def __init__(self, connection: Connection, *, readonly: bool = False) -> None:
        self.connection = connection
        self._readonly = readonly
        #: `sqlite` or `postgresql`
        self.dialect = connection.dialect.name

    def locked(self, statement: Select[Any], *, skip: bool = False) -> Select[Any]:
        """Return the statement holding its rows until commit; `skip` passes over those another one holds.

        A read-only transaction only looks: it has nothing to protect, and PostgreSQL would refuse. On SQLite
        the whole file is held anyway.
        """
        if self._readonly or self.dialect == "sqlite":
            return statement
        return _holding(statement, skip)

    def _spelled(self, statement: Statement) -> Executable:
        return statement[self.dialect] if isinstance(statement, Mapping) else statement

    def one(self, statement: Statement, values: Values | None = None) -> Row[Any] | None:
        """Return the first row, None where there is none."""
        return self.connection.execute(self._spelled(statement), values).first()

    def all(self, statement: Statement, values: Values | None = None) -> Sequence[Row[Any]]:
        """Return every row."""
        return self.connection.execute(self._spelled(statement), values).all()

    def scalar(self, statement: Statement, values: Values | None = None) -> Any:
        """Return the first column of the first row, None where there is none."""
        return self.connection.execute(self._spelled(statement), values).scalar()

    def run(self, statement: Statement, values: Values | None = None) -> int:
        """Return how many rows were written."""
        return self.connection.execute(self._spelled(statement), values).rowcount


class Database:
    """One database, for every thread of this process."""

    def __init__(self, engine: Engine, path: Path | None) -> None:
        self._engine = engine
        #: the file; None in memory and on PostgreSQL
        self.path = path
        self.dialect = engine.dialect.name
        # the same connections, begun otherwise
        self._reader = engine.execution_options(**_READING[self.dialect])
        self._in_memory = self.dialect == "sqlite" and path is None
        self._file = _identity(path) if path else None
        self._turns = Turns()
        self._inside = threading.local()
        self._commits = 0
        self._watch: PoolProxiedConnection | None = None
        self._watching = threading.Lock()

    @classmethod
    def open(cls, url: str, *, create: bool = False) -> Database:
        """Return the database at an SQLAlchemy URL; no connection is made yet.

        Raises:
            NoDatabase: a SQLite file that is not there, unless `create` makes it (mode 0600).
            BadSettings: the URL is none of SQLite or PostgreSQL, or the file can not be made.
        """
        parsed = _parsed(url)
        if parsed.get_backend_name() == "postgresql":
            return cls(_postgresql(parsed), None)
        if parsed.database in (None, "", ":memory:"):
            engine = create_engine(parsed, poolclass=StaticPool, connect_args={"check_same_thread": False})
            return cls(_prepared(engine), None)
        path = Path(str(parsed.database))
        _ensure_file(path, create=create)
        return cls(_prepared(create_engine(parsed, max_overflow=20)), path)

    @property
    def name(self) -> str:
        """What messages call this database: its path, or the URL without the password."""
        return str(self.path or self._engine.url.render_as_string(hide_password=True))

    @contextmanager
    def write(self) -> Iterator[Tx]:
        """Give a transaction that is committed at the end of the block and rolled back by an exception.

        Raises:
            Conflict: a constraint refused, as the error of that constraint (`constraints.refusal`).
            ValueError: a naive time was to be stored.
            TypeError: something was to be stored that is no JSON.
            CorruptDatabase: the file is damaged.
            DatabaseBusy: it is locked, full or gone just now; the same may succeed later.
        """
        with self._once(), self._turn(), self._translated():
            with self._engine.begin() as connection:
                yield Tx(connection)
            self._commits += 1

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """Give a read-only transaction with one unchanging view of the data."""
        turn = self._turn() if self._in_memory else nullcontext()
        with self._once(), turn, self._translated(), self._reader.connect() as connection:
            view = _query_only(connection) if self.dialect == "sqlite" else nullcontext()
            with connection.begin(), view:
                yield Tx(connection, readonly=True)

    def version(self) -> int:
        """Return a number that changes whenever another transaction was committed, by any process."""
        if self._in_memory:
            return self._commits
        with self._watching, self._translated():
            if self.dialect == "sqlite":
                return self._data_version()
            # the whole snapshot: its xmax alone does not move when an older transaction ends last
            with self._engine.connect() as connection:
                snapshot = connection.exec_driver_sql("SELECT pg_current_snapshot()::text").scalar_one()
            return crc32(snapshot.encode())

    def _data_version(self) -> int:
        """The pragma tells of others' commits, so its connection must never write."""
        if self.path is not None and self._file != _identity(self.path):
            raise CorruptDatabase(path=self.name, problem="its file was removed or replaced while in use")
        if self._watch is None:
            self._watch = self._engine.raw_connection()
        with closing(self._watch.cursor()) as cursor:
            cursor.execute("PRAGMA data_version")
            ((version,),) = cursor.fetchall()
            return int(version)

    def migrate(self) -> None:
        """Bring an empty or older database to this version's tables, in one transaction."""
        with self.write() as tx:
            migrate.upgrade(tx.connection)

    def check(self, path: str | None = None) -> None:
        """Return where the database can be used as it is; `path` is its name in messages.

        Raises:
            NoDatabase: the file is empty or holds no tables.
            CorruptDatabase: it is no database, not one of ours, or damaged.
            NewerDatabase: a newer answerback wrote it.
        """
        name = path or self.name
        if self.path is not None and (not self.path.exists() or self.path.stat().st_size == 0):
            raise NoDatabase(path=name)
        with self._translated(name), self._engine.connect() as connection:
            health.check(connection, name, self.path)

    def close(self) -> None:
        """Close every connection."""
        with self._watching:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
        self._engine.dispose()

    @contextmanager
    def _once(self) -> Iterator[None]:
        if getattr(self._inside, "transaction", False):
            raise RuntimeError("a transaction is open in this thread already")
        self._inside.transaction = True
        try:
            yield
        finally:
            self._inside.transaction = False

    @contextmanager
    def _turn(self) -> Iterator[None]:
        if self.dialect != "sqlite":
            yield
            return
        with self._turns:
            yield

    @contextmanager
    def _translated(self, name: str | None = None) -> Iterator[None]:
        try:
            yield
        except IntegrityError as error:
            raise constraints.refusal(error) from error
        except DBAPIError as error:
            problem = health.damage(error)
            if problem:
                raise CorruptDatabase(path=name or self.name, problem=problem) from error
            if health.unreachable(error):
                raise BadSettings(setting="database", problem=str(error.orig).strip()) from error
            if health.passing(error):
                raise DatabaseBusy(name=name or self.name, problem=str(error.orig).strip()) from error
            raise
        except StatementError as error:  # a value no column takes: SQLAlchemy wraps what our types raise
            raise error.orig or error from None


@lru_cache(maxsize=256)
def _holding(statement: Select[Any], skip: bool) -> Select[Any]:
    """A new statement would have to be described to SQLAlchemy's own cache at every call."""
    # Keys never change, so foreign keys may be checked meanwhile: FOR NO KEY UPDATE.
    return statement.with_for_update(skip_locked=skip, key_share=True)


@contextmanager
def _query_only(connection: Connection) -> Iterator[None]:
    """SQLite has no read-only transaction, but it refuses to write while this pragma is on.

    The pragma touches no file, so SQLAlchemy has no error to translate and is passed by: it costs more.
    """
    with closing(connection.connection.cursor()) as cursor:
        cursor.execute("PRAGMA query_only=ON")
        try:
            yield
        finally:
            cursor.execute("PRAGMA query_only=OFF")


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise BadSettings(setting="database", problem=f"{url} is no database URL") from error
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise BadSettings(setting="database", problem="only sqlite:// and postgresql:// are supported")
    return parsed


def _postgresql(url: URL) -> Engine:
    try:
        return create_engine(url, pool_pre_ping=True, pool_size=10, max_overflow=20)
    except ModuleNotFoundError as error:
        problem = f"{error.name} is missing; install answerback[postgres]"
        raise BadSettings(setting="database", problem=problem) from error


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what makes a file that file and no other, None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _ensure_file(path: Path, *, create: bool) -> None:
    if path.exists():
        return
    if not create:
        raise NoDatabase(path=str(path))
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    except OSError as error:
        raise BadSettings(setting="database", problem=f"{path} can not be made: {error.strerror}") from error


def _prepared(engine: Engine) -> Engine:
    """Set the pragmas on every new connection, and begin writers with their lock in hand.

    A transaction that reads first and writes later fails at once with "database is locked", whatever the
    busy timeout (https://www.sqlite.org/lang_transaction.html); hence BEGIN IMMEDIATE.
    """

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # SQLAlchemy says BEGIN, not the driver
        with closing(connection.cursor()) as cursor:
            for pragma in PRAGMAS:
                cursor.execute(f"PRAGMA {pragma}")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        readonly = connection.get_execution_options().get("readonly")
        connection.exec_driver_sql("BEGIN" if readonly else "BEGIN IMMEDIATE")

    return engine
