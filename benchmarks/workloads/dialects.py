"""One rule in the languages of all peers: a conjunction of conditions on paths, written as each of them writes it.

Only what is asked of the paths differs between peers; what a missing attribute means is the same in all of them here: the
condition does not hold. A dialect that cannot say a condition raises `Cannot` with the reason.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_]\w*")


class Cannot(Exception):
    """The peer's language has no words for this."""


@dataclass(frozen=True)
class Condition:
    """`op`: one of `=`, `in`, `not in`, `prefix`, `exists`, `between` (both ends included)."""

    path: tuple[str, ...]
    op: str
    value: Any = None


Rule = tuple[Condition, ...]


def headgate(rule: Rule) -> str:
    return " AND ".join(_headgate(c) for c in rule)


def _headgate(c: Condition) -> str:
    path = ".".join(p if _PLAIN.fullmatch(p) else f"`{p}`" for p in c.path)
    if c.op == "=":
        return f"{path} = {_sql(c.value)}"
    if c.op in ("in", "not in"):
        return f"{path} {c.op.upper()} ({', '.join(map(_sql, c.value))})"
    if c.op == "prefix":
        return f"{path} STARTS WITH {_sql(c.value)}"
    if c.op == "exists":
        return f"{path} IS NOT NULL"
    return f"{path} BETWEEN {c.value[0]} AND {c.value[1]}"


def _sql(value: Any) -> str:
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else str(value)


def bridge(rule: Rule) -> dict[str, Any]:
    """An EventBridge pattern, as event-ruler and quamina read it."""
    made: dict[str, Any] = {}
    for c in rule:
        at = made
        for part in c.path[:-1]:
            at = at.setdefault(part, {})
        at[c.path[-1]] = _allowed(c)
    return made


def _allowed(c: Condition) -> list[Any]:
    """What an EventBridge pattern lists for a field."""
    if c.op == "in":
        return list(c.value)
    if c.op == "not in":
        return [{"anything-but": list(c.value)}]
    if c.op == "prefix":
        return [{"prefix": c.value}]
    if c.op == "exists":
        return [{"exists": True}]
    return [{"numeric": [">=", c.value[0], "<=", c.value[1]]}] if c.op == "between" else [c.value]


def quamina(rule: Rule) -> dict[str, Any]:
    if any(c.op == "between" for c in rule):
        raise Cannot("no ranges of numbers in this version")
    if any(c.op == "not in" for c in rule):
        # Seen here and not by the other peers: it gave a user to a rule for anything but that user.
        raise Cannot("this version mixes up several anything-but on one field")
    return bridge(rule)


def a_tree(rule: Rule) -> str:
    return " and ".join(_a_tree(c) for c in rule)


def _a_tree(c: Condition) -> str:
    if len(c.path) > 1:
        raise Cannot("flat attributes only")
    if c.op in ("prefix", "exists"):
        raise Cannot(f"no test like {c.op}")
    (name,) = c.path
    if c.op in ("in", "not in"):
        return f"{name} {c.op} [{', '.join(json.dumps(v) for v in c.value)}]"
    if c.op == "between":
        return f"{name} >= {c.value[0]} and {name} <= {c.value[1]}"
    return f"{name} = {json.dumps(c.value)}"


def rule_engine(rule: Rule) -> str:
    return " and ".join(_rule_engine(c) for c in rule)


def _rule_engine(c: Condition) -> str:
    first, *rest = (p.replace("-", "_") for p in c.path)
    path = first + "".join(f'&["{p}"]' for p in rest)
    if c.op == "=":
        return f"{path} == {json.dumps(c.value)}"
    if c.op == "in":
        return f"{path} in {json.dumps(list(c.value))}"
    if c.op == "not in":
        return f"{path} != null and not ({path} in {json.dumps(list(c.value))})"
    if c.op == "prefix":
        return f'{path} =~ "{re.escape(c.value)}"'.replace("\\", "\\\\")
    if c.op == "exists":
        return f"{path} != null"
    return f"{path} != null and {path} >= {c.value[0]} and {path} <= {c.value[1]}"


def json_logic(rule: Rule) -> dict[str, Any]:
    return {"and": [_json_logic(c) for c in rule]}


def _json_logic(c: Condition) -> dict[str, Any]:
    var = {"var": ".".join(c.path)}
    if c.op == "=":
        return {"===": [var, c.value]}
    if c.op == "in":
        return {"in": [var, list(c.value)]}
    if c.op == "not in":
        return {"and": [{"!==": [var, None]}, {"!": {"in": [var, list(c.value)]}}]}
    if c.op == "prefix":
        return {"===": [{"substr": [var, 0, len(c.value)]}, c.value]}
    if c.op == "exists":
        return {"!==": [var, None]}
    return {"and": [{"!==": [var, None]}, {"<=": [c.value[0], var, c.value[1]]}]}


DIALECTS: dict[str, Callable[[Rule], Any]] = {
    "headgate": headgate,
    "event-ruler": bridge,
    "quamina": quamina,
    "a-tree": a_tree,
    "rule-engine": rule_engine,
    "json-logic": json_logic,
}
