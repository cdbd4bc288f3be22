"""Finds every mailbox in the address fields of a mail, tolerant and in one pass."""

from __future__ import annotations

import re

from answerback.channels.mail import fields
from answerback.model import Address

_LONGEST = 32 * 1024
_MOST = 500
_TOKEN = re.compile(r'\\.|[^\\"<>(),;:]+|.', re.DOTALL)
_SPACE = re.compile(r"\s+")


def mailboxes(values: tuple[str, ...]) -> tuple[Address, ...]:
    """Return every mailbox of the given field values, at most 500, in their order (RFC 5322 section 3.4)."""
    found: list[Address] = []
    for text in values:
        found += _Reader(text[:_LONGEST]).read()
    return tuple(found[:_MOST])


class _Reader:
    """One pass over one field value; what is left open at its end counts as plain text."""

    def __init__(self, text: str) -> None:
        quotes_close = text.replace('\\"', "").count('"') % 2 == 0
        comments_close = text.count("(") == text.count(")")
        self.plain = ("" if quotes_close else '"') + ("" if comments_close else "()")
        self.tokens = _TOKEN.findall(text)
        self.found: list[Address] = []
        self.quoted = self.angled = False
        self.depth = 0
        self.phrase: list[str] = []
        self.comment: list[str] = []
        self.angle: list[str] | None = None

    def read(self) -> list[Address]:
        for token in self.tokens:
            if self.quoted or self.depth or self.angled:
                self._inside(token)
            else:
                self._outside(token)
        self._flush()
        return self.found

    def _inside(self, token: str) -> None:
        if self.quoted:
            self.quoted = token != '"'
            # The marks of a quoted local part belong to the address; those of a name do not.
            self.phrase.append(token if self.quoted else '"')
        elif self.depth:
            self.depth += (token == "(") - (token == ")")
            self.comment.append(token if self.depth else " ")
        elif token == ">":
            self.angled = False
        elif self.angle is not None and token != "<":
            self.angle.append(token)

    def _outside(self, token: str) -> None:
        if token in self.plain and len(token) == 1:
            return
        match token:
            case '"':
                self.quoted = True
                self.phrase.append(token)
            case "(":
                self.depth = 1
            case "<":
                if self.angle is not None:
                    self._flush()
                self.angled, self.angle = True, []
            case "," | ";":
                self._flush()
            case ":" if not any("@" in piece for piece in self.phrase):
                self.phrase = []  # the name of a group (RFC 5322 section 3.4)
            case _:
                self.phrase.append(token)

    def _flush(self) -> None:
        phrase, comment = "".join(self.phrase), "".join(self.comment).strip()
        if self.angle is not None:
            email, name = "".join(self.angle).rpartition(":")[2], _name(phrase) or fields.decoded(comment)
        else:
            email, name = _bare(phrase)
            name = name or fields.decoded(comment)
        email = "".join(char for char in _SPACE.sub("", email) if char.isprintable())
        if email:
            self.found.append(Address(email=email[:1000], name=name[:1000]))
        self.phrase, self.comment, self.angle, self.angled = [], [], None, False


def _name(phrase: str) -> str:
    plain = re.sub(
        r"\\(.)", r"\1", phrase.replace('\\"', "\0").replace('"', "").replace("\0", '"'), flags=re.DOTALL
    )
    return _SPACE.sub(" ", fields.decoded(plain)).strip()


def _bare(phrase: str) -> tuple[str, str]:
    """Return address and name of an item without angle brackets, as in `pat@x.example (Pat)` or `MAILER-
    DAEMON`.
    """
    if phrase.lstrip().startswith('"') and "@" in phrase:
        return phrase.strip(), ""
    words = phrase.split()
    at = next((word for word in words if "@" in word), "")
    if at:
        return at, _name(" ".join(word for word in words if word != at))
    return (words[0], "") if len(words) == 1 and words[0].isascii() and "=?" not in words[0] else ("", "")
