"""Whatever happens to a wait, and in whatever order, it obeys its laws."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerback.model import ENDED, RUNNING, Schedule, Wait, WaitState
from answerback.waits import events
from answerback.waits.business_days import Calendar, next_working_instant
from answerback.waits.machine import Facts, SendNudge, WithdrawNudges, step
from answerback.waits.schedule import parse_gap
from tests.oracle import wait_laws

START = datetime(2025, 3, 24, 6, 0, tzinfo=UTC)  # the week before the clock changes in Berlin
BERLIN = Calendar(zone=ZoneInfo("Europe/Berlin"))
PEOPLE = ("pat@supplier.example", "lee@supplier.example")
SCHEDULES = [
    ("2bd", "2bd", "3bd"),
    ("1bd",),
    ("1bd", "1bd", "1bd", "1bd"),
    ("3s", "5min"),
    ("4h", "4h", "1h"),
]

PERSONS = st.sampled_from([*PEOPLE, "boss@supplier.example"])
LATER = st.integers(-3 * 1440, 40 * 1440).map(lambda minutes: START + timedelta(minutes=minutes))
EVENTS = st.one_of(
    st.just(events.Due()),
    st.just(events.Due()),
    st.sampled_from(
        [
            events.Replied(),
            events.WaitpointExpired(),
            events.SubmissionUnknown(),
            events.Failed(),
            events.NudgeHeld(),
            events.QuotaExceeded(),
            events.WaiterStalled(),
            events.WaiterBack(),
            events.NudgeReleased(),
            events.NudgeRejected(),
            events.HoldExpired(),
            events.AnsweredElsewhere(),
            events.WaitpointCancelled(),
            events.Cancelled(),
            events.OwnerWrote(),
            events.Misread(),
            events.Declined(),
            events.Paused(),
            events.Resumed(),
        ]
    ),
    st.builds(events.Resumed, not_before=LATER),
    st.builds(events.Rescheduled, at=LATER),
    st.builds(events.Sent, at=LATER),
    st.builds(events.Undeliverable, recipient=PERSONS, reason=st.just("bounced")),
    st.builds(events.AutoReplied, recipient=PERSONS, return_date=st.none() | LATER),
)


@dataclass(frozen=True)
class Happening:
    """One event, and how the world stands when it comes."""

    event: events.Event
    #: minutes since the one before; None: exactly when the next step is due
    minutes: int | None
    unsent: bool
    review_open: bool
    waitpoint_open: bool


OFTEN = st.sampled_from([True, True, True, True, False])
HAPPENINGS = st.lists(
    st.builds(
        Happening,
        event=EVENTS,
        minutes=st.none() | st.integers(0, 3 * 1440),
        unsent=OFTEN.map(lambda yes: not yes),
        review_open=OFTEN.map(lambda yes: not yes),
        waitpoint_open=OFTEN,
    ),
    max_size=25,
)


def play(
    gaps: tuple[str, ...], room: int | None, happenings: list[Happening]
) -> tuple[list[wait_laws.Step], list[Wait]]:
    """Let everything happen in turn; return the log and the wait after each step."""
    expires_at = None if room is None else START + timedelta(minutes=room)
    schedule = Schedule(name="laws", version=1, gaps=tuple(map(parse_gap, gaps)))
    base = Facts(schedule=schedule, calendar=BERLIN, expires_at=expires_at, required=PEOPLE)
    begun = step(None, events.Queued(at=START), base, START).wait
    assert begun is not None
    wait, now, set_by_person = begun, START, None
    log = [wait_laws.Step(event="Queued", at=now, before="", after=str(wait.state), due_at=wait.due_at)]
    waits = [wait]
    for one in happenings:
        now = max(now, wait.due_at or now) if one.minutes is None else now + timedelta(minutes=one.minutes)
        facts = Facts(
            schedule=schedule,
            calendar=BERLIN,
            expires_at=expires_at,
            waitpoint_open=one.waitpoint_open and (expires_at is None or now < expires_at),
            unsent=one.unsent,
            review_open=one.review_open,
            required=PEOPLE,
        )
        found = step(wait, one.event, facts, now)
        assert found.wait is not None
        again = step(found.wait, one.event, facts, now)
        if not isinstance(one.event, events.Due):
            # A due time just made may be over already; the next look finds it.
            assert (again.wait, again.effects) == (found.wait, ())
        nudges = tuple(effect.number for effect in found.effects if isinstance(effect, SendNudge))
        was_set = set_by_person is not None and wait.due_at == set_by_person
        if isinstance(one.event, events.Rescheduled) and found.rule:
            set_by_person = found.wait.due_at
        stops = found.wait.state not in RUNNING and wait.state in RUNNING
        assert not stops or WithdrawNudges() in found.effects
        assert found.rule is not None or (found.wait, found.effects) == (wait, ())
        log.append(
            wait_laws.Step(
                event=type(one.event).__name__,
                at=now,
                before=str(wait.state),
                after=str(found.wait.state),
                nudges=nudges,
                due_at=found.wait.due_at,
                person_set=was_set,
            )
        )
        wait = found.wait
        waits.append(wait)
    return log, waits


@settings(max_examples=150, deadline=None)
@given(gaps=st.sampled_from(SCHEDULES), room=st.none() | st.integers(1, 25 * 1440), happenings=HAPPENINGS)
def test_every_history_obeys_the_laws(
    gaps: tuple[str, ...], room: int | None, happenings: list[Happening]
) -> None:
    log, waits = play(gaps, room, happenings)
    counts_days = gaps[0].endswith("bd")
    expires_at = None if room is None else START + timedelta(minutes=room)
    terms = wait_laws.Terms(
        expires_at=expires_at,
        works_at=(lambda at: next_working_instant(at, BERLIN) == at) if counts_days else None,
    )
    assert wait_laws.violations(log, terms) == []
    for wait in waits:
        assert list(wait.plan) == sorted(wait.plan)
        assert not wait.plan or wait.plan[0] >= min(wait.since, expires_at or wait.since)
        assert expires_at is None or not wait.plan or wait.plan[-1] <= expires_at
        assert wait.nudges <= len(gaps) - 1
        assert wait.moves <= 3
        assert (wait.resume_to in RUNNING) == (wait.state is WaitState.PAUSED)
        assert (wait.reason != "") == (wait.state not in RUNNING | {WaitState.REPLIED})


@pytest.mark.parametrize("gaps", SCHEDULES, ids="-".join)
def test_silence_ends_after_every_nudge_was_made_once(gaps: tuple[str, ...]) -> None:
    due = Happening(event=events.Due(), minutes=None, unsent=False, review_open=False, waitpoint_open=True)
    log, waits = play(gaps, None, [due] * (len(gaps) + 2))
    assert [number for line in log for number in line.nudges] == list(range(1, len(gaps)))
    assert (waits[-1].state, waits[-1].reason) == (WaitState.ABANDONED, "no_reply")
    assert sum(line.after in ENDED and line.before not in ENDED for line in log) == 1
