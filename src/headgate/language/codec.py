"""Trees as JSON, for files: a plan keeps the few atoms that no array can hold, and must not run code to read them.

A node is [its kind, field, field, ...]; a value that JSON would bend (NaN, infinities, tuples) is tagged.
"""

from __future__ import annotations

from typing import Any

from headgate.errors import PlanError
from headgate.language import ast
from headgate.language.ast import Hole, Node
from headgate.schema import Instant

_KINDS = {name: kind for name, kind in vars(ast).items() if isinstance(kind, type) and issubclass(kind, Node)}


def know(kind: type[Node]) -> type[Node]:
    """Makes a kind of node that is defined elsewhere part of what files may hold."""
    _KINDS[kind.__name__] = kind
    return kind


def encode(value: Any) -> Any:
    if isinstance(value, Hole):
        return {"h": [value.token, value.form]}
    if isinstance(value, Node):
        return [type(value).__name__, *(encode(getattr(value, name)) for name in ast.names_of(type(value)))]
    if isinstance(value, tuple):
        return {"t": [encode(v) for v in value]}
    if isinstance(value, Instant):
        return {"at": int(value)}
    if isinstance(value, float) or (isinstance(value, int) and not isinstance(value, bool)):
        return {"f" if isinstance(value, float) else "i": repr(value)}
    if value is None or isinstance(value, str | bool):
        return value
    raise AssertionError(f"{type(value).__name__} has no place in a tree")


def decode(value: Any) -> Any:
    match value:
        case [str(name), *parts]:
            kind = _KINDS.get(name)
            if kind is None:
                raise PlanError(f"the plan speaks of {name!r}, which this version does not know")
            return kind(**dict(zip(ast.names_of(kind), map(decode, parts), strict=True)))
        case {"t": parts}:
            return tuple(map(decode, parts))
        case {"h": [int(token), str(form)]}:
            return Hole(token, form)
        case {"at": int(microseconds)}:
            return Instant(microseconds)
        case {"f": text}:
            return float(text)
        case {"i": text}:
            return int(text)
    return value
