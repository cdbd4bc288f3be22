"""Chooses what of a mail a person reads as its text, what is a file, and what only machines read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256

from answerback.channels.mail import fields, invisible
from answerback.channels.mail.mime import Entity
from answerback.channels.mail.visible import visible
from answerback.model import Part, PartKind, Removed, value

#: characters and lines of text one mail may have, and octets of a text before it is decoded
MOST_TEXT = 500_000
MOST_LINES = 10_000
MOST_TEXT_OCTETS = 1 << 20
_HTML = frozenset({"text/html", "text/enriched", "application/xhtml+xml"})
_PLAIN = frozenset({"text/plain", "text/markdown", "text/x-markdown"})
#: parts that accompany a mail and are no files of its author's
_MACHINE = frozenset({
    "application/pkcs7-signature", "application/x-pkcs7-signature", "application/pgp-signature",
    "application/pgp-encrypted",
    "application/pgp-keys", "text/rfc822-headers", "text/x-amp-html", "text/watch-html",
    "text/vnd.google.email-reaction+json",
    "message/delivery-status", "message/global-delivery-status", "message/disposition-notification",
    "message/feedback-report", "message/global-headers",
})  # fmt: skip
_SIGNATURE_FILES = re.compile(r"smime\.p7s|signature\.asc|openpgp_0x[0-9a-f]+\.asc|.+\.sig", re.IGNORECASE)
_CLEAR = "-----BEGIN PGP SIGNED MESSAGE-----"
_CLEAR_END = "-----BEGIN PGP SIGNATURE-----"
_ARMOUR = "-----BEGIN PGP MESSAGE-----"


@value
class Content:
    """What a mail, or one entity of it, says."""

    texts: tuple[str, ...] = ()
    suspect: tuple[str, ...] = ()
    attachments: tuple[Part, ...] = ()
    forwarded: tuple[Part, ...] = ()
    removed: tuple[Removed, ...] = ()
    #: "encrypted", "signed_opaque" or ""
    sealed: str = ""
    #: the text came from HTML
    html: bool = False
    pictured: bool = False
    #: a text was longer than it may be, and only its beginning is here
    cut: bool = False

    @property
    def text(self) -> str:
        """All texts, one below the other."""
        return "\n".join(text for text in self.texts if text.strip())

    @property
    def is_too_long(self) -> bool:
        """Whether there is more text than a mail may have."""
        return self.cut or len(self.text) > MOST_TEXT or self.text.count("\n") >= MOST_LINES


def content(entities: Sequence[Entity]) -> Content:
    """Return what the whole mail says. Children stand behind their parents, so from the end up each is
    known.
    """
    known: dict[Entity, Content] = {}
    for entity in reversed(entities):
        inner = [known[child] for child in entity.children]
        known[entity] = _leaf(entity) if not entity.children else _container(entity, inner)
    return known[entities[0]]


def _container(entity: Entity, inner: list[Content]) -> Content:
    match entity.media_type:
        case "multipart/alternative":
            return _chosen(inner)
        case "multipart/signed" if len(inner) > 1:
            return inner[0]
        case "multipart/encrypted":
            files = tuple(part for one in inner for part in one.attachments)
            return Content(sealed="encrypted", attachments=files)
        case "multipart/related":
            return _joined([inner[0], *(_as_files(child) for child in entity.children[1:])])
        case "message/rfc822" | "message/global":
            return _enclosed(entity, inner[0])
        case _:
            return _joined(inner)


def _chosen(inner: list[Content]) -> Content:
    """Return the alternative a person sees: HTML where it shows anything (as mail programs do), else the
    last with text.
    """
    readable = [one for one in inner if one.text.strip() or one.suspect]
    rich = [one for one in readable if one.html]
    best = (rich or readable or inner)[-1]
    others = tuple(part for one in inner if one is not best for part in one.attachments)
    return _joined([best, Content(attachments=others)])


def _joined(inner: Sequence[Content]) -> Content:
    counts: Counter[str] = Counter()
    for one in inner:
        for removed in one.removed:
            counts[removed.technique] += removed.count
    return Content(
        texts=tuple(text for one in inner for text in one.texts),
        suspect=tuple(text for one in inner for text in one.suspect),
        attachments=tuple(part for one in inner for part in one.attachments),
        forwarded=tuple(part for one in inner for part in one.forwarded),
        removed=_removed(counts),
        sealed=next((one.sealed for one in inner if one.sealed), ""),
        html=any(one.html for one in inner),
        pictured=any(one.pictured for one in inner),
        cut=any(one.cut for one in inner),
    )


def _removed(counts: Counter[str]) -> tuple[Removed, ...]:
    return tuple(Removed(technique=name, count=count) for name, count in sorted(counts.items()))


def _as_files(entity: Entity) -> Content:
    return Content() if _is_machine(entity) else Content(attachments=_files(entity))


def _files(entity: Entity) -> tuple[Part, ...]:
    """Return the entity, or all entities below it, as attachments."""
    found, waiting = [], [entity]
    while waiting:
        one = waiting.pop()
        if one.children and one.media_type.startswith("multipart/"):
            waiting += reversed(one.children)
        elif not _is_machine(one):
            found.append(_file(one))
    return tuple(found)


def _file(entity: Entity) -> Part:
    octets = entity.octets()
    return Part(
        kind=PartKind.ATTACHMENT,
        filename=entity.filename,
        media_type=entity.media_type,
        size=len(octets),
        sha256=sha256(octets).hexdigest(),
    )


def _enclosed(entity: Entity, inner: Content) -> Content:
    """Return an enclosed mail as forwarded words and as a file; its own files are inside that."""
    if not entity.children[0].enclosed:
        return inner
    shown = entity.children[0].fields
    head = [
        f"{name.title()}: {fields.decoded(shown.first(name))}" for name in ("from", "date", "to", "subject")
    ]
    text = "\n".join([*head, "", inner.text])[:MOST_TEXT]
    part = Part(kind=PartKind.FORWARDED, text=text, media_type="message/rfc822")
    return Content(attachments=(_file(entity),), forwarded=(part,), removed=inner.removed)


def _leaf(entity: Entity) -> Content:
    name = entity.filename.lower()
    if entity.media_type in ("application/pkcs7-mime", "application/x-pkcs7-mime") or name.endswith(".p7m"):
        signed = entity.parameters.get("smime-type", "").lower() in ("signed-data", "compressed-data")
        return Content(sealed="signed_opaque" if signed else "encrypted", attachments=(_file(entity),))
    if _is_machine(entity):
        return Content()
    # Apple Mail shows text files inline; a name makes them files all the same.
    file = entity.disposition == "attachment" or (
        entity.filename and (entity.disposition or entity.parent is not None)
    )
    if entity.media_type in _HTML and not file:
        return _from_html(entity)
    if entity.media_type in _PLAIN and not file:
        return _from_text(entity)
    if entity.media_type == "text/calendar" and not file:
        return Content()
    return Content(attachments=(_file(entity),), pictured=entity.media_type.startswith("image/"))


def _is_machine(entity: Entity) -> bool:
    return entity.media_type in _MACHINE or _SIGNATURE_FILES.fullmatch(entity.filename) is not None


def _from_html(entity: Entity) -> Content:
    html = entity.text()
    seen = visible(html)
    text, suspect = _clear_signed(seen.text), (seen.suspect,) if seen.suspect else ()
    return Content(
        texts=(text,), suspect=suspect, removed=seen.removed, html=True, pictured="<img" in html.lower()
    )


def _from_text(entity: Entity) -> Content:
    text, counts = invisible.strip(entity.text(MOST_TEXT_OCTETS))
    if text.lstrip().startswith(_ARMOUR):
        return Content(sealed="encrypted", attachments=(_file(entity),))
    cut = len(entity.body) > MOST_TEXT_OCTETS
    return Content(texts=(_clear_signed(text),), removed=_removed(counts), cut=cut)


def _clear_signed(text: str) -> str:
    """Return inline signed text without its armour (RFC 9580 section 7); what stands outside is kept."""
    before, begin, rest = text.partition(_CLEAR)
    if not begin or (before.strip() and not before.endswith("\n")):
        return text
    signed, _, after = rest.partition(_CLEAR_END)
    body = re.sub(r"\A\n?(?:[A-Z][\w-]{1,30}:[^\n]*\n)*\n?", "", signed)
    tail = after.partition("-----END PGP SIGNATURE-----")[2]
    return before + re.sub(r"(?m)^- ", "", body) + tail.lstrip("\n")
