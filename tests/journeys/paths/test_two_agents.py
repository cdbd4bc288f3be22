"""Nothing of one agent's reaches another: questions, threads, lists, and what a person has yet to decide."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from answerback.channels.mail.reception import Delivery
from answerback.errors import BadRequest, KeyInUse, NotFound, ScopeMissing
from answerback.gateway import intake
from answerback.gateway.context import Caller
from answerback.gateway.verbs import table
from tests.journeys.paths.gateway import LIVE
from tests.journeys.paths.test_paths import answer

if TYPE_CHECKING:
    from typing import Any

    from tests.journeys.paths.gateway import Gateway, Start


def second(gateway: Gateway) -> Caller:
    """Another agent with an inbox of its own."""
    added = gateway.call("agents.add", name="seller")
    gateway.call("inboxes.add", agent="seller", address="seller@gateway.example")
    scopes = frozenset(verb.scope for verb in table.VERBS if verb.scope)
    agent_id = str(added["agent_id"])
    return Caller(scope=LIVE, principal=f"agent:{agent_id}", agent_id=agent_id, scopes=scopes)


def by(gateway: Gateway, caller: Caller, name: str, **given: object) -> dict[str, Any]:
    verb = table.BY_NAME[name]
    return table.call(gateway.context, caller, verb, verb.request.model_validate(given))


def test_the_same_key_and_words_of_another_agent_are_refused_and_name_nothing(start: Start) -> None:
    gateway = start()
    other = second(gateway)
    gateway.ask()
    with pytest.raises(KeyInUse) as refused:
        by(
            gateway,
            other,
            "send",
            to=["pat@supplier.example"],
            subject="PO 4711",
            text="When will it be delivered?",
            expect={"key": "po-4711", "schedule": "vendor-quote"},
        )
    assert refused.value.details == {"correlation_key": "po-4711"}


def test_a_mail_to_one_inbox_that_names_another_ones_thread_stays_out_of_it(start: Start) -> None:
    gateway = start()
    second(gateway)
    gateway.ask()
    gateway.drain()
    gateway.receive(answer(gateway), "seller@gateway.example")
    assert gateway.types() == ["waitpoint.opened"]
    assert gateway.wait_state() == "waiting"
    gateway.receive(answer(gateway, number=2), "buyer@gateway.example")
    assert gateway.wait_state() == "replied"


def test_a_list_of_waits_is_cut_after_other_agents_waits_are_left_out(start: Start) -> None:
    gateway = start()
    other = second(gateway)
    mine = gateway.ask()
    gateway.clock.go(timedelta(minutes=1))
    by(
        gateway,
        other,
        "send",
        to=["kim@shop.example"],
        subject="s",
        text="t",
        expect={"key": "k", "schedule": "internal"},
    )
    assert [one["wait_id"] for one in gateway.call("waits.list", limit=1)["waits"]] == [mine["wait_id"]]


def test_what_a_person_has_not_decided_or_has_discarded_is_not_shown_to_the_agent(start: Start) -> None:
    gateway = start()
    asked = gateway.ask()
    gateway.drain()
    gateway.receive(
        answer(gateway, "Pay me.", "eve@other.example"), "buyer@gateway.example", "eve@other.example"
    )
    (review,) = gateway.call("reviews.list")["reviews"]

    def seen() -> list[str]:
        shown = gateway.call("conversations.show", id=asked["conversation_id"])["messages"]
        return [message["direction"] for message in shown]

    assert seen() == ["out"]
    with pytest.raises(NotFound):
        gateway.call("messages.show", id=review["message_id"])
    gateway.call("reviews.decide", id=review["review_id"], choice="discard")
    assert seen() == ["out"]
    assert gateway.types() == ["waitpoint.opened"]


def test_a_discarded_mail_answers_no_waitpoint_opened_later(start: Start) -> None:
    gateway = start()
    sent = gateway.call("send", to=["pat@supplier.example"], subject="s", text="t")
    gateway.drain()
    gateway.receive(
        answer(gateway, "I say yes.", "eve@other.example"), "buyer@gateway.example", "eve@other.example"
    )
    opened = gateway.call(
        "waitpoints.open",
        conversation_id=sent["conversation_id"],
        expect={"key": "k", "responders": ["email:pat@supplier.example"]},
    )
    assert opened["state"] == "open"


def test_an_early_answer_must_pass_what_an_answer_must_pass(start: Start) -> None:
    gateway = start()
    sent = gateway.call("send", to=["pat@supplier.example"], subject="s", text="t")
    gateway.drain()
    gateway.receive(answer(gateway, "Yes."), "buyer@gateway.example")
    strict = gateway.call(
        "waitpoints.open",
        conversation_id=sent["conversation_id"],
        expect={"key": "k", "min_trust": "authenticated"},
    )
    assert strict["state"] == "open"
    plain = gateway.call("waitpoints.open", conversation_id=sent["conversation_id"], expect={"key": "k2"})
    assert plain["state"] == "resolved"


def test_a_second_question_beside_a_paused_wait_starts_no_second_clock(start: Start) -> None:
    gateway = start()
    asked = gateway.ask()
    gateway.drain()
    gateway.call("waits.pause", id=asked["wait_id"])
    gateway.call("waitpoints.open", conversation_id=asked["conversation_id"], expect={"key": "second"})
    assert [one["state"] for one in gateway.call("waits.list")["waits"]] == ["paused"]


def test_mail_for_the_postmaster_and_an_inbox_at_once_reaches_both(start: Start) -> None:
    gateway = start(external="all")
    octets = b"From: a@b.example\r\nMessage-ID: <both@b.example>\r\n\r\nhello\r\n"
    names = ("postmaster@gateway.example", "buyer@gateway.example", "postmaster")
    delivery = Delivery(
        mail_from="a@b.example", recipients=names, octets=octets, peer="", helo="", tls=False, smtputf8=False
    )
    intake.keep(gateway.context, [delivery])
    intake.process_all(gateway.context)
    assert gateway.types() == ["message.received.unauthenticated"]
    (review,) = gateway.call("reviews.list")["reviews"]
    assert gateway.call("reviews.show", id=review["review_id"])["message"]["parts"][0]["text"] == "hello"
    gateway.call("reviews.decide", id=review["review_id"], choice="discard")


def test_a_token_in_somebody_elses_return_path_is_not_shown(start: Start) -> None:
    gateway = start()
    gateway.ask()
    gateway.drain()
    token = gateway.relay.copies[0].return_path.partition("+")[2].partition("@")[0]
    bounce_address = f"bounces+7-buyer+{token}=gateway.example@mailer.example"
    gateway.receive(answer(gateway), "buyer@gateway.example", bounce_address)
    assert token not in str(gateway.events())
    assert gateway.wait_state() == "replied"


def test_reading_the_parent_needs_its_scope(start: Start) -> None:
    gateway = start()
    agent = gateway.agent
    blind = Caller(scope=LIVE, principal=agent.principal, agent_id=agent.agent_id, scopes=frozenset({"send"}))
    with pytest.raises(ScopeMissing):
        by(gateway, blind, "send", to=["a@b.example"], subject="s", text="t", reply_to_message_id="msg_x")


def test_a_sub_address_of_our_own_inbox_is_no_responder(start: Start) -> None:
    gateway = start()
    with pytest.raises(BadRequest, match="can not answer itself"):
        gateway.call(
            "send",
            to=["pat@supplier.example"],
            subject="s",
            text="t",
            expect={"key": "k", "responders": ["email:buyer+x@gateway.example"]},
        )


def test_waiting_again_without_a_deadline_ends_within_thirty_days_of_now(start: Start) -> None:
    gateway = start()
    asked = gateway.ask()
    gateway.call("waits.cancel", id=asked["wait_id"])
    later = gateway.clock.now() + timedelta(days=20)
    again = gateway.call("waits.again", id=asked["wait_id"], not_before=later.isoformat())
    assert again["expires_at"] <= (gateway.clock.now() + timedelta(days=30)).isoformat()
    gateway.call("waits.cancel", id=again["wait_id"])
    far = gateway.clock.now() + timedelta(days=40)
    with pytest.raises(BadRequest, match="30 days"):
        gateway.call("waits.again", id=again["wait_id"], not_before=far.isoformat())
