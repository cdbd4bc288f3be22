"""Takes mail in over SMTP or LMTP; what is ours and what becomes of it is decided by two callables."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter

from answerback.channels.mail.reception import Accept, Admit, Delivery, Handler, Listener, Verdict
from answerback.channels.mail.session import LmtpSession, Session

__all__ = ["Accept", "Admit", "Delivery", "Listener", "Server", "Verdict", "serve"]


async def serve(listener: Listener, *, admit: Admit, accept: Accept) -> Server:
    """Return a running server. Raises OSError where the address can not be bound.

    250 follows the dot only when `accept` has returned it; an error in `admit` or `accept` is answered with
    451, logged without addresses or content, and the sender keeps the mail.
    """
    # It writes addresses at level INFO, and every line at DEBUG.
    logging.getLogger("mail.log").setLevel(logging.ERROR)
    server = Server(listener, Handler(listener, admit, accept))
    await server.start()
    return server


class Server:
    """A listening server and its sessions."""

    def __init__(self, listener: Listener, handler: Handler) -> None:
        self._listener = listener
        self._handler = handler
        self._sessions: set[Session] = set()
        self._peers: Counter[str] = Counter()
        self._empty = asyncio.Event()
        self._empty.set()
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port it listens on, 0 once closed."""
        sockets = self._server.sockets if self._server is not None else ()
        return int(sockets[0].getsockname()[1]) if sockets else 0

    async def start(self) -> None:
        """Listen. Raises OSError."""
        kind = LmtpSession if self._listener.lmtp else Session
        self._server = await asyncio.get_running_loop().create_server(
            lambda: kind(self._handler, self._listener, self),
            self._listener.host,
            self._listener.port,
            family=socket.AF_UNSPEC,
            backlog=128,
        )

    async def close(self, *, patience: float = 5) -> None:
        """Stop listening, let mails that are being handed over end for `patience` seconds, then cut off."""
        if self._server is None:
            return
        self._server.close()
        for session in tuple(self._sessions):
            session.leave()
        try:
            async with asyncio.timeout(patience):
                await self._empty.wait()
        except TimeoutError:
            for session in tuple(self._sessions):
                session.abort()
            await self._empty.wait()
        await self._server.wait_closed()

    def enter(self, session: Session, peer: str) -> bool:
        """Return whether there is room for one more session from this peer, and note that it is here."""
        full = len(self._sessions) >= self._listener.max_connections
        if full or self._peers[peer] >= self._listener.max_per_peer:
            return False
        self._sessions.add(session)
        self._peers[peer] += 1
        self._empty.clear()
        return True

    def leave(self, session: Session, peer: str) -> None:
        """Note that the session has ended; a second time changes nothing."""
        if session not in self._sessions:
            return
        self._sessions.discard(session)
        self._peers[peer] -= 1
        if not self._peers[peer]:
            del self._peers[peer]
        if not self._sessions:
            self._empty.set()
