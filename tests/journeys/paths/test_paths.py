"""What the paths do at their seams: races of timer and reply, provider ids, decisions, roles, broken mail."""

# long because: one gateway, one seam after the other

from __future__ import annotations

from datetime import datetime, timedelta
from email import message_from_bytes
from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from answerback.channels.mail.reception import Delivery
from answerback.errors import BadAddress, BadRequest, ScopeMissing
from answerback.gateway import intake, sending, timers
from answerback.gateway.verbs import table
from answerback.model import Outcome, Receipt, RecipientResult
from answerback.store import outbox, tenants
from tests.journeys.paths.gateway import LIVE

if TYPE_CHECKING:
    from tests.journeys.paths.gateway import Gateway, Start

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)


def answer(
    gateway: Gateway, text: str = "Thursday.", sender: str = "pat@supplier.example", *, number: int = 1
) -> bytes:
    """A reply to the newest copy that left."""
    sent = message_from_bytes(gateway.relay.copies[-1].octets)
    return (
        f"From: <{sender}>\r\nTo: buyer@gateway.example\r\nSubject: Re: {sent['Subject']}\r\n"
        f"Message-ID: <answer-{number}@supplier.example>\r\nIn-Reply-To: {sent['Message-ID']}\r\n"
        f"Content-Type: text/plain; charset=utf-8\r\n\r\n{text}\r\n"
    ).encode()


def test_a_reply_stored_but_not_yet_read_stops_the_nudge_that_is_due(start: Start) -> None:
    gateway = start()
    gateway.ask()
    gateway.drain()
    gateway.clock.go(6 * DAY + timedelta(hours=4))
    timers.Tick(gateway.context)()
    first = gateway.relay.copies[0]
    assert gateway.wait_state() == "nudged"
    octets = answer(gateway)
    delivery = Delivery(
        mail_from="pat@supplier.example",
        recipients=("buyer@gateway.example",),
        octets=octets,
        peer="",
        helo="",
        tls=False,
        smtputf8=False,
    )
    intake.keep(gateway.context, [delivery])
    gateway.drain()
    assert gateway.relay.copies == [first]
    assert gateway.wait_state() == "replied"


def test_a_reply_to_the_id_the_provider_gave_instead_is_matched(start: Start) -> None:
    gateway = start()
    gateway.relay.provider_id = "0102018f-aaaa-bbbb-000000"
    gateway.ask()
    gateway.drain()
    octets = (
        b"From: pat@supplier.example\r\nTo: buyer@gateway.example\r\nMessage-ID: <x@supplier.example>\r\n"
        b"In-Reply-To: <0102018f-aaaa-bbbb-000000>\r\n\r\nThursday.\r\n"
    )
    gateway.receive(octets, "buyer@gateway.example")
    assert gateway.types() == ["waitpoint.opened", "waitpoint.resolved.unauthenticated"]


def test_a_lost_handover_waits_for_a_person_and_send_again_keeps_its_message_id(start: Start) -> None:
    def dies(point: str) -> None:
        if point == "after_send" and not died:
            died.append(point)
            raise KeyboardInterrupt

    died: list[str] = []
    gateway = start(crash=dies)
    gateway.ask()
    with pytest.raises(BaseException):  # noqa: B017, PT011 - a task group wraps it
        gateway.drain()
    gateway.clock.go(10 * MINUTE)
    gateway.tick()
    assert gateway.wait_state() == "paused"
    assert len(gateway.relay.copies) == 1
    (review,) = gateway.call("reviews.list")["reviews"]
    assert (review["reason"], review["choices"]) == ("submission_unknown", ["was_sent", "send_again"])
    gateway.call("reviews.decide", id=review["review_id"], choice="send_again")
    gateway.drain()
    ids = [message_from_bytes(copy.octets)["Message-ID"] for copy in gateway.relay.copies]
    assert len(ids) == 2
    assert len(set(ids)) == 1
    assert gateway.wait_state() == "waiting"


def test_a_bare_resume_is_refused_while_nobody_knows_whether_a_message_left(start: Start) -> None:
    gateway = start()
    gateway.relay.answers["pat@supplier.example"] = RecipientResult(outcome=Outcome.UNKNOWN)
    asked = gateway.ask()
    gateway.drain()
    with pytest.raises(Exception, match="unknown whether the last message left"):
        gateway.call("waits.resume", id=asked["wait_id"])
    assert gateway.wait_state() == "paused"


def test_a_deferred_copy_is_tried_again_with_the_same_id_until_its_wait_is_over(start: Start) -> None:
    gateway = start()
    busy = RecipientResult(outcome=Outcome.DEFERRED, code=450, text="4.2.0 later")
    gateway.relay.answers["pat@supplier.example"] = busy
    gateway.ask(schedule="internal")
    gateway.drain()
    for _ in range(400):
        gateway.clock.go(timedelta(hours=1))
        gateway.tick()
        if gateway.wait_state() != "waiting":
            break
    assert gateway.wait_state() == "paused"
    ids = {message_from_bytes(copy.octets)["Message-ID"] for copy in gateway.relay.copies}
    assert len(gateway.relay.copies) > 10
    assert len(ids) == 1, "no nudge follows a message that never left"


def test_mail_for_the_postmaster_goes_to_a_person_and_to_no_agent(start: Start) -> None:
    gateway = start()
    gateway.receive(
        b"From: a@b.example\r\nMessage-ID: <p@b.example>\r\n\r\nhello\r\n", "postmaster@gateway.example"
    )
    assert gateway.types() == []
    assert [one["reason"] for one in gateway.call("reviews.list")["reviews"]] == ["postmaster"]


def test_a_forged_sub_address_is_plain_mail_and_counted(start: Start) -> None:
    gateway = start(external="all")
    octets = b"From: a@b.example\r\nMessage-ID: <f@b.example>\r\n\r\nhello\r\n"
    gateway.receive(octets, f"buyer+{'a' * 39}@gateway.example", "a@b.example")
    assert gateway.types() == ["message.received.unauthenticated"]
    with gateway.context.db.read() as tx:
        assert tenants.counts(tx, LIVE)["bad_mac"] == 1


def test_a_mail_nobody_asked_for_reaches_no_agent_unless_its_inbox_is_open(start: Start) -> None:
    gateway = start()
    gateway.receive(
        b"From: a@b.example\r\nMessage-ID: <n@b.example>\r\n\r\nbuy!\r\n", "buyer@gateway.example"
    )
    assert gateway.types() == []
    (review,) = gateway.call("reviews.list")["reviews"]
    gateway.call("reviews.decide", id=review["review_id"], choice="not_an_answer")
    assert gateway.types() == ["message.received.unauthenticated"]


def test_a_mail_that_ended_the_process_three_times_goes_to_review_unread(start: Start) -> None:
    gateway = start()
    delivery = Delivery(
        mail_from="",
        recipients=("buyer@gateway.example",),
        octets=b"From: a@b.example\r\n\r\nx\r\n",
        peer="",
        helo="",
        tls=False,
        smtputf8=False,
    )
    intake.keep(gateway.context, [delivery])
    for _ in range(3):
        intake.recover(gateway.context)
    assert intake.process_all(gateway.context) == 1
    assert [one["reason"] for one in gateway.call("reviews.list")["reviews"]] == ["unprocessable"]


def test_after_a_jump_of_the_wall_clock_nothing_is_claimed_for_two_minutes(start: Start) -> None:
    gateway = start()
    gateway.ask(schedule="verification-code")
    gateway.drain()
    tick = timers.Tick(gateway.context)
    gateway.clock.step(DAY)
    tick()
    gateway.clock.go(MINUTE)
    tick()
    assert gateway.wait_state() == "waiting"
    gateway.clock.go(1.5 * MINUTE)
    tick()
    assert gateway.wait_state() == "abandoned"


def test_two_drains_hand_one_message_over_once(start: Start) -> None:
    gateway = start()
    asked = gateway.ask()
    message_id = str(asked["message_id"])
    jobs = [sending.claim(gateway.context, LIVE, message_id) for _ in range(2)]
    assert [job is not None for job in jobs] == [True, False]
    with gateway.context.db.read() as tx:
        assert [copy.state for copy in outbox.copies(tx, LIVE, message_id)] == ["handing_over"]


def test_the_last_review_decided_lets_the_wait_go_on(start: Start) -> None:
    gateway = start()
    gateway.ask()
    gateway.drain()
    gateway.receive(
        answer(gateway, "I forward it.", "eve@other.example"), "buyer@gateway.example", "eve@other.example"
    )
    gateway.clock.go(5 * DAY)
    gateway.tick()
    assert gateway.wait_state() == "paused"
    (review,) = gateway.call("reviews.list")["reviews"]
    gateway.call("reviews.decide", id=review["review_id"], choice="discard")
    assert gateway.wait_state() == "waiting"
    assert len(gateway.relay.copies) == 1


def test_a_person_may_decide_that_somebody_else_gave_the_answer(start: Start) -> None:
    gateway = start()
    gateway.ask()
    gateway.drain()
    gateway.receive(
        answer(gateway, "Friday.", "eve@other.example"), "buyer@gateway.example", "eve@other.example"
    )
    (review,) = gateway.call("reviews.list")["reviews"]
    gateway.call("reviews.decide", id=review["review_id"], choice="answer")
    assert gateway.types()[-1] == "waitpoint.resolved.unauthenticated"
    assert gateway.call("waitpoints.show", key="po-4711")["state"] == "resolved"


def test_no_agent_sees_or_decides_a_review_its_own_least_of_all(start: Start) -> None:
    gateway = start()
    verb = table.BY_NAME["reviews.list"]
    with pytest.raises(ScopeMissing):
        table.call(gateway.context, gateway.agent, verb, verb.request())
    with pytest.raises(BadRequest, match="is a person's"):
        gateway.call("keys.create", name="k", agent="buyer", scopes=["reviews:decide"])


def test_a_question_given_up_has_ended_for_whoever_waits_for_it_and_still_takes_an_answer(
    start: Start,
) -> None:
    gateway = start()
    gateway.ask(schedule="verification-code")
    gateway.drain()
    gateway.clock.go(6 * MINUTE)
    gateway.tick()
    view = gateway.call("waitpoints.show", key="po-4711")
    assert (view["state"], view["wait"], view["ended"]) == (
        "open",
        {"state": "abandoned", "reason": "no_reply"},
        True,
    )
    gateway.receive(answer(gateway), "buyer@gateway.example")
    view = gateway.call("waitpoints.show", key="po-4711")
    assert (view["state"], view["wait"]["state"], view["resolution"]["timing"]) == (
        "resolved",
        "replied",
        "after_abandon",
    )


@pytest.mark.parametrize(
    "hours", [{"holidays": ["2026-13-45"]}, {"window": ["24:99", "25:00"]}, {"window": ["17:00", "09:00"]}]
)
def test_hours_that_are_none_are_refused_before_they_can_stop_a_clock(
    start: Start, hours: dict[str, object]
) -> None:
    with pytest.raises(BadRequest, match=r"YYYY-MM-DD|HH:MM"):
        start().call("contacts.add", name="p", addresses=["p@x.example"], zone="Europe/Berlin", **hours)


@pytest.mark.parametrize("responder", ["email-domain:*", "email-domain:@", "email-domain:com,org", "email:"])
def test_a_responder_that_is_no_address_or_domain_is_refused(start: Start, responder: str) -> None:
    gateway = start()
    with pytest.raises((BadRequest, BadAddress)):
        gateway.call(
            "send",
            to=["pat@supplier.example"],
            subject="s",
            text="t",
            expect={"key": "k", "responders": [responder]},
        )


@pytest.mark.parametrize("text", ["a\ud800", "x" * ((1 << 20) + 1)])
def test_a_text_that_can_not_be_sent_is_refused_before_it_is_stored(start: Start, text: str) -> None:
    gateway = start()
    with pytest.raises(ValidationError):
        gateway.call("send", to=["pat@supplier.example"], subject="s", text=text)


def test_a_bounce_that_names_somebody_else_suppresses_nobody(start: Start) -> None:
    gateway = start()
    gateway.ask()
    gateway.drain()
    octets = (
        b"From: mailer-daemon@other.example\r\nMessage-ID: <d@other.example>\r\nMIME-Version: 1.0\r\n"
        b'Content-Type: multipart/report; report-type=delivery-status; boundary="r"\r\n\r\n'
        b"--r\r\nContent-Type: text/plain\r\n\r\nfailed\r\n--r\r\nContent-Type: message/delivery-status\r\n\r\n"
        b"Reporting-MTA: dns; other.example\r\n\r\nFinal-Recipient: rfc822; someone@else.example\r\n"
        b"Action: failed\r\nStatus: 5.1.1\r\n\r\n--r--\r\n"
    )
    gateway.receive(octets, gateway.relay.copies[0].return_path, "")
    assert gateway.wait_state() == "abandoned"
    assert gateway.call("suppressions.list")["suppressions"] == []


@pytest.mark.parametrize("file", [{"content": "!!!"}, {"content": "aGk=", "media_type": "multipart/mixed"}])
def test_a_file_that_can_not_be_sent_is_refused(start: Start, file: dict[str, str]) -> None:
    with pytest.raises(ValidationError):
        start().call(
            "send", to=["a@b.example"], subject="s", text="t", attachments=[{"filename": "a", **file}]
        )


def test_a_nudge_the_relay_put_off_is_not_sent_once_the_answer_is_there(start: Start) -> None:
    gateway = start(zone="Europe/Berlin")
    gateway.ask()
    gateway.drain()
    gateway.clock.go(3 * DAY)
    timers.Tick(gateway.context)()
    ready = sending.claim(gateway.context, LIVE, str(gateway.events()[-1]["data"]["message_id"]))
    assert ready is not None
    gateway.receive(answer(gateway), "buyer@gateway.example")
    later = RecipientResult(outcome=Outcome.DEFERRED, code=450, text="4.2.0 later")
    sending.record(gateway.context, ready, Receipt(results={"pat@supplier.example": later}))
    gateway.clock.go(DAY)
    gateway.tick()
    assert len(gateway.relay.copies) == 1
    (copy,) = gateway.call("messages.show", id=ready.message.id)["delivery"]
    assert copy["status"] == "withdrawn"


def test_a_wait_paused_on_purpose_is_not_resumed_by_some_review(start: Start) -> None:
    gateway = start()
    asked = gateway.ask()
    gateway.drain()
    gateway.receive(answer(gateway, "?", "eve@other.example"), "buyer@gateway.example", "eve@other.example")
    gateway.call("waits.pause", id=asked["wait_id"])
    (review,) = gateway.call("reviews.list")["reviews"]
    gateway.call("reviews.decide", id=review["review_id"], choice="discard")
    assert gateway.wait_state() == "paused"


def test_a_reply_stored_in_time_and_read_late_makes_an_abandoned_wait_replied(start: Start) -> None:
    gateway = start()
    gateway.ask(schedule="verification-code")
    gateway.drain()
    gateway.clock.go(6 * MINUTE)
    gateway.tick()
    expires_at = datetime.fromisoformat(gateway.call("waitpoints.show", key="po-4711")["expires_at"])
    gateway.clock.go(expires_at - gateway.clock.now() - timedelta(seconds=1))
    delivery = Delivery(
        mail_from="pat@supplier.example",
        recipients=("buyer@gateway.example",),
        octets=answer(gateway),
        peer="",
        helo="",
        tls=False,
        smtputf8=False,
    )
    intake.keep(gateway.context, [delivery])
    gateway.clock.go(timedelta(seconds=3))
    intake.process_all(gateway.context)
    view = gateway.call("waitpoints.show", key="po-4711")
    assert (view["state"], view["wait"]["state"]) == ("resolved", "replied")


def test_a_file_that_is_no_text_can_be_sent_with_an_idempotency_key(start: Start) -> None:
    gateway = start()
    verb = table.BY_NAME["send"]
    request = verb.request.model_validate(
        {
            "to": ["a@b.example"],
            "subject": "s",
            "text": "t",
            "attachments": [{"filename": "a.bin", "content": "//79/A=="}],
        }
    )
    first = table.call(gateway.context, gateway.agent, verb, request, "key-1")
    assert table.call(gateway.context, gateway.agent, verb, request, "key-1") == first


def test_an_agent_hears_of_a_refused_mail_it_expected_no_answer_to(start: Start) -> None:
    gateway = start()
    refused = RecipientResult(outcome=Outcome.FAILED, code=550, text="5.7.1 not from you")
    gateway.relay.answers["pat@supplier.example"] = refused
    sent = gateway.call("send", to=["pat@supplier.example"], subject="s", text="t")
    gateway.drain()
    (event,) = gateway.events()
    assert event["type"] == "answerback.message.failed"
    assert event["data"] == {
        "conversation_id": sent["conversation_id"],
        "message_id": sent["message_id"],
        "recipient": "pat@supplier.example",
        "code": 550,
        "text": "5.7.1 not from you",
    }
