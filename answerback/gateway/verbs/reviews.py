"""Items a person decides, and the decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from answerback.errors import NotFound
from answerback.gateway import answers, delivery, review
from answerback.model import Json, Review
from answerback.store import conversations, reviews, waitpoints

if TYPE_CHECKING:
    from answerback.gateway.context import Caller, Work
    from answerback.gateway.verbs import requests


def listing(work: Work, caller: Caller, request: requests.ListReviews) -> Json:
    """Return the open reviews (all with `all`), oldest first."""
    found = reviews.reviews(work.tx, work.scope, open_only=not request.all)
    return {"reviews": [shown(work, one) for one in found]}


def show(work: Work, caller: Caller, request: requests.One) -> Json:
    """Return one review with the message it is about."""
    one = reviews.review(work.tx, work.scope, request.id)
    if one is None:
        raise NotFound(kind="review", id=request.id)
    view = shown(work, one)
    message = conversations.message(work.tx, work.scope, one.message_id) if one.message_id else None
    if message:
        view["message"] = {
            "subject": delivery.redacted(work.context, message.subject),
            "sender": delivery.redacted(work.context, message.sender.email),
            "kind": message.kind,
            "parts": message.content.get("shown", []),
        }
    elif one.received_id:
        view["message"] = answers.preview(work, one.received_id)
    return view


def decide(work: Work, caller: Caller, request: requests.Decide) -> Json:
    """Carry out a person's decision; it goes through `advance` like any event."""
    decision = review.Decision(
        choice=request.choice,
        by=caller.principal,
        waitpoint_id=request.waitpoint_id,
        conversation_id=request.conversation_id,
    )
    review.decide(work, request.id, decision)
    decided = reviews.review(work.tx, work.scope, request.id)
    assert decided is not None
    return shown(work, decided)


def _keys(work: Work, one: Review) -> list[str]:
    """Return the correlation keys of the questions a review is about."""
    listed: Any = one.details.get("candidates", [])
    candidates = [entry for entry in listed if isinstance(entry, dict)]
    named = [entry.get("waitpoint_id") for entry in candidates if entry.get("waitpoint_id")]
    found = [waitpoints.waitpoint(work.tx, work.scope, str(name)) for name in named]
    places = [one.conversation_id, *(e["conversation_id"] for e in candidates if not e.get("waitpoint_id"))]
    for place in filter(None, dict.fromkeys(places)):
        found += waitpoints.waitpoints_of(work.tx, work.scope, place)
    return list(dict.fromkeys(waitpoint.correlation_key for waitpoint in found if waitpoint))


def shown(work: Work, one: Review) -> Json:
    """Return a review as a person sees it."""
    return {
        "review_id": one.id,
        "reason": one.reason,
        "correlation_keys": _keys(work, one),
        "choices": list(review.choices(one)),
        "created_at": one.created_at.isoformat(),
        "conversation_id": one.conversation_id or None,
        "message_id": one.message_id or None,
        "wait_id": one.wait_id or None,
        "details": one.details,
        "decision": one.decision or None,
        "decided_by": one.decided_by or None,
        "decided_at": one.decided_at.isoformat() if one.decided_at else None,
    }
