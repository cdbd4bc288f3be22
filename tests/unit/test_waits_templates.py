"""A nudge says what its template says, quotes the original, and nothing else."""

from __future__ import annotations

import pytest

from answerback.errors import BadRequest
from answerback.model import Gap, Schedule
from answerback.waits.templates import check_template, nudge, quoted, reply_subject

FIRST = "may I come back to my message below? A short reply is enough."
DAY = Gap(amount=1, unit="bd")


def schedule(gaps: int = 4, nudge_text: str = "") -> Schedule:
    """A schedule with so many gaps."""
    return Schedule(name="test", version=1, gaps=(DAY,) * gaps, nudge_text=nudge_text)


def test_the_first_built_in_nudge() -> None:
    assert nudge(schedule(), 1, "PO 4711", "When?\n\nRegards, $agent\n", "Pat Lee") == (
        "Re: PO 4711",
        f"Hello Pat Lee,\n\n{FIRST}\n\nThank you.\n\n> When?\n>\n> Regards, $agent",
    )


@pytest.mark.parametrize(
    ("gaps", "number", "words"),
    [
        (2, 1, "may I come back"),
        (3, 1, "may I come back"),
        (3, 2, "my last question"),
        (6, 2, "still need your answer"),
        (6, 4, "still need your answer"),
        (6, 5, "my last question"),
        (3, 3, "my last question"),
    ],
)
def test_built_in_nudges_differ_and_only_the_last_says_so(gaps: int, number: int, words: str) -> None:
    assert words in nudge(schedule(gaps), number, "S", "T", "Pat")[1]


def test_without_a_name_nobody_is_called_by_one() -> None:
    assert nudge(schedule(), 1, "S", "T")[1].startswith("Hello,\n")


def test_a_name_stays_on_one_short_line() -> None:
    text = nudge(schedule(nudge_text="Dear $name!"), 1, "S", "T", "Pat\r\n\r\n" + "x" * 200)[1]
    assert text == "Dear Pat " + "x" * 96 + "!"


def test_a_template_of_the_operator_is_filled_once() -> None:
    own = schedule(nudge_text="$number: $subject, $name, for 5 $$\n$original")
    assert nudge(own, 2, " Price of $name ", "$subject", "Pat") == (
        "Re: Price of $name",
        "2: Price of $name, Pat, for 5 $\n> $subject",
    )


@pytest.mark.parametrize(
    ("subject", "expected"),
    [
        ("PO 4711", "Re: PO 4711"),
        ("Re: PO 4711", "Re: PO 4711"),
        ("RE: PO 4711", "RE: PO 4711"),
        ("AW: PO 4711", "AW: PO 4711"),
        ("Re[2]: PO 4711", "Re[2]: PO 4711"),
        ("Regarding PO 4711", "Re: Regarding PO 4711"),
        ("", "Re: "),
    ],
)
def test_a_subject_gets_its_mark_only_where_it_has_none(subject: str, expected: str) -> None:
    assert reply_subject(subject) == expected


def test_a_long_original_is_cut_off() -> None:
    lines = quoted("\n".join(["word"] * 201)).splitlines()
    assert (len(lines), lines[-2:]) == (201, ["> word", "> […]"])
    assert quoted("x" * 2000) == "> " + "x" * 900


@pytest.mark.parametrize("text", ["", "no variable", "$number ${name} $subject $original $$"])
def test_a_template_of_known_variables_is_good(text: str) -> None:
    check_template(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("$secret", r"\$secret is unknown; known are \$number"),
        ("costs 5 $", "written \\$\\$"),
        ("${name", "written \\$\\$"),
        ("x" * 10_001, "longer than 10000"),
    ],
)
def test_any_other_template_is_refused(text: str, problem: str) -> None:
    with pytest.raises(BadRequest, match=problem):
        check_template(text)
