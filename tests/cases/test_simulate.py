"""The verb `simulate`: what it prints, what it refuses, and what it does not let through."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from answerback.errors import BadRequest
from answerback.gateway.simulate import dialogue, edges, outcome
from answerback.gateway.simulate.play import local
from answerback.gateway.simulate.run import main
from answerback.gateway.simulate.scenario import load
from answerback.gateway.simulate.stage import Stage
from answerback.model import Envelope
from answerback.store.session import Database

OWN = Path(__file__).resolve().parents[2] / "fixtures" / "own"
HOLDING = OWN / "two-nudges-then-abandoned"


def _copy(target: Path, **changes: Any) -> Path:
    """A scenario like HOLDING with some of its documents changed."""
    folder = target / "changed"
    folder.mkdir()
    for source in HOLDING.iterdir():
        document = json.loads(source.read_text())
        document |= changes.get(source.stem, {})
        (folder / source.name).write_text(json.dumps(document))
    return folder


def test_a_folder_that_holds_ends_with_a_count_and_zero(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(HOLDING)], as_json=False) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_json_gives_one_object_per_scenario_and_then_the_count(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(HOLDING), str(HOLDING)], as_json=True) == 0
    first, second, closing = capsys.readouterr().out.splitlines()
    shown = json.loads(first)
    assert first == second
    assert closing == "2 passed, 0 failed"
    assert {key: shown[key] for key in ("scenario", "holds", "mismatches", "messages")} == {
        "scenario": HOLDING.name,
        "holds": True,
        "mismatches": [],
        "messages": {},
    }
    assert shown["final"]["wait_state"] == {"W1": "abandoned"}


def test_what_does_not_hold_is_named_with_its_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _copy(tmp_path, expected={"final": {"person_queue": 7, "errors": 0}})
    assert main([str(folder)], as_json=False) == 1
    assert capsys.readouterr().out == "changed: final.person_queue: expected 7, got 0\n0 passed, 1 failed\n"


def test_an_event_of_a_later_version_is_unsupported_and_counted_as_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _copy(tmp_path, input={"events": [{"at": "2025-03-04T10:00:00Z", "do": "poll"}]})
    assert main([str(folder)], as_json=False) == 1
    assert capsys.readouterr().out == "changed: unsupported: poll\n0 passed, 1 failed\n"


@pytest.mark.parametrize(
    ("events", "said"),
    [
        ([{"at": "soon", "do": "advance"}], "soon is no ISO 8601 time"),
        ([{"at": "2025-03-04T10:00:00", "do": "advance"}], "has no zone"),
        (
            [{"at": "2025-03-04T10:00:00Z", "do": "receive_email", "ref": "m1", "eml": "m1.eml"}],
            "no such mail",
        ),
        ([{"at": "2025-03-04T10:00:00Z", "do": "lease", "ref": "l1"}], "can not be played: KeyError"),
    ],
)
def test_a_broken_scenario_fails_alone_and_says_what_is_wrong(
    events: list[dict[str, str]], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = _copy(tmp_path, input={"events": events})
    assert main([str(folder), str(HOLDING)], as_json=False) == 1
    shown, closing = capsys.readouterr().out.splitlines()
    assert said in shown
    assert closing == "1 passed, 1 failed"


def test_a_folder_without_scenarios_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="holds no scenario"):
        main([str(tmp_path)], as_json=False)


def test_a_folder_of_scenarios_is_played_in_order_of_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("b", "a"):
        shutil.copytree(HOLDING, tmp_path / name)
    assert main([str(tmp_path)], as_json=True) == 0
    *lines, closing = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["scenario"] for line in lines] == ["a", "b"]
    assert closing == "2 passed, 0 failed"


@pytest.mark.parametrize(
    ("text", "zone", "expected"),
    [
        ("2025-03-28T02:30:00", "Europe/Berlin", datetime(2025, 3, 28, 1, 30, tzinfo=UTC)),
        ("2025-03-30T02:30:00", "Europe/Berlin", datetime(2025, 3, 30, 1, 0, tzinfo=UTC)),
        ("2025-10-26T02:30:00", "Europe/Berlin", datetime(2025, 10, 26, 0, 30, tzinfo=UTC)),
        ("2025-10-05T02:15:00", "Australia/Lord_Howe", datetime(2025, 10, 4, 15, 30, tzinfo=UTC)),
    ],
)
def test_a_local_time_the_clocks_skip_is_the_first_instant_after_the_gap(
    text: str, zone: str, expected: datetime
) -> None:
    assert local(text, zone) == expected


def test_dots_at_line_starts_are_doubled_and_the_end_is_a_dot_alone() -> None:
    assert dialogue.stuffed(b"A: b\r\n\r\n.x\r\n..\r\n") == b"A: b\r\n\r\n..x\r\n...\r\n.\r\n"


def test_a_clock_that_is_stepped_shows_another_wall_time_and_the_same_steady_time() -> None:
    clock = edges.VirtualClock(datetime(2025, 3, 4, 10, tzinfo=UTC))
    clock.pass_until(datetime(2025, 3, 4, 11, tzinfo=UTC))
    clock.step(datetime(2025, 3, 1, tzinfo=UTC))
    clock.pass_until(datetime(2025, 2, 1, tzinfo=UTC))
    assert (clock.now(), clock.monotonic()) == (datetime(2025, 3, 1, tzinfo=UTC), 3600.0)


def test_numbers_drawn_from_one_seed_are_the_same_and_never_repeat() -> None:
    one, other = edges.seeded_draw("a"), edges.seeded_draw("a")
    drawn = [one() for _ in range(50)]
    assert drawn == [other() for _ in range(50)]
    assert len(set(drawn)) == 50


@pytest.fixture
def stage() -> Iterator[Stage]:
    db = Database.open("sqlite://", create=True)
    with asyncio.Runner() as runner:
        yield Stage(load(HOLDING), runner, db)
    db.close()


def test_an_error_of_the_product_is_recorded_and_the_process_lives(stage: Stage) -> None:
    assert stage.do(lambda: 1 // 0) is None
    assert (stage.running, stage.record.errors) == (
        True,
        ["ZeroDivisionError: integer division or modulo by zero"],
    )
    assert outcome.final(stage)["errors"] == 1


def test_a_group_of_errors_without_a_death_in_it_is_an_error(stage: Stage) -> None:
    def fail() -> None:
        raise ExceptionGroup("several", [ValueError("one")])

    stage.do(fail)
    assert (stage.running, len(stage.record.errors)) == (True, 1)


def test_a_dead_process_does_nothing_until_it_is_started(stage: Stage) -> None:
    stage.crash.arm("queued")
    assert stage.do(lambda: stage.crash("received")) is None
    stage.do(lambda: stage.crash("queued"))
    assert not stage.running
    assert stage.do(lambda: 1) is None
    stage.start()
    assert stage.do(lambda: 1) == 1


def _hand_over(relay: edges.ScriptedRelay, *recipients: str) -> dict[str, str]:
    envelope = Envelope(octets=b"Message-ID: <a@b>\r\n\r\n", return_path="", recipients=recipients)
    receipt = asyncio.run(relay.hand_over(envelope, note=lambda _point: None))
    return {name: str(result.outcome) for name, result in receipt.results.items()}


def test_a_fault_of_one_recipient_leaves_the_others_alone_and_ends_after_its_times() -> None:
    relay = edges.ScriptedRelay(edges.VirtualClock(datetime(2025, 3, 4, tzinfo=UTC)))
    relay.fail(edges.Refusal(kind="rcpt_reply", reply="550 5.1.1 no", recipient="b@x.example"), 1)
    assert _hand_over(relay, "a@x.example") == {"a@x.example": "sent"}
    assert _hand_over(relay, "a@x.example", "b@x.example") == {"a@x.example": "sent", "b@x.example": "failed"}
    assert _hand_over(relay, "b@x.example") == {"b@x.example": "sent"}
    assert [copy.accepted for copy in relay.wire] == [("a@x.example",), ("a@x.example",), ("b@x.example",)]


@pytest.mark.parametrize(
    ("kind", "reply", "outcome_", "on_the_wire"),
    [
        ("rcpt_reply", "451 4.7.1 later", "deferred", 0),
        ("data_reply", "554 5.7.1 never", "failed", 0),
        ("unreachable", "", "deferred", 0),
        ("lost_after_dot", "", "unknown", 1),
        ("rename", "<c@d>", "sent", 1),
    ],
)
def test_a_relay_fails_the_way_it_is_told_until_it_is_healed(
    kind: str, reply: str, outcome_: str, on_the_wire: int
) -> None:
    relay = edges.ScriptedRelay(edges.VirtualClock(datetime(2025, 3, 4, tzinfo=UTC)))
    relay.fail(edges.Refusal(kind=kind, reply=reply), None)
    assert _hand_over(relay, "a@x.example") == {"a@x.example": outcome_}
    assert len(relay.wire) == on_the_wire
    relay.heal()
    assert _hand_over(relay, "a@x.example") == {"a@x.example": "sent"}
