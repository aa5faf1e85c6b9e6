"""The attributes over which covering is decided: their types, whether they can be missing, what replaces them.

A schema is given the way a stream declares its columns, one text an attribute: `{"x": "double", "y": "bigint NOT NULL",
"z": "double DEFAULT -1"}`. The texts are read by the language's own grammar.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.covering.domain import instant
from headgate.errors import SchemaError
from headgate.language import ast
from headgate.language.ast import Path
from headgate.language.parser import parse_script

ALIASES = {"INT": "BIGINT", "INTEGER": "BIGINT", "LONG": "BIGINT", "FLOAT": "DOUBLE", "TEXT": "STRING", "BOOL": "BOOLEAN"}
TYPES = frozenset({"BOOLEAN", "BIGINT", "DOUBLE", "STRING", "TIMESTAMP", "BINARY", "GRAPH"})


@dataclass(frozen=True, slots=True)
class Field:
    """One attribute. `default` counts only if `has_default`, for a default may be any value of the type."""

    path: Path
    type: str
    nullable: bool = True
    has_default: bool = False
    default: Any = None

    @property
    def array(self) -> bool:
        return self.type.startswith("ARRAY")


Fields = Mapping[Path, Field]


def fields_of(schema: Mapping[str, str]) -> Fields:
    """The fields of a schema; a name with dots is a path."""
    if not schema:
        return {}
    columns = ", ".join(f"{_quoted(name)} {text}" for name, text in schema.items())
    (statement,) = parse_script(f"CREATE STREAM s ({columns})")
    assert isinstance(statement, ast.CreateStream)
    return fields_of_columns(statement.columns)


def fields_of_columns(columns: Iterable[ast.ColumnDefinition]) -> Fields:
    """The fields that CREATE STREAM declares."""
    return {c.path: _field(c) for c in columns}


def _quoted(name: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in name.split("."))


def _field(column: ast.ColumnDefinition) -> Field:
    type_ = ALIASES.get(column.type, column.type)
    name = ".".join(column.path)
    if type_ not in TYPES and not type_.startswith("ARRAY<"):
        raise SchemaError(f"attribute {name}: there is no type {column.type}", f"the types are {', '.join(sorted(TYPES))}")
    default = column.default
    if default is None or (isinstance(default, ast.Literal) and default.value is None):
        return Field(column.path, type_, not column.not_null)
    value = instant(default.text) if isinstance(default, ast.Instant) else getattr(default, "value", None)
    if not _fits(value, type_):
        raise SchemaError(f"attribute {name}: the DEFAULT {value!r} is no {type_}")
    return Field(column.path, type_, not column.not_null, True, value)


def _fits(value: Any, type_: str) -> bool:
    if type_ == "BOOLEAN":
        return isinstance(value, bool)
    if type_ in ("BIGINT", "TIMESTAMP"):
        return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63
    if type_ == "DOUBLE":
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)
