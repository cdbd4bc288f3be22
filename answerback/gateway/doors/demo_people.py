"""One supplier of the demo, a process of its own: takes mail in by SMTP and answers by SMTP, or does not."""

from __future__ import annotations

import asyncio
import json
import smtplib
import sys
from collections.abc import Coroutine
from dataclasses import asdict
from datetime import UTC, datetime
from email import message_from_bytes
from email.header import decode_header, make_header
from email.message import Message
from email.policy import compat32
from email.utils import parseaddr
from typing import Any

from answerback.channels.mail import smtp_in
from answerback.gateway.doors.demo_mails import PEOPLE, Got, Person, absence, answer

HOST = "127.0.0.1"
#: seconds for one step of handing an answer over
PATIENCE = 10.0


def parse(octets: bytes, return_path: str) -> Got:
    """Return what the standard library's parser finds in a mail: another one than the gateway's own."""
    mail = message_from_bytes(octets, policy=compat32)
    return Got(
        message_id=_field(mail, "Message-ID"),
        in_reply_to=_field(mail, "In-Reply-To"),
        references=tuple(_field(mail, "References").split()),
        sender=_field(mail, "From"),
        reply_to=_field(mail, "Reply-To"),
        to=_field(mail, "To"),
        subject=str(make_header(decode_header(_field(mail, "Subject")))),
        date=_field(mail, "Date"),
        text=_text(mail),
        return_path=return_path,
    )


def _field(mail: Message, name: str) -> str:
    return " ".join(str(mail.get(name, "")).split())


def _text(mail: Message) -> str:
    for part in mail.walk():
        if part.get_content_type() == "text/plain":
            octets = part.get_payload(decode=True)
            return octets.decode("utf-8", "replace") if isinstance(octets, bytes) else ""
    return ""


class Desk:
    """What one supplier does with the mail it gets; all of it is told on standard output, a line each."""

    def __init__(self, person: Person, speed: float) -> None:
        self._person = person
        self._speed = speed
        self._mx = 0
        self._last: Got | None = None
        self._work: set[asyncio.Task[None]] = set()

    def admit(self, recipient: str) -> bool:
        """Tell whether a recipient is this supplier."""
        return recipient.lower() == self._person.address

    async def accept(self, delivery: smtp_in.Delivery) -> str:
        """Take a mail; what it leads to happens after the 250."""
        got = self._last = parse(delivery.octets, delivery.mail_from)
        say("received", recipients=list(delivery.recipients), **asdict(got))
        if not got.in_reply_to:
            self._start(got)
        return "250 2.0.0 taken"

    def order(self, line: bytes) -> None:
        """Do what a line of standard input says: learn the gateway's port, or answer the last mail."""
        given = json.loads(line)
        self._mx = given.get("mx", self._mx)
        if given.get("answer") and self._last:
            self._begin(self._answer(self._last, 0))

    def _start(self, got: Got) -> None:
        if self._person.away:
            note = absence(self._person, got, datetime.now(UTC).date())
            # The null return path keeps two answering machines from talking forever (RFC 3834 section 3.3).
            self._begin(self._post("out_of_office", note, mail_from=""))
        if self._person.after is not None:
            self._begin(self._answer(got, self._person.after / self._speed))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _answer(self, got: Got, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._post("reply", answer(self._person, got), mail_from=self._person.address)

    async def _post(self, kind: str, mail: Message, *, mail_from: str) -> None:
        try:
            await asyncio.to_thread(self._send, mail, mail_from)
        except (OSError, smtplib.SMTPException) as error:
            say("failed", kind=kind, problem=f"{type(error).__name__}: {error}")
            return
        ids = {"message_id": mail["Message-ID"], "in_reply_to": mail["In-Reply-To"]}
        say("sent", kind=kind, to=mail["To"], words=list(self._person.words), **ids)

    def _send(self, mail: Message, mail_from: str) -> None:
        helo = f"mail.{self._person.domain}"
        with smtplib.SMTP(HOST, self._mx, local_hostname=helo, timeout=PATIENCE) as smtp:
            smtp.send_message(mail, from_addr=mail_from, to_addrs=[parseaddr(mail["To"])[1]])


def say(event: str, **more: object) -> None:
    """Tell whoever reads standard output, in one line of JSON."""
    print(json.dumps({"event": event, **more}), flush=True)


async def lines() -> asyncio.StreamReader:
    """Return standard input as lines; its end is the end of this process."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    return reader


async def main(domain: str, speed: float) -> None:
    """Be the supplier of this domain until standard input closes."""
    person = PEOPLE[domain]
    desk = Desk(person, speed)
    listener = smtp_in.Listener(hostname=f"mail.{domain}", host=HOST)
    server = await smtp_in.serve(listener, admit=desk.admit, accept=desk.accept)
    orders = await lines()
    say("ready", port=server.port)
    async for line in orders:
        desk.order(line)
    await server.close(patience=1)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], float(sys.argv[2])))
