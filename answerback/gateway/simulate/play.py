"""Carries out a timeline: each event at its instant, and what falls due between them."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from answerback.gateway import advance, sending
from answerback.gateway.simulate import arriving, desk, outcome
from answerback.gateway.simulate.edges import POINTS, Refusal
from answerback.gateway.simulate.matchers import Observed, compare
from answerback.gateway.simulate.scenario import Scenario, instant
from answerback.gateway.simulate.stage import Stage
from answerback.gateway.simulate.world import SCOPE
from answerback.model import Json
from answerback.store import conversations
from answerback.waits import events

#: events of a `concurrent` step that may run in threads of their own
_SIDE_BY_SIDE = frozenset({"receive_email", "send", "open_waitpoint", "lease", "ack", "fire_due_jobs"})


def unsupported(scenario: Scenario) -> str:
    """Return what of a scenario this version can not play, "" where it can play all of it."""
    for conversation in scenario.context["conversations"]:
        if conversation["channel"] != "email":
            return str(conversation["channel"])
    steps = [step for event in scenario.events for step in event.get("steps", [event])]
    return next((step["do"] for step in steps if step["do"] not in EVENTS), "")


def play(stage: Stage) -> None:
    """Let every event of the stage's scenario happen."""
    for event in stage.scenario.events:
        at = instant(event["at"])
        stage.pass_until(at, including=event["do"] == "advance")
        EVENTS[event["do"]](stage, event)
        stage.settle()


def _advance(_stage: Stage, _event: Observed) -> None:
    """Time has passed already."""


def _clock_step(stage: Stage, event: Observed) -> None:
    stage.clock.step(instant(event["to"]))
    stage.beat()


def _stop(stage: Stage, _event: Observed) -> None:
    stage.settle()
    stage.running = False


def _start(stage: Stage, _event: Observed) -> None:
    stage.start()


def _fault(stage: Stage, event: Observed) -> None:
    where = event["where"]
    if event.get("kill"):
        stage.crash.arm(str(POINTS.get(where, where)))
    elif event.get("kind") == "none":
        stage.relay.heal()
    else:
        refusal = Refusal(
            kind=event["kind"], reply=event.get("reply", ""), recipient=event.get("recipient", "")
        )
        stage.relay.fail(refusal, event.get("times"))


def _schedule_nudge(stage: Stage, event: Observed) -> None:
    """Let a person set the time of the next step."""
    at = instant(event["at_utc"]) if "at_utc" in event else local(event["local"], event["tz"])
    wait_id = desk.wait_id(stage, event["waitpoint"])

    def set_time() -> None:
        with stage.context.db.write() as tx:
            work = stage.context.work(tx, SCOPE)
            cause: Json = {"by": "person:operator"}
            advance.advance(work, wait_id, events.Rescheduled(at=at), cause=cause)

    stage.do(set_time)


def local(text: str, zone: str) -> datetime:
    """Return the instant a wall clock shows a time, or the first after the gap where it skips that time."""
    wall = datetime.fromisoformat(text)
    clock = ZoneInfo(zone)
    found = wall.replace(tzinfo=clock).astimezone(UTC)
    if found.astimezone(clock).replace(tzinfo=None) == wall:
        return found
    # fold=1 reads a skipped time with the offset after the gap, so the two readings lie around its end.
    first = wall.replace(tzinfo=clock, fold=1).astimezone(UTC)
    while first.astimezone(clock).utcoffset() != found.astimezone(clock).utcoffset():
        first += timedelta(minutes=1)
    return first


def _fire_due_jobs(stage: Stage, event: Observed) -> None:
    for _ in range(event.get("count", 1)):
        stage.do(stage.tick)


def _fire_stale_job(stage: Stage, event: Observed) -> None:
    """Let a sender hand over what it found ready before the state changed."""
    conversation = stage.world.conversations[_conversation_of(stage.scenario, event["waitpoint"])]
    with stage.context.db.read() as tx:
        sent = [one.id for one in conversations.messages(tx, SCOPE, conversation) if one.kind == "nudge"]
    for message_id in sent:
        stage.do(partial(_hand_over, stage, message_id))
    stage.do(stage.tick)


def _hand_over(stage: Stage, message_id: str) -> None:
    stage.runner.run(sending.hand_over(stage.context, SCOPE, message_id))


def _conversation_of(scenario: Scenario, waitpoint: str) -> str:
    return next(str(w["conversation"]) for w in scenario.context["waitpoints"] if w["id"] == waitpoint)


def _concurrent(stage: Stage, event: Observed) -> None:
    """Let steps happen at the same moment: in threads where their kinds allow it."""
    steps = event["steps"]
    work = [partial(EVENTS[step["do"]], stage, {"at": event["at"], **step}) for step in steps]
    if not all(step["do"] in _SIDE_BY_SIDE for step in steps):
        for one in work:
            one()
        return
    with ThreadPoolExecutor(max_workers=8) as pool:
        for done in [pool.submit(one) for one in work]:
            done.result()


def _check(stage: Stage, event: Observed) -> None:
    observed = {"final": outcome.final(stage)}
    found = compare({"final": event["final"]}, observed)
    stage.record.mismatches += [f"at {event['at']}: {one}" for one in found]


EVENTS: dict[str, Callable[[Stage, Observed], None]] = {
    "ack": desk.ack,
    "advance": _advance,
    "again": desk.steer,
    "cancel": desk.steer,
    "check": _check,
    "clock_step": _clock_step,
    "concurrent": _concurrent,
    "decide": desk.decide,
    "fault": _fault,
    "fire_due_jobs": _fire_due_jobs,
    "fire_stale_job": _fire_stale_job,
    "lease": desk.lease,
    "lease_and_fail": desk.lease_and_fail,
    "open_waitpoint": desk.open_waitpoint,
    "pause": desk.steer,
    "receive_email": arriving.receive_email,
    "resume": desk.steer,
    "schedule_nudge": _schedule_nudge,
    "send": desk.send,
    "smtp_in": arriving.smtp_in,
    "start": _start,
    "stop": _stop,
    "suppress": desk.suppress,
}
