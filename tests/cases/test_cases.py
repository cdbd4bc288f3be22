"""Every given case and every case of our own holds, except those on the list of what is to come."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from answerback.gateway.simulate.matchers import Observed
from answerback.gateway.simulate.run import Theatre, Verdict
from answerback.gateway.simulate.scenario import find, load

ROOT = Path(__file__).resolve().parents[2]
CASES, OWN = ROOT / "fixtures" / "cases", ROOT / "fixtures" / "own"
PENDING_FILE = CASES / "pending.txt"


def _pending() -> tuple[str, ...]:
    lines = (line.strip() for line in PENDING_FILE.read_text("utf-8").splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))


PENDING = frozenset(_pending())
GIVEN_FOLDERS, OWN_FOLDERS = find([str(CASES)]), find([str(OWN)])


def _name(folder: Path) -> str:
    return folder.name


@pytest.fixture(scope="module")
def play() -> Iterator[Callable[[Path], Verdict]]:
    with Theatre() as theatre:
        yield theatre.play


@pytest.fixture(scope="module")
def given_compare() -> Callable[[Observed, Observed], list[str]]:
    spec = importlib.util.spec_from_file_location("given_compare", CASES / "_tools" / "compare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Callable[[Observed, Observed], list[str]] = module.compare
    return found


@pytest.mark.parametrize("folder", GIVEN_FOLDERS, ids=_name)
def test_a_given_case_holds_unless_it_is_pending_and_then_it_does_not(
    folder: Path,
    play: Callable[[Path], Verdict],
    given_compare: Callable[[Observed, Observed], list[str]],
) -> None:
    verdict = play(folder)
    assert verdict.errors == ()
    assert verdict.holds == (not given_compare(load(folder).expected, verdict.observed))
    if folder.name in PENDING:
        assert not verdict.holds, f"{folder.name} holds now: take it off {PENDING_FILE.name}"
    else:
        assert verdict.mismatches == ()


@pytest.mark.parametrize("folder", OWN_FOLDERS, ids=_name)
def test_a_case_of_our_own_holds(folder: Path, play: Callable[[Path], Verdict]) -> None:
    verdict = play(folder)
    assert verdict.errors == ()
    assert verdict.mismatches == ()


def test_the_list_of_pending_cases_names_only_cases_each_once_and_says_why() -> None:
    lines = PENDING_FILE.read_text("utf-8").splitlines()
    assert {folder.name for folder in GIVEN_FOLDERS} >= PENDING
    assert len(_pending()) == len(PENDING)
    assert lines[0].startswith("#")
    blocks = PENDING_FILE.read_text("utf-8").strip().split("\n\n")
    assert all(block.startswith("#") for block in blocks)


def test_a_scenario_shows_the_same_every_time(play: Callable[[Path], Verdict]) -> None:
    folder = OWN / "two-nudges-then-abandoned"
    assert play(folder) == play(folder)
