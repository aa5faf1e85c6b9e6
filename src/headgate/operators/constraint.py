"""Value constraints: `?people > 50`, `?y > 2 * ?z`, `?place = area`, three-valued, compiled to closures.

Variables carry whatever an operator bound, so types meet here at run time. Values that cannot be compared — text with a
number, a boolean with a number — make the constraint UNKNOWN, as a missing value does, and the row is rejected; nothing
raises. In `default` mode logic is two-valued: what is missing is ω (SEMANTICS, section 2), what cannot be compared
FALSE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headgate.errors import PlanError
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.predicates import values
from headgate.predicates.times import instant

Binding = Mapping[str, Any]
Read = Callable[[Path], Any]
"""The value of an attribute of the event at hand, None where missing; the mode's DEFAULT is filled in already."""
Value = Callable[[Binding, Read], Any]
Truth = Callable[[Binding, Read], bool | None]


class _Omega:
    """What is missing in `default` mode."""


OMEGA = _Omega()


def same(a: Any, b: Any) -> bool:
    """`=` as joins use it: NULL never joins, numbers join by value, TRUE and 1 do not."""
    return a is not None and b is not None and _kind(a) == _kind(b) and values.compare("=", a, b)


def join_key(value: Any) -> tuple[int, Any]:
    """Two values join exactly if their keys are equal; for a value that is not NULL."""
    kind = _kind(value)
    return (kind, "nan") if value != value else (kind, value)


def _kind(value: Any) -> int:
    if isinstance(value, bool):
        return 0
    if isinstance(value, int | float):
        return 1
    return 2 if isinstance(value, str) else 3 if isinstance(value, bytes) else 4


def compile_constraint(node: Node, missing: str = "null") -> Truth:
    """The truth of a constraint given a binding and the event's attributes."""
    return _Maker(missing == "default").truth(node)


def compile_value(node: Node, missing: str = "null") -> Value:
    """The value of an expression; None, or OMEGA in `default` mode, where it is missing."""
    return _Maker(missing == "default").value(node)


class _Maker:
    def __init__(self, two_valued: bool) -> None:
        self._two = two_valued
        self._absent: Any = OMEGA if two_valued else None

    # -- truths

    def truth(self, node: Node) -> Truth:
        match node:
            case ast.Not(operand):
                inner = self.truth(operand)
                return lambda b, r: None if (t := inner(b, r)) is None else not t
            case ast.And(items):
                parts = [self.truth(i) for i in items]
                return lambda b, r: _all([p(b, r) for p in parts])
            case ast.Or(items):
                parts = [self.truth(i) for i in items]
                return lambda b, r: _any([p(b, r) for p in parts])
            case ast.IsNull(operand):
                value, absent = self.value(operand), self._absent
                return lambda b, r: value(b, r) is absent
        return self._quantified(node)

    def _quantified(self, atom: Node) -> Truth:
        """ANY over the elements of an ARRAY attribute, ALL under ALL(...); a scalar passes through."""
        arrays = [n for n in ast.walk(atom) if isinstance(n, ast.Attribute)]
        every = any(isinstance(n, ast.Every) for n in ast.walk(atom))
        plain = self._atom(atom)
        if not arrays:
            return plain

        def quantified(binding: Binding, read: Read) -> bool | None:
            for attribute in arrays:
                elements = read(attribute.path)
                if isinstance(elements, list):
                    truths = [plain(binding, _instead(read, attribute.path, e)) for e in elements]
                    return _all(truths) if every else _any(truths)
            return plain(binding, read)

        return quantified

    def _atom(self, node: Node) -> Truth:
        match node:
            case ast.Compare(op, left, right):
                return self._compare(op, self.value(left), self.value(right))
            case ast.Between(operand, low, high):
                value = self.value(operand)
                above = self._compare(">=", value, self.value(low))
                below = self._compare("<=", value, self.value(high))
                return lambda b, r: _all([above(b, r), below(b, r)])
            case ast.In(operand, items):
                value = self.value(operand)
                tests = [self._compare("=", value, self.value(i)) for i in items]
                return lambda b, r: _any([t(b, r) for t in tests])
            case ast.TextTest(kind, whole, part):
                return self._test(lambda a, c: values.text_test(kind, a, c), self.value(whole), self.value(part))
            case ast.Like(operand, pattern, escape, fold):
                return self._test(
                    lambda a, c: values.like(a, c, escape, fold), self.value(operand), self.value(pattern)
                )
            case ast.Matches(operand, regex):
                return self._test(lambda a: values.matches(a, regex), self.value(operand))
        value, two = self.value(node), self._two
        return lambda b, r: found if isinstance(found := value(b, r), bool) else (False if two else None)

    def _compare(self, op: str, left: Value, right: Value) -> Truth:
        two = self._two

        def compare(binding: Binding, read: Read) -> bool | None:
            a, b = left(binding, read), right(binding, read)
            if a is OMEGA or b is OMEGA:
                return op == ("=" if a is b else "<>")
            if a is None or b is None or _kind(a) != _kind(b):
                return False if two else None
            return values.compare(op, a, b)

        return compare

    def _test(self, f: Callable[..., bool], *operands: Value) -> Truth:
        otherwise = False if self._two else None

        def test(binding: Binding, read: Read) -> bool | None:
            found = [operand(binding, read) for operand in operands]
            return f(*found) if all(isinstance(x, str) for x in found) else otherwise

        return test

    # -- values

    def value(self, node: Node) -> Value:
        absent = self._absent
        match node:
            case ast.Literal(literal):
                constant = absent if literal is None else literal
                return lambda _b, _r: constant
            case ast.Instant(text):
                moment = instant(text)
                return lambda _b, _r: moment
            case ast.Span(amount, unit):
                length = round(amount * ast.UNITS[unit])
                return lambda _b, _r: length
            case ast.Variable(name):
                return lambda b, _r: absent if (v := b[name]) is None else v
            case ast.Attribute(path):
                return lambda _b, r: absent if (v := r(path)) is None else v
            case ast.Every(attribute):
                return self.value(attribute)
            case ast.Negate(operand):
                return self._compute(values.negate, _NUMBERS, operand)
            case ast.Arithmetic(op, left, right):
                return self._compute(lambda x, y: values.arithmetic(op, x, y), _NUMBERS, left, right)
            case ast.Function(name, operand):
                kinds = _NUMBERS if name == "ABS" else _TEXTS
                return self._compute(lambda x: values.function(name, x), kinds, operand)
        raise PlanError(f"a value constraint cannot use {type(node).__name__}")

    def _compute(self, f: Callable[..., Any], kinds: frozenset[int], *operands: Node) -> Value:
        parts, absent = [self.value(o) for o in operands], self._absent

        def compute(binding: Binding, read: Read) -> Any:
            found = [part(binding, read) for part in parts]
            if any(_kind(x) not in kinds for x in found):
                return absent
            return absent if (made := f(*found)) is None else made

        return compute


_NUMBERS = frozenset({1})
_TEXTS = frozenset({2, 3})


def _instead(read: Read, path: Path, element: Any) -> Read:
    """Reads as before, but one attribute has one element's value."""
    return lambda p: element if p == path else read(p)


def _all(truths: list[bool | None]) -> bool | None:
    return False if False in truths else None if None in truths else True


def _any(truths: list[bool | None]) -> bool | None:
    return True if True in truths else None if None in truths else False
