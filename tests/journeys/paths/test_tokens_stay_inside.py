"""Who knows one of our ids could forge an answer, so no view, event or log an agent sees holds one."""

from __future__ import annotations

import html
import json
from email import message_from_bytes
from typing import TYPE_CHECKING

import structlog

from answerback.gateway.verbs import table
from answerback.threading import tokens

if TYPE_CHECKING:
    from answerback.gateway.context import Context
    from tests.journeys.paths.gateway import Start

READING = [verb for verb in table.VERBS if verb.scope and not verb.writes]


def live_tokens(text: str, context: Context) -> list[str]:
    """Every run of 39 letters, however it is broken up, that carries a MAC of ours."""
    letters = "".join(c for c in html.unescape(text).lower() if c in "abcdefghijklmnopqrstuvwxyz234567@+")
    keys = context.keyring.mac_keys
    windows = (letters[at : at + tokens.LENGTH] for at in range(len(letters)))
    return [word for word in windows for kind in tokens.KINDS if tokens.verify(kind, word, keys) is not None]


def test_no_view_of_an_agent_and_no_log_holds_a_live_token(start: Start) -> None:
    gateway = start()
    with structlog.testing.capture_logs() as logs:
        asked = gateway.ask()
        gateway.drain()
        sent = message_from_bytes(gateway.relay.copies[0].octets)
        reply_to, message_id = str(sent["Reply-To"]), str(sent["Message-ID"])
        wrapped = message_id[:20] + "\r\n> " + message_id[20:]
        plain = (
            f"Thursday, as {message_id} said.\r\n\r\nOn Tue, <{reply_to}> wrote:\r\n"
            f"> When will it be delivered?\r\n> Message-ID: {wrapped}\r\n> Return-Path: "
            f"<{gateway.relay.copies[0].return_path}>\r\n"
        )
        marked = (
            f"<p>Thursday.</p><blockquote>{html.escape(message_id)} <a href='mailto:{reply_to}'>{reply_to}</a>"
            f"<p>When will it be delivered?</p></blockquote>"
        )
        octets = (
            f"From: Pat <pat@supplier.example>\r\nTo: {reply_to}\r\nSubject: Re: {reply_to} PO 4711\r\n"
            f"Message-ID: <a1@supplier.example>\r\nIn-Reply-To: {message_id}\r\nMIME-Version: 1.0\r\n"
            'Content-Type: multipart/mixed; boundary="m"\r\n\r\n--m\r\n'
            'Content-Type: multipart/alternative; boundary="b"\r\n\r\n'
            f"--b\r\nContent-Type: text/plain\r\n\r\n{plain}\r\n"
            f"--b\r\nContent-Type: text/html\r\n\r\n{marked}\r\n--b--\r\n"
            f'--m\r\nContent-Type: text/plain\r\nContent-Disposition: attachment; filename="{reply_to}.txt"\r\n\r\n'
            "x\r\n--m--\r\n"
        ).encode()
        gateway.receive(octets, reply_to)
        stranger = octets.replace(b"pat@supplier.example>", b"eve@other.example>").replace(b"<a1@", b"<a2@")
        gateway.receive(stranger, reply_to, "eve@other.example")
        lent = gateway.call("mailbox.lease", max=50)
    message_ids = [event["data"].get("message_id") for event in gateway.events()]
    ids = {
        "messages.show": [*filter(None, message_ids)],
        "conversations.show": [asked["conversation_id"]],
        "waits.show": [asked["wait_id"]],
        "reviews.show": [one["review_id"] for one in gateway.call("reviews.list")["reviews"]],
    }
    views: list[object] = [lent, asked, logs]
    for verb in READING:
        if verb.name == "waitpoints.show":
            views.append(gateway.call(verb.name, key="po-4711"))
        elif verb.name in ids:
            assert ids[verb.name], verb.name
            views += [gateway.call(verb.name, id=one) for one in ids[verb.name]]
        else:
            views.append(gateway.call(verb.name))
    shown = json.dumps(views, default=str, ensure_ascii=False)
    assert "[token]" in shown
    assert "Thursday" in shown
    assert live_tokens(message_id, gateway.context), "the search must find one where there is one"
    assert live_tokens(shown, gateway.context) == []
