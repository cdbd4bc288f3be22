"""The HTTP API of a server in another process: routes, shapes, long polls, official clients."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from typing import Any

import httpx2
import pytest

from answerback.gateway.doors.http_body import LIMIT
from answerback.gateway.verbs.table import VERBS, Verb

ROUTED = [verb for verb in VERBS if verb.path]
MAIL: dict[str, Any] = {"to": ["pat@supplier.example"], "text": "How much for 40 pumps?"}


def asking(key: str, **changes: object) -> dict[str, Any]:
    return {**MAIL, "subject": f"Quote {key}", "expect": {"key": key}, **changes}


@pytest.fixture(scope="session")
def http(served: Any) -> Any:
    """A plain client of the server with a key for everything an agent may do."""
    headers = {"Authorization": f"Bearer {served.key()}"}
    with httpx2.Client(base_url=served.url, headers=headers, trust_env=False, timeout=30) as client:
        yield client


def test_health_is_told_without_a_key(served: Any) -> None:
    response = httpx2.get(f"{served.url}/healthz", trust_env=False)
    assert (response.status_code, response.json()) == (200, {"status": "ok"})
    assert response.headers["x-request-id"].startswith("req_")


def test_the_description_names_every_route_with_its_request_and_scope(http: httpx2.Client) -> None:
    document = http.get("/openapi.json").json()
    described = {
        (method.upper(), path, operation["operationId"], operation["security"][0]["key"][0])
        for path, item in document["paths"].items()
        for method, operation in item.items()
    }
    assert described == {(verb.method, f"/v1{verb.path}", verb.name, verb.scope) for verb in ROUTED}
    schemas = document["components"]["schemas"]
    for verb in ROUTED:
        operation = document["paths"][f"/v1{verb.path}"][verb.method.lower()]
        named = {parameter["name"] for parameter in operation["parameters"]}
        if verb.writes:
            reference = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            named |= set(schemas[reference.rpartition("/")[2]]["properties"])
        assert named >= set(verb.request.model_fields), verb.name
        assert {"200", "401", "403", "422"} <= operation["responses"].keys()


def test_every_reference_of_the_description_leads_somewhere(http: httpx2.Client) -> None:
    text = http.get("/openapi.json").text
    document = json.loads(text)
    for part in text.split('"$ref": "#/')[1:]:
        found: Any = document
        for step in part.partition('"')[0].split("/"):
            found = found[step]


REFUSED: list[tuple[str, str, bytes, int, str]] = [
    ("GET", "/v1/nothing", b"", 404, "no_route"),
    ("GET", "/", b"", 404, "no_route"),
    ("PUT", "/v1/messages", b"", 405, "method_not_allowed"),
    ("GET", "/v1/messages", b"", 405, "method_not_allowed"),
    ("POST", "/v1/messages", b"{", 422, "bad_request"),
    ("POST", "/v1/messages", b"\xff", 422, "bad_request"),
    ("POST", "/v1/messages", b"[]", 422, "bad_request"),
    ("POST", "/v1/messages", b"", 422, "bad_request"),
    ("POST", "/v1/messages", b'{"to": NaN}', 422, "bad_request"),
    ("POST", "/v1/messages", b"[" * 100_000, 422, "bad_request"),
    (
        "POST",
        "/v1/messages",
        b'{"to": ["a@b.example"], "subject": "\\ud800", "text": "x"}',
        422,
        "bad_request",
    ),
    ("POST", "/v1/messages?to=a@b.example", b"{}", 422, "bad_request"),
    ("POST", "/v1/waits/wt_1/pause", b'{"id": "wt_2"}', 422, "bad_request"),
    ("POST", "/v1/waits/wt_1/pause", b'{"why": "x"}', 422, "bad_request"),
    ("POST", "/v1/waits/wt_1/pause", b"", 404, "not_found"),
    ("GET", "/v1/waits?limit=0", b"", 422, "bad_request"),
    ("GET", "/v1/waits?limit=1&limit=2", b"", 422, "bad_request"),
    ("GET", "/v1/waits?colour=red", b"", 422, "bad_request"),
    ("GET", "/v1/waits?wait=1", b"", 422, "bad_request"),
    ("GET", "/v1/mailbox?wait=61", b"", 422, "bad_request"),
    ("GET", "/v1/mailbox?wait=soon", b"", 422, "bad_request"),
    ("GET", "/v1/mailbox?wait=nan", b"", 422, "bad_request"),
    ("GET", "/v1/mailbox?since=100000000000000000000000", b"", 422, "bad_request"),
    ("GET", "/v1/waitpoints/no/such", b"", 404, "not_found"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: f"{case[0]} {case[1]} {case[2][:20]!r}")
def test_what_cannot_be_understood_is_refused_in_one_shape_and_stores_nothing(
    served: Any, http: httpx2.Client, case: tuple[str, str, bytes, int, str]
) -> None:
    method, path, body, status, code = case
    before = served.counts()
    response = http.request(method, path, content=body)
    answer = response.json()
    assert (response.status_code, answer["error"]["code"]) == (status, code)
    assert answer.keys() == {"error", "request_id"}
    assert answer["error"].keys() == {"code", "message", "details"}
    assert answer["request_id"] == response.headers["x-request-id"]
    assert served.counts() == before


def test_a_body_that_is_too_large_is_refused(http: httpx2.Client) -> None:
    response = http.post("/v1/messages", content=b" " * (LIMIT + 1))
    assert (response.status_code, response.json()["error"]["code"]) == (413, "too_large")


def test_what_was_given_is_not_in_the_refusal(http: httpx2.Client) -> None:
    response = http.post("/v1/messages", json={**MAIL, "subject": "x", "min_trust": "my secret"})
    assert response.status_code == 422
    assert "my secret" not in response.text


@pytest.mark.parametrize("verb", ROUTED, ids=lambda verb: verb.name)
def test_a_route_needs_exactly_its_scope(served: Any, keys: dict[str, str], verb: Verb) -> None:
    path = f"{served.url}/v1{verb.path}".format(id="none_1", key="none")

    def status(key: str | None) -> int:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        content = b"{}" if verb.writes else b""
        return httpx2.request(
            verb.method, path, headers=headers, content=content, trust_env=False
        ).status_code

    assert status(None) == 401
    assert status("ab_live_unknown") == 401
    assert status(keys[f"all but {verb.scope}"]) == 403
    assert status(keys[verb.scope]) in (200, 404, 409, 422)


@pytest.fixture(scope="session")
def keys(served: Any) -> dict[str, str]:
    """For every scope a key with that one alone, and one with all others."""
    scopes = sorted({verb.scope for verb in ROUTED})
    return {
        **{scope: served.key(scope) for scope in scopes},
        **{
            f"all but {scope}": served.key(*(other for other in scopes if other != scope)) for scope in scopes
        },
    }


def test_a_revoked_key_is_refused_with_the_same_words_as_an_unknown_one(served: Any) -> None:
    made = served.do("keys.create", name="short", scopes=["waits:read"], agent="buyer")

    def ask(key: object) -> httpx2.Response:
        return httpx2.get(
            f"{served.url}/v1/waits", headers={"Authorization": f"Bearer {key}"}, trust_env=False
        )

    assert ask(made["key"]).status_code == 200
    served.do("keys.revoke", id=made["key_id"])
    refused, unknown = ask(made["key"]), ask("ab_live_nobody")
    assert (refused.status_code, refused.json()["error"]) == (401, unknown.json()["error"])
    assert refused.headers["www-authenticate"] == "Bearer"


def test_a_key_of_one_environment_sees_nothing_of_the_other(served: Any, http: httpx2.Client) -> None:
    key = served.fresh("po")
    assert http.post("/v1/messages", json=asking(key)).status_code == 200
    other = {"Authorization": f"Bearer {served.key(environment='test')}"}
    assert http.get(f"/v1/waitpoints/{key}").status_code == 200
    assert http.get(f"/v1/waitpoints/{key}", headers=other).status_code == 404


def test_a_correlation_key_may_hold_a_slash(served: Any, http: httpx2.Client) -> None:
    key = served.fresh("po") + "/2026/7 %"
    assert http.post("/v1/messages", json=asking(key)).status_code == 200
    view = http.get(f"/v1/waitpoints/{key.replace('%', '%25').replace('/', '%2F').replace(' ', '%20')}")
    assert view.json()["correlation_key"] == key


def test_the_same_idempotency_key_has_one_effect_and_one_result(
    served: Any, http: httpx2.Client, relay: Any
) -> None:
    subject = served.fresh("Once")
    headers = {"Idempotency-Key": subject}
    mail = {**MAIL, "subject": subject}
    first = http.post("/v1/messages", json=mail, headers=headers)
    again = http.post("/v1/messages", json=mail, headers=headers)
    assert (again.status_code, again.json()) == (200, first.json())
    other = http.post("/v1/messages", json={**mail, "text": "Something else"}, headers=headers)
    assert (other.status_code, other.json()["error"]["code"]) == (409, "idempotency_mismatch")
    relay.wait_for(subject, seconds=10)
    last = http.post("/v1/messages", json={**MAIL, "subject": subject + " last"})
    assert last.status_code == 200
    relay.wait_for(subject + " last", seconds=10)
    assert len(relay.mails(subject)) == 1


def test_a_refusal_is_remembered_with_its_idempotency_key(served: Any, http: httpx2.Client) -> None:
    headers = {"Idempotency-Key": served.fresh("refused")}
    mail = {**MAIL, "subject": "x", "to": ["nobody"]}
    answers = [http.post("/v1/messages", json=mail, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [422, 422]
    assert answers[0].json()["error"] == answers[1].json()["error"]


def test_twenty_parallel_sends_with_one_key_have_one_effect(served: Any, http: httpx2.Client) -> None:
    subject = served.fresh("Race")
    before = served.counts()
    barrier, answers = threading.Barrier(20), []

    def send() -> None:
        barrier.wait(20)
        headers = {"Idempotency-Key": subject}
        answers.append(http.post("/v1/messages", json={**MAIL, "subject": subject}, headers=headers))

    threads = [threading.Thread(target=send) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert {answer.status_code for answer in answers} <= {200, 409}
    done = [answer.json() for answer in answers if answer.status_code == 200]
    assert done
    assert all(one == done[0] for one in done)
    assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 409} <= {
        "in_progress"
    }
    after = served.counts()
    assert (after["messages"], after["outbox"]) == (before["messages"] + 1, before["outbox"] + 1)


def test_a_long_poll_of_the_mailbox_returns_when_something_comes(served: Any, http: httpx2.Client) -> None:
    since = len(http.get("/v1/mailbox", params={"since": 0}).json()["items"])
    found: list[Any] = []

    def look() -> None:
        found.append(http.get("/v1/mailbox", params={"since": since, "wait": 25}).json())

    waiting = threading.Thread(target=look)
    waiting.start()
    key = served.fresh("poll")
    http.post("/v1/messages", json=asking(key))
    waiting.join(20)
    assert found, "the poll did not return before its time"
    assert found[0]["items"][0]["event"]["type"] == "answerback.waitpoint.opened"


def test_a_long_poll_for_a_lease_takes_nothing_until_something_comes(served: Any) -> None:
    name = served.fresh("agent")
    served.do("agents.add", name=name)
    served.do("inboxes.add", agent=name, address=f"{name}@shop.example")
    headers = {"Authorization": f"Bearer {served.key(agent=name)}", "Idempotency-Key": name}
    found: list[Any] = []
    with httpx2.Client(base_url=served.url, headers=headers, trust_env=False, timeout=30) as http:

        def take() -> None:
            found.append(http.post("/v1/mailbox/lease?wait=25", json={"max": 5}).json())

        waiting = threading.Thread(target=take)
        waiting.start()
        http.post("/v1/messages", json=asking(name), headers={"Idempotency-Key": name + "-ask"})
        waiting.join(20)
        again = http.post("/v1/mailbox/lease?wait=25", json={"max": 5}).json()
    assert found, "the poll did not return before its time"
    assert [item["sequence"] for item in found[0]["items"]] == [1]
    assert again == found[0]


def test_a_long_poll_that_finds_nothing_ends_empty(served: Any, http: httpx2.Client) -> None:
    response = http.get("/v1/mailbox", params={"since": 10**9, "wait": 0.3})
    assert (response.status_code, response.json()["items"]) == (200, [])


def test_a_long_poll_for_an_answer_returns_when_it_has_ended(served: Any, http: httpx2.Client) -> None:
    key = served.fresh("po")
    asked = http.post("/v1/messages", json=asking(key)).json()
    found: list[Any] = []
    waiting = threading.Thread(
        target=lambda: found.append(http.get(f"/v1/waitpoints/{key}", params={"wait": 25}).json())
    )
    waiting.start()
    http.post(f"/v1/waits/{asked['wait_id']}/cancel", json={"reason": "bought elsewhere"})
    waiting.join(20)
    assert [view["state"] for view in found] == ["cancelled"]


def test_curl_uses_the_api_as_the_readme_shows_it(served: Any, relay: Any) -> None:
    if not shutil.which("curl"):
        pytest.skip("needs curl")
    subject, key = served.fresh("By curl"), served.key("send", "waitpoints:read")
    body = json.dumps({**MAIL, "subject": subject, "expect": {"key": subject, "deadline": "10bd"}})

    def curl(*words: str) -> Any:
        command = ["curl", "--silent", "--noproxy", "*", "-H", f"Authorization: Bearer {key}", *words]
        return json.loads(subprocess.run(command, capture_output=True, check=True, timeout=30).stdout)

    asked = curl(f"{served.url}/v1/messages", "-d", body)
    assert asked["result"] == "queued"
    view = curl("-G", f"{served.url}/v1/waitpoints/{asked['waitpoint_id']}", "-d", "wait=0")
    assert (view["state"], view["correlation_key"]) == ("open", subject)
    assert relay.wait_for(subject, seconds=10)["To"] == "pat@supplier.example"
