"""What came in, the conversations, and every id a message is known by."""

from __future__ import annotations

from dataclasses import replace

import pytest

from answerback.errors import Forbidden
from answerback.model import Address, Known, Message, OutboxState
from answerback.store import conversations, inbound, outbox
from answerback.store.session import Database, Tx
from tests.store.samples import (
    ANSWER,
    ASKED,
    CONVERSATION,
    DAY,
    HOUR,
    LIVE,
    MAIL,
    NOW,
    OTHER,
    RECIPIENTS,
    TEST,
    answered,
    asked,
    people,
)


def test_a_mail_is_kept_once_per_inbox(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        assert inbound.keep(tx, MAIL) == "rcv_1"
        assert inbound.keep(tx, replace(MAIL, id="rcv_2")) is None
        assert inbound.keep(tx, replace(MAIL, id="rcv_3", inbox_id="")) == "rcv_3"
        assert inbound.keep(tx, replace(MAIL, id="rcv_4", inbox_id=""), "lmtp") is None
    with db.read() as tx:
        assert inbound.received(tx, LIVE, "rcv_1") == MAIL
        assert inbound.received(tx, LIVE, "rcv_2") is None
        assert inbound.received(tx, TEST, "rcv_1") is None


def test_mail_is_handed_out_oldest_first_until_it_is_settled(db: Database) -> None:
    later = replace(MAIL, id="rcv_0", identity="sha-0", at=NOW + 2 * HOUR)
    handed = []
    with db.write() as tx:
        people(tx)
        inbound.keep(tx, later)
        inbound.keep(tx, MAIL)
        assert inbound.received_before(tx, LIVE, "inb_1", MAIL.at) == 0
        assert inbound.received_before(tx, LIVE, "inb_1", NOW + DAY) == 2
        assert inbound.received_before(tx, LIVE, "inb_2", NOW + DAY) == 0
    while True:
        with db.write() as tx:
            found = inbound.next_received(tx, NOW + DAY)
            if found is None:
                break
            handed.append(found)
            inbound.settle(tx, LIVE, found.id, "processed", "", None)
    assert handed == [MAIL, later]


def test_what_became_of_a_mail_is_told_for_every_inbox(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        inbound.keep(tx, replace(MAIL, id="rcv_2", inbox_id=""))
        inbound.settle(tx, LIVE, "rcv_1", "processed", "reply", ANSWER.id)
        assert inbound.outcomes(tx, LIVE, MAIL.identity) == (
            ("rcv_1", "processed", "reply", ANSWER.id),
            ("rcv_2", "stored", "", ""),
        )
        assert inbound.outcomes(tx, TEST, MAIL.identity) == ()


def test_a_deferred_mail_waits_for_its_time(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        inbound.keep(tx, MAIL)
        inbound.defer(tx, LIVE, "rcv_1", NOW + DAY)
        assert inbound.next_received(tx, NOW + DAY - HOUR) is None
        assert inbound.next_received(tx, NOW + DAY) == MAIL


def test_a_start_is_counted_for_the_oldest_unprocessed_mail_alone(db: Database) -> None:
    younger = replace(MAIL, id="rcv_2", identity="sha-2", at=MAIL.at + HOUR)
    with db.write() as tx:
        people(tx)
        assert inbound.count_start(tx, NOW + DAY) == 0
        inbound.keep(tx, MAIL)
        inbound.keep(tx, younger)
        assert inbound.count_start(tx, NOW + DAY) == 1
        assert inbound.next_received(tx, NOW + DAY) == replace(MAIL, attempts=1)
        inbound.settle(tx, LIVE, MAIL.id, "dropped", "loop", None)
        assert inbound.next_received(tx, NOW + DAY) == younger


def test_a_message_and_the_mail_it_was_read_from_point_at_each_other(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        inbound.settle(tx, LIVE, "rcv_1", "processed", "", ANSWER.id)
    with pytest.raises(Forbidden), db.write() as tx:
        inbound.settle(tx, LIVE, "rcv_1", "review", "", "msg_missing")


def test_a_twin_has_the_same_id_author_and_content_in_the_same_inbox(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
    same = ("inb_1", ANSWER.rfc_id, "pat@SUPPLIER.example", "body-1")
    with db.read() as tx:
        assert inbound.twin(tx, LIVE, *same) == ANSWER.id
        for place, other in enumerate(("inb_2", "<other@x>", "kim@supplier.example", "body-2")):
            assert inbound.twin(tx, LIVE, *(*same[:place], other, *same[place + 1 :])) is None
        assert inbound.twin(tx, TEST, *same) is None


def test_a_mail_without_message_id_is_nobodys_twin(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        conversations.add_message(tx, LIVE, replace(ANSWER, rfc_id="", received_id=""))
        assert inbound.twin(tx, LIVE, "inb_1", "", ANSWER.sender.email, "body-1") is None


def test_an_attachment_is_stored_once(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        digest = inbound.keep_content(tx, LIVE, b"%PDF")
        assert inbound.keep_content(tx, LIVE, b"%PDF") == digest
        assert inbound.content(tx, LIVE, digest) == b"%PDF"
        assert inbound.content(tx, OTHER, digest) is None


def test_text_no_database_can_hold_is_shown_as_unreadable_characters(db: Database) -> None:
    hostile = replace(ANSWER, subject="a\0b\ud800c", content={"text": "x\0y\udfffz"}, received_id="")
    with db.write() as tx:
        asked(tx)
        conversations.add_message(tx, LIVE, hostile)
        assert conversations.message(tx, LIVE, ANSWER.id) == replace(hostile, subject="a\ufffdb\ufffdc")


def test_conversations_are_paged_newest_first(db: Database) -> None:
    made = [
        replace(CONVERSATION, id=f"cnv_{number}", created_at=NOW + (number // 2) * HOUR)
        for number in range(5)
    ]
    with db.write() as tx:
        people(tx)
        for one in made:
            conversations.add_conversation(tx, LIVE, one)
        first = conversations.conversations(tx, LIVE, limit=3)
        second = conversations.conversations(tx, LIVE, limit=3, before_id=first[-1].id)
        assert [one.id for one in (*first, *second)] == ["cnv_4", "cnv_3", "cnv_2", "cnv_1", "cnv_0"]
        assert conversations.conversations(tx, LIVE, "agt_2") == ()
        assert conversations.conversations(tx, TEST) == ()


def test_messages_of_one_instant_stay_in_the_order_they_came(db: Database) -> None:
    same = [replace(ASKED, id=id_, rfc_id=f"<{id_}@x>") for id_ in ("msg_9", "msg_5", "msg_7")]
    with db.write() as tx:
        asked(tx)
        for one in same:
            conversations.add_message(tx, LIVE, one)
        assert conversations.messages(tx, LIVE, "cnv_1") == (ASKED, *same)


def test_a_moved_message_is_in_the_other_conversation(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        conversations.add_conversation(tx, LIVE, replace(CONVERSATION, id="cnv_2"))
        conversations.move_message(tx, LIVE, ANSWER.id, "cnv_2")
        assert conversations.messages(tx, LIVE, "cnv_1") == (ASKED,)
        assert conversations.messages(tx, LIVE, "cnv_2") == (replace(ANSWER, conversation_id="cnv_2"),)


def test_one_id_may_be_carried_by_several_messages(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        for _ in range(2):
            conversations.remember_ids(tx, LIVE, ASKED.id, [("<ses@amazonses.example>", "provider")])
            conversations.remember_ids(tx, LIVE, ANSWER.id, [("<ses@amazonses.example>", "received")])
        told = conversations.known(
            tx, LIVE, ["<2@supplier.example>", "<nobody@x>", "<ses@amazonses.example>"]
        )
        assert conversations.known(tx, TEST, ["<2@supplier.example>"]) == ()
        assert conversations.known(tx, LIVE, []) == ()
    asked_one, answer = (
        {"message_id": "msg_1", "conversation_id": "cnv_1"},
        {"message_id": "msg_2", "conversation_id": "cnv_1"},
    )
    assert told == (
        Known(rfc_id="<2@supplier.example>", source="received", outbound=False, **answer),
        Known(rfc_id="<ses@amazonses.example>", source="provider", outbound=True, **asked_one),
        Known(rfc_id="<ses@amazonses.example>", source="received", outbound=False, **answer),
    )  # fmt: skip


def test_an_endless_id_is_known_too(db: Database) -> None:
    # incompressible, so that PostgreSQL's index would have to take all of it
    endless = f"<{''.join(chr(0x4E00 + 7919 * place % 20000) for place in range(4000))}@x>"
    with db.write() as tx:
        asked(tx)
        conversations.add_message(tx, LIVE, replace(ANSWER, rfc_id=endless, received_id=""))
        conversations.remember_ids(tx, LIVE, ANSWER.id, [(endless, "received")])
        (told,) = conversations.known(tx, LIVE, [endless, endless[:-1] + "y>"])
    assert (told.rfc_id, told.message_id) == (endless, ANSWER.id)


def test_a_token_points_at_our_own_message(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
    with db.read() as tx:
        assert conversations.known_message(tx, LIVE, "msg_1") == Known(
            rfc_id=ASKED.rfc_id, message_id="msg_1", conversation_id="cnv_1", source="ours", outbound=True
        )
        assert conversations.known_message(tx, OTHER, "msg_1") is None


def further(tx: Tx, id_: str, parent: str, rfc_id: str) -> Message:
    """Store another message of ours that answers `parent`."""
    message = replace(ASKED, id=id_, parent_id=parent, rfc_id=rfc_id, at=NOW + DAY, content={"text": id_})
    conversations.add_message(tx, LIVE, message)
    return message


def test_a_chain_runs_from_the_first_message_to_this_one(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        further(tx, "msg_3", "msg_2", "")
        further(tx, "msg_4", "msg_3", "<4@agents.example>")
        further(tx, "msg_5", "msg_1", "<5@agents.example>")
        assert conversations.chain(tx, LIVE, "msg_4") == (
            "<1@agents.example>",
            "<2@supplier.example>",
            "<4@agents.example>",
        )
        assert conversations.chain(tx, LIVE, "msg_5") == ("<1@agents.example>", "<5@agents.example>")
        assert conversations.chain(tx, LIVE, "msg_9") == ()


def test_a_quotation_is_compared_with_what_we_wrote(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        further(tx, "msg_3", "msg_2", "<3@x>")
        assert conversations.sent_texts(tx, LIVE, "cnv_1") == ("How much?", "msg_3")


def test_the_last_sent_message_left_for_at_least_one_recipient(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        third = further(tx, "msg_3", "msg_1", "<3@x>")
        outbox.queue(tx, LIVE, "msg_3", RECIPIENTS, NOW)
        assert conversations.last_sent(tx, LIVE, "wait_1") is None
        outbox.record(tx, LIVE, "msg_1", RECIPIENTS[0], OutboxState.SENT, NOW, 250, "ok")
        assert conversations.last_sent(tx, LIVE, "wait_1") == ASKED
        outbox.record(tx, LIVE, "msg_3", RECIPIENTS[1], OutboxState.SENT, NOW, 250, "ok")
        assert conversations.last_sent(tx, LIVE, "wait_1") == third
        assert conversations.last_sent(tx, LIVE, "cnv_1") == third
        assert conversations.last_sent(tx, TEST, "cnv_1") is None


def test_a_nudge_number_twice_is_forbidden(db: Database) -> None:
    nudge = replace(
        ASKED, id="msg_n", kind="nudge", wait_id="wait_1", nudge_number=1, sender=Address(email="b@x")
    )
    with db.write() as tx:
        asked(tx)
        conversations.add_message(tx, LIVE, nudge)
        assert conversations.message(tx, LIVE, "msg_n") == nudge
    with pytest.raises(Forbidden) as refused, db.write() as tx:
        conversations.add_message(tx, LIVE, replace(nudge, id="msg_m"))
    assert refused.value.details == {"constraint": "ux_messages_nudge"}
