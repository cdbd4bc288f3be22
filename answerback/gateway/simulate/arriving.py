"""Lets mail arrive: by an adapter that has the octets, or by a real SMTP dialogue."""

from __future__ import annotations

import base64
from email.message import Message
from email.parser import BytesHeaderParser
from email.utils import parseaddr

from answerback.channels.mail.reception import Delivery
from answerback.gateway import intake
from answerback.gateway.simulate import dialogue
from answerback.gateway.simulate.matchers import Observed
from answerback.gateway.simulate.stage import Arrival, Stage


def receive_email(stage: Stage, event: Observed) -> None:
    """Let a mail arrive as an adapter hands it on: the envelope as final delivery wrote it on top.

    A gateway that is down gets it when it is up again, as the sending server tries again.
    """
    octets = stage.scenario.mail(event["eml"])
    if not stage.running:
        stage.record.held.append(lambda: receive_email(stage, event))
        return
    headers = BytesHeaderParser().parsebytes(octets)
    recipient = _address(headers, "Delivered-To") or stage.world.recipient
    sender = _address(headers, "Return-Path")
    stage.do(lambda: _keep(stage, event["ref"], octets, sender, recipient))


def _address(headers: Message, name: str) -> str:
    return parseaddr(str(headers.get(name, "")))[1]


def _keep(stage: Stage, ref: str, octets: bytes, sender: str, recipient: str) -> None:
    with stage.context.db.read() as tx:
        known = intake.find_route(tx, recipient) is not None
    if not known:
        note(stage, ref, octets, 550)
        return
    delivery = Delivery(
        mail_from=sender,
        recipients=(recipient,),
        octets=octets,
        peer="127.0.0.1",
        helo="client.invalid",
        tls=False,
        smtputf8=True,
    )
    intake.keep(stage.context, [delivery])
    note(stage, ref, octets, 250)


def smtp_in(stage: Stage, event: Observed) -> None:
    """Let a mail be brought over SMTP, octet for octet."""
    if "data_base64" in event:
        data = base64.b64decode(event["data_base64"])
    else:
        data = dialogue.stuffed(stage.scenario.mail(event["data_eml"]))
    script = dialogue.Script(
        mail_from=event["mail_from"],
        recipients=tuple(event["rcpt"]),
        data=data,
        smtputf8=event.get("smtputf8", False),
    )
    spoken = stage.do(lambda: stage.runner.run(dialogue.deliver(stage.context, script)))
    if spoken is None:
        return
    for place, taken in enumerate(spoken.accepted):
        note(stage, event["ref"] if place == 0 else f"{event['ref']}+{place}", taken.octets, 250)
    if not spoken.accepted:
        note(stage, event["ref"], b"", spoken.code)


def note(stage: Stage, ref: str, octets: bytes, code: int) -> None:
    """Remember what became of a mail at the edge; of a redelivery under the same name the first counts."""
    record = stage.record
    record.accepted += code == 250
    arrival = Arrival(octets=octets, code=code)
    arrival.repeated = any(one.octets == octets for one in record.arrivals.values())
    record.arrivals.setdefault(ref, arrival)
