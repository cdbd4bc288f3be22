"""Reads what an HTTP request says and writes what it is answered, in the one shape of this API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from answerback.errors import BadRequest, TooLarge, Unauthenticated
from answerback.gateway.verbs.table import as_json
from answerback.model import Json

if TYPE_CHECKING:
    from starlette.requests import Request

    from answerback.errors import AnswerbackError

#: octets of a request body
LIMIT = 16 << 20
#: seconds a long poll may last
LONGEST_WAIT = 60.0
LONGEST_KEY = 200


async def body(request: Request) -> Json:
    """Return the JSON object of the body; an empty body is an empty object.

    The media type is not looked at: a key comes in a header that no page of another origin can set.

    Raises:
        TooLarge: as soon as more than LIMIT octets have come. BadRequest: it is no JSON object.
    """
    octets = bytearray()
    async for piece in request.stream():
        octets += piece
        if len(octets) > LIMIT:
            raise TooLarge(limit=LIMIT)
    return _object(bytes(octets)) if octets.strip() else {}


def _object(octets: bytes) -> Json:
    try:
        given = json.loads(octets, parse_constant=_no_number)
    except RecursionError:
        raise BadRequest(field="body", problem="is nested too deeply") from None
    except json.JSONDecodeError as error:
        problem = f"is no JSON (line {error.lineno}, column {error.colno}: {error.msg})"
        raise BadRequest(field="body", problem=problem) from None
    except ValueError:  # no UTF-8, NaN, or a number of thousands of digits
        raise BadRequest(field="body", problem="is no JSON as of RFC 8259 in UTF-8") from None
    if not isinstance(given, dict):
        raise BadRequest(field="body", problem="is no JSON object; write {…}")
    return given


def _no_number(name: str) -> object:
    raise ValueError(name)


def query(request: Request) -> Json:
    """Return the query's parameters; one given twice is a list, which no parameter takes."""
    given = request.query_params
    return {name: values[0] if len(values := given.getlist(name)) == 1 else values for name in given}


def joined(path: Mapping[str, object], given: Json) -> Json:
    """Return the parameters of the path and of the query or body together.

    Raises:
        BadRequest: a name of the path is given again with another value.
    """
    for name, value in path.items():
        if given.get(name, value) != value:
            raise BadRequest(field=name, problem="differs from the one in the path; leave it out")
    return {**given, **path}


def seconds(given: Json) -> float:
    """Take `wait` out of a query and return it: seconds to wait for an answer, 0 to LONGEST_WAIT.

    Raises:
        BadRequest: it is no such number.
    """
    wanted = given.pop("wait", "0")
    try:
        found = float(str(wanted))
    except ValueError:
        found = -1.0
    if not 0 <= found <= LONGEST_WAIT:
        raise BadRequest(field="wait", problem=f"is no number of seconds from 0 to {LONGEST_WAIT:.0f}")
    return found


def idempotency_key(request: Request) -> str:
    """Return the Idempotency-Key header, "" where there is none.

    Raises:
        BadRequest: it is too long or not printable.
    """
    key = request.headers.get("idempotency-key", "").strip()
    if len(key) > LONGEST_KEY or not (key.isascii() and key.isprintable()):
        problem = f"is longer than {LONGEST_KEY} characters or has others than printable ASCII"
        raise BadRequest(field="Idempotency-Key", problem=problem)
    return key


def reply(
    status: int, content: Mapping[str, Any], request_id: str, headers: Mapping[str, str] | None = None
) -> Response:
    """Return the response with its X-Request-Id."""
    # A lone surrogate from somebody's mail has no UTF-8; written as its escape it is JSON again.
    text = json.dumps(content, ensure_ascii=False, default=str).encode("utf-8", "backslashreplace")
    return Response(
        text, status, media_type="application/json", headers={**(headers or {}), "X-Request-Id": request_id}
    )


def refusal(error: AnswerbackError, request_id: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return the response that says what is wrong."""
    challenge = {"WWW-Authenticate": "Bearer"} if isinstance(error, Unauthenticated) else {}
    return reply(
        error.status,
        {**as_json(error), "request_id": request_id},
        request_id,
        {**challenge, **(headers or {})},
    )
