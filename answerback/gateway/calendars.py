"""Finds the calendar a recipient works by: zone, country, holidays, window."""

from __future__ import annotations

from datetime import date, time
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from answerback.model import Inbox, Json, Scope
from answerback.store import tenants
from answerback.waits.business_days import Calendar, calendar_for

if TYPE_CHECKING:
    from answerback.store.session import Tx


def of(tx: Tx, scope: Scope, address: str, inbox: Inbox) -> tuple[Calendar, str]:
    """Return a recipient's calendar and where its zone came from.

    The source is `contact`, `country` (of the contact), `inbox` or `none`; with none, windows are
    13-16 UTC, Monday to Friday.
    """
    contact = tenants.contact_of(tx, scope, address)
    hours = contact.hours if contact else {}
    country = (contact.country if contact else "") or inbox.country
    if contact and contact.zone:
        return _calendar(contact.zone, country, hours), "contact"
    if contact and contact.country and (zone := zone_of(contact.country)):
        return _calendar(zone, country, hours), "country"
    if zone := inbox.zone or zone_of(inbox.country):
        return _calendar(zone, country, hours), "inbox"
    return _calendar("", country, hours), "none"


def _calendar(zone: str, country: str, hours: Json) -> Calendar:
    usual = calendar_for(zone, country)
    if not hours:
        return usual
    workdays, holidays, window = hours.get("workdays"), hours.get("holidays"), hours.get("window")
    return Calendar(
        zone=ZoneInfo(zone) if zone else usual.zone,
        workdays=frozenset(_integers(workdays)) if workdays else usual.workdays,
        holidays=frozenset(map(date.fromisoformat, _words(holidays))) if holidays else usual.holidays,
        window=_window(_words(window)) if window else usual.window,
    )


def _window(hours: list[str]) -> tuple[time, time]:
    start, end = map(time.fromisoformat, hours)
    return start, end


def _words(listed: object) -> list[str]:
    assert isinstance(listed, list)
    return [str(entry) for entry in listed]


def _integers(listed: object) -> list[int]:
    assert isinstance(listed, list)
    return [int(entry) for entry in listed]


def zone_of(country: str) -> str:
    """Return the main zone of an ISO 3166 country, "" where unknown.

    The source is the time zone database's own table; of several zones it lists the most populous first.
    """
    return _zones().get(country.upper(), "")


@cache
def _zones() -> dict[str, str]:
    table: dict[str, str] = {}
    for line in (files("tzdata") / "zoneinfo" / "zone.tab").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            country, _, zone = line.split("\t")[:3]
            table.setdefault(country, zone)
    return table
