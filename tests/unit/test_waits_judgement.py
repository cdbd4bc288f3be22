"""What counts as an answer: each line of the table, and which waitpoint a message stands before."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from answerback.errors import DeadlineInThePast, DeadlineTooFar
from answerback.model import InboundKind, Timing, Trust, Waitpoint, WaitpointState, WaitState
from answerback.waits.addresses import canonical, responder_of
from answerback.waits.judgement import Answers, Asked, Asks, Away, Joins, Judgement, Reply, judge
from answerback.waits.waitpoint import check_deadline, timing

NOW = datetime(2025, 3, 4, 10, 15, tzinfo=UTC)
PAT = "email:pat@supplier.example"


def waitpoint(name: str = "W1", state: WaitpointState = WaitpointState.OPEN, **rest: object) -> Waitpoint:
    """A waitpoint for an answer of Pat."""
    known: dict[str, object] = {
        "id": name,
        "state": state,
        "conversation_id": "C1",
        "message_id": "m1",
        "waiter": "agent:a1",
        "correlation_key": "po-4711",
        "responders": (PAT,),
        "opened_at": NOW - timedelta(days=1),
        "expires_at": NOW + timedelta(days=6),
        "subject_digest": "",
    }
    return Waitpoint(**(known | rest))  # type: ignore[arg-type]


def asked(*messages: str, of: Waitpoint | None = None, **rest: object) -> Asked:
    """A waitpoint and the messages that stand for it."""
    return Asked(waitpoint=of or W1, messages=frozenset(messages or ("m1",)), **rest)  # type: ignore[arg-type]


def closed(state: WaitpointState, *messages: str, name: str = "W0") -> Asked:
    """A waitpoint that is not open any more."""
    return asked(*messages, of=waitpoint(name, state))


W1, W2 = waitpoint(), waitpoint("W2")
RESOLVED, EXPIRED, CANCELLED = WaitpointState.RESOLVED, WaitpointState.EXPIRED, WaitpointState.CANCELLED
REPLY = Reply(kind=InboundKind.MESSAGE, authors=(PAT,), named=("m1",), at=NOW, trust=Trust.UNAUTHENTICATED)
PROVEN = replace(REPLY, trust=Trust.AUTHENTICATED)
ANSWER = Answers(waitpoint=W1, responder=PAT, timing=Timing.ON_TIME)
WHOLE = waitpoint(responders=("email-domain:Supplier.example",))


def of_kind(kind: InboundKind) -> Reply:
    """The reply as another kind of mail."""
    return replace(REPLY, kind=kind)


CASES: dict[str, tuple[Reply, tuple[Asked, ...], Judgement]] = {
    "a reply of the responder": (REPLY, (asked(),), ANSWER),
    "a reply after the wait was given up": (
        REPLY,
        (asked(abandoned=True),),
        replace(ANSWER, timing=Timing.AFTER_ABANDON),
    ),
    "a stalled waitpoint is answered like an open one": (
        REPLY,
        (asked(of=waitpoint(state=WaitpointState.STALLED)),),
        replace(ANSWER, waitpoint=waitpoint(state=WaitpointState.STALLED)),
    ),
    "somebody else": (
        replace(REPLY, authors=("email:pat@suppl1er.example",)),
        (asked(),),
        Asks(reason="unknown_responder", candidates=("W1",)),
    ),
    "somebody else, after it is resolved": (
        replace(REPLY, authors=("email:boss@supplier.example",)),
        (closed(RESOLVED, "m1"),),
        Asks(reason="unknown_responder"),
    ),
    "two authors": (
        replace(REPLY, authors=(PAT, "email:eve@elsewhere.example")),
        (asked(),),
        Asks(reason="ambiguous_from", candidates=("W1",)),
    ),
    "one author written twice": (
        replace(REPLY, authors=(PAT, PAT.replace("pat", "Pat"))),
        (asked(),),
        ANSWER,
    ),
    "no author": (
        replace(REPLY, authors=()),
        (asked(),),
        Asks(reason="ambiguous_from", candidates=("W1",)),
    ),
    "out of office": (of_kind(InboundKind.OUT_OF_OFFICE), (asked(),), Away()),
    "automatic reply": (of_kind(InboundKind.AUTO_REPLY), (asked(),), Away()),
    "challenge": (of_kind(InboundKind.CHALLENGE), (asked(),), Away()),
    "read receipt": (of_kind(InboundKind.READ_RECEIPT), (asked(),), Joins()),
    "calendar answer": (of_kind(InboundKind.CALENDAR_RESPONSE), (asked(),), Joins()),
    "calendar invitation": (of_kind(InboundKind.CALENDAR_INVITE), (asked(),), Joins()),
    "forward": (of_kind(InboundKind.FORWARD), (asked(),), Asks(reason="forward", candidates=("W1",))),
    "reaction": (of_kind(InboundKind.REACTION), (asked(),), Asks(reason="reaction", candidates=("W1",))),
    "nothing to read": (
        replace(REPLY, unreadable="quote_only"),
        (asked(),),
        Asks(reason="quote_only", candidates=("W1",)),
    ),
    "through a list": (
        replace(REPLY, through_list=True),
        (asked(),),
        Asks(reason="through_list", candidates=("W1",)),
    ),
    "spam": (
        replace(of_kind(InboundKind.AUTO_REPLY), trust=Trust.SPAM),
        (asked(),),
        Asks(reason="spam", candidates=("W1",)),
    ),
    "blocked": (replace(REPLY, trust=Trust.BLOCKED), (), Asks(reason="blocked")),
    "late by the clock": (
        replace(REPLY, at=W1.expires_at + timedelta(seconds=1)),
        (asked(),),
        Joins(timing=Timing.LATE),
    ),
    "at the last instant": (replace(REPLY, at=W1.expires_at), (asked(),), ANSWER),
    "late": (REPLY, (closed(EXPIRED, "m1"),), Joins(timing=Timing.LATE)),
    "after it is resolved": (REPLY, (closed(RESOLVED, "m1"),), Joins(timing=Timing.AFTER_RESOLVED)),
    "after it is cancelled": (REPLY, (closed(CANCELLED, "m1"),), Joins(timing=Timing.AFTER_CANCELLED)),
    "nothing was asked": (REPLY, (), Joins()),
    "the newest reference that carries an open one": (
        replace(REPLY, named=("theirs", "m3", "m1")),
        (asked("m1"), asked("m3", of=W2)),
        replace(ANSWER, waitpoint=W2),
    ),
    "a reference to a closed one does not hide an open one": (
        replace(REPLY, named=("theirs", "m0", "m1")),
        (closed(RESOLVED, "m0"), asked("m1")),
        ANSWER,
    ),
    "the answered message is closed, another is open": (
        replace(REPLY, named=("m0", "m1")),
        (closed(RESOLVED, "m0"), asked("m1")),
        Asks(reason="closed_named", candidates=("W1",)),
    ),
    "only references to closed ones, another is open": (
        replace(REPLY, named=("theirs", "m0")),
        (closed(RESOLVED, "m0"), asked("m1")),
        Asks(reason="closed_named", candidates=("W1",)),
    ),
    "it names nothing that was asked, one is open": (
        replace(REPLY, named=("theirs",)),
        (asked("m1"),),
        Asks(reason="none_named", candidates=("W1",)),
    ),
    "it names nothing at all, one is open": (
        replace(REPLY, named=()),
        (asked("m1"),),
        Asks(reason="none_named", candidates=("W1",)),
    ),
    "it names nothing that was asked, all are closed: the newest": (
        replace(REPLY, named=("theirs",)),
        (closed(RESOLVED, "m0"), closed(EXPIRED, "m1", name="W1")),
        Joins(timing=Timing.LATE),
    ),
    "a nudge that stood for two, one still open": (
        replace(REPLY, named=("n1",)),
        (closed(RESOLVED, "m0", "n1"), asked("m1", "n1")),
        ANSWER,
    ),
    "a nudge that stands for two open ones": (
        replace(REPLY, named=("n1",)),
        (asked("m1", "n1"), asked("m3", "n1", of=W2)),
        Asks(reason="several_open", candidates=("W1", "W2")),
    ),
    "others read the question, the author is not proven": (
        REPLY,
        (asked(exposed=True),),
        Asks(reason="unproven_sender", candidates=("W1",)),
    ),
    "others read the question, the author is proven": (PROVEN, (asked(exposed=True),), ANSWER),
    "anybody of a domain, not proven": (
        REPLY,
        (asked(of=WHOLE),),
        Asks(reason="unproven_sender", candidates=("W1",)),
    ),
    "anybody of a domain, proven": (
        PROVEN,
        (asked(of=WHOLE),),
        Answers(waitpoint=WHOLE, responder="email-domain:Supplier.example", timing=Timing.ON_TIME),
    ),
    "a responder nobody wrote to, not proven": (
        REPLY,
        (asked(to=frozenset({"email:lee@supplier.example"})),),
        Asks(reason="unproven_sender", candidates=("W1",)),
    ),
    "a responder who was written to": (REPLY, (asked(to=frozenset({"email:Pat@Supplier.example"})),), ANSWER),
    "the waitpoint asks for proof": (
        REPLY,
        (asked(of=waitpoint(min_trust=Trust.AUTHENTICATED)),),
        Asks(reason="unproven_sender", candidates=("W1",)),
    ),
    "something speaks against the author": (
        replace(REPLY, trust_reason="dmarc_fail"),
        (asked(),),
        Asks(reason="dmarc_fail", candidates=("W1",)),
    ),
    "nothing speaks against the author": (replace(REPLY, trust_reason="no_policy"), (asked(),), ANSWER),
}


@pytest.mark.parametrize("name", CASES)
def test_a_message_means_what_the_table_says(name: str) -> None:
    reply, waitpoints, expected = CASES[name]
    assert judge(reply, waitpoints) == expected


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("Pat.Lee@Supplier.Example", "pat.lee@supplier.example"),
        ("pat@BÜCHER.example", "pat@xn--bcher-kva.example"),
        ("pat@xn--bcher-kva.example.", "pat@xn--bcher-kva.example"),
        ("pat+orders@supplier.example", "pat+orders@supplier.example"),
        ("STRASSE@a_b.example", "strasse@a_b.example"),
        ("Straße@straße.example", "strasse@xn--strae-oqa.example"),
        ("Pat", "pat"),
        ("", ""),
    ],
)
def test_addresses_are_compared_without_case_and_in_ascii(written: str, compared: str) -> None:
    assert canonical(written) == compared


@pytest.mark.parametrize(
    ("author", "responders", "row"),
    [
        ("email:PAT@supplier.example", ("email:Pat@Supplier.example",), "email:Pat@Supplier.example"),
        (PAT, ("email-domain:SUPPLIER.example", PAT), PAT),
        (PAT, ("email-domain:SUPPLIER.example",), "email-domain:SUPPLIER.example"),
        (PAT, ("email-domain:example",), None),
        ("email:pat@evil.supplier.example", ("email-domain:supplier.example",), None),
        ("email:pat+x@supplier.example", (PAT,), None),
        ("email:pat@strasse.example", ("email:pat@straße.example",), None),
        (PAT, ("person:pat@supplier.example", "service:s1", "pat"), None),
        (PAT, (), None),
    ],
)
def test_a_responder_is_an_address_or_a_whole_domain(
    author: str, responders: tuple[str, ...], row: str | None
) -> None:
    assert responder_of(author, responders) == row


@pytest.mark.parametrize(
    ("state", "wait_state", "seconds", "expected"),
    [
        (WaitpointState.OPEN, WaitState.NUDGED, 0, Timing.ON_TIME),
        (WaitpointState.STALLED, None, 0, Timing.ON_TIME),
        (WaitpointState.OPEN, WaitState.ABANDONED, 0, Timing.AFTER_ABANDON),
        (WaitpointState.OPEN, WaitState.ABANDONED, 1, Timing.LATE),
        (EXPIRED, WaitState.ABANDONED, 0, Timing.LATE),
        (RESOLVED, WaitState.REPLIED, 1, Timing.AFTER_RESOLVED),
        (CANCELLED, WaitState.CANCELLED, 0, Timing.AFTER_CANCELLED),
    ],
)
def test_every_reply_has_its_timing(
    state: WaitpointState, wait_state: WaitState | None, seconds: int, expected: Timing
) -> None:
    found = timing(waitpoint(state=state), wait_state, W1.expires_at + timedelta(seconds=seconds))
    assert found is expected


def test_a_deadline_lies_ahead_and_within_thirty_days() -> None:
    check_deadline(NOW + timedelta(seconds=1), NOW)
    check_deadline(NOW + timedelta(days=30), NOW)
    with pytest.raises(DeadlineInThePast):
        check_deadline(NOW, NOW)
    with pytest.raises(DeadlineTooFar):
        check_deadline(NOW + timedelta(days=30, seconds=1), NOW)
