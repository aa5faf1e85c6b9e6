"""The four modes of missing attributes, in one place (docs/semantics.md, section 2, "Missing-modes").

`null` is three-valued logic. `strict` and `total` are three-valued too and demand attributes: those that occur in the
text, or all that the stream declares. `default` is two-valued over values that include OMEGA.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.predicates.rows import Defaults, Values, compile_truth
from headgate.schema import Attribute, Instant, Kind, Schema

MODES = ("null", "strict", "default", "total")


def logic(mode: str) -> str:
    """The mode without what it demands: `default`, or `null`."""
    return "default" if mode == "default" else "null"


def defaults_of(schema: Iterable[Attribute]) -> Defaults:
    """The DEFAULTs of a stream, by path."""
    return {a.path: _default(a) for a in schema if a.default is not None}


def _default(attribute: Attribute) -> Any:
    """The DEFAULT of an attribute as a value with its kind."""
    default: Any = attribute.default
    if attribute.type is None or attribute.type.kind is not Kind.TIMESTAMP:
        return default
    if isinstance(default, list):
        return [None if moment is None else Instant(moment) for moment in default]
    return Instant(default)


def attributes_of(body: Node) -> tuple[Path, ...]:
    """The attributes that occur in a text, each once, in its order."""
    return tuple(dict.fromkeys(n.path for n in ast.walk(body) if isinstance(n, ast.Attribute)))


def demanded(mode: str, body: Node, schema: Schema) -> tuple[Path, ...]:
    """The attributes that an event must have for the body to be TRUE at all."""
    if mode == "strict":
        return attributes_of(body)
    return tuple(a.path for a in schema) if mode == "total" else ()


def is_there(path: Path, at: int = -1) -> Node:
    return ast.Not(ast.IsNull(ast.Attribute(path, at=at), at=at), at=at)


def with_demands(mode: str, body: Node, schema: Schema) -> Node:
    """The body with what its mode demands written into it; `logic(mode)` is what remains of the mode."""
    there = tuple(is_there(path, body.at) for path in demanded(mode, body, schema))
    return ast.And((*there, body), at=body.at) if there else body


def truth(body: Node, row: Mapping[Path, Any], schema: Schema, mode: str) -> bool | None:
    """The truth of a condition without calls and graphs on one event. Where the event lacks what the mode demands, it is
    UNKNOWN."""
    if any(row.get(path) is None for path in demanded(mode, body, schema)):
        return None
    return compile_truth(body, defaults_of(schema) if mode == "default" else None)(Values(row, {}))
