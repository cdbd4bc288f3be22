"""Says in plain words what a check of given values found, never with the values: they may be secrets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

INSTANT: Final = "write a date as 2030-12-24, or an ISO time with zone as 2030-12-24T12:00:00Z"
#: what each pattern of a parameter asks for
PATTERNS: Final[Mapping[str, str]] = {
    r"^[A-Za-z0-9][A-Za-z0-9._-]*$": "use letters, digits, dot, _ and - only, the first a letter or digit",
    r"^(application|audio|font|image|model|text|video|x-[a-z0-9-]+)/[a-z0-9.+-]+$": (
        "write a media type in small letters, as text/plain"
    ),
    r"^[^\x00-\x1f\x7f]*$": "contains line breaks or control characters; take them out",
    r"^\d{4}-\d\d-\d\d$": "write a day as 2030-12-24",
    r"^\d\d:\d\d$": "write start and end as 09:00 and 17:00",
}
#: kind of error (pydantic's word) → sentence; a word in braces is one of the error's own bounds
SENTENCES: Final[Mapping[str, str]] = {
    "missing": "is missing",
    "extra_forbidden": "there is no such parameter; take it out",
    "string_type": "write a text",
    "string_unicode": "is no text in Unicode",
    "string_too_short": "give at least {min_length} character(s)",
    "string_too_long": "give at most {max_length} characters",
    "too_short": "give at least {min_length}",
    "too_long": "give at most {max_length}",
    "greater_than": "give a number above {gt}",
    "greater_than_equal": "give a number of at least {ge}",
    "less_than_equal": "give a number of at most {le}",
    "literal_error": "choose {expected}",
    "timezone_aware": "names no zone; " + INSTANT,
}
#: the same by how the kind begins
_FAMILIES: Final[Mapping[str, str]] = {
    "int_": "write a whole number",
    "float_": "write a number",
    "bool_": "write true or false",
    "tuple_": "write a list, as […]",
    "list_": "write a list, as […]",
    "dict_": "write an object, as {{…}}",
    "model_": "write an object, as {{…}}",
    "datetime_": INSTANT,
    "path_": "write the name of a file",
}


def sentence(error: ErrorDetails) -> str:
    """Return what is wrong with one value and what to write."""
    kind, bounds = error["type"], error.get("ctx", {})
    if kind == "string_pattern_mismatch":
        return PATTERNS.get(str(bounds.get("pattern")), "is not written as it must be")
    if kind == "value_error":  # said by a check of our own
        return str(bounds.get("error", error["msg"]))
    family = next((text for prefix, text in _FAMILIES.items() if kind.startswith(prefix)), error["msg"])
    return SENTENCES.get(kind, family).format_map(bounds)
