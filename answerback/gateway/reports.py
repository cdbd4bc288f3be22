"""What delivery reports, complaints and absences change: outbox, suppressions, waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from answerback.gateway import advance
from answerback.model import Json, Message, Report, Suppression
from answerback.store import conversations, outbox, tenants
from answerback.store import waits as waiting
from answerback.waits import events

if TYPE_CHECKING:
    from answerback.gateway.context import Work
    from answerback.model import WaitRow

#: our word for a report's outcome on an outbox row
REPORTED = {
    "hard": "bounced",
    "soft": "bounced",
    "delayed": "delayed",
    "delivered": "delivered",
    "complained": "complained",
}


def apply(work: Work, about: Message, report: Report) -> None:
    """Let one report about a message of ours change what it may: its copy, the suppressions, its wait."""
    hold(work, about)
    for address in _named(about, work, report):
        outbox.report(work.tx, work.scope, about.id, address, REPORTED[report.outcome], work.now)
        _tell(work, about, address, report)
        # Only a report that names the very address may end mail to it for good.
        same = not report.recipient or report.recipient.lower() == address.lower()
        gone = report.outcome == "hard" and is_address_gone(report.status)
        if same and (gone or report.outcome == "complained"):
            _suppress(work, address, report)
        if event := _event(report, address):
            _happen(work, about, event)


def _suppress(work: Work, address: str, report: Report) -> None:
    suppression = Suppression(
        address=address.lower(),
        reason="complaint" if report.outcome == "complained" else "bounce",
        created_at=work.now,
    )
    tenants.suppress(work.tx, work.scope, suppression)


def is_address_gone(status: str) -> bool:
    """Tell whether an enhanced status says the address itself is bad or disabled (RFC 3463 X.1, X.2.1)."""
    return not status or status.startswith("5.1.") or status == "5.2.1"


def _named(about: Message, work: Work, report: Report) -> list[str]:
    """Return the recipients of ours a report is about; one that names none is about all.

    A sole recipient may be reported under the address its mail was forwarded to.
    """
    copies = [copy.recipient for copy in outbox.copies(work.tx, work.scope, about.id)]
    named = [address for address in copies if address.lower() == report.recipient.lower()]
    return named or (copies if not report.recipient or len(copies) == 1 else [])


def _event(report: Report, address: str) -> events.Event | None:
    match report.outcome:
        case "hard":
            return events.Undeliverable(recipient=address, reason="bounced")
        case "complained":
            return events.Undeliverable(recipient=address, reason="complained")
        case "soft":
            return events.Failed()
        case _:
            return None


def _happen(work: Work, about: Message, event: events.Event) -> None:
    if row := wait_about(work, about):
        advance.advance(work, row.id, event, cause={"message_id": about.id})


def hold(work: Work, about: Message) -> None:
    """Lock a message's wait before its copies: everybody takes the two in this order."""
    if row := wait_about(work, about):
        waiting.wait(work.tx, work.scope, row.id, lock=True)


def wait_about(work: Work, about: Message) -> WaitRow | None:
    """Return the wait a message of ours belongs to: the one that made it, else its conversation's newest."""
    if about.wait_id:
        return waiting.wait(work.tx, work.scope, about.wait_id)
    return waiting.wait_of(work.tx, work.scope, about.conversation_id)


def _tell(work: Work, about: Message, address: str, report: Report) -> None:
    conversation = conversations.conversation(work.tx, work.scope, about.conversation_id)
    assert conversation is not None
    data: Json = {
        "conversation_id": about.conversation_id,
        "message_id": about.id,
        "recipient": address,
        "status": REPORTED[report.outcome],
        "code": report.status,
    }
    advance.tell_agent(work, conversation.agent_id, "message.delivery_updated", ("waiter",), data)
