"""Reads gaps, deadlines and policies, and holds the built-in schedules."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeGuard, get_args

from answerback.errors import BadRequest, BadSchedule, DeadlineTooFar
from answerback.model import Gap, Json, Schedule
from answerback.waits.business_days import Calendar, add_business_days
from answerback.waits.templates import check_template

OnAbandon = Literal["fail_step", "tell_owner", "hand_to_person", "stop_sequence"]
#: seconds per plain unit, the largest first
SECONDS = {"h": 3600, "min": 60, "s": 1}
MOST_GAPS = 10
#: the longest gap, in business days and in seconds
LONGEST = {"bd": 60, "s": 60 * 86400}
_GAP = re.compile(r"([0-9]{1,9})(bd|h|min|s)")
_GAP_HELP = "write it as 2bd (business days), 4h, 5min or 3s"


def parse_gap(text: str) -> Gap:
    """Return the gap a text such as `2bd`, `4h`, `5min` or `3s` spells.

    Raises:
        BadRequest: it spells none, or one that is zero or longer than 60 days.
    """
    found = _GAP.fullmatch(text.strip())
    if not found:
        raise BadRequest(field="gap", problem=f"{text!r} is none; {_GAP_HELP}")
    amount = int(found[1])
    gap = _gap(amount, found[2])
    if not 0 < gap.amount <= LONGEST[gap.unit]:
        raise BadRequest(field="gap", problem=f"{text!r} is not between 1 s and 60 days; {_GAP_HELP}")
    return gap


def _gap(amount: int, unit: str) -> Gap:
    return Gap(amount=amount, unit="bd") if unit == "bd" else Gap(amount=amount * SECONDS[unit], unit="s")


def spell_gap(gap: Gap) -> str:
    """Return a gap as `parse_gap` reads it, in the largest unit that fits."""
    if gap.unit == "bd":
        return f"{gap.amount}bd"
    unit = next(unit for unit, seconds in SECONDS.items() if gap.amount % seconds == 0)
    return f"{gap.amount // SECONDS[unit]}{unit}"


def after(gap: Gap, start: datetime, calendar: Calendar) -> datetime:
    """Return the instant a gap that starts at `start` is over, in UTC."""
    if gap.unit == "bd":
        return add_business_days(start, gap.amount, calendar)
    return start.astimezone(UTC) + timedelta(seconds=gap.amount)


def deadline(text: str, now: datetime, calendar: Calendar) -> datetime:
    """Return the instant that `10bd`, `36h` or an ISO time with zone means, in UTC.

    Raises:
        BadRequest: it means none, or is a local time of no zone. DeadlineTooFar: no calendar reaches there.
    """
    if found := _GAP.fullmatch(text.strip()):
        gap = _gap(int(found[1]), found[2])
        if gap.amount > LONGEST[gap.unit]:
            raise DeadlineTooFar(deadline=text.strip())
        if not gap.amount:
            raise BadRequest(
                field="deadline", problem=f"{text!r} is not ahead; write up to 30 days as 10bd or 36h"
            )
        return after(gap, now, calendar)
    try:
        instant = datetime.fromisoformat(text.strip())
        if instant.tzinfo is not None:
            return instant.astimezone(UTC)
    except (ValueError, OverflowError):
        problem = f"{text!r} is none; write 10bd, 36h or an ISO time with zone, as 2030-12-24T12:00:00+01:00"
    else:
        given = text.strip()
        noon = f"{given}T12:00:00" if re.fullmatch(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}", given) else given
        problem = f"{text!r} names no zone; write it as {noon}Z or with +01:00"
    raise BadRequest(field="deadline", problem=problem)


def from_policy(name: str, version: int, policy: Json) -> Schedule:
    """Return the schedule a policy describes, as an operator gave it or `to_policy` wrote it.

    Raises:
        BadSchedule: it can not be followed.
    """
    on_abandon = policy.get("on_abandon") or "tell_owner"
    if not _is_on_abandon(on_abandon):
        raise BadSchedule(name=name, problem=f"on_abandon is one of {', '.join(get_args(OnAbandon))}")
    schedule = Schedule(
        name=name,
        version=version,
        gaps=_gaps(name, policy.get("gaps")),
        on_abandon=on_abandon,
        sequence=_flag(name, policy.get("sequence", False)),
        away_default=_days(name, policy, "away_default", 3),
        away_limit=_days(name, policy, "away_limit", 20),
        nudge_text=_template(name, policy.get("nudge_text") or ""),
    )
    if schedule.sequence and len(schedule.gaps) > 2:
        raise BadSchedule(name=name, problem="a sequence makes at most one nudge; give one or two gaps")
    return schedule


def _is_on_abandon(text: object) -> TypeGuard[OnAbandon]:
    return text in get_args(OnAbandon)


def _gaps(name: str, listed: object) -> tuple[Gap, ...]:
    if not isinstance(listed, list | tuple) or not 1 <= len(listed) <= MOST_GAPS:
        problem = f"give 1 to {MOST_GAPS} gaps, one before each nudge and a last one before it is abandoned"
        raise BadSchedule(name=name, problem=problem)
    try:
        return tuple(parse_gap(str(one)) for one in listed)
    except BadRequest as error:
        raise BadSchedule(name=name, problem=error.message) from None


def _flag(name: str, given: object) -> bool:
    if not isinstance(given, bool):
        raise BadSchedule(name=name, problem="sequence is true or false")
    return given


def _days(name: str, policy: Json, field: str, default: int) -> int:
    days = policy.get(field, default)
    if not isinstance(days, int) or isinstance(days, bool) or not 1 <= days <= LONGEST["bd"]:
        raise BadSchedule(
            name=name, problem=f"{field} is a number of business days from 1 to {LONGEST['bd']}"
        )
    return days


def _template(name: str, text: object) -> str:
    if not isinstance(text, str):
        raise BadSchedule(name=name, problem="nudge_text is a text")
    try:
        check_template(text)
    except BadRequest as error:
        raise BadSchedule(name=name, problem=error.message) from None
    return text


def to_policy(schedule: Schedule) -> Json:
    """Return the policy that `from_policy` reads back as the same schedule."""
    return {
        "gaps": [spell_gap(gap) for gap in schedule.gaps],
        "on_abandon": schedule.on_abandon,
        "sequence": schedule.sequence,
        "away_default": schedule.away_default,
        "away_limit": schedule.away_limit,
        "nudge_text": schedule.nudge_text,
    }


#: the defaults, each tunable by a new version under its name
BUILT_IN = (
    Schedule(name="verification-code", version=1, gaps=(Gap(amount=300, unit="s"),), on_abandon="fail_step"),
    Schedule(name="internal", version=1, gaps=(Gap(amount=1, unit="bd"), Gap(amount=1, unit="bd"))),
    Schedule(
        name="vendor-quote",
        version=1,
        gaps=(Gap(amount=2, unit="bd"), Gap(amount=2, unit="bd"), Gap(amount=3, unit="bd")),
    ),
    Schedule(
        name="cold-outreach",
        version=1,
        gaps=(Gap(amount=5, unit="bd"), Gap(amount=5, unit="bd")),
        on_abandon="stop_sequence",
        sequence=True,
    ),
)
