"""Signs an outgoing mail with DKIM (RFC 6376, RFC 8463)."""

from __future__ import annotations

import re
from typing import Final

import dkim

from answerback.errors import BadSettings

_FIELDS: Final = (
    *(b"from", b"to", b"cc", b"subject", b"date", b"message-id", b"in-reply-to", b"references", b"reply-to"),
    *(b"mime-version", b"content-type", b"content-transfer-encoding", b"auto-submitted"),
)
#: each once more than it occurs, so that nobody can add a second From or Subject (RFC 6376 section 8.15)
_SIGNED: Final = (*_FIELDS, *_FIELDS)


def sign(octets: bytes, *, domain: str, selector: str, key: bytes) -> bytes:
    """Return the octets with a DKIM-Signature in front: relaxed/relaxed, the whole body, no `l=`.

    `key` is a PEM private key for rsa-sha256, else the base64 seed of an Ed25519 key as `dknewkey` writes it.
    Fields that are absent are signed as absent, so none can be added on the way.
    Raises BadSettings where the key, selector or domain can not be used.
    """
    algorithm = b"rsa-sha256" if key.lstrip().startswith(b"-----") else b"ed25519-sha256"
    if not re.fullmatch(r"[A-Za-z0-9._-]+", domain) or not re.fullmatch(r"[A-Za-z0-9._-]+", selector):
        raise BadSettings(setting="dkim", problem="domain and selector must be names as DNS has them")
    try:
        field: bytes = dkim.sign(
            octets,
            selector.encode(),
            domain.encode(),
            key.strip(),
            canonicalize=(b"relaxed", b"relaxed"),
            signature_algorithm=algorithm,
            include_headers=list(_SIGNED),
        )
    except (dkim.DKIMException, ValueError, TypeError) as problem:
        reason = f"it does not sign ({type(problem).__name__})"
        raise BadSettings(setting="dkim.key", problem=reason) from None
    return field + octets
