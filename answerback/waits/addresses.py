"""Compares the addresses of people: the same person however the address was written."""

from __future__ import annotations

import idna


def canonical(address: str) -> str:
    """Return an address as it is compared: local part and domain case-folded, the domain in A-labels.

    A sub-address stays (theirs is part of who they are); one of ours was taken off before (design §5).
    """
    local, at, domain = address.strip().rpartition("@")
    return f"{local.casefold()}{at}{canonical_domain(domain)}"


def canonical_domain(domain: str) -> str:
    """Return a domain as it is compared: in A-labels where it has such a form (RFC 5890), case-folded."""
    folded = domain.strip().casefold().rstrip(".")
    try:
        return idna.encode(folded, uts46=True).decode("ascii")
    except UnicodeError:  # idna.IDNAError is one
        return folded


def responder_of(address: str, responders: tuple[str, ...]) -> str:
    """Return the row of a responder set that admits an address, the address itself before its domain.

    It is returned as the set writes it; "" where nobody admits the address.
    """
    author = canonical(address)
    domain = author.rpartition("@")[2]
    exact = [row for row in responders if _kind(row, "email:") and canonical(row.partition(":")[2]) == author]
    whole = [
        row
        for row in responders
        if _kind(row, "email-domain:") and canonical_domain(row.partition(":")[2]) == domain
    ]
    return next(iter(exact + whole), "")


def _kind(row: str, prefix: str) -> bool:
    return row.casefold().startswith(prefix)
