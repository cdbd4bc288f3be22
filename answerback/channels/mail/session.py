"""One SMTP or LMTP session of somebody who brings us mail."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from typing import Any, AnyStr, Protocol, cast

from aiosmtpd import lmtp, smtp

from answerback.channels.mail import addresses
from answerback.channels.mail.reception import BareNewline, Handler, Listener, peer_host

_BARE = re.compile(rb"(?<!\r)\n|\r(?!\n)")
#: `<path> parameters`; a path in quotes may hold brackets
_PATH = re.compile(r'\s*<((?:"(?:[^"\\]|\\.)*"|[^<>"])*)>(.*)', re.DOTALL)
_DATA_TIMEOUTS = 10  # a DATA may last as many idle timeouts, if octets keep coming


class _StrictReader(asyncio.StreamReader):
    """Refuses command lines with a bare CR or LF; content is looked at when it is complete."""

    async def readuntil(self, separator: Any = b"\n") -> bytes:
        line = await super().readuntil(separator)
        if separator == b"\n" and _BARE.search(line):
            raise BareNewline
        return line


class Attendance(Protocol):
    """What a session asks and tells the server it belongs to."""

    def enter(self, session: Session, peer: str) -> bool:
        """Return whether there is room for one more from this peer, and note that it is here."""
        ...

    def leave(self, session: Session, peer: str) -> None:
        """Note that the session has ended."""
        ...


class Session(smtp.SMTP):
    """A session of aiosmtpd with strict lines, strict paths and an end to patience.

    Source routes are refused with 553 (RFC 5321 appendix F.2 allows it), and so is a path without brackets.
    """

    line_length_limit = 1 << 17  # HTML mail has lines far over the 998 of RFC 5322

    def __init__(self, handler: Handler, listener: Listener, attendance: Attendance) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(
            handler,
            data_size_limit=listener.max_size,
            enable_SMTPUTF8=True,
            hostname=listener.hostname,
            ident="answerback",
            tls_context=listener.tls,
            timeout=listener.timeout,
            auth_exclude_mechanism=("LOGIN", "PLAIN"),
            loop=loop,
        )
        # Once more, with a reader of ours: aiosmtpd has no way to pass one.
        reader = _StrictReader(limit=self.line_length_limit, loop=loop)
        asyncio.StreamReaderProtocol.__init__(self, reader, self._cb_client_connected, loop=loop)
        # aiosmtpd shares these limits between all sessions and raises them at every EHLO.
        self.command_size_limits = defaultdict(lambda: 1024)
        self._attendance = attendance
        self._peer = ""
        self._idle_limit = listener.timeout
        self._errors_left = listener.max_errors
        self._content_until = 0.0
        self._leaving = False

    @property
    def is_busy(self) -> bool:
        """Whether a mail is being handed over: between MAIL and the reply after the dot."""
        return bool(self._content_until or (self.envelope and self.envelope.mail_from))

    def leave(self) -> None:
        """Say 421 and close: now, or when the mail that is being handed over has its reply."""
        self._leaving = True
        if not self.is_busy:
            self._close_with("421 4.3.2 closing for now")

    def abort(self) -> None:
        """Close without a word."""
        if self.transport is not None:
            cast("asyncio.Transport", self.transport).abort()

    def _close_with(self, reply: str) -> None:
        if self.transport is not None and not self.transport.is_closing():
            cast("asyncio.Transport", self.transport).write(reply.encode() + b"\r\n")
            self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the session, or tell the peer that there is no room."""
        if self._original_transport is None:
            self._peer = peer_host(transport.get_extra_info("peername"))
            if not self._attendance.enter(self, self._peer):
                transport.set_protocol(asyncio.Protocol())
                cast("asyncio.Transport", transport).write(
                    b"421 4.7.0 too many connections, try again later\r\n"
                )
                transport.close()
                return
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        """End the session."""
        self._attendance.leave(self, self._peer)
        super().connection_lost(error)

    def data_received(self, data: bytes) -> None:
        """Take octets; inside DATA they show that the peer is not idle (RFC 5321 section 4.5.3.2.5)."""
        if self.loop.time() < self._content_until:
            self._reset_timeout()
        super().data_received(data)

    async def push(self, status: AnyStr) -> None:
        """Send a reply; too many refusals end the session."""
        await super().push(status)
        if status[:1] in ("5", b"5"):
            self._errors_left -= 1
            if self._errors_left <= 0:
                self._close_with("421 4.7.0 too many errors")

    async def smtp_DATA(self, arg: str | None) -> None:  # noqa: N802 - aiosmtpd finds commands by name
        """DATA."""
        self._content_until = self.loop.time() + _DATA_TIMEOUTS * self._idle_limit
        try:
            await super().smtp_DATA(arg)
        finally:
            self._content_until = 0.0
        if self._leaving:
            self.leave()

    async def smtp_STARTTLS(self, arg: str | None) -> None:  # noqa: N802
        """STARTTLS, once; a peer that hangs up inside the handshake has ended its session.

        asyncio then reports the handshake as done, and aiosmtpd 1.4.6 would wait for commands for ever.
        """
        if self._tls_protocol is not None:
            await self.push("503 5.5.1 TLS is in use already")
            return
        await super().smtp_STARTTLS(arg)
        if self._is_handshake_broken():
            raise smtp.TLSSetupException

    def _is_handshake_broken(self) -> bool:
        return self._tls_protocol is not None and (self.session is None or self.session.ssl is None)

    async def smtp_VRFY(self, arg: str | None) -> None:  # noqa: N802
        """VRFY, which tells nothing (RFC 5321 section 7.3)."""
        await self.push("252 2.1.5 send mail to find out")

    async def smtp_EXPN(self, arg: str | None) -> None:  # noqa: N802
        """EXPN, which tells nothing."""
        await self.push("502 5.5.1 EXPN is not offered")

    async def smtp_AUTH(self, arg: str | None) -> None:  # noqa: N802
        """AUTH: nobody has an account here."""
        await self.push("502 5.5.1 AUTH is not offered")

    def _getaddr(self, arg: str) -> tuple[str | None, str | None]:
        found = _PATH.fullmatch(arg)
        if found is None:
            return None, None
        path, rest = found[1], found[2]
        if path and path.lower() != "postmaster" and not addresses.is_mailbox(path):
            return None, None
        return path or "<>", rest


class LmtpSession(Session, lmtp.LMTP):
    """The same over LMTP (RFC 2033): LHLO, and one reply per recipient after the dot."""

    async def push(self, status: AnyStr) -> None:
        """Send a reply; a refusal of the content itself, which aiosmtpd says once, goes to each recipient."""
        of_content = self._content_until and self.envelope and status[:4] in ("500 ", "552 ")
        for _ in self.envelope.rcpt_tos if of_content and self.envelope else ("once",):
            await super().push(status)
