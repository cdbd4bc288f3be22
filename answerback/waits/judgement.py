"""What a message that joined a conversation means for its waitpoints.

Read from the top, the first line that fits decides:

| the message                                              | then                                        |
|----------------------------------------------------------|---------------------------------------------|
| is an automatic answer, an absence or a challenge        | the sender is away; nothing closes          |
| is a calendar answer or invitation                       | it is delivered, typed; nothing closes      |
| is a forward or a reaction                               | a person decides                            |
| has no words of a person that could be read              | a person decides                            |
| came through a list, or has not exactly one author       | a person decides                            |
| names a closed waitpoint while another is open           | a person decides                            |
| stands before several open waitpoints                    | a person decides                            |
| names only closed waitpoints, or none is left            | it is delivered with its timing             |
| comes from somebody who is no responder                  | a person decides                            |
| is less proven than the waitpoint or its exposure asks   | a person decides                            |
| came after the deadline                                  | it is delivered as late                     |
| else                                                     | it answers the waitpoint                    |
"""

from __future__ import annotations

from datetime import datetime

from answerback.model import (
    OPEN_STATES,
    InboundKind,
    Timing,
    Trust,
    Waitpoint,
    WaitpointState,
    value,
)

AUTOMATIC = frozenset({InboundKind.AUTO_REPLY, InboundKind.OUT_OF_OFFICE, InboundKind.CHALLENGE})
TYPED = frozenset({InboundKind.CALENDAR_RESPONSE, InboundKind.CALENDAR_INVITE})
AFTER = {
    WaitpointState.RESOLVED: Timing.AFTER_RESOLVED,
    WaitpointState.EXPIRED: Timing.LATE,
    WaitpointState.CANCELLED: Timing.AFTER_CANCELLED,
}


@value
class Asked:
    """A waitpoint of the conversation and the messages of ours that stand for it."""

    waitpoint: Waitpoint
    messages: frozenset[str]
    #: its wait was given up before the deadline
    abandoned: bool = False
    #: one of its messages went to more than its responders, or came back from somebody who is none
    exposed: bool = False

    @property
    def is_open(self) -> bool:
        """Tell whether an answer can still close it."""
        return self.waitpoint.state in OPEN_STATES


@value
class Reply:
    """What is known of a message that joined a conversation."""

    kind: InboundKind
    #: authors as `email:…`, case-folded
    authors: tuple[str, ...]
    #: messages of the conversation it names, the answered one first
    named: tuple[str, ...]
    at: datetime
    trust: Trust
    unreadable: str = ""
    through_list: bool = False


@value
class Answers:
    """The message closes a waitpoint."""

    waitpoint: Waitpoint
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
    candidates: tuple[str, ...] = ()


@value
class Away:
    """An automatic answer: the sender is away, or a machine speaks."""


Judgement = Answers | Joins | Asks | Away


def judge(reply: Reply, asked: tuple[Asked, ...]) -> Judgement:
    """Return what a message means, by the table above; `asked` holds every waitpoint of the conversation."""
    if reply.kind in AUTOMATIC:
        return Away()
    if reply.kind in TYPED:
        return Joins()
    if reason := _unfit(reply):
        return Asks(reason=reason)
    chosen = _chosen(reply, asked)
    if not isinstance(chosen, Asked):
        return chosen
    return _admitted(reply, chosen)


def _unfit(reply: Reply) -> str:
    """Return why a message of a person can be no answer, whoever wrote it; "" where it can."""
    if reply.kind in (InboundKind.FORWARD, InboundKind.REACTION):
        return str(reply.kind)
    if reply.unreadable:
        return reply.unreadable
    if reply.through_list:
        return "through_list"
    return "" if len(set(reply.authors)) == 1 else "ambiguous_from"


def _chosen(reply: Reply, asked: tuple[Asked, ...]) -> Asked | Judgement:
    """Return the one waitpoint a message stands before, or what follows where there is no such one.

    What In-Reply-To names counts first, then the newest reference that carries an open waitpoint; a message
    that names none of ours stands before the conversation's open one.
    """
    open_ones = [one for one in asked if one.is_open]
    answered = [one for one in asked if reply.named and reply.named[0] in one.messages]
    if not any(one.is_open for one in answered):
        if answered and open_ones:
            return Asks(reason="closed_named", candidates=tuple(one.waitpoint.id for one in open_ones))
        answered = _newest_open(reply, asked) or answered or open_ones
    still_open = [one for one in answered if one.is_open]
    if len(still_open) > 1:
        return Asks(reason="several_open", candidates=tuple(one.waitpoint.id for one in still_open))
    if still_open:
        return still_open[0]
    last = (answered or list(asked))[-1:]
    return Joins(timing=AFTER[last[0].waitpoint.state]) if last else Joins()


def _newest_open(reply: Reply, asked: tuple[Asked, ...]) -> list[Asked]:
    for message_id in reply.named[1:]:
        if carried := [one for one in asked if one.is_open and message_id in one.messages]:
            return carried
    return []


def _admitted(reply: Reply, asked: Asked) -> Judgement:
    waitpoint, author = asked.waitpoint, reply.authors[0]
    candidates = (waitpoint.id,)
    responder = responder_of(author, waitpoint.responders)
    if responder is None:
        return Asks(reason="unknown_responder", candidates=candidates)
    proven = reply.trust is Trust.AUTHENTICATED
    if reply.trust in (Trust.SPAM, Trust.BLOCKED):
        return Asks(reason=str(reply.trust), candidates=candidates)
    if not proven and (asked.exposed or waitpoint.min_trust is Trust.AUTHENTICATED or responder != author):
        return Asks(reason="unproven_sender", candidates=candidates)
    if reply.at > waitpoint.expires_at:
        return Joins(timing=Timing.LATE)
    timing = Timing.AFTER_ABANDON if asked.abandoned else Timing.ON_TIME
    return Answers(waitpoint=waitpoint, responder=responder, timing=timing)


def responder_of(author: str, responders: tuple[str, ...]) -> str | None:
    """Return the row of a responder set that admits an author, the address itself before its domain."""
    domain = "email-domain:" + author.rpartition("@")[2]
    return author if author in responders else domain if domain in responders else None
