"""What every channel offers to the way out: handing an envelope over to somebody else's server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from answerback.model import Envelope, Receipt

#: entry-point group under which other people's packages register their channels
ENTRY_POINTS: Final = "answerback.channels"

#: told the names of the points a hand-over passes, e.g. `during_send`
Note = Callable[[str], None]


class Sender(Protocol):
    """Hands envelopes over, each at most once per call; retrying is the caller's decision."""

    async def hand_over(self, envelope: Envelope, *, note: Note) -> Receipt:
        """Return one result for every recipient of the envelope; foreign failures are results, not errors.

        `note("during_send")` is called once, after the server took sender and recipients and right before
        content is sent. An error raised by `note` ends the hand-over and is passed on.
        """
        ...

    async def close(self) -> None:
        """Let running hand-overs end and give every connection back."""
        ...
