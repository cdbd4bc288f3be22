"""What every other value is built on: the value decorator, JSON objects, the scope of a row."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeVar, dataclass_transform

_T = TypeVar("_T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def value(cls: type[_T]) -> type[_T]:
    """Return the class as a frozen dataclass with slots and keyword-only fields."""
    return dataclass(frozen=True, slots=True, kw_only=True)(cls)


Json = dict[str, object]


@value
class Scope:
    """The isolation every stored row belongs to: nothing crosses tenant or environment."""

    tenant: str
    environment: Literal["live", "test"]
