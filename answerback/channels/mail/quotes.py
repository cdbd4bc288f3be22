"""Splits the text of a mail into what its author wrote now and the history it carries along."""

# Chinese and Japanese mail programs write a full-width colon.
# ruff: noqa: RUF001
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from enum import Enum

from answerback.channels.mail import phrases
from answerback.channels.mail.history import Sent
from answerback.model import Part, PartKind, value

_QUOTED = re.compile(r"[ \t]{0,3}>")
_MARKS = re.compile(r"(?:[ \t]{0,3}>)+ ?")
_DIVIDER = re.compile(r"\s*[-_*=\u2500\u2014]{4,}\s*")
_LONGEST_ATTRIBUTION = 400
_LONGEST_SIGNATURE = 15
_BLOCK = 10  # lines in which a quoted header block must show its fields


class _Opening(Enum):
    """What makes the text below a line history."""

    ATTRIBUTION = "attribution"
    HEADERS = "headers"
    ORIGINAL = "original"
    FORWARD = "forward"


@value
class _Line:
    """One line and what is known of it."""

    text: str
    quoted: bool

    @property
    def bare(self) -> str:
        """The line without quote marks."""
        return _MARKS.sub("", self.text, count=1) if self.quoted else self.text


@value
class _Run:
    """Neighbouring lines of one kind."""

    kind: PartKind
    lines: tuple[str, ...]
    #: lines at the top that introduce the history and are none of it
    opening: int = 0
    #: a mark says that this is history
    marked: bool = False


def split(text: str, sent: Sequence[str] = ()) -> tuple[Part, ...]:
    """Return the parts of a mail's text in their order: reply, inline, quoted, forwarded, signature.

    `sent` are the texts we sent in that conversation. With them, unmarked text is history only as a run of
    8 words or 2 whole lines in the original order, text behind `>` that we never wrote is the author's unless
    something above it says it is history, and quoted parts say whether they are known. Words of which it
    is uncertain whether they are the author's, are.
    """
    lines = [_Line(text=line, quoted=_QUOTED.match(line) is not None) for line in _plain(text)]
    known = Sent(sent) if any(sent) else None
    runs = list(_runs(lines, known))
    return tuple(_parts(_merged(_answering(runs)), known))


def _plain(text: str) -> list[str]:
    return (
        text.replace("\r\n", "\n").replace("\r", "\n").replace("\xa0", " ").replace("\u202f", " ").split("\n")
    )


def _runs(lines: list[_Line], known: Sent | None) -> Iterator[_Run]:
    following = _following(lines)
    written: list[str] = []
    opened = False
    index = 0
    while index < len(lines):
        found = _opening(lines, index, following)
        if found is None and not lines[index].quoted:
            written.append(lines[index].text)
            index += 1
            continue
        start, opening = (index, 0) if found is None else (index, found[1])
        end = _history_end(lines, start + opening, following)
        run = tuple(line.text for line in lines[start:end])
        opened = opened or found is not None
        if not opened and known is not None and not known.knows(_bare(run)):
            written += run
        else:
            yield from _authored(written, known)
            written = []
            forwarded = found is not None and found[0] is _Opening.FORWARD
            kind = PartKind.FORWARDED if forwarded else PartKind.QUOTED
            yield _Run(kind=kind, lines=run, opening=opening, marked=found is not None)
        index = end
    yield from _authored(written, known)


def _following(lines: list[_Line]) -> list[int]:
    """Return for each line the next line that is not blank (len(lines) where there is none)."""
    following = [len(lines)] * (len(lines) + 1)
    for index in range(len(lines) - 1, -1, -1):
        blank = index + 1 < len(lines) and not lines[index + 1].text.strip()
        following[index] = following[index + 1] if blank else index + 1
    return following


def _history_end(lines: list[_Line], start: int, following: list[int]) -> int:
    """Return where history ends: behind its quote marks, or with the text where it has none."""
    if start >= len(lines):
        return len(lines)
    first = start if lines[start].text.strip() else following[start]
    if first >= len(lines) or not lines[first].quoted:
        return len(lines)
    end = first
    while end < len(lines) and (lines[end].quoted or _continues(lines, end, following)):
        end += 1
    return end


def _continues(lines: list[_Line], index: int, following: list[int]) -> bool:
    """Return whether a blank line stands inside one quotation."""
    below = following[index]
    return not lines[index].text.strip() and below < len(lines) and lines[below].quoted


def _opening(lines: list[_Line], index: int, following: list[int]) -> tuple[_Opening, int] | None:
    """Return what opens history at this line, and how many lines it takes up."""
    line = lines[index]
    if not line.text.strip() or line.quoted:
        return None
    if _is_marker(phrases.FORWARD, line.text) or _is_marker(phrases.BEGIN_FORWARD, line.text):
        return _Opening.FORWARD, 1 + _headers(lines, following[index])
    if _is_marker(phrases.ORIGINAL, line.text):
        return _Opening.ORIGINAL, 1 + _headers(lines, following[index])
    size = _headers(lines, index)
    if size:
        return _Opening.HEADERS, size
    if _DIVIDER.fullmatch(line.text[:200]):
        size = _headers(lines, following[index])
        return (_Opening.HEADERS, following[index] - index + size) if size else None
    return _attribution(lines, index, following)


def _is_marker(marker: re.Pattern[str], line: str) -> bool:
    """Return whether the line is that marker alone, or with the header block on the same line, as Yahoo
    writes it.
    """
    found = marker.match(line[:400])
    return found is not None and (not line[found.end() :].strip() or _label(line[found.end() :]) is not None)


def _headers(lines: list[_Line], index: int) -> int:
    """Return how many lines a quoted header block takes that begins here, 0 where none does.

    It names a sender, a subject or a time of sending or a mail address, and three fields in all: freight
    papers say From, To, Date too.
    """
    if index >= len(lines) or _label(lines[index].text) is None:
        return 0
    fields: dict[str, str] = {}
    end = index
    for position in range(index, min(index + _BLOCK, len(lines))):
        label = _label(lines[position].text)
        if label is not None and label[0] not in fields:
            fields[label[0]] = label[1]
            end = position
    mail = "subject" in fields or "sent" in fields or "@" in fields.get("from", "")
    return end - index + 1 if "from" in fields and len(fields) >= 3 and mail else 0


def _label(line: str) -> tuple[str, str] | None:
    """Return which mail header field this line shows, and its value."""
    head, colon, rest = line[:300].replace("：", ":").partition(":")
    word = " ".join(head.strip(" \t>*_•").casefold().split()) if len(head) < 40 else ""
    field = phrases.LABEL.get(word)
    return (field, rest.strip(" *_")) if colon and field else None


def _attribution(lines: list[_Line], index: int, following: list[int]) -> tuple[_Opening, int] | None:
    """Return the attribution that begins at this line: up to four lines, the last of which closes it."""
    for size in range(1, 5):
        last = index + size - 1
        if last >= len(lines) or lines[last].quoted or not lines[last].text.strip():
            return None
        joined = _text(lines[index : last + 1])
        if len(joined) > _LONGEST_ATTRIBUTION:
            return None
        below = following[last]
        quoted = below < len(lines) and lines[below].quoted
        if not _is_closed(joined.strip(" *_"), quoted=quoted):
            continue
        later = any(
            _attributes(_text(lines[start : last + 1]), quoted=quoted, wrapped=True)
            for start in range(index + 1, last + 1)
        )  # then this line is the author's own and stands right above
        found = not later and _attributes(joined, quoted=quoted, wrapped=size > 1)
        return (_Opening.ATTRIBUTION, size) if found else None
    return None


def _text(lines: Sequence[_Line]) -> str:
    return " ".join(line.text.strip() for line in lines)


def _is_closed(line: str, *, quoted: bool) -> bool:
    """Return whether an attribution ends here: in a colon, in dashes as it began, or above quote marks in an
    address.
    """
    if line.endswith((":", "：")) or (line.startswith("----") and line.endswith("----")):
        return True
    return quoted and line.endswith(">") and phrases.DATE.search(line) is not None


def _attributes(line: str, *, quoted: bool, wrapped: bool) -> bool:
    """Return whether a line ending in a colon says who wrote what follows.

    Above quote marks a verb, or an address, or a day with a time is enough. Above unmarked text it takes
    the verb and
    a day or an address, since people write "Our planner wrote:" themselves.
    """
    line = line.strip("-")
    begins = phrases.BEGINS.match(line) is not None
    wrote = phrases.WROTE.search(line) is not None
    dated = phrases.DATE.search(line) is not None
    timed = phrases.TIME.search(line) is not None
    address = phrases.ADDRESS.search(line) is not None
    if wrapped and not begins:
        return False
    if quoted and (wrote or (address and line.rstrip(":： *_").endswith(">"))):
        return begins or phrases.CLOSES.search(line) is not None or line.rstrip(":： *_").endswith(">")
    if quoted:
        return begins and dated and (timed or address)
    return (wrote and (address or (dated and begins))) or (begins and dated and timed and address)


def _bare(lines: Sequence[str]) -> str:
    return "\n".join(_MARKS.sub("", line, count=1) for line in lines)


def _authored(lines: list[str], known: Sent | None) -> Iterator[_Run]:
    """Return unmarked lines as what the author wrote, apart from a signature and from our own words."""
    if not any(line.strip() for line in lines):
        return
    own = [False] * len(lines) if known is None else known.repeated(lines)
    start = 0
    for index in range(1, len(lines) + 1):
        if index < len(lines) and own[index] == own[start]:
            continue
        block = tuple(lines[start:index])
        if own[start]:
            yield _Run(kind=PartKind.QUOTED, lines=block)
        else:
            yield from _signed(block)
        start = index


def _signed(lines: tuple[str, ...]) -> Iterator[_Run]:
    cut = _signature(lines)
    if any(line.strip() for line in lines[:cut]):
        yield _Run(kind=PartKind.REPLY, lines=lines[:cut])
    if any(line.strip() for line in lines[cut:]):
        yield _Run(kind=PartKind.SIGNATURE, lines=lines[cut:])


def _signature(lines: tuple[str, ...]) -> int:
    """Return where the signature begins: at `-- ` alone on its line (RFC 3676 section 4.3) or a telephone's
    line.

    What is longer than signatures are is text.
    """
    filled = [index for index, line in enumerate(lines) if line.strip()]
    for index in filled[-_LONGEST_SIGNATURE - 1 :]:
        if lines[index].rstrip() == "--" and len(filled) - filled.index(index) - 1 <= _LONGEST_SIGNATURE:
            return index
    if filled and phrases.SENT_FROM.fullmatch(lines[filled[-1]][:200]):
        return filled[-1]
    return len(lines)


def _answering(runs: list[_Run]) -> Iterator[tuple[_Run, str]]:
    """Return each run and the quoted line it answers; only text with quotations on both sides, or the last
    of such.
    """
    quotations = [index for index, run in enumerate(runs) if run.kind is PartKind.QUOTED]
    between = [
        index
        for index, run in enumerate(runs)
        if run.kind is PartKind.REPLY and quotations and quotations[0] < index < quotations[-1]
    ]
    for index, run in enumerate(runs):
        inline = run.kind is PartKind.REPLY and between and index >= between[0]
        answers = _last_line(runs[index - 1]) if inline else ""
        yield run, answers


def _last_line(run: _Run) -> str:
    bare = (_MARKS.sub("", line, count=1).strip() for line in reversed(run.lines))
    return next((line for line in bare if line), "") if run.kind is PartKind.QUOTED else ""


def _merged(runs: Iterator[tuple[_Run, str]]) -> Iterator[tuple[_Run, str]]:
    last: tuple[_Run, str] | None = None
    for run, answers in runs:
        if last is not None and last[0].kind is run.kind is PartKind.REPLY and not answers and not last[1]:
            last = (_Run(kind=run.kind, lines=last[0].lines + run.lines), "")
            continue
        if last is not None:
            yield last
        last = (run, answers)
    if last is not None:
        yield last


def _parts(runs: Iterator[tuple[_Run, str]], known: Sent | None) -> Iterator[Part]:
    for run, answers in runs:
        text = "\n".join(line.rstrip() for line in run.lines).strip("\n")
        kind = PartKind.INLINE if answers else run.kind
        ours: bool | None = None
        if known is not None and kind in (PartKind.QUOTED, PartKind.FORWARDED):
            ours = known.knows(_bare(run.lines[run.opening :]), share=0.9)
        yield Part(kind=kind, text=text, known=ours, answers=answers)
