"""A gateway that dies at a named point loses nothing, sends nothing twice, and says what it does not know."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from answerback.gateway.crash import POINTS
from tests.crash import laws
from tests.crash.kills import KILLS
from tests.crash.place import KILLED, Place, until

#: kills at each point in the full count
ROUNDS = 20
#: which points share a place; places run side by side, for while one waits for a clock another starts
LANES = (
    ("received", "before_send"),
    ("stored", "queued"),
    ("matched", "during_send"),
    ("after_send", "before_ack"),
)

NewPlace = Callable[[], Place]


def kill_in_turn(place: Place, points: tuple[str, ...], rounds: int = 1) -> list[str]:
    """Kill one gateway after the other at each point, check the laws after each, and return the points survived.

    Every start is that of a gateway which will die as soon as the place is armed, and not before.
    """
    file = f"@{place.armed}"
    survived: list[str] = []

    def die(where: str) -> None:
        place.armed.write_text(where)

    def again() -> None:
        place.armed.unlink()
        until(place.leases_over, "every lease is over")
        place.start(file)

    place.start(file)
    try:
        for number in range(rounds):
            for point in points:
                kill = KILLS[point][number % len(KILLS[point])]
                kill(place, f"{point}-{number}", die, again)
                laws.check(place)
                survived.append(point)
    finally:
        place.hang_up()
    assert place.stop() == 0
    return survived


@pytest.fixture(scope="module")
def lanes(new_place: NewPlace) -> Iterator[dict[str, Future[list[str]]]]:
    """One kill at each point, some side by side."""
    with ThreadPoolExecutor(len(LANES)) as pool:
        running = [(points, pool.submit(kill_in_turn, new_place(), points)) for points in LANES]
        yield {point: future for points, future in running for point in points}


@pytest.mark.timeout(240)
@pytest.mark.parametrize("point", POINTS)
def test_a_gateway_killed_at_a_named_point_goes_on_without_loss(
    point: str, lanes: dict[str, Future[list[str]]]
) -> None:
    assert point in lanes[point].result()


@pytest.mark.parametrize(
    ("asked", "passings", "code"),
    [
        ("stored", "received stored", KILLED),
        ("stored:2", "stored", 0),
        ("stored:2", "stored queued stored", KILLED),
        ("", "stored", 0),
        ("@nowhere", "stored", 0),
    ],
)
def test_a_process_dies_at_the_passing_asked_for_and_at_no_other(
    asked: str, passings: str, code: int
) -> None:
    code_text = (
        "import sys; from answerback.gateway.crash import from_environment as read; "
        "crash = read({'ANSWERBACK_CRASH_AT': sys.argv[1]}); [crash(point) for point in sys.argv[2].split()]"
    )
    assert (
        subprocess.run([sys.executable, "-P", "-c", code_text, asked, passings], check=False).returncode
        == code
    )


@pytest.mark.prove
@pytest.mark.timeout(600)
def test_twenty_kills_at_each_named_point_lose_nothing(new_place: NewPlace) -> None:
    start = time.monotonic()
    with ThreadPoolExecutor(len(LANES)) as pool:
        running = [pool.submit(kill_in_turn, new_place(), points, ROUNDS) for points in LANES]
        survived = [point for future in running for point in future.result()]
    print(f"{len(survived)} kills at {len(POINTS)} points in {time.monotonic() - start:.0f} s")
    assert sorted(survived) == sorted(POINTS * ROUNDS)
