"""Takes a mail apart into its MIME entities, within bounds and without recursion."""

from __future__ import annotations

import binascii
import re
from dataclasses import dataclass, field

from answerback.channels.mail import charsets, fields, smime
from answerback.channels.mail.fields import Fields, TooLarge

#: bounds: octets of a mail, entities in it, levels of nesting
MOST_OCTETS = 25 * 1024 * 1024
MOST_ENTITIES = 300
DEEPEST = 30
_TOKEN = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}", re.ASCII)
_GUESS = re.compile(rb"(?:\A|\n)--([^\s-][^\r\n]{0,69}?)[ \t]*\r?\n(?=content-)", re.IGNORECASE)
_SMIME = frozenset({"application/pkcs7-mime", "application/x-pkcs7-mime"})
_ENCLOSED = frozenset({"message/rfc822", "message/global"})
_PASSED_ON = frozenset({"7bit", "8bit", "binary", ""})


@dataclass(slots=True, kw_only=True, eq=False)
class Entity:
    """One MIME entity: its fields, the place of its body, and its children."""

    fields: Fields
    raw: bytes = field(repr=False)
    start: int
    end: int
    media_type: str
    parameters: dict[str, str]
    disposition: str
    filename: str
    depth: int
    parent: Entity | None = None
    children: list[Entity] = field(default_factory=list)
    #: stands inside a mail that is enclosed in this one
    enclosed: bool = False
    #: content was taken out of an S/MIME signature
    unwrapped: bool = False

    @property
    def body(self) -> bytes:
        """The body's octets as transported."""
        return self.raw[self.start : self.end]

    def octets(self) -> bytes:
        """Return the body with its transfer encoding undone; an unknown encoding is left as it is."""
        match _encoding(self.fields):
            case "base64":
                return fields.unbase64(self.body)
            case "quoted-printable":
                return binascii.a2b_qp(self.body)
            case "x-uuencode" | "uuencode" | "x-uue":
                return _uudecoded(self.body)
            case _:
                return self.body

    def text(self, most: int | None = None) -> str:
        """Return the body as text with LF line ends; a flowed paragraph is one line (RFC 3676).

        Of a body longer than `most` octets only the beginning is decoded.
        """
        octets = self.octets()[:most]
        text = charsets.decode(octets, self.parameters.get("charset", "")).replace("\r\n", "\n")
        if self.media_type == "text/plain" and self.parameters.get("format", "").lower() == "flowed":
            return _unflowed(text, self.parameters.get("delsp", "").lower() == "yes")
        return text


def parse(raw: bytes) -> list[Entity]:
    """Return all entities of the mail, each before its children, the mail itself first. Raises TooLarge."""
    if len(raw) > MOST_OCTETS:
        raise TooLarge
    if b"\n" not in raw:
        raw = raw.replace(b"\r", b"\n")
    root = _entity(raw, 0, len(raw), None)
    found, waiting = [], [root]
    while waiting:
        entity = waiting.pop()
        found.append(entity)
        entity.children = _children(entity)
        waiting += reversed(entity.children)
        if len(found) + len(waiting) > MOST_ENTITIES or entity.depth > DEEPEST:
            raise TooLarge
    return found


def _entity(raw: bytes, start: int, end: int, parent: Entity | None) -> Entity:
    found, body = fields.split(raw, start, end)
    fallback = (
        "message/rfc822" if parent is not None and parent.media_type == "multipart/digest" else "text/plain"
    )
    media_type, parameters = fields.parameters(found.first("content-type"))
    disposition, extra = fields.parameters(found.first("content-disposition"))
    return Entity(
        fields=found,
        raw=raw,
        start=body,
        end=end,
        media_type=media_type if _TOKEN.fullmatch(media_type) else fallback,
        parameters=parameters,
        disposition=disposition,
        filename=fields.filename(extra.get("filename") or parameters.get("name", "")),
        depth=0 if parent is None else parent.depth + 1,
        parent=parent,
        enclosed=parent is not None and (parent.enclosed or parent.media_type in _ENCLOSED),
    )


def _children(entity: Entity) -> list[Entity]:
    if entity.media_type.startswith("multipart/"):
        spans = _spans(entity)
        if not spans:
            entity.media_type = "text/plain"  # without its boundary it is what its lines say
        return [_entity(entity.raw, start, end, entity) for start, end in spans]
    if entity.media_type in _ENCLOSED:
        if _encoding(entity.fields) in _PASSED_ON:
            return [_entity(entity.raw, entity.start, entity.end, entity)]
        content = entity.octets()
        return [_entity(content, 0, len(content), entity)]
    if entity.media_type in _SMIME or entity.filename.lower().endswith(".p7m"):
        inner = smime.signed_content(entity.octets())
        entity.unwrapped = inner is not None
        return [] if inner is None else [_entity(inner, 0, len(inner), entity)]
    return []


def _spans(entity: Entity) -> list[tuple[int, int]]:
    """Return where the parts of a multipart stand (RFC 2046 section 5.1); the last may lack its end."""
    mark = _boundary(entity)
    if not mark:
        return []
    line = re.compile(rb"(?m)^" + re.escape(mark) + rb"(--)?[ \t]*(?:\r?\n|\r?\Z)")
    spans: list[tuple[int, int]] = []
    opened = -1
    for found in line.finditer(entity.raw, entity.start, entity.end):
        if opened >= 0:
            spans.append((opened, max(opened, _before_line_end(entity.raw, found.start()))))
        if len(spans) > MOST_ENTITIES:
            raise TooLarge
        opened = -1 if found[1] else found.end()
        if found[1]:
            break
    return [*spans, (opened, entity.end)] if opened >= 0 else spans


def _boundary(entity: Entity) -> bytes:
    named = entity.parameters.get("boundary", "").encode("utf-8", "replace").rstrip()
    if named:
        return b"--" + named
    found = _GUESS.search(entity.raw[entity.start : min(entity.end, entity.start + 8192)])
    return b"--" + found[1] if found else b""


def _before_line_end(raw: bytes, position: int) -> int:
    position -= raw[position - 1 : position] == b"\n"
    return position - (raw[position - 1 : position] == b"\r")


def _encoding(found: Fields) -> str:
    return found.first("content-transfer-encoding").partition(";")[0].strip().lower()


def _uudecoded(raw: bytes) -> bytes:
    pieces = []
    for line in raw.splitlines():
        if line.startswith((b"begin ", b"end")):
            continue
        try:
            pieces.append(binascii.a2b_uu(line))
        except binascii.Error:
            continue
    return b"".join(pieces)


def _unflowed(text: str, delete_space: bool) -> str:
    lines: list[str] = []
    paragraph: list[str] = []
    depth = 0
    for line in text.split("\n"):
        content = line.lstrip(">")
        quoted = len(line) - len(content)
        content = content.removeprefix(" ")  # space-stuffing (RFC 3676 section 4.4)
        if paragraph and quoted != depth:
            lines.append(_quoted(depth, paragraph))
            paragraph = []
        depth = quoted
        soft = content.endswith(" ") and content != "-- "
        paragraph.append(content[:-1] if soft and delete_space else content)
        if not soft:
            lines.append(_quoted(depth, paragraph))
            paragraph = []
    return "\n".join([*lines, _quoted(depth, paragraph)] if paragraph else lines)


def _quoted(depth: int, paragraph: list[str]) -> str:
    content = "".join(paragraph)
    return f"{'>' * depth} {content}" if depth else content
