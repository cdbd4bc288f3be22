"""The yardstick: a bare aiosmtpd that takes every mail and throws it away."""

from __future__ import annotations

import asyncio
import json

from aiosmtpd.smtp import SMTP


class Discard:
    """Takes everything."""

    async def handle_DATA(self, server: object, session: object, envelope: object) -> str:  # noqa: N802
        """Answer 250 and keep nothing."""
        return "250 2.0.0 gone"


async def main() -> None:
    """Listen on a free port, say which, and serve until stdin closes."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: SMTP(Discard(), hostname="bare.example", loop=loop, enable_SMTPUTF8=True), "127.0.0.1", 0
    )
    print(json.dumps({"smtp_port": server.sockets[0].getsockname()[1]}), flush=True)
    reader = asyncio.StreamReader()
    import sys

    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    await reader.read()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
