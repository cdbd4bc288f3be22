"""Finds in an out-of-office answer when the person is back."""

# The words are those of many alphabets, so letters that look like Latin ones belong here.
# ruff: noqa: RUF001
from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import dateparser

from answerback.channels.mail.fields import Fields

_LATEST = timedelta(days=120)
_MOST_TEXT = 4000
_REACH = 90  # characters behind a cue in which its date stands
_MONTHS = (
    "jan feb mar mär apr may mai jun jul aug sep oct okt nov dec dez gen mag giu lug ago set ott dic"
    " ene abr avr fév déc juin juil aoû"
    " mrt mei fev dez maj sty lut kwi cze lip sie wrz paź lis gru янв фев мар апр мая июн июл авг"
    " сен окт ноя дек märz maart"
)
_MONTH = rf"(?:{'|'.join(sorted(_MONTHS.split(), key=len, reverse=True))})[^\W\d_]{{0,9}}\.?"
_DATE = re.compile(
    rf"(?P<iso>\d{{4}}-\d{{1,2}}-\d{{1,2}})|(?P<cjk>(?:\d{{4}}年)?\d{{1,2}}月\d{{1,2}}日)"
    rf"|(?P<numeric>(?<!\d)\d{{1,2}}[./]\s?\d{{1,2}}(?:[./]\s?(?:\d{{4}}|\d{{2}}))?(?!\d)"
    rf"|(?<!\d)\d{{1,2}}-\d{{1,2}}-20\d\d)"
    rf"|(?P<day>(?<!\d)\d{{1,2}}(?:st|nd|rd|th|er|º|ª|°|\.|-?го)?\s{{0,2}}(?:de\s|of\s"
    rf"|do\s)?\s?{_MONTH}(?:,?\s(?:de\s)?20\d\d)?)"
    rf"|(?P<month>\b{_MONTH}\s{{1,2}}\d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,?\s20\d\d)?)"
    r"|(?P<weekday>\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:montag|dienstag|mittwoch"
    r"|donnerstag|freitag|samstag|sonntag)\b"
    r"|\b(?:lundi|mardi|mercredi|jeudi|vendredi|lunes|martes|miércoles|jueves|viernes|lunedì|martedì"
    r"|mercoledì|giovedì|venerdì"
    r"|maandag|dinsdag|woensdag|donderdag|vrijdag)\b|\btomorrow\b|\bmorgen\b|\bdemain\b|\bmañana\b"
    r"|\bdomani\b)",
    re.IGNORECASE,
)
#: per language: words that the day of return follows, then words that the last day away follows
_CUES = {
    "en": (
        (
            r"back (?:in the office |at work |at my desk )?(?:on|from|by)?|return(?:ing"
            r"|s)?(?: to [\w ]{1,20}?)?(?: on)?|again (?:on|from)|available (?:again )?(?:on|from)"
            r"|resume\w* (?:on)?"
        ),
        r"until|till|through|thru|to and including|\bto\b|\buntill\b|[-–—]",
    ),
    "de": (
        (
            r"wieder (?:ab|am|erreichbar ab)?|zurück (?:ab|am)?|\bab (?:dem|montag|dienstag|mittwoch"
            r"|donnerstag|freitag)|erreichbar ab|rückkehr(?: am)?|wieder im büro"
        ),
        r"\bbis(?: zum| einschließlich| einschl\.| inklusive| und mit| incl\.| inkl\.)?|[-–—]",
    ),
    "fr": (
        (
            r"de retour (?:le|à partir du|au bureau le)?|retour (?:le|prévu le)|à partir du"
            r"|reviendrai le|joignable (?:le|à partir du)|dès le"
        ),
        r"jusqu['’]?\s?(?:au|à)|\bau\b|[-–—]",
    ),
    "es": (
        (
            r"regres\w+ (?:el|a la oficina el)?|vuelv\w+ (?:el)?|de vuelta (?:el)?|vuelta el"
            r"|a partir del|reincorpor\w+ (?:el)?"
        ),
        r"hasta(?: el)?|\bal\b|[-–—]",
    ),
    "it": (
        (
            r"rientr\w+ (?:in ufficio )?(?:il|l['’])?|torn\w+ (?:il)?|di ritorno (?:il|dal)?"
            r"|a partire dal|dal giorno"
        ),
        r"fino al?|sino al|\bal\b|[-–—]",
    ),
    "pt": (
        (
            r"regress\w+ (?:a|no dia|em)?|retorn\w+ (?:em|no dia|a)?|de volta (?:em|a|no dia)?"
            r"|volt\w+ (?:em|no dia|a)?|a partir de"
        ),
        r"até(?: ao?| o)?(?: dia)?|[-–—]",
    ),
    "nl": (
        r"terug (?:op|vanaf)?|weer (?:bereikbaar|aanwezig|op kantoor)(?: op| vanaf)?|\bvanaf\b",
        r"\btot(?: en met)?|t/m|[-–—]",
    ),
    "sv": (
        r"tillbaka (?:den|igen)?|åter (?:den|på kontoret)?",
        r"till och med(?: den)?|t\.?o\.?m\.?|fram till|[-–—]",
    ),
    "da": (
        r"tilbage (?:den|igen|på kontoret)?|retur den",
        r"til og med(?: den)?|indtil(?: den)?|frem til|[-–—]",
    ),
    "pl": (
        r"wracam|powrót|będę (?:ponownie )?(?:dostępn\w|obecn\w)(?: od)?|ponownie od",
        r"\bdo(?: dnia)?\b|[-–—]",
    ),
    "ru": (r"вернусь|возвращаюсь|буду (?:снова )?(?:доступ\w+|на месте)", r"\bдо\b|\bпо\b|[-–—]"),
    "ja": (r"より|から|出社|復帰", r"まで"),
    "zh": (r"返回|恢复|回来|回到", r"至|到|直到"),
}
_COMPILED = {
    language: tuple(re.compile(cue, re.IGNORECASE) for cue in cues) for language, cues in _CUES.items()
}
#: words by which the language of an absence notice shows
_MARKERS = {
    "en": r"\b(?:the|office|am|will|be|and|of)\b",
    "de": r"\b(?:ich|bin|nicht|büro|und|der|bis|abwesend|wieder|urlaub)\b",
    "fr": r"\b(?:je|suis|bureau|absente?|jusqu|du|au|serai|congés?)\b",
    "es": r"\b(?:estoy|estaré|oficina|fuera|hasta|el|de la|vacaciones)\b",
    "it": r"\b(?:sono|ufficio|fuori|fino|sarò|dal|assente|ferie)\b",
    "pt": r"\b(?:estou|estarei|escritório|fora|até|não|férias)\b",
    "nl": r"\b(?:ik|ben|niet|kantoor|tot|afwezig|terug|met)\b",
    "sv": r"\b(?:jag|är|inte|kontoret|till|tillbaka|och)\b",
    "da": r"\b(?:jeg|er|ikke|kontoret|til|tilbage|og)\b",
    "pl": r"\b(?:jestem|nie|biurze|będę|urlopie|nieobecn\w+|do)\b",
    "ru": r"[а-я]{3,}",
    "ja": r"[\u3040-\u30ff]",
    "zh": r"[\u4e00-\u9fff]",
}
_LANGUAGE = {language: re.compile(words, re.IGNORECASE) for language, words in _MARKERS.items()}
_APPLE_END = re.compile(r"endDate=([0-9T:+Z. -]{8,35})", re.IGNORECASE)


def return_date(found: Fields, text: str, sent_at: datetime | None) -> datetime | None:
    """Return the day the sender is back, at its beginning in the zone of the mail's Date; None where it is
    not clear.

    A date before the mail or more than 120 days after it is taken for something else.
    """
    if sent_at is None:
        return None
    marked = _APPLE_END.search(found.first("x-apple-criteria"))
    named = _iso(marked[1], sent_at) if marked else None
    return _within(named, sent_at) or _cued(text[:_MOST_TEXT], sent_at)


def _cued(text: str, sent_at: datetime) -> datetime | None:
    language = max(_LANGUAGE, key=lambda name: len(_LANGUAGE[name].findall(text)))
    for cue in _COMPILED[language]:  # the day of return says more than the last day away
        for found in cue.finditer(text):
            back = _near(text, found, language, sent_at) or _before(text, found, language, sent_at)
            if back is not None:
                return back
    return None


def _near(text: str, cue: re.Match[str], language: str, sent_at: datetime) -> datetime | None:
    if language in ("ja", "zh") and cue.group() in ("まで", "から", "より"):
        before = list(_DATE.finditer(text, max(0, cue.start() - 16), cue.start()))
        return _read(before[-1], language, sent_at) if before else None
    found = _DATE.search(text, cue.end(), cue.end() + _REACH)
    if found is None or re.search(r"[!?\n;(]|[.](?=\s+\D)", text[cue.end() : found.start()]):
        return None
    # A bare dash is a cue only where a day stands on both sides of it.
    if cue.group() in "-–—" and found.start() - cue.end() > 2:
        return None
    if found.lastgroup == "weekday":
        exact = _DATE.match(text, *_behind(text, found))
        found = exact if exact is not None else found
    return _read(found, language, sent_at)


def _before(text: str, cue: re.Match[str], language: str, sent_at: datetime) -> datetime | None:
    """Return a day that stands right before a word for being back ("am 23. März wieder im Büro")."""
    if cue.re is not _COMPILED[language][0]:
        return None
    dates = list(_DATE.finditer(text, max(0, cue.start() - 40), cue.start()))
    close = bool(dates) and not re.search(r"[.!?;\n(]", text[dates[-1].end() : cue.start()])
    return _read(dates[-1], language, sent_at) if close else None


def _behind(text: str, weekday: re.Match[str]) -> tuple[int, int]:
    """Return where the date stands that explains a weekday ("Monday, the 23rd of March")."""
    between = re.compile(r"[,.]?\s{0,2}(?:the |dem |den |der |le |el |il |dia |de |d\. )?").match(
        text, weekday.end()
    )
    start = between.end() if between else weekday.end()
    return start, start + 40


def _read(found: re.Match[str], language: str, sent_at: datetime) -> datetime | None:
    text = found.group()
    if found.lastgroup == "iso":
        return _within(_iso(text, sent_at), sent_at)
    if found.lastgroup == "cjk":
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        return _soonest([numbers], sent_at)
    if found.lastgroup == "numeric":
        return _numeric(text, language, sent_at)
    settings = {
        "RELATIVE_BASE": sent_at.replace(tzinfo=None), "PREFER_DATES_FROM": "future",
        "RETURN_AS_TIMEZONE_AWARE": False,
    }  # fmt: skip
    day = dateparser.parse(
        re.sub(r"(?<=\d)(?:st|nd|rd|th|er|º|ª|°|-?го)\b", "", text), languages=[language], settings=settings
    )
    return None if day is None else _within(_midnight(sent_at, day.year, day.month, day.day), sent_at)


def _numeric(text: str, language: str, sent_at: datetime) -> datetime | None:
    """Return a date of numbers. In English day and month may change places: only one order may make sense."""
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    year = [numbers[2] % 100 + 2000] if len(numbers) > 2 else []
    orders = [[*year, numbers[1], numbers[0]]]
    if language == "en" and "/" in text:
        orders.append([*year, numbers[0], numbers[1]])
    days = {day for order in orders if (day := _soonest([order], sent_at)) is not None}
    return days.pop() if len(days) == 1 else None


def _soonest(orders: list[list[int]], sent_at: datetime) -> datetime | None:
    """Return the first day from the mail's on that [year,] month, day can mean, None where none is near."""
    for numbers in orders:
        years = [numbers[0]] if len(numbers) == 3 else [sent_at.year, sent_at.year + 1]
        for year in years:
            day = _within(_midnight(sent_at, year, *numbers[-2:]), sent_at)
            if day is not None:
                return day
    return None


def _midnight(sent_at: datetime, year: int, month: int, day: int) -> datetime | None:
    try:
        return datetime(year, month, day, tzinfo=sent_at.tzinfo)
    except (ValueError, OverflowError):
        return None


def _iso(text: str, sent_at: datetime) -> datetime | None:
    words = text.strip().replace(" ", "T", 1).replace("Z", "+00:00")
    try:
        found = datetime.fromisoformat(words)
    except ValueError:
        numbers = [int(number) for number in re.findall(r"\d+", text)[:3]]
        return _midnight(sent_at, *numbers) if len(numbers) == 3 else None
    return found if found.tzinfo is not None else found.replace(tzinfo=sent_at.tzinfo)


def _within(day: datetime | None, sent_at: datetime) -> datetime | None:
    if day is None:
        return None
    try:
        ahead = day.astimezone(UTC) - sent_at.astimezone(UTC)
    except OverflowError:
        return None
    return day if timedelta(days=-1) < ahead <= _LATEST else None
