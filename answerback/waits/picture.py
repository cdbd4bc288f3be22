"""Draws the wait's table: as a state diagram and as rows, for the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator

from answerback.model import ENDED, RUNNING, WaitState
from answerback.waits.table import TABLE, Rule


def mermaid() -> str:
    """Return the table as a Mermaid state diagram; rows that lead nowhere else are left out."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for rule in TABLE:
        for start, end in _arrows(rule):
            labels = arrows.setdefault((start, end), [])
            if rule.event.__name__ not in labels:
                labels.append(rule.event.__name__)
    lines = [f"    {start} --> {end}: {', '.join(labels)}" for (start, end), labels in arrows.items()]
    return "\n".join(["stateDiagram-v2", *lines])


def _arrows(rule: Rule) -> Iterator[tuple[str, str]]:
    if rule.to == "same":
        return
    targets = sorted(RUNNING, reverse=True) if rule.to == "back" else [rule.to]
    for state in _ordered(rule):
        for target in targets:
            yield str(state or "[*]"), str(target)


def _ordered(rule: Rule) -> list[WaitState | None]:
    return [state for state in (None, *WaitState) if state in rule.states]


def rows() -> str:
    """Return the table as a Markdown table, a line per row, in its order."""
    head = ["| from | event, if | to | then |", "|---|---|---|---|"]
    return "\n".join([*head, *map(_row, TABLE)])


def _row(rule: Rule) -> str:
    conditions = ", ".join((rule.event.__name__, *(_spaced(guard.__name__) for guard in rule.when)))
    done = [] if rule.change.__name__ == "keep" else [_spaced(rule.change.__name__)]
    done += [_spaced(effect.__name__) for effect in rule.effects]
    return f"| {_from(rule)} | {conditions} | {_to(rule)} | {', '.join(done) or 'nothing'} |"


def _from(rule: Rule) -> str:
    if rule.states == ENDED:
        return "any ended"
    return ", ".join(str(state or "nothing") for state in _ordered(rule))


def _to(rule: Rule) -> str:
    if rule.to == "back":
        return "where the pause began"
    if not rule.reason:
        return str(rule.to)
    reason = f"`{rule.reason}`" if isinstance(rule.reason, str) else "its reason"
    return f"{rule.to} ({reason})"


def _spaced(name: str) -> str:
    return re.sub("_+", " ", name)


def page() -> str:
    """Return the documentation page about the wait, drawn from the table."""
    return f"""# The wait and its rules

The wait is the follow-up clock of one conversation. Its rules stand in one table,
`answerback/waits/table.py`; nothing else changes a wait. This page is drawn from that table.

```mermaid
{mermaid()}
```

Read the rows from the top: the first one that fits decides. Where none fits nothing changes, so an event
that is told twice happens once, and an illegal move changes nothing.

{rows()}

**What ends or pauses a wait** takes its nudges back in the same step, so none leaves afterwards. A wait that
goes on counts the gap of its next step anew; a number is used for one nudge only.

**A required recipient** is a To address that may answer. A dead one of several is left out of the nudges;
with the last one the wait is abandoned. Only when every one that is not dead is away does the wait move: to
one business day after the return date, or by `away_default` business days where the notice names none; never
past the deadline, at most 3 times, and at most `away_limit` business days in all.

**Paused** waits go on when a person says so: the gap of the next step counts from then, or the step is due
one business day after the day the person names. A due time a person sets is obeyed literally, outside the
working hours too.
"""
