"""The outbox, the mailboxes, reviews and remembered requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from answerback.errors import AlreadyDecided, IdempotencyMismatch, InProgress, LeaseExpired, NotFound
from answerback.model import ItemState, MailboxItem, OutboxRow, OutboxState, Remembered, Scope
from answerback.store import conversations, idempotency, mailboxes, outbox, reviews
from answerback.store.session import Database, Tx
from tests.store.samples import (
    ASKED,
    BUYER,
    DAY,
    HOUR,
    LIVE,
    NOW,
    OTHER,
    RECIPIENTS,
    REVIEW,
    TEST,
    answered,
    asked,
    people,
)

CC, PAT = (
    OutboxRow(
        scope=LIVE, message_id="msg_1", recipient=recipient, state=OutboxState.QUEUED, next_attempt_at=NOW
    )
    for recipient in RECIPIENTS
)


def test_every_recipient_has_a_copy_ready_at_its_time(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        assert outbox.copies(tx, LIVE, "msg_1") == (CC, PAT)
        assert outbox.copies(tx, TEST, "msg_1") == ()
        assert outbox.next_attempt(tx) == NOW
        assert outbox.ready(tx, NOW - HOUR, 10) == ()
        assert outbox.ready(tx, NOW, 10) == ((LIVE, "msg_1"),)
        outbox.queue(tx, LIVE, "msg_1", [], NOW)
        assert outbox.unsent(tx, LIVE, "wait_1") is True


def test_a_copy_being_handed_over_is_nobody_elses(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        assert outbox.hand_over(tx, LIVE, "msg_1", RECIPIENTS, "p1", NOW + HOUR) == 2
        assert outbox.hand_over(tx, LIVE, "msg_1", RECIPIENTS, "p2", NOW + HOUR) == 0
        assert outbox.ready(tx, NOW + DAY, 10) == ()
        assert outbox.next_attempt(tx) is None
        assert outbox.unsent(tx, LIVE, "cnv_1") is True
        held: dict[str, Any] = {"state": OutboxState.HANDING_OVER, "next_attempt_at": None}
        assert outbox.copies(tx, LIVE, "msg_1", lock=True) == (replace(CC, **held), replace(PAT, **held))


def test_only_a_lease_that_ran_out_has_lapsed(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        outbox.hand_over(tx, LIVE, "msg_1", RECIPIENTS, "p1", NOW + HOUR)
        assert outbox.lapsed(tx, NOW) == ()
        assert outbox.renew(tx, LIVE, "msg_1", "p1", NOW + 3 * HOUR) == 2
        assert outbox.renew(tx, LIVE, "msg_1", "p2", NOW + 9 * HOUR) == 0
        assert outbox.renew(tx, LIVE, "msg_2", "p1", NOW + 9 * HOUR) == 0
        assert outbox.next_lapse(tx) == NOW + 3 * HOUR
        assert outbox.lapsed(tx, NOW + 2 * HOUR) == ()
        assert outbox.lapsed(tx, NOW + 3 * HOUR) == ((LIVE, "msg_1"),)


def test_each_recipient_has_an_outcome_of_its_own(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        outbox.hand_over(tx, LIVE, "msg_1", RECIPIENTS, "p1", NOW + HOUR)
        outbox.record(tx, LIVE, "msg_1", CC.recipient, OutboxState.DEFERRED, NOW, 451, "later", NOW + DAY)
        outbox.record(tx, LIVE, "msg_1", PAT.recipient, OutboxState.SENT, NOW, 250, "ok")
        deferred: dict[str, Any] = {
            "state": OutboxState.DEFERRED,
            "attempts": 1,
            "next_attempt_at": NOW + DAY,
            "code": 451,
            "text": "later",
        }
        sent: dict[str, Any] = {
            "state": OutboxState.SENT,
            "attempts": 1,
            "next_attempt_at": None,
            "code": 250,
            "text": "ok",
        }
        assert outbox.copies(tx, LIVE, "msg_1") == (replace(CC, **deferred), replace(PAT, **sent))
        assert outbox.lapsed(tx, NOW + DAY) == ()
        assert outbox.ready(tx, NOW + DAY, 10) == ((LIVE, "msg_1"),)
        assert outbox.unsent(tx, LIVE, "wait_1") is True
        outbox.record(tx, LIVE, "msg_1", CC.recipient, OutboxState.FAILED, NOW, 550, "no")
        assert outbox.unsent(tx, LIVE, "wait_1") is False
        with pytest.raises(NotFound):
            outbox.record(tx, LIVE, "msg_1", "nobody@x", OutboxState.SENT, NOW, 250, "")


def test_a_copy_of_unknown_fate_may_be_sent_again_at_a_persons_word(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        outbox.hand_over(tx, LIVE, "msg_1", [PAT.recipient], "p1", NOW + HOUR)
        outbox.record(tx, LIVE, "msg_1", PAT.recipient, OutboxState.UNKNOWN, NOW, 0, "")
        outbox.record(tx, LIVE, "msg_1", PAT.recipient, OutboxState.QUEUED, NOW + DAY, 0, "send_again")
        assert outbox.copies(tx, LIVE, "msg_1")[1] == replace(
            PAT, attempts=2, next_attempt_at=NOW + DAY, text="send_again"
        )


def test_only_nudges_not_yet_on_their_way_are_withdrawn(db: Database) -> None:
    nudges = [
        replace(
            ASKED,
            id=f"msg_n{number}",
            kind="nudge",
            wait_id="wait_1",
            nudge_number=number,
            rfc_id=f"<{number}@x>",
        )
        for number in (1, 2, 3)
    ]
    with db.write() as tx:
        asked(tx)
        for nudge in nudges:
            conversations.add_message(tx, LIVE, nudge)
            outbox.queue(tx, LIVE, nudge.id, RECIPIENTS[:1], NOW, "wait_1")
        outbox.hand_over(tx, LIVE, "msg_n1", RECIPIENTS, "p1", NOW + HOUR)
        outbox.record(tx, LIVE, "msg_n2", RECIPIENTS[0], OutboxState.DEFERRED, NOW, 451, "", NOW + HOUR)
        assert outbox.withdraw(tx, LIVE, "wait_1") == 2
        states = [copy.state for nudge in nudges for copy in outbox.copies(tx, LIVE, nudge.id)]
        assert states == [OutboxState.HANDING_OVER, OutboxState.WITHDRAWN, OutboxState.WITHDRAWN]
        assert outbox.copies(tx, LIVE, "msg_1") == (CC, PAT)


def test_a_later_report_is_noted_at_its_recipient(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        assert outbox.report(tx, LIVE, "msg_1", "PAT@Supplier.example", "bounced", NOW) == 1
        assert outbox.report(tx, LIVE, "msg_1", "nobody@supplier.example", "bounced", NOW) == 0
        assert outbox.copies(tx, LIVE, "msg_1") == (CC, replace(PAT, reported="bounced"))


def item(sequence: int, state: ItemState = ItemState.READY, **changed: object) -> MailboxItem:
    """Return an item as `three` stores it."""
    plain = MailboxItem(
        sequence=sequence, event_id=f"evt_{sequence}", type="t", envelope=f"item {sequence}", state=state
    )
    return replace(plain, **changed)  # type: ignore[arg-type]


def three(tx: Tx) -> None:
    """Store three items in the agent's mailbox."""
    people(tx)
    for number in (1, 2, 3):
        mailboxes.append(tx, LIVE, BUYER, f"evt_{number}", "t", NOW, "item {}".format)


def lease(
    tx: Tx, lease_id: str, now: int = 0, *, limit: int = 10, most: int = 5
) -> tuple[list[int], list[int]]:
    """Lease for one hour from `now` hours on; return the numbers leased and those that died."""
    start = NOW + now * HOUR
    leased, died = mailboxes.lease(tx, LIVE, BUYER, lease_id, start + HOUR, start, limit, most)
    return [one.sequence for one in leased], [one.sequence for one in died]


def states(tx: Tx) -> list[ItemState]:
    """Return the states of all items in order."""
    return [one.state for one in mailboxes.read(tx, LIVE, BUYER, 0, 100)]


def test_reading_shows_everything_above_a_number_and_consumes_nothing(db: Database) -> None:
    with db.write() as tx:
        three(tx)
        assert mailboxes.read(tx, LIVE, BUYER, 0, 10) == (item(1), item(2), item(3))
        assert mailboxes.read(tx, LIVE, BUYER, 1, 1) == (item(2),)
        assert mailboxes.read(tx, LIVE, "person:ops", 0, 10) == ()
        assert mailboxes.pending(tx, LIVE, BUYER) == 3


@pytest.mark.parametrize("scope", [TEST, OTHER])
def test_a_mailbox_of_another_scope_does_not_exist(scope: Scope, db: Database) -> None:
    with db.write() as tx:
        three(tx)
        assert mailboxes.read(tx, scope, BUYER, 0, 10) == ()
        with pytest.raises(NotFound, match="no mailbox agent:agt_1"):
            mailboxes.append(tx, scope, BUYER, "evt", "t", NOW, str)


def test_a_lease_takes_the_first_items_and_holds_them_until_it_is_over(db: Database) -> None:
    with db.write() as tx:
        three(tx)
        held: dict[str, Any] = {"attempts": 1, "lease_id": "a", "lease_until": NOW + HOUR}
        assert mailboxes.lease(tx, LIVE, BUYER, "a", NOW + HOUR, NOW, 2, 5) == (
            (item(1, ItemState.LEASED, **held), item(2, ItemState.LEASED, **held)),
            (),
        )
        assert lease(tx, "b") == ([3], [])
        assert lease(tx, "c") == ([], [])
        assert lease(tx, "d", 1) == ([1, 2, 3], [])


def test_what_is_acknowledged_under_its_lease_is_done(db: Database) -> None:
    with db.write() as tx:
        three(tx)
        lease(tx, "a")
        assert mailboxes.ack(tx, LIVE, BUYER, "a", [1, 3], NOW) == 2
        assert states(tx) == [ItemState.ACKED, ItemState.LEASED, ItemState.ACKED]
        assert (mailboxes.contiguous_ack(tx, LIVE, BUYER), mailboxes.pending(tx, LIVE, BUYER)) == (1, 1)
        assert mailboxes.ack(tx, LIVE, BUYER, "a", None, NOW) == 1
        assert mailboxes.ack(tx, LIVE, BUYER, "a", None, NOW) == 0
        assert mailboxes.ack(tx, LIVE, BUYER, "a", [1], NOW + DAY) == 0
        assert (mailboxes.contiguous_ack(tx, LIVE, BUYER), mailboxes.pending(tx, LIVE, BUYER)) == (3, 0)
        assert mailboxes.contiguous_ack(tx, LIVE, "person:ops") == 0


def test_a_lease_that_is_over_or_anothers_acknowledges_nothing(db: Database) -> None:
    with db.write() as tx:
        three(tx)
        lease(tx, "a", limit=1)
        lease(tx, "b", limit=1)
        for lease_id, sequences, hours in (
            ("a", None, 1),
            ("a", [2], 0),
            ("a", [1, 2], 0),
            ("x", None, 0),
            ("a", [], 0),
        ):
            with pytest.raises(LeaseExpired):
                mailboxes.ack(tx, LIVE, BUYER, lease_id, sequences, NOW + hours * HOUR)
            with pytest.raises(LeaseExpired):
                mailboxes.nack(tx, LIVE, BUYER, lease_id, sequences, NOW + hours * HOUR)
            with pytest.raises(LeaseExpired):
                mailboxes.extend(tx, LIVE, BUYER, lease_id, sequences, NOW + hours * HOUR, NOW + DAY)
        assert states(tx) == [ItemState.LEASED, ItemState.LEASED, ItemState.READY]


def test_what_is_given_back_is_leased_again_at_once(db: Database) -> None:
    with db.write() as tx:
        three(tx)
        lease(tx, "a")
        assert mailboxes.nack(tx, LIVE, BUYER, "a", [2], NOW) == 1
        assert lease(tx, "b") == ([2], [])
        assert mailboxes.nack(tx, LIVE, BUYER, "a", None, NOW) == 2
        assert lease(tx, "c") == ([1, 3], [])


def test_an_extended_lease_holds_longer(db: Database) -> None:
    with db.write() as tx:
        three(tx)
        lease(tx, "a")
        assert mailboxes.extend(tx, LIVE, BUYER, "a", [1, 2], NOW, NOW + DAY) == 2
        assert lease(tx, "b", 2) == ([3], [])
        assert mailboxes.ack(tx, LIVE, BUYER, "a", None, NOW + 3 * HOUR) == 2


def test_an_item_leased_too_often_dies_and_is_kept(db: Database) -> None:
    with db.write() as tx:
        three(tx)
        assert lease(tx, "a", 0, limit=1, most=2) == ([1], [])
        assert lease(tx, "b", 1, limit=1, most=2) == ([1], [])
        assert lease(tx, "c", 2, limit=1, most=2) == ([2], [1])
        assert states(tx) == [ItemState.DEAD, ItemState.LEASED, ItemState.READY]
        assert (mailboxes.contiguous_ack(tx, LIVE, BUYER), mailboxes.pending(tx, LIVE, BUYER)) == (1, 2)


def test_the_first_decision_of_a_review_counts(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        assert reviews.reviews(tx, LIVE) == (REVIEW,)
        assert reviews.open_reviews(tx, LIVE, "cnv_1") == 1
        reviews.decide(tx, LIVE, "rev_1", "answer_of wp_1", "person:ops", NOW + HOUR)
        decided = replace(REVIEW, decision="answer_of wp_1", decided_by="person:ops", decided_at=NOW + HOUR)
        assert reviews.review(tx, LIVE, "rev_1", lock=True) == decided
        assert reviews.reviews(tx, LIVE) == ()
        assert reviews.reviews(tx, LIVE, open_only=False) == (decided,)
        assert reviews.open_reviews(tx, LIVE, "cnv_1") == 0
        with pytest.raises(AlreadyDecided, match=r"rev_1 was already decided \(answer_of wp_1\)"):
            reviews.decide(tx, LIVE, "rev_1", "discard", "person:ops", NOW + DAY)
        with pytest.raises(NotFound):
            reviews.decide(tx, OTHER, "rev_1", "discard", "person:ops", NOW + DAY)
        assert reviews.review(tx, OTHER, "rev_1") is None


def test_a_request_is_carried_out_once_and_its_answer_repeated(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        assert idempotency.begin(tx, LIVE, "key_1", "k", "digest", NOW) is None
    with pytest.raises(InProgress), db.write() as tx:
        idempotency.begin(tx, LIVE, "key_1", "k", "digest", NOW + HOUR / 100)
    with db.write() as tx:
        idempotency.finish(tx, LIVE, "key_1", "k", 201, '{"id":1}', NOW)
        assert idempotency.begin(tx, LIVE, "key_1", "k", "digest", NOW) == Remembered(
            status=201, body='{"id":1}'
        )
        assert idempotency.begin(tx, LIVE, "key_2", "k", "other", NOW) is None
        assert idempotency.begin(tx, TEST, "key_1", "k", "other", NOW) is None
    with pytest.raises(IdempotencyMismatch), db.write() as tx:
        idempotency.begin(tx, LIVE, "key_1", "k", "other", NOW)


def test_a_request_that_died_with_its_process_may_be_made_again(db: Database) -> None:
    with db.write() as tx:
        people(tx)
        assert idempotency.begin(tx, LIVE, "key_1", "k", "digest", NOW) is None
        assert idempotency.begin(tx, LIVE, "key_1", "k", "digest", NOW + idempotency.ABANDONED_AFTER) is None
        with pytest.raises(InProgress):
            idempotency.begin(
                tx, LIVE, "key_1", "k", "digest", NOW + idempotency.ABANDONED_AFTER + HOUR / 100
            )
