"""Writes mail headers as octets and reads them again before anybody else does."""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterable, Sequence
from urllib.parse import quote

from answerback.channels.mail import addresses
from answerback.errors import BadRequest
from answerback.model import Address

#: a header's name and its value, one line, folded only when written
Header = tuple[str, str]

_AIM = 78  # characters a line should have at most (RFC 5322 section 2.1.1)
_LIMIT = 998  # octets a line must have at most, without CRLF (the same section)
_ID = re.compile(r"<[!-;=?-~]+>")
_NAME = re.compile(r"[!-9;-~]+")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]+")
_WORD_OCTETS = 39  # in base64 an encoded word of 64 characters; with any header name of ours below 76
_LONGEST_ID = 996  # folded onto a line of its own: one space, the id, 998 in all
_PARAMETER_CHUNK = 60


def clean(text: str) -> str:
    """Return the text on one line: every control character, line separator and surrogate is a space."""
    unsafe = ("Cc", "Cs", "Zl", "Zp")
    return "".join(" " if unicodedata.category(char) in unsafe else char for char in text).strip()


def _is_plain(text: str) -> bool:
    # Words longer than a line can not be folded; "=?" would be read as an encoded word (RFC 2047 section 5);
    # runs of spaces do not survive every relay's refolding.
    words = text.split(" ")
    return text.isascii() and "=?" not in text and all(0 < len(word) <= 60 for word in words)


def _encoded(text: str) -> str:
    """Return the text as RFC 2047 encoded words, none of which splits a character."""
    words, chunk = [], b""
    for octets in (char.encode() for char in text):
        if len(chunk) + len(octets) > _WORD_OCTETS:
            words.append(chunk)
            chunk = b""
        chunk += octets
    return " ".join(f"=?utf-8?b?{b64encode(word).decode()}?=" for word in (*words, chunk))


def unstructured(text: str) -> str:
    """Return a subject-like value, encoded by RFC 2047 where plain ASCII would not bring it across."""
    line = clean(text)
    return line if not line or _is_plain(line) else _encoded(line)


def mailbox(address: Address) -> str:
    """Return `name <local@domain>`; raises BadAddress. Only a non-ASCII local part stays non-ASCII."""
    email, name = addresses.wire(address.email), clean(address.name)
    if not name:
        return email
    if not _is_plain(name):
        return f"{_encoded(name)} <{email}>"
    escaped = re.sub(r'(["\\])', r"\\\1", name)
    return f"{name} <{email}>" if _ATOMS.fullmatch(name) else f'"{escaped}" <{email}>'


def mailboxes(people: Iterable[Address]) -> str:
    """Return the people as one address list; raises BadAddress."""
    return ", ".join(mailbox(person) for person in people)


def writable_ids(ids: Iterable[str]) -> tuple[str, ...]:
    """Return those ids that fit a line and hold nothing but printable ASCII between < and >, in order.

    The others were made by strangers; a shorter References header is better than a broken one.
    """
    return tuple(each for each in ids if len(each) < _LONGEST_ID and _ID.fullmatch(each))


def parameter(name: str, text: str) -> str:
    """Return `; name="text"`, by RFC 2231 in numbered pieces where it is long or not plain ASCII."""
    line = clean(text)
    if line.isascii() and len(line) <= _PARAMETER_CHUNK and not re.search(r'["\\%]|=\?', line):
        return f'; {name}="{line}"'
    pieces = _percent_pieces(line)
    if len(pieces) == 1:
        return f"; {name}*=utf-8''{pieces[0]}"
    marked = (f"utf-8''{piece}" if number == 0 else piece for number, piece in enumerate(pieces))
    return "".join(f"; {name}*{number}*={piece}" for number, piece in enumerate(marked))


def _percent_pieces(text: str) -> list[str]:
    pieces = [""]
    for char in text:
        escaped = quote(char, safe="")
        if len(pieces[-1]) + len(escaped) > _PARAMETER_CHUNK - 20:
            pieces.append("")
        pieces[-1] += escaped
    return pieces


def _fold(name: str, value: str) -> str:
    """Return the header folded before words that would cross column 78; no word is cut."""
    lines, line = [], f"{name}:"
    for word in value.split(" "):
        if len(line) + 1 + len(word) > _AIM and line != f"{name}:":
            lines.append(line)
            line = ""
        line += f" {word}"
    return "\r\n".join([*lines, line]) + "\r\n"


def fold_ids(name: str, ids: Sequence[str]) -> str:
    """Return an id header of which every line but the first holds one whole id, never encoded.

    An id that does not fit behind the name starts on the next line (RFC 5322 section 2.2.3).
    """
    first, *rest = ids
    lead = f"{name}: {first}" if len(name) + 2 + len(first) <= _LIMIT else f"{name}:\r\n {first}"
    return "".join(f"{line}\r\n" for line in (lead, *(f" {each}" for each in rest)))


def block(headers: Sequence[Header], *, ids: Sequence[tuple[str, Sequence[str]]] = ()) -> bytes:
    """Return the headers, then the id headers, as octets ending with the empty line.

    They are read again before they are returned: raises BadRequest where another reader would see other
    headers than the ones meant (CPython's email package once let a newline inside an encoded word through).
    """
    written = [_fold(name, value) for name, value in headers] + [fold_ids(name, each) for name, each in ids]
    octets = "".join(written).encode() + b"\r\n"
    meant = [name for name, _ in headers] + [name for name, _ in ids]
    if names(octets) != meant or not octets.endswith(b"\r\n\r\n") or octets.count(b"\r\n\r\n") != 1:
        raise BadRequest(field="headers", problem="a value would have made a header of its own")
    return octets


def names(octets: bytes) -> list[str]:
    """Return the header names up to the first empty line, in order.

    Raises BadRequest at anything a strict reader stumbles over: a bare CR or LF, a NUL, a line over 998
    octets, a line that is neither a header, a continuation nor the end.
    """
    head, end, _ = octets.partition(b"\r\n\r\n")
    found: list[str] = []
    for line in head.split(b"\r\n"):
        if re.search(rb"[\x00\r\n]", line) or len(line) > _LIMIT or not line.strip():
            raise BadRequest(field="headers", problem="a line is empty, too long or not clean")
        if line[:1] in (b" ", b"\t") and found:
            continue
        name, colon, _ = line.partition(b":")
        if not colon or not _NAME.fullmatch(name.decode("latin-1")):
            raise BadRequest(field="headers", problem="a line is no header")
        found.append(name.decode("ascii"))
    if not end:
        raise BadRequest(field="headers", problem="they do not end")
    return found


def check_lines(octets: bytes) -> None:
    """Raise BadRequest where the octets hold a bare CR or LF or a line over 998 octets (RFC 5322, 2.3)."""
    lines = octets.split(b"\r\n")
    if any(len(line) > _LIMIT or b"\r" in line or b"\n" in line for line in lines):
        raise BadRequest(field="mail", problem="a line is too long or not ended by CRLF")
