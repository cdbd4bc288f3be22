"""Says where the time of one mail goes, from its octets to the mailbox, as shares of the whole."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from answerback.channels.mail.read import read
from answerback.channels.mail.reception import Delivery
from answerback.gateway import app, delivery, intake
from answerback.gateway.context import Caller, Context
from answerback.gateway.settings import Settings
from answerback.gateway.verbs import table
from answerback.model import Scope
from bench.load import mail

ROUNDS, MAILS, SIZE = 5, 100, 5000
INBOX = "agent@gateway.example"


def cpu(work: Callable[[], object]) -> float:
    """Return the milliseconds of processor time some work takes for each mail."""
    start = time.process_time()
    work()
    return (time.process_time() - start) / MAILS * 1000


def prepared(home: Path) -> Context:
    """Return a gateway on a SQLite file with one open inbox."""
    settings = Settings(home=home)
    app.initialise(settings)
    context = app.open_context(settings, environment={})
    scope = Scope(tenant=settings.tenant, environment="live")
    operator = Caller(scope=scope, principal="operator", agent_id="", scopes=frozenset({""}))
    for name, given in (
        ("agents.add", {"name": "agent"}),
        ("inboxes.add", {"agent": "agent", "address": INBOX, "external": "all"}),
    ):
        verb = table.BY_NAME[name]
        table.call(context, operator, verb, verb.request.model_validate(given))
    return context


def accepted(context: Context, octets: list[bytes]) -> None:
    """Bring the mails to the gate, all at once."""
    gate = intake.Gate(context)

    async def accept() -> None:
        deliveries = (
            Delivery(
                mail_from="pat@supplier.example",
                recipients=(INBOX,),
                octets=one,
                peer="127.0.0.1",
                helo="load.example",
                tls=False,
                smtputf8=False,
            )
            for one in octets
        )
        await asyncio.gather(*(gate.accept(one) for one in deliveries))

    asyncio.run(accept())


def phases(context: Context, first: int) -> tuple[float, ...]:
    """Return the milliseconds of one round: store, process, and inside that read and hide."""
    octets = [mail(first + number, SIZE) for number in range(MAILS)]
    texts = [read(one).text for one in octets]
    return (
        cpu(lambda: accepted(context, octets)),
        cpu(lambda: intake.process_all(context, at_most=MAILS)),
        cpu(lambda: [read(one) for one in octets]),
        cpu(lambda: [delivery.redacted(context, text) for text in texts]),
    )


def main() -> None:
    """Print processor milliseconds a mail for accepting and for processing: the best of five rounds each."""
    with tempfile.TemporaryDirectory() as folder:
        context = prepared(Path(folder) / "home")
        rounds = [phases(context, number * MAILS) for number in range(ROUNDS)]
        context.db.close()
    kept, processed, reading, hiding = (min(column) for column in zip(*rounds, strict=True))
    print(f"processor time of one mail of {SIZE} octets: the best of {ROUNDS} rounds of {MAILS} mails")
    for name, spent in (
        ("store before the 250, many to a commit", kept),
        ("process: octets to mailbox", processed),
        ("  of it reading", reading),
        ("  of it taking tokens out", hiding),
        ("  the rest: statements, deciding, signing", processed - reading - hiding),
    ):
        print(f"{name:44} {spent:6.2f} ms  {spent / (kept + processed):6.1%}")


if __name__ == "__main__":
    main()
