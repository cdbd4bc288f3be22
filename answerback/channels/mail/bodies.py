"""Writes the content of a mail: text, HTML and files, as MIME parts whose lines stay short."""

from __future__ import annotations

import binascii
import re
from base64 import encodebytes
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from answerback.channels.mail import headers
from answerback.channels.mail.headers import Header
from answerback.errors import BadRequest
from answerback.model import Attachment, value

_MEDIA_TYPE = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,63}/[a-z0-9][a-z0-9!#$&^_.+-]{0,63}")
# Needs no encoding: printable ASCII in lines of at most 78, none ending in white space (relays trim it),
# beginning with "From " (mbox changes it) or with a dot, and nothing that looks like a boundary of ours.
_SEVEN_BIT = re.compile(r"(?:(?!From |\.)(?:[\t\x20-\x7e]{0,77}[\x21-\x7e])?\r\n)+")


@value
class Part:
    """A MIME part: its content headers and its encoded octets."""

    headers: tuple[Header, ...]
    #: encoded content; the CRLF before a boundary is not part of it
    octets: bytes
    #: what closes the content where no boundary follows, so that it decodes to the same octets
    end: bytes = b""


def text(content: str, *, subtype: str = "plain") -> Part:
    """Return a text part that decodes to the content with its newlines as CRLF (RFC 2046 section 4.1.1).

    Raises BadRequest for a lone surrogate, which no character set can carry.
    """
    lines = re.sub(r"\r\n|\r|\n", "\r\n", content)
    try:
        octets = lines.encode()
    except UnicodeEncodeError:
        raise BadRequest(field="text", problem="it holds a lone surrogate, which is no character") from None
    if "=_" not in lines and _SEVEN_BIT.fullmatch(lines):
        return _text_part(subtype, "7bit", octets)
    # Beyond a third of escaped octets quoted-printable is the longer form.
    if sum(octet > 126 for octet in octets) * 3 > len(octets):
        return _text_part(subtype, "base64", _base64(octets))
    return _text_part(subtype, "quoted-printable", _quoted_printable(octets))


def _text_part(subtype: str, encoding: str, octets: bytes) -> Part:
    content_type = f'text/{subtype}; charset="utf-8"'
    ends = {"quoted-printable": b"=\r\n", "base64": b"\r\n", "7bit": b"\r\n"}
    end = b"" if octets.endswith(b"\r\n") or not octets else ends[encoding]
    fields = (("Content-Type", content_type), ("Content-Transfer-Encoding", encoding))
    return Part(headers=fields, octets=octets, end=end)


def _base64(octets: bytes) -> bytes:
    return encodebytes(octets).replace(b"\n", b"\r\n").removesuffix(b"\r\n")


def _quoted_printable(octets: bytes) -> bytes:
    # binascii ends its soft breaks like the first line it meets, and with LF where there is none.
    encoded = re.sub(rb"\r?\n", b"\r\n", binascii.b2a_qp(octets, istext=True))
    return re.sub(rb"(?m)^(?:\.|From )", lambda start: b"=%02X" % start[0][0] + start[0][1:], encoded)


def attachment(file: Attachment) -> Part:
    """Return the file as a base64 part; its name loses directories and control characters."""
    kind = file.media_type.lower()
    # message/* and multipart/* may not be base64 (RFC 2045 section 6.4)
    if not _MEDIA_TYPE.fullmatch(kind) or kind.startswith(("message/", "multipart/")):
        kind = "application/octet-stream"
    name = re.split(r"[/\\]", headers.clean(file.filename))[-1] or "attachment"
    fields = (
        ("Content-Type", kind),
        ("Content-Disposition", "attachment" + headers.parameter("filename", name)),
        ("Content-Transfer-Encoding", "base64"),
    )
    return Part(headers=fields, octets=_base64(file.content))


def multipart(subtype: str, parts: Sequence[Part], *, seed: str) -> Part:
    """Return the parts joined (RFC 2046 section 5.1); the boundary follows from the seed.

    The boundary holds `=_`, which no encoding used here can produce, so it never occurs inside a part.
    """
    boundary = f"=_{subtype}_{sha256(seed.encode()).hexdigest()[:24]}"
    line = f"--{boundary}".encode()
    pieces = [line + b"\r\n" + headers.block(each.headers) + each.octets + b"\r\n" for each in parts]
    fields = (("Content-Type", f'multipart/{subtype}; boundary="{boundary}"'),)
    return Part(headers=fields, octets=b"".join(pieces) + line + b"--\r\n")


def complete(part: Part) -> Part:
    """Return the part as the whole body of a mail: it ends with CRLF and still decodes to the same."""
    return replace(part, octets=part.octets + part.end, end=b"")
