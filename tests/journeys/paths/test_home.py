"""The home keeps what belongs together: a database and the keyring its tokens were made with."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from answerback.errors import BadSettings, CorruptDatabase
from answerback.gateway import app
from answerback.gateway.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


def test_making_a_home_twice_keeps_what_is_there(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    assert app.initialise(settings)["keyring_made"] is True
    keys = settings.keyring_path.read_bytes()
    assert app.initialise(settings)["keyring_made"] is False
    assert settings.keyring_path.read_bytes() == keys


def test_a_database_without_its_keyring_gets_no_new_one(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home")
    app.initialise(settings)
    settings.keyring_path.unlink()
    with pytest.raises(BadSettings, match="restore it from your backup"):
        app.initialise(settings)
    assert not settings.keyring_path.exists()


def test_a_server_whose_database_is_taken_away_stops_and_says_so(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path / "home", smtp_in={"port": 0}, http={"port": 0})
    app.initialise(settings)

    async def serve() -> None:
        def ready(_listening: app.Listening) -> None:
            (settings.home / "answerback.db").unlink()

        async def nothing(scope: object, receive: object, send: object) -> None:
            """No HTTP here."""

        async with asyncio.timeout(20):
            await app.serve(settings, lambda _context, _changes: nothing, ready=ready)

    with pytest.raises(CorruptDatabase, match="removed or replaced while in use"):
        asyncio.run(serve())
