"""However long a mail is, it is read in the time of a short one, and a person is told that it is too long."""

from __future__ import annotations

import base64
from time import perf_counter

import pytest

from answerback.channels.mail.read import read, resplit

HEAD = b"From: a@b.example\r\nMessage-ID: <a@b.example>\r\n"
HTML = HEAD + b"Content-Type: text/html\r\n\r\n"
LONG = {
    "answers between quotes": HEAD + b"\r\n" + b"> a\r\nb\r\n" * 200_000,
    "signature marks": HEAD + b"\r\n" + b"-- \r\n" * 200_000,
    "quote marks": HEAD + b"\r\n" + b">\r\n" * 500_000,
    "sentences": HEAD + b"\r\n" + b"when will it be delivered?\r\n" * 700_000,
    "base64": HEAD
    + b"Content-Transfer-Encoding: base64\r\n\r\n"
    + base64.encodebytes(b"> a\nb\n" * 1_500_000).replace(b"\n", b"\r\n"),
    "paragraphs": HTML + b"<p>x<br>y</p>\r\n" * 300_000,
    "character references": HTML + b"&#65;&nbsp;" * 400_000,
    "style rules": HTML
    + b"<style>"
    + b"".join(b".c%d p{color:red}" % n for n in range(2000))
    + b"</style>"
    + b"<p>x</p>" * 15_000,
}


@pytest.mark.parametrize("raw", LONG.values(), ids=LONG)
def test_a_mail_of_any_length_is_read_in_bounded_time_and_put_before_a_person(raw: bytes) -> None:
    start = perf_counter()
    inbound = resplit(read(raw), ("When will it be delivered?",))
    assert perf_counter() - start < 5, "seconds on a busy machine; a tenth of that is usual"
    assert inbound.unreadable in ("too_large", "suspect_only")
    assert inbound.message_id == "<a@b.example>"
