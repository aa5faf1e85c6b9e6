"""Conditions and expressions on one row, as Python functions: the backend that can do everything.

A row is whatever holds values: an event, what a run of a sequence knows, the variables that operators and graphs have
bound. Truth is True, False or None for UNKNOWN (docs/semantics.md, section 2). In `default` mode, which is two-valued, what
is missing becomes its DEFAULT, else OMEGA.

Every value has a kind, and what an operator, function or test cannot take is missing; nothing raises. Values of different
kinds are different and have no order (section 8). Only in an atom with a variable of operators or graphs a comparison of
different kinds is UNKNOWN.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.language import ast, codec
from headgate.language.ast import Node, Path
from headgate.predicates import tests, values
from headgate.predicates.functions import FUNCTIONS
from headgate.predicates.times import instant
from headgate.predicates.values import NUMBER, OMEGA, ORDERED, Instant, flat, is_missing, kind, plain


class Row(Protocol):
    """What expressions may read. None is a missing value."""

    def attribute(self, path: Path) -> Any: ...

    def variable(self, name: str) -> Any: ...

    def decided(self, slot: int) -> bool:
        """Whether an index has found the condition number `slot` TRUE for this row."""
        ...


@codec.know
@dataclass(frozen=True, slots=True)
class Decided(Node):
    """A condition that an index has decided: TRUE if the slot `yes` was hit, FALSE if `no` was, else UNKNOWN."""

    yes: int
    no: int


@dataclass(frozen=True, slots=True)
class Values:
    """A row of values at hand."""

    attributes: Mapping[Path, Any]
    variables: Mapping[str, Any]

    def attribute(self, path: Path) -> Any:
        return self.attributes.get(path)

    def variable(self, name: str) -> Any:
        return self.variables[name]

    def decided(self, slot: int) -> bool:
        raise AssertionError(f"nothing has decided slot {slot}")


Truth = Callable[[Row], bool | None]
Value = Callable[[Row], Any]
Defaults = Mapping[Path, Any]


def compile_truth(node: Node, defaults: Defaults | None = None) -> Truth:
    """A condition as a function. `defaults` are given in `default` mode: the DEFAULTs by path."""
    return _Conditions(defaults).truth(node)


def compile_value(node: Node, defaults: Defaults | None = None) -> Value:
    """An expression as a function; it gives None, in `default` mode OMEGA, where there is no value. A condition gives
    its truth, an attribute its value as it came."""
    conditions = _Conditions(defaults)
    return conditions.own(node.path) if isinstance(node, ast.Attribute) else conditions.value(node)


def all_of(parts: Sequence[Truth]) -> Truth:
    """Kleene's AND."""

    def holds(row: Row) -> bool | None:
        result: bool | None = True
        for part in parts:
            truth = part(row)
            if truth is False:
                return False
            if truth is None:
                result = None
        return result

    return holds


def any_of(parts: Sequence[Truth]) -> Truth:
    """Kleene's OR."""

    def holds(row: Row) -> bool | None:
        result: bool | None = False
        for part in parts:
            truth = part(row)
            if truth is True:
                return True
            if truth is None:
                result = None
        return result

    return holds


class _Element:
    """A row with one element in the place of an ARRAY."""

    __slots__ = ("_element", "_path", "_row", "decided", "variable")

    def __init__(self, row: Row, path: Path, element: Any) -> None:
        self._row, self._path, self._element = row, path, element
        self.decided, self.variable = row.decided, row.variable

    def attribute(self, path: Path) -> Any:
        return self._element if path == self._path else self._row.attribute(path)


class _Conditions:
    """Compiles conditions and expressions, in one mode."""

    def __init__(self, defaults: Defaults | None) -> None:
        self._defaults = defaults
        self._missing = None if defaults is None else OMEGA
        self._unknown = None if defaults is None else False

    # -- conditions

    def truth(self, node: Node) -> Truth:
        match node:
            case ast.And(items):
                return all_of([self.truth(i) for i in items])
            case ast.Or(items):
                return any_of([self.truth(i) for i in items])
            case ast.Not(operand):
                inner = self.truth(operand)
                if self._defaults is not None:
                    return lambda row: inner(row) is not True
                return lambda row: None if (t := inner(row)) is None else not t
            case Decided(yes, no):
                return lambda row: True if row.decided(yes) else (False if row.decided(no) else None)
            case ast.IsNull(ast.Attribute() as attribute):
                return self._is_missing(self.value(attribute))
        return self._quantified(node)

    def _is_missing(self, value: Value) -> Truth:
        missing = self._missing
        return lambda row: value(row) is missing

    def _quantified(self, node: Node) -> Truth:
        """ANY over the elements of an ARRAY, ALL under ALL(...); the atom itself where there is none."""
        below = list(ast.walk(node))
        variables = any(isinstance(n, ast.Variable) for n in below)
        atom = (_WithVariables(self._defaults) if variables else self).atom(node)
        every = {n.attribute.path for n in below if isinstance(n, ast.Every)}
        paths = list(dict.fromkeys(n.path for n in below if isinstance(n, ast.Attribute)))
        if not paths:
            return atom
        defaults, missing = self._defaults, self._missing

        def holds(row: Row) -> bool | None:
            for path in paths:
                elements = row.attribute(path)
                if elements is None and defaults is not None:
                    elements = defaults.get(path)
                if not isinstance(elements, _SCALARS) and isinstance(found := plain(elements), list):
                    # A missing element is not the missing attribute: the DEFAULT does not stand for it.
                    truths = [holds(_Element(row, path, missing if e is None else e)) for e in flat(found)]
                    decisive = path not in every
                    return decisive if decisive in truths else None if None in truths else not decisive
            return atom(row)

        return holds

    def atom(self, node: Node) -> Truth:
        match node:
            case ast.Compare(op, left, right):
                return self._compare(op, self.value(left), self.value(right))
            case ast.Between(operand, low, high):
                held = self.value(operand)
                return all_of([self._compare(">=", held, self.value(low)), self._compare("<=", held, self.value(high))])
            case ast.In(operand, items):
                held = self.value(operand)
                return any_of([self._compare("=", held, self.value(i)) for i in items])
            case ast.Test():
                test, operands = tests.resolve(node)
                return self._test(test, [self.value(o) for o in operands])
            case ast.IsNull(operand):
                return self._is_missing(self.value(operand))
        return self._bare(self.value(node))

    def _compare(self, op: str, left: Value, right: Value) -> Truth:
        unknown, different = self._unknown, self._different(op)

        def holds(row: Row) -> bool | None:
            a, b = left(row), right(row)
            if a is OMEGA or b is OMEGA:
                return op == ("=" if a is b else "<>")
            if a is None or b is None:
                return unknown
            wanted = kind(a)
            if wanted is None or wanted != kind(b):
                return different
            return values.compare(op, a, b) if wanted in ORDERED or op in ("=", "<>") else unknown

        return holds

    def _different(self, op: str) -> bool | None:
        """The truth of a comparison of values of different kinds."""
        return op == "<>" if op in ("=", "<>") else self._unknown

    def _test(self, test: Callable[..., bool], operands: Sequence[Value]) -> Truth:
        unknown = self._unknown

        def holds(row: Row) -> bool | None:
            given = [operand(row) for operand in operands]
            return test(*given) if all(isinstance(v, str) for v in given) else unknown

        return holds

    def _bare(self, value: Value) -> Truth:
        unknown = self._unknown
        return lambda row: v if isinstance(v := value(row), bool) else unknown

    # -- expressions

    def value(self, node: Node) -> Value:
        match node:
            case ast.Literal(literal):
                constant = self._missing if literal is None else literal
                return lambda _: constant
            case ast.Instant(text):
                moment = Instant(instant(text))
                return lambda _: moment
            case ast.Span(amount, unit):
                length = round(amount * ast.UNITS[unit])
                return lambda _: length
            case ast.Variable(name):
                missing = self._missing
                return lambda row: missing if (v := row.variable(name)) is None else v
            case ast.Attribute(path):
                return self._attribute(path)
            case ast.Every(attribute):
                return self.value(attribute)
            case ast.Negate(operand):
                return self._compute(values.negate, (NUMBER,), (operand,))
            case ast.Arithmetic(op, left, right):
                return self._calculate(op, self.value(left), self.value(right))
            case ast.Function(name, operands):
                entry = FUNCTIONS[name]
                return self._compute(entry.row, entry.takes, operands)
        return self.truth(node)

    def _attribute(self, path: Path) -> Value:
        instead = self._instead(path)
        return lambda row: instead if (v := plain(row.attribute(path))) is None else v

    def own(self, path: Path) -> Value:
        """The value of an attribute as it came."""
        instead = self._instead(path)
        return lambda row: instead if is_missing(v := row.attribute(path)) else v

    def _instead(self, path: Path) -> Any:
        """What stands for a missing attribute."""
        default = None if self._defaults is None else self._defaults.get(path)
        return self._missing if default is None else default

    def _calculate(self, op: str, left: Value, right: Value) -> Value:
        missing = self._missing

        def computed(row: Row) -> Any:
            a, b = left(row), right(row)
            if kind(a) not in _CALCULABLE or kind(b) not in _CALCULABLE:
                return missing
            return missing if (result := values.arithmetic(op, a, b)) is None else result

        return computed

    def _compute(self, f: Callable[..., Any], kinds: Sequence[int], operands: Sequence[Node]) -> Value:
        parts, missing = [self.value(o) for o in operands], self._missing

        def computed(row: Row) -> Any:
            given = [part(row) for part in parts]
            if any(kind(v) != wanted for v, wanted in zip(given, kinds, strict=True)):
                return missing
            return missing if (result := f(*given)) is None else result

        return computed


class _WithVariables(_Conditions):
    """Compiles an atom with variables of operators or graphs: what cannot be compared is UNKNOWN."""

    def _different(self, op: str) -> bool | None:
        return self._unknown


_CALCULABLE = (NUMBER, values.INSTANT)
_SCALARS = (int, float, str, bytes)
"""Types of values that are no arrays, as most are."""
