"""Lays visible text out in lines: paragraphs, line breaks, list items, table rows and quoted blocks."""

from __future__ import annotations

import re

_SPACES = re.compile("[ \t\n\f\r]+")


class Page:
    """Lines of text as they are written, each with the depth of quotation it stands in."""

    def __init__(self) -> None:
        self.depth = 0
        self._lines: list[tuple[int, str]] = []
        self._line: list[str] = []
        self._blank_wanted = False

    def write(self, text: str, *, pre: bool = False) -> None:
        """Add text to the current line; runs of blanks are one, as browsers show them, unless `pre`."""
        if pre:
            first, *rest = text.split("\n")
            self._add(first)
            for line in rest:
                self.line_break()
                self._add(line)
            return
        text = _SPACES.sub(" ", text)
        if not self._line or self._line[-1].endswith((" ", "\t")):
            text = text.removeprefix(" ")
        self._add(text)

    def _add(self, text: str) -> None:
        if not text:
            return
        if self._blank_wanted and self._lines and self._lines[-1][1]:
            self._lines.append((min(self.depth, self._lines[-1][0]), ""))
        self._blank_wanted = False
        self._line.append(text)

    def line_break(self) -> None:
        """End the current line, even an empty one."""
        self._lines.append((self.depth, "".join(self._line).rstrip(" \t")))
        self._line = []

    def block(self, *, gap: bool = False) -> None:
        """Begin a new line unless one is just begun; with `gap` a blank line is kept above what follows."""
        if "".join(self._line).strip(" \t"):
            self.line_break()
        self._line = []
        self._blank_wanted = self._blank_wanted or gap

    def cell(self) -> None:
        """Separate a table cell from the one before it in its row."""
        if self._line:
            self._line.append("\t")

    def text(self) -> str:
        """Return all lines; quoted ones begin with `> ` per level."""
        self.block()
        return "\n".join(("> " * depth + line).rstrip() for depth, line in self._lines).strip("\n")
