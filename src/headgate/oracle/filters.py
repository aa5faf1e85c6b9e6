"""The truth of a filter on one event, literally as docs/semantics.md, sections 2 and 8, say it.

Three values: True, False and None for UNKNOWN. `missing='default'` is two-valued over values that include OMEGA. Calls
and GRAPH patterns are asked of `late`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.oracle import values
from headgate.predicates.times import instant
from headgate.schema import Instant, Kind, Schema

Row = Mapping[Path, Any]
"""An event: the values of its attributes by path. An absent path and None are both missing."""
Late = Callable[[Node], bool | None]


class Omega:
    """What a missing value without a DEFAULT becomes in `default` mode."""

    def __repr__(self) -> str:
        return "ω"


OMEGA = Omega()


def truth(body: Node, row: Row, schema: Schema, missing: str = "null", late: Late | None = None) -> bool | None:
    """The truth of a body on an event. An event that strict or total refuses gives UNKNOWN."""
    if missing == "default":
        return Default(row, defaults_of(schema), late).truth(body)
    if missing == "strict" and any(values.natural(row.get(path)) is None for path in attributes(body)):
        return None
    if missing == "total" and any(row.get(a.path) is None for a in schema):
        return None
    return Kleene(row, late).truth(body)


def defaults_of(schema: Schema) -> dict[Path, Any]:
    found: dict[Path, Any] = {a.path: a.default for a in schema if a.default is not None}
    for path in [a.path for a in schema if a.type is not None and a.type.kind is Kind.TIMESTAMP and a.path in found]:
        default = found[path]
        moments = [None if v is None else Instant(v) for v in (default if isinstance(default, list) else [default])]
        found[path] = moments if isinstance(default, list) else moments[0]
    return found


def attributes(body: Node) -> Iterator[Path]:
    """The attributes that occur in the text."""
    return (node.path for node in ast.walk(body) if isinstance(node, ast.Attribute))


def conjunction(truths: list[bool | None]) -> bool | None:
    if False in truths:
        return False
    return None if None in truths else True


def disjunction(truths: list[bool | None]) -> bool | None:
    if True in truths:
        return True
    return None if None in truths else False


class Kleene:
    """Three-valued. `element` is the value of the ARRAY attribute while a quantifier is open."""

    def __init__(self, row: Row, late: Late | None) -> None:
        self._row = row
        self._late = late
        self._element: dict[Path, Any] = {}

    def truth(self, node: Node) -> bool | None:
        match node:
            case ast.And(items):
                return conjunction([self.truth(i) for i in items])
            case ast.Or(items):
                return disjunction([self.truth(i) for i in items])
            case ast.Not(operand):
                return self.complement(self.truth(operand))
            case ast.Call() | ast.Graph():
                assert self._late is not None, "calls and GRAPH patterns need a `late`"
                return self._late(node)
            case ast.IsNull(ast.Attribute(path)):
                return self.is_missing(self._read(path))
        return self._quantified(node)

    def complement(self, truth: bool | None) -> bool | None:
        return None if truth is None else not truth

    def is_missing(self, value: Any) -> bool:
        return value is None

    def _quantified(self, atom: Node) -> bool | None:
        """ANY over the elements of an array, ALL under ALL(...); else the atom itself. The first array is the outer one."""
        for node in ast.walk(atom):
            every = isinstance(node, ast.Every)
            attribute = node.attribute if isinstance(node, ast.Every) else node
            if not isinstance(attribute, ast.Attribute) or attribute.path in self._element:
                continue
            array = self._read(attribute.path)
            if isinstance(array, list):
                truths = []
                for element in values.elements(array):
                    self._element[attribute.path] = self.present(element)
                    truths.append(self._quantified(atom))
                self._element.pop(attribute.path, None)
                return conjunction(truths) if every else disjunction(truths)
        return self.atom(atom)

    def atom(self, node: Node) -> bool | None:
        match node:
            case ast.Compare(op, left, right):
                return self.compare(op, self.value(left), self.value(right))
            case ast.Between(operand, low, high):
                return conjunction(
                    [self.atom(ast.Compare(">=", operand, low)), self.atom(ast.Compare("<=", operand, high))]
                )
            case ast.In(operand, items):
                return disjunction([self.atom(ast.Compare("=", operand, item)) for item in items])
            case ast.Test(name, operands):
                return self.test("text", lambda *texts: values.holds(name, *texts), *map(self.value, operands))
            case ast.IsNull(operand):
                return self.is_missing(self.value(operand))
        return self.test("boolean", bool, self.value(node))

    def value(self, node: Node) -> Any:
        match node:
            case ast.Literal(value):
                return self.present(value)
            case ast.Instant(text):
                return Instant(instant(text))
            case ast.Span(amount, unit):
                return round(amount * ast.UNITS[unit])
            case ast.Attribute(path):
                return self._element[path] if path in self._element else self._read(path)
            case ast.Every(attribute):
                return self.value(attribute)
            case ast.Negate(operand):
                return self.compute(("number",), values.negate, operand)
            case ast.Arithmetic(op, left, right):
                return self.compute(("number", "instant"), lambda a, b: values.arithmetic(op, a, b), left, right)
            case ast.Function(name, operands):
                takes = ("number",) if name == "ABS" else ("text",)
                return self.compute(takes, lambda *given: values.function(name, *given), *operands)
        raise AssertionError(f"no value for {type(node).__name__}")

    # -- what `default` does differently

    unknown: bool | None = None

    def _read(self, path: Path) -> Any:
        return values.natural(self._row.get(path))

    def present(self, value: Any) -> Any:
        return value

    def own(self, path: Path) -> Any:
        """The value of an attribute as it came."""
        return self._row.get(path) if values.natural(self._row.get(path)) is not None else self._read(path)

    def compute(self, kinds: tuple[str, ...], f: Callable[..., Any], *operands: Node) -> Any:
        """Of what is no value of one of the kinds there is no result."""
        given = list(map(self.value, operands))
        return self.present(f(*given) if all(values.kind(v) in kinds for v in given) else None)

    def compare(self, op: str, a: Any, b: Any) -> bool | None:
        """Values of different kinds are different and have no order."""
        if a is None or b is None:
            return None
        if values.kind(a) is None or values.kind(a) != values.kind(b):
            return self.unlike(op)
        if op not in ("=", "<>") and values.kind(a) not in ("number", "text", "instant"):
            return self.unknown
        return values.compare(op, a, b)

    def unlike(self, op: str) -> bool | None:
        return {"=": False, "<>": True}.get(op, self.unknown)

    def test(self, kind: str, f: Callable[..., bool], *operands: Any) -> bool | None:
        return f(*operands) if all(values.kind(v) == kind for v in operands) else self.unknown


class Default(Kleene):
    """Two-valued: what is missing becomes its DEFAULT, else OMEGA."""

    unknown = False

    def __init__(self, row: Row, defaults: Mapping[Path, Any], late: Late | None) -> None:
        super().__init__(row, late)
        self._defaults = defaults

    def truth(self, node: Node) -> bool | None:
        return super().truth(node) is True

    def complement(self, truth: bool | None) -> bool | None:
        return truth is not True

    def is_missing(self, value: Any) -> bool:
        return value is OMEGA

    def _read(self, path: Path) -> Any:
        value = values.natural(self._row.get(path))
        return self.present(self._defaults.get(path) if value is None else value)

    def present(self, value: Any) -> Any:
        return OMEGA if value is None else value

    def compare(self, op: str, a: Any, b: Any) -> bool | None:
        if a is OMEGA and b is OMEGA:
            return op == "="
        if a is OMEGA or b is OMEGA:
            return op == "<>"
        return super().compare(op, a, b)
