"""What is stored comes back as it was, on every database."""

from __future__ import annotations

from answerback.store import conversations, inbound, waitpoints, waits
from answerback.store.session import Database
from tests.store.samples import ANSWER, ASKED, CONVERSATION, LIVE, MAIL, WAIT, WAITPOINT, answered


def test_an_ask_comes_back_as_it_was_stored(db: Database) -> None:
    with db.write() as tx:
        answered(tx)
    with db.read() as tx:
        assert conversations.conversation(tx, LIVE, "cnv_1") == CONVERSATION
        assert conversations.messages(tx, LIVE, "cnv_1") == (ASKED, ANSWER)
        assert waitpoints.waitpoint(tx, LIVE, "wp_1") == WAITPOINT
        assert waits.wait(tx, LIVE, "wait_1") == WAIT
        assert inbound.received(tx, LIVE, "rcv_1") == MAIL
