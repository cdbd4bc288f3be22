"""Checks mail addresses, and writes them the way SMTP and mail headers need them."""

from __future__ import annotations

import re

from email_validator import EmailNotValidError, validate_email

from answerback.errors import BadAddress

# RFC 5321 section 4.1.2 with two mercies: dots anywhere in the local part (addresses such as `a..b@` were
# handed out by Japanese carriers) and UTF-8 (RFC 6531 section 3.3).
_LOCAL = r'(?:[^\x00-\x20\x7f"(),:;<>@\[\\\]]+|"(?:[^\x00-\x1f\x7f"\\]|\\[\x20-\x7e])*")'
_DOMAIN = r"(?:[^\x00-\x2c\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]+|\[[0-9A-Za-z.:-]+\])"
_MAILBOX = re.compile(rf"({_LOCAL})@({_DOMAIN})")
_LONGEST = 320  # octets: 64 + "@" + 255 (RFC 5321 section 4.5.3.1)


def check(text: str) -> str:
    """Return the address as we write to it: local part as given, domain in lower-case A-labels (RFC 5890).

    No DNS is asked. Raises BadAddress with what is wrong.
    """
    try:
        found = validate_email(text.strip(), check_deliverability=False, test_environment=True, strict=True)
    except EmailNotValidError as problem:
        raise BadAddress(address=repr(text[:_LONGEST]), problem=str(problem).rstrip(".")) from None
    return f"{found.local_part}@{found.ascii_domain.lower()}"


def is_mailbox(text: str) -> bool:
    """Return whether the text is one local@domain that is safe in an SMTP command and a header."""
    fits = len(text) <= _LONGEST and text.isprintable()
    return fits and _MAILBOX.fullmatch(text) is not None


def wire(address: str) -> str:
    """Return the address with its domain in A-labels, so that only a local part can need SMTPUTF8.

    Raises BadAddress where it is no address or its domain has no A-label form.
    """
    if not is_mailbox(address):
        raise BadAddress(address=repr(address[:_LONGEST]), problem="it is not of the form name@domain")
    local, _, domain = address.rpartition("@")
    if domain.isascii():
        return address
    return f"{local}@{check(f'x@{domain}').partition('@')[2]}"
