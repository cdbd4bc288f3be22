"""The command line as a person or a script meets it: what it loads, prints, refuses and documents."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from answerback.errors import BadRequest
from answerback.gateway.doors import cli, output
from answerback.gateway.doors.line import seconds
from answerback.gateway.settings import Settings, names
from answerback.gateway.verbs.table import VERBS

DOCS = Path(__file__).resolve().parents[3] / "docs" / "reference"
SETTINGS_PAGE = DOCS / "settings.md"
HEAVY = {
    "aiosmtpd",
    "aiosmtplib",
    "alembic",
    "apscheduler",
    "fastapi",
    "httpx2",
    "sqlalchemy",
    "uvicorn",
}


def _commands(group: Any = None, path: str = "") -> Iterator[tuple[str, Any]]:
    found: Any = group or typer.main.get_command(cli.app)
    for name, command in found.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield path + name, command


COMMANDS = dict(_commands())


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["ask", "--help"]], ids=" ".join)
def test_what_answers_at_once_loads_nothing_heavy(words: list[str]) -> None:
    code = (
        "import sys; from answerback.gateway.doors import cli; code = cli.run(sys.argv[1:]);"
        "print(code, *sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=30, check=True
    )
    exit_code, *loaded = done.stdout.splitlines()[-1].split()
    assert (exit_code, HEAVY & set(loaded)) == ("0", set())


def test_every_verb_has_its_command() -> None:
    assert {verb.name.replace(".", " ") for verb in VERBS} <= COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_takes_the_shared_options_and_says_what_it_does(name: str) -> None:
    command = COMMANDS[name]
    taken = {option for parameter in command.params for option in parameter.opts}
    assert taken >= {"--home", "--env", "--as", "--json"}
    assert command.help


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_documented_with_its_options(name: str) -> None:
    page = (DOCS / "cli.md").read_text()
    row = next((line for line in page.splitlines() if line.startswith(f"| `{name}")), "")
    assert row, f"{name} is not in docs/reference/cli.md"
    shared = {"--home", "--env", "--as", "--json"}
    options = {o for p in COMMANDS[name].params for o in p.opts if o.startswith("--")} - shared
    assert {option for option in options if option not in row} == set()


def test_every_exit_code_is_documented() -> None:
    from answerback import errors

    page = (DOCS / "cli.md").read_text()
    codes = {kind.exit_code for kind in vars(errors).values() if hasattr(kind, "exit_code")}
    assert {code for code in codes | {8, 9, 70, 141} if f"| {code} |" not in page} == set()


def test_json_may_stand_before_or_after_the_command(quiet: Any, run: Any) -> None:
    after, before = run(quiet, "agents", "list", "--json"), run(quiet, "--json", "agents", "list")
    assert before == after
    assert json.loads(after[1])["agents"][0]["name"] == "buyer"


def test_home_names_the_place(quiet: Any, tmp_path: Path) -> None:
    kept = {name: text for name, text in os.environ.items() if not name.startswith("ANSWERBACK_")}
    words = [sys.executable, "-m", "answerback", "agents", "list", "--json", "--home", str(quiet.home)]
    done = subprocess.run(
        words, env=kept, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True
    )
    assert json.loads(done.stdout)["agents"][0]["name"] == "buyer"


def test_people_get_tables(quiet: Any, run: Any) -> None:
    code, out, _ = run(quiet, "inboxes", "list")
    assert code == 0
    assert re.search(
        r"inbox id +address +agent id +external\ninb_\w+ +desk-live@shop.example +agt_\w+ +refuse", out
    )


def test_other_peoples_words_cannot_steer_the_terminal() -> None:
    assert output.clean("a\x1b[2Jb\u202ec\x9b\ud800\td\ne") == "a\\u001b[2Jb\\u202ec\\u009b\\ud800\td\ne"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("30", 30), ("30s", 30), ("1.5s", 1.5), ("5m", 300), ("1h", 3600), ("0s", 0), ("24h", 86400)],
)
def test_a_duration_is_seconds(text: str, expected: float) -> None:
    assert seconds(text) == expected


@pytest.mark.parametrize("text", ["", "soon", "-1s", "10bd", "25h", "1e3", "٣s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(BadRequest):
        seconds(text)


ASK = ("ask", "--to", "pat@supplier.example", "--subject", "Quote", "--text", "How much?", "--key", "po-1")
REFUSED = [
    ("a wrong address", (*ASK, "--to", "nobody"), {}, 2, "bad_address"),
    ("an unknown schedule", (*ASK, "--schedule", "never"), {}, 2, "unknown_schedule"),
    ("a past deadline", (*ASK, "--deadline", "2020-01-01T00:00:00Z"), {}, 2, "deadline_in_the_past"),
    ("a deadline after 30 days", (*ASK, "--deadline", "60bd"), {}, 2, "deadline_too_far"),
    ("no relay", ASK, {"ANSWERBACK_SMTP_OUT__HOST": ""}, 7, "no_relay"),
    ("an unknown option", (*ASK, "--colour", "red"), {}, 2, "usage"),
    ("an unknown command", ("aks",), {}, 2, "usage"),
    ("a missing option", ("ask", "--to", "pat@supplier.example"), {}, 2, "usage"),
    ("no text at all", ASK[:5] + ASK[7:], {}, 2, "bad_request"),
    (
        "a text file that is not there",
        (*ASK[:5], "--key", "k", "--text-file", "nowhere.txt"),
        {},
        2,
        "bad_request",
    ),
    ("an attachment that is not there", (*ASK, "--attach", "nowhere.pdf"), {}, 2, "bad_request"),
    ("an unknown agent", (*ASK, "--as", "seller"), {}, 3, "not_found"),
    ("an unknown inbox", (*ASK, "--inbox", "other@shop.example"), {}, 3, "not_found"),
    ("a bad wait", (*ASK, "--wait", "soon"), {}, 2, "bad_request"),
    ("an unknown wait", ("waits", "cancel", "wt_none"), {}, 3, "not_found"),
    ("an unknown review", ("reviews", "decide", "rev_none", "answer"), {}, 3, "not_found"),
    ("a lease that is over", ("mailbox", "ack", "ls_none"), {}, 5, "lease_expired"),
    ("an unknown scope", ("keys", "create", "k", "--scope", "everything"), {}, 2, "bad_request"),
    ("a bad setting", ("waits", "list"), {"ANSWERBACK_HTTP__PORT": "high"}, 7, "bad_settings"),
    ("no database", ("waits", "list"), {"ANSWERBACK_HOME": "nowhere"}, 7, "no_database"),
    (
        "nobody at the other end",
        ("waits", "list"),
        {"ANSWERBACK_CLIENT__URL": "http://127.0.0.1:9", "ANSWERBACK_CLIENT__KEY": "ab_live_x"},
        7,
        "unreachable",
    ),
    (
        "a door without a key",
        ("waits", "list"),
        {"ANSWERBACK_CLIENT__URL": "http://127.0.0.1:9"},
        4,
        "key_missing",
    ),
    ("an unknown setting", ("waits", "list"), {"ANSWERBACK_HTTP__PROT": "1"}, 7, "unknown_setting"),
    ("a date no clock reads", ("waits", "again", "wt_1", "--not-before", "10bd"), {}, 2, "bad_request"),
    (
        "what the key decides",
        ("waits", "list", "--as", "buyer"),
        {"ANSWERBACK_CLIENT__URL": "http://127.0.0.1:9"},
        2,
        "bad_request",
    ),
]


@pytest.mark.parametrize(
    ("words", "environment", "exit_code", "code"),
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_bad_input_is_one_sentence_a_stable_code_and_stores_nothing(
    quiet: Any, run: Any, words: tuple[str, ...], environment: dict[str, str], exit_code: int, code: str
) -> None:
    before = quiet.counts()
    found, out, err = run(quiet, *words, "--json", env=environment)
    assert (found, json.loads(out)["error"]["code"], err) == (exit_code, code, "")
    found, out, err = run(quiet, *words, env=environment)
    assert (found, out, err.count("\n")) == (exit_code, "", 1)
    assert err.startswith("answerback: ")
    assert "Traceback" not in err
    assert quiet.counts() == before


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("waits", "again", "wt_1", "--not-before", "10bd"),
            "not_before: write a date as 2030-12-24, or an ISO time with zone as 2030-12-24T12:00:00Z",
        ),
        (
            ("waits", "show", "wt_none"),
            "There is no wait wt_none here. `answerback waits list` shows what there is.",
        ),
        (
            (*ASK, "--deadline", "90bd"),
            (
                "The deadline 90bd is more than 30 days ahead. "
                "Give an earlier one and ask again when it has passed."
            ),
        ),
        (("waits", "list", "--limit", "0"), "limit: give a number of at least 1"),
        (
            ("agents", "add", "a b"),
            "name: use letters, digits, dot, _ and - only, the first a letter or digit",
        ),
    ],
)
def test_a_refusal_says_in_plain_words_what_to_write(
    quiet: Any, run: Any, words: tuple[str, ...], sentence: str
) -> None:
    assert run(quiet, *words)[2] == f"answerback: {sentence}\n"


def test_an_agent_without_an_inbox_is_told_how_to_get_one(quiet: Any, run: Any) -> None:
    quiet.do("agents.add", name="seller")
    code, out, err = run(quiet, *ASK, "--as", "seller")
    assert (code, out) == (3, "")
    assert (
        err == "answerback: Agent seller has no inbox. "
        "`answerback inboxes add ADDRESS --agent seller` adds one.\n"
    )


def test_a_wait_shows_the_key_and_whom_was_asked(quiet: Any, run: Any) -> None:
    wait_id = json.loads(run(quiet, *ASK, "--cc", "kim@supplier.example", "--json")[1])["wait_id"]
    shown = json.loads(run(quiet, "waits", "show", wait_id, "--json")[1])
    (listed,) = json.loads(run(quiet, "waits", "list", "--json")[1])["waits"]
    for view in (shown, listed):
        assert view["correlation_key"] == "po-1"
        assert view["recipients"] == ["pat@supplier.example", "kim@supplier.example"]


def test_a_mistyped_setting_is_told_with_those_there_are(quiet: Any, run: Any) -> None:
    _, _, err = run(quiet, "waits", "list", env={"ANSWERBACK_HTTP__PROT": "1"})
    assert err == "answerback: There is no setting http.prot. Known: http.host, http.port.\n"


@pytest.mark.parametrize("words", [("agents", "list"), ("simulate", "nowhere", "--json")])
def test_output_nobody_reads_is_no_failure_of_the_gateway(quiet: Any, words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "answerback", *words]
    with subprocess.Popen(
        command, env=quiet.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
        assert (process.wait(30), said) == (cli.OUTPUT_CLOSED, b"")


def test_every_setting_is_documented_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| `([^`]*)` \| .", SETTINGS_PAGE.read_text(), re.MULTILINE))
    assert rows == {name: _written(name) for name in names()}


def _written(name: str) -> str:
    section, _, inner = name.rpartition(".")
    model: Any = Settings.model_fields[section].annotation if section else Settings
    default = model.model_fields[inner].default
    return json.dumps("" if default is None else str(default) if isinstance(default, Path) else default)


def test_a_refused_key_is_one_sentence(served: Any, run: Any) -> None:
    environment = {"ANSWERBACK_CLIENT__URL": served.url, "ANSWERBACK_CLIENT__KEY": "ab_live_wrong"}
    code, out, err = run(served, "waits", "list", env=environment)
    assert (code, out, err.count("\n")) == (4, "", 1)


def test_several_agents_must_be_told_apart(quiet: Any, run: Any) -> None:
    quiet.do("agents.add", name="seller")
    code, out, _ = run(quiet, "mailbox", "read", "--json")
    error = json.loads(out)["error"]
    assert (code, error["details"]["field"]) == (2, "--as")
    assert "buyer, seller" in error["message"]
    assert run(quiet, "mailbox", "read", "--as", "seller")[0] == 0


def test_a_fault_of_ours_is_one_line_unless_the_trace_is_asked_for(
    quiet: Any, run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli, "app", lambda *_words, **_more: 1 // 0)
    code, out, err = run(quiet, "agents", "list")
    assert (code, out, err.count("\n")) == (cli.FAULT, "", 1)
    assert "ANSWERBACK_DEBUG=1" in err
    with pytest.raises(ZeroDivisionError):
        run(quiet, "agents", "list", env={"ANSWERBACK_DEBUG": "1"})
