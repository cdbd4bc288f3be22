"""The errors are one tree, drawn at the top of their module, and each says what to do."""

from __future__ import annotations

import inspect
import re

import pytest

from answerback import errors

CLASSES = [
    found
    for _, found in inspect.getmembers(errors, inspect.isclass)
    if issubclass(found, errors.AnswerbackError) and found.__module__ == errors.__name__
]


def test_every_error_is_in_the_drawing_and_the_drawing_names_no_other() -> None:
    assert errors.__doc__
    drawn = set(re.findall(r"\b[A-Z][a-z]+[A-Za-z]*\b", errors.__doc__)) - {"Everything"}
    assert drawn == {found.__name__ for found in CLASSES}


def test_every_code_stands_for_one_error() -> None:
    codes = [found.code for found in CLASSES if found is not errors.Foreign]
    assert sorted(codes) == sorted(set(codes))


@pytest.mark.parametrize("found", CLASSES, ids=lambda found: found.__name__)
def test_an_error_reads_as_a_sentence_even_without_its_details(found: type[errors.AnswerbackError]) -> None:
    if found is errors.Foreign:
        return
    message = found().message
    assert message
    assert "{" not in message
