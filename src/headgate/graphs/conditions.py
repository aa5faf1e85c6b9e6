"""FILTER on the values of literals.

Three values as everywhere; a type error is UNKNOWN, and a candidate is kept only where the FILTER is TRUE. A condition
on one variable that only compares it with constants becomes a set of intervals of *ranks*: the constants of all
subscriptions are sorted once per kind, a literal is looked up among them once, and then any such condition is a test of
one integer. That is exact for every number and text, and compiled loops can do it. What is no such comparison (LIKE,
MATCHES, arithmetic) is evaluated here, by `truth`, when a candidate has survived everything cheaper.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import re2

from headgate.errors import LanguageError, TypeProblem
from headgate.graphs.terms import INSTANT, NUMBER, TEXT, TRUTH, Value, literal_of, value_of
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates import values
from headgate.predicates.times import instant

Values = Mapping[str, Value | None]
"""Variables to values; None for what is no literal of a known datatype."""

Interval = tuple[int, int]
SHIFT = 40
EVERYTHING: list[Interval] = [(-1, 1 << 60)]
"""All ranks; -1 is the rank of what has no value."""
_NO_VALUE = -1


def variables(condition: Node) -> frozenset[str]:
    return frozenset(n.name for n in ast.walk(condition) if isinstance(n, ast.Variable))


def check(condition: Node) -> None:
    """Refuse what can be seen to be wrong without an event."""
    for node in ast.walk(condition):
        if isinstance(node, ast.Matches):
            try:
                values.regex(node.pattern)
            except re2.error as problem:
                text = f"this is no regular expression: {problem}"
                raise TypeProblem(text, "the syntax is RE2's", at=node.at) from None
        elif isinstance(node, ast.Instant):
            try:
                instant(node.text)
            except ValueError:
                raise TypeProblem("this is no instant", "write it like 2026-01-31T08:00:00Z", at=node.at) from None
        elif not isinstance(node, _KNOWN):
            raise LanguageError(
                "this has no place in a FILTER", "FILTER compares the variables of its GRAPH", at=node.at
            )


_KNOWN = (
    ast.And, ast.Or, ast.Not, ast.Compare, ast.Between, ast.In, ast.IsNull, ast.Like, ast.TextTest, ast.Matches,
    ast.Variable, ast.Literal, ast.Instant, ast.Span, ast.Arithmetic, ast.Negate, ast.Function,
)  # fmt: skip


# ---------------------------------------------------------------- by value


def truth(node: Node, given: Values) -> bool | None:
    match node:
        case ast.And(items):
            return _both(truth(i, given) for i in items)
        case ast.Or(items):
            return _not(_both(_not(truth(i, given)) for i in items))
        case ast.Not(operand):
            return _not(truth(operand, given))
        case ast.Compare(op, left, right):
            return _compare(op, value(left, given), value(right, given))
        case ast.Between(operand, low, high):
            x = value(operand, given)
            return _both([_compare(">=", x, value(low, given)), _compare("<=", x, value(high, given))])
        case ast.In(operand, items):
            x = value(operand, given)
            return _not(_both(_not(_compare("=", x, value(i, given))) for i in items))
        case ast.IsNull(operand):
            return not isinstance(operand, ast.Variable) and value(operand, given) is None
        case ast.Like(operand, pattern, escape, fold):
            return _text(lambda a, b: values.like(a, b, escape, fold), value(operand, given), value(pattern, given))
        case ast.TextTest(kind, whole, part):
            return _text(lambda a, b: values.text_test(kind, a, b), value(whole, given), value(part, given))
        case ast.Matches(operand, regex):
            return _text(lambda a: values.matches(a, regex), value(operand, given))
    found = value(node, given)
    return bool(found.value) if found is not None and found.kind == TRUTH else None


def value(node: Node, given: Values) -> Value | None:
    match node:
        case ast.Variable(name):
            return given[name]
        case ast.Literal() | ast.Instant() | ast.Span():
            return constant(node)
        case ast.Arithmetic(op, left, right):
            return _number(lambda a, b: values.arithmetic(op, a, b), value(left, given), value(right, given))
        case ast.Negate(operand):
            return _number(values.negate, value(operand, given))
        case ast.Function("ABS", operand):
            return _number(lambda a: values.function("ABS", a), value(operand, given))
        case ast.Function(name, operand):
            found = value(operand, given)
            if found is None or found.kind != TEXT:
                return None
            return Value(NUMBER if name == "LENGTH" else TEXT, values.function(name, found.value))
    return None


def constant(node: Node) -> Value | None:
    """The value of a constant; None for NULL and for what is no constant."""
    match node:
        case ast.Literal(raw):
            return None if raw is None else value_of(literal_of(raw))
        case ast.Instant(text):
            return Value(INSTANT, instant(text))
        case ast.Span(amount, unit):
            return Value(NUMBER, round(amount * ast.UNITS[unit]))
        case ast.Negate(operand):
            inner = constant(operand)
            return _number(values.negate, inner)
    return None


def _not(known: bool | None) -> bool | None:
    return None if known is None else not known


def _both(parts: Iterable[bool | None]) -> bool | None:
    result: bool | None = True
    for part in parts:
        if part is False:
            return False
        if part is None:
            result = None
    return result


def _compare(op: str, a: Value | None, b: Value | None) -> bool | None:
    if a is None or b is None or a.kind != b.kind:
        return None
    return values.compare(op, a.value, b.value)


def _text(test: Callable[..., bool], *given: Value | None) -> bool | None:
    if any(v is None or v.kind != TEXT for v in given):
        return None
    return test(*(v.value for v in given if v is not None))


def _number(compute: Callable[..., Any], *given: Value | None) -> Value | None:
    if any(v is None or v.kind != NUMBER for v in given):
        return None
    result = compute(*(v.value for v in given if v is not None))
    return None if result is None else Value(NUMBER, result)


# ----------------------------------------------------------------- by rank


def comparable(condition: Node) -> bool:
    """Whether the condition on one variable can be told from the variable's place among constants."""
    match condition:
        case ast.And(items) | ast.Or(items):
            return all(map(comparable, items))
        case ast.Not(operand):
            return comparable(operand)
        case ast.Compare(_, left, right):
            pair = (left, right) if isinstance(left, ast.Variable) else (right, left)
            return isinstance(pair[0], ast.Variable) and _constant_node(pair[1])
        case ast.Between(operand, low, high):
            return isinstance(operand, ast.Variable) and _constant_node(low) and _constant_node(high)
        case ast.In(operand, items):
            return isinstance(operand, ast.Variable) and all(map(_constant_node, items))
        case ast.IsNull(operand):
            return isinstance(operand, ast.Variable)
        case ast.Literal(raw):
            return raw is None or isinstance(raw, bool)
    return isinstance(condition, ast.Variable)


def _constant_node(node: Node) -> bool:
    return isinstance(node, (ast.Literal, ast.Instant, ast.Span)) or (
        isinstance(node, ast.Negate) and _constant_node(node.operand)
    )


def constants(condition: Node) -> list[Value]:
    """The values a comparable condition compares with. A bare variable is compared with TRUE."""
    found = [
        constant(n) for n in ast.walk(condition) if isinstance(n, (ast.Literal, ast.Instant, ast.Span, ast.Negate))
    ]
    return [v for v in found if v is not None]


@dataclass(frozen=True)
class Ranks:
    """The sorted constants of all conditions, one list a kind. A value equal to constant i has rank 2i+1, one between
    constants i-1 and i has rank 2i; ranks of different kinds lie far apart."""

    sorted: tuple[tuple[Any, ...], ...]

    @classmethod
    def of(cls, given: Iterable[Value]) -> Ranks:
        kinds: list[set[Any]] = [set(), set(), {False, True}, set()]
        for v in given:
            kinds[v.kind].add(v.value)
        return cls(tuple(tuple(sorted(k)) for k in kinds))

    def rank(self, given: Value | None) -> int:
        if given is None:
            return _NO_VALUE
        among, x = self.sorted[given.kind], given.value
        base = given.kind << SHIFT
        if x != x:  # NaN is above every number
            return base + 2 * len(among)
        i = bisect_left(among, x)
        return base + 2 * i + (1 if i < len(among) and among[i] == x else 0)

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
            case ast.Literal(raw):
                return (EVERYTHING, []) if raw is True else ([], EVERYTHING if raw is False else [])
        return self._atom("=", Value(TRUTH, True))

    def _both(self, parts: list[tuple[list[Interval], list[Interval]]]) -> tuple[list[Interval], list[Interval]]:
        true: list[Interval] = EVERYTHING
        false: list[Interval] = []
        for t, f in parts:
            true, false = intersection(true, t), union(false, f)
        return true, false

    def _atom(self, op: str, known: Value | None) -> tuple[list[Interval], list[Interval]]:
        if known is None:
            return [], []
        first, last = known.kind << SHIFT, (known.kind << SHIFT) + 2 * len(self.sorted[known.kind])
        at = self.rank(known)
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
