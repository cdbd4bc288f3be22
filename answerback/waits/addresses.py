"""Compares the addresses of people: the same person however the address was written."""

from __future__ import annotations

import idna


def canonical(address: str) -> str:
    """Return an address as it is compared: local part case-folded, domain in lower-case A-labels.

    A sub-address stays (theirs is part of who they are); one of ours was taken off before.
    """
    local, at, domain = address.strip().rpartition("@")
    return f"{local.casefold()}{at}{canonical_domain(domain)}"


def canonical_domain(domain: str) -> str:
    """Return a domain as it is compared: in lower-case A-labels where it has that form (RFC 5890).

    Never folded first: that would make straße.example and strasse.example, two domains, one.
    """
    lowered = domain.strip().rstrip(".").lower()
    try:
        return idna.encode(lowered, uts46=True).decode("ascii")
    except UnicodeError:  # idna.IDNAError is one
        return lowered


def responder_of(author: str, responders: tuple[str, ...]) -> str | None:
    """Return the row of a responder set that admits an author, as the set writes it; None where none does.

    The author is an address behind `email:`. The row of the address itself comes before one of its domain.
    """
    address = canonical(author.partition(":")[2])
    names = {canonical_row(row): row for row in reversed(responders)}
    domain = address.rpartition("@")[2]
    return names.get(f"email:{address}") or names.get(f"email-domain:{domain}")


def canonical_row(row: str) -> str:
    """Return a row of a responder set as it is compared."""
    kind, _, rest = row.strip().partition(":")
    match kind.lower():
        case "email":
            return f"email:{canonical(rest)}"
        case "email-domain":
            return f"email-domain:{canonical_domain(rest)}"
        case _:
            return row
