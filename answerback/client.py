"""The Python client: an agent's verbs over HTTP, returning JSON and raising the gateway's errors."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote

import httpx2

from answerback.errors import AnswerbackError, Foreign, Unreachable
from answerback.model import Json

#: verb → method and path below /v1 (a test holds it equal to the gateway's own table)
ROUTES: Final[Mapping[str, tuple[str, str]]] = {
    "send": ("POST", "/messages"),
    "messages.show": ("GET", "/messages/{id}"),
    "conversations.show": ("GET", "/conversations/{id}"),
    "waitpoints.open": ("POST", "/waitpoints"),
    "waitpoints.show": ("GET", "/waitpoints/{key}"),
    "mailbox.read": ("GET", "/mailbox"),
    "mailbox.lease": ("POST", "/mailbox/lease"),
    "mailbox.ack": ("POST", "/mailbox/ack"),
    "mailbox.nack": ("POST", "/mailbox/nack"),
    "mailbox.extend": ("POST", "/mailbox/extend"),
    "waits.list": ("GET", "/waits"),
    "waits.show": ("GET", "/waits/{id}"),
    "waits.cancel": ("POST", "/waits/{id}/cancel"),
    "waits.pause": ("POST", "/waits/{id}/pause"),
    "waits.resume": ("POST", "/waits/{id}/resume"),
    "waits.again": ("POST", "/waits/{id}/again"),
    "reviews.list": ("GET", "/reviews"),
    "reviews.show": ("GET", "/reviews/{id}"),
    "reviews.decide": ("POST", "/reviews/{id}/decide"),
}
#: seconds of one long poll; the gateway takes up to 60
ONE_WAIT: Final = 30.0


class Client:
    """One key's door to a running gateway; close it, or use it in a `with` block.

    Every method returns the gateway's JSON object and raises the gateway's error by its class
    (`answerback.errors`), `Foreign` where this version does not know the code, and `Unreachable` where no
    gateway answers.
    """

    def __init__(self, url: str, key: str, *, timeout: float = 30.0) -> None:
        """Make a client; `timeout` is in seconds, for one request, on top of what it asks to wait."""
        self._url = url.rstrip("/")
        self._timeout = timeout
        self._http = httpx2.Client(headers={"Authorization": f"Bearer {key}"})

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def call(self, verb: str, /, *, wait: float = 0, idempotency_key: str = "", **given: Any) -> Json:
        """Carry out any verb of ROUTES; parameters that are None are left out."""
        method, path = ROUTES[verb]
        given = {name: value for name, value in given.items() if value is not None}
        for name in [name for name in given if f"{{{name}}}" in path]:
            path = path.replace(f"{{{name}}}", quote(str(given.pop(name)), safe=""))
        query: dict[str, Any] = {"wait": wait} if wait else {}
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        return self._answer(
            method,
            f"{self._url}/v1{path}",
            params=query if method == "POST" else query | given,
            json=given if method == "POST" else None,
            headers=headers,
            timeout=self._timeout + wait,
        )

    def _answer(self, method: str, url: str, **more: Any) -> Json:
        try:
            response = self._http.request(method, url, **more)
            content = response.json()
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise Unreachable(url=self._url, problem=str(error) or type(error).__name__) from None
        except ValueError:
            raise Unreachable(url=self._url, problem="what answers there is no gateway") from None
        if response.is_success and isinstance(content, dict):
            return content
        raise error_of(content, self._url)

    def send(self, to: Sequence[str], subject: str, text: str, **more: Any) -> Json:
        """Queue a mail; `more` are the other fields of the verb (cc, html, attachments, inbox, …)."""
        return self.call("send", to=list(to), subject=subject, text=text, **more)

    def ask(
        self, to: Sequence[str], subject: str, text: str, *, expect: Mapping[str, object], **more: Any
    ) -> Json:
        """Queue a mail that expects an answer; `expect` holds at least its `key`."""
        return self.send(to, subject, text, expect=dict(expect), **more)

    def wait(self, key: str, seconds: float) -> Json:
        """Return the waitpoint of a key once it has ended, or as it is after `seconds`."""
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            view = self.call("waitpoints.show", key=key, wait=round(min(left, ONE_WAIT), 3))
            if view["ended"] or time.monotonic() >= until:
                return view

    def read(self, since: int | None = None, *, limit: int | None = None, wait: float = 0) -> Json:
        """Return the mailbox's items after `since`; nothing is taken."""
        return self.call("mailbox.read", since=since, limit=limit, wait=wait)

    def lease(self, *, max: int = 10, seconds: int = 300, wait: float = 0) -> Json:  # noqa: A002 - the verb's word
        """Take up to `max` items for `seconds`; waits up to `wait` seconds for one."""
        return self.call("mailbox.lease", max=max, seconds=seconds, wait=wait)

    def ack(self, lease_id: str, sequences: Sequence[int] | None = None) -> Json:
        """End items of a lease, all of them where no numbers are given."""
        return self.call("mailbox.ack", lease_id=lease_id, sequences=_listed(sequences))

    def nack(self, lease_id: str, sequences: Sequence[int] | None = None) -> Json:
        """Give items of a lease back; they come again at once."""
        return self.call("mailbox.nack", lease_id=lease_id, sequences=_listed(sequences))

    def extend(self, lease_id: str, sequences: Sequence[int] | None = None, *, seconds: int = 300) -> Json:
        """Keep items of a lease for `seconds` from now."""
        return self.call("mailbox.extend", lease_id=lease_id, sequences=_listed(sequences), seconds=seconds)


def _listed(sequences: Sequence[int] | None) -> list[int] | None:
    return None if sequences is None else list(sequences)


def _every(kind: type[AnswerbackError]) -> Iterator[type[AnswerbackError]]:
    yield kind
    for child in kind.__subclasses__():
        yield from _every(child)


def error_of(content: Any, url: str) -> AnswerbackError:
    """Return the error an answer of the gateway tells of."""
    told = content.get("error") if isinstance(content, dict) else None
    if not isinstance(told, dict) or not {"code", "message", "details"} <= told.keys():
        return Unreachable(url=url, problem="what answers there is no gateway")
    known = {
        kind.code: kind for kind in _every(AnswerbackError) if kind.__module__ == AnswerbackError.__module__
    }
    kind = known.get(str(told["code"]))
    if kind is None or kind.code == AnswerbackError.code:
        return Foreign(message=told["message"], code=told["code"])
    return kind(**told["details"])
