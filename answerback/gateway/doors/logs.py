"""Writes the server's log: one event a line, with ids and places in the code, never with anybody's words."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, TextIO

import structlog

from answerback.model import Json

#: frames of a trace that are written, the innermost ones
FRAMES = 12


def fault(error: BaseException) -> Json:
    """Return an exception's kind and where it was raised.

    Its text is left out: a database driver's holds the values of the statement, so bodies and addresses.
    """
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    where = [f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames]
    return {"error": type(error).__qualname__, "where": where}


def configure(stream: TextIO = sys.stderr) -> None:
    """Log to `stream`, as JSON unless it is a terminal; libraries are heard from WARNING on."""
    shared: list[Any] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_words,
    ]
    renderer: Any = (
        structlog.dev.ConsoleRenderer() if stream.isatty() else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[*shared, renderer],
        logger_factory=structlog.PrintLoggerFactory(stream),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)


def _without_words(_logger: Any, _name: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    given = event.pop("exc_info", None)
    if given is True:
        given = sys.exc_info()
    error = given[1] if isinstance(given, tuple) else given
    if isinstance(error, BaseException):
        event.update(fault(error))
    return event
