"""What every path is handed: the database, the keyring, the clock and the senders."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING

from answerback.threading.tokens import public_id

if TYPE_CHECKING:
    from answerback.channels.base import Sender
    from answerback.gateway.clock import Clock
    from answerback.gateway.crash import Crash
    from answerback.gateway.keyring import Keyring
    from answerback.gateway.settings import Settings
    from answerback.model import Scope
    from answerback.store.session import Database, Tx


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One running gateway's parts, wired once in `app` (or by `simulate`, or by a test)."""

    db: Database
    keyring: Keyring
    settings: Settings
    clock: Clock
    #: outgoing edges by channel; a missing one means nothing can be sent there
    senders: Mapping[str, Sender]
    #: names this process in leases
    owner: str
    #: returns a fresh random 64-bit number
    draw: Callable[[], int]
    #: dies at a named point when a test asks for it
    crash: Crash
    #: called after a commit that made work: "received", "outbox", "timers", "mailbox"
    wake: Callable[[str], None]
    #: the private key outgoing mail is signed with; empty leaves it unsigned
    dkim_key: bytes = field(default=b"", repr=False)
    #: held by the one thread of this process that processes stored mail
    processing: Lock = field(default_factory=Lock, repr=False, compare=False)

    def work(self, tx: Tx, scope: Scope) -> Work:
        """Return a transaction's work, happening now."""
        return Work(tx, self, scope, self.clock.now())

    def new_id(self, prefix: str) -> str:
        """Return a fresh public id such as `msg_…`."""
        return public_id(prefix, self.draw())


@dataclass(frozen=True, slots=True)
class Work:
    """One transaction in one scope at one instant: what every change is made with."""

    tx: Tx
    context: Context
    scope: Scope
    #: the instant everything in this transaction happens at
    now: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who calls a verb: the scope of the key and the agent or operator it speaks for."""

    scope: Scope
    #: `agent:<id>`, `operator`
    principal: str
    #: "" for an operator's key
    agent_id: str
    scopes: frozenset[str]
    key_id: str = ""
