"""What two processes do at the same instant ends as if one had come first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest

from answerback.errors import KeyInUse
from answerback.model import OutboxState
from answerback.store import inbound, mailboxes, outbox, waitpoints
from answerback.store.session import Database, Tx
from tests.store.samples import ASKED, BUYER, DAY, HOUR, LIVE, MAIL, NOW, RECIPIENTS, WAITPOINT, asked, people

#: what one of the two does: its transaction, its number, and where it waits after what it has read
Act = Callable[[Tx, int, Callable[[], None]], object]


@pytest.fixture
def race(url: str) -> Iterator[Callable[[Act], list[object]]]:
    """Runs an act in two databases of one URL, as two processes have them, and returns both outcomes in order.

    On SQLite both begin together, before BEGIN IMMEDIATE; on PostgreSQL both have read before one writes.
    """
    databases = (Database.open(url), Database.open(url))
    barrier = Barrier(2, timeout=20)
    sqlite = databases[0].dialect == "sqlite"

    def meet() -> None:
        barrier.wait()

    def no_meeting() -> None:
        """The other can not even begin."""

    def one(act: Act, number: int) -> object:
        if sqlite:
            meet()
        try:
            with databases[number].write() as tx:
                return act(tx, number, no_meeting if sqlite else meet)
        except KeyInUse as refused:
            return refused

    def run(act: Act) -> list[object]:
        with ThreadPoolExecutor(2) as threads:
            outcomes = [threads.submit(one, act, number) for number in range(2)]
            return [outcome.result() for outcome in outcomes]

    yield run
    for database in databases:
        database.close()


def test_of_two_waitpoints_on_one_key_one_is_opened_and_the_other_told(
    shared: Database, race: Callable[[Act], list[object]]
) -> None:
    with shared.write() as tx:
        asked(tx)

    def open_one(tx: Tx, number: int, read: Callable[[], None]) -> object:
        assert waitpoints.waitpoint_by_key(tx, LIVE, "reply", "po-2") is None or shared.dialect == "sqlite"
        read()
        waitpoints.add_waitpoint(tx, LIVE, replace(WAITPOINT, id=f"wp_race_{number}", correlation_key="po-2"))
        return None

    outcomes = race(open_one)
    with shared.read() as tx:
        winner = waitpoints.waitpoint_by_key(tx, LIVE, "reply", "po-2")
    assert winner is not None
    told = [outcome.details for outcome in outcomes if isinstance(outcome, KeyInUse)]
    assert told == [{"correlation_key": "po-2"}]
    assert outcomes.count(None) == 1


def test_of_two_deliveries_of_one_mail_one_is_kept(
    shared: Database, race: Callable[[Act], list[object]]
) -> None:
    with shared.write() as tx:
        people(tx)

    def keep_one(tx: Tx, number: int, read: Callable[[], None]) -> object:
        read()
        return inbound.keep(tx, replace(MAIL, id=f"rcv_race_{number}"))

    kept = [outcome for outcome in race(keep_one) if outcome is not None]
    with shared.read() as tx:
        assert inbound.received_before(tx, LIVE, "inb_1", NOW + DAY) == 1
        assert len(kept) == 1
        assert inbound.received(tx, LIVE, str(kept[0])) == replace(MAIL, id=str(kept[0]))


def test_two_readers_lease_no_item_twice(shared: Database, race: Callable[[Act], list[object]]) -> None:
    with shared.write() as tx:
        people(tx)
        for _ in range(10):
            mailboxes.append(tx, LIVE, BUYER, "evt", "t", NOW, str)

    def lease_some(tx: Tx, number: int, read: Callable[[], None]) -> object:
        read()
        leased, _ = mailboxes.lease(tx, LIVE, BUYER, f"lease_{number}", NOW + HOUR, NOW, 6, 5)
        return {item.sequence for item in leased}

    first, second = race(lease_some)
    assert isinstance(first, set)
    assert isinstance(second, set)
    assert not first & second
    # on PostgreSQL the second passes over what the first has locked, so it may get less than all the rest
    assert 6 <= len(first | second) <= 10
    with shared.read() as tx:
        holders = {item.sequence: item.lease_id for item in mailboxes.read(tx, LIVE, BUYER, 0, 100)}
    assert {sequence for sequence, holder in holders.items() if holder == "lease_0"} == first
    assert {sequence for sequence, holder in holders.items() if holder == "lease_1"} == second


def test_two_drains_hand_a_copy_over_once(shared: Database, race: Callable[[Act], list[object]]) -> None:
    with shared.write() as tx:
        asked(tx)

    def drain(tx: Tx, number: int, read: Callable[[], None]) -> object:
        seen = [copy.recipient for copy in outbox.copies(tx, LIVE, ASKED.id)]
        read()
        return outbox.hand_over(tx, LIVE, ASKED.id, seen, f"process_{number}", NOW + HOUR)

    claimed = race(drain)
    assert sorted(map(str, claimed)) == ["0", "2"]
    with shared.read() as tx:
        assert {copy.state for copy in outbox.copies(tx, LIVE, ASKED.id)} == {OutboxState.HANDING_OVER}


def test_drains_that_lock_find_no_message_another_is_taking(
    shared: Database, race: Callable[[Act], list[object]]
) -> None:
    with shared.write() as tx:
        asked(tx)

    def drain(tx: Tx, number: int, read: Callable[[], None]) -> object:
        found = outbox.ready(tx, NOW, 10)
        read()
        return [
            outbox.hand_over(tx, scope, id_, RECIPIENTS, f"p{number}", NOW + HOUR) for scope, id_ in found
        ]

    assert sorted(map(str, race(drain))) == ["[2]", "[]"]


def test_mailbox_numbers_have_no_gap_under_eight_writers(shared: Database) -> None:
    with shared.write() as tx:
        people(tx)

    def write_fifty(writer: int) -> None:
        for turn in range(50):
            with shared.write() as tx:
                mailboxes.append(tx, LIVE, BUYER, f"evt_{writer}_{turn}", "t", NOW, "envelope {}".format)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write_fifty, range(8)))
    with shared.read() as tx:
        items = mailboxes.read(tx, LIVE, BUYER, 0, 1000)
    assert [item.sequence for item in items] == list(range(1, 401))
    assert [item.envelope for item in items] == [f"envelope {number}" for number in range(1, 401)]
    assert len({item.event_id for item in items}) == 400


def test_a_rolled_back_append_leaves_no_gap(shared: Database) -> None:
    with shared.write() as tx:
        people(tx)

    def fail(sequence: int) -> str:
        raise ValueError(sequence)

    with pytest.raises(ValueError, match="1"), shared.write() as tx:
        mailboxes.append(tx, LIVE, BUYER, "evt_1", "t", NOW, fail)
    with shared.write() as tx:
        assert mailboxes.append(tx, LIVE, BUYER, "evt_2", "t", NOW, str) == 1
