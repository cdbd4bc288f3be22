"""Hands mail to the outgoing relay over pooled SMTP connections."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import field
from typing import Final, Literal

from aiosmtplib import SMTP

from answerback.channels.base import Note
from answerback.channels.mail import addresses, headers
from answerback.channels.mail.transaction import LOST, Connection, lost, receipt
from answerback.errors import BadSettings
from answerback.model import Envelope, Receipt, value

_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")


@value
class Server:
    """Where the relay is and how we show ourselves to it."""

    host: str
    port: int
    local_hostname: str
    username: str = ""
    password: str = field(default="", repr=False)
    security: Literal["none", "starttls", "tls"] = "starttls"
    #: PEM file of authorities to trust instead of the system's
    ca_file: str = ""
    #: seconds for each step: connecting, one command, one block of content
    timeout: float = 60
    #: connections at once
    pool_size: int = 4
    #: seconds a connection may lie unused before it is closed rather than used again
    idle_limit: float = 30


class Relay:
    """A Sender that gives every envelope to one relay, inside one event loop.

    Nothing here is repeated: what failed before the final dot is DEFERRED, what was lost between the dot and
    its reply is UNKNOWN, and whatever the relay said stands as it said it. A relay that can not be reached,
    or refuses our name or password, is no verdict on a recipient: DEFERRED.
    """

    def __init__(self, server: Server) -> None:
        """Raises BadSettings: a password without TLS to another machine, or an unreadable ca_file."""
        self._server = server
        self._context = _tls_context(server)
        self._slots = asyncio.Semaphore(server.pool_size)
        self._idle: list[Connection] = []
        self._closed = False

    async def hand_over(self, envelope: Envelope, *, note: Note) -> Receipt:
        """Return the relay's word on every recipient; see `channels.base.Sender`.

        Raises BadAddress for a return path, BadRequest for octets, that must not go onto the wire.
        """
        headers.check_lines(envelope.octets)
        if envelope.return_path:
            addresses.wire(envelope.return_path)
        async with self._slots:
            try:
                connection = await self._take()
            except LOST as problem:
                return receipt(envelope, {}, lost(problem))
            try:
                return await connection.transact(envelope, note=note)
            finally:
                await self._give_back(connection)

    async def close(self) -> None:
        """Let running hand-overs end, then close every connection. Later hand-overs are deferred."""
        self._closed = True
        for _ in range(self._server.pool_size):
            await self._slots.acquire()
        idle, self._idle = self._idle, []
        await asyncio.gather(*(connection.quit() for connection in idle))
        for _ in range(self._server.pool_size):
            self._slots.release()

    async def _take(self) -> Connection:
        if self._closed:
            raise ConnectionError("we closed the relay")
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            if now - connection.used_at <= self._server.idle_limit and await connection.is_alive():
                return connection
            connection.abort()
        return await _connect(self._server, self._context)

    async def _give_back(self, connection: Connection) -> None:
        if not connection.is_clean:
            connection.abort()
        elif self._closed:
            await connection.quit()
        else:
            connection.used_at = asyncio.get_running_loop().time()
            self._idle.append(connection)


def _tls_context(server: Server) -> ssl.SSLContext | None:
    if server.security == "none":
        if server.password and server.host not in _LOOPBACK:
            problem = "a password only goes over TLS; use starttls or tls"
            raise BadSettings(setting="smtp_out.security", problem=problem)
        return None
    try:
        return ssl.create_default_context(cafile=server.ca_file or None)
    except OSError as problem:
        raise BadSettings(setting="smtp_out.ca_file", problem=str(problem)) from None


async def _connect(server: Server, context: ssl.SSLContext | None) -> Connection:
    smtp = SMTP(
        hostname=server.host,
        port=server.port,
        username=server.username or None,
        password=server.password or None,
        local_hostname=server.local_hostname,
        timeout=server.timeout,
        use_tls=server.security == "tls",
        start_tls=server.security == "starttls",
        tls_context=context,
    )
    try:
        await smtp.connect()
        if smtp.is_ehlo_or_helo_needed:
            await smtp.ehlo()
        return Connection(smtp, timeout=server.timeout)
    except BaseException:
        smtp.close()
        raise
