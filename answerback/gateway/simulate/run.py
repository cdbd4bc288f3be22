"""The verb `simulate`: plays scenario folders and prints whether they show what is expected."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self

import structlog
from rich.console import Console

from answerback.errors import AnswerbackError
from answerback.gateway.simulate import outcome, play, reading
from answerback.gateway.simulate.matchers import Observed, compare
from answerback.gateway.simulate.scenario import Scenario, find, load
from answerback.gateway.simulate.stage import Stage
from answerback.model import value
from answerback.store.session import Database

#: differences a person is shown of one scenario
MOST_SHOWN = 3


@value
class Verdict:
    """What one scenario showed."""

    id: str
    mismatches: tuple[str, ...]
    observed: Observed
    #: errors raised while it was played, for a person to read
    errors: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything expected was observed."""
        return not self.mismatches


def main(dirs: list[str], as_json: bool) -> int:
    """Play every scenario in or below the folders, print what came of it; return 0 where all hold, else 1.

    With `as_json` one object per line: `{"scenario", "holds", "mismatches", "messages", "final"}`.
    The last line is always `N passed, M failed`.

    Raises:
        BadRequest: a folder holds no scenario.
    """
    folders = find(dirs)
    console = Console(highlight=False, soft_wrap=True)
    passed = 0
    with Theatre() as theatre:
        for folder in folders:
            verdict = theatre.play(folder)
            passed += verdict.holds
            if as_json:
                sys.stdout.write(_line(verdict))
            elif not verdict.holds:
                _explain(console, verdict)
    failed = len(folders) - passed
    sys.stdout.write(f"{passed} passed, {failed} failed\n")
    return 1 if failed else 0


class Theatre:
    """Plays one scenario after the other, each in an empty database; a context manager."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        # One for all, emptied by closing it: compiling its statements is most of a scenario's time.
        self._db = Database.open("sqlite://", create=True)
        self._inside = ExitStack()

    def __enter__(self) -> Self:
        """Be quiet from now on."""
        self._inside.enter_context(quiet())
        self._inside.enter_context(self._runner)
        self._inside.callback(self._db.close)
        return self

    def __exit__(self, *_error: object) -> None:
        """Forget everything."""
        self._inside.close()

    def play(self, folder: Path) -> Verdict:
        """Return what the scenario of a folder showed; a fault is a mismatch, not a crash."""
        try:
            scenario = load(folder)
            if kind := play.unsupported(scenario):
                return _failed(folder, f"unsupported: {kind}")
            return self._played(scenario)
        except AnswerbackError as error:
            return _failed(folder, error.message)
        except Exception as error:  # noqa: BLE001 - one broken scenario must not hide the others
            return _failed(folder, f"can not be played: {type(error).__name__}: {error}")
        finally:
            self._db.close()

    def _played(self, scenario: Scenario) -> Verdict:
        stage = Stage(scenario, self._runner, self._db)
        play.play(stage)
        observed = {"messages": reading.messages(stage), "final": outcome.final(stage)}
        found = stage.record.mismatches + compare(scenario.expected, observed)
        errors = tuple(stage.record.errors)
        return Verdict(id=scenario.id, mismatches=tuple(found), observed=observed, errors=errors)


def _failed(folder: Path, reason: str) -> Verdict:
    observed: Observed = {"messages": {}, "final": {}}
    return Verdict(id=folder.resolve().name, mismatches=(reason,), observed=observed)


def _line(verdict: Verdict) -> str:
    shown = {
        "scenario": verdict.id,
        "holds": verdict.holds,
        "mismatches": list(verdict.mismatches),
        **verdict.observed,
    }
    return json.dumps(shown, ensure_ascii=False) + "\n"


def _explain(console: Console, verdict: Verdict) -> None:
    lines = [*verdict.mismatches, *verdict.errors]
    more = f" (and {len(lines) - MOST_SHOWN} more)" if len(lines) > MOST_SHOWN else ""
    console.print(f"{verdict.id}: {'; '.join(lines[:MOST_SHOWN])}{more}", markup=False, style="red")


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the product's log out of the output: what is worth knowing stands in the observation."""
    before = structlog.get_config()
    silent = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=silent, cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.configure(**before)
