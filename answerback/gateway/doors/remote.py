"""Carries commands out through a running gateway, over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from answerback.client import Client
from answerback.errors import BadRequest, KeyMissing
from answerback.model import Json

if TYPE_CHECKING:
    from answerback.gateway.doors.line import Options
    from answerback.gateway.settings import Client as ClientSettings


class Remote:
    """A door over HTTP."""

    note = ""

    def __init__(self, client: Client) -> None:
        self._client = client

    def call(self, verb: str, given: Json) -> Json:
        """Return the verb's result."""
        parameters: dict[str, Any] = dict(given)
        return self._client.call(verb, **parameters)

    def wait(self, key: str, seconds: float) -> Json:
        """Return a waitpoint as soon as it has ended, at the latest after `seconds`."""
        return self._client.wait(key, seconds)


@contextmanager
def door(settings: ClientSettings, options: Options) -> Iterator[Remote]:
    """Give the door to the gateway the settings name.

    Raises:
        BadRequest: an option was given that the key decides. KeyMissing: none is set.
    """
    for name, given in (("--env", options.environment), ("--as", options.agent)):
        if given:
            problem = (
                "over HTTP the key decides that; leave it out, or unset `client.url` to open the database"
            )
            raise BadRequest(field=name, problem=problem)
    if not settings.key:
        raise KeyMissing
    with Client(settings.url, settings.key) as client:
        yield Remote(client)
