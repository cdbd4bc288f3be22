"""Renders the HTML of a mail as the text a person sees; what was hidden is taken out and counted."""

# The words are those of many alphabets, so letters that look like Latin ones belong here.
from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from selectolax.lexbor import LexborHTMLParser, LexborNode

from answerback.channels.mail import invisible
from answerback.channels.mail.hiding import Look, length, look
from answerback.channels.mail.page import Page
from answerback.channels.mail.style import Sheets, Style
from answerback.model import Removed, value

_MOST_HTML = 5 * 1024 * 1024
_DEEPEST = 400
_MOST_ELEMENTS = 20_000
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,30})")
_ANY_TAG = re.compile(r"<[^<>]{0,2000}>")
_FLAT = frozenset(
    [
        "area",
        "base",
        "br",
        "col",
        "embed",
        "hr",
        "img",
        "input",
        "link",
        "meta",
        "param",
        "source",
        "track",
        "wbr",
        "p",
        "li",
        "td",
        "th",
        "tr",
        "dt",
        "dd",
        "option",
        "tbody",
        "thead",
    ]
)
_UNSEEN = frozenset(
    [
        "head",
        "title",
        "script",
        "style",
        "template",
        "datalist",
        "iframe",
        "object",
        "audio",
        "video",
        "canvas",
        "noframes",
        "noembed",
        "dialog",
        "svg",
        "annotation",
        "annotation-xml",
        "rp",
        "select",
        "textarea",
    ]
)
_BLOCKS = frozenset(
    [
        "address",
        "article",
        "aside",
        "blockquote",
        "body",
        "center",
        "dd",
        "details",
        "div",
        "dl",
        "dt",
        "fieldset",
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "html",
        "legend",
        "li",
        "main",
        "nav",
        "ol",
        "p",
        "pre",
        "section",
        "summary",
        "table",
        "tbody",
        "tfoot",
        "thead",
        "tr",
        "ul",
        "caption",
    ]
)
_SPACED = frozenset(
    ["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "dl", "pre", "figure", "blockquote", "hr"]
)
#: elements webmail and Outlook put around history that has no quote marks of its own (seen 2023–2026)
_HISTORY_IDS = re.compile(
    r"(?:x_)*(?:divRplyFwdMsg|mail-editor-reference-message-container|isReplyContent|OLK_SRC_BODY_SECTION)"
)
_HISTORY_CLASSES = frozenset({
    "yahoo_quoted", "ms-outlook-mobile-reference-message", "freshdesk_quote", "zmail_extra",
    "protonmail_quote",
    "tutanota_quote", "moz-forward-container", "front-blockquote", "gorgias-reply", "intercom-reply",
})  # fmt: skip
MARKER = "-----Original Message-----"


@value
class Visible:
    """What of an HTML text can be seen, what perhaps, and what was taken out."""

    text: str = ""
    #: text that may have been hidden from a person
    suspect: str = ""
    removed: tuple[Removed, ...] = ()


def visible(html: str) -> Visible:
    """Return the text a person sees. What is too large or too deep to be judged is `suspect` as a whole."""
    html, counts = invisible.strip(html)
    if len(html) > _MOST_HTML or _too_deep(html):
        return Visible(suspect=_ANY_TAG.sub(" ", html[:_MOST_HTML]).strip(), removed=_removed(counts))
    reader = _Reader(LexborHTMLParser(html), counts)
    reader.read()
    text, more = invisible.strip(reader.page.text())  # character references become characters only here
    suspect = invisible.strip(reader.aside.text())[0]
    if not reader.sheets.complete:
        text, suspect = "", f"{text}\n{suspect}".strip()
    return Visible(text=text, suspect=suspect, removed=_removed(counts + more))


def _removed(counts: Counter[str]) -> tuple[Removed, ...]:
    return tuple(Removed(technique=name, count=count) for name, count in sorted(counts.items()))


def _too_deep(html: str) -> bool:
    """Return whether tags are more, or nest deeper, than any mail needs: both cost parsers dearly."""
    unclosed: Counter[str] = Counter()
    depth = seen = 0
    for end, written in _TAG.findall(html):
        name = written.lower()
        seen += not end
        if seen > _MOST_ELEMENTS:
            return True
        if name in _FLAT or (end and not unclosed[name]):
            continue
        step = -1 if end else 1
        unclosed[name] += step
        depth += step
        if depth > _DEEPEST:
            return True
    return False


class _Reader:
    """One walk over a document, without recursion."""

    def __init__(self, tree: LexborHTMLParser, counts: Counter[str]) -> None:
        self.tree = tree
        self.sheets = Sheets(tree)
        self.page, self.aside = Page(), Page()
        self.counts = counts
        self.numbers: list[int] = []

    def read(self) -> None:
        # A None look marks the way out of an element.
        waiting: list[tuple[LexborNode, Look | None, bool]] = []
        if self.tree.root is not None:
            waiting.append((self.tree.root, Look(), False))
        while waiting:
            node, outer, gap = waiting.pop()
            if outer is None:
                self._leave(node, gap)
            elif node.is_text_node:
                self._text(node.text_content or "", outer)
            elif node.is_comment_node:
                self.counts["comment"] += 1
            elif node.is_element_node:
                waiting += self._element(node, outer)

    def _element(self, node: LexborNode, outer: Look) -> list[tuple[LexborNode, Look | None, bool]]:
        tag = node.tag or ""
        attributes = {name.lower(): text for name, text in node.attributes.items()}
        style = self.sheets.style(node.mem_id, attributes.get("style") or "")
        now = look(outer, style, attributes)
        # Shown only after a click, or only where scripts are off: browsers and mail programs differ.
        if tag == "noscript" or (tag == "details" and "open" not in attributes):
            now = replace(now, doubtful=True)
        if tag in _UNSEEN or now.hidden:
            self._hide(node, tag if tag in _UNSEEN else now.hidden)
            return []
        if tag in ("pre", "listing") and "white-space" not in style:
            now = replace(now, pre=True)
        gap = self._enter(node, tag, attributes, style)
        children: list[tuple[LexborNode, Look | None, bool]] = []
        child = node.child
        while child is not None:
            children.append((child, now, False))
            child = child.next
        return [(node, None, gap), *reversed(children)]

    def _hide(self, node: LexborNode, technique: str) -> None:
        if (
            technique not in ("head", "title", "style", "script", "dialog", "template")
            and not node.text(deep=True).strip()
        ):
            return
        if technique not in ("head", "title", "style"):
            self.counts[technique] += 1

    def _text(self, text: str, now: Look) -> None:
        if now.unpainted:
            self.counts[now.unpainted] += bool(text.strip())
            return
        page = self.aside if now.doubtful or now.faint else self.page
        page.write(text, pre=now.pre)

    def _enter(self, node: LexborNode, tag: str, attributes: dict[str, str | None], style: Style) -> bool:
        """Begin an element's box; return whether a blank line follows it."""
        page = self.page
        gap = tag in _SPACED and not _flush(style)
        if tag == "br":
            page.line_break()
        elif tag in ("td", "th"):
            page.cell()
        elif tag in _BLOCKS or style.get("display", "") == "block":
            page.block(gap=gap)
        if tag in ("ol", "ul"):
            self.numbers.append(0 if tag == "ol" else -1)
        if tag == "li":
            page.write(self._bullet())
        if _is_history(tag, attributes):
            page.block(gap=True)
            page.write(MARKER)
            page.block()
        if _is_quote(tag, attributes, style):
            page.depth += 1
        return gap

    def _leave(self, node: LexborNode, gap: bool) -> None:
        tag = node.tag or ""
        attributes = {name.lower(): text for name, text in node.attributes.items()}
        style = self.sheets.style(node.mem_id, attributes.get("style") or "")
        if tag in _BLOCKS or style.get("display", "") == "block":
            self.page.block(gap=gap)
            self.aside.block()
        if tag in ("ol", "ul") and self.numbers:
            self.numbers.pop()
        if _is_quote(tag, attributes, style):
            self.page.block(gap=True)
            self.page.depth -= 1

    def _bullet(self) -> str:
        if not self.numbers or self.numbers[-1] < 0:
            return "- "
        self.numbers[-1] += 1
        return f"{self.numbers[-1]}. "


def _flush(style: Style) -> bool:
    """Return whether paragraphs stand without space between them, as Outlook's do."""
    margins = style.get("margin", "").split()
    top = style.get("margin-top") or (margins[0] if margins else "")
    bottom = style.get("margin-bottom") or (margins[2 if len(margins) > 2 else 0] if margins else "")
    return bool(top and bottom) and (length(top) or 0) < 4 and (length(bottom) or 0) < 4


def _is_quote(tag: str, attributes: dict[str, str | None], style: Style) -> bool:
    classes = set((attributes.get("class") or "").split())
    if tag != "blockquote":
        return bool(classes & _HISTORY_CLASSES) or (tag == "div" and attributes.get("name") == "quote")
    if attributes.get("type") == "cite" or classes & {"gmail_quote", "protonmail_quote", "tutanota_quote"}:
        return True
    # Composers indent with <blockquote style="border:none">; that is the author's own text.
    return style.get("border", "").split(" ")[0] not in ("none", "0", "0px")


def _is_history(tag: str, attributes: dict[str, str | None]) -> bool:
    if _HISTORY_IDS.fullmatch(attributes.get("id") or ""):
        return True
    classes = set((attributes.get("class") or "").split())
    return tag != "blockquote" and bool(classes & _HISTORY_CLASSES)
