"""Statements the two databases spell differently, and conditions spelled as their partial index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Executable, Table, literal_column
from sqlalchemy.dialects import postgresql, sqlite


def insert_once(
    table: Table, conflict: Sequence[str], *, returning: Sequence[str] = (), where: Any = None
) -> Mapping[str, Executable]:
    """Return an INSERT that does nothing where the columns `conflict` of the scope are there already.

    With `returning` a new row gives those columns and an old one no row at all. `where` is the condition of a
    partial index.
    """
    target = ["tenant", "environment", *conflict]
    columns = [table.c[name] for name in returning]
    spelled: dict[str, Executable] = {}
    for name, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert)):
        statement: Any = insert(table).on_conflict_do_nothing(index_elements=target, index_where=where)
        spelled[name] = statement.returning(*columns) if columns else statement
    return spelled


def increment(table: Table, conflict: Sequence[str], column: str) -> Mapping[str, Executable]:
    """Return an INSERT that adds to `column` where the row is there already."""
    target = ["tenant", "environment", *conflict]
    spelled: dict[str, Executable] = {}
    for name, insert in (("sqlite", sqlite.insert), ("postgresql", postgresql.insert)):
        statement: Any = insert(table)
        grown: ColumnElement[Any] = table.c[column] + statement.excluded[column]
        spelled[name] = statement.on_conflict_do_update(index_elements=target, set_={column: grown})
    return spelled


def predicate(words: str) -> ColumnElement[bool]:
    """Return a condition in the very words of a partial index, which is used for nothing else.

    It has no type: SQLAlchemy would write `(…) = 1` for a Boolean on SQLite, and the index would lie idle.
    """
    return literal_column(words)
