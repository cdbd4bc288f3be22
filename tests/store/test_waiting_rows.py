"""Waitpoints, the answer that closes each, and the waits with their log."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from answerback.errors import Forbidden, KeyInUse, NotFound
from answerback.model import Resolution, Timing, Trust, Wait, WaitpointState, WaitState
from answerback.store import conversations, schedules, waitpoints, waits
from answerback.store.session import Database
from tests.store.samples import (
    ANSWER,
    ASKED,
    CONVERSATION,
    DAY,
    HOUR,
    LIVE,
    NOW,
    OTHER,
    TEST,
    WAIT,
    WAITPOINT,
    answered,
    asked,
)

RESOLUTION = Resolution(
    waitpoint_id="wp_1",
    message_id="msg_2",
    responder="email:pat@supplier.example",
    author="email:pat@supplier.example",
    channel="email",
    evidence_level="channel_claim",
    trust=Trust.AUTHENTICATED,
    timing=Timing.ON_TIME,
    responded_at=NOW + HOUR,
    evidence={"header_from": "pat@supplier.example"},
)
PAUSED = Wait(
    state=WaitState.PAUSED,
    reason="away",
    nudges=1,
    since=NOW + HOUR,
    moves=2,
    moved_from=NOW + timedelta(microseconds=1),
    resume_to=WaitState.NUDGED,
    away=("pat@supplier.example",),
    dead=("kim@supplier.example",),
)


def test_an_open_waitpoint_keeps_its_key_to_itself(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
    with pytest.raises(KeyInUse) as refused, db.write() as tx:
        waitpoints.add_waitpoint(tx, LIVE, replace(WAITPOINT, id="wp_2"))
    assert refused.value.details == {"correlation_key": "po-1"}


def test_a_key_is_free_again_when_its_waitpoint_has_ended(db: Database) -> None:
    again = replace(WAITPOINT, id="wp_2", opened_at=NOW - DAY, follows="wp_1")
    with db.write() as tx:
        asked(tx)
        waitpoints.close_waitpoint(tx, LIVE, "wp_1", WaitpointState.CANCELLED, NOW + HOUR, "asked for")
        waitpoints.add_waitpoint(tx, LIVE, again)
        ended = replace(WAITPOINT, state=WaitpointState.CANCELLED)
        assert waitpoints.waitpoints_of(tx, LIVE, "cnv_1") == (again, ended)
        assert waitpoints.waitpoint_by_key(tx, LIVE, "reply", "po-1") == again
        waitpoints.close_waitpoint(tx, LIVE, "wp_2", WaitpointState.EXPIRED, NOW + DAY, "")
        assert waitpoints.waitpoint_by_key(tx, LIVE, "reply", "po-1") == ended
        assert waitpoints.waitpoint_by_key(tx, OTHER, "reply", "po-1") is None


def test_a_person_may_let_one_more_answer(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        for _ in range(2):
            waitpoints.add_responder(tx, LIVE, "wp_1", "email:kim@supplier.example")
        assert waitpoints.waitpoint(tx, LIVE, "wp_1", lock=True) == replace(
            WAITPOINT, responders=(*WAITPOINT.responders, "email:kim@supplier.example")
        )


def test_what_an_unannounced_sender_may_answer_is_found_in_its_inbox(db: Database) -> None:
    second = replace(WAITPOINT, id="wp_2", correlation_key="po-2", responders=("email:kim@supplier.example",))
    with db.write() as tx:
        asked(tx)
        waitpoints.add_waitpoint(tx, LIVE, second)
        both = {"email:pat@supplier.example", "email:kim@supplier.example"}
        assert waitpoints.open_for(tx, LIVE, "inb_1", both) == (WAITPOINT, second)
        assert waitpoints.open_for(tx, LIVE, "inb_2", both) == ()
        assert waitpoints.open_for(tx, TEST, "inb_1", both) == ()
        waitpoints.close_waitpoint(tx, LIVE, "wp_1", WaitpointState.CANCELLED, NOW, "")
        assert waitpoints.open_for(tx, LIVE, "inb_1", ["email:pat@supplier.example"]) == ()


def test_a_stalled_waitpoint_opens_again_and_an_ended_one_does_not(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        waitpoints.stall(tx, LIVE, "wp_1", "stalled")
        assert waitpoints.waitpoint(tx, LIVE, "wp_1") == replace(WAITPOINT, state=WaitpointState.STALLED)
        waitpoints.stall(tx, LIVE, "wp_1", "open")
        waitpoints.close_waitpoint(tx, LIVE, "wp_1", WaitpointState.EXPIRED, NOW + DAY, "")
    with pytest.raises(Forbidden) as refused, db.write() as tx:
        waitpoints.stall(tx, LIVE, "wp_1", "open")
    assert refused.value.details == {"constraint": "tr_waitpoints_ended"}


def test_an_answer_closes_its_waitpoint(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        waitpoints.resolve(tx, LIVE, RESOLUTION)
    with db.read() as tx:
        assert waitpoints.waitpoint(tx, LIVE, "wp_1") == replace(WAITPOINT, state=WaitpointState.RESOLVED)
        assert waitpoints.resolution(tx, LIVE, "wp_1") == RESOLUTION
        assert waitpoints.answered(tx, LIVE, ANSWER.id) == "wp_1"
        assert waitpoints.answered(tx, LIVE, ASKED.id) is None
        assert waitpoints.resolution(tx, TEST, "wp_1") is None


@pytest.mark.parametrize(
    ("change", "constraint"),
    [
        ({"responded_at": NOW + 11 * DAY}, "ck_resolutions_in_time"),
        ({"author": "agent:agt_1"}, "ck_resolutions_not_waiter"),
    ],
)
def test_what_may_not_answer_is_refused_and_the_waitpoint_stays_open(
    change: dict[str, object], constraint: str, db: Database
) -> None:
    with db.write() as tx:
        answered(tx)
    with pytest.raises(Forbidden) as refused, db.write() as tx:
        waitpoints.resolve(tx, LIVE, replace(RESOLUTION, **change))  # type: ignore[arg-type]
    assert refused.value.details == {"constraint": constraint}
    with db.read() as tx:
        assert waitpoints.waitpoint(tx, LIVE, "wp_1") == WAITPOINT


def test_an_expired_waitpoint_is_not_resolved(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        waitpoints.close_waitpoint(tx, LIVE, "wp_1", WaitpointState.EXPIRED, NOW + 10 * DAY, "")
    with pytest.raises(Forbidden), db.write() as tx:
        waitpoints.resolve(tx, LIVE, RESOLUTION)
    with db.read() as tx:
        assert waitpoints.resolution(tx, LIVE, "wp_1") is None


def test_what_is_not_there_is_not_found(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        with pytest.raises(NotFound, match="no waitpoint wp_9"):
            waitpoints.resolve(tx, LIVE, replace(RESOLUTION, waitpoint_id="wp_9"))
        with pytest.raises(NotFound, match="no waitpoint wp_1"):
            waitpoints.stall(tx, TEST, "wp_1", "stalled")
        with pytest.raises(NotFound, match="no wait wait_9"):
            waits.save_wait(tx, LIVE, "wait_9", PAUSED, NOW)
        assert waitpoints.waitpoint(tx, LIVE, "wp_9") is None
        assert waits.wait(tx, LIVE, "wait_9") is None
        assert waits.wait_of(tx, TEST, "cnv_1") is None


def test_a_rejected_answer_is_recorded_once(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
        for _ in range(2):
            waitpoints.reject(tx, LIVE, "wp_1", ANSWER.id, "late", "sha256:aa", NOW)
        waitpoints.reject(tx, LIVE, "wp_1", ANSWER.id, "condition_false", "sha256:aa", NOW + HOUR)
        assert waitpoints.rejections(tx, LIVE, "wp_1") == (
            (ANSWER.id, "late"),
            (ANSWER.id, "condition_false"),
        )
        assert waitpoints.rejections(tx, TEST, "wp_1") == ()


def test_a_message_stands_for_its_own_waitpoint_and_a_nudge_for_those_it_was_sent_for(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        second = replace(WAITPOINT, id="wp_0", correlation_key="po-2", opened_at=NOW + HOUR)
        waitpoints.add_waitpoint(tx, LIVE, second)
        nudge = replace(ASKED, id="msg_n", kind="nudge", wait_id="wait_1", nudge_number=1, rfc_id="<n@x>")
        conversations.add_message(tx, LIVE, nudge)
        for _ in range(2):
            waitpoints.link_nudge(tx, LIVE, "msg_n", ["wp_0"])
        assert waitpoints.stands_for(tx, LIVE, ASKED.id) == ("wp_1", "wp_0")
        assert waitpoints.stands_for(tx, LIVE, "msg_n") == ("wp_0",)
        assert waitpoints.stands_for(tx, LIVE, "msg_9") == ()


def test_waitpoints_are_due_at_their_deadline_until_they_end(db: Database) -> None:
    sooner = replace(WAITPOINT, id="wp_2", correlation_key="po-2", expires_at=NOW + DAY)
    with db.write() as tx:
        asked(tx)
        waitpoints.add_waitpoint(tx, LIVE, sooner)
        assert waitpoints.next_expiry(tx) == NOW + DAY
        assert waitpoints.due_waitpoints(tx, NOW + DAY - HOUR, 10) == ()
        assert waitpoints.due_waitpoints(tx, NOW + 10 * DAY, 10) == ((LIVE, "wp_2"), (LIVE, "wp_1"))
        assert waitpoints.due_waitpoints(tx, NOW + 10 * DAY, 1) == ((LIVE, "wp_2"),)
        for id_ in ("wp_1", "wp_2"):
            waitpoints.close_waitpoint(tx, LIVE, id_, WaitpointState.EXPIRED, NOW + 10 * DAY, "")
        assert waitpoints.due_waitpoints(tx, NOW + 20 * DAY, 10) == ()
        assert waitpoints.next_expiry(tx) is None


def test_a_wait_comes_back_in_every_detail(db: Database) -> None:
    saved = replace(WAIT, wait=PAUSED, updated_at=NOW + DAY)
    with db.write() as tx:
        asked(tx)
        waits.save_wait(tx, LIVE, "wait_1", PAUSED, NOW + DAY)
    with db.read() as tx:
        assert waits.wait(tx, LIVE, "wait_1") == saved


def test_the_newest_wait_of_a_conversation_counts(db: Database) -> None:
    free = replace(WAIT, id="wait_0", waitpoint_id="", schedule_version=2)
    with db.write() as tx:
        asked(tx)
        schedules.add_schedule(tx, LIVE, "vendor-quote", {"gaps": []}, NOW)
        waits.add_wait(tx, LIVE, free)
        assert waits.wait_of(tx, LIVE, "cnv_1", lock=True) == free
        assert waits.wait_for(tx, LIVE, "wp_1") == WAIT
        conversations.add_conversation(tx, LIVE, replace(CONVERSATION, id="cnv_2"))
        assert waits.wait_of(tx, LIVE, "cnv_2") is None


def test_waits_are_listed_by_state_the_last_changed_first(db: Database) -> None:
    other = replace(WAIT, id="wait_2")
    with db.write() as tx:
        asked(tx)
        waits.add_wait(tx, LIVE, other)
        waits.save_wait(tx, LIVE, "wait_2", PAUSED, NOW + DAY)
        paused = replace(other, wait=PAUSED, updated_at=NOW + DAY)
        assert waits.waits(tx, LIVE) == (paused, WAIT)
        assert waits.waits(tx, LIVE, [WaitState.WAITING, WaitState.NUDGED]) == (WAIT,)
        assert waits.waits(tx, LIVE, limit=1) == (paused,)
        assert waits.waits(tx, TEST) == ()


def test_a_running_wait_is_due_and_a_stopped_one_is_not(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        waits.add_wait(tx, LIVE, replace(WAIT, id="wait_0", wait=replace(WAIT.wait, plan=(NOW + DAY,))))
        assert waits.next_due(tx) == NOW + DAY
        assert waits.due_waits(tx, NOW + DAY, 10) == ((LIVE, "wait_0"),)
        assert waits.due_waits(tx, NOW + 2 * DAY, 10) == ((LIVE, "wait_0"), (LIVE, "wait_1"))
        waits.save_wait(tx, LIVE, "wait_0", PAUSED, NOW)
        waits.save_wait(tx, LIVE, "wait_1", PAUSED, NOW)
        assert waits.due_waits(tx, NOW + 9 * DAY, 10) == ()
        assert waits.next_due(tx) is None


def test_every_change_of_a_wait_is_logged_in_order(db: Database) -> None:
    with db.write() as tx:
        asked(tx)
        waits.append_log(tx, LIVE, "wait_1", NOW, "Sent", "sent", "", "waiting", {"message_id": "msg_1"})
        waits.append_log(tx, LIVE, "wait_1", NOW, "Replied", "replied", "waiting", "replied", {})
        assert waits.wait_log(tx, LIVE, "wait_1") == (
            {"at": "2026-03-02T09:30:00+00:00", "event": "Sent", "rule": "sent", "before": "", "after": "waiting", "cause": {"message_id": "msg_1"}},
            {"at": "2026-03-02T09:30:00+00:00", "event": "Replied", "rule": "replied", "before": "waiting", "after": "replied", "cause": {}},
        )  # fmt: skip
        assert waits.wait_log(tx, TEST, "wait_1") == ()
