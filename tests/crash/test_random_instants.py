"""A gateway killed at any instant, under load, loses no mail and nudges nobody twice."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random, SystemRandom

import pytest

from tests.crash import laws
from tests.crash.load import Load, decide_all, ends
from tests.crash.place import Place

#: mails in and out a life may see before its end, the seconds that may take, and seconds after them
MAILS, LIFE, AFTER = 30, 6.0, 0.15
#: seconds of a life that is ended while it starts
START = 3.0
#: how many kills fall into the start
EARLY = 0.2
#: places side by side, by the seconds of a hand-over's lease: over, or still in force at the next start
LEASES = (1, 4)

NewPlace = Callable[[], Place]


def kill_under_load(place: Place, seed: int, kills: int) -> str:
    """Kill the gateway so often, let it come to rest, check the laws, decide what is open, and check again."""
    dice, load = Random(seed), Load(place, seed)
    place.start()
    try:
        with load.running():
            _kill_often(place, dice, kills)
            load.finish()
            laws.check(place)
            decided = _decide_until_nothing_is_open(place, load)
            laws.check(place)
    finally:
        place.hang_up()
    assert place.stop() == 0
    _everybody_was_served(place, load)
    return (
        f"seed {seed}: {place.kills} kills, {len(load.asked)} asks, {len(place.log())} mails out, "
        f"{load.answers} answers, {len(load.acked)} items acknowledged, waits {ends(place)}, decided {dict(decided)}"
    )


def _kill_often(place: Place, dice: Random, kills: int) -> None:
    while place.kills < kills:
        _live(place, dice)
        if dice.random() < EARLY and place.kills < kills:
            place.start(announced=False)
            _die_after(place, dice.uniform(0.3, START))
        place.start()


def _decide_until_nothing_is_open(place: Place, load: Load) -> Counter[str]:
    decided: Counter[str] = Counter()
    while made := decide_all(place):
        decided += made
        load.finish()
    return decided


def _live(place: Place, dice: Random) -> None:
    """Let a drawn number of mails pass, then a drawn moment, then kill: so that every life has work to lose."""
    goal, end = _mails(place) + dice.randrange(MAILS), time.monotonic() + LIFE
    while _mails(place) < goal and time.monotonic() < end:
        _stays_alive(place, 0.02)
    _die_after(place, dice.uniform(0.0, AFTER))


def _mails(place: Place) -> int:
    return len(place.log()) + len(place.accepted)


def _die_after(place: Place, seconds: float) -> None:
    _stays_alive(place, seconds)
    place.kill()


def _stays_alive(place: Place, seconds: float) -> None:
    assert place.gateway is not None
    with suppress(subprocess.TimeoutExpired):
        code = place.gateway.wait(seconds)
        raise AssertionError(f"the gateway ended by itself with {code}")


def _everybody_was_served(place: Place, load: Load) -> None:
    asked = {row["correlation_key"] for row in place.rows("SELECT correlation_key FROM waitpoints")}
    assert set(load.asked) <= asked
    assert place.count("SELECT count(*) FROM waitpoints") == len(asked)
    assert set(ends(place)) <= {"replied", "abandoned"}
    answered = place.count("SELECT count(*) FROM received")
    assert answered == load.answers
    resolved = place.count("SELECT count(*) FROM resolutions")
    assert resolved + place.count("SELECT count(*) FROM reviews WHERE received_id IS NOT NULL") == answered
    assert ends(place).get("replied", 0) == resolved


def kill_at_random(new_place: NewPlace, kills: int) -> None:
    """Share the kills among places that run side by side, and print what was done."""
    seed, start = SystemRandom().randrange(1 << 30), time.monotonic()
    print(f"seed {seed}")
    places = [new_place() for _ in LEASES]
    for place, lease in zip(places, LEASES, strict=True):
        place.lease = lease
    with ThreadPoolExecutor(len(places)) as pool:
        share = kills // len(places)
        running = [pool.submit(kill_under_load, place, seed + n, share) for n, place in enumerate(places)]
        for future in running:
            print(future.result())
    print(f"{sum(place.kills for place in places)} kills in {time.monotonic() - start:.0f} s")
    assert sum(place.kills for place in places) >= kills


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_twenty_kills_at_random_instants_lose_nothing(new_place: NewPlace) -> None:
    kill_at_random(new_place, 20)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_kills_at_random_instants_lose_nothing(new_place: NewPlace) -> None:
    kill_at_random(new_place, 200)
