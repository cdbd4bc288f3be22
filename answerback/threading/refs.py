"""Reads whole message ids out of raw id headers, however the program that wrote them broke them."""

from __future__ import annotations

import base64
import binascii
import html
import re
from itertools import pairwise

#: ids read from one header: the first and the newest; references beyond that help nobody
MAX_IDS = 200
#: octets of one id with its brackets: it has to fit on a line (RFC 5322 2.1.1)
MAX_OCTETS = 998

#: characters of a value that are looked at, at its beginning and at its end
_HEAD, _TAIL = 8 * 1024, 56 * 1024
#: words that stand where an id should: a program's empty value, or an answer to git send-email's prompt
_NO_IDS = frozenset({"", "(null)", "nil", "none", "null", "undefined", "unknown"})
_ENCODED = re.compile(r"=\?[^?\s]{1,80}\?([BbQq])\?([^?]*)\?=(?:\s+(?==\?))?")
_ESCAPED_BRACKET = re.compile(r"&(?:lt|gt|#0*6[02]|#[xX]0*3[cCeE]);", re.IGNORECASE)
_BRACKETS = re.compile(r"<([^<>]*)>?")
_BETWEEN = re.compile(r"[\s,;>]+")
_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_FROM = re.compile(r"\b(?:from|by|von|van|de|par|da|di|od|fra|från|от)\b", re.IGNORECASE)


def extract(raw: str) -> tuple[str, ...]:
    """Return the ids `<…>` of a raw id header value, in order, each once; never an error.

    Real headers lack brackets, fold or encode ids, and wrap them in prose ("Message from Pat
    <pat@supplier.example> of … <id>"), which RFC 822 4.6.2 allowed. An address in such prose is left
    out where anything else is named. At most 200 ids (the first and the newest) of at most 998 octets.
    """
    pieces = _BRACKETS.split(_readable(raw))
    if len(pieces) == 1:
        found = [word for word in _words(pieces[0]) if "@" in word]
    else:
        found = _named(pieces, _asides(pieces[0::2])) or _named(pieces, [False] * len(pieces))
    ids = list(dict.fromkeys(f"<{one}>" for one in map(_clean, found) if _is_id(one)))
    fitting = [one for one in ids if len(one.encode()) <= MAX_OCTETS]
    return tuple(fitting if len(fitting) <= MAX_IDS else [fitting[0], *fitting[1 - MAX_IDS :]])


def normalise(rfc_id: str) -> str:
    """Return the key two ids are compared by: blanks inside taken out, small letters.

    Ours are written in small letters, and some systems send ids back in capitals; ids that differ by
    nothing but case were never seen.
    """
    return "".join(rfc_id.split()).lower()


def _readable(raw: str) -> str:
    """The value with encoded words (RFC 2047) and escaped brackets read; lone surrogates become `?`.

    Of a value beyond any use the first and the newest ids are left, none of them cut.
    """
    if len(raw) > _HEAD + _TAIL:
        tail = raw[-_TAIL:]
        raw = raw[: raw.rfind(">", 0, _HEAD) + 1] + tail[max(0, tail.find("<")) :]
    text = raw.encode("utf-8", "replace").decode("utf-8")
    if "=?" in text:
        text = _ENCODED.sub(_decoded, text)
    if "<" not in text:
        text = _ESCAPED_BRACKET.sub(lambda bracket: html.unescape(bracket[0]), text)
    return _CONTROLS.sub("", text)


def _decoded(word: re.Match[str]) -> str:
    """An encoded word's text. Its charset is passed over: ids are ASCII, and some codecs are slow traps."""
    encoding, body = word.groups()
    octets = body.encode("ascii", "replace")
    if encoding in "Qq":
        return binascii.a2b_qp(octets, header=True).decode("utf-8", "replace")
    try:
        return base64.b64decode(octets + b"==").decode("utf-8", "replace")
    except binascii.Error:
        return word[0]


def _named(pieces: list[str], asides: list[bool]) -> list[str]:
    """Candidates in order: what brackets hold unless it stands aside, and bare ids between brackets."""
    found: list[str] = []
    for place, piece in enumerate(pieces):
        if not piece:
            continue
        if place % 2 == 0:
            found += _all_ids(piece)
        elif not asides[place // 2]:
            found += _all_ids(piece) or [piece]
    return found


def _asides(prose: list[str]) -> list[bool]:
    """Tell for each bracket whether it stands in a comment, in quotes, or behind a person's name."""
    quotes = depth = 0
    asides: list[bool] = []
    for before, after in pairwise(prose):
        quotes += before.count('"')
        depth = max(0, depth + before.count("(") - before.count(")"))
        asides.append(quotes % 2 == 1 or depth > 0 or _names_person(before, after, first=not asides))
    return asides


def _names_person(before: str, after: str, *, first: bool) -> bool:
    """Tell whether prose leads to a sender's address: `from NAME`, or a name that opens the value.

    Digits belong to a date ("of 3 March"), and behind a date stands the id.
    """
    if not _LETTER.search(before):
        return False
    if _FROM.search(_DIGIT.split(before)[-1]):
        return True
    return first and not _DIGIT.search(before) and "@" not in before and _LETTER.search(after) is not None


def _words(text: str) -> list[str]:
    return [word for word in (piece.strip("\"'()") for piece in _BETWEEN.split(text)) if word]


def _all_ids(text: str) -> list[str]:
    """The words of a text if every one has the form of an id, else none: `a@x b@x`."""
    words = [word for word in _BETWEEN.split(text) if word] if "@" in text else []
    return words if all(word.find("@") > 0 for word in words) else []


def _clean(text: str) -> str:
    """The id without the blanks and folds inside it; those in a quoted local part belong to it."""
    pieces = text.strip().removeprefix("mailto:").split('"')
    pieces[0::2] = ["".join(piece.split()) for piece in pieces[0::2]]
    return "".join('"'.join(pieces).splitlines())


def _is_id(text: str) -> bool:
    """Tell an id from a word: it has a local part before @, or, as Exchange 2007 writes, is a long number."""
    local, at, _ = text.rpartition("@")
    if at:
        return local.lower() not in _NO_IDS
    return len(text) >= 8 and _DIGIT.search(text) is not None
