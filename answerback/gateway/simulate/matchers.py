"""Compares what was observed with what a scenario expects; what differs comes back as sentences."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import permutations
from typing import Any, Final

#: what JSON holds; `Any` because both sides are documents of free shape
Observed = dict[str, Any]

_MISSING: Final = object()
#: keys whose plain values are compared as text
_TEXTS: Final = frozenset({"reply_text", "delivered_text_joined"})


def compare(expected: Observed, observed: Observed) -> list[str]:
    """Return one sentence per difference, none where everything expected holds.

    Only `messages` and `final`, and in them only keys that are expected, are looked at. The forms of an
    expectation are those of the given cases' README.
    """
    wanted = {key: expected[key] for key in ("messages", "final") if expected.get(key)}
    return _object(wanted, observed, "", text=False)


def normalised(text: str) -> str:
    """Return a text as it is compared: NFC, LF, no NBSP, no trailing blanks, at most one blank line."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u00a0", " ")
    lines = unicodedata.normalize("NFC", text).split("\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(line.rstrip() for line in lines)).strip()


def _match(wanted: Any, got: Any, path: str, *, text: bool) -> list[str]:
    if isinstance(wanted, dict):
        return _pattern(wanted, got, path, text=text)
    if isinstance(wanted, list):
        if not isinstance(got, list) or len(wanted) != len(got):
            return [f"{path}: expected {wanted!r}, got {_shown(got)}"]
        pairs = enumerate(zip(wanted, got, strict=True))
        return [
            found for at, (one, other) in pairs for found in _match(one, other, f"{path}[{at}]", text=text)
        ]
    return _plain(wanted, got, path, text=text)


def _plain(wanted: Any, got: Any, path: str, *, text: bool) -> list[str]:
    if got is _MISSING:
        return [] if wanted is None else [f"{path}: missing (expected {wanted!r})"]
    if text and isinstance(wanted, str) and isinstance(got, str):
        wanted, got = normalised(wanted), normalised(got)
    same = wanted == got and isinstance(wanted, bool) == isinstance(got, bool)
    return [] if same else [f"{path}: expected {wanted!r}, got {got!r}"]


def _pattern(wanted: Observed, got: Any, path: str, *, text: bool) -> list[str]:
    keys = set(wanted)
    if keys == {"any"}:
        if any(not _match(one, got, path, text=text) for one in wanted["any"]):
            return []
        return [f"{path}: {_shown(got)} is none of {wanted['any']!r}"]
    if keys and keys <= {"min", "max"}:
        return _range(wanted, got, path)
    if keys and keys <= {"contains", "excludes"}:
        return _words(wanted, got, path)
    return _object(wanted, got, path, text=text)


def _range(wanted: Observed, got: Any, path: str) -> list[str]:
    if not isinstance(got, int | float) or isinstance(got, bool):
        return [f"{path}: {_shown(got)} is no number"]
    inside = wanted.get("min", got) <= got <= wanted.get("max", got)
    return [] if inside else [f"{path}: {got} outside {wanted}"]


def _words(wanted: Observed, got: Any, path: str) -> list[str]:
    if got is _MISSING or got is None:
        return [f"{path}: no text"] if wanted.get("contains") else []
    plain = normalised(got)
    lacking = [
        f"{path}: lacks {word!r}" for word in wanted.get("contains", []) if normalised(word) not in plain
    ]
    kept = [word for word in wanted.get("excludes", []) if _has(got, plain, word)]
    return lacking + [f"{path}: must not contain {word!r}" for word in kept]


def _has(raw: str, plain: str, word: str) -> bool:
    """Invisible characters are looked for in the raw text; comparing would take them away."""
    exact = word.strip() != word or not word.isprintable()
    return (word if exact else normalised(word)) in (plain if word.isprintable() else raw)


def _object(wanted: Observed, got: Any, path: str, *, text: bool) -> list[str]:
    if not isinstance(got, dict):
        return [f"{path}: expected an object, got {_shown(got)}"]
    found: list[str] = []
    for key, value in wanted.items():
        below = f"{path}.{key}" if path else key
        if key == "one_of":
            found += _one_of(value, got, path, text=text)
        elif special := _SPECIAL.get(key):
            found += special(value, got, below)
        else:
            found += _match(value, got.get(key, _MISSING), below, text=text or key in _TEXTS)
    return found


def _one_of(groups: Sequence[Observed], got: Observed, path: str, *, text: bool) -> list[str]:
    results = [_match(group, got, path, text=text) for group in groups]
    if not all(results):
        return []
    return [f"{path}: no alternative holds: " + " | ".join("; ".join(one) for one in results)]


def _attachments(wanted: list[Observed], got: Observed, path: str) -> list[str]:
    expected, found = _files(wanted), _files(got.get("attachments") or [])
    return [] if expected == found else [f"{path}: expected {expected}, got {found}"]


def _files(listed: list[Observed]) -> list[tuple[Any, ...]]:
    return sorted(((one.get("filename"), one.get("size"), one.get("sha256")) for one in listed), key=str)


def _attachments_min(least: int, got: Observed, path: str) -> list[str]:
    enough = len(got.get("attachments") or []) >= least
    return [] if enough else [f"{path}: fewer than {least} attachments"]


def _quoted(wanted: list[str], got: Observed, _path: str) -> list[str]:
    quoted = normalised(got.get("quoted_text") or "")
    return [f"quoted_text: lacks {word!r}" for word in wanted if normalised(word) not in quoted]


def _listed(key: str) -> Callable[[list[str], Observed, str], list[str]]:
    def check(wanted: list[str], got: Observed, path: str) -> list[str]:
        return [f"{path}: {one} missing" for one in wanted if one not in (got.get(key) or [])]

    return check


def _not_suppressed(wanted: list[str], got: Observed, path: str) -> list[str]:
    return [f"{path}: {one} is suppressed" for one in wanted if one in (got.get("suppressed") or [])]


def _http_set(wanted: dict[str, list[Any]], got: Observed, path: str) -> list[str]:
    found: list[str] = []
    for refs, patterns in wanted.items():
        codes = [(got.get("http") or {}).get(ref) for ref in refs.split("+")]
        orders = permutations(codes)
        if not any(
            all(not _match(p, c, "", text=False) for p, c in zip(patterns, o, strict=False)) for o in orders
        ):
            found.append(f"{path}: {refs} -> {codes}, expected in any order {patterns}")
    return found


def _same_result(groups: list[list[str]], got: Observed, path: str) -> list[str]:
    results = got.get("results") or {}
    differing = [g for g in groups if len({json.dumps(results.get(ref), sort_keys=True) for ref in g}) != 1]
    return [f"{path}: {group} differ" for group in differing]


def _delivered_before(wanted: dict[str, str], got: Observed, path: str) -> list[str]:
    at = got.get("delivered_at") or {}
    late = [(ref, limit) for ref, limit in wanted.items() if not at.get(ref) or at[ref] > limit]
    return [f"{path}: {ref} delivered at {at.get(ref)}, limit {limit}" for ref, limit in late]


def _nudged_between(wanted: dict[str, tuple[str, str]], got: Observed, path: str) -> list[str]:
    found: list[str] = []
    for wait, (first, last) in wanted.items():
        at = (got.get("nudged_at") or {}).get(wait) or []
        if not any(first <= instant <= last for instant in at):
            found.append(f"{path}: {wait} nudged at {at}, expected within {first}..{last}")
    return found


_SPECIAL: Final[dict[str, Callable[[Any, Observed, str], list[str]]]] = {
    "attachments": _attachments,
    "attachments_min": _attachments_min,
    "quoted_contains": _quoted,
    "suppressed": _listed("suppressed"),
    "raw_kept": _listed("raw_kept"),
    "not_suppressed": _not_suppressed,
    "http_set": _http_set,
    "same_result": _same_result,
    "delivered_before": _delivered_before,
    "nudged_between": _nudged_between,
}


def _shown(got: Any) -> str:
    return "nothing" if got is _MISSING else repr(got)
