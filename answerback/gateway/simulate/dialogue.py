"""Speaks SMTP with the gateway's real listener over loopback, octet for octet as a scenario says."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from answerback.channels.mail import smtp_in
from answerback.gateway import intake
from answerback.gateway.context import Context
from answerback.model import value

#: seconds of real time the listener may take for one reply
PATIENCE = 5


@value
class Script:
    """One delivery attempt."""

    mail_from: str
    recipients: tuple[str, ...]
    #: the octets after 354, their end included
    data: bytes
    smtputf8: bool = False


@value
class Outcome:
    """What came of it: the reply after the data, and what was accepted."""

    code: int
    accepted: tuple[smtp_in.Delivery, ...]


async def deliver(context: Context, script: Script) -> Outcome:
    """Return what the listener said to the data, and every mail it took, smuggled ones too."""
    gate, taken = intake.Gate(context), []

    async def accept(delivery: smtp_in.Delivery) -> tuple[smtp_in.Verdict, ...] | str:
        verdicts = await gate.accept(delivery)
        taken.append(delivery)
        return verdicts

    listener = smtp_in.Listener(hostname="simulation.invalid", port=0)
    server = await smtp_in.serve(listener, admit=gate.admit, accept=accept)
    try:
        async with asyncio.timeout(PATIENCE):
            code = await _speak(server.port, script)
    finally:
        await server.close(patience=0.1)
    return Outcome(code=code, accepted=tuple(taken))


def stuffed(octets: bytes) -> bytes:
    """Return a mail as it follows 354: dots doubled at line starts, a dot at the end (RFC 5321 4.5.2)."""
    lines = octets.removesuffix(b"\r\n").split(b"\r\n")
    return b"\r\n".join(b"." + line if line.startswith(b".") else line for line in lines) + b"\r\n.\r\n"


async def _speak(port: int, script: Script) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        await _reply(reader)
        extension = " SMTPUTF8" if script.smtputf8 else ""
        commands = ["EHLO client.invalid", f"MAIL FROM:<{script.mail_from}>{extension}"]
        commands += [f"RCPT TO:<{recipient}>" for recipient in script.recipients]
        for command in [*commands, "DATA"]:
            writer.write(command.encode() + b"\r\n")
            code = await _reply(reader)
            if code >= 400:
                return code
        writer.write(script.data)
        code = await _reply(reader)
        # What follows a smuggled end of data is read as commands; wait until it was.
        writer.write(b"QUIT\r\n")
        with suppress(ConnectionError):
            while await reader.readline():
                continue
        return code
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def _reply(reader: asyncio.StreamReader) -> int:
    """Return the code of one reply, 421 where the listener hung up."""
    while True:
        line = await reader.readline()
        if len(line) < 4:
            return 421
        if line[3:4] == b" ":
            return int(line[:3])
