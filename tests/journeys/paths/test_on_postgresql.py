"""The main job on PostgreSQL: the same paths, the same outcome."""

from __future__ import annotations

from datetime import timedelta
from email import message_from_bytes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.journeys.paths.gateway import Start


def test_two_nudges_then_given_up_then_answered_all_the_same(
    start: Start, new_postgres: Callable[[], str]
) -> None:
    gateway = start(url=new_postgres(), zone="Europe/Berlin")
    gateway.ask(schedule="vendor-quote")
    gateway.drain()
    for _ in range(12):
        gateway.clock.go(timedelta(days=1))
        gateway.tick()
    assert gateway.wait_state() == "abandoned"
    mails = [message_from_bytes(copy.octets) for copy in gateway.relay.copies]
    assert [mail["In-Reply-To"] for mail in mails] == [None, mails[0]["Message-ID"], mails[1]["Message-ID"]]
    octets = (
        "From: pat@supplier.example\r\nTo: buyer@gateway.example\r\nMessage-ID: <a@supplier.example>\r\n"
        f"In-Reply-To: {mails[-1]['Message-ID']}\r\n\r\nThursday.\r\n"
    ).encode()
    gateway.receive(octets, "buyer@gateway.example")
    gateway.receive(octets, "buyer@gateway.example")
    assert gateway.types() == [
        "waitpoint.opened",
        "wait.nudged",
        "wait.nudged",
        "wait.abandoned",
        "waitpoint.resolved.unauthenticated",
    ]
    assert [event["sequence"] for event in gateway.events()] == ["1", "2", "3", "4", "5"]
    assert gateway.events()[-1]["data"]["timing"] == "after_abandon"
