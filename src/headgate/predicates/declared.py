"""The schema that a CREATE STREAM declares; what is wrong with it is said where it stands."""

from __future__ import annotations

from typing import Any

from headgate.errors import DuplicateName, SchemaError, TypeProblem, UnknownName
from headgate.language import ast
from headgate.predicates.normal import fold
from headgate.predicates.values import INT64
from headgate.schema import Attribute, Kind, Schema, Type, parse_type


def declared(statement: ast.CreateStream) -> Schema:
    attributes: dict[ast.Path, Attribute] = {}
    for column in statement.columns:
        try:
            kind = parse_type(column.type)
        except SchemaError as e:
            raise TypeProblem(e.message, e.hint, at=column.at + 1) from None
        if column.path in attributes:
            raise DuplicateName(f"column {'.'.join(column.path)} is declared twice", at=column.at)
        default = fold(column.default) if column.default is not None else None
        value = _default(default.value, kind, column) if isinstance(default, ast.Literal) else None
        attributes[column.path] = Attribute(column.path, kind, value, column.not_null)
    for path in statement.time:
        if path not in attributes:
            raise UnknownName(f"the TIME attribute {'.'.join(path)} is not declared", at=statement.at)
    try:
        return Schema(statement.name, attributes, statement.time)
    except SchemaError as e:
        raise TypeProblem(e.message, e.hint, at=statement.at) from None


def _default(value: Any, kind: Type | None, column: ast.ColumnDefinition) -> Any:
    """The DEFAULT as a value of its column's type."""
    if kind is None:
        raise TypeProblem("an attribute of the type ANY has no DEFAULT", "declare its type", at=column.at)
    if isinstance(value, int) and kind.kind is not Kind.DOUBLE and value not in INT64:
        raise TypeProblem(f"the DEFAULT {value} is beyond 64 bits", "give a value of the column's type", at=column.at)
    types: dict[str, Any] = {"boolean": bool, "bigint": int, "double": (int, float), "string": str, "timestamp": int}
    wanted = types.get(kind.kind)
    if value is None:
        return None
    if kind.array or wanted is None or not isinstance(value, wanted) or (isinstance(value, bool) != (wanted is bool)):
        raise TypeProblem(f"the DEFAULT does not fit {kind}", "give a literal of the column's type", at=column.at)
    return float(value) if kind.kind == "double" else value
