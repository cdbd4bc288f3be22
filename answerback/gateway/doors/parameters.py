"""Turns what a door was given into a verb's request, or into one sentence about what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from answerback.errors import BadRequest
from answerback.gateway import plain

if TYPE_CHECKING:
    from answerback.gateway.verbs.requests import Request

R = TypeVar("R", bound="Request")

#: problems listed in `details`; the message names the first
MOST_PROBLEMS = 20
LONGEST_NAME = 100


def read(model: type[R], given: Mapping[str, object]) -> R:
    """Return the checked request.

    Raises:
        BadRequest: with the first problem as its message and all of them in `details`, never with the
            values that were given: they may be secrets.
    """
    try:
        return model.model_validate(given)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
    problems = [{"field": _path(one["loc"]), "problem": plain.sentence(one)} for one in found[:MOST_PROBLEMS]]
    raise BadRequest(**problems[0], **({"problems": problems} if len(problems) > 1 else {}))


def _path(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))[:LONGEST_NAME] or "request"
