"""Turns octets of unknown honesty into text, whatever their label says."""

from __future__ import annotations

import codecs
import re

from charset_normalizer import from_bytes

_LABEL = re.compile(r"[a-z0-9][a-z0-9_.:+-]{0,39}")
#: labels that mean a wider code page than they say (WHATWG Encoding, section 4.2), or that Python names
#: otherwise
_WIDER = {
    "us-ascii": "", "ascii": "", "unknown": "", "unknown-8bit": "", "x-unknown": "", "default": "",
    "8bit": "",
    "binary": "", "x-user-defined": "", "gb2312": "gb18030", "gbk": "gb18030", "gb_2312-80": "gb18030",
    "x-gbk": "gb18030", "cp936": "gb18030", "windows-936": "gb18030", "windows-874": "cp874",
    "tis-620": "cp874",
    "iso-8859-11": "cp874", "ks_c_5601-1987": "cp949", "euc-kr": "cp949", "windows-949": "cp949",
    "big5": "big5hkscs",
    "shift_jis": "cp932", "shift-jis": "cp932", "x-sjis": "cp932", "windows-31j": "cp932",
    "iso-8859-1": "cp1252",
    "latin1": "cp1252", "latin-1": "cp1252", "iso8859-1": "cp1252", "iso-8859-9": "cp1254",
    "iso-8859-8-i": "cp1255",
    "macintosh": "mac_roman", "x-mac-roman": "mac_roman", "iso-2022-jp": "iso2022_jp_ext", "utf8mb4": "utf-8",
    "unicode-1-1-utf-8": "utf-8", "cp-850": "cp850", "windows-1252http-equivcontent-type": "cp1252",
}  # fmt: skip
#: codecs that are no charsets of mail; some of them take quadratic time or rebuild other text
_REFUSED = frozenset({
    "idna", "punycode", "unicode_escape", "raw_unicode_escape", "utf-7", "undefined", "mbcs", "oem", "rot13",
})  # fmt: skip
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF32_LE, "utf-32-le"), (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"),
)  # fmt: skip
_SHIFTS = re.compile(rb"\x1b(?:\$[@AB]|\$\([DOPQ]|\([IJ])")
_KOREAN_SHIFT = b"\x1b$)C"
_TRIPLES = re.compile(rb"[\xe1-\xef][\x80-\xbf][\x80-\xbf]")
_SEVERAL_BYTES = frozenset({"gb18030", "big5hkscs", "cp932", "euc_jp", "cp949"})
_SAMPLE = 4096


def decode(raw: bytes, label: str = "") -> str:
    """Return the text of the octets: their label where it holds, else what their form shows; never raises."""
    for mark, name in _BOMS:
        if raw.startswith(mark):
            return raw[len(mark) :].decode(name, "replace")
    shifted = _shifted(raw)
    if shifted is not None:
        return shifted
    text = _strict(raw, _order(raw, _codec(label)))
    return _mended(raw) if text is None else text


def header(raw: bytes) -> str:
    """Return raw 8-bit header octets as text: UTF-8 (RFC 6532), else as Windows would show them."""
    text = _strict(raw, ("utf-8", "cp1252"))
    return raw.decode("latin-1") if text is None else text


def _shifted(raw: bytes) -> str | None:
    """Return 7-bit text that switches charsets by escapes (RFC 1468, RFC 1557), however it is labelled."""
    if not raw.isascii() or b"\x1b" not in raw:
        return None
    if _KOREAN_SHIFT in raw:
        return _strict(raw, ("iso2022_kr",))
    return _strict(raw, ("iso2022_jp_ext", "iso2022_jp_2")) if _SHIFTS.search(raw) else None


def _codec(label: str) -> str:
    """Return Python's name of a charset label, "" where it names none."""
    word = label.strip().strip("\"'").lower()
    word = _WIDER.get(word, word)
    if not _LABEL.fullmatch(word):
        return ""
    try:
        name = codecs.lookup(word).name
    except (LookupError, ValueError):
        return ""
    return "" if name in _REFUSED else name


def _order(raw: bytes, named: str) -> tuple[str, ...]:
    """Return the charsets to try. Well-formed UTF-8 by accident is rare but in short double-byte text."""
    if not named or named == "utf-8":
        return ("utf-8",)
    if named in _SEVERAL_BYTES and len(_TRIPLES.findall(raw)) < 4:
        return (named, "utf-8")
    return (named,) if named.startswith("utf-") else ("utf-8", named)


def _strict(raw: bytes, names: tuple[str, ...]) -> str | None:
    for name in names:
        try:
            return raw.decode(name)
        except (LookupError, ValueError):
            continue
    return None


def _mended(raw: bytes) -> str:
    """Return the best reading of octets that no label explains; some characters may be lost."""
    as_utf8 = raw.decode("utf-8", "replace")
    foreign = sum(map(len, re.findall(rb"[\x80-\xff]+", raw)))
    broken = as_utf8.count("\N{REPLACEMENT CHARACTER}")
    if broken * 8 <= foreign:
        return as_utf8
    if foreign * 6 < len(raw) and len(raw) < 400:
        return header(raw)
    best = from_bytes(raw[:_SAMPLE]).best()
    return header(raw) if best is None else raw.decode(best.encoding, "replace")
