"""A person's decisions: each one is an event, and ends in `advance` like any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from answerback.errors import AlreadyDecided, BadRequest, NotFound
from answerback.gateway import advance, answers, sending
from answerback.model import ENDED, Json, OutboxState, Review, WaitState, value
from answerback.store import conversations, inbound, outbox, reviews
from answerback.store import waits as waiting
from answerback.waits import events

if TYPE_CHECKING:
    from answerback.gateway.context import Work

SENDING = ("was_sent", "send_again")
READING = ("answer", "not_an_answer", "other_conversation", "discard")
WAITING = ("resume", "cancel")
#: mail that is nobody's but the operator's: read it, then put it away
FOR_THE_OPERATOR = ("postmaster",)


def choices(review: Review) -> tuple[str, ...]:
    """Return what a person can choose for a review."""
    if review.reason == "submission_unknown":
        return SENDING
    if review.reason in FOR_THE_OPERATOR:
        return ("discard",)
    return READING if review.received_id else WAITING


@value
class Decision:
    """What a person chose, and by whom."""

    choice: str
    by: str
    #: for `answer`: the waitpoint it answers
    waitpoint_id: str = ""
    #: for `answer` and `other_conversation`: where the message belongs
    conversation_id: str = ""


def decide(work: Work, review_id: str, decision: Decision) -> None:
    """Carry out a decision; deciding a conversation's last open review lets its wait go on.

    Raises:
        NotFound, AlreadyDecided, BadRequest: nothing was changed.
    """
    review = reviews.review(work.tx, work.scope, review_id, lock=True)
    if review is None:
        raise NotFound(kind="review", id=review_id)
    if review.decision:
        raise AlreadyDecided(id=review_id, decision=review.decision)
    if decision.choice not in choices(review):
        raise BadRequest(field="choice", problem=f"choose one of {', '.join(choices(review))}")
    reviews.decide(work.tx, work.scope, review_id, decision.choice, decision.by, work.now)
    if decision.choice in SENDING:
        _settle_unknown(work, review, decision.choice)
    elif decision.choice in READING:
        _place(work, review, decision)
    _go_on(work, review, decision)


def _place(work: Work, review: Review, decision: Decision) -> None:
    if decision.choice == "discard":
        inbound.settle(
            work.tx, work.scope, review.received_id, "dropped", "discarded", review.message_id or None
        )
        return
    if decision.choice == "other_conversation" and not decision.conversation_id:
        raise BadRequest(field="conversation_id", problem="name the conversation the message belongs to")
    message = answers.message_under_review(work, review, decision.conversation_id)
    inbound.settle(work.tx, work.scope, review.received_id, "processed", "decided", message.id)
    if decision.choice == "answer":
        answers.decided_answer(work, message, decision.waitpoint_id, _cause(review, decision))
        return
    answers.deliver(work, message, data={"decided_by": decision.by})


def _cause(review: Review, decision: Decision) -> Json:
    return {"review_id": review.id, "choice": decision.choice, "by": decision.by}


def _settle_unknown(work: Work, review: Review, choice: str) -> None:
    tx, scope = work.tx, work.scope
    state = OutboxState.SENT if choice == "was_sent" else _again(work, review)
    for copy in outbox.copies(tx, scope, review.message_id, lock=True):
        if copy.state is OutboxState.UNKNOWN:
            outbox.record(
                tx, scope, review.message_id, copy.recipient, state, work.now, 0, f"decided: {choice}"
            )


def _again(work: Work, review: Review) -> OutboxState:
    """A nudge whose wait has ended meanwhile is withdrawn: nobody who answered is nagged."""
    message = conversations.message(work.tx, work.scope, review.message_id)
    row = waiting.wait(work.tx, work.scope, message.wait_id) if message and message.wait_id else None
    return OutboxState.WITHDRAWN if row and row.wait.state in ENDED else OutboxState.QUEUED


def _go_on(work: Work, review: Review, decision: Decision) -> None:
    row = waiting.wait_of(work.tx, work.scope, review.conversation_id) if review.conversation_id else None
    if row is None or row.wait.state in ENDED:
        return
    cause = _cause(review, decision)
    if decision.choice == "cancel":
        if row.waitpoint_id:
            advance.cancel(work, row.waitpoint_id, "cancelled in review")
        advance.advance(work, row.id, events.Cancelled(reason="review"), cause=cause)
        return
    # A wait a person paused on purpose goes on when a person says so, not with some review.
    on_purpose = row.wait.reason == "person" and decision.choice != "resume"
    undecided = reviews.open_reviews(work.tx, work.scope, review.conversation_id)
    if row.wait.state is WaitState.PAUSED and not undecided and not on_purpose:
        advance.advance(work, row.id, events.Resumed(), cause=cause)
    message = conversations.message(work.tx, work.scope, review.message_id) if review.message_id else None
    if decision.choice == "was_sent" and message:
        sending.settle(work, message)
