"""Reads the header fields of a mail: unfolded, decoded, with parameters; bounded and tolerant."""

from __future__ import annotations

import binascii
import re
from email.message import Message
from email.parser import BytesHeaderParser
from email.policy import compat32
from urllib.parse import unquote_to_bytes

from answerback.channels.mail import charsets, invisible
from answerback.model import value

#: octets of one header block, and fields in it; more is no mail
MOST_OCTETS = 256 * 1024
MOST_FIELDS = 1000
_LONGEST_VALUE = 64 * 1024
_END = re.compile(rb"\A\r?\n|\n\r?\n")
_FOLD = re.compile(r"\r?\n(?=[ \t])")
_WORD = re.compile(r"=\?([^\s?*]{1,60})(?:\*[^\s?]{0,30})?\?([bBqQ])\?([^?]*)\?=")
_CONTINUED = re.compile(r"(.{1,60}?)(?:\*(\d{1,3}))?(\*)?", re.DOTALL)
_PATHS = re.compile(r"[/\\]")


class TooLarge(ValueError):
    """A bound on mail from outside was passed."""


@value
class Fields:
    """The header fields of one entity in their order: names in lower case, values unfolded."""

    pairs: tuple[tuple[str, str], ...] = ()

    def every(self, name: str) -> tuple[str, ...]:
        """Return the values of all fields of that (lower-case) name."""
        return tuple(text for found, text in self.pairs if found == name)

    def first(self, name: str) -> str:
        """Return the value of the first field of that name, "" where there is none."""
        return next((text for found, text in self.pairs if found == name), "")

    def has(self, *names: str) -> bool:
        """Return whether any field of those names is there."""
        return any(found in names for found, _ in self.pairs)


def split(raw: bytes, start: int, end: int) -> tuple[Fields, int]:
    """Return the fields that stand at raw[start:end] and where the body begins. Raises TooLarge."""
    found = _END.search(raw[start : min(end, start + MOST_OCTETS + 4)])
    stop = start + found.end() if found else min(end, start + MOST_OCTETS + 4)
    block = raw[start:stop]
    message = BytesHeaderParser(policy=compat32).parsebytes(block)
    pairs = tuple((name.strip().lower(), _unfolded(str(text))) for name, text in message.raw_items())
    body = stop - _unread(message)
    if body - start > MOST_OCTETS or len(pairs) > MOST_FIELDS:
        raise TooLarge
    return Fields(pairs=pairs), body


def _unread(message: Message) -> int:
    """Return how many octets of the block were no header fields: they belong to the body."""
    del message["content-type"]  # else get_payload() decodes by its charset, and characters are no octets
    return len(str(message.get_payload()))


def _unfolded(text: str) -> str:
    octets = _FOLD.sub("", text[:_LONGEST_VALUE]).encode("utf-8", "surrogateescape")
    line = charsets.header(octets).replace("\r", " ").replace("\n", " ").replace("\x00", "")
    return line.strip()


def decoded(text: str) -> str:
    """Return a header value as a person reads it: encoded words decoded (RFC 2047), invisible characters
    gone.
    """
    pieces: list[str] = []
    pending: list[tuple[str, bytes]] = []
    position = 0
    for found in _WORD.finditer(text):
        between = text[position : found.start()]
        if between.strip() or not pending:  # blanks between two encoded words do not count (section 6.2)
            pieces += [_joined(pending), between]
            pending = []
        pending.append((found[1].lower(), _octets(found[2], found[3])))
        position = found.end()
    line = "".join([*pieces, _joined(pending), text[position:]])
    return invisible.strip(line)[0].replace("\n", " ").replace("\t", " ").strip()


def _octets(encoding: str, text: str) -> bytes:
    raw = text.encode("utf-8", "replace")
    if encoding in "qQ":
        return binascii.a2b_qp(raw, header=True)
    return unbase64(raw)


def _joined(words: list[tuple[str, bytes]]) -> str:
    """Return neighbouring encoded words as text; characters cut in two between them are mended."""
    runs: list[tuple[str, list[bytes]]] = []
    for charset, octets in words:
        if runs and runs[-1][0] == charset:
            runs[-1][1].append(octets)
        else:
            runs.append((charset, [octets]))
    return "".join(charsets.decode(b"".join(octets), charset) for charset, octets in runs)


def unbase64(raw: bytes) -> bytes:
    """Return base64 octets decoded: foreign characters skipped, what is cut off at the end left out."""
    clean = re.sub(rb"[^A-Za-z0-9+/]+", b"", raw)
    whole = clean[: len(clean) - (len(clean) % 4 == 1)]
    return binascii.a2b_base64(whole + b"=" * (-len(whole) % 4))


def parameters(text: str) -> tuple[str, dict[str, str]]:
    """Return the leading word in lower case and the parameters of a Content-Type-like value (RFC 2045, RFC
    2231).
    """
    head, *rest = _pieces(text)
    plain: dict[str, str] = {}
    parts: dict[str, dict[int, tuple[bool, str]]] = {}
    for piece in rest:
        name, _, content = piece.partition("=")
        found = _CONTINUED.fullmatch(name.strip().lower())
        if found is None:
            continue
        if found[2] is None and found[3] is None:
            plain.setdefault(found[1], _unquoted(content))
        else:
            parts.setdefault(found[1], {})[int(found[2] or 0)] = (found[3] is not None, _unquoted(content))
    plain |= {name: _extended(chunks) for name, chunks in parts.items()}
    return head.strip().lower(), plain


def _pieces(text: str) -> list[str]:
    """Return the value cut at the semicolons that stand outside quotes; unclosed quotes do not count."""
    chunks = text.replace('\\"', "'").split('"')
    if len(chunks) % 2 == 0:
        return "".join(chunks).split(";")
    pieces = [""]
    for index, chunk in enumerate(chunks):
        first, *others = [f'"{chunk}"'] if index % 2 else chunk.split(";")
        pieces[-1] += first
        pieces += others
    return pieces


def _unquoted(text: str) -> str:
    return text.strip().strip('"').strip()


def _extended(chunks: dict[int, tuple[bool, str]]) -> str:
    """Return the joined RFC 2231 sections: the first names the charset, any may be percent-encoded."""
    charset, octets = "", b""
    for number, (encoded, chunk) in sorted(chunks.items()):
        content = chunk
        if encoded and number == min(chunks) and content.count("'") >= 2:
            charset, _, content = content.split("'", 2)
        octets += unquote_to_bytes(content) if encoded else content.encode("utf-8", "replace")
    return charsets.decode(octets, charset)


def filename(text: str) -> str:
    """Return a file name as written by a stranger made harmless: no path, no control characters, ≤ 200
    characters.
    """
    name = _PATHS.split(decoded(text))[-1]
    name = "".join(char for char in name if char.isprintable()).strip(" .")
    if len(name) <= 200:
        return name
    stem, dot, ending = name.rpartition(".")
    return f"{stem[: 199 - len(ending)]}{dot}{ending}" if dot and len(ending) <= 20 else name[:200]
