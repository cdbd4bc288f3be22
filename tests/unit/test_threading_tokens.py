"""A token names its row to who holds the key, and nothing to anybody else."""

from __future__ import annotations

import hashlib
import hmac
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.threading import refs, tokens

KEYS = (b"k" * 32, b"older" * 8)
ROWS = st.integers(min_value=0, max_value=2**64 - 1)
KINDS = st.sampled_from(tokens.KINDS)
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"


def test_a_token_is_the_row_and_half_an_hmac_in_base32() -> None:
    number = (7).to_bytes(8, "big")
    mac = hmac.new(KEYS[0], b"answerback message_id\0" + number, hashlib.sha256).digest()[:16]
    bits = int.from_bytes(number + mac, "big") << 3
    written = "".join(LETTERS[bits >> 5 * place & 31] for place in reversed(range(39)))
    assert tokens.mint("message_id", 7, KEYS) == written


@given(KINDS, ROWS)
def test_what_is_minted_verifies_in_any_case_as_its_kind_alone(kind: tokens.Kind, row_id: int) -> None:
    token = tokens.mint(kind, row_id, KEYS)
    assert len(token) == tokens.LENGTH
    assert tokens.verify(kind, token, KEYS) == tokens.verify(kind, token.upper(), KEYS) == row_id
    assert {other: tokens.verify(other, token, KEYS) for other in tokens.KINDS} == {
        other: row_id if other == kind else None for other in tokens.KINDS
    }


@given(KINDS, ROWS, st.integers(0, 38), st.integers(0, 4))
def test_one_changed_bit_makes_it_nothing(kind: tokens.Kind, row_id: int, place: int, bit: int) -> None:
    token = tokens.mint(kind, row_id, KEYS)
    changed = LETTERS[LETTERS.index(token[place]) ^ 1 << bit]
    assert tokens.verify(kind, token[:place] + changed + token[place + 1 :], KEYS) is None


@given(st.text(max_size=60) | st.text(alphabet=LETTERS, min_size=39, max_size=39))
def test_foreign_text_is_no_token_and_no_error(text: str) -> None:
    assert tokens.verify("message_id", text, KEYS) is None
    assert tokens.row_of(text, KEYS) is None
    assert tokens.read_address(text, "reply_address", KEYS) is None


def test_the_first_key_mints_and_every_key_verifies() -> None:
    new, old = KEYS
    for keys in permutations(KEYS):
        assert tokens.verify("return_path", tokens.mint("return_path", 9, [old]), keys) == 9
        assert tokens.verify("return_path", tokens.mint("return_path", 9, [new]), keys) == 9
    assert tokens.mint("return_path", 9, KEYS) == tokens.mint("return_path", 9, [new])
    assert tokens.verify("return_path", tokens.mint("return_path", 9, [old]), [new]) is None


@given(ROWS)
def test_a_message_id_of_ours_is_its_own_key_and_names_its_row(row_id: int) -> None:
    rfc_id = tokens.message_id(row_id, "GW.example.net", KEYS)
    assert refs.normalise(rfc_id) == rfc_id
    assert refs.extract(rfc_id) == (rfc_id,)
    assert tokens.row_of(rfc_id, KEYS) == row_id
    assert tokens.row_of(f" {rfc_id.upper()[:20]}\r\n {rfc_id[20:]}", KEYS, domain="gw.EXAMPLE.net") == row_id
    assert tokens.row_of(rfc_id, KEYS, domain="other.example") is None


@given(ROWS, st.sampled_from(["reply_address", "return_path"]))
def test_a_sub_address_leads_back_to_its_inbox_and_row(row_id: int, kind: tokens.Kind) -> None:
    address = tokens.sub_address("Agent@gw.example.net", row_id, kind, KEYS)
    local, _, domain = address.partition("@")
    assert (local[:6], len(local), domain) == ("Agent+", 45, "gw.example.net")
    for written in (address, address.upper(), f"<{address}>", f" {address} "):
        assert tokens.read_address(written, kind, KEYS) == ("agent@gw.example.net", row_id)


TOKEN = tokens.mint("reply_address", 1, KEYS)


@pytest.mark.parametrize(
    "address",
    ["", "agent@gw.example.net", f"+{TOKEN}@gw.example.net", f"agent{TOKEN}@gw.example.net",
     f"agent+{TOKEN}x@gw.example.net", f"agent+{TOKEN}", f"agent+{tokens.mint('return_path', 1, KEYS)}@gw.example.net"],
)  # fmt: skip
def test_other_addresses_have_no_token(address: str) -> None:
    assert tokens.read_address(address, "reply_address", KEYS) is None


def test_a_sub_address_of_a_sub_address_keeps_the_first() -> None:
    address = tokens.sub_address("agent+sales@gw.example.net", 1, "reply_address", KEYS)
    assert tokens.read_address(address, "reply_address", KEYS) == ("agent+sales@gw.example.net", 1)


@given(ROWS)
def test_a_public_id_is_a_prefix_and_thirteen_characters_of_the_number(number: int) -> None:
    public_id = tokens.public_id("msg", number)
    assert (public_id[:4], len(public_id)) == ("msg_", 17)
    assert set(public_id[4:]) <= set(LETTERS)
    assert tokens.number_of(public_id) == number


@pytest.mark.parametrize(
    "text", ["", "msg_", "msg_abc", "msg_aaaaaaaaaaaab", "msg_000000000000a", "msg_aaaaaaaaaaaaaa"]
)
def test_what_is_no_public_id_has_no_number(text: str) -> None:
    with pytest.raises(ValueError, match="not a public id"):
        tokens.number_of(text)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_a_number_outside_64_bits_is_refused(number: int) -> None:
    with pytest.raises(OverflowError):
        tokens.mint("message_id", number, KEYS)
    with pytest.raises(OverflowError):
        tokens.public_id("msg", number)
