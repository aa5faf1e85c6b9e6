"""Conditions and expressions on one row, as Python functions: the backend that can do everything.

A row is whatever holds values: an event, what a run of a sequence knows, the variables that operators and graphs have
bound. Truth is True, False or None for UNKNOWN (docs/semantics.md, section 2). In `default` mode, which is two-valued, what
is missing becomes its DEFAULT, else OMEGA.

The type check has made sure that typed operands fit each other. A variable has no type: an atom with a variable looks at
the kinds of the values, and where these do not fit it is UNKNOWN, as if a value were missing; nothing raises.
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
from headgate.predicates.values import NUMBER, OMEGA, Instant, kind


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
Times = Callable[[Path], bool]
"""Whether an attribute is a TIMESTAMP."""


def compile_truth(node: Node, defaults: Defaults | None = None, is_time: Times | None = None) -> Truth:
    """A condition as a function. `defaults` are given in `default` mode: the DEFAULTs by path. `is_time` is needed where
    attributes meet variables."""
    return _Typed(defaults, is_time).truth(node)


def compile_value(node: Node, defaults: Defaults | None = None) -> Value:
    """An expression as a function; it gives None, in `default` mode OMEGA, where there is no value. A condition gives
    its truth."""
    return _Typed(defaults, None).value(node)


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


class _Typed:
    """Compiles what has types."""

    def __init__(self, defaults: Defaults | None, is_time: Times | None) -> None:
        self._defaults = defaults
        self._is_time = is_time
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
        untyped = any(isinstance(n, ast.Variable) for n in below)
        atom = (_Untyped(self._defaults, self._is_time) if untyped else self).atom(node)
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
                if isinstance(elements, list | tuple):
                    # A missing element is not the missing attribute: the DEFAULT does not stand for it.
                    truths = [atom(_Element(row, path, missing if e is None else e)) for e in elements]
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
        def holds(row: Row) -> bool | None:
            a, b = left(row), right(row)
            if a is OMEGA or b is OMEGA:
                return op == ("=" if a is b else "<>")
            return None if a is None or b is None else values.compare(op, a, b)

        return holds

    def _test(self, test: Callable[..., bool], operands: Sequence[Value]) -> Truth:
        def holds(row: Row) -> bool | None:
            given = [operand(row) for operand in operands]
            if any(v is OMEGA for v in given):
                return False
            return None if any(v is None for v in given) else test(*given)

        return holds

    def _bare(self, value: Value) -> Truth:
        return self._test(bool, [value])

    # -- expressions

    def value(self, node: Node) -> Value:
        match node:
            case ast.Literal(literal):
                constant = self._missing if literal is None else literal
                return lambda _: constant
            case ast.Instant(text):
                moment = self._moment(instant(text))
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

    def _moment(self, microseconds: int) -> int:
        return microseconds

    def _attribute(self, path: Path) -> Value:
        if self._defaults is None:
            return lambda row: row.attribute(path)
        default = self._defaults.get(path)
        instead = OMEGA if default is None else default
        return lambda row: instead if (v := row.attribute(path)) is None else v

    def _calculate(self, op: str, left: Value, right: Value) -> Value:
        missing = self._missing

        def computed(row: Row) -> Any:
            a, b = left(row), right(row)
            if a is missing or b is missing:
                return missing
            return missing if (result := values.arithmetic(op, a, b)) is None else result

        return computed

    def _compute(self, f: Callable[..., Any], kinds: Sequence[int], operands: Sequence[Node]) -> Value:
        parts, missing = [self.value(o) for o in operands], self._missing

        def computed(row: Row) -> Any:
            given = [part(row) for part in parts]
            if any(v is missing for v in given):
                return missing
            return missing if (result := f(*given)) is None else result

        return computed


class _Untyped(_Typed):
    """Compiles an atom with variables, whose kinds are known when their values are."""

    def _moment(self, microseconds: int) -> int:
        return Instant(microseconds)

    def _attribute(self, path: Path) -> Value:
        read = super()._attribute(path)
        if self._is_time is None or not self._is_time(path):
            return read
        return lambda row: Instant(v) if isinstance(v := read(row), int) else v

    def _compare(self, op: str, left: Value, right: Value) -> Truth:
        unknown = self._unknown

        def holds(row: Row) -> bool | None:
            a, b = left(row), right(row)
            if a is OMEGA or b is OMEGA:
                return op == ("=" if a is b else "<>")
            if a is None or b is None:
                return unknown
            wanted = kind(a)
            return values.compare(op, a, b) if wanted is not None and wanted == kind(b) else unknown

        return holds

    def _test(self, test: Callable[..., bool], operands: Sequence[Value]) -> Truth:
        unknown = self._unknown

        def holds(row: Row) -> bool | None:
            given = [operand(row) for operand in operands]
            return test(*given) if all(isinstance(v, str) for v in given) else unknown

        return holds

    def _bare(self, value: Value) -> Truth:
        unknown = self._unknown
        return lambda row: v if isinstance(v := value(row), bool) else unknown

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


_CALCULABLE = (NUMBER, values.INSTANT)
