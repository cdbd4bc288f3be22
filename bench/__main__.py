"""Prints how fast the gateway is, each row as a ratio measured in one run."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROUNDS = 5
SENDERS, EACH, SIZE = 50, 10, 5000


@contextmanager
def started(*arguments: str, env: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Start a server process, give what its first line announces, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-P", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=env,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.stdin.close()
        process.terminate()
        process.wait(20)


def cli(env: dict[str, str], *words: str) -> Any:
    """Run one command of the product and return its JSON."""
    command = [sys.executable, "-P", "-m", "answerback", *words, "--json"]
    return json.loads(subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout)


def load(port: int) -> dict[str, float]:
    """Send one round from the senders' process."""
    command = [sys.executable, "-P", "-m", "bench.load", "--port", str(port)]
    command += ["--senders", str(SENDERS), "--each", str(EACH), "--size", str(SIZE)]
    result: dict[str, float] = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    if result["taken"] != SENDERS * EACH:
        raise SystemExit(f"only {result['taken']} of {SENDERS * EACH} mails were taken")
    return result


def delivered(home: Path) -> int:
    """Return how many mailbox items the gateway has written."""
    with sqlite3.connect(f"file:{home / 'answerback.db'}?mode=ro", uri=True, timeout=10) as db:
        return int(db.execute("SELECT count(*) FROM mailbox_items").fetchone()[0])


def seconds_until(home: Path, count: int) -> float:
    """Return how long it takes until `count` items are there, looking every 20 ms."""
    start = time.perf_counter()
    while delivered(home) < count:
        if time.perf_counter() - start > 120:
            raise SystemExit("mail is not delivered")
        time.sleep(0.02)
    return time.perf_counter() - start


def acceptance(home: Path, env: dict[str, str]) -> None:
    """Measure durable acceptance against the bare server in turn, and accept to mailbox."""
    ratios, rates, shares = [], [], []
    with (
        started("-m", "bench.bare", env=env) as bare,
        started("-m", "answerback", "serve", "--json", env=env) as gateway,
    ):
        for round_number in range(ROUNDS + 1):
            plain = load(bare["smtp_port"])
            before = delivered(home)
            kept = load(gateway["smtp_port"])
            after = seconds_until(home, before + SENDERS * EACH)
            if round_number == 0:
                continue  # warms up
            ratios.append(plain["seconds"] / kept["seconds"])
            rates.append(kept["taken"] / kept["seconds"])
            shares.append(kept["seconds"] / (kept["seconds"] + after))
    row("durable acceptance / bare aiosmtpd", ratios, "x")
    row("  mails kept per second", rates, "/s")
    row("accept to mailbox / acceptance alone", shares, "x")
    row(
        "  mails a second into the mailbox",
        [rate * share for rate, share in zip(rates, shares, strict=True)],
        "/s",
    )


def row(name: str, values: list[float], unit: str) -> None:
    """Print one row: median, least and most of the rounds."""
    middle = statistics.median(values)
    print(f"{name:42} {middle:8.2f} {unit:3} (min {min(values):.2f}, max {max(values):.2f}, n={len(values)})")


def main() -> None:
    """Run every row in a home of its own."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        env = {
            **os.environ,
            "PYTHONSAFEPATH": "1",
            "ANSWERBACK_HOME": str(home),
            "ANSWERBACK_SMTP_IN__PORT": "0",
            "ANSWERBACK_HTTP__PORT": "0",
        }
        cli(env, "init")
        cli(env, "agents", "add", "agent")
        cli(env, "inboxes", "add", "agent@gateway.example", "--agent", "agent", "--external", "all")
        print(f"{SENDERS} senders in their own process, {EACH} mails of {SIZE} octets each, {ROUNDS} rounds")
        acceptance(home, env)


if __name__ == "__main__":
    main()
