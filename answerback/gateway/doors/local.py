"""Carries commands out on the database opened here; a running server notices within a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from answerback.errors import NoServer
from answerback.gateway import app
from answerback.gateway.doors import access, lock, parameters
from answerback.gateway.verbs import messages, table
from answerback.model import Json, Scope

if TYPE_CHECKING:
    from answerback.gateway.context import Context
    from answerback.gateway.doors.line import Options
    from answerback.gateway.settings import Settings

NO_SERVER: Final = "no server running"
#: seconds between two looks at whether anything was committed
LOOK_EVERY: Final = 0.25


class Local:
    """A door to the database."""

    def __init__(self, context: Context, scope: Scope, agent: str) -> None:
        self._context = context
        self._scope = scope
        self._agent = agent

    @property
    def note(self) -> str:
        """What to say beside something queued: whether a server is there to send it."""
        return "" if lock.is_held(self._context.settings.home) else NO_SERVER

    def call(self, verb: str, given: Json) -> Json:
        """Return the verb's result."""
        found = table.BY_NAME[verb]
        needs_agent = found.agent or verb.startswith("mailbox.")
        caller = access.at_this_machine(self._context, self._scope, self._agent, needs_agent=needs_agent)
        return table.call(self._context, caller, found, parameters.read(found.request, given))

    def wait(self, key: str, seconds: float) -> Json:
        """Return a waitpoint as soon as it has ended, at the latest after `seconds`.

        Raises:
            NoServer: it has not ended and nobody is there to take an answer in; `details` is the waitpoint.
        """
        view = self.call("waitpoints.show", {"key": key})
        if not messages.answered(view) and self.note:
            raise NoServer(**view)
        return self._until(lambda: self.call("waitpoints.show", {"key": key}), messages.answered, seconds)

    def _until(self, look: Callable[[], Json], enough: Callable[[Json], bool], seconds: float) -> Json:
        until = time.monotonic() + seconds
        seen = self._context.db.version()
        view = look()
        while not enough(view) and (left := until - time.monotonic()) > 0:
            time.sleep(min(LOOK_EVERY, left))
            if (version := self._context.db.version()) != seen:
                seen, view = version, look()
        return view


@contextmanager
def door(settings: Settings, options: Options) -> Iterator[Local]:
    """Give the door to the database in the settings.

    Raises:
        NoDatabase, CorruptDatabase, NewerDatabase, BadSettings: with what to do.
    """
    context = app.open_context(settings)
    try:
        scope = Scope(tenant=settings.tenant, environment=options.environment or "live")
        yield Local(context, scope, options.agent or "")
    finally:
        context.db.close()
