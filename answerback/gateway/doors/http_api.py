"""The HTTP API: one route per verb below /v1, each answering in one shape."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import structlog
from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from answerback import __version__
from answerback.errors import AnswerbackError, BadRequest, Internal, MethodNotAllowed, NoRoute, ScopeMissing
from answerback.gateway.doors import access, http_body, logs, openapi, parameters
from answerback.gateway.verbs import messages, table
from answerback.model import Json
from answerback.store import tenants

if TYPE_CHECKING:
    from answerback.gateway.changes import Changes
    from answerback.gateway.context import Caller, Context
    from answerback.gateway.verbs.table import Verb

log = structlog.get_logger()

PREFIX: Final = "/v1"
#: seconds between two looks of a long poll: that a lease ran out is no change that would wake it
LOOK_AGAIN: Final = 5.0


def _any_items(result: Json) -> bool:
    return bool(result["items"])


#: verbs whose route takes `?wait=`, and what is waited for
PATIENT: Final[dict[str, Callable[[Json], bool]]] = {
    "waitpoints.show": messages.answered,
    "mailbox.read": _any_items,
    "mailbox.lease": _any_items,
}

Work = Callable[[Request], Awaitable[Json]]


class _NothingYetError(Exception):
    """A look of a long poll found nothing; its transaction is rolled back and leaves no trace."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """One request, understood."""

    caller: Caller
    verb: Verb
    given: Json
    key: str
    #: seconds to wait for something to return
    wait: float


def create_app(context: Context, changes: Changes, *, stopping: asyncio.Event | None = None) -> FastAPI:
    """Return the application; `changes` must live on the loop that serves it.

    Once `stopping` is set, long polls end at the next change.
    """
    app = FastAPI(
        title="answerback",
        version=__version__,
        openapi_url=None,  # our own routes below answer in our shape
        docs_url=None,  # its pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    door = _Door(context, changes, stopping or asyncio.Event())
    for verb in table.VERBS:
        if verb.path:
            # A correlation key may hold a slash; it is the last piece of its path.
            path = PREFIX + verb.path.replace("{key}", "{key:path}")
            app.add_api_route(path, door.endpoint(door.of(verb)), methods=[verb.method])
    app.add_api_route("/openapi.json", door.endpoint(_description), methods=["GET"])
    app.add_api_route("/healthz", door.endpoint(door.health), methods=["GET"])
    app.add_exception_handler(HTTPException, door.misdirected)
    return app


async def _description(_request: Request) -> Json:
    return openapi.description(frozenset(PATIENT))


class _Door:
    """The endpoints of one context."""

    def __init__(self, context: Context, changes: Changes, stopping: asyncio.Event) -> None:
        self._context = context
        self._changes = changes
        self._stopping = stopping

    def endpoint(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        """Return the endpoint that answers with what the work returns, or with what went wrong."""

        async def answer(request: Request) -> Response:
            request_id = self._context.new_id("req")
            try:
                return http_body.reply(200, await work(request), request_id)
            except AnswerbackError as error:
                if error.status >= 500:
                    log.warning("unable", action="http", request_id=request_id, code=error.code)
                return http_body.refusal(error, request_id)
            except Exception as error:  # noqa: BLE001 - the top of a request: it is logged and answered
                trace = logs.fault(error)
                log.error("request failed", action="http", request_id=request_id, **trace)  # noqa: TRY400 - see fault
                return http_body.refusal(Internal(request_id=request_id), request_id)

        return answer

    async def misdirected(self, request: Request, error: Exception) -> Response:
        """Answer a request for which there is no route."""
        assert isinstance(error, HTTPException)
        method, path = request.method, request.url.path[:200]
        known = MethodNotAllowed(method=method, path=path) if error.status_code == 405 else None
        headers = {"Allow": (error.headers or {}).get("Allow", "")} if known else None
        return http_body.refusal(
            known or NoRoute(method=method, path=path), self._context.new_id("req"), headers
        )

    async def health(self, _request: Request) -> Json:
        """Answer once the database was read."""
        await asyncio.to_thread(self._look_at_database)
        return {"status": "ok"}

    def _look_at_database(self) -> None:
        with self._context.db.read() as tx:
            tenants.tenants(tx)

    def of(self, verb: Verb) -> Work:
        """Return what the verb's route does."""

        async def work(request: Request) -> Json:
            return await self._carry_out(request, await self._understood(request, verb))

        return work

    async def _understood(self, request: Request, verb: Verb) -> _Asked:
        header = request.headers.get("authorization", "")
        # Before the body is read: a stranger does not get 16 MiB of our memory.
        caller = await asyncio.to_thread(access.by_key, self._context, header)
        if verb.scope not in caller.scopes:  # said before anything is said about parameters
            raise ScopeMissing(scope=verb.scope)
        given = http_body.query(request)
        wait = http_body.seconds(given) if verb.name in PATIENT else 0.0
        if verb.writes:
            for name in given:
                raise BadRequest(field=name[:100], problem="is not taken from the query; put it in the body")
            given = await http_body.body(request)
        key = http_body.idempotency_key(request) if verb.writes else ""
        return _Asked(caller, verb, http_body.joined(request.path_params, given), key, wait)

    async def _carry_out(self, request: Request, asked: _Asked) -> Json:
        """Carry the verb out; with `wait`, look again after every change until there is something."""
        loop = asyncio.get_running_loop()
        until = loop.time() + asked.wait
        while (left := until - loop.time()) > 0 and not await request.is_disconnected():
            seen = self._changes.seen("mailbox")
            if self._stopping.is_set():
                break
            try:
                return await asyncio.to_thread(self._call, asked, PATIENT[asked.verb.name])
            except _NothingYetError:
                await self._changes.after("mailbox", seen, seconds=min(left, LOOK_AGAIN))
        return await asyncio.to_thread(self._call, asked, None)

    def _call(self, asked: _Asked, enough: Callable[[Json], bool] | None) -> Json:
        verb = replace(asked.verb, run=_unless_empty(asked.verb.run, enough)) if enough else asked.verb
        request = parameters.read(verb.request, asked.given)
        return table.call(self._context, asked.caller, verb, request, asked.key)


def _unless_empty(run: Callable[..., Json], enough: Callable[[Json], bool]) -> Callable[..., Json]:
    def look(*given: Any) -> Json:
        result = run(*given)
        if not enough(result):
            raise _NothingYetError
        return result

    return look
