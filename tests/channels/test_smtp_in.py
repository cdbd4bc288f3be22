"""The server over real sockets on loopback: Python's smtplib, and raw octets where smtplib is too polite."""

# long because: one listener, one table of what may be brought to it

from __future__ import annotations

import asyncio
import smtplib
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog

from answerback.channels.mail.smtp_in import Accept, Delivery, Listener, Server, Verdict, serve

INBOX = "quotes@gw.example.net"
MAIL = b"From: pat@supplier.example\r\nSubject: Re: PO\r\n\r\nYes.\r\n"
PATIENCE = 10  # seconds a test waits for what should come at once


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(bounded())


@dataclass
class Inboxes:
    """What the gateway is to the server: it knows one inbox and keeps what it is given."""

    kept: list[Delivery] = field(default_factory=list)
    answer: tuple[Verdict, ...] | str = "250 2.0.0 stored"

    def admit(self, recipient: str) -> bool:
        return recipient.rpartition("@")[2] == "gw.example.net" or recipient.lower() == "postmaster"

    async def accept(self, delivery: Delivery) -> tuple[Verdict, ...] | str:
        self.kept.append(delivery)
        return self.answer


@asynccontextmanager
async def serving(
    inboxes: Inboxes, *, accept: Accept | None = None, **settings: Any
) -> AsyncIterator[Server]:
    server = await serve(
        Listener(hostname="mx.gw.example.net", **settings),
        admit=inboxes.admit,
        accept=accept or inboxes.accept,
    )
    try:
        yield server
    finally:
        await server.close(patience=1)


class Peer:
    """A raw client: what it sends is exactly what goes out."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def reply(self) -> str:
        """One reply, lines joined by a bar; "" at the end of the connection."""
        lines: list[str] = []
        async with asyncio.timeout(PATIENCE):
            while line := (await self.reader.readline()).decode().rstrip("\r\n"):
                lines.append(line)
                if line[3:4] != "-":
                    break
        return "|".join(lines)

    async def say(self, octets: bytes) -> str:
        self.writer.write(octets)
        await self.writer.drain()
        return await self.reply()

    async def to_data(self, *, greet: bytes = b"EHLO peer.example\r\n", to: bytes = INBOX.encode()) -> None:
        assert (await self.say(greet)).startswith("250")
        assert await self.say(b"MAIL FROM:<pat@supplier.example>\r\n") == "250 2.1.0 sender ok"
        assert await self.say(b"RCPT TO:<" + to + b">\r\n") == "250 2.1.5 recipient ok"
        assert (await self.say(b"DATA\r\n")).startswith("354")

    async def closed(self) -> bool:
        async with asyncio.timeout(PATIENCE):
            try:
                return await self.reader.read() == b""
            except ConnectionResetError:
                return True


@asynccontextmanager
async def peer(server: Server, *, greeting: str = "220") -> AsyncIterator[Peer]:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    connected = Peer(reader, writer)
    assert (await connected.reply()).startswith(greeting)
    try:
        yield connected
    finally:
        writer.transport.abort()


def send(
    port: int,
    mail: bytes = MAIL,
    *,
    sender: str = "pat@supplier.example",
    to: tuple[str, ...] = (INBOX,),
    options: tuple[str, ...] = (),
) -> dict[str, tuple[int, bytes]]:
    with smtplib.SMTP("127.0.0.1", port, local_hostname="peer.example", timeout=PATIENCE) as client:
        return client.sendmail(sender, to, mail, mail_options=options)


def test_smtplib_delivers_the_octets_as_they_are() -> None:
    async def test() -> None:
        inboxes = Inboxes()
        octets = b"From: a@b.example\r\n\r\n.\r\n..x\r\n\xff\x00 " + b"y" * 5000 + b"\r\n"
        async with serving(inboxes) as server:
            assert await asyncio.to_thread(send, server.port, octets) == {}
        assert inboxes.kept == [
            Delivery(
                mail_from="pat@supplier.example",
                recipients=(INBOX,),
                octets=octets,
                peer="127.0.0.1",
                helo="peer.example",
                tls=False,
                smtputf8=False,
            )
        ]

    run(test)


def test_what_is_offered_can_be_read_in_the_greeting() -> None:
    async def test() -> None:
        async with serving(Inboxes()) as server, peer(server) as client:
            assert await client.say(b"EHLO p\r\n") == (
                "250-mx.gw.example.net|250-SIZE 26214400|250-8BITMIME|250-SMTPUTF8|250-PIPELINING|250 HELP"
            )

    run(test)


def test_the_null_sender_arrives_empty() -> None:
    async def test() -> None:
        inboxes = Inboxes()
        async with serving(inboxes) as server:
            await asyncio.to_thread(send, server.port, sender="")
        assert [delivery.mail_from for delivery in inboxes.kept] == [""]

    run(test)


def test_a_stranger_s_inbox_is_refused_and_the_known_one_served() -> None:
    async def test() -> None:
        inboxes = Inboxes()
        async with serving(inboxes) as server:
            refused = await asyncio.to_thread(send, server.port, to=("nobody@other.example", INBOX))
        assert refused == {
            "nobody@other.example": (550, b"5.1.1 <nobody@other.example> is not an inbox here")
        }
        assert [delivery.recipients for delivery in inboxes.kept] == [(INBOX,)]

    run(test)


def test_admit_may_be_asynchronous() -> None:
    async def test() -> None:
        async def admit(recipient: str) -> bool:
            return recipient == INBOX

        inboxes = Inboxes()
        server = await serve(Listener(hostname="mx"), admit=admit, accept=inboxes.accept)
        refused = await asyncio.to_thread(send, server.port, to=("x@gw.example.net", INBOX))
        await server.close()
        assert list(refused) == ["x@gw.example.net"]

    run(test)


@pytest.mark.parametrize(
    "ending",
    [
        b"\n.\n",
        b"\n.\r\n",
        b"\r\n.\n",
        b"\r.\r",
        b"\r.\r\n",
        b"\r\n.\r",
        b"\r\n\0.\r\n",
        b"\n\n.\r\n",
        b"\r\r\n.\n",
        b"\r\n.\r\r\n",
    ],
)
def test_no_smuggled_ending_makes_a_second_mail(ending: bytes) -> None:
    async def test() -> None:
        inboxes = Inboxes()
        smuggled = (
            b"MAIL FROM:<ceo@evil.example>\r\nRCPT TO:<"
            + INBOX.encode()
            + b">\r\nDATA\r\nSubject: evil\r\n\r\nx\r\n.\r\n"
        )
        async with serving(inboxes) as server, peer(server) as client:
            await client.to_data()
            answer = await client.say(b"Subject: a\r\n\r\nb" + ending + smuggled)
            if b"\0" in ending:
                assert answer == "250 2.0.0 stored"
                assert [delivery.mail_from for delivery in inboxes.kept] == ["pat@supplier.example"]
            else:
                assert (
                    answer == "550 5.6.11 a bare CR or LF is not allowed in a mail (RFC 5321 section 2.3.8)"
                )
                assert inboxes.kept == []
            assert await client.say(b"NOOP\r\n") == "250 OK"

    run(test)


@pytest.mark.parametrize("octets", [b"a\nb\r\n.\r\n", b"a\rb\r\n.\r\n", b"\n\r\n.\r\n", b"\r\r\n.\r\n"])
def test_a_bare_cr_or_lf_in_the_content_is_refused(octets: bytes) -> None:
    async def test() -> None:
        inboxes = Inboxes()
        async with serving(inboxes) as server, peer(server) as client:
            await client.to_data()
            assert (await client.say(octets)).startswith("550 5.6.11 ")
        assert inboxes.kept == []

    run(test)


@pytest.mark.parametrize("line", [b"EHLO x\n", b"NOOP\n", b"NO\rOP\r\n", b"NOOP\r\r\n", b"RSET\r\n\n"])
def test_a_bare_cr_or_lf_in_a_command_is_refused(line: bytes) -> None:
    async def test() -> None:
        async with serving(Inboxes()) as server, peer(server) as client:
            answer = await client.say(line)
            if line.startswith(b"RSET"):
                answer = await client.reply()
            assert answer == "500 5.5.2 a command ends with CRLF and holds no other CR or LF"

    run(test)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        (b"MAIL FROM:<@relay.example:a@b.example>", "553"),
        (b"MAIL FROM:a@b.example", "553"),
        (b"MAIL FROM:<a@b@c.example>", "553"),
        (b"MAIL FROM:<a@b.example> BODY=BINARYMIME", "501"),
        (b"MAIL FROM:<a@b.example> RET=HDRS", "555"),
        (b"MAIL FROM:<a@b.example> SIZE=26214401", "552"),
        (b"MAIL FROM:<j\xc3\xbcrgen@b.example>", "553 5.6.7"),
        (b"MAIL FROM:<j\xfcrgen@b.example> SMTPUTF8", "553"),
        (b"MAIL FROM:<" + b"a" * 400 + b"@b.example>", "553"),
        (b"MAIL FROM:<" + b"a" * 2000 + b"@b.example>", "500"),
        (b"RCPT TO:<" + INBOX.encode() + b">", "503"),
        (b"DATA", "503"),
        (b"VRFY quotes", "252"),
        (b"EXPN all", "502"),
        (b"AUTH PLAIN AGEAYg==", "502"),
        (b"BDAT 3", "500"),
        (b"STARTTLS", "454"),
        (b"\xff\xff", "500"),
        (b"", "500"),
    ],
)
def test_what_is_not_offered_or_not_well_formed_is_refused(command: bytes, answer: str) -> None:
    async def test() -> None:
        async with serving(Inboxes()) as server, peer(server) as client:
            await client.say(b"EHLO p\r\n")
            assert (await client.say(command + b"\r\n")).startswith(answer)
            assert await client.say(b"NOOP\r\n") == "250 OK"

    run(test)


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        (b"<@relay.example:quotes@gw.example.net>", "553"),
        (b"<>", "553 5.1.3"),
        (b"<postmaster>", "250"),
        (b"<Postmaster@gw.example.net>", "250"),
        (b'<"a b"@gw.example.net>', "250"),
        (b"<quotes+t0k@gw.example.net>", "250"),
        (b"<quotes@gw.example.net> NOTIFY=NEVER", "555"),
        (b"<quotes@gw.example.net", "553"),
        (b"<\xc3\xa9@gw.example.net>", "553 5.6.7"),
        (b"<quotes@gw.example.net\0>", "553"),
    ],
)
def test_only_a_plain_path_is_a_recipient(path: bytes, answer: str) -> None:
    async def test() -> None:
        async with serving(Inboxes()) as server, peer(server) as client:
            await client.say(b"EHLO p\r\n")
            await client.say(b"MAIL FROM:<a@b.example>\r\n")
            assert (await client.say(b"RCPT TO:" + path + b"\r\n")).startswith(answer)

    run(test)


def test_an_international_address_comes_in_with_smtputf8() -> None:
    async def test() -> None:
        inboxes = Inboxes()
        async with serving(inboxes) as server, peer(server) as client:
            await client.say(b"EHLO p\r\n")
            assert (await client.say("MAIL FROM:<jürgen@bücher.example> SMTPUTF8\r\n".encode())).startswith(
                "250"
            )
            assert (await client.say("RCPT TO:<é@gw.example.net>\r\n".encode())).startswith("250")
            assert (await client.say(b"DATA\r\n")).startswith("354")
            assert await client.say(MAIL + b".\r\n") == "250 2.0.0 stored"
        (kept,) = inboxes.kept
        assert (kept.mail_from, kept.recipients, kept.smtputf8) == (
            "jürgen@bücher.example",
            ("é@gw.example.net",),
            True,
        )

    run(test)


def test_too_large_and_overlong_content_is_refused_and_the_session_goes_on() -> None:
    async def test() -> None:
        inboxes = Inboxes()
        async with serving(inboxes, max_size=200_000) as server, peer(server) as client:
            await client.to_data()
            assert (await client.say(b"a\r\n" * 80_000 + b".\r\n")).startswith("552 ")
            await client.to_data()
            assert (await client.say(b"a" * 150_000 + b"\r\n.\r\n")).startswith("500 ")
            await client.to_data()
            assert await client.say(b"a" * 100_000 + b"\r\n.\r\n") == "250 2.0.0 stored"
        assert [len(delivery.octets) for delivery in inboxes.kept] == [100_002]

    run(test)


def test_the_recipient_after_the_limit_is_told_to_come_again() -> None:
    async def test() -> None:
        inboxes = Inboxes()
        everyone = tuple(f"q{number}@gw.example.net" for number in range(4))
        async with serving(inboxes, max_recipients=3) as server:
            refused = await asyncio.to_thread(send, server.port, to=everyone)
        assert refused == {everyone[3]: (452, b"4.5.3 too many recipients")}
        assert [delivery.recipients for delivery in inboxes.kept] == [everyone[:3]]

    run(test)


def test_starttls_is_used_and_seen(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
    async def test() -> None:
        inboxes = Inboxes()

        def deliver(port: int) -> None:
            with smtplib.SMTP("localhost", port, timeout=PATIENCE) as client:
                client.starttls(context=client_tls)
                client.ehlo("peer.example")
                assert "auth" not in client.esmtp_features
                assert "starttls" not in client.esmtp_features
                client.sendmail("pat@supplier.example", [INBOX], MAIL)

        async with serving(inboxes, tls=server_tls, host="localhost") as server:
            await asyncio.to_thread(deliver, server.port)
        assert [(delivery.tls, delivery.octets) for delivery in inboxes.kept] == [(True, MAIL)]

    run(test)


def test_commands_injected_behind_starttls_are_not_obeyed(
    server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    async def test() -> None:
        async with serving(Inboxes(), tls=server_tls) as server, peer(server) as client:
            await client.say(b"EHLO p\r\n")
            assert (await client.say(b"STARTTLS\r\nEHLO evil\r\nMAIL FROM:<x@evil.example>\r\n")).startswith(
                "220"
            )
            await client.writer.start_tls(client_tls, server_hostname="localhost")
            assert (await client.say(b"EHLO p\r\n")).startswith("250-mx.gw.example.net|")
            assert (await client.say(b"RCPT TO:<" + INBOX.encode() + b">\r\n")).startswith("503")

    run(test)


def test_a_peer_that_does_not_speak_tls_after_starttls_is_dropped(
    server_tls: ssl.SSLContext, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with serving(Inboxes(), tls=server_tls) as server, peer(server) as client:
            await client.say(b"EHLO p\r\n")
            assert (await client.say(b"STARTTLS\r\n")).startswith("220")
            client.writer.write(b"MAIL FROM:<x@evil.example>\r\n")
            async with asyncio.timeout(PATIENCE):
                assert b"250" not in await client.reader.read()
            async with peer(server) as other:
                assert await other.say(b"NOOP\r\n") == "250 OK"

    run(test)
    assert "Traceback" not in caplog.text


def test_a_peer_that_hangs_up_inside_the_handshake_leaves_its_place(server_tls: ssl.SSLContext) -> None:
    async def test() -> None:
        async with serving(Inboxes(), tls=server_tls, max_connections=1) as server:
            for _ in range(3):
                async with peer(server) as client:
                    await client.say(b"EHLO p\r\n")
                    assert (await client.say(b"STARTTLS\r\n")).startswith("220")
                    client.writer.write_eof()
                    assert await client.closed()

    run(test)


def test_starttls_inside_tls_is_refused(server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
    async def test() -> None:
        async with serving(Inboxes(), tls=server_tls) as server, peer(server) as client:
            await client.say(b"EHLO p\r\n")
            await client.say(b"STARTTLS\r\n")
            await client.writer.start_tls(client_tls, server_hostname="localhost")
            await client.say(b"EHLO p\r\n")
            assert await client.say(b"STARTTLS\r\n") == "503 5.5.1 TLS is in use already"

    run(test)


def test_lmtp_answers_each_recipient() -> None:
    async def test() -> None:
        inboxes = Inboxes(
            answer=(Verdict(code=250, text="2.0.0 stored"), Verdict(code=451, text="4.3.0 busy"))
        )
        async with serving(inboxes, lmtp=True) as server, peer(server) as client:
            assert (await client.say(b"EHLO p\r\n")).startswith("500")
            await client.to_data(greet=b"LHLO peer.example\r\n")
            assert await client.say(MAIL + b".\r\n") == "451 4.3.0 try again later", (
                "one recipient, two verdicts: a fault"
            )
            assert (await client.say(b"MAIL FROM:<>\r\n")).startswith("250")
            assert (await client.say(b"RCPT TO:<a@gw.example.net>\r\n")).startswith("250")
            assert (await client.say(b"RCPT TO:<b@gw.example.net>\r\n")).startswith("250")
            assert (await client.say(b"DATA\r\n")).startswith("354")
            assert await client.say(MAIL + b".\r\n") == "250 2.0.0 stored"
            assert await client.reply() == "451 4.3.0 busy"

    run(test)


@pytest.mark.parametrize(
    ("content", "answer"),
    [(b"a\nb\r\n", "550 5.6.11"), (b"a\r\n" * 2000, "552"), (b"a" * 140_000 + b"\r\n", "500")],
)
def test_lmtp_refuses_content_once_for_each_recipient(content: bytes, answer: str) -> None:
    async def test() -> None:
        async with (
            serving(Inboxes(), lmtp=True, max_size=5000 if answer == "552" else 1 << 20) as server,
            peer(server) as client,
        ):
            await client.say(b"LHLO p\r\n")
            await client.say(b"MAIL FROM:<>\r\n")
            await client.say(b"RCPT TO:<a@gw.example.net>\r\n")
            await client.say(b"RCPT TO:<b@gw.example.net>\r\n")
            await client.say(b"DATA\r\n")
            assert (await client.say(content + b".\r\n")).startswith(answer)
            assert (await client.reply()).startswith(answer)
            assert await client.say(b"NOOP\r\n") == "250 OK"

    run(test)


@pytest.mark.parametrize(
    ("codes", "reply"),
    [
        ((250, 250), "250 x0"),
        ((250, 550), "250 x0"),
        ((550, 250), "250 x1"),
        ((550, 451), "451 x1"),
        ((250, 451), "451 x1"),
        ((550, 552), "550 x0"),
    ],
)
def test_smtp_s_one_reply_never_says_yes_where_somebody_must_come_again(
    codes: tuple[int, ...], reply: str
) -> None:
    async def test() -> None:
        inboxes = Inboxes(
            answer=tuple(Verdict(code=code, text=f"x{number}") for number, code in enumerate(codes))
        )
        async with serving(inboxes) as server, peer(server) as client:
            await client.say(
                b"EHLO p\r\nMAIL FROM:<>\r\nRCPT TO:<a@gw.example.net>\r\nRCPT TO:<b@gw.example.net>\r\nDATA\r\n"
            )
            assert [(await client.reply())[:3] for _ in range(4)] == ["250", "250", "250", "354"]
            assert await client.say(MAIL + b".\r\n") == reply

    run(test)


def test_a_fault_in_accept_is_451_and_tells_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")

    async def test() -> None:
        async def accept(delivery: Delivery) -> str:
            raise RuntimeError(f"secret of {delivery.mail_from}")

        with structlog.testing.capture_logs() as logs:
            async with serving(Inboxes(), accept=accept) as server, peer(server) as client:
                await client.to_data()
                assert await client.say(MAIL + b".\r\n") == "451 4.3.0 try again later"
                assert await client.say(b"NOOP\r\n") == "250 OK"
        (entry,) = logs
        assert (entry["event"], entry["action"], entry["error"]) == (
            "smtp_in.failed",
            "smtp_in",
            "RuntimeError",
        )
        assert "secret" not in str(logs)
        assert "supplier.example" not in str(logs)

    run(test)
    assert "supplier.example" not in caplog.text


def test_a_fault_in_admit_is_451() -> None:
    async def test() -> None:
        def admit(recipient: str) -> bool:
            raise RuntimeError(recipient)

        with structlog.testing.capture_logs():
            server = await serve(Listener(hostname="mx"), admit=admit, accept=Inboxes().accept)
            async with peer(server) as client:
                await client.say(b"EHLO p\r\n")
                await client.say(b"MAIL FROM:<>\r\n")
                assert await client.say(b"RCPT TO:<a@b.example>\r\n") == "451 4.3.0 try again later"
            await server.close()

    run(test)


@pytest.mark.parametrize("answer", ["", "250", "250 a\r\n250 b", "999 x", "stored"])
def test_an_answer_that_is_no_reply_is_451(answer: str) -> None:
    async def test() -> None:
        with structlog.testing.capture_logs():
            async with serving(Inboxes(answer=answer)) as server, peer(server) as client:
                await client.to_data()
                assert await client.say(MAIL + b".\r\n") == "451 4.3.0 try again later"

    run(test)


def test_250_comes_only_after_accept_has_returned() -> None:
    async def test() -> None:
        called, committed = asyncio.Event(), asyncio.Event()

        async def accept(_: Delivery) -> str:
            called.set()
            await committed.wait()
            return "250 2.0.0 stored"

        async with serving(Inboxes(), accept=accept) as server, peer(server) as client:
            await client.to_data()
            answer = asyncio.create_task(client.say(MAIL + b".\r\n"))
            await called.wait()
            assert not answer.done()
            committed.set()
            assert await answer == "250 2.0.0 stored"

    run(test)


def test_a_connection_too_many_is_421_and_room_is_made_again() -> None:
    async def test() -> None:
        inboxes = Inboxes()
        async with serving(inboxes, max_per_peer=2) as server, peer(server), peer(server) as second:
            async with peer(server, greeting="421 4.7.0") as third:
                assert await third.closed()
            assert await second.say(b"QUIT\r\n") == "221 Bye"
            assert await second.closed()
            async with peer(server) as fourth:
                await fourth.to_data()
        async with (
            serving(inboxes, max_connections=1) as server,
            peer(server),
            peer(server, greeting="421 4.7.0"),
        ):
            pass

    run(test)


def test_an_idle_peer_is_let_go() -> None:
    async def test() -> None:
        async with serving(Inboxes(), timeout=0.1) as server, peer(server) as client:
            assert await client.closed()

    run(test)


def test_a_peer_that_stops_inside_data_is_let_go() -> None:
    async def test() -> None:
        inboxes = Inboxes()
        async with serving(inboxes, timeout=0.2) as server, peer(server) as client:
            await client.to_data()
            client.writer.write(b"Subject: x\r\n")
            assert await client.closed()
        assert inboxes.kept == []

    run(test)


def test_a_peer_that_only_errs_is_disconnected() -> None:
    async def test() -> None:
        async with serving(Inboxes(), max_errors=3) as server, peer(server) as client:
            await client.say(b"EHLO p\r\n")
            for _ in range(3):
                assert (await client.say(b"EXPN x\r\n")).startswith("502")
            assert await client.reply() == "421 4.7.0 too many errors"
            assert await client.closed()

    run(test)


def test_closing_lets_a_running_mail_end_and_says_goodbye_to_the_idle() -> None:
    async def test() -> None:
        inboxes = Inboxes()
        async with serving(inboxes) as server, peer(server) as idle, peer(server) as busy:
            port = server.port
            await busy.to_data()
            closing = asyncio.create_task(server.close(patience=PATIENCE))
            assert await idle.reply() == "421 4.3.2 closing for now"
            assert await busy.say(MAIL + b".\r\n") == "250 2.0.0 stored"
            assert await busy.reply() == "421 4.3.2 closing for now"
            await closing
            assert server.port == 0
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
        assert len(inboxes.kept) == 1

    run(test)


def test_closing_does_not_wait_for_ever() -> None:
    async def test() -> None:
        async with serving(Inboxes()) as server, peer(server) as busy:
            await busy.to_data()
            await server.close(patience=0.05)
            assert await busy.closed()

    run(test)


def test_fifty_senders_at_once_are_all_served() -> None:
    async def test() -> None:
        inboxes = Inboxes()

        async def sender(number: int) -> None:
            async with peer(server) as client:
                for turn in range(2):
                    await client.to_data()
                    assert (
                        await client.say(b"Subject: %d.%d\r\n\r\nx\r\n.\r\n" % (number, turn))
                        == "250 2.0.0 stored"
                    )

        async with serving(inboxes) as server:
            await asyncio.gather(*(sender(number) for number in range(50)))
        assert len({delivery.octets for delivery in inboxes.kept}) == 100

    run(test)


def test_a_port_that_is_taken_is_an_os_error() -> None:
    async def test() -> None:
        async with serving(Inboxes()) as server:
            with pytest.raises(OSError, match="in use"):
                await serve(
                    Listener(hostname="mx", port=server.port), admit=lambda _: True, accept=Inboxes().accept
                )

    run(test)
