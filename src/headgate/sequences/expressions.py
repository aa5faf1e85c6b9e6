"""Expressions over what a run knows, as Python functions: the slower path, which can do everything.

The kernel decides comparisons of numbers, instants, booleans and equal texts. Everything else (text functions, LIKE
between a bound and an incoming text, arrays, `default` mode) is decided here, one run at a time. SEMANTICS sections 1
and 2 say what the truth is; `oracle/filters.py` is the twin.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.predicates import values
from headgate.predicates.times import instant
from headgate.sequences.predicates import Decided


class Known(Protocol):
    """What a run knows when an event comes in."""

    def get(self, path: Path) -> Any: ...

    def hit(self, slot: int) -> bool: ...


Truth = Callable[[Known], bool | None]
Value = Callable[[Known], Any]
OMEGA = object()
"""What a missing value without a DEFAULT becomes in `default` mode."""


def always(_: Known) -> bool | None:
    return True


def truth(node: Node, defaults: Mapping[Path, Any] | None = None) -> Truth:
    """The predicate as a function. `defaults` are given in `default` mode, by path; else the logic is Kleene's."""
    match node:
        case ast.And(items):
            return _all([truth(i, defaults) for i in items])
        case ast.Or(items):
            return _any([truth(i, defaults) for i in items])
        case ast.Not(operand):
            inner = truth(operand, defaults)
            if defaults is not None:
                return lambda known: inner(known) is not True
            return lambda known: None if (t := inner(known)) is None else not t
        case Decided(yes, no):
            return lambda known: True if known.hit(yes) else (False if known.hit(no) else None)
        case ast.IsNull(operand):
            held = value(operand, defaults)
            return lambda known: (v := held(known)) is None or v is OMEGA
    return _quantified(node, defaults)


def _all(parts: list[Truth]) -> Truth:
    def holds(known: Known) -> bool | None:
        result: bool | None = True
        for part in parts:
            found = part(known)
            if found is False:
                return False
            if found is None:
                result = None
        return result

    return holds


def _any(parts: list[Truth]) -> Truth:
    def holds(known: Known) -> bool | None:
        result: bool | None = False
        for part in parts:
            found = part(known)
            if found is True:
                return True
            if found is None:
                result = None
        return result

    return holds


class _Element:
    """What a run knows, with one element in the place of an ARRAY."""

    __slots__ = ("_element", "_known", "_path")

    def __init__(self, known: Known, path: Path, element: Any) -> None:
        self._known, self._path, self._element = known, path, element

    def get(self, path: Path) -> Any:
        return self._element if path == self._path else self._known.get(path)

    def hit(self, slot: int) -> bool:
        return self._known.hit(slot)


def _quantified(node: Node, defaults: Mapping[Path, Any] | None) -> Truth:
    atom = _atom(node, defaults)
    every = {n.attribute.path for n in ast.walk(node) if isinstance(n, ast.Every)}
    paths = list(dict.fromkeys(n.path for n in ast.walk(node) if isinstance(n, ast.Attribute)))

    def holds(known: Known) -> bool | None:
        for path in paths:
            elements = known.get(path)
            if elements is None and defaults is not None:
                elements = defaults.get(path)
            if isinstance(elements, list | tuple):
                found = [atom(_Element(known, path, element)) for element in elements]
                decisive = path not in every
                return decisive if decisive in found else None if None in found else not decisive
        return atom(known)

    return holds


def _atom(node: Node, defaults: Mapping[Path, Any] | None) -> Truth:
    match node:
        case ast.Compare(op, left, right):
            return _compare(op, value(left, defaults), value(right, defaults))
        case ast.Between(operand, low, high):
            held = value(operand, defaults)
            return _all([_compare(">=", held, value(low, defaults)), _compare("<=", held, value(high, defaults))])
        case ast.In(operand, items):
            held = value(operand, defaults)
            return _any([_compare("=", held, value(i, defaults)) for i in items])
        case ast.TextTest(kind, whole, part):
            return _test(lambda a, b: values.text_test(kind, a, b), value(whole, defaults), value(part, defaults))
        case ast.Like(operand, pattern, escape, folded):
            like = lambda a, b: values.like(a, b, escape, folded)  # noqa: E731 - it reads as the line above
            return _test(like, value(operand, defaults), value(pattern, defaults))
        case ast.Matches(operand, pattern):
            return _test(lambda a: values.matches(a, pattern), value(operand, defaults))
    return _test(bool, value(node, defaults))


def _compare(op: str, left: Value, right: Value) -> Truth:
    def holds(known: Known) -> bool | None:
        a, b = left(known), right(known)
        if a is OMEGA or b is OMEGA:
            return op == ("=" if a is b else "<>")
        return None if a is None or b is None else values.compare(op, a, b)

    return holds


def _test(test: Callable[..., bool], *operands: Value) -> Truth:
    def holds(known: Known) -> bool | None:
        found = [operand(known) for operand in operands]
        if any(v is OMEGA for v in found):
            return False
        return None if any(v is None for v in found) else test(*found)

    return holds


def value(node: Node, defaults: Mapping[Path, Any] | None = None) -> Value:
    """The expression as a function; a condition gives True, False or None."""
    missing = None if defaults is None else OMEGA
    match node:
        case ast.Literal(constant):
            fixed = missing if constant is None else constant
            return lambda _: fixed
        case ast.Instant(text):
            moment = instant(text)
            return lambda _: moment
        case ast.Span(amount, unit):
            ticks = round(amount * ast.UNITS[unit])
            return lambda _: ticks
        case ast.Attribute(path):
            if defaults is None:
                return lambda known: known.get(path)
            default = defaults.get(path)
            instead = OMEGA if default is None else default
            return lambda known: instead if (v := known.get(path)) is None else v
        case ast.Every(attribute):
            return value(attribute, defaults)
        case ast.Negate(operand):
            return _compute(values.negate, missing, value(operand, defaults))
        case ast.Arithmetic(op, left, right):
            return _compute(
                lambda a, b: values.arithmetic(op, a, b), missing, value(left, defaults), value(right, defaults)
            )
        case ast.Function(name, operand):
            return _compute(lambda a: values.function(name, a), missing, value(operand, defaults))
    return truth(node, defaults)


def _compute(f: Callable[..., Any], missing: object, *operands: Value) -> Value:
    def computed(known: Known) -> Any:
        found = [operand(known) for operand in operands]
        if any(v is OMEGA for v in found):
            return OMEGA
        result = f(*found)
        return missing if result is None else result

    return computed
