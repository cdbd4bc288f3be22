"""Takes characters out of text that no reader can see, and counts them."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

_ODD = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff"
    "\U000110bd\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]+"
)
_FLAG = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{1,12}\U000e007f")
_JOINERS = "\u200c\u200d"
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_BREAKS = re.compile("\r\n?|[\u2028\u2029]")


def strip(text: str) -> tuple[str, Counter[str]]:
    """Return the text with LF line ends and without invisible characters, and how many went by kind.

    Kept are joiners inside emoji and in scripts that are written with them, the emoji presentation
    selector, and the tags of the flags that are made of them (UTS 51).
    """
    removed: Counter[str] = Counter()
    text = _BREAKS.sub("\n", text)
    pieces, position = [], 0
    for found in _ODD.finditer(text):
        pieces.append(text[position : found.start()])
        pieces.append(_kept(text, found, removed))
        position = found.end()
    pieces.append(text[position:])
    return "".join(pieces), removed


def _kept(text: str, found: re.Match[str], removed: Counter[str]) -> str:
    run = found.group()
    before = text[found.start() - 1] if found.start() else " "
    after = text[found.end()] if found.end() < len(text) else " "
    if before == "\U0001f3f4" and _FLAG.match(text, found.start() - 1, found.start() + 15):
        return run
    kept = "".join(char for char in run[:2] if _belongs(char, before, after))
    for char in run[len(kept) :]:
        removed[_kind(char)] += 1
    return kept


def _belongs(char: str, before: str, after: str) -> bool:
    if char == "\ufe0f":
        return unicodedata.category(before) in {"So", "Sk", "Sm", "Po", "Nd"}
    if char not in _JOINERS:
        return False
    pictures = {"So", "Sk"}
    if (
        char == "\u200d"
        and unicodedata.category(before) in pictures
        and unicodedata.category(after) in pictures
    ):
        return True
    # Persian, Indic and other scripts spell with joiners; Latin, Greek, Cyrillic and CJK do not.
    return "\u0600" <= before <= "\u1fff" and "\u0600" <= after <= "\u1fff" and before.isprintable()


def _kind(char: str) -> str:
    if char in _BIDI:
        return "bidi"
    if "\U000e0000" <= char <= "\U000e007f":
        return "tag"
    return "control" if unicodedata.category(char) in {"Cc", "Cs"} else "zero-width"
