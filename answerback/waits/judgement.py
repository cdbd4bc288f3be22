"""What a message that joined a conversation means for its waitpoints.

Read from the top, the first line that fits decides:

| the message                                                     | then                                 |
|-----------------------------------------------------------------|--------------------------------------|
| is called spam or is blocked                                    | a person decides                     |
| is an automatic answer, an absence or a challenge               | the sender is away; nothing closes   |
| is a receipt, a calendar answer or an invitation                | it is delivered, typed; none closes  |
| is a forward or a reaction                                      | a person decides                     |
| has no words of a person that could be read                     | a person decides                     |
| came through a list, or has not exactly one author              | a person decides                     |
| names a closed waitpoint, or none, while one is open            | a person decides                     |
| stands before several open waitpoints                           | a person decides                     |
| comes from somebody who is no responder                         | a person decides                     |
| came when the waitpoint was closed, or after its deadline       | it is delivered with its timing      |
| is less proven than the waitpoint or its exposure asks          | a person decides                     |
| else                                                            | it answers the waitpoint             |

A conversation without any waitpoint takes every message of a person as delivered.
"""

from __future__ import annotations

from datetime import datetime

from answerback.model import OPEN_STATES, InboundKind, Timing, Trust, Waitpoint, WaitState, value
from answerback.waits.addresses import canonical_row, responder_of
from answerback.waits.waitpoint import timing

__all__ = ["Answers", "Asked", "Asks", "Away", "Joins", "Judgement", "Reply", "judge", "responder_of"]

AUTOMATIC = frozenset({InboundKind.AUTO_REPLY, InboundKind.OUT_OF_OFFICE, InboundKind.CHALLENGE})
TYPED = frozenset({InboundKind.READ_RECEIPT, InboundKind.CALENDAR_RESPONSE, InboundKind.CALENDAR_INVITE})
#: why mail may be unproven with nothing speaking against it
NOTHING_KNOWN = frozenset({"not_checked", "no_policy", "no_signature", "dns_temperror"})


@value
class Asked:
    """A waitpoint of the conversation and the messages of ours that stand for it."""

    waitpoint: Waitpoint
    #: ids of its original and of the nudges sent while it was open
    messages: frozenset[str]
    #: its wait was given up before the deadline
    abandoned: bool = False
    #: one of its messages went to more than its responders, or its ids were seen in mail from somebody else
    exposed: bool = False
    #: the To addresses of its messages, each behind `email:`; None where nobody but they may answer anyway
    to: frozenset[str] | None = None

    @property
    def is_open(self) -> bool:
        """Tell whether an answer can still close it."""
        return self.waitpoint.state in OPEN_STATES


@value
class Reply:
    """What is known of a message that joined a conversation."""

    kind: InboundKind
    #: authors as `email:…`
    authors: tuple[str, ...]
    #: messages of the conversation it names, the answered one first, then the newest reference first
    named: tuple[str, ...]
    #: when its octets were stored
    at: datetime
    trust: Trust
    #: why it is not authenticated
    trust_reason: str = "not_checked"
    unreadable: str = ""
    through_list: bool = False


@value
class Answers:
    """The message closes a waitpoint."""

    waitpoint: Waitpoint
    #: the row of its responder set that admits the author
    responder: str
    timing: Timing


@value
class Joins:
    """The message is delivered and closes nothing."""

    timing: Timing | None = None


@value
class Asks:
    """A person decides."""

    reason: str
    #: ids of the waitpoints it may answer
    candidates: tuple[str, ...] = ()


@value
class Away:
    """An automatic answer: the sender is away, or a machine speaks."""


Judgement = Answers | Joins | Asks | Away


def judge(reply: Reply, asked: tuple[Asked, ...]) -> Judgement:
    """Return what a message means, by the table above; `asked` holds every waitpoint of the conversation."""
    if reply.trust in (Trust.SPAM, Trust.BLOCKED):
        return Asks(reason=str(reply.trust), candidates=_open(asked))
    if reply.kind in AUTOMATIC:
        return Away()
    if reply.kind in TYPED:
        return Joins()
    if reason := _unfit(reply):
        return Asks(reason=reason, candidates=_open(asked))
    chosen = _chosen(reply, asked)
    return _judged(reply, chosen) if isinstance(chosen, Asked) else chosen


def _open(asked: tuple[Asked, ...]) -> tuple[str, ...]:
    return tuple(one.waitpoint.id for one in asked if one.is_open)


def _unfit(reply: Reply) -> str:
    """Return why a message can be no answer, whoever wrote it; "" where it can."""
    if reply.kind in (InboundKind.FORWARD, InboundKind.REACTION):
        return str(reply.kind)
    if reply.unreadable:
        return reply.unreadable
    if reply.through_list:
        return "through_list"
    return "" if len(set(map(canonical_row, reply.authors))) == 1 else "ambiguous_from"


def _chosen(reply: Reply, asked: tuple[Asked, ...]) -> Asked | Asks | Joins:
    """Return the one waitpoint a message stands before, or what follows where there is no such one.

    That of the answered message; else that of the newest reference that carries an open one.
    """
    carried = [[one for one in asked if name in one.messages] for name in reply.named]
    if carried and carried[0]:
        standing = carried[0]
    else:
        standing = next((found for found in carried if any(one.is_open for one in found)), [])
    still_open = tuple(one for one in standing if one.is_open)
    if len(still_open) == 1:
        return still_open[0]
    if still_open:
        return Asks(reason="several_open", candidates=_open(still_open))
    named = [one for found in carried for one in found]
    if candidates := _open(asked):
        return Asks(reason="closed_named" if named else "none_named", candidates=candidates)
    return next(iter(named or reversed(asked)), Joins())


def _judged(reply: Reply, asked: Asked) -> Judgement:
    waitpoint, candidates = asked.waitpoint, _open((asked,))
    responder = responder_of(reply.authors[0], waitpoint.responders)
    if responder is None:
        return Asks(reason="unknown_responder", candidates=candidates)
    when = timing(waitpoint, WaitState.ABANDONED if asked.abandoned else None, reply.at)
    if when not in (Timing.ON_TIME, Timing.AFTER_ABANDON):
        return Joins(timing=when)
    if reply.trust is not Trust.AUTHENTICATED and (reason := _unproven(reply, asked, responder)):
        return Asks(reason=reason, candidates=candidates)
    return Answers(waitpoint=waitpoint, responder=responder, timing=when)


def _unproven(reply: Reply, asked: Asked, responder: str) -> str:
    """Return why an unauthenticated reply is not enough; "" where it is."""
    if reply.trust_reason not in NOTHING_KNOWN:
        return reply.trust_reason
    is_whole_domain = responder.lower().startswith("email-domain:")
    is_written_to = asked.to is None or canonical_row(reply.authors[0]) in map(canonical_row, asked.to)
    needs_proof = asked.exposed or is_whole_domain or not is_written_to
    return "unproven_sender" if needs_proof or asked.waitpoint.min_trust is Trust.AUTHENTICATED else ""
