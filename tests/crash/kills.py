"""One kill at each named point: drives a gateway there, starts it again, and looks at what became of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from answerback.model import Json, Scope
from answerback.store import mailboxes
from answerback.store.session import Database
from tests.crash.laws import outgoing
from tests.crash.place import KILLED, Place, Taken, address, reply_to, until

LIVE = Scope(tenant="default", environment="live")
#: seconds of the lease that is not acknowledged (the door lends for 30 and more)
SHORT = 2


def received(place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]) -> None:
    """Killed with the mail not committed: nothing is kept, the sender has no 250 and sends it again."""
    octets = _answer(place, key)
    die("received")
    assert not place.deliver(*octets)
    assert place.await_death() == KILLED
    assert place.count("SELECT count(*) FROM received WHERE state = 'stored'") == 0
    again()
    _resolved(place, key, octets, resend=True)


def stored(place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]) -> None:
    """Killed with the mail committed and no 250 given: it is processed, and the second one is the same."""
    octets = _answer(place, key)
    die("stored")
    assert not place.deliver(*octets)
    assert place.await_death() == KILLED
    assert place.count("SELECT count(*) FROM received WHERE state = 'stored'") == 1
    again()
    _resolved(place, key, octets, resend=True)


def matched(place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]) -> None:
    """Killed with the answer matched and not committed: it is processed again, once."""
    octets = _answer(place, key)
    die("matched")
    accepted = place.deliver(*octets)  # the 250 races with the processing
    assert place.await_death() == KILLED
    assert _wait(place, key)["state"] == "waiting"
    again()
    _resolved(place, key, octets, resend=not accepted)


def queued_original(place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]) -> None:
    """Killed with the question not committed: nothing is stored, and the agent's retry asks once."""
    die("queued")
    assert place.ask(key, "slow") is None
    assert place.await_death() == KILLED
    assert place.rows("SELECT id FROM waitpoints WHERE correlation_key = ?", key) == []
    again()
    _asked(place, key, "slow")
    place.settle()
    assert len(place.taken_by(address(key))) == 1


def queued_nudge(place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]) -> None:
    """Killed with the nudge not committed: it is still due, and made once."""
    die("queued:2")
    _asked(place, key, "quick")
    assert place.await_death() == KILLED
    assert [mail.subject for mail in place.taken_by(address(key))] == [f"Quote {key}"]
    again()
    _nudged_to_the_end(place, key)


def before_send_original(
    place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]
) -> None:
    """Killed before `handing_over`: the mail goes out once and the wait never pauses."""
    die("before_send")
    place.ask(key, "slow")
    assert place.await_death() == KILLED
    assert place.taken_by(address(key)) == []
    again()
    place.settle()
    assert len(place.taken_by(address(key))) == 1
    assert _wait(place, key)["state"] == "waiting"
    assert _never_paused(place, key)


def before_send_nudge(place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]) -> None:
    """Killed before a nudge is `handing_over`: it goes out once and the wait never pauses."""
    die("before_send:2")
    _asked(place, key, "quick")
    assert place.await_death() == KILLED
    assert len(place.taken_by(address(key))) == 1
    again()
    _nudged_to_the_end(place, key)


def during_send_original(
    place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]
) -> None:
    """Killed after DATA was opened: unknown, nothing leaves by itself; `send_again` sends it once."""
    die("during_send")
    place.ask(key, "slow")
    assert place.await_death() == KILLED
    again()
    _paused(place, key, times=0)
    _decided(place, key, "send_again", times=1)


def during_send_nudge(place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]) -> None:
    """Killed while a nudge leaves: unknown; `send_again` sends that nudge and the wait goes on."""
    die("during_send:2")
    _asked(place, key, "quick")
    assert place.await_death() == KILLED
    again()
    _paused(place, key, times=0)
    _decided(place, key, "send_again", times=1)
    _nudged_to_the_end(place, key, paused=True)


def during_send_answered(
    place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]
) -> None:
    """Killed while a nudge leaves, and the answer comes first: `send_again` withdraws the nudge."""
    die("during_send:2")
    _asked(place, key, "quick")
    assert place.await_death() == KILLED
    again()
    _paused(place, key, times=0)
    (mail,) = place.taken_by(address(key))
    _resolved(place, key, (reply_to(mail, key), mail.reply_to), resend=True)
    (review,) = place.reviews()
    place.decide(review["id"], "send_again")
    place.settle()
    assert place.taken_by(address(key)) == [mail]
    assert [row["state"] for row in outgoing(place) if row["id"] == review["message_id"]] == ["withdrawn"]


def after_send_original(
    place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]
) -> None:
    """Killed after the server's 250: unknown, not sent again; `send_again` repeats the same Message-ID."""
    die("after_send")
    place.ask(key, "slow")
    assert place.await_death() == KILLED
    again()
    _paused(place, key, times=1)
    _decided(place, key, "send_again", times=2)


def after_send_nudge(place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]) -> None:
    """Killed after the server took the nudge: unknown; `was_sent` counts the step and the wait goes on."""
    die("after_send:2")
    _asked(place, key, "quick")
    assert place.await_death() == KILLED
    again()
    _paused(place, key, times=1)
    _decided(place, key, "was_sent", times=1)
    _nudged_to_the_end(place, key, paused=True)


def before_ack(place: Place, key: str, die: Callable[[str], None], again: Callable[[], None]) -> None:
    """Killed before the acknowledgement is stored: the items come again once the lease is over."""
    _resolved(place, key, _answer(place, key), resend=True)
    lease_id, numbers = _lease_shortly(place)
    die("before_ack")
    _ack_into_the_void(place, lease_id)
    assert place.await_death() == KILLED
    again()
    lent = "SELECT sequence FROM mailbox_items WHERE state = 'leased' AND lease_id = ? ORDER BY 1"
    assert [row["sequence"] for row in place.rows(lent, lease_id)] == numbers
    taken = _leased_again(place, set(numbers))
    assert place.call("mailbox.ack", lease_id=taken["lease_id"]) == {"acknowledged": len(taken["items"])}
    assert place.call("mailbox.read")["items"] == []


KILLS = {
    "received": (received,),
    "stored": (stored,),
    "matched": (matched,),
    "queued": (queued_nudge, queued_original),
    "before_send": (before_send_nudge, before_send_original),
    "during_send": (during_send_original, during_send_nudge, during_send_answered),
    "after_send": (after_send_nudge, after_send_original),
    "before_ack": (before_ack,),
}


def _asked(place: Place, key: str, schedule: str) -> None:
    until(lambda: place.ask(key, schedule), "the question is taken")


def _answer(place: Place, key: str) -> tuple[bytes, str]:
    """Ask, and return the supplier's answer and where it goes."""
    _asked(place, key, "slow")
    place.settle()
    (mail,) = place.taken_by(address(key))
    return reply_to(mail, key), mail.reply_to


def _resolved(place: Place, key: str, octets: tuple[bytes, str], *, resend: bool) -> None:
    if resend:
        assert place.deliver(*octets)
    place.settle()
    assert _wait(place, key)["state"] == "replied"
    view = place.call("waitpoints.show", key=key)
    assert (view["state"], view["resolution"]["timing"]) == ("resolved", "on_time")


def _wait(place: Place, key: str) -> Json:
    (row,) = place.rows(
        "SELECT w.* FROM waits w JOIN waitpoints p ON p.id = w.waitpoint_id WHERE p.correlation_key = ?", key
    )
    return dict(row)


def _never_paused(place: Place, key: str) -> bool:
    log = place.rows("SELECT event, after FROM wait_log WHERE wait_id = ?", _wait(place, key)["id"])
    return "paused" not in {row["after"] for row in log}


def _nudged_to_the_end(place: Place, key: str, *, paused: bool = False) -> None:
    """The question and two nudges were sent once each, then the wait was given up."""
    place.settle()
    mails: list[Taken] = place.taken_by(address(key))
    assert [mail.subject for mail in mails] == [f"Quote {key}", f"Re: Quote {key}", f"Re: Quote {key}"]
    assert [mail.in_reply_to for mail in mails] == ["", mails[0].rfc_id, mails[1].rfc_id]
    assert (_wait(place, key)["state"], _wait(place, key)["reason"]) == ("abandoned", "no_reply")
    assert _never_paused(place, key) != paused


def _paused(place: Place, key: str, *, times: int) -> None:
    """The last mail is unknown, its wait paused with one review, and the receiver has it `times` times."""
    until(lambda: _wait(place, key)["state"] == "paused", "the wait is paused")
    place.settle()
    wait = _wait(place, key)
    assert (wait["state"], wait["reason"]) == ("paused", "submission_unknown")
    (mail,) = [row for row in outgoing(place) if row["state"] == "unknown"]
    (review,) = place.reviews()
    assert (review["reason"], review["message_id"]) == ("submission_unknown", mail["id"])
    assert [one.rfc_id for one in place.log()].count(mail["rfc_id"]) == times


def _decided(place: Place, key: str, choice: str, *, times: int) -> None:
    """Decide the one open review; its mail is then `times` times at the receiver, with one Message-ID."""
    (review,) = place.reviews()
    before = _wait(place, key)
    place.decide(review["id"], choice)
    (mail,) = [row for row in outgoing(place) if row["id"] == review["message_id"]]

    def is_sent() -> bool:
        return [row["state"] for row in outgoing(place) if row["id"] == mail["id"]] == ["sent"]

    until(is_sent, "the copy is sent")
    assert [one.rfc_id for one in place.log()].count(mail["rfc_id"]) == times
    assert place.reviews() == []
    assert _wait(place, key)["state"] != "paused"
    assert _wait(place, key)["id"] == before["id"]


def _lease_shortly(place: Place) -> tuple[str, list[int]]:
    """Lease everything for two seconds, by the store: no door lends for so short."""
    now = datetime.now(UTC)
    db = Database.open(f"sqlite:///{place.home / 'answerback.db'}")
    try:
        with db.write() as tx:
            until_then = now + timedelta(seconds=SHORT)
            lease_id = f"ls_short_{place.kills}"
            items, _ = mailboxes.lease(tx, LIVE, place.principal, lease_id, until_then, now, 100, 5)
    finally:
        db.close()
    return lease_id, [item.sequence for item in items]


def _ack_into_the_void(place: Place, lease_id: str) -> None:
    from answerback.errors import Unreachable

    try:
        place.call("mailbox.ack", lease_id=lease_id)
    except Unreachable:
        return
    raise AssertionError("the gateway answered an acknowledgement it died of")


def _leased_again(place: Place, numbers: set[int]) -> dict[str, Any]:
    """Return the lease that has all the items again, asked for as an agent polls."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        taken = place.call("mailbox.lease", max=100, wait=1)
        found: set[int] = {item["sequence"] for item in taken["items"]}
        if found:
            assert found >= numbers
            return taken
    raise AssertionError("the lease never came again")
