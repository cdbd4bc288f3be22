"""The one place where the gateway's parts are wired together, and the server that runs them."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import structlog
import uvicorn

from answerback.channels.base import Sender
from answerback.channels.mail import signing, smtp_in, smtp_out
from answerback.errors import BadSettings, CorruptDatabase, NoDatabase
from answerback.gateway import crash, intake, keyring, sending, timers
from answerback.gateway.changes import Changes
from answerback.gateway.clock import Clock, SystemClock
from answerback.gateway.context import Context
from answerback.gateway.settings import Settings
from answerback.model import Json, Scope
from answerback.store import schedules, tenants
from answerback.store.session import Database
from answerback.waits.schedule import BUILT_IN, to_policy

log = structlog.get_logger()

#: how often a change by another process is looked for
LOOK_EVERY = 0.25

Asgi = Callable[[Context, Changes], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """Where a running server can be reached."""

    smtp_port: int
    http_port: int


def initialise(settings: Settings) -> Json:
    """Make the home, its keyring and its database with the built-in schedules; what exists is kept.

    Raises:
        BadSettings: there is a database without its keyring.
    """
    settings.home.mkdir(parents=True, exist_ok=True, mode=0o700)
    made_keyring = not settings.keyring_path.exists() and keyring.VARIABLE not in os.environ
    if made_keyring and not settings.database and (settings.home / "answerback.db").exists():
        problem = (
            "the database is there and its keyring is not; restore it from your backup. "
            "With a new one no mail already sent could be answered; to begin anew, move the database away"
        )
        raise BadSettings(setting=str(settings.keyring_path), problem=problem)
    if made_keyring:
        keyring.generate(secrets.token_bytes).save(settings.keyring_path)
    db = Database.open(settings.database_url, create=True)
    try:
        db.migrate()
        furnish(db, settings.tenant)
    finally:
        db.close()
    return {"home": str(settings.home), "database": settings.database_url, "keyring_made": made_keyring}


def furnish(db: Database, tenant: str) -> None:
    """Add the tenant and the built-in schedules; what exists is kept."""
    now = SystemClock().now()
    with db.write() as tx:
        if tenant not in tenants.tenants(tx):
            tenants.add_tenant(tx, tenant, now)
        for scope in (Scope(tenant=tenant, environment="live"), Scope(tenant=tenant, environment="test")):
            known = schedules.schedule_names(tx, scope)
            for schedule in BUILT_IN:
                if schedule.name not in known:
                    schedules.add_schedule(tx, scope, schedule.name, to_policy(schedule), now)


def open_context(
    settings: Settings,
    *,
    clock: Clock | None = None,
    senders: Mapping[str, Sender] | None = None,
    environment: Mapping[str, str] = os.environ,
) -> Context:
    """Open the database and keyring and return the parts every path works with.

    Raises:
        NoDatabase, CorruptDatabase, NewerDatabase, BadSettings: with what to do.
    """
    if not settings.database and not (settings.home / "answerback.db").exists():
        raise NoDatabase(path=settings.home / "answerback.db")
    db = Database.open(settings.database_url)
    db.check()
    db.migrate()
    return Context(
        db=db,
        keyring=keyring.load(settings.keyring_path, environment),
        settings=settings,
        clock=clock or SystemClock(),
        senders=relay(settings) if senders is None else senders,
        owner=f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}",
        draw=lambda: secrets.randbits(64),
        crash=crash.from_environment(environment),
        wake=lambda _part: None,
    )


def relay(settings: Settings) -> dict[str, Sender]:
    """Return the outgoing edges the settings name; none where no relay is set."""
    out = settings.smtp_out
    if not out.host:
        return {}
    server = smtp_out.Server(
        host=out.host,
        port=out.port,
        local_hostname=hostname(settings),
        username=out.username,
        password=out.password,
        security=out.security,
        ca_file=str(out.authorities or ""),
        timeout=out.timeout,
        pool_size=out.connections,
    )
    return {"email": smtp_out.Relay(server)}


def signing_key(settings: Settings) -> bytes:
    """Return the private key outgoing mail is signed with, b"" where it leaves unsigned.

    Raises:
        BadSettings: the key can not be read, or does not sign.
    """
    dkim = settings.dkim
    if not dkim.domain or dkim.private_key is None:
        return b""
    try:
        key = dkim.private_key.read_bytes()
    except OSError as error:
        raise BadSettings(setting="dkim.private_key", problem=f"{error}; give a file we can read") from None
    signing.sign(b"From: <a@b.example>\r\n\r\n", domain=dkim.domain, selector=dkim.selector, key=key)
    return key


def hostname(settings: Settings) -> str:
    """Return our name in greetings: the setting, else the machine's."""
    return settings.smtp_in.hostname or socket.getfqdn()


async def serve(
    settings: Settings,
    asgi: Asgi,
    *,
    ready: Callable[[Listening], None],
    stop: asyncio.Event | None = None,
) -> None:
    """Run the gateway until `stop` is set or SIGINT or SIGTERM comes: SMTP in, HTTP, the loops, the clock."""
    stop = stop or asyncio.Event()
    loop = asyncio.get_running_loop()
    changes = Changes(loop)
    dkim_key = signing_key(settings)
    context = replace(open_context(settings), wake=changes.wake, dkim_key=dkim_key)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(context.db.close)
        for sender in context.senders.values():
            stack.push_async_callback(sender.close)
        smtp = await _listen_smtp(context, stack)
        http = await stack.enter_async_context(_listen_http(context, asgi(context, changes)))
        # Only now: a start that found its port taken has processed no mail.
        await asyncio.to_thread(intake.recover, context)
        clock = timers.Timers(context)
        clock.start()
        stack.push_async_callback(clock.stop)
        tasks = [
            asyncio.create_task(_repeat(changes, "received", lambda: intake.process_all(context), stop)),
            asyncio.create_task(_drain(context, changes, stop)),
            asyncio.create_task(look(context, changes, clock, stop)),
        ]
        ready(Listening(smtp_port=smtp, http_port=http))
        log.info("serving", action="serve", smtp_port=smtp, http_port=http)
        await stop.wait()
        changes.wake_all()
        await asyncio.gather(*tasks)


async def _listen_smtp(context: Context, stack: contextlib.AsyncExitStack) -> int:
    wanted = context.settings.smtp_in
    gate = intake.Gate(context)
    listener = smtp_in.Listener(
        host=wanted.host,
        port=wanted.port,
        hostname=hostname(context.settings),
        tls=_tls(wanted.certificate, wanted.private_key),
        lmtp=wanted.lmtp,
        max_size=wanted.size_limit,
        max_connections=wanted.connections,
        max_per_peer=wanted.connections_per_peer,
        timeout=wanted.idle_timeout,
    )
    try:
        server = await smtp_in.serve(listener, admit=gate.admit, accept=gate.accept)
    except OSError as error:
        raise BadSettings(setting="smtp_in.port", problem=f"{error}; is a server running already?") from None
    stack.push_async_callback(server.close)
    return server.port


def _tls(certificate: Path | None, private_key: Path | None) -> ssl.SSLContext | None:
    if certificate is None:
        return None
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        tls.load_cert_chain(certificate, private_key)
    except (OSError, ssl.SSLError) as error:
        raise BadSettings(
            setting="smtp_in.certificate", problem=f"{error}; give PEM files we can read"
        ) from None
    return tls


class _Http(uvicorn.Server):
    """A server that leaves the signals to us; uvicorn's own raises them again after serving."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


@contextlib.asynccontextmanager
async def _listen_http(context: Context, asgi: Any) -> AsyncIterator[int]:
    wanted = context.settings.http
    # The protocol is named: with 0 asyncio leaves Nagle's algorithm on, 45 ms a request.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((wanted.host, wanted.port))
        listener.listen(2048)  # before it is announced: uvicorn's task listens a moment later
    except OSError as error:
        listener.close()
        raise BadSettings(setting="http.port", problem=f"{error}; is a server running already?") from None
    config = uvicorn.Config(
        asgi, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=3
    )
    server = _Http(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task
        listener.close()


async def _repeat(changes: Changes, part: str, work: Callable[[], int], stop: asyncio.Event) -> None:
    while not stop.is_set():
        seen = changes.seen(part)
        try:
            if await asyncio.to_thread(work):
                continue
        except Exception:
            # The top of a loop: what was being done was rolled back and is tried again.
            log.exception("loop failed", action=part)
            await asyncio.sleep(1)
        await changes.after(part, seen, seconds=15)


async def _drain(context: Context, changes: Changes, stop: asyncio.Event) -> None:
    while not stop.is_set():
        seen = changes.seen("outbox")
        try:
            pause = sending.LONGEST_LOOK
            if context.senders:
                if await sending.drain(context, at_once=context.settings.smtp_out.connections):
                    continue
                pause = await asyncio.to_thread(sending.seconds_to_next, context)
        except Exception:
            # The top of a loop: a copy that was being handed over keeps its lease and becomes unknown.
            log.exception("loop failed", action="drain")
            pause = 1.0
        await changes.after("outbox", seen, seconds=pause)


async def look(
    context: Context,
    changes: Changes,
    clock: timers.Timers,
    stop: asyncio.Event,
    *,
    every: float = LOOK_EVERY,
) -> None:
    """Notice what other processes committed, `every` seconds, and pull the clock to it, until `stop`."""
    last: int | None = None
    while not stop.is_set():
        try:
            version = await asyncio.to_thread(context.db.version)
            if last is not None and version != last:
                changes.wake_all()
                await clock.pull()
            last = version
        except CorruptDatabase:
            # Nothing that is accepted now would be found again: better no answer than a false one.
            log.critical("the database is gone or damaged", action="look")
            stop.set()
            raise
        except Exception:
            # The top of a loop: what was not noticed now is at the next look.
            log.exception("loop failed", action="look")
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), every)
