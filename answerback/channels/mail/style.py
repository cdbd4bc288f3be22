"""Reads style sheets and inline styles: which declarations hold for which element."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

import tinycss2
from selectolax.lexbor import LexborHTMLParser, SelectolaxError
from tinycss2 import ast

#: final declarations of an element: property → value, both in lower case
Style = dict[str, str]
#: precedence of a declaration (CSS Cascade 4, section 6.1): important, inline, ids, classes, tags, order
Weight = tuple[bool, bool, int, int, int, int]

_READ = frozenset({
    "display", "visibility", "opacity", "font-size", "font", "color", "background", "background-color",
    "background-image",
    "position", "left", "right", "top", "bottom", "text-indent", "margin", "margin-left", "margin-top",
    "margin-bottom",
    "width", "height", "max-width", "max-height", "overflow", "overflow-x", "overflow-y", "clip", "clip-path",
    "transform", "white-space", "border", "border-left", "-webkit-text-fill-color", "content-visibility",
    "filter",
    "line-height",
})  # fmt: skip
_MOST_CSS = 256 * 1024
_MOST_RULES = 2000
_MOST_MATCHES = 50_000
#: selectors times elements: what matching them all may cost
_MOST_STEPS = 2_000_000
_LONGEST_SELECTOR = 200
_IDS = re.compile(r"#[\w-]+")
_CLASSES = re.compile(r"\.[\w-]+|\[[^\]]*\]|:[\w-]+")
_TAGS = re.compile(r"(?:^|[\s>+~])[a-z][\w-]*", re.IGNORECASE)
_BRACKETS = re.compile(r"[(){}\[\]]")
_NOT_HERE = re.compile(r"max-(?:device-)?width|\bprint\b|dark|\bnot\b|\bspeech\b", re.IGNORECASE)


class Sheets:
    """The style sheets of one document, matched to its elements."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        #: False where a bound was passed or a selector was not understood
        self.complete = True
        self._order = 0
        self._matched: defaultdict[int, list[tuple[Weight, str, str]]] = defaultdict(list)
        self._matches = self._steps = 0
        self._elements = len(tree.css("*"))
        css = "\n".join(node.text(deep=True) for node in tree.css("style"))
        if len(css) > _MOST_CSS or _nested(css):
            self.complete = False
            return
        for selector, declarations in self._rules(css):
            self._apply(tree, selector, declarations)

    def style(self, element: int, inline: str) -> Style:
        """Return the declarations that win for the element with that memory id and style attribute."""
        found = self._matched.get(element, ())
        if not inline and not found:
            return {}
        if _nested(inline):
            self.complete = False
            return {}
        own = [
            ((important, True, 0, 0, 0, order), name, text)
            for order, (name, text, important) in enumerate(_declarations(inline[:10_000]))
        ]
        return {name: text for _, name, text in sorted([*found, *own])}

    def _rules(self, css: str) -> Iterable[tuple[str, list[tuple[str, str, bool]]]]:
        waiting = [tinycss2.parse_stylesheet(css.replace("<!--", "").replace("-->", ""), True, True)]
        count = 0
        while waiting:
            for node in waiting.pop(0):
                count += 1
                if count > _MOST_RULES:
                    self.complete = False
                    return
                if isinstance(node, ast.QualifiedRule):
                    declarations = _declarations(node.content)
                    if declarations:
                        yield tinycss2.serialize(node.prelude).strip(), declarations
                elif isinstance(node, ast.AtRule) and _applies(node):
                    waiting.append(tinycss2.parse_rule_list(node.content, True, True))

    def _apply(
        self, tree: LexborHTMLParser, selectors: str, declarations: list[tuple[str, str, bool]]
    ) -> None:
        for selector in selectors.split(","):
            self._order += 1
            nodes = self._nodes(tree, selector.strip())
            specific = (
                len(_IDS.findall(selector)),
                len(_CLASSES.findall(selector)),
                len(_TAGS.findall(selector.strip())),
            )
            for element in nodes:
                self._matched[element] += [
                    ((important, False, *specific, self._order), name, text)
                    for name, text, important in declarations
                ]

    def _nodes(self, tree: LexborHTMLParser, selector: str) -> list[int]:
        if not selector:
            return []
        self._steps += self._elements
        within = self._matches <= _MOST_MATCHES and self._steps <= _MOST_STEPS
        if not within or len(selector) > _LONGEST_SELECTOR or len(selector.split()) > 6:
            self.complete = False
            return []
        try:
            found = [node.mem_id for node in tree.css(selector)]
        except (SelectolaxError, ValueError):
            return []  # browsers drop a rule whose selector they do not understand, too
        self._matches += len(found)
        return found


def _applies(rule: ast.AtRule) -> bool:
    """Return whether the rules inside an at-rule hold on a usual screen."""
    groups = rule.lower_at_keyword in ("media", "supports", "layer") and rule.content is not None
    return groups and not _NOT_HERE.search(tinycss2.serialize(rule.prelude))


def _nested(css: str) -> bool:
    """Return whether brackets nest deeper than any style sheet needs: writing them back is recursive."""
    depth = deepest = 0
    for mark in _BRACKETS.findall(css):
        depth += 1 if mark in "([{" else -1
        deepest = max(deepest, depth)
    return deepest > 40


def _declarations(source: object) -> list[tuple[str, str, bool]]:
    nodes = tinycss2.parse_blocks_contents(source, True, True)
    return [
        (node.lower_name, tinycss2.serialize(node.value).strip().lower(), node.important)
        for node in nodes
        if isinstance(node, ast.Declaration) and node.lower_name in _READ
    ]
