"""One SMTP conversation with the relay in steps, so that before and after the final dot are told apart."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Mapping
from typing import Final, cast

from aiosmtplib import SMTP, SMTPException, SMTPResponse, SMTPResponseException, SMTPServerDisconnected

from answerback.channels.base import Note
from answerback.channels.mail import addresses, headers
from answerback.errors import BadAddress
from answerback.model import Envelope, Outcome, Receipt, RecipientResult

#: how a conversation breaks: refused, garbled, cut off, too slow
LOST: Final = (SMTPException, OSError, TimeoutError)

_TEXT_LIMIT = 500  # characters of a server's words we keep
_BLOCK = 1 << 16  # octets handed to the kernel per timeout
_GOODBYE = 421  # the server closes after this reply (RFC 5321 section 3.8)
_ANGLE_ID = re.compile(r"<[^<>\s]+>")
_BARE_ID = re.compile(r"(?:\d\.\d\.\d )?Ok:? ([0-9A-Za-z][0-9A-Za-z.@_-]{15,})", re.IGNORECASE)


class Connection:
    """One greeted connection to the relay, and whether it may serve another envelope."""

    def __init__(self, smtp: SMTP, *, timeout: float) -> None:
        """`timeout` in seconds holds for one command and for one block of content."""
        self._smtp = smtp
        self._timeout = timeout
        protocol = smtp.protocol
        if protocol is None or protocol.transport is None:
            raise SMTPServerDisconnected("the connection was lost after the greeting")
        self._protocol = protocol
        transport = cast("asyncio.WriteTransport", protocol.transport)  # uvloop's share no base class
        # With nothing allowed to wait in our own buffer, drain() returns when the kernel has every octet.
        # Not 0: asyncio's TLS transport then pauses at an empty buffer and never resumes (CPython 3.11).
        transport.set_write_buffer_limits(high=1)
        loop = asyncio.get_running_loop()
        self._writer = asyncio.StreamWriter(transport, protocol, None, loop)
        self.used_at = loop.time()
        #: no transaction is half done and no reply is outstanding
        self.is_clean = True

    async def is_alive(self) -> bool:
        """Return whether the relay still answers; leaves it ready for a new transaction."""
        try:
            await self._smtp.rset()
        except LOST:
            return False
        return True

    async def quit(self) -> None:
        """Say goodbye and close."""
        with contextlib.suppress(*LOST):
            await self._smtp.quit()
        self.abort()

    def abort(self) -> None:
        """Close at once, without a word."""
        self._writer.transport.abort()
        self._smtp.close()

    async def transact(self, envelope: Envelope, *, note: Note) -> Receipt:
        """Return the results of one transaction; `is_clean` stays false where the connection is spent."""
        self.is_clean = False
        refused: dict[str, RecipientResult] = {}
        try:
            reply = await self._open(envelope, refused)
        except LOST as problem:
            return receipt(envelope, refused, lost(problem))
        if reply.code != 354:
            self.is_clean = reply.code != _GOODBYE
            return receipt(envelope, refused, _before_content(reply))
        note("during_send")
        return await self._content(envelope, refused)

    async def _open(self, envelope: Envelope, refused: dict[str, RecipientResult]) -> SMTPResponse:
        """Return the reply that decides about everybody not in `refused`: 354 where content may follow."""
        utf8 = _needs_utf8(envelope)
        if utf8 and not self._smtp.supports_extension("smtputf8"):
            return SMTPResponse(553, "5.6.7 the relay can not carry a non-ASCII address (no SMTPUTF8)")
        sender = addresses.wire(envelope.return_path) if envelope.return_path else ""
        reply = await self._command("MAIL", f"FROM:<{sender}>", *self._options(envelope, utf8=utf8))
        if reply.code // 100 != 2:
            return reply
        for recipient in dict.fromkeys(envelope.recipients):
            reply = await self._recipient(recipient)
            if reply.code // 100 != 2:
                refused[recipient] = _before_content(reply)
            if reply.code == _GOODBYE:
                return reply
        return await self._command("DATA") if len(refused) < len(set(envelope.recipients)) else reply

    async def _recipient(self, recipient: str) -> SMTPResponse:
        try:
            path = addresses.wire(recipient)
        except BadAddress as problem:
            return SMTPResponse(553, problem.message)
        return await self._command("RCPT", f"TO:<{path}>")

    def _options(self, envelope: Envelope, *, utf8: bool) -> list[str]:
        size = [f"SIZE={len(envelope.octets)}"] if self._smtp.supports_extension("size") else []
        return [*size, "BODY=8BITMIME", "SMTPUTF8"] if utf8 else size  # RFC 6531 section 3.4

    async def _command(self, *words: str) -> SMTPResponse:
        return await self._smtp.execute_command(*(word.encode() for word in words))

    async def _content(self, envelope: Envelope, refused: dict[str, RecipientResult]) -> Receipt:
        try:
            await self._write(stuffed(envelope.octets))
            self._protocol.write(b".\r\n")
        except LOST as problem:
            return receipt(envelope, refused, lost(problem))
        try:
            reply = await self._protocol.read_response(timeout=self._timeout)
        except LOST as problem:
            return receipt(envelope, refused, lost(problem, outcome=Outcome.UNKNOWN))
        self.is_clean = reply.code != _GOODBYE
        result = _after_dot(reply)
        given = provider_id(reply.message, envelope) if result.outcome is Outcome.SENT else ""
        return receipt(envelope, refused, result, provider_id=given)

    async def _write(self, content: bytes) -> None:
        for start in range(0, len(content), _BLOCK):
            self._writer.write(content[start : start + _BLOCK])
            async with asyncio.timeout(self._timeout):
                await self._writer.drain()
        # drain() also returns, without an error, when the peer closed the connection
        if not self._smtp.is_connected:
            raise SMTPServerDisconnected("connection lost before the end of the mail")


def stuffed(octets: bytes) -> bytes:
    """Return the content as DATA carries it, without the final dot (RFC 5321 section 4.5.2)."""
    content = octets if octets.endswith(b"\r\n") else octets + b"\r\n"
    content = content.replace(b"\r\n.", b"\r\n..")
    return b"." + content if content.startswith(b".") else content


def _needs_utf8(envelope: Envelope) -> bool:
    """Whether a local part or a header is not ASCII: then all of it is SMTPUTF8 (RFC 6531 section 3.2)."""
    head = envelope.octets.partition(b"\r\n\r\n")[0]
    local_parts = (address.rpartition("@")[0] for address in (envelope.return_path, *envelope.recipients))
    return not head.isascii() or not all(local.isascii() for local in local_parts)


def _before_content(reply: SMTPResponse) -> RecipientResult:
    return _result(Outcome.FAILED if reply.code // 100 == 5 else Outcome.DEFERRED, reply.code, reply.message)


def _after_dot(reply: SMTPResponse) -> RecipientResult:
    outcomes = {2: Outcome.SENT, 4: Outcome.DEFERRED, 5: Outcome.FAILED}
    return _result(outcomes.get(reply.code // 100, Outcome.UNKNOWN), reply.code, reply.message)


def lost(problem: BaseException, *, outcome: Outcome = Outcome.DEFERRED) -> RecipientResult:
    """Return what a broken conversation means for everybody it was about."""
    code = problem.code if isinstance(problem, SMTPResponseException) and problem.code > 0 else 0
    return _result(outcome, code, str(problem) or type(problem).__name__)


def _result(outcome: Outcome, code: int, text: str) -> RecipientResult:
    return RecipientResult(outcome=outcome, code=code, text=headers.clean(text)[:_TEXT_LIMIT])


def receipt(
    envelope: Envelope,
    decided: Mapping[str, RecipientResult],
    rest: RecipientResult,
    *,
    provider_id: str = "",
) -> Receipt:
    """Return one result per recipient: what was decided about it, else what holds for the rest."""
    results = {recipient: decided.get(recipient, rest) for recipient in envelope.recipients}
    return Receipt(results=results, provider_id=provider_id)


def provider_id(text: str, envelope: Envelope) -> str:
    """Return the id in a relay's 250 as written: one in angle brackets, else SES's bare `Ok 0102…-000000`.

    "" for none. An address of the envelope is no id, and neither is a queue number behind other words.
    """
    ours = {f"<{address}>".casefold() for address in (envelope.return_path, *envelope.recipients)}
    for found in _ANGLE_ID.findall(text):
        if found.casefold() not in ours:
            return str(found)
    bare = _BARE_ID.fullmatch(text.strip())
    return bare[1] if bare and any(char.isdigit() for char in bare[1]) else ""
