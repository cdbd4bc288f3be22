"""What an operator sets: one TOML file, overridden by the environment."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from answerback.errors import BadSettings, UnknownSetting
from answerback.gateway import plain

FILE_NAME = "answerback.toml"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid")


class SmtpIn(_Section):
    """The listener other mail servers deliver to."""

    host: str = "127.0.0.1"
    #: 0 lets the system choose; the server says which it got
    port: int = Field(2525, ge=0, le=65535)
    #: name in the greeting; empty takes the machine's
    hostname: str = ""
    certificate: Path | None = None
    private_key: Path | None = None
    lmtp: bool = False
    #: octets of one mail
    size_limit: int = Field(25 << 20, ge=1024)
    connections: int = Field(200, ge=1)
    connections_per_peer: int = Field(60, ge=1)
    #: seconds without a command
    idle_timeout: float = Field(120, gt=0)


class SmtpOut(_Section):
    """The relay outgoing mail is handed to."""

    host: str = ""
    port: int = Field(587, ge=1, le=65535)
    username: str = ""
    password: str = Field("", repr=False)
    #: starttls, tls from the first octet, or none for a relay without TLS
    security: Literal["none", "starttls", "tls"] = "starttls"
    #: PEM file of the authorities to trust instead of the system's
    authorities: Path | None = None
    #: seconds a command may take
    timeout: float = Field(30, gt=0)
    connections: int = Field(4, ge=1, le=100)
    #: seconds a hand-over stays with a process that does not renew it; after that it is "unknown"
    lease: float = Field(60, ge=1)


class Http(_Section):
    """The listener of the HTTP API."""

    host: str = "127.0.0.1"
    port: int = Field(8025, ge=0, le=65535)


class Dkim(_Section):
    """The key outgoing mail is signed with; no domain means unsigned."""

    domain: str = ""
    selector: str = ""
    #: PEM (RSA) or base64 (Ed25519) private key file
    private_key: Path | None = None


class Client(_Section):
    """The running server agent verbs of the command line talk to."""

    url: str = ""
    key: str = Field("", repr=False)


class Settings(BaseSettings):
    """Every setting; `ANSWERBACK_SMTP_OUT__HOST=…` overrides `[smtp_out] host`."""

    model_config = SettingsConfigDict(
        env_prefix="ANSWERBACK_", env_nested_delimiter="__", extra="forbid", validate_default=True
    )

    #: folder of the database, the keyring and the settings file
    home: Path = Path("answerback-data")
    #: SQLAlchemy URL; empty is answerback.db in the home
    database: str = ""
    tenant: str = "default"
    smtp_in: SmtpIn = SmtpIn()
    smtp_out: SmtpOut = SmtpOut()
    http: Http = Http()
    dkim: Dkim = Dkim()
    client: Client = Client()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: arguments, environment, then the settings file."""
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls, settings_file())

    @property
    def database_url(self) -> str:
        """The URL of the database in use."""
        return self.database or f"sqlite:///{self.home / 'answerback.db'}"

    @property
    def keyring_path(self) -> Path:
        """The keyring's file (not read where ANSWERBACK_KEYRING is set)."""
        return self.home / "keyring.json"


def settings_file() -> Path:
    """Return the settings file's path: in ANSWERBACK_HOME, by default `answerback-data`."""
    return Path(os.environ.get("ANSWERBACK_HOME", "answerback-data")) / FILE_NAME


def names() -> list[str]:
    """Return the name of every setting, as `smtp_out.host`."""
    found: list[str] = []
    for name, field in Settings.model_fields.items():
        kind = field.annotation
        section = kind.model_fields if isinstance(kind, type) and issubclass(kind, _Section) else {}
        found += [f"{name}.{inner}" for inner in section] or [name]
    return found


def load() -> Settings:
    """Return the settings in force.

    Raises:
        UnknownSetting: there is none of a given name.
        BadSettings: a value is missing or out of range, or the file is no TOML.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(map(str, first["loc"]))
        if first["type"] == "extra_forbidden":
            beside = [one for one in names() if one.rpartition(".")[0] == name.rpartition(".")[0]]
            raise UnknownSetting(setting=name, known=", ".join(beside or names())) from None
        raise BadSettings(setting=name, problem=plain.sentence(first)) from None
    except tomllib.TOMLDecodeError as error:
        raise BadSettings(setting=str(settings_file()), problem=str(error)) from None
