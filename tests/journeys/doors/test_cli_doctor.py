"""What doctor finds, and what it says to do about it."""

from __future__ import annotations

import json
import socket
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from answerback.gateway import doctor


class Stopped:
    """A clock that shows one instant."""

    def __init__(self, instant: datetime) -> None:
        self._instant = instant

    def now(self) -> datetime:
        return self._instant

    def monotonic(self) -> float:
        return 0.0


def _states(report: Any) -> dict[str, str]:
    return {one["check"]: one["state"] for one in report["checks"]}


def _doctor(run: Any, place: Any, **environment: str) -> tuple[int, dict[str, str], Any]:
    code, out, _ = run(place, "doctor", "--json", env=environment)
    report = json.loads(out)
    return code, _states(report), report


GOOD = {
    "settings": "ok",
    "home": "ok",
    "keyring": "ok",
    "database": "ok",
    "clock": "ok",
    "inboxes": "look",
    "mail not processed": "ok",
    "mail that may have left": "ok",
    "mail the relay put off": "ok",
    "open reviews": "ok",
    "dead letters": "ok",
    "relay": "ok",
    "mail in": "ok",
    "HTTP": "ok",
}


def test_a_place_in_order_passes(quiet: Any, run: Any) -> None:
    assert _doctor(run, quiet)[:2] == (0, GOOD)


def test_a_place_whose_server_runs_passes(served: Any, run: Any) -> None:
    ports = {
        "ANSWERBACK_HTTP__PORT": str(served.announced["http_port"]),
        "ANSWERBACK_SMTP_IN__PORT": str(served.announced["smtp_port"]),
    }
    code, states, report = _doctor(run, served, **ports)
    assert (code, states["mail in"], states["HTTP"]) == (0, "ok", "ok")
    assert [one["says"].partition(" ")[2] for one in report["checks"][-2:]] == ["is served", "is served"]


def _open_home(home: Path) -> None:
    home.chmod(0o755)


def _open_keyring(home: Path) -> None:
    (home / "keyring.json").chmod(0o644)


def _no_keyring(home: Path) -> None:
    (home / "keyring.json").unlink()


def _no_database(home: Path) -> None:
    (home / "answerback.db").unlink()


def _no_inbox(home: Path) -> None:
    with sqlite3.connect(home / "answerback.db") as connection:
        connection.execute("DELETE FROM inboxes")
    connection.close()


def _scribble(home: Path) -> None:
    for path in home.glob("answerback.db-*"):
        path.unlink()
    path = home / "answerback.db"
    octets = bytearray(path.read_bytes())
    octets[100:] = b"\x55" * (len(octets) - 100)
    path.write_bytes(octets)


def _newer(home: Path) -> None:
    with sqlite3.connect(home / "answerback.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()


@pytest.mark.parametrize(
    ("harm", "check"),
    [
        (_open_home, "home"),
        (_open_keyring, "keyring"),
        (_no_keyring, "keyring"),
        (_no_database, "database"),
        (_scribble, "database"),
        (_newer, "database"),
        (_no_inbox, "inboxes"),
    ],
)
def test_what_is_wrong_is_found_and_says_what_to_do(
    quiet: Any, run: Any, harm: Callable[[Path], None], check: str
) -> None:
    harm(quiet.home)
    code, states, report = _doctor(run, quiet)
    assert (code, states[check]) == (1, "wrong")
    assert {one["check"] for one in report["checks"] if one["state"] == "wrong"} == {check}
    assert all(one["do"] for one in report["checks"] if one["state"] != "ok")


@pytest.mark.parametrize(
    ("setting", "text", "check"),
    [
        ("ANSWERBACK_SMTP_OUT__HOST", "", "relay"),
        ("ANSWERBACK_SMTP_OUT__PORT", "9", "relay"),
        ("ANSWERBACK_SMTP_OUT__SECURITY", "starttls", "relay"),
        ("ANSWERBACK_SMTP_OUT__SECURITY", "tls", "relay"),
        ("ANSWERBACK_HTTP__PORT", "high", "settings"),
        ("ANSWERBACK_HOME", "nowhere", "home"),
    ],
)
def test_a_wrong_setting_is_found(quiet: Any, run: Any, setting: str, text: str, check: str) -> None:
    code, states, _ = _doctor(run, quiet, **{setting: text})
    assert (code, states[check]) == (1, "wrong")


def test_a_relay_without_tls_says_what_to_set(quiet: Any, run: Any) -> None:
    report = _doctor(run, quiet, ANSWERBACK_SMTP_OUT__SECURITY="starttls")[2]
    (relay,) = (one for one in report["checks"] if one["check"] == "relay")
    assert (
        relay["do"] == 'It offers no TLS. Where it is trusted without, set `security = "none"` in [smtp_out].'
    )


def test_a_port_somebody_else_has_is_found(quiet: Any, run: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        code, states, _ = _doctor(run, quiet, ANSWERBACK_HTTP__PORT=str(other.getsockname()[1]))
    assert (code, states["HTTP"]) == (1, "wrong")


@pytest.mark.parametrize("instant", [datetime(1980, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)])
def test_a_clock_that_is_behind_is_found(quiet: Any, instant: datetime) -> None:
    report = doctor.examine(lambda: quiet.settings, serving=lambda _home: False, clock=Stopped(instant))
    assert _states(report)["clock"] == "wrong"


def test_people_get_a_list(quiet: Any, run: Any) -> None:
    code, out, _ = run(quiet, "doctor")
    assert (code, out.splitlines()[0]) == (
        0,
        f"ok     settings: read; the file is {quiet.home / 'answerback.toml'}",
    )
    assert "ok     HTTP: the system chooses the port" in out.splitlines()
