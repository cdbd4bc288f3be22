"""Checks the place the gateway runs in, and says what to do about what is wrong."""

from __future__ import annotations

import os
import smtplib
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from answerback.errors import AnswerbackError
from answerback.gateway import keyring, settings
from answerback.gateway.clock import SystemClock
from answerback.model import Json, OutboxState, value
from answerback.store import diagnosis
from answerback.store.session import Database

if TYPE_CHECKING:
    from answerback.gateway.clock import Clock
    from answerback.gateway.settings import Settings, SmtpOut
    from answerback.store.session import Tx

#: the day this part was written: a clock before it was never set
BUILT = datetime(2026, 1, 1, tzinfo=UTC)
#: what two machines' clocks may differ by
SKEW = timedelta(minutes=5)
#: a mail not processed by then is stuck, not in work
IN_WORK = timedelta(minutes=5)
#: seconds to wait for another machine
PATIENCE = 5.0
#: top-level names no mail from outside can reach (RFC 2606 section 2, RFC 6761 section 6)
RESERVED = frozenset({"example", "invalid", "localhost", "test"})


@value
class Finding:
    """What one check found."""

    check: str
    #: look: it works, and something waits for a person
    state: Literal["ok", "look", "wrong"]
    says: str
    #: what to do about it, "" where nothing is to be done
    do: str = ""


def examine(
    load: Callable[[], Settings], *, serving: Callable[[Path], bool], clock: Clock | None = None
) -> Json:
    """Return every finding; `ok` is false where one of them is wrong.

    `load` gives the settings or raises BadSettings; `serving` tells whether a server runs on a home.
    """
    findings = list(_findings(load, serving, clock or SystemClock()))
    shown: list[Json] = [
        {"check": one.check, "state": one.state, "says": one.says, "do": one.do} for one in findings
    ]
    return {"ok": all(one.state != "wrong" for one in findings), "checks": shown}


def _findings(
    load: Callable[[], Settings], serving: Callable[[Path], bool], clock: Clock
) -> Iterator[Finding]:
    try:
        found = load()
    except AnswerbackError as error:
        yield Finding(check="settings", state="wrong", says=error.message, do="Correct it, then look again.")
        return
    yield Finding(check="settings", state="ok", says=f"read; the file is {settings.settings_file()}")
    yield _home(found.home)
    if found.home.is_dir():
        yield _keyring(found)
    yield from _database(found, clock.now())
    yield _relay(found.smtp_out)
    running = found.home.is_dir() and serving(found.home)
    yield _port("mail in", found.smtp_in.host, found.smtp_in.port, running=running)
    yield _port("HTTP", found.http.host, found.http.port, running=running)


def _home(home: Path) -> Finding:
    if not home.is_dir():
        return Finding(
            check="home", state="wrong", says=f"{home} is not there", do="`answerback init` makes it."
        )
    return _private("home", home)


def _private(check: str, path: Path) -> Finding:
    mode = path.stat().st_mode & 0o777
    if mode & 0o077:
        says = f"{path} is open to other users of this machine (mode {mode:o})"
        return Finding(check=check, state="wrong", says=says, do=f"chmod go= {path}")
    return Finding(check=check, state="ok", says=f"{path} is there, for its owner only")


def _keyring(found: Settings) -> Finding:
    try:
        keyring.load(found.keyring_path, os.environ)
    except AnswerbackError as error:
        do = "`answerback init` makes one; to read old tokens, restore the old one from your backup."
        return Finding(check="keyring", state="wrong", says=error.message, do=do)
    if keyring.VARIABLE in os.environ:
        return Finding(check="keyring", state="ok", says=f"read from {keyring.VARIABLE}")
    return _private("keyring", found.keyring_path)


def _database(found: Settings, now: datetime) -> Iterator[Finding]:
    try:
        with closing(Database.open(found.database_url)) as db:
            db.check()
            with db.read() as tx:
                yield from _rows(tx, db.name, now)
    except AnswerbackError as error:
        yield Finding(check="database", state="wrong", says=error.message, do="The sentence says what to do.")


def _rows(tx: Tx, name: str, now: datetime) -> Iterator[Finding]:
    problem = diagnosis.integrity(tx)
    if problem != "ok":
        do = "Stop the server, keep a copy of the file, and restore your last backup."
        yield Finding(check="database", state="wrong", says=f"{name} is damaged: {problem}", do=do)
        return
    if not diagnosis.current(tx):
        do = "Make a backup; the next start of `answerback serve` brings it up to date."
        yield Finding(check="database", state="look", says=f"{name} has an older schema", do=do)
        return
    yield Finding(check="database", state="ok", says=f"{name} is whole and current")
    yield _clock(now, diagnosis.newest(tx))
    yield _inboxes(diagnosis.domains(tx))
    yield from _stuck(tx, now)


def _clock(now: datetime, newest: datetime | None) -> Finding:
    do = "Set the clock of this machine (NTP); waits and deadlines are counted by it."
    if now < BUILT:
        return Finding(check="clock", state="wrong", says=f"it shows {now:%Y-%m-%d}, which is past", do=do)
    if newest is not None and newest > now + SKEW:
        says = f"it shows {now:%Y-%m-%d %H:%M}, but something was stored at {newest:%Y-%m-%d %H:%M} UTC"
        return Finding(check="clock", state="wrong", says=says, do=do)
    return Finding(check="clock", state="ok", says=f"{now:%Y-%m-%d %H:%M} UTC")


def _inboxes(domains: tuple[str, ...]) -> Finding:
    if not domains:
        do = "`answerback agents add NAME`, then `answerback inboxes add ADDRESS --agent NAME`."
        return Finding(check="inboxes", state="wrong", says="there is none to write from", do=do)
    reserved = [domain for domain in domains if domain.rpartition(".")[2] in RESERVED]
    if reserved:
        do = "Fine for trying out; a real answer needs a domain of yours whose MX record names this machine."
        return Finding(
            check="inboxes", state="look", says=f"no mail can come to {', '.join(reserved)}", do=do
        )
    return Finding(check="inboxes", state="ok", says=f"at {', '.join(domains)}")


def _stuck(tx: Tx, now: datetime) -> Iterator[Finding]:
    yield _count(
        "mail not processed",
        diagnosis.unprocessed(tx, now - IN_WORK),
        "wrong",
        "Start `answerback serve`; see its log.",
    )
    decide = "`answerback reviews list` shows them, `answerback reviews decide` decides."
    yield _count("mail that may have left", diagnosis.copies(tx, OutboxState.UNKNOWN), "look", decide)
    deferred = diagnosis.copies(tx, OutboxState.DEFERRED)
    yield _count(
        "mail the relay put off", deferred, "look", "It is tried again by itself; see the relay's log."
    )
    yield _count("open reviews", diagnosis.undecided(tx), "look", decide)
    dead = "An agent took them again and again without acknowledging: `answerback mailbox read` shows them."
    yield _count("dead letters", diagnosis.dead(tx), "look", dead)


def _count(check: str, count: int, bad: Literal["look", "wrong"], do: str) -> Finding:
    if count:
        return Finding(check=check, state=bad, says=str(count), do=do)
    return Finding(check=check, state="ok", says="none")


def _relay(out: SmtpOut) -> Finding:
    if not out.host:
        do = f"Set `smtp_out.host` in {settings.settings_file()} (or ANSWERBACK_SMTP_OUT__HOST)."
        return Finding(check="relay", state="wrong", says="none is set, so nothing can be sent", do=do)
    name = f"{out.host}:{out.port}"
    try:
        _greet(out)
    except (OSError, smtplib.SMTPException) as error:
        do = "Check `smtp_out` in the settings, and that the relay runs and can be reached from here."
        if isinstance(error, smtplib.SMTPNotSupportedError):
            do = 'It offers no TLS. Where it is trusted without, set `security = "none"` in [smtp_out].'
        says = f"{name} can not be used: {str(error) or type(error).__name__}"
        return Finding(check="relay", state="wrong", says=says, do=do)
    return Finding(check="relay", state="ok", says=f"{name} answers EHLO")


def _greet(out: SmtpOut) -> None:
    trusted = ssl.create_default_context(cafile=out.authorities)
    relay = (
        smtplib.SMTP_SSL(out.host, out.port, timeout=PATIENCE, context=trusted)
        if out.security == "tls"
        else smtplib.SMTP(out.host, out.port, timeout=PATIENCE)
    )
    with relay:
        code, text = relay.ehlo()
        if code != 250:
            raise smtplib.SMTPHeloError(code, text)
        if out.security == "starttls":
            relay.starttls(context=trusted)


def _port(check: str, host: str, port: int, *, running: bool) -> Finding:
    name = f"{host}:{port}"
    if port == 0:
        return Finding(check=check, state="ok", says="the system chooses the port")
    if running:
        return _served(check, host, port)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            do = "Stop what uses it, or set another port in the settings."
            return Finding(
                check=check, state="wrong", says=f"{name} can not be used: {error.strerror}", do=do
            )
    return Finding(check=check, state="ok", says=f"{name} is free; no server is running")


def _served(check: str, host: str, port: int) -> Finding:
    # A server that listens on every address is reached at this machine's own.
    target = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)
    try:
        with socket.create_connection((target, port), PATIENCE):
            return Finding(check=check, state="ok", says=f"{host}:{port} is served")
    except OSError as error:
        do = "The server was started with other settings: stop it and start it again."
        return Finding(
            check=check, state="wrong", says=f"{host}:{port} does not answer: {error.strerror}", do=do
        )
