"""Starts gateways for the tests of the paths."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from answerback.gateway import app, keyring
from answerback.gateway.context import Caller, Context
from answerback.gateway.settings import Settings
from answerback.gateway.verbs import table
from answerback.store.session import Database
from tests.journeys.paths.gateway import LIVE, Gateway, KeepingRelay, MovableClock, Start


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Return a function that starts a gateway with one agent and one inbox."""
    databases: list[Database] = []

    def begin(
        crash: Callable[[str], None] = lambda _point: None, url: str = "sqlite://", **inbox: object
    ) -> Gateway:
        db = Database.open(url, create=True)
        databases.append(db)
        db.migrate()
        app.furnish(db, "default")
        clock, relay = MovableClock(), KeepingRelay()
        numbers = itertools.count(1)
        context = Context(
            db=db,
            keyring=keyring.generate(lambda size: sha256(b"test").digest()[:size]),
            settings=Settings(home=tmp_path),
            clock=clock,
            senders={"email": relay},
            owner="test",
            draw=lambda: int.from_bytes(sha256(str(next(numbers)).encode()).digest()[:8], "big"),
            crash=crash,
            wake=lambda _part: None,
        )
        scopes = frozenset(verb.scope for verb in table.VERBS)
        operator = Caller(scope=LIVE, principal="operator", agent_id="", scopes=scopes)
        gateway = Gateway(context=context, clock=clock, relay=relay, agent=operator, operator=operator)
        added = gateway.call("agents.add", name="buyer")
        gateway.call("inboxes.add", agent="buyer", address="buyer@gateway.example", **inbox)
        agent_id = str(added["agent_id"])
        gateway.agent = Caller(
            scope=LIVE, principal=f"agent:{agent_id}", agent_id=agent_id, scopes=scopes - {""}
        )
        return gateway

    yield begin
    for db in databases:
        db.close()
