"""What is brought to us and what we say to it: the values and decisions behind the SMTP and LMTP server."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import TYPE_CHECKING

import structlog
from aiosmtpd import smtp

from answerback.model import value

if TYPE_CHECKING:
    import ssl

_log = structlog.get_logger(__name__)

_REPLY = re.compile(r"[245]\d\d [^\r\n]*")
_TRY_AGAIN = "451 4.3.0 try again later"
_BARE_REFUSED = "550 5.6.11 a bare CR or LF is not allowed in a mail (RFC 5321 section 2.3.8)"


@value
class Delivery:
    """One mail as it was brought: octets exactly as received, dots unstuffed, every line ended by CRLF."""

    #: "" for the null reverse path of a report
    mail_from: str
    recipients: tuple[str, ...]
    octets: bytes = field(repr=False)
    #: the peer's address, "" where it has none
    peer: str
    helo: str
    tls: bool
    smtputf8: bool


@value
class Verdict:
    """What became of a mail for one recipient: an SMTP reply code and text without line breaks."""

    code: int
    text: str


#: whether a recipient is an inbox here
Admit = Callable[[str], bool | Awaitable[bool]]
#: one verdict per recipient in their order, or one whole reply such as `250 2.0.0 stored` for all; cancelled
#: where the peer hangs up meanwhile: what is committed stays, and the sender will bring the mail again
Accept = Callable[[Delivery], Awaitable[tuple[Verdict, ...] | str]]


@value
class Listener:
    """How the server presents itself and what it puts up with."""

    #: our name in the greeting
    hostname: str
    host: str = "127.0.0.1"
    #: 0 for any free one
    port: int = 0
    lmtp: bool = False
    #: offers STARTTLS where given
    tls: ssl.SSLContext | None = None
    #: octets of one mail
    max_size: int = 25 << 20
    max_recipients: int = 100
    #: connections at once, in all and from one address
    max_connections: int = 200
    max_per_peer: int = 100
    #: refusals (5xx) after which the peer is disconnected
    max_errors: int = 10
    #: seconds without a command, or without octets inside DATA
    timeout: float = 120


class BareNewline(Exception):
    """A command line did not end with CRLF, or held a CR or LF elsewhere."""


class Handler:
    """The hooks of all sessions of one server: they ask `admit` and `accept`, and answer in SMTP's words."""

    def __init__(self, listener: Listener, admit: Admit, accept: Accept) -> None:
        self._listener = listener
        self._admit = admit
        self._accept = accept

    async def handle_EHLO(  # noqa: N802 - aiosmtpd finds hooks by name
        self, _server: smtp.SMTP, session: smtp.Session, _envelope: object, hostname: str, lines: list[str]
    ) -> list[str]:
        session.host_name = hostname
        kept = [line for line in lines if not line.startswith("250-AUTH")]
        return [*kept[:-1], "250-PIPELINING", kept[-1]]

    async def handle_MAIL(  # noqa: N802
        self, _server: object, _session: object, envelope: smtp.Envelope, address: str, options: list[str]
    ) -> str:
        if not address.isascii() and not envelope.smtp_utf8:
            return "553 5.6.7 a non-ASCII address needs SMTPUTF8"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 2.1.0 sender ok"

    async def handle_RCPT(  # noqa: N802
        self, _server: object, _session: object, envelope: smtp.Envelope, address: str, _options: list[str]
    ) -> str:
        if address == "<>":
            return "553 5.1.3 the null path is no recipient"
        if not address.isascii() and not envelope.smtp_utf8:
            return "553 5.6.7 a non-ASCII address needs SMTPUTF8"
        if len(envelope.rcpt_tos) >= self._listener.max_recipients:
            return "452 4.5.3 too many recipients"  # RFC 5321 section 4.5.3.1.10
        admitted = self._admit(address)
        if not (await admitted if inspect.isawaitable(admitted) else admitted):
            return f"550 5.1.1 <{address}> is not an inbox here"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 recipient ok"

    async def handle_DATA(  # noqa: N802
        self, _server: object, session: smtp.Session, envelope: smtp.Envelope
    ) -> str:
        octets, count = envelope.original_content or b"", len(envelope.rcpt_tos)
        if octets.count(b"\n") != octets.count(b"\r\n") or octets.count(b"\r") != octets.count(b"\r\n"):
            return self._answer(_BARE_REFUSED, count)
        try:
            found = await self._accept(_delivery(session, envelope, octets))
            return self._answer(found, count)
        except Exception as problem:  # noqa: BLE001 - the sender keeps the mail and comes again
            return self._answer(await self.handle_exception(problem), count)

    async def handle_exception(self, error: Exception) -> str:
        if isinstance(error, BareNewline):
            return "500 5.5.2 a command ends with CRLF and holds no other CR or LF"
        if not isinstance(error, smtp.TLSSetupException):
            _log.error("smtp_in.failed", action="smtp_in", error=type(error).__name__, at=_where(error))
        return _TRY_AGAIN

    def _answer(self, found: tuple[Verdict, ...] | str, count: int) -> str:
        """Return the reply: SMTP knows one for all recipients, LMTP one for each (RFC 2033 section 4.2)."""
        verdicts = (
            [f"{each.code} {each.text}" for each in found] if isinstance(found, tuple) else [found] * count
        )
        if len(verdicts) != count or not all(_REPLY.fullmatch(each) for each in verdicts):
            raise ValueError("accept returned no verdict for each recipient")
        if self._listener.lmtp:
            return "\r\n".join(verdicts)
        # Who is asked to come again brings the mail for everybody again; it is known by its octets then.
        return min(verdicts, key=lambda each: "425".index(each[0]))


def _delivery(session: smtp.Session, envelope: smtp.Envelope, octets: bytes) -> Delivery:
    mail_from = envelope.mail_from or ""
    return Delivery(
        mail_from="" if mail_from == "<>" else mail_from,
        recipients=tuple(envelope.rcpt_tos),
        octets=octets,
        peer=peer_host(session.peer),
        helo=session.host_name or "",
        tls=session.ssl is not None,
        smtputf8=bool(envelope.smtp_utf8),
    )


def peer_host(peername: object) -> str:
    """Return the address in a socket's peer name, "" for a Unix socket."""
    return str(peername[0]) if isinstance(peername, tuple) else ""


def _where(error: Exception) -> str:
    """Return module and line an error came from; its text may hold addresses and is not logged."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_globals.get('__name__')}:{trace.tb_lineno}" if trace is not None else ""
