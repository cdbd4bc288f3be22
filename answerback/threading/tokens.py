"""Mints, checks and hides the tokens that prove a Message-ID or an address to be one of ours.

A token is 39 characters of base32: 8 octets of a row's number and a 16-octet MAC over its kind and number.
"""

from __future__ import annotations

import base64
import hmac
import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple, get_args

Kind = Literal["message_id", "reply_address", "return_path"]
KINDS: tuple[Kind, ...] = get_args(Kind)

#: what a token is shown as
SHOWN = "[token]"
#: characters of a token, and of the number in a public id
LENGTH, _NUMBER_LENGTH = 39, 13

_ALPHABET = re.compile(r"[A-Za-z2-7]+")
_AS_DIGITS = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghijklmnopqrstuv")


def mint(kind: Kind, row_id: int, keys: Sequence[bytes]) -> str:
    """Return the token of a row (0 ≤ `row_id` < 2⁶⁴) made with the first key."""
    number = row_id.to_bytes(8, "big")
    return _written(number + _mac(kind, number, keys[0]))


def verify(kind: Kind, token: str, keys: Sequence[bytes]) -> int | None:
    """Return the row a token names if one of the keys made it for this kind, else None.

    Case is passed over: mail servers may change it.
    """
    octets = _read(token, LENGTH)
    if octets is None or not _is_genuine(kind, octets, keys):
        return None
    return int.from_bytes(octets[:8], "big")


def message_id(row_id: int, domain: str, keys: Sequence[bytes]) -> str:
    """Return the Message-ID `<token@domain>`, in small letters as ids are compared."""
    return f"<{mint('message_id', row_id, keys)}@{domain.lower()}>"


def row_of(rfc_id: str, keys: Sequence[bytes], *, domain: str = "") -> int | None:
    """Return the row a Message-ID of ours names, else None; `domain`, where given, has to be its domain."""
    token, _, found = "".join(rfc_id.split()).removeprefix("<").removesuffix(">").partition("@")
    if domain and found.lower() != domain.lower():
        return None
    return verify("message_id", token, keys)


def sub_address(inbox_address: str, row_id: int, kind: Kind, keys: Sequence[bytes]) -> str:
    """Return the address `local+token@domain` that reaches the inbox and names the row (RFC 5233)."""
    local, _, domain = inbox_address.rpartition("@")
    return f"{local}+{mint(kind, row_id, keys)}@{domain}"


def read_address(address: str, kind: Kind, keys: Sequence[bytes]) -> tuple[str, int] | None:
    """Return the inbox address in small letters and the row of an address with a token, else None."""
    local, _, domain = "".join(address.split()).removeprefix("<").removesuffix(">").rpartition("@")
    base, _, token = local.rpartition("+")
    row_id = verify(kind, token, keys)
    return (f"{base}@{domain}".lower(), row_id) if base and row_id is not None else None


def public_id(prefix: str, number: int) -> str:
    """Return a public id such as `msg_` + 13 characters for a number (0 ≤ number < 2⁶⁴)."""
    return f"{prefix}_{_written(number.to_bytes(8, 'big'))}"


def number_of(public_id: str) -> int:
    """Return the number a public id was made of.

    Raises:
        ValueError: it is no public id.
    """
    octets = _read(public_id.rpartition("_")[2], _NUMBER_LENGTH)
    if octets is None:
        raise ValueError("not a public id")
    return int.from_bytes(octets, "big")


def _is_genuine(kind: Kind, octets: bytes, keys: Sequence[bytes]) -> bool:
    """Tell whether one of the keys made the MAC, in a time that tells nothing of the right one."""
    number, mac = octets[:8], octets[8:]
    return any(hmac.compare_digest(mac, _mac(kind, number, key)) for key in keys)


def _mac(kind: Kind, number: bytes, key: bytes) -> bytes:
    """HMAC-SHA256 cut to its first 128 bits (RFC 2104 5); the label keeps the kinds apart."""
    return hmac.digest(key, b"answerback " + kind.encode() + b"\0" + number, "sha256")[:16]


def _written(octets: bytes) -> str:
    """Base32 (RFC 4648 6) in small letters without padding."""
    return base64.b32encode(octets).decode().rstrip("=").lower()


def _read(text: str, length: int) -> bytes | None:
    """The octets of base32 text of this length, None where it is none or its spare bits are set."""
    if len(text) != length or not _ALPHABET.fullmatch(text):
        return None
    number, spare = int(text.lower().translate(_AS_DIGITS), 32), length * 5 % 8
    return None if number & ((1 << spare) - 1) else (number >> spare).to_bytes(length * 5 // 8, "big")


# Hiding. Mail programs wrap, quote and encode what they quote, so text is read as runs of base32 letters:
# gaps (blanks, wraps, quote marks, invisible characters) join two runs, anything else parts them. A token
# begins or ends where a run does, or lies whole inside one. A text is read as it stands, then with its
# codes decoded, quoted-printable last, since `=ab…` may be a code or the start of a token in a URL.

_INVISIBLE = (
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\ufe00-\ufe0f\ufeff"
)
_GAP = rf"(?>(?:[^\S\r\n]|[{_INVISIBLE}]|=(?=\r?\n)|<w?br\s{{0,9}}/?>|[\r\n][\s>|]*+)++)"
_ESCAPE = r"%(?:25)*[0-9A-Fa-f]{2}|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z]{2,31});"
_QUOTED_PRINTABLE = r"=[0-9A-Fa-f]{2}"
_PIECE = rf"(?P<letters>[A-Za-z2-7]+)|(?P<gap>{_GAP})"
_PLAIN = re.compile(_PIECE)
#: what a text with such a code in it is read by too
_READINGS = (
    (re.compile(_ESCAPE), re.compile(rf"(?P<code>{_ESCAPE})|{_PIECE}")),
    (re.compile(_QUOTED_PRINTABLE), re.compile(rf"(?P<code>{_ESCAPE}|{_QUOTED_PRINTABLE})|{_PIECE}")),
)
_ANY_GAP = re.compile(_GAP)

_OPENING, _CLOSING = r"(?:<|%(?:25)*3[cC]|=3[cC]|&lt;)", r"(?:>|%(?:25)*3[eE]|=3[eE]|&gt;)"
_AT, _PLUS = r"(?:@|%(?:25)*40|=40|&#64;|&commat;)", r"(?:\+|%(?:25)*2[bB]|=2[bB]|&#43;|&plus;)"
_BEFORE_ID = re.compile(rf"{_OPENING}{_GAP}?\Z")
_BEFORE_PART = re.compile(rf"{_PLUS}{_GAP}?\Z")
_WRAP = r"=?\r?\n[\s>|]*+"
_AFTER_ID = re.compile(rf"{_GAP}?{_AT}(?:[\w.-]++(?:{_WRAP}[\w.-]++){{0,3}}{_CLOSING}|[\w.-]*+{_CLOSING}?)")
#: characters looked at before and behind a token for what belongs to it
_REACH = 400


class _Run(NamedTuple):
    """Letters that follow each other: where they stand in the joined letters and in the text."""

    at: int
    start: int
    end: int
    letters: str


class _Checker:
    """Checks candidates, so many and no more: behind that, in hostile text, every candidate is hidden.

    A check costs a MAC per kind and key; prose needs one for every twenty characters at most.
    """

    def __init__(self, keys: Sequence[bytes], budget: int) -> None:
        self._keys = keys
        self._left = budget

    def kind(self, token: str) -> Kind | None:
        """Return what a candidate is a token of, None for a look-alike."""
        octets = _read(token, LENGTH)
        if octets is None:
            return None
        self._left -= 1
        if self._left < 0:
            return "message_id"
        return next((kind for kind in KINDS if _is_genuine(kind, octets, self._keys)), None)


def redact(text: str, keys: Sequence[bytes]) -> tuple[str, int]:
    """Return the text with every token of ours as `[token]`, and how many there were.

    Found in any case, broken by wraps, quote marks, soft breaks and invisible characters, percent-, entity-
    or quoted-printable-encoded, inside URLs; `<…@domain>` and `+` go with the token. Only what a key made
    is hidden. Time is linear in the text.
    """
    shown: list[str] = []
    end = 0
    spans = _spans(text, keys)
    for start, stop in spans:
        shown += [text[end:start], SHOWN]
        end = stop
    return "".join([*shown, text[end:]]), len(spans)


def _spans(text: str, keys: Sequence[bytes]) -> list[tuple[int, int]]:
    """Where tokens and what belongs to them stand, in order and apart."""
    patterns = [_PLAIN, *(reading for code, reading in _READINGS if code.search(text))]
    checker = _Checker(keys, budget=len(patterns) * (1000 + len(text) // 5))
    found = sorted(
        span
        for pattern in patterns
        for runs in _groups(text, pattern)
        for span in _tokens(text, runs, checker)
    )
    spans: list[tuple[int, int]] = []
    for start, end in found:
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _groups(text: str, pattern: re.Pattern[str]) -> Iterator[list[_Run]]:
    """Runs with nothing but gaps between them, where they are long enough together to hold a token."""
    runs: list[_Run] = []
    total = end = 0
    after_gap = False
    for piece in pattern.finditer(text):
        letters, gap = _meaning(piece, after_gap=after_gap)
        if piece.start() != end or not (letters or gap):
            if total >= LENGTH:
                yield runs
            runs, total = [], 0
        if letters:
            runs.append(_Run(total, piece.start(), piece.end(), letters))
            total += len(letters)
        end, after_gap = piece.end(), gap
    if total >= LENGTH:
        yield runs


def _meaning(piece: re.Match[str], *, after_gap: bool) -> tuple[str, bool]:
    """The letters a piece of text stands for, and whether it is a gap."""
    written = piece[0]
    if piece.lastgroup != "code":
        return (written, False) if piece.lastgroup == "letters" else ("", True)
    if written[0] == "&":
        decoded = html.unescape(written)
    else:
        decoded = chr(int(written[-2:], 16))
        if decoded > "\x7f":  # an octet of an invisible character, as far as a token is concerned
            return "", True
    if _ALPHABET.fullmatch(decoded):
        return decoded, False
    return "", _ANY_GAP.fullmatch(decoded) is not None or (decoded == ">" and after_gap)


def _tokens(text: str, runs: list[_Run], checker: _Checker) -> Iterator[tuple[int, int]]:
    """Where tokens in one group of runs stand, widened to what belongs to them."""
    letters = "".join(run.letters for run in runs).lower()
    offsets = [run.at for run in runs]
    end = 0
    for place in _candidates(runs, len(letters) - LENGTH):
        if place < end or not (kind := checker.kind(letters[place : place + LENGTH])):
            continue
        end = place + LENGTH
        first, last = (runs[bisect_right(offsets, at) - 1] for at in (place, end - 1))
        start = first.start + place - first.at
        coded = last.end - last.start != len(last.letters)
        yield _widened(text, start, last.end if coded else last.start + end - last.at, kind)


def _candidates(runs: list[_Run], highest: int) -> list[int]:
    """Places in the joined letters where a token may begin."""
    places: set[int] = set()
    for run in runs:
        behind = run.at + len(run.letters) - LENGTH
        places |= {run.at, behind}
        places.update(range(run.at, behind))
    return sorted(place for place in places if 0 <= place <= highest)


def _widened(text: str, start: int, end: int, kind: Kind) -> tuple[int, int]:
    """The span of a token with the id's brackets and domain, or with the plus sign before it."""
    before = text[max(0, start - _REACH) : start]
    found = (_BEFORE_ID if kind == "message_id" else _BEFORE_PART).search(before)
    if found:
        start -= len(found[0])
    if kind == "message_id" and (behind := _AFTER_ID.match(text[end : end + _REACH])):
        end += behind.end()
    return start, end
