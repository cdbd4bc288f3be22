"""What every command of the command line shares: its options, and the door its verbs go through."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal, Protocol

import typer

from answerback.errors import BadRequest
from answerback.model import Json

if TYPE_CHECKING:
    from answerback.gateway.settings import Settings

Home = Annotated[
    str | None, typer.Option("--home", help="folder of the database and settings [default: answerback-data]")
]
Environment = Annotated[
    Literal["live", "test"] | None, typer.Option("--env", help="environment [default: live]")
]
Agent = Annotated[str | None, typer.Option("--as", help="agent to speak for, by name or id")]
AsJson = Annotated[bool, typer.Option("--json", help="print one JSON object")]
#: the options every command takes, before or after its name
SHARED: dict[str, tuple[Any, object]] = {
    "home": (Home, None),
    "environment": (Environment, None),
    "agent": (Agent, None),
    "as_json": (AsJson, False),
}

#: keeps their names apart from a command's own parameters
PREFIX = "shared_"

_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The shared options as given."""

    home: str | None = None
    environment: Literal["live", "test"] | None = None
    agent: str | None = None
    as_json: bool = False

    def with_later(self, given: dict[str, Any]) -> Options:
        """Return the options where those after the command's name win over those before it."""
        return replace(self, **{name: value for name, value in given.items() if value})


class OutputClosedError(Exception):
    """Whoever read our output went away. The library below would make a failure of a broken pipe."""


class Door(Protocol):
    """How verbs are carried out: by a running gateway over HTTP, or on the database opened here."""

    @property
    def note(self) -> str:
        """What to say beside something queued; "" where a server is there to send it."""

    def call(self, verb: str, given: Json) -> Json:
        """Return the verb's result."""

    def wait(self, key: str, seconds: float) -> Json:
        """Return a waitpoint as soon as it has ended, at the latest after `seconds`."""


class Line:
    """One command being carried out."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def settings(self) -> Settings:
        """Return the settings in force. Raises BadSettings."""
        from answerback.gateway import settings

        if self.options.home:
            # The settings file lies in the home, so its place must be known before it is read.
            os.environ["ANSWERBACK_HOME"] = self.options.home
        return settings.load()

    def door(self, verb: str) -> AbstractContextManager[Door]:
        """Return the door a verb goes through: HTTP where `client.url` is set and the verb has a route."""
        settings = self.settings()
        if settings.client.url:
            from answerback.client import ROUTES
            from answerback.gateway.doors import remote

            if verb in ROUTES:
                return remote.door(settings.client, self.options)
        from answerback.gateway.doors import local

        return local.door(settings, self.options)

    def call(self, verb: str, **given: object) -> int:
        """Carry a verb out, print its result and return 0; parameters that are None are left out."""
        with self.door(verb) as door:
            self.show(door.call(verb, without_none(given)))
        return 0

    def show(self, content: Json) -> None:
        """Print a result."""
        from answerback.gateway.doors import output

        output.result(content, as_json=self.options.as_json)


def without_none(given: Json) -> Json:
    """Return the parameters that were given."""
    return {name: value for name, value in given.items() if value is not None}


def command(app: typer.Typer, name: str) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Register a function of a Line as a command that takes the shared options too."""

    def register(function: Callable[..., int]) -> Callable[..., int]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]

        def run(context: typer.Context, **given: Any) -> int:
            later = {shared: given.pop(PREFIX + shared) for shared in SHARED}
            try:
                return function(Line(context.obj.with_later(later)), **given)
            except BrokenPipeError:
                raise OutputClosedError from None

        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter("context", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context),
            *(one.replace(kind=kind) for one in own),
            *(inspect.Parameter(PREFIX + n, kind, annotation=a, default=d) for n, (a, d) in SHARED.items()),
        ]
        shown: Any = run
        shown.__signature__ = inspect.Signature(parameters)
        shown.__annotations__ = {one.name: one.annotation for one in parameters}
        shown.__doc__ = function.__doc__
        app.command(name)(shown)
        return function

    return register


def seconds(text: str, option: str = "--wait") -> float:
    """Return the seconds a duration such as `30s`, `5m` or `1h` means.

    Raises:
        BadRequest: it is none, or longer than a day.
    """
    found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smh]?)", text.strip())
    value = float(found[1]) * _SECONDS[found[2]] if found else -1.0
    if not 0 <= value <= 86400:
        raise BadRequest(
            field=option, problem=f"{text!r} is no duration up to a day; write it as 30s, 5m or 1h"
        )
    return value
