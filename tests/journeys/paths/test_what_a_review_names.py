"""A review names the questions it is about by their correlation keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.journeys.paths.test_paths import answer

if TYPE_CHECKING:
    from tests.journeys.paths.gateway import Start

LETTER = (
    b"From: pat@supplier.example\r\nSubject: hello\r\nMessage-ID: <x1@supplier.example>\r\n\r\nNext week.\r\n"
)


def test_a_reply_of_somebody_else_names_the_question_of_its_thread(start: Start) -> None:
    gateway = start()
    gateway.ask()
    gateway.drain()
    octets = answer(gateway).replace(b"pat@supplier.example", b"kim@elsewhere.example")
    gateway.receive(octets, "buyer@gateway.example", "kim@elsewhere.example")
    (review,) = gateway.call("reviews.list")["reviews"]
    assert (review["reason"], review["correlation_keys"]) == ("unknown_responder", ["po-4711"])


def test_a_letter_without_an_id_names_every_question_its_author_could_answer(start: Start) -> None:
    gateway = start()
    gateway.ask("po-1")
    gateway.ask("po-2", subject="PO 2")
    gateway.drain()
    gateway.receive(LETTER, "buyer@gateway.example")
    (review,) = gateway.call("reviews.list")["reviews"]
    assert (review["reason"], sorted(review["correlation_keys"])) == ("sender_match", ["po-1", "po-2"])


def test_a_strangers_letter_names_none(start: Start) -> None:
    gateway = start()
    gateway.ask()
    gateway.receive(LETTER.replace(b"pat@", b"eve@"), "buyer@gateway.example", "eve@supplier.example")
    (review,) = gateway.call("reviews.list")["reviews"]
    assert (review["reason"], review["correlation_keys"]) == ("external", [])
