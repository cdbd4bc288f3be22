"""Writes the text of a nudge from a template and the message it reminds of, and from nothing else."""

from __future__ import annotations

import re
from string import Template

from answerback.errors import BadRequest
from answerback.model import Schedule

VARIABLES = ("number", "subject", "name", "original")
#: characters a template of an operator may have
LONGEST_TEMPLATE = 10_000
#: lines of the original a nudge repeats, and characters of each
QUOTED_LINES, QUOTED_WIDTH = 200, 900
#: one text per number; the last serves every further one
BUILT_IN = tuple(
    f"Hello$name,\n\n{words}\n\nThank you.\n\n$original"
    for words in (
        "may I come back to my message below? A short reply is enough.",
        "I still need your answer to the message below. If somebody else can give it, please pass it on.",
        "this is my last question about the message below. If you can not answer, please say so.",
    )
)
#: RFC 5322 section 3.6.5 knows `Re: `; mail programs write it in their own language
_RE = re.compile(r"\s*(re|aw|sv|vs|ref|rv|antw|odp)\s*(\[\d+\])?\s*[:\uff1a]", re.IGNORECASE)


def nudge(
    schedule: Schedule, number: int, subject: str, first_text: str, contact_name: str = ""
) -> tuple[str, str]:
    """Return subject and text of a nudge.

    The subject gets `Re: ` only where it has none. The text is the schedule's template or the
    built-in one of this number; what the agent wrote comes in as a quotation of the first message only.
    """
    words = {
        "number": str(number),
        "subject": subject.strip(),
        "name": _line(contact_name),
        "original": quoted(first_text),
    }
    if not schedule.nudge_text:
        words["name"] = f" {words['name']}" if words["name"] else ""
    template = schedule.nudge_text or _built_in(schedule, number)
    return reply_subject(subject), Template(template).safe_substitute(words)


def _built_in(schedule: Schedule, number: int) -> str:
    # Only the last nudge of several says that it is the last one.
    is_last = number >= max(len(schedule.gaps) - 1, 2)
    return BUILT_IN[-1] if is_last else BUILT_IN[min(number, 2) - 1]


def reply_subject(subject: str) -> str:
    """Return the subject with `Re: ` in front where it has no reply mark yet."""
    return subject if _RE.match(subject) else f"Re: {subject.strip()}"


def quoted(text: str) -> str:
    """Return a text as a quotation, every line behind `> `; what is longer than 200 lines is cut off."""
    lines = [line[:QUOTED_WIDTH].rstrip() for line in text.strip().splitlines()]
    if len(lines) > QUOTED_LINES:
        lines = [*lines[:QUOTED_LINES], "[…]"]
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _line(text: str) -> str:
    return " ".join(text.split())[:100]


def check_template(text: str) -> None:
    """Make sure a nudge can be written from a template; "" stands for the built-in one.

    Raises:
        BadRequest: it is too long, names an unknown variable, or has a stray dollar sign.
    """
    if len(text) > LONGEST_TEMPLATE:
        raise BadRequest(field="nudge_text", problem=f"longer than {LONGEST_TEMPLATE} characters")
    template = Template(text)
    if not template.is_valid():
        raise BadRequest(field="nudge_text", problem="a dollar sign that begins no variable is written $$")
    if unknown := [name for name in template.get_identifiers() if name not in VARIABLES]:
        known = ", ".join(f"${name}" for name in VARIABLES)
        raise BadRequest(field="nudge_text", problem=f"${unknown[0]} is unknown; known are {known}")
