"""Both doors of the command line, and the server beside it."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from answerback.gateway.doors import lock

TO = ("--to", "pat@supplier.example")
#: other tests add agents to the place they share
AS = ("--as", "buyer")


def asking(key: str, *more: str) -> tuple[str, ...]:
    return ("ask", *TO, "--subject", f"Quote {key}", "--text", "How much for 40 pumps?", "--key", key, *more)


def test_a_question_asked_beside_a_running_server_leaves_at_once(served: Any, run: Any, relay: Any) -> None:
    key = served.fresh("beside")
    code, out, _ = run(served, *asking(key), *AS, "--json")
    assert (code, json.loads(out)["result"], "note" in json.loads(out)) == (0, "queued", False)
    mail = relay.wait_for(f"Quote {key}", seconds=5)
    assert (mail["To"], mail["From"]) == ("pat@supplier.example", "desk-live@shop.example")


def test_the_log_is_json_without_addresses_or_words(served: Any, run: Any, relay: Any) -> None:
    key = served.fresh("logged")
    run(served, *asking(key), *AS)
    relay.wait_for(f"Quote {key}", seconds=5)
    text = (served.home / "server.log").read_text()
    events = [json.loads(line) for line in text.splitlines()]
    assert {"action", "event", "level", "timestamp"} <= events[0].keys()
    assert [word for word in ("pat@", "desk-live@", key, "pumps") if word in text] == []


def test_without_a_server_a_question_is_queued_and_says_so(quiet: Any, run: Any) -> None:
    code, out, _ = run(quiet, *asking("po-1"))
    assert (code, out.splitlines()[0]) == (0, "queued, no server running")
    code, out, _ = run(quiet, *asking("po-1"), "--json")
    asked = json.loads(out)
    assert (code, asked["result"], asked["note"]) == (0, "queued", "no server running")
    assert quiet.counts()["waitpoints"] == 1


def test_without_a_server_waiting_is_refused_and_the_question_stays_queued(quiet: Any, run: Any) -> None:
    code, out, _ = run(quiet, *asking("po-1", "--wait", "30s"), "--json")
    error = json.loads(out)["error"]
    assert (code, error["code"], error["details"]["correlation_key"]) == (7, "no_server", "po-1")
    assert (quiet.counts()["waitpoints"], quiet.counts()["outbox"]) == (1, 1)
    assert run(quiet, "wait", "po-1", "--wait", "30s")[0] == 7


def test_an_ended_question_needs_no_server(quiet: Any, run: Any) -> None:
    asked = json.loads(run(quiet, *asking("po-1"), "--json")[1])
    run(quiet, "waits", "cancel", asked["wait_id"])
    code, out, _ = run(quiet, "wait", "po-1", "--json")
    assert (code, json.loads(out)["state"]) == (9, "cancelled")


@pytest.mark.parametrize("over_http", [False, True], ids=["database", "http"])
def test_waiting_ends_in_time_without_an_answer(served: Any, run: Any, over_http: bool) -> None:
    key = served.fresh("slow")
    who, environment = ((), _http(served)) if over_http else (AS, {})
    code, out, _ = run(served, *asking(key, "--wait", "0.3s"), *who, "--json", env=environment)
    assert (code, json.loads(out)["state"]) == (8, "open")


def test_files_and_standard_input_are_sent(quiet: Any, run: Any, tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("Grüße")
    (tmp_path / "page.html").write_text("<p>Grüße</p>")
    (tmp_path / "plan.pdf").write_bytes(b"%PDF")
    files = (
        "--text-file",
        tmp_path / "text.txt",
        "--html-file",
        tmp_path / "page.html",
        "--attach",
        tmp_path / "plan.pdf",
    )
    code, out, _ = run(quiet, "send", *TO, "--subject", "Files", *map(str, files), "--json")
    assert code == 0
    shown = json.loads(run(quiet, "messages", "show", json.loads(out)["message_id"], "--json")[1])
    assert shown["text"] == "Grüße"


def test_a_second_server_on_the_same_home_is_refused(served: Any, run: Any) -> None:
    code, out, err = run(served, "serve")
    assert (code, out) == (7, "")
    assert (
        err
        == f"answerback: A server is running on {served.home} already. Stop that one first, or give this one another home with --home.\n"
    )


def test_a_server_that_is_told_to_stop_answers_its_long_polls_and_ends_with_0(
    quiet: Any, stopping: Callable[[], int]
) -> None:
    request = f"GET /v1/mailbox?wait=25 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {quiet.key()}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", quiet.announced["http_port"]), timeout=20) as poll:
        poll.sendall(request.encode())
        # Answered later than the poll was read, so the poll is open by then.
        assert httpx2.get(f"{quiet.url}/healthz", trust_env=False).status_code == 200
        assert stopping() == 0
        assert poll.recv(15) == b"HTTP/1.1 200 OK"


def test_a_server_refuses_a_home_that_is_not_there(run: Any, quiet: Any) -> None:
    code, out, _ = run(quiet, "serve", "--json", env={"ANSWERBACK_HOME": "nowhere"})
    assert (code, json.loads(out)["error"]["code"]) == (7, "no_database")


def test_the_lock_is_free_again_when_its_holder_has_gone(tmp_path: Path) -> None:
    assert not lock.is_held(tmp_path)
    with lock.held(tmp_path):
        assert lock.is_held(tmp_path)
    assert not lock.is_held(tmp_path)


def test_a_server_whose_port_is_taken_says_so(quiet: Any, served: Any) -> None:
    environment = quiet.environment | {"ANSWERBACK_HTTP__PORT": str(served.announced["http_port"])}
    words = [sys.executable, "-m", "answerback", "serve"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (7, "")
    assert "http.port" in done.stderr.splitlines()[-1]


def _http(place: Any) -> dict[str, str]:
    return {"ANSWERBACK_CLIENT__URL": place.url, "ANSWERBACK_CLIENT__KEY": place.key()}


def _plain(out: str) -> Any:
    """Return what was printed without what differs between two runs: ids, numbers, times, names."""
    out = re.sub(r"\b(msg|cnv|wp|wt|ls|evt|rev|inb|agt|key)_[A-Za-z0-9]+", r"\1_", out)
    out = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)", "TIME", out)
    out = re.sub(r"(twin|only)-\d+", "NAME", out)
    out = re.sub(r"sha256:[0-9a-f]{64}|k\d*:[0-9a-f]{128}|[0-9a-f]{32,}", "HASH", out)
    return json.loads(re.sub(r'"signature": *"[^"]*"|\\"signature\\": *\\"[^"]*\\"', '"signature": ""', out))


Carry = Callable[..., tuple[int, Any]]


#: what both doors must show, in order; a word in braces is a value of an earlier result
STORY = [
    (*asking("{key}"), "--deadline", "10bd"),
    ("send", *TO, "--subject", "By the way", "--text", "Hello"),
    ("messages", "show", "{message_id}"),
    ("conversations", "show", "{conversation_id}"),
    ("waitpoints", "show", "{key}"),
    ("wait", "{key}", "--wait", "0s"),
    ("mailbox", "read", "--since", "0"),
    ("mailbox", "lease", "--max", "1"),
    ("mailbox", "extend", "{lease_id}", "--seconds", "60"),
    ("mailbox", "nack", "{lease_id}"),
    ("mailbox", "lease", "--seconds", "60"),
    ("mailbox", "ack", "{lease_id}", "1"),
    ("mailbox", "ack", "ls_none"),
    ("waits", "list"),
    ("waits", "show", "{wait_id}"),
    ("waits", "pause", "{wait_id}"),
    ("waits", "resume", "{wait_id}"),
    ("waits", "again", "{wait_id}", "--not-before", "2099-01-01"),
    ("waits", "cancel", "{wait_id}", "--reason", "bought elsewhere"),
    ("waits", "again", "{wait_id}", "--not-before", "2020-01-01"),
    ("waitpoints", "open", "{conversation_id}", "--key", "{key}-b"),
]


def _until_sent(place: Any, message_id: str) -> None:
    """Return when the relay has the message and the server has noted it: what is shown stays as it is then."""
    for _ in range(400):
        (copy,) = place.do("messages.show", id=message_id)["delivery"]
        if copy["status"] == "sent":
            return
    pytest.fail(f"{message_id} was not sent")


def _tell(place: Any, carry: Carry, key: str) -> list[tuple[str, int, Any]]:
    known: dict[str, str] = {"key": key}
    told = []
    for words in STORY:
        spoken = [word.format(**known) for word in words]
        code, shown = carry(*spoken)
        if shown.get("result") == "queued" and words[0] in ("ask", "send"):
            _until_sent(place, shown["message_id"])
        for name in ("message_id", "conversation_id", "wait_id", "lease_id"):
            if isinstance(shown.get(name), str):
                known.setdefault(name, shown[name])
        if isinstance(shown.get("lease_id"), str):
            known["lease_id"] = shown["lease_id"]
        told.append((" ".join(words), code, _plain(json.dumps(shown))))
    return told


def test_every_agent_verb_does_the_same_through_both_doors(served: Any, run: Any) -> None:
    stories = []
    for over_http in (False, True):
        name = served.fresh("twin")
        served.do("agents.add", name=name)
        served.do("inboxes.add", agent=name, address=f"{name}@shop.example")
        environment = _http(served) | {"ANSWERBACK_CLIENT__KEY": served.key(agent=name)}

        def carry(*words: str, over_http: bool = over_http, name: str = name, env: Any = environment) -> Any:
            shared = ("--json",) if over_http else ("--as", name, "--json")
            code, out, _ = run(served, *words, *shared, env=env if over_http else {})
            return code, json.loads(out)

        stories.append(_tell(served, carry, served.fresh("twin")))
    assert stories[0] == stories[1]
    assert {words.split(" {")[0].split(" --")[0] for words, code, _ in stories[0] if code == 0} >= {
        "ask", "send", "messages show", "conversations show", "waitpoints show", "mailbox read", "mailbox lease",
        "mailbox extend", "mailbox nack", "mailbox ack", "waits list", "waits show", "waits pause", "waits resume",
        "waits cancel",
    }  # fmt: skip


def test_reviews_look_the_same_through_both_doors_and_no_agents_key_opens_them(served: Any, run: Any) -> None:
    operator = _http(served) | {"ANSWERBACK_CLIENT__KEY": served.key("reviews:read", "reviews:decide")}
    agent = _http(served)
    for words in (("list",), ("show", "rev_none"), ("decide", "rev_none", "answer")):
        here = run(served, "reviews", *words, "--json")
        over_http = run(served, "reviews", *words, "--json", env=operator)
        assert (here[0], _plain(here[1])) == (over_http[0], _plain(over_http[1]))
        code, out, _ = run(served, "reviews", *words, "--json", env=agent)
        assert (code, json.loads(out)["error"]["code"]) == (4, "scope_missing")
