"""Checking addresses, and writing them for the wire."""

from __future__ import annotations

import pytest

from answerback.channels.mail import addresses
from answerback.errors import BadAddress


@pytest.mark.parametrize(
    ("given", "checked"),
    [
        ("pat@supplier.example", "pat@supplier.example"),
        (" Pat.O@Supplier.Example ", "Pat.O@supplier.example"),
        ("a+b@x.test", "a+b@x.test"),
        ("pat@bücher.example", "pat@xn--bcher-kva.example"),
        ("pat@XN--BCHER-KVA.example", "pat@xn--bcher-kva.example"),
        ("jürgen@x.example", "jürgen@x.example"),
    ],
)
def test_a_good_address_comes_back_as_we_write_to_it(given: str, checked: str) -> None:
    assert addresses.check(given) == checked


@pytest.mark.parametrize(
    "given",
    [
        "",
        "pat",
        "pat@",
        "@x.example",
        "pat@localhost",
        "a b@x.example",
        "pat@x.example\nBcc: y@z.example",
        "pat@x..example",
        "pat@[127.0.0.1]",
        "a" * 70 + "@x.example",
        "Pat <pat@x.example>",
        "\0@x.example",
    ],
)
def test_a_bad_address_is_refused_with_a_sentence(given: str) -> None:
    with pytest.raises(BadAddress) as caught:
        addresses.check(given)
    assert "Give one as name@domain." in caught.value.message
    assert "\n" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("a@b.example", True),
        ("a..b@b.example", True),
        ('"a b"@b.example', True),
        ('"a\\"b"@b.example', True),
        ("SRS0=x=y=z=a@b.example", True),
        ("jürgen@b.example", True),
        ("a@[192.0.2.1]", True),
        ("a@[IPv6:2001:db8::1]", True),
        ("@relay:a@b.example", False),
        ("@relay.example:a@b.example", False),
        ("a@b@c.example", False),
        ("<a@b.example>", False),
        ("a@b.example ", False),
        ("a@b.ex\x00ample", False),
        ("a@b.exam\udc80ple", False),
        ("a", False),
        ("", False),
        ("a@", False),
        ("a" * 400 + "@b.example", False),
        ('"a\r\nb"@b.example', False),
    ],
)
def test_a_mailbox_is_one_local_part_at_one_domain(text: str, is_one: bool) -> None:
    assert addresses.is_mailbox(text) is is_one


def test_a_domain_without_a_labels_is_refused() -> None:
    with pytest.raises(BadAddress):
        addresses.wire("a@\u200d.example")
