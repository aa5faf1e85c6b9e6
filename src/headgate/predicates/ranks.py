"""The cuts of values without a type: a condition that compares one variable with constants as intervals of whole numbers.

The constants of all conditions are sorted once per kind. A value equal to constant i has rank 2i + 1, one between
constants i - 1 and i has rank 2i, and ranks of different kinds lie far apart. A value is looked up once; then any such
condition is a test of one integer, exact for every number and text, and compiled loops can do it. For values with a type
`cells` does the same on whole columns.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates import values
from headgate.predicates.times import instant
from headgate.predicates.values import BOOLEAN, OBJECT, ORDERED, Instant, kind

Interval = tuple[int, int]
SHIFT = 40
EVERYTHING: list[Interval] = [(-1, 1 << 60)]
"""All ranks; -1 is the rank of what cannot be compared."""
_NO_RANK = -1
_CONSTANTS = (ast.Literal, ast.Instant, ast.Span)


def constant(node: Node) -> Any:
    """The value of a constant; None for NULL and for what is no constant."""
    match node:
        case ast.Literal(value):
            return value
        case ast.Instant(text):
            return Instant(instant(text))
        case ast.Span(amount, unit):
            return round(amount * ast.UNITS[unit])
        case ast.Negate(operand):
            inner = constant(operand)
            return values.negate(inner) if kind(inner) == values.NUMBER else None
    return None


def comparable(condition: Node) -> bool:
    """Whether the condition on one variable can be told from the variable's place among constants."""
    match condition:
        case ast.And(items) | ast.Or(items):
            return all(map(comparable, items))
        case ast.Not(operand):
            return comparable(operand)
        case ast.Compare(_, left, right):
            pair = (left, right) if isinstance(left, ast.Variable) else (right, left)
            return isinstance(pair[0], ast.Variable) and _is_constant(pair[1])
        case ast.Between(operand, low, high):
            return isinstance(operand, ast.Variable) and _is_constant(low) and _is_constant(high)
        case ast.In(operand, items):
            return isinstance(operand, ast.Variable) and all(map(_is_constant, items))
        case ast.IsNull(operand):
            return isinstance(operand, ast.Variable)
        case ast.Literal(value):
            return value is None or isinstance(value, bool)
    return isinstance(condition, ast.Variable)


def _is_constant(node: Node) -> bool:
    return isinstance(node, _CONSTANTS) or (isinstance(node, ast.Negate) and _is_constant(node.operand))


def constants(condition: Node) -> list[Any]:
    """The values a comparable condition compares with. A bare variable is compared with TRUE."""
    nodes = (n for n in ast.walk(condition) if isinstance(n, (*_CONSTANTS, ast.Negate)))
    return [value for value in map(constant, nodes) if value is not None]


@dataclass(frozen=True)
class Ranks:
    """The sorted constants, one list a kind."""

    sorted: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, given: Iterable[Any]) -> Ranks:
        kinds: list[set[Any]] = [set() for _ in range(OBJECT + 1)]
        kinds[BOOLEAN] = {False, True}
        for value in given:
            which = kind(value)
            if which is not None:
                kinds[which].add(value)
        return cls(tuple(tuple(sorted(k)) for k in kinds))

    def rank(self, value: Any) -> int:
        """The rank of a value; None and OPAQUE have none."""
        which = kind(value)
        if which is None:
            return _NO_RANK
        among, base = self.sorted[which], which << SHIFT
        if value != value:  # NaN is above every number
            return base + 2 * len(among)
        i = bisect_left(among, value)
        return base + 2 * i + (1 if i < len(among) and among[i] == value else 0)

    def intervals(self, condition: Node) -> list[Interval]:
        """The ranks for which a comparable condition is TRUE."""
        return self._sets(condition)[0]

    def _sets(self, node: Node) -> tuple[list[Interval], list[Interval]]:
        """Where the condition is TRUE and where it is FALSE."""
        match node:
            case ast.And(items):
                return self._both([self._sets(i) for i in items])
            case ast.Or(items):
                true, false = self._both([self._sets(i)[::-1] for i in items])
                return false, true
            case ast.Not(operand):
                true, false = self._sets(operand)
                return false, true
            case ast.Compare(op, left, right):
                if isinstance(left, ast.Variable):
                    return self._atom(op, constant(right))
                return self._atom(values.FLIPPED[op], constant(left))
            case ast.Between(_, low, high):
                return self._both([self._atom(">=", constant(low)), self._atom("<=", constant(high))])
            case ast.In(_, items):
                true, false = self._both([self._atom("=", constant(i))[::-1] for i in items])
                return false, true
            case ast.IsNull():
                return [], EVERYTHING
            case ast.Literal(value):
                return (EVERYTHING, []) if value is True else ([], EVERYTHING if value is False else [])
        return self._atom("=", True)

    def _both(self, parts: list[tuple[list[Interval], list[Interval]]]) -> tuple[list[Interval], list[Interval]]:
        true: list[Interval] = EVERYTHING
        false: list[Interval] = []
        for t, f in parts:
            true, false = intersection(true, t), union(false, f)
        return true, false

    def _atom(self, op: str, value: Any) -> tuple[list[Interval], list[Interval]]:
        which = kind(value)
        if which is None or (which not in ORDERED and op not in ("=", "<>")):
            return [], []
        first, last = which << SHIFT, (which << SHIFT) + 2 * len(self.sorted[which])
        at = self.rank(value)
        below, equal, above = [(first, at - 1)], [(at, at)], [(at + 1, last)]
        true = {
            "=": equal,
            "<>": union(below, above),
            "<": below,
            "<=": union(below, equal),
            ">": above,
            ">=": union(equal, above),
        }[op]
        return true, minus([(first, last)], true)


def union(a: list[Interval], b: list[Interval]) -> list[Interval]:
    merged: list[Interval] = []
    for low, high in sorted([*a, *b]):
        if low > high:
            continue
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return merged


def intersection(a: list[Interval], b: list[Interval]) -> list[Interval]:
    both = [(max(l1, l2), min(h1, h2)) for l1, h1 in a for l2, h2 in b]
    return union([i for i in both if i[0] <= i[1]], [])


def minus(a: list[Interval], b: list[Interval]) -> list[Interval]:
    for low, high in b:
        a = [i for l1, h1 in a for i in ((l1, min(h1, low - 1)), (max(l1, high + 1), h1)) if i[0] <= i[1]]
    return a
