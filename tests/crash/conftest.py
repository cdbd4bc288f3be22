"""Homes to crash: one is furnished, the others are copies of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.crash.place import Place, furnish

NewPlace = Callable[[], Place]


@pytest.fixture(scope="module")
def new_place(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[NewPlace]:
    """Return a place as new at every call; its processes end with the module."""
    folder = tmp_path_factory.mktemp("crash")
    cache = request.config.cache
    assert cache is not None
    model = furnish(folder / "model", cache.mkdir("bytecode"))
    places, numbers = [model], count(1)

    def make() -> Place:
        home = Path(shutil.copytree(model.home, folder / f"home-{next(numbers)}"))
        place = Place(home, model.bytecode, model.key, model.person, model.principal)
        places.append(place)
        place.start_receiver()
        return place

    yield make
    for place in places:
        place.close()
