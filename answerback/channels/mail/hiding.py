"""Decides from computed style whether a person could see the text of an element."""

from __future__ import annotations

import re
from dataclasses import replace

from tinycss2 import color3

from answerback.channels.mail.style import Style
from answerback.model import value

Colour = tuple[float, float, float]

_LENGTH = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))\s*([a-z%]*)")
_PX = {
    "px": 1.0, "": 1.0, "pt": 4 / 3, "pc": 16.0, "in": 96.0, "cm": 37.8, "mm": 3.78, "q": 0.94, "rem": 16.0,
    "vw": 12.8, "vh": 7.2, "ch": 8.0, "ex": 8.0, "vmin": 7.2, "vmax": 12.8,
}  # fmt: skip
_SIZES = {
    "xx-small": 9.0, "x-small": 10.0, "small": 13.0, "medium": 16.0, "large": 18.0, "x-large": 24.0,
    "xx-large": 32.0,
}  # fmt: skip
_FAR = 400.0  # px: beyond this a box stands outside every window
_TINY = 2.0  # px: a letter is a dot
_SMALL = 5.0  # px: a letter can hardly be read
_WHITE: Colour = (1.0, 1.0, 1.0)


@value
class Look:
    """What an element hands on to its children, and whether its own text can be seen."""

    #: the technique that hides it and all inside it, "" where it can be seen
    hidden: str = ""
    #: the technique that hides its own text only, since an element inside may be painted again
    unpainted: str = ""
    #: it and all inside it may have been hidden
    doubtful: bool = False
    #: its own text can hardly be read
    faint: bool = False
    size: float = 16.0
    colour: Colour = (0.0, 0.0, 0.0)
    #: alpha of the text colour
    ink: float = 1.0
    background: Colour = _WHITE
    #: a picture lies behind the text, so its colour tells nothing
    pictured: bool = False
    invisible: bool = False
    pre: bool = False


def look(outer: Look, style: Style, attributes: dict[str, str | None]) -> Look:
    """Return how an element looks inside `outer`, by its declarations and presentational attributes."""
    if outer.hidden:
        return outer
    now = _inherited(outer, style, attributes)
    faint = now.size < _SMALL or _distance(now) < 0.2
    unsure = "filter" in style or _opacity(style) < 0.35 or any("var(" in text for text in style.values())
    return replace(
        now,
        hidden=_boxed(style, attributes),
        unpainted=_painted(now),
        doubtful=outer.doubtful or unsure,
        faint=faint,
    )


def length(text: str, whole: float = 16.0) -> float | None:
    """Return a CSS length in px (em and % of `whole`), None where it is none."""
    found = _LENGTH.match(text)
    if found is None:
        return None
    number, unit = float(found[1][:12]), found[2]
    if unit in ("em", "%"):
        return number * whole / (100 if unit == "%" else 1)
    factor = _PX.get(unit)
    return None if factor is None else number * factor


def _inherited(outer: Look, style: Style, attributes: dict[str, str | None]) -> Look:
    size = _size(style, outer.size)
    colour, ink = _colour(
        style.get("-webkit-text-fill-color") or style.get("color") or attributes.get("color")
    )
    behind = _background(style, attributes)
    visibility = style.get("visibility", "")
    spaces = style.get("white-space", "")
    return replace(
        outer,
        size=size,
        colour=colour or outer.colour,
        ink=outer.ink if colour is None else ink,
        background=behind or outer.background,
        pictured=_picture(style, attributes) or (outer.pictured and behind is None),
        invisible=visibility in ("hidden", "collapse") if visibility else outer.invisible,
        pre=spaces.startswith(("pre", "break-spaces")) if spaces else outer.pre,
    )


def _size(style: Style, outer: float) -> float:
    text = style.get("font-size", "")
    if not text and "font" in style:
        text = next((word.partition("/")[0] for word in style["font"].split() if word[:1].isdigit()), "")
    if text in _SIZES:
        return _SIZES[text]
    found = length(text, outer)
    return outer if found is None else found


def _colour(text: str | None) -> tuple[Colour | None, float]:
    found = color3.parse_color(text) if text else None
    if not isinstance(found, color3.RGBA):
        return None, 1.0
    return (found.red, found.green, found.blue), found.alpha


def _background(style: Style, attributes: dict[str, str | None]) -> Colour | None:
    candidates = [
        style.get("background-color"),
        *style.get("background", "").split(),
        attributes.get("bgcolor"),
    ]
    for text in candidates:
        colour, alpha = _colour(text)
        if colour is not None and alpha > 0.5:
            return colour
    return None


def _picture(style: Style, attributes: dict[str, str | None]) -> bool:
    drawn = style.get("background", "") + style.get("background-image", "")
    return "url(" in drawn or "gradient(" in drawn or bool(attributes.get("background"))


def _distance(now: Look) -> float:
    if now.pictured:
        return 1.0
    return now.ink * max(abs(a - b) for a, b in zip(now.colour, now.background, strict=True))


def _opacity(style: Style) -> float:
    found = length(style.get("opacity", ""), 1.0)
    return 1.0 if found is None else found


def _painted(now: Look) -> str:
    if now.invisible:
        return "visibility"
    if now.size < _TINY:
        return "font-size"
    return "colour" if now.ink < 0.1 or _distance(now) < 0.1 else ""


def _boxed(style: Style, attributes: dict[str, str | None]) -> str:
    display = style.get("display", "")
    if display == "none" or (not display and ("hidden" in attributes or "popover" in attributes)):
        return "display:none" if display else "hidden attribute"
    if style.get("content-visibility") == "hidden":
        return "content-visibility"
    if _opacity(style) < 0.1:
        return "opacity"
    if _empty_box(style):
        return "zero-size"
    return "off-screen" if _away(style) or _clipped(style) else ""


def _empty_box(style: Style) -> bool:
    cut = {style.get(name, "").split(" ")[0] for name in ("overflow", "overflow-x", "overflow-y")}
    texts = [style.get(name, "") for name in ("height", "max-height", "width", "max-width")]
    sizes = (length(text) for text in texts if not text.endswith("%") or text.startswith("0"))
    return bool(cut & {"hidden", "clip", "scroll", "auto"}) and any(
        size is not None and size < 3 for size in sizes
    )


def _away(style: Style) -> bool:
    placed = style.get("position") in ("absolute", "fixed", "relative")
    names = ("left", "top", "right", "bottom") if placed else ()
    edges = [length(style.get(name, "")) for name in (*names, "text-indent", "margin-left", "margin-top")]
    edges += [length(word) for word in style.get("margin", "").split()]
    if any(edge is not None and (edge < -_FAR or edge > 4 * _FAR) for edge in edges):
        return True
    moved = style.get("transform", "")
    return "scale(0" in moved or any(abs(float(n)) > _FAR for n in re.findall(r"(?<![\d.])-?\d{3,9}", moved))


def _clipped(style: Style) -> bool:
    clip, path = style.get("clip", "").replace(" ", ""), style.get("clip-path", "").replace(" ", "")
    if clip.startswith("rect(") and style.get("position") in ("absolute", "fixed"):
        edges = [length(edge) for edge in re.split(r"[ ,]+", style["clip"][5:].strip(" )"))]
        return all(edge is not None and abs(edge) < 3 for edge in edges)
    return path.startswith(("inset(50%", "inset(100%", "circle(0", "polygon(00", "ellipse(0"))
