"""Tables of subscriptions, one row each: Arrow, pandas or Spark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from headgate.errors import LanguageError, SchemaError, UsageError


def rows_of(table: Any, id: str, text: str) -> Iterator[tuple[str, str]]:
    """The names and texts; a row that lacks one is a UsageError."""
    for name, body in zip(*_two_columns(table, id, text), strict=True):
        if name is None or body is None:
            raise UsageError(f"a subscription has no {'id' if name is None else 'text'}", "every row needs both")
        yield str(name), body


def of_row(name: str, problem: LanguageError) -> LanguageError:
    """The problem, with the subscription it is in: a table has no lines to point to."""
    message = problem.message if name in problem.message else f"subscription {name}: {problem.message}"
    return type(problem)(message, problem.hint, at=problem.at, place=problem.place)


def _two_columns(table: Any, id: str, text: str) -> tuple[list[Any], list[Any]]:
    if hasattr(table, "toArrow"):  # a Spark DataFrame
        table = table.select(id, text).toArrow()
    names = list(getattr(table, "column_names", None) or table.columns)
    for wanted in (id, text):
        if wanted not in names:
            raise SchemaError(f"the table has no column {wanted}", f"it has {', '.join(map(str, names))}")
    if hasattr(table, "to_pylist"):
        return table.column(id).to_pylist(), table.column(text).to_pylist()
    return table[id].tolist(), table[text].tolist()
