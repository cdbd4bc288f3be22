"""The Python client, and the HTTP application with a part of it failing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from structlog.testing import capture_logs

from answerback import errors
from answerback.client import ROUTES, Client, error_of
from answerback.gateway import app
from answerback.gateway.changes import Changes
from answerback.gateway.doors import openapi
from answerback.gateway.doors.http_api import PATIENT, create_app
from answerback.gateway.verbs.table import BY_NAME, VERBS

DOCS = Path(__file__).resolve().parents[3] / "docs" / "reference"


def test_the_client_knows_every_route_of_the_gateway() -> None:
    assert {verb.name: (verb.method, verb.path) for verb in VERBS if verb.path} == ROUTES


def test_only_known_verbs_take_a_long_poll() -> None:
    assert PATIENT.keys() <= BY_NAME.keys()


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb.path], ids=lambda verb: verb.name)
def test_every_route_is_documented_with_its_scope(verb: Any) -> None:
    page = (DOCS / "http.md").read_text()
    assert any(
        f"`{verb.method} /v1{verb.path}`" in line and f"`{verb.scope}`" in line for line in page.splitlines()
    )


def test_every_status_of_a_refusal_is_described() -> None:
    statuses = {str(kind.status) for kind in _every(errors.AnswerbackError)}
    assert statuses - {"400", "405"} == openapi.REFUSALS.keys()


def _every(kind: type[errors.AnswerbackError]) -> Iterator[type[errors.AnswerbackError]]:
    if kind.__module__ == errors.__name__:
        yield kind
    for child in kind.__subclasses__():
        yield from _every(child)


def test_a_refusal_comes_back_as_its_own_class() -> None:
    error = error_of(
        {"error": {"code": "key_in_use", "message": "…", "details": {"waitpoint_id": "wp_1"}}}, ""
    )
    assert (type(error), error.details) == (errors.KeyInUse, {"waitpoint_id": "wp_1"})


def test_a_refusal_of_a_newer_gateway_keeps_its_words() -> None:
    error = error_of({"error": {"code": "moon_phase", "message": "Not today.", "details": {}}}, "")
    assert (type(error), error.message, error.details["code"]) == (errors.Foreign, "Not today.", "moon_phase")


@pytest.mark.parametrize("content", [None, [], {}, {"error": "no"}, {"error": {"code": "x"}}])
def test_what_is_no_gateway_is_told_apart(content: object) -> None:
    assert type(error_of(content, "http://elsewhere")) is errors.Unreachable


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "127.0.0.1", "http://[", ""])
def test_nobody_there_is_one_clear_error(url: str) -> None:
    with Client(url, "ab_live_x") as client, pytest.raises(errors.Unreachable):
        client.read()


def test_the_client_speaks_every_convenience(served: Any) -> None:
    key = served.fresh("po")
    with Client(served.url, served.key()) as client:
        asked = client.ask(["pat@supplier.example"], f"Quote {key}", "How much?", expect={"key": key})
        assert client.wait(key, 0.2)["waitpoint_id"] == asked["waitpoint_id"]
        leased: Any = client.lease(max=1)
        numbers = [item["sequence"] for item in leased["items"]]
        assert client.extend(leased["lease_id"], numbers, seconds=60)["extended"] == 1
        assert client.nack(leased["lease_id"])["returned"] == 1
        leased = client.lease(max=1)
        assert client.ack(leased["lease_id"], numbers) == {"acknowledged": 1}
        with pytest.raises(errors.LeaseExpired):
            client.ack("ls_none")
        with pytest.raises(errors.BadAddress):
            client.send(["nobody"], "x", "y")
    with Client(served.url, served.key("send")) as client, pytest.raises(errors.ScopeMissing):
        client.read()


class Broken:
    """A database whose every transaction fails with somebody's words."""

    def read(self) -> AbstractContextManager[Any]:
        raise ValueError("somebody's secret words")


def test_a_fault_is_answered_in_our_shape_and_logged_without_anybodys_words(quiet: Any) -> None:
    context = app.open_context(quiet.settings)
    context.db.close()

    async def ask() -> httpx2.Response:
        broken: Any = replace(context, db=Broken())  # type: ignore[arg-type]
        application = create_app(broken, Changes(asyncio.get_running_loop()))
        transport = httpx2.ASGITransport(application)
        async with httpx2.AsyncClient(transport=transport, base_url="http://door") as client:
            return await client.get("/v1/waits", headers={"Authorization": "Bearer x"})

    with capture_logs() as logged:
        response = asyncio.run(ask())
    answer = response.json()
    assert (response.status_code, answer["error"]["code"]) == (500, "internal")
    assert "secret" not in response.text + str(logged)
    assert [(one["request_id"], one["error"]) for one in logged] == [(answer["request_id"], "ValueError")]
