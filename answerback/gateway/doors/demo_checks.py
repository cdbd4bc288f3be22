"""What the demo must have shown, checked against what the suppliers' servers and the mailbox really hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from answerback.gateway.doors.demo_mails import AWAY, PROMPT, SILENT
from answerback.gateway.doors.demo_story import QUESTIONS, Story, kind_of, words
from answerback.model import Json

SILENT_KEY, PROMPT_KEY, AWAY_KEY = (question.key for question in QUESTIONS)

EXPECTED: Final = frozenset(
    {
        "waitpoint.opened",
        "waitpoint.resolved",
        "wait.nudged",
        "wait.postponed",
        "wait.abandoned",
        "message.auto_replied",
    }
)


def _same(left: str, right: str) -> bool:
    """Tell whether two texts have the same words; how lines are folded is the mail program's business."""
    return left.split() == right.split()


def _resolved(story: Story, key: str, person: Any, timing: str) -> bool:
    items: Any = story.events(key, "waitpoint.resolved")
    data = items[0]["event"]["data"] if len(items) == 1 else {"parts": [], "timing": ""}
    return data["timing"] == timing and _same(words(data), " ".join(person.words))


def only_new_words(story: Story) -> bool:
    """Pat's answer arrives as `reply`: the new words only, without signature and quoted history."""
    return _resolved(story, PROMPT_KEY, PROMPT, "on_time")


def rest_kept_apart(story: Story) -> bool:
    """Pat's quoted history and signature are kept, each as a part of its own."""
    items: Any = story.events(PROMPT_KEY, "waitpoint.resolved")
    data = items[0]["event"]["data"] if items else {"parts": []}
    return QUESTIONS[1].text.splitlines()[2] in words(data, "quoted") and "Prompt Pumps" in words(
        data, "signature"
    )


def absence_is_no_answer(story: Story) -> bool:
    """Kim's out-of-office note did not close the wait; the answer by hand did, and no nudge went to Kim."""
    note: Any = story.events(AWAY_KEY, "message.auto_replied")
    answer: Any = story.events(AWAY_KEY, "waitpoint.resolved")
    in_order = len(note) == 1 and bool(answer) and note[0]["sequence"] < answer[0]["sequence"]
    alone = len(story.received.get(AWAY.address, [])) == 1
    return in_order and alone and _resolved(story, AWAY_KEY, AWAY, "on_time")


def two_nudges_in_the_thread(story: Story) -> bool:
    """The silent supplier got exactly two nudges, in the same thread: In-Reply-To and References hold."""
    mails: Any = story.received.get(SILENT.address, [])
    if len(mails) != 3:
        return False
    ids = [mail["message_id"] for mail in mails]
    threads = [(mail["in_reply_to"], mail["references"]) for mail in mails]
    return threads == [("", []), (ids[0], ids[:1]), (ids[1], ids[:2])] and len(set(ids)) == 3


def given_up(story: Story) -> bool:
    """After the second nudge the silence was given up once, with the reason no_reply."""
    nudged: Any = story.events(SILENT_KEY, "wait.nudged")
    ended: Any = story.events(SILENT_KEY, "wait.abandoned")
    reasons = [item["event"]["data"]["reason"] for item in ended]
    return (
        len(nudged) == 2
        and reasons == ["no_reply"]
        and all(nudge["sequence"] < ended[0]["sequence"] for nudge in nudged)
    )


def late_answer_delivered(story: Story) -> bool:
    """The answer that came after that was delivered all the same, marked after_abandon."""
    ended: Any = story.events(SILENT_KEY, "wait.abandoned")
    answer: Any = story.events(SILENT_KEY, "waitpoint.resolved")
    in_order = bool(ended) and bool(answer) and ended[0]["sequence"] < answer[0]["sequence"]
    return in_order and _resolved(story, SILENT_KEY, SILENT, "after_abandon")


def numbers_without_gap(story: Story) -> bool:
    """The mailbox is numbered from 1 without a gap, and holds nothing that was not expected."""
    numbers = [item["sequence"] for item in story.mailbox]
    strange = {kind_of(item["event"]) for item in story.mailbox} - EXPECTED
    return bool(numbers) and numbers == list(range(1, len(numbers) + 1)) and not strange


CHECKS: Final[tuple[Callable[[Story], bool], ...]] = (
    only_new_words,
    rest_kept_apart,
    absence_is_no_answer,
    two_nudges_in_the_thread,
    given_up,
    late_answer_delivered,
    numbers_without_gap,
)


def examine(story: Story) -> list[Json]:
    """Return each check with what it says and whether it holds."""
    return [
        {"check": check.__name__, "says": " ".join((check.__doc__ or "").split()), "holds": check(story)}
        for check in CHECKS
    ]
