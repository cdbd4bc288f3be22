"""DKIM signatures, verified with the public key as DNS would give it."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import dkim
import nacl.signing
import pytest

from answerback.channels.mail import signing, write
from answerback.errors import BadSettings
from answerback.model import Address, Draft

MAIL = write.compose(
    Draft(
        message_id="<t@gw.example.net>",
        sender=Address(email="agent@gw.example.net", name="Ägent"),
        to=(Address(email="pat@supplier.example"),),
        subject="Größe",
        text="Hello  \n.\nno newline",
        date=datetime(2026, 3, 4, tzinfo=UTC),
        in_reply_to="<p@x.example>",
        references=("<p@x.example>",),
    )
)


@pytest.fixture(scope="module")
def rsa(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, bytes]:
    """A throwaway key: PEM and its DNS record."""
    path: Path = tmp_path_factory.mktemp("dkim") / "key.pem"
    subprocess.run(["openssl", "genrsa", "-out", path, "2048"], check=True, capture_output=True)
    public = subprocess.run(
        ["openssl", "rsa", "-in", path, "-pubout", "-outform", "DER"], check=True, capture_output=True
    ).stdout
    return path.read_bytes(), b"v=DKIM1; k=rsa; p=" + base64.b64encode(public)


@pytest.fixture
def ed25519() -> tuple[bytes, bytes]:
    seed = nacl.signing.SigningKey(b"\x07" * 32)
    return base64.b64encode(bytes(seed)), b"v=DKIM1; k=ed25519; p=" + base64.b64encode(bytes(seed.verify_key))


def dns(record: bytes) -> Callable[..., bytes]:
    return lambda name, timeout=5: record if name == b"s1._domainkey.gw.example.net." else b""


@pytest.mark.parametrize("kind", ["rsa", "ed25519"])
def test_a_signed_mail_verifies_and_a_changed_one_does_not(kind: str, request: pytest.FixtureRequest) -> None:
    key, record = request.getfixturevalue(kind)
    signed = signing.sign(MAIL, domain="gw.example.net", selector="s1", key=key)
    assert signed.endswith(MAIL)
    assert dkim.verify(signed, dnsfunc=dns(record))
    assert not dkim.verify(signed.replace(b"Hello", b"Hallo"), dnsfunc=dns(record))
    assert not dkim.verify(signed + b"more\r\n", dnsfunc=dns(record))
    for added in (
        b"From: x@evil.example\r\n",
        b"Subject: x\r\n",
        b"Reply-To: x@evil.example\r\n",
        b"Cc: x@evil.example\r\n",
    ):
        body = signed.index(MAIL)
        assert not dkim.verify(signed[:body] + added + MAIL, dnsfunc=dns(record)), added


def test_the_signature_is_relaxed_names_from_twice_and_has_no_length(ed25519: tuple[bytes, bytes]) -> None:
    signed = signing.sign(MAIL, domain="gw.example.net", selector="s1", key=ed25519[0])
    field = signed[: signed.index(MAIL)]
    tags = dict(pair.split("=", 1) for pair in re.sub(r"\s+", "", field.decode().split(":", 1)[1]).split(";"))
    names = tags["h"].split(":")
    assert (tags["a"], tags["c"], tags["d"], tags["s"], "l" in tags) == (
        "ed25519-sha256",
        "relaxed/relaxed",
        "gw.example.net",
        "s1",
        False,
    )
    assert names.count("from") == 2
    assert {
        "to",
        "cc",
        "subject",
        "date",
        "message-id",
        "in-reply-to",
        "references",
        "reply-to",
        "mime-version",
        "content-type",
        "content-transfer-encoding",
    } <= set(names)
    assert field.endswith(b"\r\n")
    assert field.count(b"\n") == field.count(b"\r\n")


@pytest.mark.parametrize(
    "key",
    [b"", b"nonsense", b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n", b"AAAA"],
)
def test_a_key_that_can_not_sign_is_a_bad_setting(key: bytes) -> None:
    with pytest.raises(BadSettings):
        signing.sign(MAIL, domain="gw.example.net", selector="s1", key=key)


def test_a_selector_that_is_no_name_is_a_bad_setting(ed25519: tuple[bytes, bytes]) -> None:
    with pytest.raises(BadSettings):
        signing.sign(MAIL, domain="gw.example.net", selector="s1; l=0", key=ed25519[0])
