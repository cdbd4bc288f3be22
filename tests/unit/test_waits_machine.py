"""Each row of the wait's table, as a case: what stood before, what happened, what stands and is done after."""

# long because: every row of the table is tried from every state

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from answerback.model import ENDED, RUNNING, Schedule, Wait, WaitState
from answerback.waits import events
from answerback.waits.business_days import Calendar
from answerback.waits.machine import (
    TABLE,
    Effect,
    Facts,
    OpenReview,
    SendNudge,
    Step,
    Tell,
    WithdrawNudges,
    step,
)
from answerback.waits.schedule import parse_gap

W = WaitState
PAT, LEE = "Pat@Supplier.example", "lee@supplier.example"
WITHDRAW = WithdrawNudges()


def z(text: str) -> datetime:
    """The instant of a UTC time in March 2025, given as `day hour:minute`."""
    day, clock = text.split()
    return datetime.fromisoformat(f"2025-03-{int(day):02}T{clock}").replace(tzinfo=UTC)


def at(*texts: str) -> tuple[datetime, ...]:
    """Several instants of March 2025."""
    return tuple(map(z, texts))


def schedule(*gaps: str) -> Schedule:
    """A schedule with these gaps."""
    return Schedule(name="test", version=1, gaps=tuple(map(parse_gap, gaps)))


def facts(expires: str = "", **rest: object) -> Facts:
    """Facts about a wait for Pat in Berlin."""
    known: dict[str, object] = {
        "schedule": schedule("2bd", "2bd", "3bd"),
        "calendar": Calendar(zone=ZoneInfo("Europe/Berlin")),
        "expires_at": z(expires) if expires else None,
        "required": (PAT,),
    }
    return Facts(**(known | rest))  # type: ignore[arg-type]


def told(event: str, reason: str, *audience: str) -> Tell:
    """What is told to whom; by default to waiter and owner."""
    return Tell(event=event, audience=audience or ("waiter", "owner"), reason=reason)  # type: ignore[arg-type]


#: sent on Monday 3 March at 10:00 in Berlin
WAITING = Wait(state=W.WAITING, since=z("3 09:00"), plan=at("5 09:00", "7 09:00", "12 09:00"))
NUDGED = Wait(state=W.NUDGED, nudges=1, since=z("5 09:00"), plan=at("7 09:00", "12 09:00"))
LAST = Wait(state=W.NUDGED, nudges=2, since=z("7 09:00"), plan=at("12 09:00"))
REPLIED = Wait(state=W.REPLIED, nudges=1, since=z("5 09:00"))
ABANDONED = Wait(state=W.ABANDONED, reason="no_reply", nudges=2, since=z("7 09:00"))
CANCELLED = Wait(state=W.CANCELLED, reason="cancelled", since=z("3 09:00"))


def paused(reason: str, wait: Wait = NUDGED) -> Wait:
    """A wait that stands still."""
    plan = wait.plan if reason == "stalled" else ()
    return replace(wait, state=W.PAUSED, reason=reason, resume_to=wait.state, plan=plan)


def ended(wait: Wait, state: WaitState, reason: str = "") -> Wait:
    """The wait once it has ended."""
    return replace(wait, state=state, reason=reason, plan=(), resume_to=None)


PAUSE = (WITHDRAW, told("wait.paused", "person"))


def asking(reason: str) -> tuple[Effect, ...]:
    """The effects of a pause that a person has to look at."""
    return WITHDRAW, told("wait.paused", reason), OpenReview(reason=reason)


def giving_up(reason: str) -> tuple[Effect, ...]:
    """The effects of an end without an answer."""
    return WITHDRAW, told("wait.abandoned", reason)


EXPIRING = (WITHDRAW, told("wait.abandoned", "expired", "owner"))

Case = tuple[Wait | None, events.Event, str, Facts, Wait | None, tuple[Effect, ...]]

CASES: dict[str, Case] = {
    "a queued message begins the wait": (
        None,
        events.Queued(at=z("3 09:00")),
        "3 09:00",
        facts(),
        WAITING,
        (),
    ),
    "a sent message begins it too": (None, events.Sent(at=z("3 09:00")), "3 09:00", facts(), WAITING, ()),
    "nothing else begins one": (None, events.Due(), "3 09:00", facts(), None, ()),
    "what is really sent later counts from then": (
        WAITING,
        events.Sent(at=z("4 09:00")),
        "4 09:01",
        facts(),
        replace(WAITING, since=z("4 09:00"), plan=at("6 09:00", "10 09:00", "13 09:00")),
        (),
    ),
    "an old report of sending changes nothing": (
        NUDGED,
        events.Sent(at=z("4 09:00")),
        "5 10:00",
        facts(),
        NUDGED,
        (),
    ),
    "a job that fires early finds nothing to do": (WAITING, events.Due(), "5 08:59", facts(), WAITING, ()),
    "what has not left holds up what is due": (
        WAITING,
        events.Due(),
        "5 09:00",
        facts(unsent=True, review_open=True),
        replace(WAITING, plan=at("5 09:15", "7 09:15", "12 09:15")),
        (),
    ),
    "a nudge held up over the evening waits for the window": (
        replace(WAITING, plan=at("5 15:55", "7 09:00", "12 09:00")),
        events.Due(),
        "5 15:55",
        facts(unsent=True),
        replace(WAITING, plan=at("6 08:00", "10 08:00", "13 08:00")),
        (),
    ),
    "what leaves while it holds up the next step counts from when it left": (
        replace(WAITING, plan=at("5 09:15", "7 09:15", "12 09:15")),
        events.Sent(at=z("5 09:05")),
        "5 09:05",
        facts(),
        replace(WAITING, since=z("5 09:05"), plan=at("7 09:05", "11 09:05", "14 09:05")),
        (),
    ),
    "nobody who wrote is nagged": (
        WAITING,
        events.Due(),
        "5 09:00",
        facts(review_open=True),
        paused("review", WAITING),
        (WITHDRAW, told("wait.paused", "review")),
    ),
    "the first nudge": (
        replace(WAITING, away=("pat@supplier.example",)),
        events.Due(),
        "5 09:00",
        facts(),
        NUDGED,
        (SendNudge(number=1, to=(PAT,)),),
    ),
    "the second nudge goes to those who can be reached": (
        replace(NUDGED, dead=("pat@supplier.example",)),
        events.Due(),
        "7 09:04",
        facts(required=(PAT, LEE)),
        replace(LAST, since=z("7 09:04"), plan=at("12 09:04"), dead=("pat@supplier.example",)),
        (SendNudge(number=2, to=(LEE,)),),
    ),
    "a nudge missed over night is fitted into the window": (
        WAITING,
        events.Due(),
        "5 20:00",
        facts(),
        replace(WAITING, since=z("6 08:00"), plan=at("6 08:00", "10 08:00", "13 08:00")),
        (),
    ),
    "a nudge missed by less leaves now, though the window has just closed": (
        replace(WAITING, plan=at("5 15:58", "7 09:00", "12 09:00")),
        events.Due(),
        "5 16:02",
        facts(),
        replace(NUDGED, since=z("5 16:02"), plan=at("10 08:00", "13 08:00")),
        (SendNudge(number=1, to=(PAT,)),),
    ),
    "a plain gap knows no window": (
        replace(WAITING, plan=at("5 20:00", "5 21:00")),
        events.Due(),
        "5 22:00",
        facts(schedule=schedule("1h", "1h")),
        replace(NUDGED, since=z("5 22:00"), plan=at("5 23:00")),
        (SendNudge(number=1, to=(PAT,)),),
    ),
    "no nudge leaves after the deadline": (
        WAITING,
        events.Due(),
        "5 12:00",
        facts("5 11:00"),
        ended(WAITING, W.ABANDONED, "expired"),
        EXPIRING,
    ),
    "the end of the plan": (
        LAST,
        events.Due(),
        "12 09:00",
        facts(),
        ended(LAST, W.ABANDONED, "no_reply"),
        giving_up("no_reply"),
    ),
    "the end of the plan, for a person to take over": (
        LAST,
        events.Due(),
        "12 09:00",
        facts(schedule=replace(schedule("2bd", "2bd", "3bd"), on_abandon="hand_to_person")),
        ended(LAST, W.ABANDONED, "no_reply"),
        (*giving_up("no_reply"), OpenReview(reason="no_reply")),
    ),
    "with nobody to write to no nudge is made": (
        WAITING,
        events.Due(),
        "5 09:00",
        facts(required=()),
        ended(WAITING, W.ABANDONED, "no_reply"),
        giving_up("no_reply"),
    ),
    "an answer": (NUDGED, events.Replied(), "6 09:00", facts(), ended(NUDGED, W.REPLIED), (WITHDRAW,)),
    "an answer while it stands still": (
        paused("review"),
        events.Replied(),
        "6 09:00",
        facts(),
        ended(NUDGED, W.REPLIED),
        (WITHDRAW,),
    ),
    "an answer after it was given up, in time for the waitpoint": (
        ABANDONED,
        events.Replied(),
        "13 09:00",
        facts("20 09:00"),
        ended(ABANDONED, W.REPLIED),
        (WITHDRAW,),
    ),
    "an answer after it was given up, without a waitpoint": (
        ABANDONED,
        events.Replied(),
        "13 09:00",
        facts(),
        ended(ABANDONED, W.REPLIED),
        (WITHDRAW,),
    ),
    "an answer after the deadline": (
        ABANDONED,
        events.Replied(),
        "20 09:00",
        facts("20 09:00"),
        ABANDONED,
        (),
    ),
    "an answer whose waitpoint is closed": (
        ABANDONED,
        events.Replied(),
        "13 09:00",
        facts("20 09:00", waitpoint_open=False),
        ABANDONED,
        (),
    ),
    "an answer after a refusal": (
        replace(ABANDONED, reason="declined"),
        events.Replied(),
        "13 09:00",
        facts(),
        replace(ABANDONED, reason="declined"),
        (),
    ),
    "the deadline": (
        paused("person"),
        events.WaitpointExpired(),
        "20 09:00",
        facts("20 09:00"),
        ended(NUDGED, W.ABANDONED, "expired"),
        EXPIRING,
    ),
    "the last address is dead": (
        replace(NUDGED, dead=("pat@supplier.example",)),
        events.Undeliverable(recipient=LEE, reason="complained"),
        "6 09:00",
        facts(required=(PAT, LEE)),
        replace(
            ended(NUDGED, W.ABANDONED, "complained"),
            dead=("pat@supplier.example", "lee@supplier.example"),
        ),
        giving_up("complained"),
    ),
    "one address of several is dead": (
        NUDGED,
        events.Undeliverable(recipient="PAT@supplier.EXAMPLE", reason="bounced"),
        "6 09:00",
        facts(required=(PAT, LEE)),
        replace(NUDGED, dead=("pat@supplier.example",)),
        (),
    ),
    "the address of somebody in copy is dead": (
        NUDGED,
        events.Undeliverable(recipient="boss@supplier.example", reason="bounced"),
        "6 09:00",
        facts(),
        NUDGED,
        (),
    ),
    "a bounce after the end is recorded": (
        REPLIED,
        events.Undeliverable(recipient=PAT, reason="bounced"),
        "6 09:00",
        facts(),
        REPLIED,
        (),
    ),
    "an absence with a date moves to a business day after it": (
        WAITING,
        events.AutoReplied(recipient=PAT, return_date=z("9 23:00")),
        "3 09:01",
        facts(),
        replace(
            WAITING,
            since=z("11 08:00"),
            plan=at("11 08:00", "13 08:00", "18 08:00"),
            moves=1,
            moved_from=z("5 09:00"),
            away=("pat@supplier.example",),
        ),
        (told("wait.postponed", "away", "waiter"),),
    ),
    "an absence without a date moves by three business days": (
        NUDGED,
        events.AutoReplied(recipient=PAT),
        "5 09:01",
        facts(),
        replace(
            NUDGED,
            since=z("12 09:00"),
            plan=at("12 09:00", "17 09:00"),
            moves=1,
            moved_from=z("7 09:00"),
            away=("pat@supplier.example",),
        ),
        (told("wait.postponed", "away", "waiter"),),
    ),
    "an absence never moves past the deadline": (
        WAITING,
        events.AutoReplied(recipient=PAT, return_date=z("9 23:00")),
        "3 09:01",
        facts("10 17:00"),
        replace(
            WAITING,
            since=z("10 17:00"),
            plan=at("10 17:00"),
            moves=1,
            moved_from=z("5 09:00"),
            away=("pat@supplier.example",),
        ),
        (told("wait.postponed", "away", "waiter"),),
    ),
    "an absence that ends before the next step moves nothing": (
        WAITING,
        events.AutoReplied(recipient=PAT, return_date=z("3 23:00")),
        "3 09:01",
        facts(),
        replace(WAITING, away=("pat@supplier.example",)),
        (),
    ),
    "a return date that is past moves nothing": (
        WAITING,
        events.AutoReplied(recipient=PAT, return_date=datetime.min.replace(tzinfo=UTC)),
        "3 09:01",
        facts(),
        replace(WAITING, away=("pat@supplier.example",)),
        (),
    ),
    "one of several is away: the others are waited for": (
        WAITING,
        events.AutoReplied(recipient=LEE, return_date=z("9 23:00")),
        "3 09:01",
        facts(required=(PAT, LEE)),
        replace(WAITING, away=("lee@supplier.example",)),
        (),
    ),
    "the dead do not count among those who are here": (
        replace(WAITING, dead=("pat@supplier.example",)),
        events.AutoReplied(recipient=LEE, return_date=z("9 23:00")),
        "3 09:01",
        facts(required=(PAT, LEE)),
        replace(
            WAITING,
            since=z("11 08:00"),
            plan=at("11 08:00", "13 08:00", "18 08:00"),
            moves=1,
            moved_from=z("5 09:00"),
            dead=("pat@supplier.example",),
            away=("lee@supplier.example",),
        ),
        (told("wait.postponed", "away", "waiter"),),
    ),
    "the same absence told again changes nothing": (
        replace(WAITING, away=("pat@supplier.example",), moves=1, moved_from=z("5 09:00")),
        events.AutoReplied(recipient=PAT),
        "4 09:00",
        facts(),
        replace(WAITING, away=("pat@supplier.example",), moves=1, moved_from=z("5 09:00")),
        (),
    ),
    "somebody else's absence changes nothing": (
        WAITING,
        events.AutoReplied(recipient="boss@supplier.example"),
        "4 09:00",
        facts(),
        WAITING,
        (),
    ),
    "a fourth move asks a person": (
        replace(WAITING, moves=3, moved_from=z("3 09:00")),
        events.AutoReplied(recipient=PAT),
        "4 09:00",
        facts(),
        replace(paused("away", WAITING), moves=3, moved_from=z("3 09:00"), away=("pat@supplier.example",)),
        asking("away"),
    ),
    "an absence of months asks a person": (
        WAITING,
        events.AutoReplied(recipient=PAT, return_date=datetime.max.replace(tzinfo=UTC)),
        "4 09:00",
        facts(),
        replace(paused("away", WAITING), away=("pat@supplier.example",)),
        asking("away"),
    ),
    "moves that reach too far together ask a person": (
        replace(WAITING, moves=1, moved_from=z("3 09:00"), plan=at("28 09:00", "31 09:00")),
        events.AutoReplied(recipient=PAT),
        "20 09:00",
        facts(),
        replace(paused("away", WAITING), moves=1, moved_from=z("3 09:00"), away=("pat@supplier.example",)),
        asking("away"),
    ),
    "nobody knows whether it left": (
        NUDGED,
        events.SubmissionUnknown(),
        "5 10:00",
        facts(),
        paused("submission_unknown"),
        asking("submission_unknown"),
    ),
    "it did not leave": (NUDGED, events.Failed(), "5 10:00", facts(), paused("failed"), asking("failed")),
    "it is held": (NUDGED, events.NudgeHeld(), "5 10:00", facts(), paused("held"), asking("held")),
    "over the quota": (NUDGED, events.QuotaExceeded(), "5 10:00", facts(), paused("quota"), asking("quota")),
    "the waiter is stalled": (
        NUDGED,
        events.WaiterStalled(),
        "5 10:00",
        facts(),
        paused("stalled"),
        (WITHDRAW, told("wait.paused", "stalled")),
    ),
    "a person pauses": (WAITING, events.Paused(), "4 09:00", facts(), paused("person", WAITING), PAUSE),
    "a pause in a pause changes nothing": (
        paused("review"),
        events.Paused(),
        "6 09:00",
        facts(),
        paused("review"),
        (),
    ),
    "resumed, the gap counts from now and absences count anew": (
        replace(paused("away"), away=(PAT,), moves=3, moved_from=z("3 09:00")),
        events.Resumed(),
        "20 10:00",
        facts(),
        replace(NUDGED, since=z("20 10:00"), plan=at("24 10:00", "27 10:00")),
        (),
    ),
    "resumed not before a day": (
        paused("person", WAITING),
        events.Resumed(not_before=z("16 23:00")),
        "6 09:00",
        facts(),
        replace(WAITING, since=z("18 08:00"), plan=at("18 08:00", "20 08:00", "25 08:00")),
        (),
    ),
    "resumed not before a day that is past": (
        paused("person", WAITING),
        events.Resumed(not_before=z("5 23:00")),
        "6 09:00",
        facts(),
        replace(WAITING, since=z("6 09:00"), plan=at("10 09:00", "12 09:00", "17 09:00")),
        (),
    ),
    "a running wait can not be resumed": (NUDGED, events.Resumed(), "6 09:00", facts(), NUDGED, ()),
    "a time set by a person is obeyed literally": (
        WAITING,
        events.Rescheduled(at=z("9 03:00")),
        "6 09:00",
        facts(),
        replace(WAITING, since=z("9 03:00"), plan=at("9 03:00", "12 08:00", "17 08:00")),
        (),
    ),
    "a time set by a person ends a pause": (
        paused("person"),
        events.Rescheduled(at=z("9 03:00")),
        "6 09:00",
        facts(),
        replace(NUDGED, since=z("9 03:00"), plan=at("9 03:00", "13 08:00")),
        (),
    ),
    "a nudge set for the night leaves in the night": (
        replace(WAITING, plan=at("9 03:00", "12 08:00", "17 08:00")),
        events.Due(),
        "9 03:00",
        facts(),
        replace(NUDGED, since=z("9 03:00"), plan=at("12 08:00", "17 08:00")),
        (SendNudge(number=1, to=(PAT,)),),
    ),
    "a released nudge lets it go on": (
        paused("held"),
        events.NudgeReleased(),
        "6 10:00",
        facts(),
        replace(NUDGED, since=z("6 10:00"), plan=at("10 10:00", "13 10:00")),
        (),
    ),
    "only a held wait is released": (
        paused("review"),
        events.NudgeReleased(),
        "6 10:00",
        facts(),
        paused("review"),
        (),
    ),
    "a rejected nudge": (
        paused("held"),
        events.NudgeRejected(),
        "6 10:00",
        facts(),
        paused("nudge_rejected"),
        (WITHDRAW, OpenReview(reason="nudge_rejected")),
    ),
    "a hold that ran out": (
        paused("held"),
        events.HoldExpired(),
        "6 10:00",
        facts(),
        paused("hold_expired"),
        (WITHDRAW, OpenReview(reason="hold_expired")),
    ),
    "the waiter is back in time": (
        paused("stalled"),
        events.WaiterBack(),
        "6 10:00",
        facts(),
        NUDGED,
        (),
    ),
    "the waiter is back late: the next working instant": (
        paused("stalled", WAITING),
        events.WaiterBack(),
        "7 20:00",
        facts(),
        replace(WAITING, since=z("10 08:00"), plan=at("10 08:00", "12 08:00", "17 08:00")),
        (),
    ),
    "the waiter is back late, without windows": (
        paused("stalled", replace(WAITING, plan=at("5 09:00", "5 10:00"))),
        events.WaiterBack(),
        "7 20:00",
        facts(schedule=schedule("1h", "1h")),
        replace(WAITING, since=z("7 20:00"), plan=at("7 20:00", "7 21:00")),
        (),
    ),
    "a sign of life does not end another pause": (
        paused("review"),
        events.WaiterBack(),
        "6 10:00",
        facts(),
        paused("review"),
        (),
    ),
    "answered in another conversation": (
        paused("stalled"),
        events.AnsweredElsewhere(),
        "6 10:00",
        facts(),
        ended(NUDGED, W.CANCELLED, "answered_elsewhere"),
        (WITHDRAW,),
    ),
    "the waitpoint is cancelled": (
        WAITING,
        events.WaitpointCancelled(reason="hold_expired"),
        "4 10:00",
        facts(),
        ended(WAITING, W.CANCELLED, "hold_expired"),
        (WITHDRAW,),
    ),
    "called off": (
        NUDGED,
        events.Cancelled(),
        "6 10:00",
        facts(),
        ended(NUDGED, W.CANCELLED, "cancelled"),
        (WITHDRAW,),
    ),
    "the owner wrote by hand": (
        NUDGED,
        events.OwnerWrote(),
        "6 10:00",
        facts(),
        replace(NUDGED, since=z("6 10:00"), plan=at("10 10:00", "13 10:00")),
        (),
    ),
    "it was no answer": (
        replace(REPLIED, away=("pat@supplier.example",)),
        events.Misread(),
        "10 10:00",
        facts("28 09:00"),
        replace(NUDGED, state=W.WAITING, since=z("10 10:00"), plan=at("12 10:00", "17 10:00")),
        (),
    ),
    "it was no answer, but it resolved the waitpoint": (
        REPLIED,
        events.Misread(),
        "10 10:00",
        facts("28 09:00", waitpoint_open=False),
        REPLIED,
        (),
    ),
    "a refusal ends it for good": (
        REPLIED,
        events.Declined(),
        "10 10:00",
        facts(),
        ended(REPLIED, W.ABANDONED, "declined"),
        giving_up("declined"),
    ),
    "what is cancelled stays so": (CANCELLED, events.Replied(), "10 10:00", facts(), CANCELLED, ()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_row_of_the_table(name: str) -> None:
    before, event, now, known, after, effects = CASES[name]
    found = step(before, event, known, z(now))
    assert (found.wait, found.effects) == (after, effects)


@pytest.mark.parametrize("name", CASES)
def test_the_same_event_again_at_once_does_nothing_more(name: str) -> None:
    _, event, now, known, after, _ = CASES[name]
    again = step(after, event, known, z(now))
    assert (again.wait, again.effects) == (after, ())


def test_every_row_of_the_table_has_a_case() -> None:
    used = {step(before, event, known, z(now)).rule for before, event, now, known, _, _ in CASES.values()}
    assert {rule.name for rule in TABLE} == used - {None}


def test_rows_have_different_names() -> None:
    names = [(rule.states, rule.name) for rule in TABLE]
    assert len(set(names)) == len(names)


def test_a_row_is_named_as_it_is_read() -> None:
    found = step(WAITING, events.Due(), facts(), z("5 09:00"))
    assert found.rule == "Due, time reached, nudges remain: nudged"


def test_where_no_row_fits_the_step_says_so() -> None:
    assert step(CANCELLED, events.Due(), facts(), z("5 09:00")) == Step(wait=CANCELLED)


def test_whatever_ends_or_pauses_a_wait_takes_its_nudges_back() -> None:
    stops = [rule for rule in TABLE if rule.to in ENDED | {W.PAUSED}]
    assert [rule.name for rule in stops if rule.effects[0].__name__ != "withdraw"] == []
    goes_on = [rule for rule in TABLE if rule.to in RUNNING | {"same", "back"}]
    assert [rule.name for rule in goes_on if rule.effects and rule.effects[0].__name__ == "withdraw"] == []


@pytest.mark.parametrize("state", [W.REPLIED, W.ABANDONED, W.CANCELLED])
def test_an_ended_wait_is_never_nudged(state: WaitState) -> None:
    wait = Wait(state=state, since=z("3 09:00"))
    assert step(wait, events.Due(), facts(), z("3 09:00") + timedelta(days=99)) == Step(wait=wait)
