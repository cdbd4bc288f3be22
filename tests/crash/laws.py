"""What must hold after any crash: compares the receiving server's own log with what the database says."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from tests.crash.place import Place

#: how often the receiving server may have a mail, by what became of its one copy
TIMES = {"sent": {1}, "withdrawn": {0}, "unknown": {0, 1}}


def check(place: Place) -> None:
    """Assert every law; the gateway is idle."""
    no_accepted_mail_is_lost(place)
    every_mail_left_as_its_state_says(place)
    every_due_nudge_ended_once(place)
    no_nudge_was_received_twice(place)
    mailboxes_have_no_gap(place)
    one_fact_is_one_row(place)
    the_database_is_whole(place)


def no_accepted_mail_is_lost(place: Place) -> None:
    """A mail that got its 250 is stored once, and processed or before a person."""
    rows = place.rows("SELECT identity, state FROM received")
    assert {row["state"] for row in rows} <= {"processed", "review"}
    stored = Counter(row["identity"] for row in rows)
    assert {identity: stored[identity] for identity in place.accepted} == dict.fromkeys(place.accepted, 1)
    assert set(stored.values()) <= {1}
    in_review = place.rows("SELECT id FROM received WHERE state = 'review'")
    reviewed = {row["received_id"] for row in place.rows("SELECT received_id FROM reviews")}
    assert {row["id"] for row in in_review} <= reviewed


def every_mail_left_as_its_state_says(place: Place) -> None:
    """`sent` is in the log once, `withdrawn` never; only a person who chose to send again makes two."""
    taken = Counter(mail.rfc_id for mail in place.log())
    again = {row["message_id"] for row in _decided(place, "send_again")}
    mails = outgoing(place)
    assert set(taken) <= {row["rfc_id"] for row in mails}, "the receiver has a mail we never stored"
    for row in mails:
        is_again = row["id"] in again and row["state"] == "sent"
        times = {1, 2} if is_again else TIMES[row["state"]]
        if row["text"] == "decided: was_sent":
            times = {1}
        assert taken[row["rfc_id"]] in times, dict(row)


def every_due_nudge_ended_once(place: Place) -> None:
    """Each nudge is one of sent, withdrawn, or unknown with a review open about it; numbers go 1, 2, …"""
    made: dict[str, list[int]] = {}
    in_review = {row["message_id"] for row in place.reviews()}
    for row in outgoing(place, "nudge"):
        made.setdefault(row["wait_id"], []).append(row["nudge_number"])
        assert (row["state"] == "unknown") <= (row["id"] in in_review), dict(row)
        assert row["copies"] == 1
    for wait in place.rows("SELECT id, details FROM waits"):
        nudges = json.loads(wait["details"])["nudges"]
        assert sorted(made.get(wait["id"], [])) == list(range(1, nudges + 1))


def no_nudge_was_received_twice(place: Place) -> None:
    """No wait's nudge number is twice in the receiving server's log, unless a person sent it again."""
    known = {row["rfc_id"]: row for row in outgoing(place, "nudge")}
    again = {row["message_id"] for row in _decided(place, "send_again")}
    seen = Counter(
        (row["wait_id"], row["nudge_number"], recipient)
        for mail in place.log()
        if (row := known.get(mail.rfc_id)) and row["id"] not in again
        for recipient in mail.recipients
    )
    assert set(seen.values()) <= {1}


def mailboxes_have_no_gap(place: Place) -> None:
    """The numbers of every mailbox are 1 to n."""
    for box in place.rows("SELECT principal, last_sequence FROM mailboxes"):
        rows = place.rows(
            "SELECT sequence FROM mailbox_items WHERE principal = ? ORDER BY 1", box["principal"]
        )
        assert [row["sequence"] for row in rows] == list(range(1, box["last_sequence"] + 1))


def one_fact_is_one_row(place: Place) -> None:
    """No mailbox has two rows about one inbound message, one end of a waitpoint, or one nudge."""
    facts: Counter[tuple[str, ...]] = Counter()
    for row in place.rows("SELECT principal, type, event_id, envelope FROM mailbox_items"):
        data = json.loads(row["envelope"])["data"]
        facts[row["principal"], "event", row["event_id"]] += 1
        kind = row["type"].removeprefix("answerback.")
        if kind.startswith(("message.received", "waitpoint.resolved")):
            facts[row["principal"], "inbound", data["message_id"]] += 1
        if kind.startswith(("waitpoint.resolved", "waitpoint.expired", "waitpoint.cancelled")):
            facts[row["principal"], "end", data["waitpoint_id"]] += 1
        if kind in ("wait.nudged", "waitpoint.opened"):
            facts[row["principal"], kind, data["message_id"]] += 1
    assert {fact: times for fact, times in facts.items() if times > 1} == {}
    processed = place.rows("SELECT message_id FROM received WHERE state = 'processed'")
    inbound = {fact[2] for fact in facts if fact[1] == "inbound"}
    assert {row["message_id"] for row in processed} == inbound


def the_database_is_whole(place: Place) -> None:
    """SQLite finds the file and its references whole."""
    assert [tuple(row) for row in place.rows("PRAGMA integrity_check")] == [("ok",)]
    assert place.rows("PRAGMA foreign_key_check") == []


def outgoing(place: Place, kind: str = "") -> list[Any]:
    """Return the outbound messages with the state of their copy."""
    return place.rows(
        "SELECT m.id, m.rfc_id, m.kind, m.wait_id, m.nudge_number, o.state, o.text, "
        "(SELECT count(*) FROM outbox c WHERE c.message_id = m.id) AS copies "
        "FROM messages m JOIN outbox o ON o.message_id = m.id "
        "WHERE m.direction = 'out' AND (? = '' OR m.kind = ?)",
        kind,
        kind,
    )


def _decided(place: Place, choice: str) -> list[Any]:
    return place.rows("SELECT message_id FROM reviews WHERE decision = ?", choice)
