"""Decides which conversation a message belongs to, from whole ids and tokens alone.

| the message names                                             | then                                   |
|---------------------------------------------------------------|----------------------------------------|
| nothing we know                                               | it is unmatched                        |
| one conversation, however often and by whatever clue          | it belongs there                       |
| two conversations, by two ids or by an id and a token         | it is ambiguous: a person chooses      |
| one id that two conversations share                           | it is ambiguous: a person chooses      |
| such an id, and a clue that names only one of the two         | it belongs to that one                 |

| inside its conversation it answers                                                                      |
|---------------------------------------------------------------------------------------------------------|
| what In-Reply-To names, the last known id of several                                                    |
| else the newest known id of References                                                                  |
| else what the token in the address it was sent to names: the reply address, then the return path        |
| (a report: what its return path names, else the first known id of the mail it returns, else as above)   |

Subject, Thread-Index, dates and numbers inside ids are no clues: they repeat, and anybody can write them.
Ids of returned mails count in reports only: a person who attaches a mail does not answer it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Literal

from answerback.model import Ambiguous, Inbound, InboundKind, Known, Match, Matched, Unmatched, value
from answerback.threading.refs import extract, normalise

Source = Literal["in_reply_to", "references", "reply_address", "return_path", "returned_id"]
#: one clue that names something known: what kind it is, and every message that carries it
_Vote = tuple[Source, tuple[Known, ...]]

#: kinds of mail that are about a mail of ours instead of answering it
REPORTS = frozenset(
    {
        InboundKind.BOUNCE,
        InboundKind.DELAY_NOTICE,
        InboundKind.DELIVERY_NOTICE,
        InboundKind.COMPLAINT,
        InboundKind.READ_RECEIPT,
    }
)


@value
class Clues:
    """What a message says about where it belongs; ids are normalised, in the order of the mail."""

    in_reply_to: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    #: ids of mails returned inside it, the mail's own before the ids that mail refers to
    returned_ids: tuple[str, ...] = ()
    #: the message named by the token of the reply address it was sent to
    reply_address: Known | None = None
    #: the message named by the token of the return path it was sent to
    return_path: Known | None = None
    #: it is a report, so what it returns counts
    report: bool = False

    @property
    def ids(self) -> tuple[str, ...]:
        """Every id to look up before `match`, each once."""
        return tuple(dict.fromkeys((*self.in_reply_to, *self.references, *self.returned_ids)))


def gather(mail: Inbound, *, reply_address: Known | None = None, return_path: Known | None = None) -> Clues:
    """Return the clues of a mail that was read; what its tokens name was looked up by the caller."""
    report = mail.kind in REPORTS
    return Clues(
        in_reply_to=_ids([mail.in_reply_to]),
        references=_ids([mail.references]),
        returned_ids=_ids(mail.returned_ids) if report else (),
        reply_address=reply_address,
        return_path=return_path,
        report=report,
    )


def match(clues: Clues, known: Sequence[Known]) -> Match:
    """Return the conversation a message belongs to, by the table above.

    `known` holds every message that carries one of `clues.ids`; one id may have several.
    Candidates come in the order of the strength of what names them.
    """
    votes = list(_votes(clues, known))
    named = list(dict.fromkeys(one.conversation_id for _, messages in votes for one in messages))
    fitting = [conversation for conversation in named if all(_names(vote, conversation) for vote in votes)]
    if not named:
        return Unmatched()
    if len(fitting) == 1:
        return _matched(fitting[0], votes)
    return Ambiguous(candidates=tuple(_matched(conversation, votes) for conversation in named))


def _ids(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(normalise(one) for raw in values for one in extract(raw)))


def _votes(clues: Clues, known: Sequence[Known]) -> Iterator[_Vote]:
    """The clues that name something known, the strongest first."""
    carriers: dict[str, list[Known]] = {}
    for one in known:
        carriers.setdefault(normalise(one.rfc_id), []).append(one)

    def of_ids(source: Source, ids: Iterable[str]) -> Iterator[_Vote]:
        for rfc_id in ids:
            if rfc_id in carriers:
                yield source, tuple(sorted(carriers[rfc_id], key=lambda one: not one.outbound))

    def of_token(source: Source, named: Known | None) -> Iterator[_Vote]:
        if named is not None:
            yield source, (named,)

    answers = chain(
        of_ids("in_reply_to", reversed(clues.in_reply_to)),
        of_ids("references", reversed(clues.references)),
        of_token("reply_address", clues.reply_address),
    )
    return_path = of_token("return_path", clues.return_path)
    if clues.report:
        return chain(return_path, of_ids("returned_id", clues.returned_ids), answers)
    return chain(answers, return_path)


def _names(vote: _Vote, conversation_id: str) -> bool:
    return any(one.conversation_id == conversation_id for one in vote[1])


def _matched(conversation_id: str, votes: list[_Vote]) -> Matched:
    """The conversation with what named it, the strongest clue first."""
    naming = [
        (source, one.message_id)
        for source, messages in votes
        for one in messages
        if one.conversation_id == conversation_id
    ]
    source, parent_id = naming[0]
    named = tuple(dict.fromkeys(message_id for _, message_id in naming))
    return Matched(conversation_id=conversation_id, parent_id=parent_id, matched_by=source, named=named)
