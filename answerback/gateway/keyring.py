"""Holds an installation's secrets: MAC keys, the tenant's signing key, the sealing key."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from hashlib import sha256
from pathlib import Path

from nacl.exceptions import BadSignatureError, CryptoError
from nacl.exceptions import ValueError as NaclValueError
from nacl.secret import SecretBox
from nacl.signing import SigningKey, VerifyKey
from pydantic import Base64UrlBytes, BaseModel, ConfigDict, Field, ValidationError, field_validator

from answerback.errors import BadSettings
from answerback.model import value

#: environment variable with the keyring's JSON; where it is set no file is read
VARIABLE = "ANSWERBACK_KEYRING"

#: octets of every key in it
KEY_SIZE = 32


@value
class Key:
    """A secret of 32 octets and the name it goes by."""

    id: str
    secret: bytes = field(repr=False)


@value
class Keyring:
    """One installation's keys. Nothing here prints a secret; only `save` writes them."""

    #: the first makes tokens, all of them check
    mac: tuple[Key, ...]
    #: Ed25519 seed of the tenant
    signing: Key
    #: XSalsa20-Poly1305 key for what is stored sealed
    sealing: Key

    @property
    def mac_keys(self) -> tuple[bytes, ...]:
        """The MAC keys as the tokens want them, the current one first."""
        return tuple(key.secret for key in self.mac)

    @property
    def public_key(self) -> bytes:
        """The 32 octets that signatures of this tenant are checked with."""
        return bytes(SigningKey(self.signing.secret).verify_key)

    def sign(self, octets: bytes) -> tuple[str, bytes]:
        """Return the signing key's id and the Ed25519 signature (64 octets)."""
        return self.signing.id, SigningKey(self.signing.secret).sign(octets).signature

    def verify(self, octets: bytes, key_id: str, signature: bytes) -> bool:
        """Tell whether this tenant's key of that id signed the octets."""
        if key_id != self.signing.id:
            return False
        try:
            VerifyKey(self.public_key).verify(octets, signature)
        except (BadSignatureError, NaclValueError):
            return False
        return True

    def seal(self, octets: bytes) -> bytes:
        """Return the octets encrypted and authenticated, with a fresh nonce in front: 40 octets longer."""
        return bytes(SecretBox(self.sealing.secret).encrypt(octets))

    def unseal(self, sealed: bytes) -> bytes | None:
        """Return what was sealed, None where this key did not seal it or it was changed."""
        try:
            return SecretBox(self.sealing.secret).decrypt(sealed)
        except (CryptoError, NaclValueError):
            return None

    def rotate_mac(self, random_bytes: Callable[[int], bytes]) -> Keyring:
        """Return the keyring with a fresh MAC key in front; the older ones go on checking."""
        return replace(self, mac=(_fresh("mac", random_bytes), *self.mac))

    def save(self, path: Path) -> None:
        """Write the keyring as JSON that only its owner reads, the whole file or none.

        Raises:
            BadSettings: the file can not be written, or another save is under way.
        """
        try:
            _put(path, _written(self))
        except FileExistsError as error:
            raise _unusable(f"{error.filename} exists; remove it unless another save is under way") from None
        except OSError as error:
            raise _unusable(f"{path} can not be written ({error.strerror})") from None


def generate(random_bytes: Callable[[int], bytes]) -> Keyring:
    """Return a fresh keyring; `random_bytes(n)` has to return n unpredictable octets."""
    mac, signing, sealing = (_fresh(use, random_bytes) for use in ("mac", "sig", "seal"))
    return Keyring(mac=(mac,), signing=signing, sealing=sealing)


def load(path: Path, environment: Mapping[str, str]) -> Keyring:
    """Return the keyring of the environment variable, else of the file.

    Raises:
        BadSettings: there is none, others can read the file, or it holds no keyring.
    """
    if VARIABLE in environment:
        return _parsed(environment[VARIABLE].encode("utf-8", "replace"), VARIABLE)
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if mode & 0o077:
                raise _unusable(f"others can read {path} (mode {mode:04o}); run `chmod 600 {path}`")
            return _parsed(file.read(), str(path))
    except FileNotFoundError:
        raise _unusable(f"there is no {path}; `answerback init` makes one, or set {VARIABLE}") from None
    except OSError as error:
        raise _unusable(f"{path} can not be read ({error.strerror})") from None


class _Entry(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    id: str = Field(min_length=1)
    key: Base64UrlBytes

    @field_validator("key")
    @classmethod
    def _whole(cls, key: bytes) -> bytes:
        if len(key) != KEY_SIZE:
            raise ValueError(f"a key has {KEY_SIZE} octets")
        return key

    def as_key(self) -> Key:
        return Key(id=self.id, secret=self.key)


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    mac: list[_Entry] = Field(min_length=1)
    signing: _Entry
    sealing: _Entry


def _parsed(octets: bytes, where: str) -> Keyring:
    """The keyring in JSON; what is wrong with it is told without any of its values."""
    try:
        found = _File.model_validate_json(octets)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"])) or "it"
        raise _unusable(
            f"{where} holds no keyring ({place}: {first['msg']}); restore it from a copy"
        ) from None
    return Keyring(
        mac=tuple(entry.as_key() for entry in found.mac),
        signing=found.signing.as_key(),
        sealing=found.sealing.as_key(),
    )


def _written(keyring: Keyring) -> bytes:
    def entry(key: Key) -> _Entry:
        return _Entry(id=key.id, key=base64.urlsafe_b64encode(key.secret))

    file = _File(
        mac=[entry(key) for key in keyring.mac],
        signing=entry(keyring.signing),
        sealing=entry(keyring.sealing),
    )
    return file.model_dump_json(indent=2).encode() + b"\n"


def _fresh(use: str, random_bytes: Callable[[int], bytes]) -> Key:
    secret = random_bytes(KEY_SIZE)
    return Key(id=f"{use}_{sha256(b'answerback key id ' + secret).hexdigest()[:12]}", secret=secret)


def _put(path: Path, octets: bytes) -> None:
    """Put a file in place, whole or not at all, and wait until it is on the disk."""
    beside = path.with_name(path.name + ".new")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(octets)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the rename last: it lies in the folder, not in the file."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _unusable(problem: str) -> BadSettings:
    return BadSettings(setting="keyring", problem=problem)
