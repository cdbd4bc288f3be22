"""The demo as a newcomer starts it: its story, checked again from what the suppliers saw, and its end."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from answerback.client import Client

LONGEST = 50
SILENT, PROMPT, AWAY = "quotes@silent.example", "pat@prompt.example", "kim@away.example"
KEYS = {SILENT: "po-4711", PROMPT: "po-4712", AWAY: "po-4713"}


def _words(*more: str) -> list[str]:
    return [sys.executable, "-P", "-m", "answerback", "demo", "--json", *more]


def _surroundings(folder: Path) -> dict[str, str]:
    """No home, no terminal, settings and a proxy that must not matter."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": "",
        "TMPDIR": str(folder),
        "ANSWERBACK_HTTP__PORT": "1",
        "HTTP_PROXY": "http://127.0.0.1:9",
    }


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """One whole demo, in a path with blanks."""
    folder = tmp_path_factory.mktemp("a demo") / "with blanks"
    folder.mkdir()
    words = _words("--once", "--home", "its home")
    return subprocess.run(
        words,
        cwd=folder,
        env=_surroundings(folder),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )


@pytest.fixture(scope="module")
def story(played: subprocess.CompletedProcess[str]) -> Any:
    assert played.returncode == 0, played.stdout + played.stderr
    return json.loads(played.stdout)


def _mails(story: Any, who: str) -> list[Any]:
    mails: list[Any] = story["received"][who]
    return mails


def _told(story: Any, who: str) -> list[tuple[int, str, Any]]:
    """Number, type and data of every mailbox item about the question to one supplier."""
    conversation = story["asked"][KEYS[who]]["conversation_id"]
    items = [(item["sequence"], item["event"]["type"], item["event"]["data"]) for item in story["mailbox"]]
    return [one for one in items if one[2]["conversation_id"] == conversation]


def _parts(data: Any, kind: str) -> list[str]:
    """What the parts of a kind say between their markers."""
    found = []
    for part in data["parts"]:
        if part["kind"] == kind:
            marked = re.fullmatch(r"⟦(\w+) untrusted⟧\n(.*)\n⟦/\1⟧", part["text"], re.DOTALL)
            assert marked
            found.append(marked[2])
    return found


def test_the_demo_ends_well_and_says_why(story: Any) -> None:
    assert story["ok"] is True
    assert [check["holds"] for check in story["checks"]] == [True] * 7


def test_with_json_the_timeline_stays_off_standard_output(played: Any, story: Any) -> None:
    assert played.stdout.count("\n") == 1
    assert [line["what"] in played.stderr for line in story["timeline"]] == [True] * len(story["timeline"])
    assert [line["seconds"] for line in story["timeline"]] == sorted(
        line["seconds"] for line in story["timeline"]
    )


def test_the_silent_supplier_gets_the_question_and_two_nudges_in_its_thread(story: Any) -> None:
    mails = _mails(story, SILENT)
    first, second, third = (mail["message_id"] for mail in mails)
    assert [(mail["in_reply_to"], mail["references"]) for mail in mails] == [
        ("", []),
        (first, [first]),
        (second, [first, second]),
    ]
    assert len({first, second, third}) == 3
    assert all(re.fullmatch(r"<[^<>\s]+@gateway\.example>", one) for one in (first, second, third))
    assert [mail["subject"] for mail in mails] == ["Quote for 18 valves", *["Re: Quote for 18 valves"] * 2]
    assert [mail["recipients"] for mail in mails] == [[SILENT]] * 3


def test_every_mail_can_be_answered_and_reported_by_addresses_of_its_own(story: Any) -> None:
    mails = [mail for who in KEYS for mail in _mails(story, who)]
    addresses = [address for mail in mails for address in (mail["reply_to"], mail["return_path"])]
    assert all(re.fullmatch(r"buyer\+[a-z2-7]{39}@gateway\.example", address) for address in addresses)
    assert len(set(addresses)) == 2 * len(mails)


def test_silence_is_given_up_and_the_answer_after_that_still_comes(story: Any) -> None:
    told = _told(story, SILENT)
    assert [kind for _, kind, _ in told] == [
        "answerback.waitpoint.opened",
        "answerback.wait.nudged",
        "answerback.wait.nudged",
        "answerback.wait.abandoned",
        "answerback.waitpoint.resolved.unauthenticated",
    ]
    assert [data.get("nudge") or data.get("reason") or data.get("timing") for _, _, data in told] == [
        None,
        1,
        2,
        "no_reply",
        "after_abandon",
    ]


def test_every_wait_ends_as_replied_the_abandoned_one_too(story: Any) -> None:
    states = {wait["wait_id"]: wait["state"] for wait in story["waits"]}
    assert [states[story["asked"][key]["wait_id"]] for key in KEYS.values()] == ["replied"] * 3


def test_only_what_pat_wrote_is_the_reply(story: Any) -> None:
    (_, _, data) = _told(story, PROMPT)[-1]
    (sent,) = story["sent"][PROMPT]
    assert [text.split() for text in _parts(data, "reply")] == [" ".join(sent["words"]).split()]
    assert ["Prompt Pumps Ltd" in text for text in _parts(data, "signature")] == [True]
    assert ["wrote:" in text and "could you quote 40 pumps" in text for text in _parts(data, "quoted")] == [
        True
    ]
    assert {part["trust"] for part in data["parts"]} == {"untrusted"}
    assert (data["timing"], len(_mails(story, PROMPT))) == ("on_time", 1)


def test_out_of_office_does_not_close_the_wait_and_saves_a_nudge(story: Any) -> None:
    kinds = [kind.removeprefix("answerback.") for _, kind, _ in _told(story, AWAY)]
    assert sorted(kinds) == [
        "message.auto_replied",
        "wait.postponed",
        "waitpoint.opened",
        "waitpoint.resolved.unauthenticated",
    ]
    assert (kinds[0], kinds[-1]) == ("waitpoint.opened", "waitpoint.resolved.unauthenticated")
    assert [sent["kind"] for sent in story["sent"][AWAY]] == ["out_of_office", "reply"]
    assert len(_mails(story, AWAY)) == 1


def test_the_mailbox_is_numbered_without_a_gap(story: Any) -> None:
    numbers = [item["sequence"] for item in story["mailbox"]]
    assert numbers == list(range(1, 12))
    assert [item["event"]["sequence"] for item in story["mailbox"]] == [str(number) for number in numbers]


def test_every_part_is_a_process_of_its_own(story: Any) -> None:
    assert story["processes"].keys() == {*KEYS, "relay", "gateway"}
    assert len(set(story["processes"].values())) == 5


@contextmanager
def _playing(folder: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    demo = subprocess.Popen(
        _words(*more),
        cwd=folder,
        env=_surroundings(folder),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with demo:
        try:
            yield demo
        finally:
            demo.kill()


def _children(demo: subprocess.Popen[str]) -> dict[int, int]:
    """Watch every process the demo names when all have started: file descriptor → process id."""
    assert demo.stderr is not None
    watched: dict[int, int] = {}
    while len(watched) < 5 and (line := demo.stderr.readline()):
        if found := re.search(r"\(process (\d+)\)", line):
            watched[os.pidfd_open(int(found[1]))] = int(found[1])
    assert len(watched) == 5, line
    return watched


def _left(watched: dict[int, int]) -> list[int]:
    """Return those that do not end within some seconds."""
    left = dict(watched)
    while left:
        ended, _, _ = select.select(list(left), [], [], 15)
        if not ended:
            break
        for one in ended:
            del left[one]
    for one in watched:
        os.close(one)
    return list(left.values())


needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="needs Linux, to watch processes")


@needs_pidfd
@pytest.mark.prove
def test_killing_the_demo_leaves_no_process(tmp_path: Path) -> None:
    with _playing(tmp_path) as demo:
        watched = _children(demo)
        demo.kill()
        assert _left(watched) == []


@needs_pidfd
@pytest.mark.prove
def test_without_once_the_gateway_serves_on_until_ctrl_c_and_nothing_is_left(tmp_path: Path) -> None:
    with _playing(tmp_path, "--speed", "3") as demo:
        watched = _children(demo)
        assert demo.stdout is not None
        told = json.loads(demo.stdout.readline())
        with Client(told["serving"]["http_url"], told["key"]) as client:
            items: Any = client.read(0)["items"]
            assert [item["event"]["id"] for item in items] == [
                item["event"]["id"] for item in told["mailbox"]
            ]
        demo.send_signal(signal.SIGINT)
        demo.communicate(timeout=15)
        assert demo.returncode == (0 if told["ok"] else 1)
        assert (_left(watched), list(tmp_path.iterdir())) == ([], [])


@pytest.mark.parametrize(
    ("more", "field"), [(["--home", "."], "--home"), (["--speed", "9"], "--speed")], ids=["home", "speed"]
)
def test_what_the_demo_can_not_take_is_refused_at_once(tmp_path: Path, more: list[str], field: str) -> None:
    (tmp_path / "mine.txt").write_text("keep me")
    words = _words("--once", *more)
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env=_surroundings(tmp_path),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)["error"]["details"]["field"]) == (2, field)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
