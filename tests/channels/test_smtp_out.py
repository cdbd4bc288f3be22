"""Handing over to relays on loopback: a scripted one that breaks at will, and our own server as a real peer."""

# long because: one relay, one table of the ways it may fail

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword

from answerback.channels.base import Sender
from answerback.channels.mail.smtp_in import Delivery, Listener, serve
from answerback.channels.mail.smtp_out import Relay, Server
from answerback.channels.mail.transaction import provider_id, stuffed
from answerback.errors import BadAddress, BadRequest, BadSettings
from answerback.model import Envelope, Outcome, Receipt, RecipientResult

PAT, KIM, LEE = "pat@supplier.example", "kim@supplier.example", "lee@supplier.example"
OCTETS = b"From: agent@gw.example.net\r\n\r\nHello\r\n.\r\n..\r\nend\r\n"
ENVELOPE = Envelope(octets=OCTETS, return_path="b+1@gw.example.net", recipients=(PAT, KIM))
CUT = None  # in a script: close the connection instead of replying
MUTE = ""  # in a script: say nothing


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(30):
            await test()

    asyncio.run(bounded())


def silent(_: str) -> None:
    """A note nobody needs."""


class Scripted:
    """A relay that replies from a table of verbs; `dot` stands for the final dot, `connect` for the greeting."""

    def __init__(self, **script: str | list[str | None] | None) -> None:
        self.script: dict[str, str | list[str | None] | None] = {"connect": "220 hi", "EHLO": "250 hi"}
        self.script.update({"MAIL": "250 ok", "RCPT": "250 ok", "DATA": "354 go", "dot": "250 ok"})
        self.script.update({"RSET": "250 ok", "QUIT": "221 bye", **script})
        self.heard: list[str] = []
        self.mails: list[bytes] = []
        self.port = 0
        self.dotted = asyncio.Event()

    def _reply(self, verb: str) -> str | None:
        reply = self.script.get(verb, "500 what")
        return reply.pop(0) if isinstance(reply, list) else reply

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._converse(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.transport.abort()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        verb = "connect"
        while True:
            reply = self._reply(verb)
            if reply is CUT:
                return
            if reply != MUTE:
                writer.write(f"{reply}\r\n".encode())
                await writer.drain()
            if verb == "DATA" and reply.startswith("354"):
                if "content" in self.script:
                    await reader.readuntil(b"\r\n")
                    return
                self.mails.append(await reader.readuntil(b"\r\n.\r\n"))
                self.dotted.set()
                verb = "dot"
                continue
            line = (await reader.readuntil(b"\r\n")).decode().rstrip("\r\n")
            self.heard.append(line)
            verb = line.split(" ")[0].split(":")[0].upper()


@asynccontextmanager
async def relaying(scripted: Scripted, **settings: Any) -> AsyncIterator[Relay]:
    listening = await asyncio.start_server(scripted._serve, "127.0.0.1", 0, limit=1 << 27)
    scripted.port = listening.sockets[0].getsockname()[1]
    relay = Relay(server(scripted.port, **settings))
    try:
        yield relay
    finally:
        await relay.close()
        listening.close()


def server(port: int, **settings: Any) -> Server:
    defaults: dict[str, Any] = {
        "host": "127.0.0.1",
        "local_hostname": "gw.example.net",
        "security": "none",
        "timeout": 5,
    }
    return Server(port=port, **{**defaults, **settings})


def both(outcome: Outcome, code: int, text: str) -> dict[str, RecipientResult]:
    return dict.fromkeys((PAT, KIM), RecipientResult(outcome=outcome, code=code, text=text))


def test_a_mail_is_handed_over_with_its_exact_octets() -> None:
    async def test() -> None:
        scripted, notes = Scripted(), list[str]()
        async with relaying(scripted) as relay:
            sender: Sender = relay
            receipt = await sender.hand_over(ENVELOPE, note=notes.append)
        assert receipt == Receipt(results=both(Outcome.SENT, 250, "ok"))
        assert notes == ["during_send"]
        assert scripted.heard[:5] == [
            "EHLO gw.example.net",
            "MAIL FROM:<b+1@gw.example.net>",
            f"RCPT TO:<{PAT}>",
            f"RCPT TO:<{KIM}>",
            "DATA",
        ]
        assert scripted.mails == [OCTETS.replace(b"\r\n.", b"\r\n..") + b".\r\n"]

    run(test)


def test_the_note_comes_after_the_recipients_and_before_any_content() -> None:
    async def test() -> None:
        scripted = Scripted()

        def note(name: str) -> None:
            assert name == "during_send"
            assert scripted.heard[-1] == "DATA"
            assert scripted.mails == []

        async with relaying(scripted) as relay:
            await relay.hand_over(ENVELOPE, note=note)
        assert len(scripted.mails) == 1

    run(test)


def test_an_error_in_the_note_ends_the_hand_over_before_any_content() -> None:
    async def test() -> None:
        def note(_: str) -> None:
            raise LookupError

        scripted = Scripted()
        async with relaying(scripted) as relay:
            with pytest.raises(LookupError):
                await relay.hand_over(ENVELOPE, note=note)
            assert scripted.mails == []
            assert (await relay.hand_over(ENVELOPE, note=silent)).results[PAT].outcome is Outcome.SENT

    run(test)


@pytest.mark.parametrize(
    ("script", "outcome", "code"),
    [
        ({"connect": "554 no"}, Outcome.DEFERRED, 554),
        ({"connect": CUT}, Outcome.DEFERRED, 0),
        ({"EHLO": CUT}, Outcome.DEFERRED, 0),
        ({"MAIL": "451 later"}, Outcome.DEFERRED, 451),
        ({"MAIL": "550 never"}, Outcome.FAILED, 550),
        ({"MAIL": CUT}, Outcome.DEFERRED, 0),
        ({"MAIL": "rubbish"}, Outcome.DEFERRED, 0),
        ({"RCPT": "450 later"}, Outcome.DEFERRED, 450),
        ({"RCPT": "550 never"}, Outcome.FAILED, 550),
        ({"RCPT": "421 bye"}, Outcome.DEFERRED, 421),
        ({"RCPT": ["250 ok", CUT]}, Outcome.DEFERRED, 0),
        ({"DATA": "451 later"}, Outcome.DEFERRED, 451),
        ({"DATA": "554 never"}, Outcome.FAILED, 554),
        ({"DATA": "250 what"}, Outcome.DEFERRED, 250),
        ({"DATA": CUT}, Outcome.DEFERRED, 0),
        ({"dot": "250 ok"}, Outcome.SENT, 250),
        ({"dot": "451 later"}, Outcome.DEFERRED, 451),
        ({"dot": "421 bye"}, Outcome.DEFERRED, 421),
        ({"dot": "554 never"}, Outcome.FAILED, 554),
        ({"dot": "354 what"}, Outcome.UNKNOWN, 354),
        ({"dot": "rubbish"}, Outcome.UNKNOWN, 0),
        ({"dot": CUT}, Outcome.UNKNOWN, 0),
    ],
)
def test_every_way_to_fail_has_its_outcome(script: dict[str, Any], outcome: Outcome, code: int) -> None:
    async def test() -> None:
        async with relaying(Scripted(**script)) as relay:
            results = (await relay.hand_over(ENVELOPE, note=silent)).results
        assert [(name, result.outcome, max(result.code, 0)) for name, result in results.items()] == [
            (PAT, outcome, code),
            (KIM, outcome, code),
        ]
        assert all(result.text for result in results.values())

    run(test)


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        ("connect", Outcome.DEFERRED),
        ("MAIL", Outcome.DEFERRED),
        ("RCPT", Outcome.DEFERRED),
        ("DATA", Outcome.DEFERRED),
        ("dot", Outcome.UNKNOWN),
    ],
)
def test_a_relay_that_falls_silent_is_not_waited_for(verb: str, outcome: Outcome) -> None:
    async def test() -> None:
        async with relaying(Scripted(**{verb: MUTE}), timeout=0.2) as relay:
            results = (await relay.hand_over(ENVELOPE, note=silent)).results
        assert {result.outcome for result in results.values()} == {outcome}

    run(test)


def test_a_connection_lost_inside_the_content_is_deferred() -> None:
    async def test() -> None:
        large = replace(ENVELOPE, octets=b"Subject: x\r\n\r\n" + (b"y" * 70 + b"\r\n") * 500_000)
        async with relaying(Scripted(content="cut")) as relay:
            results = (await relay.hand_over(large, note=silent)).results
        assert {result.outcome for result in results.values()} == {Outcome.DEFERRED}

    run(test)


def test_a_relay_that_stops_reading_inside_the_content_is_deferred() -> None:
    async def test() -> None:
        done = asyncio.Event()

        async def stuck(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            for reply in (b"220 hi", b"250 hi", b"250 ok", b"250 ok", b"250 ok", b"354 go"):
                writer.write(reply + b"\r\n")
                if reply != b"354 go":
                    await reader.readline()
            await done.wait()
            writer.transport.abort()

        listening = await asyncio.start_server(stuck, "127.0.0.1", 0)
        relay = Relay(server(listening.sockets[0].getsockname()[1], timeout=0.3))
        large = replace(ENVELOPE, octets=b"Subject: x\r\n\r\n" + (b"y" * 70 + b"\r\n") * 300_000)
        results = (await relay.hand_over(large, note=silent)).results
        done.set()
        await relay.close()
        listening.close()
        assert {result.outcome for result in results.values()} == {Outcome.DEFERRED}

    run(test)


def test_each_recipient_has_its_own_result() -> None:
    async def test() -> None:
        scripted = Scripted(RCPT=["250 ok", "450 4.2.1 later", "550 5.1.1 never"])
        async with relaying(scripted) as relay:
            receipt = await relay.hand_over(replace(ENVELOPE, recipients=(PAT, KIM, LEE)), note=silent)
        assert receipt.results == {
            PAT: RecipientResult(outcome=Outcome.SENT, code=250, text="ok"),
            KIM: RecipientResult(outcome=Outcome.DEFERRED, code=450, text="4.2.1 later"),
            LEE: RecipientResult(outcome=Outcome.FAILED, code=550, text="5.1.1 never"),
        }

    run(test)


def test_a_refusal_stands_when_the_rest_is_lost_after_the_dot() -> None:
    async def test() -> None:
        async with relaying(Scripted(RCPT=["250 ok", "550 never"], dot=CUT)) as relay:
            results = (await relay.hand_over(ENVELOPE, note=silent)).results
        assert [result.outcome for result in results.values()] == [Outcome.UNKNOWN, Outcome.FAILED]

    run(test)


def test_nobody_is_told_of_content_when_all_recipients_are_refused() -> None:
    async def test() -> None:
        scripted, notes = Scripted(RCPT="550 never"), list[str]()
        async with relaying(scripted) as relay:
            await relay.hand_over(ENVELOPE, note=notes.append)
        assert notes == []
        assert "DATA" not in scripted.heard

    run(test)


def test_an_address_that_is_none_fails_alone() -> None:
    async def test() -> None:
        scripted = Scripted()
        bad = "x@y.example> SIZE=1\r\nRCPT TO:<z@y.example"
        async with relaying(scripted) as relay:
            results = (await relay.hand_over(replace(ENVELOPE, recipients=(bad, PAT)), note=silent)).results
            assert [result.outcome for result in results.values()] == [Outcome.FAILED, Outcome.SENT]
            assert [line for line in scripted.heard if line.startswith("RCPT")] == [f"RCPT TO:<{PAT}>"]
            with pytest.raises(BadAddress):
                await relay.hand_over(replace(ENVELOPE, return_path=bad), note=silent)

    run(test)


@pytest.mark.parametrize(
    "octets",
    [
        b"A: b\n\nx\r\n",
        b"A: b\r\n\r\nx\n.\nMAIL FROM:<>\r\n",
        b"A: b\r\n\r\nx\r.\r\n",
        b"A: b\r\n\r\n" + b"y" * 999,
    ],
)
def test_octets_that_are_no_clean_mail_do_not_leave(octets: bytes) -> None:
    async def test() -> None:
        scripted = Scripted()
        async with relaying(scripted) as relay:
            with pytest.raises(BadRequest):
                await relay.hand_over(replace(ENVELOPE, octets=octets), note=silent)
        assert scripted.heard == []

    run(test)


def test_connections_are_used_again_and_closed_with_quit() -> None:
    async def test() -> None:
        scripted = Scripted()
        async with relaying(scripted) as relay:
            for _ in range(3):
                await relay.hand_over(ENVELOPE, note=silent)
        verbs = [line.split(" ")[0] for line in scripted.heard]
        once = ["MAIL", "RCPT", "RCPT", "DATA"]
        assert verbs == ["EHLO", *once, "RSET", *once, "RSET", *once, "QUIT"]

    run(test)


@pytest.mark.parametrize("rset", [CUT, "421 bye", "500 no"])
def test_a_connection_that_died_meanwhile_is_replaced(rset: str | None) -> None:
    async def test() -> None:
        scripted = Scripted(RSET=rset)
        async with relaying(scripted) as relay:
            receipts = [await relay.hand_over(ENVELOPE, note=silent) for _ in range(2)]
        assert receipts == [Receipt(results=both(Outcome.SENT, 250, "ok"))] * 2
        assert [line.split(" ")[0] for line in scripted.heard].count("EHLO") == 2

    run(test)


def test_a_connection_unused_for_too_long_is_not_used_again() -> None:
    async def test() -> None:
        scripted = Scripted()
        async with relaying(scripted, idle_limit=-1) as relay:
            for _ in range(2):
                await relay.hand_over(ENVELOPE, note=silent)
        assert "RSET" not in scripted.heard

    run(test)


def test_no_more_connections_than_the_pool_allows() -> None:
    async def test() -> None:
        scripted = Scripted()
        async with relaying(scripted, pool_size=2) as relay:
            receipts = await asyncio.gather(*(relay.hand_over(ENVELOPE, note=silent) for _ in range(12)))
        assert {result.outcome for receipt in receipts for result in receipt.results.values()} == {
            Outcome.SENT
        }
        assert [line.split(" ")[0] for line in scripted.heard].count("EHLO") == 2
        assert len(scripted.mails) == 12

    run(test)


def test_a_closed_relay_defers() -> None:
    async def test() -> None:
        scripted = Scripted()
        async with relaying(scripted) as relay:
            await relay.close()
            receipt = await relay.hand_over(ENVELOPE, note=silent)
        assert receipt.results == both(Outcome.DEFERRED, 0, "we closed the relay")

    run(test)


def test_closing_waits_for_a_running_hand_over() -> None:
    async def test() -> None:
        scripted = Scripted()
        async with relaying(scripted) as relay:
            running = asyncio.create_task(relay.hand_over(ENVELOPE, note=silent))
            await asyncio.wait_for(scripted.dotted.wait(), 5)
            await relay.close()
            assert running.done()
        assert (await running).results == both(Outcome.SENT, 250, "ok")
        assert scripted.heard[-1] == "QUIT"

    run(test)


def test_a_relay_that_is_not_there_defers() -> None:
    async def test() -> None:
        scripted = Scripted()
        async with relaying(scripted):
            port = scripted.port
        receipt = await Relay(server(port)).hand_over(ENVELOPE, note=silent)
        assert {result.outcome for result in receipt.results.values()} == {Outcome.DEFERRED}

    run(test)


@asynccontextmanager
async def gateway(kept: list[Delivery], **settings: Any) -> AsyncIterator[int]:
    async def accept(delivery: Delivery) -> str:
        kept.append(delivery)
        return "250 2.0.0 stored"

    listening = await serve(
        Listener(hostname="mx", host="localhost", **settings), admit=lambda _: True, accept=accept
    )
    try:
        yield listening.port
    finally:
        await listening.close(patience=1)


@pytest.mark.parametrize("return_path", ["", "b+1@gw.example.net"])
def test_our_own_server_receives_what_was_handed_over(return_path: str) -> None:
    async def test() -> None:
        kept: list[Delivery] = []
        async with gateway(kept) as port:
            relay = Relay(server(port, host="localhost"))
            await relay.hand_over(replace(ENVELOPE, return_path=return_path), note=silent)
            await relay.close()
        assert [(each.mail_from, each.recipients, each.octets, each.helo) for each in kept] == [
            (return_path, (PAT, KIM), OCTETS, "gw.example.net")
        ]

    run(test)


def test_international_addresses_go_out_with_smtputf8_only_where_a_local_part_needs_it() -> None:
    async def test() -> None:
        kept: list[Delivery] = []
        async with gateway(kept) as port:
            relay = Relay(server(port, host="localhost"))
            await relay.hand_over(replace(ENVELOPE, recipients=("pat@bücher.example",)), note=silent)
            receipt = await relay.hand_over(
                replace(ENVELOPE, recipients=("jürgen@bücher.example",)), note=silent
            )
            await relay.close()
        assert list(receipt.results) == ["jürgen@bücher.example"]
        assert [(each.recipients, each.smtputf8) for each in kept] == [
            (("pat@xn--bcher-kva.example",), False),
            (("jürgen@xn--bcher-kva.example",), True),
        ]

    run(test)


def test_a_relay_without_smtputf8_can_not_carry_such_an_address() -> None:
    async def test() -> None:
        scripted = Scripted()
        async with relaying(scripted) as relay:
            results = (
                await relay.hand_over(replace(ENVELOPE, recipients=("jürgen@x.example",)), note=silent)
            ).results
        assert [(result.outcome, result.code) for result in results.values()] == [(Outcome.FAILED, 553)]
        assert scripted.heard[1:] == ["QUIT"]

    run(test)


def test_size_is_announced_where_the_relay_asks_for_it() -> None:
    async def test() -> None:
        scripted = Scripted(EHLO="250-hi\r\n250 SIZE 1000")
        async with relaying(scripted) as relay:
            await relay.hand_over(ENVELOPE, note=silent)
        assert f"MAIL FROM:<b+1@gw.example.net> SIZE={len(OCTETS)}" in scripted.heard

    run(test)


def test_starttls_carries_the_mail_and_refuses_a_stranger_s_certificate(
    server_tls: ssl.SSLContext, certificate: Path
) -> None:
    async def test() -> None:
        kept: list[Delivery] = []
        large = replace(ENVELOPE, octets=b"Subject: x\r\n\r\n" + (b"y" * 70 + b"\r\n") * 30_000)
        async with gateway(kept, tls=server_tls) as port:
            trusting = Relay(server(port, host="localhost", security="starttls", ca_file=str(certificate)))
            for _ in range(2):
                receipt = await trusting.hand_over(large, note=silent)
                assert receipt.results == both(Outcome.SENT, 250, "2.0.0 stored")
            await trusting.close()
            assert [(each.tls, each.octets == large.octets) for each in kept] == [(True, True)] * 2
            wary = Relay(server(port, host="localhost", security="starttls"))
            refused = await wary.hand_over(ENVELOPE, note=silent)
            await wary.close()
        assert {result.outcome for result in refused.results.values()} == {Outcome.DEFERRED}
        assert len(kept) == 2

    run(test)


def test_a_relay_without_starttls_is_not_spoken_to_in_the_clear() -> None:
    async def test() -> None:
        scripted = Scripted()
        async with relaying(scripted, security="starttls", host="localhost") as relay:
            results = (await relay.hand_over(ENVELOPE, note=silent)).results
        assert {result.outcome for result in results.values()} == {Outcome.DEFERRED}
        assert not any(line.startswith("MAIL") for line in scripted.heard)

    run(test)


def test_tls_from_the_first_octet_with_name_and_password(
    server_tls: ssl.SSLContext, certificate: Path
) -> None:
    async def test() -> None:
        kept: list[bytes | None] = []

        class Handler:
            async def handle_DATA(  # noqa: N802 - aiosmtpd finds hooks by name
                self, _server: Any, _session: Any, envelope: Any
            ) -> str:
                kept.append(envelope.original_content)
                return "250 Ok 0102018f3c2a7b1e-2f1c-4b0e-9d2a-000000"

        def authenticator(
            _server: Any, _session: Any, _envelope: Any, _mechanism: str, login: Any
        ) -> AuthResult:
            return AuthResult(success=login == LoginPassword(b"gw", b"secret"), handled=False)

        loop = asyncio.get_running_loop()
        listening = await loop.create_server(
            lambda: SMTP(
                Handler(),
                hostname="mx",
                authenticator=authenticator,
                auth_required=True,
                auth_require_tls=False,
                loop=loop,
            ),
            "localhost",
            0,
            ssl=server_tls,
        )
        port = listening.sockets[0].getsockname()[1]
        settings: dict[str, Any] = {
            "host": "localhost",
            "security": "tls",
            "ca_file": str(certificate),
            "username": "gw",
        }
        good, bad = (Relay(server(port, password=password, **settings)) for password in ("secret", "wrong"))
        receipt = await good.hand_over(ENVELOPE, note=silent)
        refused = await bad.hand_over(ENVELOPE, note=silent)
        await good.close()
        await bad.close()
        listening.close()
        assert receipt.provider_id == "0102018f3c2a7b1e-2f1c-4b0e-9d2a-000000"
        assert kept == [OCTETS]
        assert {(result.outcome, result.code) for result in refused.results.values()} == {
            (Outcome.DEFERRED, 535)
        }

    with pytest.warns(UserWarning, match="AUTH while not requiring TLS"):
        run(test)


def test_settings_that_would_leak_or_can_not_work_are_refused() -> None:
    with pytest.raises(BadSettings):
        Relay(server(25, host="relay.example", username="gw", password="secret"))
    with pytest.raises(BadSettings):
        Relay(server(25, security="tls", ca_file="/nowhere/ca.pem"))
    assert "secret" not in repr(server(25, password="secret"))


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("Ok 0102018f3c2a7b1e-2f1c-4b0e-9d2a-000000", "0102018f3c2a7b1e-2f1c-4b0e-9d2a-000000"),
        (
            "2.6.0 <abc@prod.outlook.example> [InternalId=1] Queued mail for delivery",
            "<abc@prod.outlook.example>",
        ),
        ("2.0.0 Ok: queued as 4XyZ1k2v3w4x5y6z7", ""),
        ("2.0.0 OK 1700000000 a1-2002aa.5 - gsmtp", ""),
        (f"2.1.5 <{PAT.upper()}> delivered", ""),
        ("ok", ""),
        ("Ok thankyouverymuchindeed", ""),
        ("", ""),
    ],
)
def test_the_id_a_provider_gives_is_found(text: str, given: str) -> None:
    assert provider_id(text, ENVELOPE) == given


@pytest.mark.parametrize(
    ("octets", "wire"),
    [(b".\r\n", b"..\r\n"), (b"a", b"a\r\n"), (b"a\r\n.b\r\n..", b"a\r\n..b\r\n...\r\n"), (b"", b"\r\n")],
)
def test_dots_are_doubled_at_the_start_of_lines(octets: bytes, wire: bytes) -> None:
    assert stuffed(octets) == wire
