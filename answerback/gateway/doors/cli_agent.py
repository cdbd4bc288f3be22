"""The commands of an agent and of whoever decides for people: mailbox, messages, waits, reviews."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Literal

import typer

from answerback.gateway.doors.cli_ask import (
    CcMay,
    Deadline,
    Key,
    MinTrust,
    Responder,
    ScheduleName,
    expectation,
)
from answerback.gateway.doors.line import Line, command

LeaseId = Annotated[str, typer.Argument(metavar="LEASE")]
Numbers = Annotated[list[int] | None, typer.Argument(metavar="[NUMBER]...", help="default: the whole lease")]
Id = Annotated[str, typer.Argument(metavar="ID")]
Seconds = Annotated[int | None, typer.Option("--seconds", help="30 to 3600 [default: 300]")]
Limit = Annotated[int | None, typer.Option("--limit", help="most items to return")]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    groups: dict[str, tuple[str, dict[str, Callable[..., int]]]] = {
        "mailbox": ("What came for an agent.", MAILBOX),
        "messages": ("Single messages.", {"show": show_message}),
        "conversations": ("Exchanges.", {"show": show_conversation}),
        "waitpoints": ("Expected answers.", {"open": open_waitpoint, "show": show_waitpoint}),
        "waits": ("Follow-up clocks.", WAITS),
        "reviews": ("What a person must decide.", REVIEWS),
    }
    for group, (says, commands) in groups.items():
        child = typer.Typer(help=says, no_args_is_help=True)
        for name, function in commands.items():
            command(child, name)(function)
        app.add_typer(child, name=group)


def read_mailbox(
    line: Line,
    since: Annotated[
        int | None, typer.Option(help="number to start after; default: what is acknowledged")
    ] = None,
    limit: Limit = None,
) -> int:
    """Look at the mailbox; nothing is taken."""
    return line.call("mailbox.read", since=since, limit=limit)


def lease(
    line: Line,
    most: Annotated[int | None, typer.Option("--max", help="most items [default: 10]")] = None,
    seconds: Seconds = None,
) -> int:
    """Take items for a while; each comes again unless it is acknowledged in that time."""
    return line.call("mailbox.lease", max=most, seconds=seconds)


def ack(line: Line, lease: LeaseId, numbers: Numbers = None) -> int:
    """End items of a lease: they never come again."""
    return line.call("mailbox.ack", lease_id=lease, sequences=numbers or None)


def nack(line: Line, lease: LeaseId, numbers: Numbers = None) -> int:
    """Give items of a lease back: they come again at once."""
    return line.call("mailbox.nack", lease_id=lease, sequences=numbers or None)


def extend(line: Line, lease: LeaseId, numbers: Numbers = None, seconds: Seconds = None) -> int:
    """Keep items of a lease for longer, counted from now."""
    return line.call("mailbox.extend", lease_id=lease, sequences=numbers or None, seconds=seconds)


def show_message(line: Line, message: Id) -> int:
    """Show a message, and for one of ours what became of each copy."""
    return line.call("messages.show", id=message)


def show_conversation(line: Line, conversation: Id) -> int:
    """Show an exchange, oldest message first."""
    return line.call("conversations.show", id=conversation)


def open_waitpoint(  # noqa: PLR0913 - one parameter per option
    line: Line,
    conversation: Id,
    *,
    key: Key,
    message: Annotated[str | None, typer.Option("--message", help="default: our last one")] = None,
    schedule: ScheduleName = None,
    deadline: Deadline = None,
    responder: Responder = None,
    cc_may_answer: CcMay = False,
    min_trust: MinTrust = None,
) -> int:
    """Expect an answer to a message that was sent already."""
    expect = expectation(key, schedule, deadline, responder, cc_may_answer=cc_may_answer, min_trust=min_trust)
    return line.call("waitpoints.open", conversation_id=conversation, message_id=message, expect=expect)


def show_waitpoint(line: Line, key: Annotated[str, typer.Argument(help="correlation key or id")]) -> int:
    """Show an expected answer, and the answer where it has come."""
    return line.call("waitpoints.show", key=key)


def list_waits(
    line: Line,
    state: Annotated[
        Literal["waiting", "nudged", "paused", "replied", "abandoned", "cancelled"] | None, typer.Option()
    ] = None,
    limit: Limit = None,
) -> int:
    """List waits, the last changed first."""
    return line.call("waits.list", state=state, limit=limit)


def show_wait(line: Line, wait_id: Id) -> int:
    """Show a wait with its log: every change and what caused it."""
    return line.call("waits.show", id=wait_id)


def cancel_wait(line: Line, wait_id: Id, reason: Annotated[str | None, typer.Option()] = None) -> int:
    """End a wait and what it waits for; nothing further is sent."""
    return line.call("waits.cancel", id=wait_id, reason=reason)


def pause_wait(line: Line, wait_id: Id) -> int:
    """Stop the clock of a wait; a reply still counts."""
    return line.call("waits.pause", id=wait_id)


def resume_wait(
    line: Line,
    wait_id: Id,
    not_before: Annotated[str | None, typer.Option(help="date, or ISO time with zone")] = None,
) -> int:
    """Let a paused wait go on."""
    return line.call("waits.resume", id=wait_id, not_before=not_before)


def wait_again(
    line: Line,
    wait_id: Id,
    not_before: Annotated[str, typer.Option(help="date, or ISO time with zone")],
    deadline: Deadline = None,
) -> int:
    """Wait again, from a date on, for what a closed wait waited for; cancel one that is open first."""
    return line.call("waits.again", id=wait_id, not_before=not_before, deadline=deadline)


def list_reviews(
    line: Line, every: Annotated[bool, typer.Option("--all", help="decided ones too")] = False
) -> int:
    """List what a person must decide, oldest first."""
    return line.call("reviews.list", all=every or None)


def show_review(line: Line, review: Id) -> int:
    """Show one with the message it is about and the choices there are."""
    return line.call("reviews.show", id=review)


def decide(
    line: Line,
    review: Id,
    choice: Annotated[str, typer.Argument(help="one of the choices `reviews show` lists")],
    waitpoint: Annotated[str | None, typer.Option("--waitpoint", help="the one it answers")] = None,
    conversation: Annotated[str | None, typer.Option("--conversation", help="the one it belongs to")] = None,
) -> int:
    """Decide one."""
    return line.call(
        "reviews.decide", id=review, choice=choice, waitpoint_id=waitpoint, conversation_id=conversation
    )


MAILBOX: dict[str, Callable[..., int]] = {
    "read": read_mailbox,
    "lease": lease,
    "ack": ack,
    "nack": nack,
    "extend": extend,
}
WAITS: dict[str, Callable[..., int]] = {
    "list": list_waits,
    "show": show_wait,
    "cancel": cancel_wait,
    "pause": pause_wait,
    "resume": resume_wait,
    "again": wait_again,
}
REVIEWS: dict[str, Callable[..., int]] = {"list": list_reviews, "show": show_review, "decide": decide}
