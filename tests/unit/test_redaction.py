"""No token of ours is shown to an agent, however a mail program mangled it; look-alikes stay."""

from __future__ import annotations

import html
import random
import re
from collections.abc import Callable
from time import perf_counter
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.threading import tokens
from answerback.threading.tokens import redact

KEYS = (b"k" * 32, b"older" * 8)
FOREIGN = (b"foreign!" * 4,)
ROWS = st.integers(min_value=0, max_value=2**64 - 1)
# The first row's token begins with letters that `=` or `%` make a hexadecimal code of.
ROW = 0x0A3C_55D7_0123_FEDC
ID = tokens.message_id(ROW, "gw.example.net", KEYS)
REPLY = tokens.sub_address("agent@gw.example.net", ROW, "reply_address", KEYS)
RETURN = tokens.sub_address("agent@gw.example.net", ROW, "return_path", KEYS)
BARE = REPLY.partition("+")[2].partition("@")[0]

CASES = {
    "an id": (f"Message-ID: {ID} seen", "Message-ID: [token] seen"),
    "a reply address": (f"write to {REPLY}, please", "write to agent[token]@gw.example.net, please"),
    "a return path": (f"Return-Path: <{RETURN}>", "Return-Path: <agent[token]@gw.example.net>"),
    "capitals": (f"{ID.upper()} {REPLY.upper()}", "[token] AGENT[token]@GW.EXAMPLE.NET"),
    "alone": (BARE, "[token]"),
    "in words": (f"see {BARE} there", "see [token] there"),
    "alone on a line": (f"see\n{BARE}\nthere", "see\n[token]\nthere"),
    "an id without brackets": (f"mid:{ID[1:-1]} x", "mid:[token] x"),
    "in a query": (f"https://x.example/?t={BARE}&u=1", "https://x.example/?t=[token]&u=1"),
    "in a path": (f"https://x.example/{BARE}/a", "https://x.example/[token]/a"),
    "in a mailto link": (f"mailto:{quote(REPLY, safe='')}?subject=a", "mailto:agent[token]%40gw.example.net?subject=a"),
    "an id in an archive's link": (f"https://x.example/{quote(ID)}/", "https://x.example/[token]/"),
    "encoded twice": (f"https://x.example/{quote(quote(ID, safe=''))}/", "https://x.example/[token]/"),
    "escaped for HTML": (f"<p>{html.escape(ID)}</p>", "<p>[token]</p>"),
    "every letter an entity": ("".join(f"&#{ord(letter)};" for letter in BARE), "[token]"),
    "every letter a hexadecimal entity": ("".join(f"&#x{ord(letter):X};" for letter in BARE), "[token]"),
    "every letter percent-encoded": ("".join(f"%{ord(letter):02x}" for letter in BARE), "[token]"),
    "every letter quoted-printable": ("".join(f"={ord(letter):02X}" for letter in BARE), "[token]"),
    "quoted-printable brackets": (f"=3C{ID[1:40]}=40gw.example.net=3E", "[token]"),
    "escaped for JSON": (f"\\u003c{BARE}\\u0040", "\\u003c[token]\\u0040"),
    "wrapped": (f"a <{ID[1:20]}\n{ID[20:]} b", "a [token] b"),
    "wrapped and quoted": (f"> {ID[:20]}\r\n> > {ID[20:]}\r\n> b", "> [token]\r\n> b"),
    "wrapped in quotes with bars": (f"{ID[:20]}\n| {ID[20:]}", "[token]"),
    "wrapped, and the line end became a blank": (f"{REPLY[:20]} {REPLY[20:]}", "agent[token]@gw.example.net"),
    "wrapped before": (f"agent+\n{BARE}@gw.example.net", "agent[token]@gw.example.net"),
    "wrapped in the domain": (f"{ID[:-6]}\n> {ID[-6:]} b", "[token] b"),
    "wrapped in a domain without end": (f"{ID[:-6]}\n> more", "[token]\n> more"),
    "without end, before prose": (f"{ID[:-1]} and so on > more", "[token] and so on > more"),
    "soft breaks": (f"{ID[:30]}=\r\n{ID[30:50]}=\n{ID[50:]}", "[token]"),
    "soft break behind a query's sign": (f"?t=3D{BARE[:9]}=\n{BARE[9:]}&", "?t=3D[token]&"),
    "zero width": ("\u200b".join(BARE), "[token]"),
    "soft hyphens and joiners": ("\u00ad".join(BARE[:20]) + "\u2060\ufeff\u200d" + BARE[20:], "[token]"),
    "zero width, percent-encoded": (quote(f"{BARE[:20]}\u200b{BARE[20:]}"), "[token]"),
    "zero width as entities": (f"{BARE[:20]}&#8203;{BARE[20:30]}&shy;{BARE[30:]}", "[token]"),
    "line end quoted-printable": (f"?t=3D{BARE[:20]}=0D=0A{BARE[20:]}&", "?t=3D[token]&"),
    "in a query, zero width as an entity": (f"?t={BARE[:20]}&#8203;{BARE[20:]}&", "?t=[token]&"),
    "line end percent-encoded": (f"{BARE[:20]}%0D%0A%3E%20{BARE[20:]}", "[token]"),
    "quote marks escaped for HTML": (f"{BARE[:20]}\n&gt; {BARE[20:]} &gt;", "[token] &gt;"),
    "break tags": (f"{BARE[:9]}<wbr>{BARE[9:20]}<br />{BARE[20:]}", "[token]"),
    "glued on both sides": (f"abc{BARE}def", "abc[token]def"),
    "glued and wrapped": (f"abc{BARE[:20]}\n{BARE[20:]}.", "abc[token]."),
    "glued to each other": (f"{BARE}{BARE.upper()}", "[token][token]"),
    "two ids": (f"{ID} {ID}", "[token] [token]"),
    "two glued ids": (f"References: {ID}{ID}", "References: [token][token]"),
    "the sub-address in brackets": (f"<{REPLY}> {ID}", "<agent[token]@gw.example.net> [token]"),
    "a plus sign of another kind": (f"agent&plus;{BARE}&commat;gw", "agent[token]&commat;gw"),
    "made with an older key": (tokens.message_id(5, "gw.example.net", KEYS[1:]), "[token]"),
    "behind a false code": (f"&t={BARE}", "&t=[token]"),
}  # fmt: skip

LOOK_ALIKES = (
    BARE[:-1], BARE[1:], BARE[:-1] + ("q" if BARE[-1] != "q" else "y"), BARE[::-1], BARE[:20] + "." + BARE[20:],
    BARE[:20] + "0" + BARE[20:], BARE[:20] + "-" + BARE[20:], "a" + BARE[:-1], BARE[1:] + BARE[0], BARE.replace("a", "b"),
    BARE.replace("a", "а"), BARE[:20] + "\n\n-- \n" + BARE[20:], tokens.mint("message_id", ROW, FOREIGN),
    tokens.mint("reply_address", ROW, FOREIGN), tokens.message_id(ROW, "gw.example.net", FOREIGN),
    tokens.sub_address("agent@gw.example.net", ROW, "return_path", FOREIGN), "a" * 39, "a" * 80, "abcdefghijklmnopqrstuvwxyz234567abcdefg",
    "a " * 60, "the quick brown fox jumps over the lazy dog and all of its friends again", tokens.public_id("msg", ROW),
    "<CAF2hq7wxyzabcdefghijklmnopqrstuvw234567a@mail.example>", "prvs=1234567890=agent+abc@gw.example.net", "3f786850e387550fdab836ed7e6dc881de23001b",
    "%61%62%63", "&nosuch; &amp; =3D =\n", "agent+po-4711@gw.example.net", "",
)  # fmt: skip


@pytest.mark.parametrize(("text", "shown"), CASES.values(), ids=CASES)
def test_a_token_is_hidden_with_what_belongs_to_it(text: str, shown: str) -> None:
    assert redact(text, KEYS) == (shown, shown.count("[token]"))


@pytest.mark.parametrize("text", LOOK_ALIKES)
def test_a_look_alike_stays_and_hides_nothing_beside_it(text: str) -> None:
    assert redact(text, KEYS) == (text, 0)
    assert redact(f"{text} | {ID} | {text}", KEYS) == (f"{text} | [token] | {text}", 1)


def test_there_are_enough_look_alikes() -> None:
    assert len(set(LOOK_ALIKES)) >= 20


def test_two_readings_of_one_token_hide_it_once() -> None:
    text = f"=3D{ID} %3C{ID[1:-1]}%3E {BARE[:10]}%E2%80%8B{BARE[10:]}"
    assert redact(text, KEYS) == ("=3D[token] [token] [token]", 3)


def _wrapped(text: str, width: int, wrap: str) -> str:
    return wrap.join(text[at : at + width] for at in range(0, len(text), width))


WRAPS = st.sampled_from(
    ["\n", "\r\n", "\r\n ", "\n> ", "\n>> ", "\r\n> > ", "\n\t", "=\n", "=\r\n", "\u200b", "\u00ad", " ", " \n", "<br>", "<wbr>\n", "&#8203;", "&shy;", "%0A", "&nbsp;"]
)  # fmt: skip
SURROUNDINGS = st.sampled_from(["{}", "see {} there", "x\n{}\ny", "> {}", "<{}@gw>", "a+{}@gw", "?t={}&u", "%3C{}%40", "=3C{}=40", "&lt;{}&#64;", "({})", '"{}"', "\ud83d{}", "{}."])  # fmt: skip
CASINGS = st.sampled_from([str.lower, str.upper, str.title, str.swapcase])


@given(ROWS, st.sampled_from(tokens.KINDS), WRAPS, st.integers(1, 40), SURROUNDINGS, CASINGS)
def test_every_wrapped_variant_is_hidden(
    row_id: int, kind: tokens.Kind, wrap: str, width: int, around: str, casing: Callable[[str], str]
) -> None:
    token = casing(tokens.mint(kind, row_id, KEYS))
    shown, count = redact(around.format(_wrapped(token, width, wrap)), KEYS)
    assert count == 1
    assert shown.count("[token]") == 1
    assert not re.search("[a-z2-7]{8}", shown.replace("[token]", ""), re.IGNORECASE)


@given(st.text(), st.text(), ROWS)
def test_a_whole_token_is_hidden_whatever_stands_around_it(before: str, after: str, row_id: int) -> None:
    token = tokens.mint("reply_address", row_id, KEYS)
    shown, count = redact(before + token + after, KEYS)
    assert count >= 1
    assert token not in shown


@given(st.text() | st.text(alphabet="aiqy27 \n>=%&;<+@4", max_size=400))
def test_text_without_tokens_is_left_as_it_is(text: str) -> None:
    assert redact(text, KEYS) == (text, 0)


def _prose(rng: random.Random) -> str:
    words = [
        "when",
        "will",
        "the",
        "order",
        "of",
        "forty",
        "pumps",
        "be",
        "delivered",
        "and",
        "what",
        "do",
        "you",
        "charge",
        "for",
        "it",
    ]
    return " ".join(rng.choice(words) + rng.choice(["", "", "", ",", ".\n", "\n> "]) for _ in range(10_000))


def _letters(rng: random.Random) -> str:
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz234567", k=30_000))


MASSES: dict[str, Callable[[random.Random], str]] = {
    "prose": _prose,
    "letters": _letters,
    "blanks": lambda rng: " \n" * 50_000,
    "breaks": lambda rng: "<br         " * 8_000,
    "quote marks": lambda rng: "\n>" * 50_000,
    "half codes": lambda rng: "%25&amp" * 14_000,
    "half soft breaks": lambda rng: "=\r" * 50_000,
}


@pytest.mark.parametrize("mass", MASSES.values(), ids=MASSES)
def test_a_token_in_a_mass_of_text_is_found_in_a_time_that_grows_with_the_text(
    mass: Callable[[random.Random], str],
) -> None:
    text = mass(random.Random(7))
    start = perf_counter()
    shown, count = redact(f"{text} | {ID} | {text}", KEYS)
    assert perf_counter() - start < 5
    assert (shown, count) == (f"{text} | [token] | {text}", 1)


def test_hostile_text_that_is_all_candidates_is_hidden_instead_of_checked_for_ever() -> None:
    start = perf_counter()
    shown, count = redact(f"{'a' * 30_000} {BARE}", KEYS)
    assert perf_counter() - start < 5
    assert count > 1
    assert BARE not in shown
