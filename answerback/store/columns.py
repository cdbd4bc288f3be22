"""The column types and table helpers that make every row scoped, strict and alike on both databases."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ColumnElement,
    ForeignKeyConstraint,
    FromClause,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    and_,
    bindparam,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeDecorator

from answerback.model import Scope

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(column_0_N_label)s",
        "uq": "uq_%(table_name)s_%(constraint_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

#: INTEGER on SQLite (the only integer type of a STRICT table), BIGINT on PostgreSQL
Whole = BigInteger().with_variant(Integer(), "sqlite")

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class Words(TypeDecorator[str]):
    """TEXT. Characters one of the databases can not hold (NUL, lone surrogates) become U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text as it is stored."""
        return None if value is None else _UNSTORABLE.sub("\ufffd", str(value))


class Moment(TypeDecorator[datetime]):
    """An aware instant, stored as whole microseconds since 1970 UTC."""

    impl = BigInteger
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> Any:
        """Return the integer type of the dialect."""
        return dialect.type_descriptor(Whole)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:
        """Return the microseconds of an instant; a naive one is a ValueError."""
        return None if value is None else microseconds(value)

    def process_result_value(self, value: int | None, dialect: Dialect) -> datetime | None:
        """Return the instant in UTC."""
        return None if value is None else instant(value)


class JsonText(TypeDecorator[Any]):
    """A JSON value as TEXT: keys sorted, UTF-8, no blanks."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        """Return the text; what no database can hold (lone surrogates of hostile mail) is escaped."""
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        if _UNSTORABLE.search(text):
            return json.dumps(value, sort_keys=True, separators=(",", ":"))
        return text

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """Return the value."""
        return json.loads(value or "null")


def microseconds(at: datetime) -> int:
    """Return whole microseconds since 1970 UTC; a naive time is a ValueError."""
    if at.tzinfo is None:
        raise ValueError(f"naive time {at.isoformat()}: every stored time needs a zone")
    return (at - EPOCH) // MICROSECOND


def instant(count: int) -> datetime:
    """Return the aware UTC instant of a count of microseconds since 1970."""
    return EPOCH + count * MICROSECOND


def words(name: str, *, null: bool = False) -> Column[Any]:
    """Return a text column."""
    return Column(name, Words(), nullable=null)


def whole(name: str, *, null: bool = False) -> Column[Any]:
    """Return an integer column."""
    return Column(name, Whole, nullable=null)


def moment(name: str, *, null: bool = False) -> Column[Any]:
    """Return a column of instants."""
    return Column(name, Moment(), nullable=null)


def document(name: str) -> Column[Any]:
    """Return a column of JSON values."""
    return Column(name, JsonText(), nullable=False)


def octets(name: str) -> Column[Any]:
    """Return a column of bytes."""
    return Column(name, LargeBinary(), nullable=False)


def scoped(name: str, *items: SchemaItem, key: Sequence[str] = ("id",)) -> Table:
    """Return a table whose rows belong to one tenant and environment, in key and in every reference."""
    return Table(
        name,
        metadata,
        words("tenant"),
        words("environment"),
        *items,
        PrimaryKeyConstraint("tenant", "environment", *key),
        one_of("environment", ("live", "test")),
        sqlite_strict=True,
    )


def one_of(column: str, values: Iterable[str]) -> CheckConstraint:
    """Return a CHECK of a closed set, named after its column."""
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def refers(
    columns: str | Sequence[str],
    table: str,
    target: str | Sequence[str] = "id",
    *,
    name: str = "",
    late: bool = False,
) -> ForeignKeyConstraint:
    """Return a foreign key inside one tenant and environment; `late` is checked at commit.

    A late one closes a ring of tables (message → wait → waitpoint → message), so it is added last.
    """
    own = [columns] if isinstance(columns, str) else list(columns)
    theirs = [target] if isinstance(target, str) else list(target)
    return ForeignKeyConstraint(
        ["tenant", "environment", *own],
        [f"{table}.{column}" for column in ("tenant", "environment", *theirs)],
        name=name or own[0].removesuffix("_id"),
        deferrable=True if late else None,
        initially="DEFERRED" if late else None,
        use_alter=late,
    )


def of_tenant() -> ForeignKeyConstraint:
    """Return the foreign key of a table that hangs on nothing but its tenant."""
    return ForeignKeyConstraint(["tenant"], ["tenants.tenant"], name="tenant")


def here(table: FromClause, *names: str) -> ColumnElement[bool]:
    """Return the condition that a row belongs to the scope and has the values that `of` gives.

    Statements are built once, when a module is read: to build one takes longer than to run it.
    """
    columns = [table.c[name] for name in ("tenant", "environment", *names)]
    return and_(*(column == bindparam(f"of_{column.name}") for column in columns))


def among(column: ColumnElement[Any], values: str) -> ColumnElement[bool]:
    """Return the condition that a column is one of a list, the parameter `values`."""
    return column.in_(bindparam(values, type_=column.type, expanding=True))


def of(scope: Scope, **values: object) -> dict[str, object]:
    """Return the parameters of `here`; a column's bare name is left for what a statement sets."""
    found: dict[str, object] = {"of_tenant": scope.tenant, "of_environment": scope.environment}
    for name, value in values.items():
        found[f"of_{name}"] = value
    return found


def scope_of(scope: Scope) -> dict[str, str]:
    """Return the two columns every row starts with."""
    return {"tenant": scope.tenant, "environment": scope.environment}
