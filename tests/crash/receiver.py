"""A receiving mail server in a process of its own: every mail it takes is in its log, on disk, before the 250."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from email import message_from_bytes
from hashlib import sha256
from pathlib import Path

from aiosmtpd.smtp import SMTP, Envelope, Session

HEADERS = ("Message-ID", "In-Reply-To", "References", "Reply-To", "From", "Subject")


class Keeper:
    """Appends one line to the log for every mail and forces it to the disk."""

    def __init__(self, log: Path) -> None:
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    async def handle_DATA(self, _server: SMTP, _session: Session, envelope: Envelope) -> str:  # noqa: N802
        """Take the mail."""
        assert isinstance(envelope.content, bytes)
        head = message_from_bytes(envelope.content)
        entry: dict[str, object] = {name: str(head[name] or "") for name in HEADERS}
        entry |= {"recipients": envelope.rcpt_tos, "sha256": sha256(envelope.content).hexdigest()}
        os.write(self._log, json.dumps(entry).encode() + b"\n")
        os.fsync(self._log)
        return "250 2.0.0 kept"


async def main(log: Path) -> None:
    """Listen on a free port, say which, and end when standard input does: with whoever started us."""
    loop = asyncio.get_running_loop()
    keeper = Keeper(log)
    server = await loop.create_server(
        lambda: SMTP(keeper, hostname="mx.supplier.example", enable_SMTPUTF8=True, loop=loop), "127.0.0.1", 0
    )
    print(json.dumps({"smtp_port": server.sockets[0].getsockname()[1]}), flush=True)
    ended = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(ended), sys.stdin)
    await ended.read()
    server.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
