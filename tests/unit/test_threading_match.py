"""Ids and tokens say whose reply a message is, or a person does."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.model import Ambiguous, Inbound, InboundKind, Known, Match, Matched, Unmatched
from answerback.threading.match import REPORTS, Clues, Source, gather, match


def known(
    rfc_id: str,
    message: str,
    conversation: str = "C1",
    source: Literal["ours", "provider", "received"] = "ours",
) -> Known:
    return Known(
        rfc_id=rfc_id,
        message_id=message,
        conversation_id=conversation,
        source=source,
        outbound=source != "received",
    )


def matched(conversation: str, by: Source, *named: str) -> Matched:
    return Matched(conversation_id=conversation, parent_id=named[0], matched_by=by, named=named)


OUT = known("<out@gw>", "m1")
GIVEN = known("<0102@ses.example>", "m1", source="provider")
NUDGE = known("<nudge@gw>", "m2")
REPLY = known("<r1@supplier.example>", "m3", source="received")
OTHER = known("<other@gw>", "m9", "C2")
SHARED = (known("<bulk@gw>", "m1"), known("<bulk@gw>", "m8", "C2"))
ALL = (OUT, GIVEN, NUDGE, REPLY, OTHER, *SHARED)

CASES: dict[str, tuple[Clues, Match]] = {
    "nothing is named": (Clues(), Unmatched()),
    "only foreign ids are named": (
        Clues(in_reply_to=("<x@x>",), references=("<y@y>",)),
        Unmatched(),
    ),
    "ours in In-Reply-To": (Clues(in_reply_to=("<out@gw>",)), matched("C1", "in_reply_to", "m1")),
    "the id the provider gave instead (001)": (
        Clues(in_reply_to=("<0102@ses.example>",), references=("<0102@ses.example>",)),
        matched("C1", "in_reply_to", "m1"),
    ),
    "ours in References alone (003)": (
        Clues(in_reply_to=("<crm@x>",), references=("<out@gw>", "<crm@x>")),
        matched("C1", "references", "m1"),
    ),
    "an id of a mail we received (005)": (
        Clues(in_reply_to=("<r1@supplier.example>",), references=("<r1@supplier.example>",)),
        matched("C1", "in_reply_to", "m3"),
    ),
    "In-Reply-To before newer references": (
        Clues(in_reply_to=("<out@gw>",), references=("<out@gw>", "<r1@supplier.example>", "<nudge@gw>")),
        matched("C1", "in_reply_to", "m1", "m2", "m3"),
    ),
    "the newest known reference": (
        Clues(references=("<out@gw>", "<nudge@gw>", "<x@x>")),
        matched("C1", "references", "m2", "m1"),
    ),
    "the last of several in In-Reply-To": (
        Clues(in_reply_to=("<out@gw>", "<nudge@gw>", "<x@x>")),
        matched("C1", "in_reply_to", "m2", "m1"),
    ),
    "a shared bulk id (008)": (
        Clues(in_reply_to=("<bulk@gw>",), references=("<bulk@gw>",)),
        Ambiguous(candidates=(matched("C1", "in_reply_to", "m1"), matched("C2", "in_reply_to", "m8"))),
    ),
    "a shared bulk id and an own one": (
        Clues(in_reply_to=("<bulk@gw>",), references=("<bulk@gw>", "<other@gw>")),
        matched("C2", "in_reply_to", "m8", "m9"),
    ),
    "a shared bulk id and a token": (
        Clues(in_reply_to=("<bulk@gw>",), reply_address=OUT),
        matched("C1", "in_reply_to", "m1"),
    ),
    "two conversations in References": (
        Clues(references=("<out@gw>", "<other@gw>")),
        Ambiguous(candidates=(matched("C2", "references", "m9"), matched("C1", "references", "m1"))),
    ),
    "In-Reply-To against References": (
        Clues(in_reply_to=("<other@gw>",), references=("<out@gw>", "<nudge@gw>")),
        Ambiguous(candidates=(matched("C2", "in_reply_to", "m9"), matched("C1", "references", "m2", "m1"))),
    ),
    "the reply address alone (019)": (Clues(reply_address=NUDGE), matched("C1", "reply_address", "m2")),
    "the return path alone": (Clues(return_path=OUT), matched("C1", "return_path", "m1")),
    "ids and tokens of one conversation": (
        Clues(references=("<out@gw>",), reply_address=NUDGE, return_path=OUT),
        matched("C1", "references", "m1", "m2"),
    ),
    "a token against an id": (
        Clues(in_reply_to=("<out@gw>",), reply_address=OTHER),
        Ambiguous(candidates=(matched("C1", "in_reply_to", "m1"), matched("C2", "reply_address", "m9"))),
    ),
    "a return path against a reply address": (
        Clues(reply_address=OUT, return_path=OTHER),
        Ambiguous(candidates=(matched("C1", "reply_address", "m1"), matched("C2", "return_path", "m9"))),
    ),
    "a report that returns ours": (
        Clues(returned_ids=("<nudge@gw>", "<out@gw>"), report=True),
        matched("C1", "returned_id", "m2", "m1"),
    ),
    "a report whose return path names it exactly": (
        Clues(returned_ids=("<unknown@ses.example>", "<out@gw>"), return_path=NUDGE, report=True),
        matched("C1", "return_path", "m2", "m1"),
    ),
    "a report that also answers": (
        Clues(in_reply_to=("<out@gw>",), returned_ids=("<nudge@gw>",), report=True),
        matched("C1", "returned_id", "m2", "m1"),
    ),
    "a report about two conversations": (
        Clues(returned_ids=("<nudge@gw>",), return_path=OTHER, report=True),
        Ambiguous(candidates=(matched("C2", "return_path", "m9"), matched("C1", "returned_id", "m2"))),
    ),
    "a report that returns a foreign mail (094)": (
        Clues(returned_ids=("<forged@gw>",), report=True),
        Unmatched(),
    ),
    "returned ids of what is no report": (Clues(in_reply_to=("<out@gw>",), returned_ids=("<other@gw>",)), matched("C1", "in_reply_to", "m1")),
}  # fmt: skip


@pytest.mark.parametrize(("clues", "expected"), CASES.values(), ids=CASES)
def test_the_table_decides(clues: Clues, expected: Match) -> None:
    assert match(clues, ALL) == expected


def test_an_id_of_ours_that_came_back_to_us_stands_for_what_we_sent() -> None:
    copy = known("<out@gw>", "m7", source="received")
    assert match(Clues(in_reply_to=("<out@gw>",)), [copy, OUT]) == matched("C1", "in_reply_to", "m1", "m7")


def test_known_ids_are_found_whatever_their_case() -> None:
    sent = known("<OUT@GW>", "m1")
    assert match(Clues(in_reply_to=("<out@gw>",)), [sent]) == matched("C1", "in_reply_to", "m1")


def mail(kind: InboundKind) -> Inbound:
    return Inbound(
        kind=kind,
        message_id="<own@x>",
        in_reply_to="<A@x>",
        references="<b@x> <A@x>",
        returned_ids=("<c@x>", "<b@x> <d@x>"),
        subject="Re: <s@x>",
    )


@pytest.mark.parametrize("kind", InboundKind)
def test_clues_are_the_normalised_ids_of_the_mail_and_of_what_a_report_returns(kind: InboundKind) -> None:
    report = kind in REPORTS
    returned = ("<c@x>", "<b@x>", "<d@x>") if report else ()
    assert gather(mail(kind), reply_address=OUT, return_path=NUDGE) == Clues(
        in_reply_to=("<a@x>",),
        references=("<b@x>", "<a@x>"),
        returned_ids=returned,
        reply_address=OUT,
        return_path=NUDGE,
        report=report,
    )


def test_every_id_is_looked_up_once() -> None:
    assert gather(mail(InboundKind.BOUNCE)).ids == ("<a@x>", "<b@x>", "<c@x>", "<d@x>")
    assert gather(mail(InboundKind.MESSAGE)).ids == ("<a@x>", "<b@x>")


KNOWN = st.lists(
    st.builds(
        known,
        st.sampled_from(["<a@x>", "<b@x>", "<c@x>"]),
        st.sampled_from(["m1", "m2", "m3"]),
        st.sampled_from(["C1", "C2", "C3"]),
        st.sampled_from(["ours", "provider", "received"]),
    ),
    max_size=6,
)
IDS = st.lists(st.sampled_from(["<a@x>", "<b@x>", "<c@x>", "<z@x>"]), unique=True).map(tuple)
CLUES = st.builds(
    Clues,
    in_reply_to=IDS,
    references=IDS,
    returned_ids=IDS,
    reply_address=st.none() | st.just(OUT),
    return_path=st.none() | st.just(OTHER),
    report=st.booleans(),
)


@given(CLUES, KNOWN)
def test_a_conversation_is_chosen_only_where_every_clue_agrees(clues: Clues, rows: list[Known]) -> None:
    ids = {*clues.in_reply_to, *clues.references, *(clues.returned_ids if clues.report else ())}
    named = [{one.conversation_id for one in rows if one.rfc_id == rfc_id} for rfc_id in ids]
    named += [{token.conversation_id} for token in (clues.reply_address, clues.return_path) if token]
    named = [conversations for conversations in named if conversations]
    agreed = set.intersection(*named) if named else set()
    match match(clues, rows):
        case Matched(conversation_id=chosen, parent_id=parent, named=messages):
            assert agreed == {chosen}
            assert parent == messages[0]
        case Ambiguous(candidates=candidates):
            assert {one.conversation_id for one in candidates} == set.union(*named)
            assert len(candidates) >= 2
            assert len(agreed) != 1
        case Unmatched():
            assert named == []
