"""The keyring keeps its secrets: it writes them once, reads them strictly and never shows them."""

from __future__ import annotations

import base64
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import VerifyKey

from answerback.errors import BadSettings
from answerback.gateway.keyring import VARIABLE, Key, Keyring, generate, load


def counting() -> Callable[[int], bytes]:
    """Octets that differ at every call and are the same in every test."""
    calls = iter(range(1, 250))
    return lambda size: bytes([next(calls)]) * size


RING = generate(counting())


def test_a_fresh_keyring_has_one_key_for_each_use() -> None:
    assert RING.mac_keys == (b"\x01" * 32,)
    assert (RING.signing.secret, RING.sealing.secret) == (b"\x02" * 32, b"\x03" * 32)
    ids = [RING.mac[0].id, RING.signing.id, RING.sealing.id]
    assert [one.partition("_")[0] for one in ids] == ["mac", "sig", "seal"]
    assert len(set(ids)) == 3


def test_no_secret_is_ever_printed() -> None:
    for secret in (RING.mac[0].secret, RING.signing.secret, RING.sealing.secret):
        for shown in (repr(RING), str(RING), f"{RING}"):
            assert repr(secret) not in shown
            assert secret.hex() not in shown


def test_a_saved_keyring_is_loaded_as_it_was_and_read_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    ring = RING.rotate_mac(counting())
    RING.save(path)
    ring.save(path)
    assert load(path, {}) == ring
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [one.name for one in tmp_path.iterdir()] == ["keyring.json"]


def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    RING.save(tmp_path / "keyring.json")
    other = generate(lambda size: b"o" * size)
    other.save(tmp_path / "other.json")
    environment = {VARIABLE: (tmp_path / "other.json").read_text()}
    assert load(tmp_path / "keyring.json", environment) == other
    assert load(tmp_path / "missing.json", environment) == other


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o666])
def test_a_file_others_can_reach_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keyring.json"
    RING.save(path)
    path.chmod(mode)
    with pytest.raises(BadSettings, match=rf"mode {mode:04o}.*chmod 600"):
        load(path, {})


def test_a_missing_file_is_answered_with_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match=r"there is no .*answerback init.*ANSWERBACK_KEYRING"):
        load(tmp_path / "keyring.json", {})


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="can not be read"):
        load(tmp_path, {})


def _text(**changes: object) -> str:
    entry = {"id": "k", "key": base64.urlsafe_b64encode(b"s3cret-s3cret-s3cret-s3cret-s3cr").decode()}
    return json.dumps({"mac": [entry], "signing": entry, "sealing": entry} | changes)


def test_the_table_of_broken_keyrings_starts_from_a_whole_one() -> None:
    assert load(Path("unused"), {VARIABLE: _text()}).signing.id == "k"


BROKEN = {
    "no JSON": ("s3cret", "it: "),
    "another shape": ("[]", "it: "),
    "no MAC key": (_text(mac=[]), "mac: "),
    "an unknown field": (_text(colour="s3cret"), "colour: "),
    "a short key": (_text(signing={"id": "k", "key": "czNjcmV0"}), "signing.key: .*32 octets"),
    "no base64": (_text(sealing={"id": "k", "key": "s3cret"}), "sealing.key: "),
    "an empty id": (_text(sealing={"id": "", "key": ""}), "sealing.id: "),
}


@pytest.mark.parametrize(("text", "place"), BROKEN.values(), ids=BROKEN)
def test_a_broken_keyring_is_refused_without_showing_it(text: str, place: str) -> None:
    with pytest.raises(BadSettings, match=rf"{VARIABLE} holds no keyring \({place}") as caught:
        load(Path("unused"), {VARIABLE: text})
    assert "s3cret" not in str(caught.value)
    assert "czNjcmV0" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_second_save_at_the_same_time_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    RING.save(path)
    (tmp_path / "keyring.json.new").touch()
    with pytest.raises(BadSettings, match=r"keyring\.json\.new exists"):
        generate(lambda size: b"o" * size).save(path)
    assert load(path, {}) == RING
    assert (tmp_path / "keyring.json.new").exists()


def test_a_save_into_nowhere_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="can not be written"):
        RING.save(tmp_path / "missing" / "keyring.json")


def test_a_save_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "keyring.json"
    path.mkdir()
    with pytest.raises(BadSettings, match="can not be written"):
        RING.save(path)
    assert [one.name for one in tmp_path.iterdir()] == ["keyring.json"]


def test_rotation_puts_a_fresh_key_in_front_and_keeps_the_old_ones() -> None:
    draw = counting()
    draw(32)
    rotated = RING.rotate_mac(draw)
    assert rotated.mac_keys == (b"\x02" * 32, b"\x01" * 32)
    assert rotated.mac[1] == RING.mac[0]
    assert rotated.mac[0].id != RING.mac[0].id
    assert (rotated.signing, rotated.sealing) == (RING.signing, RING.sealing)


@given(st.binary())
def test_what_was_signed_verifies_with_the_public_key(octets: bytes) -> None:
    key_id, signature = RING.sign(octets)
    assert VerifyKey(RING.public_key).verify(octets, signature) == octets
    assert RING.verify(octets, key_id, signature)
    assert not RING.verify(octets + b"!", key_id, signature)
    assert not RING.verify(octets, "sig_other", signature)


@pytest.mark.parametrize("signature", [b"", b"short", b"0" * 64, b"0" * 65])
def test_what_is_no_signature_does_not_verify(signature: bytes) -> None:
    assert not RING.verify(b"a", RING.signing.id, signature)


@given(st.binary(), st.integers(min_value=0))
def test_what_was_sealed_opens_unless_one_bit_differs(octets: bytes, bit: int) -> None:
    sealed = RING.seal(octets)
    assert len(sealed) == len(octets) + 40
    assert RING.unseal(sealed) == octets
    place, mask = bit // 8 % len(sealed), 1 << bit % 8
    assert RING.unseal(sealed[:place] + bytes([sealed[place] ^ mask]) + sealed[place + 1 :]) is None
    assert generate(lambda size: b"o" * size).unseal(sealed) is None


@pytest.mark.parametrize("sealed", [b"", b"short", b"0" * 24, b"0" * 40])
def test_what_was_never_sealed_opens_to_nothing(sealed: bytes) -> None:
    assert RING.unseal(sealed) is None


def test_equal_keys_make_equal_keyrings() -> None:
    assert generate(counting()) == RING
    assert Keyring(mac=(Key(id="a", secret=b"1"),), signing=RING.signing, sealing=RING.sealing) != RING
