"""What a check found is said in plain words, for every parameter of every verb."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError
from pydantic_core import core_schema

from answerback.errors import BadRequest
from answerback.gateway import plain
from answerback.gateway.doors import parameters
from answerback.gateway.verbs import requests
from answerback.gateway.verbs.table import VERBS

MAIL: dict[str, Any] = {"to": ["pat@supplier.example"], "subject": "s", "text": "t"}
FILE: dict[str, Any] = {"filename": "f", "content": "eA=="}


@pytest.mark.parametrize(
    ("model", "given", "field", "problem"),
    [
        (requests.Send, MAIL | {"to": "pat@supplier.example"}, "to", "write a list, as […]"),
        (requests.Send, MAIL | {"to": []}, "to", "give at least 1"),
        (requests.Send, MAIL | {"to": ["p@x.example"] * 51}, "to", "give at most 50"),
        (requests.Send, MAIL | {"subject": 7}, "subject", "write a text"),
        (requests.Send, MAIL | {"colour": "red"}, "colour", "there is no such parameter; take it out"),
        (requests.Send, MAIL | {"expect": "yes"}, "expect", "write an object, as {…}"),
        (requests.Send, MAIL | {"expect": {}}, "expect.key", "is missing"),
        (requests.Send, MAIL | {"expect": {"key": ""}}, "expect.key", "give at least 1 character(s)"),
        (
            requests.Send,
            MAIL | {"attachments": [FILE | {"media_type": "pdf"}]},
            "attachments.0.media_type",
            "write a media type in small letters, as text/plain",
        ),
        (
            requests.Send,
            MAIL | {"attachments": [FILE | {"content": "%"}]},
            "attachments.0.content",
            "it is no base64",
        ),
        (requests.Lease, {"max": "many"}, "max", "write a whole number"),
        (requests.Lease, {"seconds": 5}, "seconds", "give a number of at least 30"),
        (requests.Lease, {"max": 101}, "max", "give a number of at most 100"),
        (requests.ListReviews, {"all": "perhaps"}, "all", "write true or false"),
        (requests.ResumeWait, {"id": "w", "not_before": "soon"}, "not_before", plain.INSTANT),
        (
            requests.ResumeWait,
            {"id": "w", "not_before": "2030-01-01T00:00"},
            "not_before",
            "names no zone; " + plain.INSTANT,
        ),
    ],
)
def test_what_is_wrong_is_one_plain_sentence(
    model: type[requests.Request], given: dict[str, Any], field: str, problem: str
) -> None:
    with pytest.raises(BadRequest) as refused:
        parameters.read(model, given)
    assert refused.value.details == {"field": field, "problem": problem}


def test_the_choices_there_are_are_named() -> None:
    with pytest.raises(BadRequest, match=r"^state: choose 'waiting', .* or 'cancelled'$"):
        parameters.read(requests.ListWaits, {"state": "done"})


def test_every_pattern_of_a_parameter_has_its_sentence() -> None:
    found: set[str] = set()
    left: list[Any] = [verb.request.model_json_schema() for verb in VERBS]
    while left:
        match left.pop():
            case dict() as node:
                if isinstance(pattern := node.get("pattern"), str):
                    found.add(pattern)
                left += node.values()
            case list() as nodes:
                left += nodes
    assert found == plain.PATTERNS.keys()


@pytest.mark.parametrize("kind", sorted(plain.SENTENCES))
def test_every_kind_of_error_is_one_of_the_library(kind: str) -> None:
    assert kind in core_schema.ErrorType.__args__  # type: ignore[attr-defined]


def test_no_value_that_was_given_is_repeated() -> None:
    with pytest.raises(BadRequest) as refused:
        parameters.read(requests.Lease, {"max": "my secret", "seconds": "my secret"})
    assert "secret" not in str(refused.value.details)
    assert not isinstance(refused.value.__cause__, ValidationError)
