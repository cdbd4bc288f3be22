"""Fifty senders in a process of their own: raw SMTP over kept connections, as fast as the server answers."""

from __future__ import annotations

import argparse
import asyncio
import json
import time

BODY_LINE = b"The pumps of order 4711 leave on Thursday; the papers follow by post.\r\n"


def mail(number: int, size: int) -> bytes:
    """Return one mail of about `size` octets; no two are the same."""
    head = (
        f"From: Pat <pat@supplier.example>\r\nTo: agent@gateway.example\r\nSubject: offer {number}\r\n"
        f"Message-ID: <load-{number}-{time.time_ns()}@supplier.example>\r\n"
        "Date: Tue, 01 Dec 2026 10:00:00 +0000\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n\r\n"
    ).encode()
    return head + BODY_LINE * max(1, (size - len(head)) // len(BODY_LINE))


async def reply(reader: asyncio.StreamReader) -> bytes:
    """Return the last line of a reply."""
    while True:
        line = await reader.readline()
        if not line or line[3:4] == b" ":
            return line


async def send(port: int, mails: list[bytes]) -> int:
    """Send mails over one connection and return how many were taken with 250."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken = 0
    await reply(reader)
    writer.write(b"EHLO load.example\r\n")
    await reply(reader)
    for octets in mails:
        for command in (
            b"MAIL FROM:<pat@supplier.example>\r\n",
            b"RCPT TO:<agent@gateway.example>\r\n",
            b"DATA\r\n",
        ):
            writer.write(command)
            await reply(reader)
        writer.write(octets + b".\r\n")
        taken += (await reply(reader)).startswith(b"250")
    writer.write(b"QUIT\r\n")
    await reply(reader)
    writer.close()
    return taken


async def run(port: int, senders: int, each: int, size: int) -> dict[str, float]:
    """Return how many mails were taken and in how many seconds."""
    piles = [[mail(sender * each + number, size) for number in range(each)] for sender in range(senders)]
    start = time.perf_counter()
    taken = sum(await asyncio.gather(*(send(port, pile) for pile in piles)))
    return {"taken": taken, "seconds": time.perf_counter() - start}


def main() -> None:
    """Send what the command line asks for and print the result as JSON."""
    parser = argparse.ArgumentParser()
    for name, default in (("--port", 0), ("--senders", 50), ("--each", 20), ("--size", 5000)):
        parser.add_argument(name, type=int, default=default)
    asked = parser.parse_args()
    print(json.dumps(asyncio.run(run(asked.port, asked.senders, asked.each, asked.size))))


if __name__ == "__main__":
    main()
