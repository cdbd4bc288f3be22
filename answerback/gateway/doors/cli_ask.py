"""The commands that write to a person and wait for the answer: ask, send, wait."""

from __future__ import annotations

import base64
import mimetypes
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from answerback.errors import BadRequest
from answerback.gateway.doors.line import Line, command, seconds, without_none
from answerback.model import Json

#: exit codes of `wait` and `ask --wait` besides 0, an answer
NOT_YET, NO_ANSWER = 8, 9

To = Annotated[list[str], typer.Option("--to", help="address to write to; may be given several times")]
Cc = Annotated[list[str] | None, typer.Option("--cc", help="address that gets a copy")]
Subject = Annotated[str, typer.Option("--subject")]
Words = Annotated[str | None, typer.Option("--text", help="what to say")]
TextFile = Annotated[
    str | None, typer.Option("--text-file", help="file with what to say, - for standard input")
]
HtmlFile = Annotated[str | None, typer.Option("--html-file", help="file with the same as HTML")]
Attach = Annotated[list[str] | None, typer.Option("--attach", help="file to send along")]
InboxName = Annotated[
    str | None, typer.Option("--inbox", help="inbox to write from, where the agent has several")
]
ReplyTo = Annotated[str | None, typer.Option("--reply-to-message", help="id of the message this one answers")]
Key = Annotated[str, typer.Option("--key", help="correlation key: what the answer is for")]
ScheduleName = Annotated[
    str | None, typer.Option("--schedule", help="follow-up policy [default: vendor-quote]")
]
Deadline = Annotated[str | None, typer.Option("--deadline", help="10bd, 36h, or an ISO time with zone")]
Responder = Annotated[
    list[str] | None,
    typer.Option("--responder", help="who may answer: email:… or email-domain:…; default: To"),
]
CcMay = Annotated[bool, typer.Option("--cc-may-answer", help="those in Cc may answer too")]
MinTrust = Annotated[
    Literal["authenticated", "unauthenticated"] | None,
    typer.Option("--min-trust", help="what an answer's origin must be worth [default: unauthenticated]"),
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    command(app, "ask")(ask)
    command(app, "send")(send)
    command(app, "wait")(wait)


def ask(  # noqa: PLR0913 - one parameter per option
    line: Line,
    *,
    to: To,
    subject: Subject,
    key: Key,
    text: Words = None,
    text_file: TextFile = None,
    html_file: HtmlFile = None,
    attach: Attach = None,
    cc: Cc = None,
    inbox: InboxName = None,
    reply_to: ReplyTo = None,
    schedule: ScheduleName = None,
    deadline: Deadline = None,
    responder: Responder = None,
    cc_may_answer: CcMay = False,
    min_trust: MinTrust = None,
    wait_for: Annotated[
        str | None, typer.Option("--wait", help="wait so long for the answer: 30s, 5m")
    ] = None,
) -> int:
    """Ask a person by mail; nudges and a clean end come by the schedule."""
    patience = seconds(wait_for) if wait_for else 0.0
    mail = _mail(to, subject, _text(text, text_file), cc=cc, inbox=inbox, reply_to_message_id=reply_to)
    expect = expectation(key, schedule, deadline, responder, cc_may_answer=cc_may_answer, min_trust=min_trust)
    with line.door("send") as door:
        asked = door.call("send", {**mail, **_files(html_file, attach), "expect": expect})
        if wait_for:
            return _ended(line, door.wait(key, patience))
        return _queued(line, asked, door.note)


def send(  # noqa: PLR0913 - one parameter per option
    line: Line,
    *,
    to: To,
    subject: Subject,
    text: Words = None,
    text_file: TextFile = None,
    html_file: HtmlFile = None,
    attach: Attach = None,
    cc: Cc = None,
    inbox: InboxName = None,
    reply_to: ReplyTo = None,
) -> int:
    """Send a mail that expects no answer."""
    mail = _mail(to, subject, _text(text, text_file), cc=cc, inbox=inbox, reply_to_message_id=reply_to)
    with line.door("send") as door:
        return _queued(line, door.call("send", {**mail, **_files(html_file, attach)}), door.note)


def wait(
    line: Line,
    key: Annotated[str, typer.Argument(help="correlation key or waitpoint id")],
    wait_for: Annotated[str, typer.Option("--wait", help="how long: 30s, 5m, 1h")] = "30s",
) -> int:
    """Wait for an answer; exit code 0 is an answer, 8 not yet, 9 ended without one."""
    patience = seconds(wait_for)
    with line.door("waitpoints.show") as door:
        return _ended(line, door.wait(key, patience))


def _mail(to: list[str], subject: str, text: str, **more: object) -> Json:
    return {
        "to": to,
        "subject": subject,
        "text": text,
        **without_none({k: v or None for k, v in more.items()}),
    }


def expectation(
    key: str,
    schedule: str | None,
    deadline: str | None,
    responders: list[str] | None,
    *,
    cc_may_answer: bool,
    min_trust: str | None,
) -> Json:
    """Return what is expected of a mail, as the verbs take it."""
    more = {
        "schedule": schedule,
        "deadline": deadline,
        "responders": responders or None,
        "min_trust": min_trust,
    }
    return {"key": key, "cc_may_answer": cc_may_answer, **without_none(dict(more))}


def _text(text: str | None, file: str | None) -> str:
    if (text is None) == (file is None):
        raise BadRequest(field="--text", problem="give either --text or --text-file")
    return text if text is not None else _decoded(file or "", "--text-file")


def _files(html_file: str | None, attach: list[str] | None) -> Json:
    given: Json = {"html": _decoded(html_file, "--html-file")} if html_file else {}
    return given | {"attachments": [_attachment(name) for name in attach]} if attach else given


def _attachment(name: str) -> Json:
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    content = base64.b64encode(_octets(name, "--attach")).decode("ascii")
    return {"filename": Path(name).name, "media_type": kind, "content": content}


def _decoded(name: str, option: str) -> str:
    try:
        return _octets(name, option).decode()
    except UnicodeDecodeError:
        raise BadRequest(field=option, problem=f"{name} is not in UTF-8") from None


def _octets(name: str, option: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise BadRequest(field=option, problem=f"{name} can not be read ({error.strerror})") from None


def _queued(line: Line, result: Json, note: str) -> int:
    if note and not line.options.as_json:
        print(f"{result['result']}, {note}")
    line.show(result | {"note": note} if note else result)
    return 0


def _ended(line: Line, view: Json) -> int:
    line.show(view)
    if view["state"] == "resolved":
        return 0
    return NO_ANSWER if view["ended"] else NOT_YET
