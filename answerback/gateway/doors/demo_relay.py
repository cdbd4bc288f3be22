"""The demo's outgoing relay, a process of its own: forwards mail to the server of each recipient's domain."""

from __future__ import annotations

import asyncio
import json
from email.utils import formatdate

from answerback.channels.mail import smtp_in, smtp_out
from answerback.gateway.doors.demo_people import HOST, lines, say
from answerback.model import Envelope, Outcome, RecipientResult

NAME = "relay.example"


class Forwarder:
    """Knows the servers and hands mail over to them, one recipient at a time."""

    def __init__(self) -> None:
        self._servers: dict[str, smtp_out.Relay] = {}

    def learn(self, ports: dict[str, int]) -> None:
        """Know the port of each domain's server."""
        for domain, port in ports.items():
            server = smtp_out.Server(host=HOST, port=port, local_hostname=NAME, security="none", timeout=10)
            self._servers[domain] = smtp_out.Relay(server)

    def admit(self, recipient: str) -> bool:
        """Tell whether there is a server for a recipient."""
        return _domain(recipient) in self._servers

    async def accept(self, delivery: smtp_in.Delivery) -> tuple[smtp_in.Verdict, ...]:
        """Hand a mail on and return what its recipients' servers said."""
        octets = _trace(delivery) + delivery.octets
        return tuple([await self._forward(octets, delivery.mail_from, one) for one in delivery.recipients])

    async def _forward(self, octets: bytes, return_path: str, recipient: str) -> smtp_in.Verdict:
        envelope = Envelope(octets=octets, return_path=return_path, recipients=(recipient,))
        receipt = await self._servers[_domain(recipient)].hand_over(envelope, note=lambda _point: None)
        return _verdict(receipt.results[recipient])

    async def close(self) -> None:
        """Close every connection."""
        await asyncio.gather(*(server.close() for server in self._servers.values()))


def _domain(recipient: str) -> str:
    return recipient.rpartition("@")[2].lower()


def _trace(delivery: smtp_in.Delivery) -> bytes:
    """Return the line every relay writes on top (RFC 5321 section 4.4)."""
    host = f"{delivery.helo} ([{delivery.peer}])"
    return f"Received: from {host} by {NAME} with ESMTP; {formatdate()}\r\n".encode("ascii", "replace")


def _verdict(result: RecipientResult) -> smtp_in.Verdict:
    match result.outcome:
        case Outcome.SENT | Outcome.FAILED:
            return smtp_in.Verdict(code=result.code, text=result.text)
        case _:
            return smtp_in.Verdict(code=451, text="4.4.1 its server did not take it, try again later")


async def main() -> None:
    """Relay until standard input closes; its lines name the ports of the domains."""
    forwarder = Forwarder()
    listener = smtp_in.Listener(hostname=NAME, host=HOST)
    server = await smtp_in.serve(listener, admit=forwarder.admit, accept=forwarder.accept)
    orders = await lines()
    say("ready", port=server.port)
    async for line in orders:
        forwarder.learn(json.loads(line))
    await server.close(patience=1)
    await forwarder.close()


if __name__ == "__main__":
    asyncio.run(main())
