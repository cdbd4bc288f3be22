"""Whole ids come out of any id header ever seen, and nothing else does."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.threading.refs import MAX_IDS, MAX_OCTETS, extract, normalise

SUITES = Path(os.environ.get("ANSWERBACK_SUITES", Path(__file__).parents[3] / "shared" / "suites"))
HEADERS = SUITES / "replies" / "id_headers.jsonl"

CASES = {
    "one id": ("<a@x>", ["<a@x>"]),
    "several": ("<a@x> <b@x>\r\n <c@x>", ["<a@x>", "<b@x>", "<c@x>"]),
    "glued": ("<a@x><b@x>", ["<a@x>", "<b@x>"]),
    "commas": ("<a@x>, <b@x>,<c@x>", ["<a@x>", "<b@x>", "<c@x>"]),
    "twice": ("<a@x> <b@x> <a@x>", ["<a@x>", "<b@x>"]),
    "empty": ("", []),
    "blank": (" \r\n\t ", []),
    "no brackets": ("a@x b@x", ["<a@x>", "<b@x>"]),
    "no brackets, commas": ("a@x,b@x; c@x", ["<a@x>", "<b@x>", "<c@x>"]),
    "no brackets, in prose": ("Message 17.4@host.example of Monday", ["<17.4@host.example>"]),
    "no brackets, in parentheses": ("(a@x)", ["<a@x>"]),
    "opened only": ("<a@x", ["<a@x>"]),
    "opened only, before another": ("<a@x <b@x>", ["<a@x>", "<b@x>"]),
    "closed only": ("a@x> <b@x>", ["<a@x>", "<b@x>"]),
    "bare between brackets": ("<a@x> b@x <c@x>", ["<a@x>", "<b@x>", "<c@x>"]),
    "two in one bracket": ("<a@x b@x>", ["<a@x>", "<b@x>"]),
    "cut off at 998": ("<a@x> <long-id-that-was-cut@exam", ["<a@x>", "<long-id-that-was-cut@exam>"]),
    "fold inside": ("<abc@exam\r\n ple.org>", ["<abc@example.org>"]),
    "blanks inside": ("< abc def @ x >", ["<abcdef@x>"]),
    "tab inside": ("<hello\tworld@x>", ["<helloworld@x>"]),
    "control characters inside": ("<a\x00b@x\x7f>", ["<ab@x>"]),
    "quoted local part": ('<"quoted left"@x>', ['<"quoted left"@x>']),
    "comment after": ("<a@x> (Pat's message of 3 March)", ["<a@x>"]),
    "comment with an address": ("<a@x> (Pat <pat@supplier.example>'s message)", ["<a@x>"]),
    "comment with the only id": ("(was <a@x>)", ["<a@x>"]),
    "quoted words with an address": ('"Pat <pat@supplier.example>" <a1@x>', ["<a1@x>"]),
    "phrase before": ('Your message of "Mon, 3 Mar 2025" <a@[192.0.2.1]>', ["<a@[192.0.2.1]>"]),
    "address before": ('Message from Pat <pat@supplier.example> of "Mon, 3 Mar" <1.2@x>', ["<1.2@x>"]),
    "address before, in German": ('Nachricht von Pat <pat@supplier.example> vom 3.3.: <1.2@x>', ["<1.2@x>"]),
    "name and address before": ("Pat Lee <pat@supplier.example> wrote on 3 March <1.2@x>", ["<1.2@x>"]),
    "address alone": ("Message from Pat <pat@supplier.example>", ["<pat@supplier.example>"]),
    "word before ids": ("see <a@x> <b@x>", ["<a@x>", "<b@x>"]),
    "date after from": ("from 3 March <a@x> <b@x>", ["<a@x>", "<b@x>"]),
    "encoded": ("=?utf-8?q?=3Ca=40x=3E_=3Cb=40x=3E?=", ["<a@x>", "<b@x>"]),
    "encoded in base64": ("=?utf-8?B?PGFAeD4=?=", ["<a@x>"]),
    "encoded in base64, unpadded": ("=?utf-8?b?PGFAeD4?=", ["<a@x>"]),
    "encoded in two words": ("=?us-ascii?Q?=3Cone?=\r\n =?us-ascii?Q?-two=40x=3E?=", ["<one-two@x>"]),
    "encoded with an unknown charset": ("=?x-nowhere?Q?=3Ca=40x=3E?=", ["<a@x>"]),
    "encoded wrongly": ("=?utf-8?B?a?= <a@x>", ["<a@x>"]),
    "escaped for HTML": ("&lt;a@x&gt; &#60;b@x&#x3E;", ["<a@x>", "<b@x>"]),
    "escape inside an id": ("<a&lt;b@x>", ["<a&lt;b@x>"]),
    "answer to a prompt": ("<yes>", []),
    "empty values": ("null <null> <> undefined <none> <undefined@undefined> <@x>", []),
    "no @": ("<ff000000-2202-2222-b020-00002000ffee>", ["<ff000000-2202-2222-b020-00002000ffee>"]),
    "no domain": ("<abc.17@>", ["<abc.17@>"]),
    "square brackets outside": ("<[83c48d-JFBVALKQ=@exchange.example]>", ["<[83c48d-JFBVALKQ=@exchange.example]>"]),
    "square brackets left": ("<[abc]@x>", ["<[abc]@x>"]),
    "junk of brackets": ("<<<a@x>>> >< <>> <<b@x", ["<a@x>", "<b@x>"]),
    "made a link": ("<mailto:a@x>", ["<a@x>"]),
    "raw UTF-8": ("<grüße@x>", ["<grüße@x>"]),
    "lone surrogate": ("<a\udce4@x>", ["<a?@x>"]),
}  # fmt: skip

#: values that make a careless pattern slow
SLOW = (
    "<", "<a", "<a@b>", '"<', "(", "(<", "from ", "from <", "=?a?q?", "=?u?q?a?= ", "&lt;", "@ ", " ", "a@", "<\r\n", "=", "1 from ",
)  # fmt: skip


@pytest.mark.parametrize(("raw", "ids"), CASES.values(), ids=CASES)
def test_whole_ids_are_found_in_order(raw: str, ids: list[str]) -> None:
    assert extract(raw) == tuple(ids)


def test_every_header_of_the_outside_suite_is_read_right() -> None:
    if not HEADERS.exists():
        pytest.skip("no outside suites here: this test needs ANSWERBACK_SUITES or ../shared/suites")
    rows = [json.loads(line) for line in HEADERS.read_text(encoding="utf-8").splitlines()]
    read = [extract(re.sub(r"(?im)^[a-z-]+:\s?", "", row["raw"])) for row in rows]
    assert read == [tuple(f"<{rfc_id}>" for rfc_id in row["expected"]) for row in rows]


def test_the_first_and_the_newest_ids_of_a_long_chain_are_kept() -> None:
    chain = [f"<{number}@x>" for number in range(MAX_IDS + 50)]
    assert extract(" ".join(chain)) == (chain[0], *chain[51:])


def test_of_a_value_without_end_the_first_and_the_newest_ids_are_left_uncut() -> None:
    chain = [f"<{number:06}-{'a' * 50}@x>" for number in range(20_000)]
    assert extract(" ".join(chain)) == (chain[0], *chain[1 - MAX_IDS :])
    bare = [f"{number:06}-{'a' * 50}@x" for number in range(20_000)]
    assert extract(" ".join(bare))[-1] == f"<{bare[-1]}>"


def test_an_id_that_fits_on_no_line_is_left_out_and_not_cut() -> None:
    longest = f"<{'a' * (MAX_OCTETS - 4)}@x>"
    assert extract(f"<{'ä' * MAX_OCTETS}@x> {longest} <b{longest[1:]}") == (longest,)


@given(st.text() | st.text(alphabet='<>@"()=?&; \r\n\ta1ü:,Qq', max_size=300))
def test_any_text_gives_few_short_ids_that_are_read_again_as_they_are(raw: str) -> None:
    found = extract(raw)
    assert len(found) <= MAX_IDS
    assert all(len(rfc_id.encode()) <= MAX_OCTETS for rfc_id in found)
    assert all(rfc_id[0] == "<" and rfc_id[-1] == ">" and rfc_id[1:-1] for rfc_id in found)
    assert all(not set("<>\r\n\x00") & set(rfc_id[1:-1]) for rfc_id in found)


@pytest.mark.parametrize("piece", SLOW)
def test_three_hundred_kilobytes_of_junk_take_less_than_a_second(piece: str) -> None:
    junk = (piece * 300_000)[:300_000]
    start = perf_counter()
    extract(junk + " 1 <a@x>")
    assert perf_counter() - start < 1


@pytest.mark.parametrize(
    ("rfc_id", "key"),
    [("<a@x>", "<a@x>"), ("<AbC@X.Example>", "<abc@x.example>"), (" <a b\r\n\t@x> ", "<ab@x>"), ("", "")],
)
def test_ids_are_compared_without_blanks_and_case(rfc_id: str, key: str) -> None:
    assert normalise(rfc_id) == key


@given(st.text())
def test_a_key_is_its_own_key(rfc_id: str) -> None:
    assert normalise(normalise(rfc_id)) == normalise(rfc_id)
