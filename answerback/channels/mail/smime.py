"""Takes the signed content out of a PKCS#7 envelope, without checking the signature."""

from __future__ import annotations

_SIGNED = bytes.fromhex("2a864886f70d010702")  # 1.2.840.113549.1.7.2 (RFC 5652 section 5.1)
_SEQUENCE, _OBJECT_ID, _OCTETS, _OCTETS_BUILT, _CONTEXT = 0x30, 0x06, 0x04, 0x24, 0xA0


class _Malformed(ValueError):
    """The octets are not the BER this expects."""


def signed_content(raw: bytes) -> bytes | None:
    """Return what a SignedData value (RFC 5652) encapsulates, None where it is none or carries no content."""
    try:
        return _content(raw)
    except (_Malformed, IndexError):
        return None


def _content(raw: bytes) -> bytes | None:
    position = _enter(raw, 0, _SEQUENCE)
    start, end = _inside(raw, position, _OBJECT_ID)
    if raw[start:end] != _SIGNED:
        return None
    position = _enter(raw, _enter(raw, end, _CONTEXT), _SEQUENCE)
    position = _after(raw, _after(raw, position))  # version, digestAlgorithms
    position = _enter(raw, position, _SEQUENCE)
    position = _enter(raw, _after(raw, position), _CONTEXT)  # past eContentType
    tag, start, stop = _header(raw, position)
    if tag == _OCTETS and stop is not None:
        return raw[start:stop]
    return _chunks(raw, start, stop) if tag == _OCTETS_BUILT else None


def _chunks(raw: bytes, position: int, end: int | None) -> bytes:
    """Return a constructed OCTET STRING joined; its pieces are primitive in every sender seen."""
    pieces = []
    while (end is None or position < end) and raw[position : position + 2] != b"\0\0":
        start, stop = _inside(raw, position, _OCTETS)
        pieces.append(raw[start:stop])
        position = stop
    return b"".join(pieces)


def _header(raw: bytes, position: int) -> tuple[int, int, int | None]:
    """Return tag, start and end of a value's content; the end is None for the indefinite form."""
    tag, first = raw[position], raw[position + 1]
    start = position + 2
    if first == 0x80:
        return tag, start, None
    if first & 0x80:
        size = first & 0x7F
        if size > 4:
            raise _Malformed
        length, start = int.from_bytes(raw[start : start + size]), start + size
    else:
        length = first
    if start + length > len(raw):
        raise _Malformed
    return tag, start, start + length


def _enter(raw: bytes, position: int, expected: int) -> int:
    tag, start, _ = _header(raw, position)
    if tag != expected:
        raise _Malformed
    return start


def _inside(raw: bytes, position: int, expected: int) -> tuple[int, int]:
    tag, start, end = _header(raw, position)
    if tag != expected or end is None:
        raise _Malformed
    return start, end


def _after(raw: bytes, position: int) -> int:
    """Return where the next value begins; values of indefinite length end at their own end mark."""
    open_values = 0
    while True:
        if open_values and raw[position : position + 2] == b"\0\0":
            open_values -= 1
            position += 2
        else:
            _, start, end = _header(raw, position)
            open_values += end is None
            position = start if end is None else end
        if not open_values:
            return position
