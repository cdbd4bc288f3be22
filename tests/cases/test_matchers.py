"""Our matcher gives the verdicts of the tool that came with the cases, over every observation there is."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from answerback.gateway.simulate.matchers import Observed, compare

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "fixtures" / "cases" / "_tools" / "compare.py"

SEEN: Observed = {
    "messages": {
        "m1": {
            "kind": "reply",
            "thread": None,
            "reply_text": "Yes,\u00a0that works. \r\n\r\n\r\n\r\nPat\u200b",
            "quoted_text": "> when will it be?\n> Regards",
            "attachments": [{"filename": "a.pdf", "size": 3, "sha256": "ab"}],
            "late": True,
        }
    },
    "final": {
        "wait_state": {"W1": "replied"},
        "person_queue": 2,
        "suppressed": ["pat@supplier.example.com"],
        "raw_kept": ["m1"],
        "http": {"h1": 200, "h2": 409},
        "results": {"s1": {"id": 1}, "s2": {"id": 1}, "s3": {"id": 2}},
        "delivered_at": {"m1": "2025-03-04T10:00:00Z"},
        "nudged_at": {"W1": ["2025-03-05T09:00:00Z"]},
        "errors": 0,
    },
}

#: an expectation about `final` or about mail m1, and whether SEEN fulfils it
FINAL: list[tuple[Observed, bool]] = [
    ({"errors": 0}, True),
    ({"errors": False}, False),
    ({"errors": 1}, False),
    ({"wait_state": {"W1": "replied"}}, True),
    ({"wait_state": {"W2": None}}, True),
    ({"wait_state": {"W2": "waiting"}}, False),
    ({"wait_state": {"W1": {"any": ["waiting", "replied"]}}}, True),
    ({"wait_state": {"W1": {"any": ["waiting", {"min": 1}]}}}, False),
    ({"wait_state": {"W1": {"deeper": 1}}}, False),
    ({"person_queue": {"min": 1, "max": 2}}, True),
    ({"person_queue": {"max": 1}}, False),
    ({"wait_state": {"W1": {"min": 1}}}, False),
    ({"mailbox_items": {"min": 1}}, False),
    ({"suppressed": ["pat@supplier.example.com"]}, True),
    ({"suppressed": ["kim@supplier.example.com"]}, False),
    ({"not_suppressed": ["kim@supplier.example.com"]}, True),
    ({"not_suppressed": ["pat@supplier.example.com"]}, False),
    ({"raw_kept": ["m1"]}, True),
    ({"raw_kept": ["m2"]}, False),
    ({"http_set": {"h1+h2": [{"any": [409, 410]}, 200]}}, True),
    ({"http_set": {"h1+h2": [200, 200]}}, False),
    ({"same_result": [["s1", "s2"]]}, True),
    ({"same_result": [["s1", "s2"], ["s1", "s3"]]}, False),
    ({"delivered_before": {"m1": "2025-03-04T10:00:00Z"}}, True),
    ({"delivered_before": {"m1": "2025-03-04T09:59:59Z"}}, False),
    ({"delivered_before": {"m2": "2025-03-04T10:00:00Z"}}, False),
    ({"nudged_between": {"W1": ["2025-03-05T09:00:00Z", "2025-03-05T09:00:00Z"]}}, True),
    ({"nudged_between": {"W1": ["2025-03-05T09:00:01Z", "2025-03-05T10:00:00Z"]}}, False),
    ({"nudged_at": {"W1": ["2025-03-05T09:00:00Z"]}}, True),
    ({"nudged_at": {"W1": []}}, False),
    ({"nudged_at": {"W1": "2025-03-05T09:00:00Z"}}, False),
]
MAIL: list[tuple[Observed, bool]] = [
    ({"kind": "reply", "thread": None, "late": True, "emoji": None}, True),
    ({"late": 1}, False),
    ({"reply_text": "Yes, that works.\n\nPat\u200b"}, True),
    ({"reply_text": "Yes, that works. Pat"}, False),
    ({"reply_text": {"contains": ["that works"], "excludes": ["> when"]}}, True),
    ({"reply_text": {"excludes": ["\u200b"]}}, False),
    ({"reply_text": {"excludes": [" works"]}}, False),
    ({"reply_text": {"contains": ["Kim"]}}, False),
    ({"subject": {"excludes": ["Kim"]}}, True),
    ({"subject": {"contains": ["Kim"]}}, False),
    ({"quoted_contains": ["when will"]}, True),
    ({"quoted_contains": ["never"]}, False),
    ({"attachments": [{"filename": "a.pdf", "size": 3, "sha256": "ab"}]}, True),
    ({"attachments": []}, False),
    ({"attachments_min": 1}, True),
    ({"attachments_min": 2}, False),
    ({"one_of": [{"kind": "new"}, {"kind": "reply", "late": True}]}, True),
    ({"one_of": [{"kind": "new"}, {"late": False}]}, False),
]
EXPECTED = [({"final": wanted}, holds) for wanted, holds in FINAL]
EXPECTED += [({"messages": {"m1": wanted}}, holds) for wanted, holds in MAIL]


@pytest.fixture(scope="module")
def tool() -> Callable[[Observed, Observed], list[str]]:
    spec = importlib.util.spec_from_file_location("given_compare", TOOL)
    assert spec is not None
    assert spec.loader is not None
    module: ModuleType = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[Observed, Observed], list[str]] = module.compare
    return found


@pytest.mark.parametrize(("wanted", "holds"), EXPECTED)
def test_a_matcher_says_what_the_given_tool_says(
    wanted: Observed, holds: bool, tool: Callable[[Observed, Observed], list[str]]
) -> None:
    assert (not compare(wanted, SEEN), not tool(wanted, SEEN)) == (holds, holds)


def test_a_difference_is_told_in_the_words_of_the_given_tool(
    tool: Callable[[Observed, Observed], list[str]],
) -> None:
    wanted = {"messages": {"m1": {"kind": "new", "reply_text": "No."}}, "final": {"errors": 1}}
    assert compare(wanted, SEEN) == tool(wanted, SEEN)
