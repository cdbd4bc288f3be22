"""Many asks, answers and acknowledgements at once against a gateway that dies and comes back."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from answerback.errors import LeaseExpired, Unreachable
from tests.crash.place import Place, Taken, address, reply_to, until

#: questions one load asks at most, and seconds between two
MOST, PAUSE = 1500, 0.04
#: which mail of a thread a supplier answers: the question, a nudge, none; some send their answer twice
ANSWERED = (0, 0, 0, 1, 1, 2, None, None)
TWICE = 0.2


@dataclass(slots=True)
class Load:
    """What runs against one place, each part in a thread of the test's process."""

    place: Place
    seed: int
    #: nothing more is asked
    enough: threading.Event = field(default_factory=threading.Event)
    #: everything ends
    over: threading.Event = field(default_factory=threading.Event)
    asked: list[str] = field(default_factory=list)
    #: numbers whose acknowledgement was confirmed
    acked: set[int] = field(default_factory=set)
    #: answers not taken with 250 yet, and all that were made
    waiting: list[tuple[bytes, str]] = field(default_factory=list)
    answers: int = 0
    seen: int = 0
    problems: list[BaseException] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run every part until the block ends."""
        parts = [
            threading.Thread(target=self._run, args=(part,)) for part in (self._ask, self._answer, self._read)
        ]
        for thread in parts:
            thread.start()
        try:
            yield
        finally:
            self.over.set()
            for thread in parts:
                thread.join()
        if self.problems:
            raise self.problems[0]

    def _run(self, part: Callable[[], None]) -> None:
        try:
            part()
        except BaseException as problem:  # noqa: BLE001 - a thread's problem is the test's
            self.problems.append(problem)
        finally:
            self.place.hang_up()

    def _ask(self) -> None:
        for number in range(MOST):
            key = f"load-{number}"
            while not self.enough.is_set() and not self.place.ask(key, "quick"):
                self.over.wait(PAUSE)
            if self.enough.is_set():
                return
            self.asked.append(key)
            self.over.wait(PAUSE)

    def _answer(self) -> None:
        while not self.over.is_set():
            self.answer()
            self.over.wait(PAUSE)

    def answer(self) -> None:
        """Make the answers to what came since the last look, and hand over what has no 250 yet."""
        log = self.place.log()
        for mail in log[self.seen :]:
            self._reply(mail, log)
        self.seen = len(log)
        self.waiting = [one for one in self.waiting if not self.place.deliver(*one)]

    def _reply(self, mail: Taken, log: list[Taken]) -> None:
        key = mail.recipients[0].partition("@")[0]
        dice = Random(f"{self.seed} {key}")
        thread = list(dict.fromkeys(one.rfc_id for one in log if address(key) in one.recipients))
        if dice.choice(ANSWERED) != thread.index(mail.rfc_id):
            return
        self.answers += 1
        answer = (reply_to(mail, key), mail.reply_to)
        self.waiting += [answer, answer] if dice.random() < TWICE else [answer]

    def _read(self) -> None:
        while not self.over.is_set():
            try:
                self._acknowledge()
            except (Unreachable, LeaseExpired):
                self.over.wait(PAUSE)

    def _acknowledge(self) -> None:
        lease = self.place.call("mailbox.lease", max=100, wait=1)
        numbers = {item["sequence"] for item in lease["items"]}
        assert not numbers & self.acked, "what was acknowledged came again"
        if numbers:
            self.place.call("mailbox.ack", lease_id=lease["lease_id"])
            self.acked |= numbers

    def finish(self) -> None:
        """Ask no more; wait until every answer is taken and the gateway is idle."""
        self.enough.set()
        until(lambda: self.seen == len(self.place.log()) and not self.waiting, "every answer is taken")
        self.place.settle()
        until(lambda: self.seen == len(self.place.log()) and not self.waiting, "the last answer is taken")
        self.place.settle()


def decide_all(place: Place) -> Counter[str]:
    """Decide every open review as a careful person does, and return how many there were by choice."""
    taken = {mail.rfc_id for mail in place.log()}
    made: Counter[str] = Counter()
    for review in place.reviews():
        choice = "discard"
        if review["reason"] == "submission_unknown":
            (mail,) = place.rows("SELECT rfc_id FROM messages WHERE id = ?", review["message_id"])
            choice = "was_sent" if mail["rfc_id"] in taken else "send_again"
        made[f"{review['reason']}: {choice}"] += 1
        place.decide(review["id"], choice)
    return made


def ends(place: Place) -> dict[str, int]:
    """Return how many waits there are by state."""
    rows = place.rows("SELECT state, count(*) AS many FROM waits GROUP BY state")
    return {row["state"]: row["many"] for row in rows}
