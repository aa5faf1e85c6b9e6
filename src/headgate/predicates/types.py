"""Types of expressions: what may be compared with what.

The checker collects every problem of a text instead of stopping at the first, so that a user fixes a script in one go.
An attribute of the type ANY, as all are of a stream that nobody declared, may be used as a value of any kind, and of
several kinds in one text: what it holds is known when an event does.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from headgate.errors import LanguageError, TypeProblem
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates.functions import FUNCTIONS
from headgate.predicates.tests import TESTS
from headgate.predicates.times import instant
from headgate.predicates.values import INT64, NUMBER
from headgate.schema import Kind, Type


class Special(Enum):
    """Types that no attribute has."""

    PREDICATE = "a predicate"
    NULL = "NULL"
    ANY = "any value"
    SPAN = "a length of time"

    def __str__(self) -> str:
        return self.value


ExpressionType = Type | Special
BOOLEAN, BIGINT, DOUBLE, STRING, TIMESTAMP = (
    Type(k) for k in (Kind.BOOLEAN, Kind.BIGINT, Kind.DOUBLE, Kind.STRING, Kind.TIMESTAMP)
)
_NUMBERS = (Kind.BIGINT, Kind.DOUBLE)
_UNORDERED = (Kind.BOOLEAN, Kind.BINARY)
_CONDITIONS = (
    ast.And, ast.Or, ast.Not, ast.Compare, ast.Between, ast.In, ast.Test, ast.IsNull,
    ast.Call, ast.Graph,
)  # fmt: skip

Lookup = Callable[[ast.Attribute], Type | None]
"""The type of an attribute, None for ANY; raises if it is unknown."""


class Types:
    """Checks expressions."""

    def __init__(self, lookup: Lookup) -> None:
        self._lookup = lookup
        self.problems: list[LanguageError] = []
        """What is wrong with everything read so far."""

    def problem(self, message: str, hint: str, node: Node) -> None:
        self.problems.append(TypeProblem(message, hint, at=node.at))

    # -- predicates

    def predicate(self, node: Node) -> None:
        """`node` stands where a truth value is needed."""
        match node:
            case ast.And(items) | ast.Or(items):
                for item in items:
                    self.predicate(item)
            case ast.Not(operand):
                self.predicate(operand)
            case _:
                found = self.value(node)
                if found not in (Special.PREDICATE, Special.NULL, Special.ANY) and not _is(found, Kind.BOOLEAN):
                    self.problem(f"this is {_a(found)}, not a condition", "compare it with something", node)

    def value(self, node: Node) -> ExpressionType:
        """The type of an expression."""
        match node:
            case ast.Literal(value):
                return _literal(value)
            case ast.Instant(text):
                self._instant(text, node)
                return TIMESTAMP
            case ast.Attribute():
                return self._attribute(node)
            case ast.Every(attribute):
                return self._every(attribute)
            case ast.Span(amount, unit):
                if isinstance(amount, int | float) and not abs(amount * ast.UNITS[unit]) < 2**63:
                    self.problem("this length of time is beyond 64 bits of microseconds", "", node)
                return Special.SPAN
            case ast.Duration():
                return Special.SPAN
            case ast.Variable():
                return Special.ANY
            case ast.Negate(operand):
                return self._number(operand, "-")
            case ast.Arithmetic():
                return self._arithmetic(node)
            case ast.Function():
                return self._function(node)
            case ast.Compare():
                self._compare(node)
            case ast.Between(operand, low, high):
                self._same([operand, low, high], ordered=True)
                self._one_array(node)
            case ast.In(operand, items):
                if self.value(operand) is Special.ANY:
                    for item in items:
                        self._same([item], ordered=False)
                else:
                    self._same([operand, *items], ordered=False)
                self._one_array(node)
            case ast.Test():
                self._test(node)
            case ast.IsNull(operand):
                if isinstance(operand, ast.Every):
                    self.problem("ALL(...) IS NULL has no meaning", "ask whether the attribute IS NULL", operand)
                elif self.value(operand) is Special.PREDICATE:
                    self.problem("a condition IS NULL has no meaning", "ask whether an attribute IS NULL", operand)
            case ast.Call(_, arguments):
                for argument in arguments:
                    self._argument(argument)
            case ast.Graph(filters=filters, column=column):
                if column is not None:
                    self._graph_column(column)
                for f in filters:
                    self.predicate(f)
            case ast.And() | ast.Or() | ast.Not():
                self.predicate(node)
            case _:
                raise AssertionError(f"no type for {type(node).__name__}")
        return Special.PREDICATE

    # -- leaves

    def _attribute(self, node: ast.Attribute) -> ExpressionType:
        try:
            found = self._lookup(node)
        except LanguageError as problem:
            problem.at = node.at
            self.problems.append(problem)
            return Special.ANY
        return Special.ANY if found is None else found

    def _graph_column(self, column: ast.Attribute) -> None:
        found = self._attribute(column)
        if isinstance(found, Type) and found != Type(Kind.GRAPH):
            self.problem(f"GRAPH needs a GRAPH column, this is {found}", "", column)

    def _every(self, attribute: ast.Attribute) -> ExpressionType:
        found = self._attribute(attribute)
        if isinstance(found, Type) and not found.array:
            self.problem(f"ALL needs an ARRAY, {_name(attribute)} is {_a(found)}", "leave ALL away", attribute)
        return found

    def _instant(self, text: str | ast.Hole, node: Node) -> None:
        if isinstance(text, str):
            try:
                instant(text)
            except ValueError as e:
                self.problem(f"{text!r} is no time: {e}", "write TIMESTAMP '2026-01-31T12:00:00Z'", node)

    def _argument(self, node: Node) -> None:
        if isinstance(node, ast.Negate | ast.Arithmetic | ast.Function | ast.Every | ast.Duration) or (
            self.value(node) is Special.PREDICATE
        ):
            self.problem(
                "an operator takes literals, attributes and ?variables", "compute it in a value constraint", node
            )

    # -- arithmetic

    def _number(self, node: Node, sign: str) -> ExpressionType:
        return self._as_number(self.value(node), node, sign)

    def _as_number(self, found: ExpressionType, node: Node, sign: str) -> ExpressionType:
        if found in (Special.ANY, Special.NULL, Special.SPAN) or _is(found, *_NUMBERS):
            if isinstance(node, ast.Literal) and isinstance(node.value, int) and node.value not in INT64:
                self.problem(f"{node.value} is beyond BIGINT", "write it with a decimal point", node)
            return found
        self.problem(f"{sign} needs numbers, this is {_a(found)}", "", node)
        return Special.ANY

    def _arithmetic(self, node: ast.Arithmetic) -> ExpressionType:
        left, right = self.value(node.left), self.value(node.right)
        times = (_is(left, Kind.TIMESTAMP), _is(right, Kind.TIMESTAMP))
        if node.op == "-" and all(times):
            return Special.SPAN
        if (node.op == "-" and times[0] and right is Special.SPAN) or (
            node.op == "+" and (times[0] or times[1]) and Special.SPAN in (left, right)
        ):
            return TIMESTAMP
        left, right = self._as_number(left, node.left, node.op), self._as_number(right, node.right, node.op)
        if Special.ANY in (left, right) and node.op != "/":
            return Special.ANY  # a whole number, a double, a time or a length of time
        if Special.SPAN in (left, right):
            return DOUBLE if node.op == "/" else Special.SPAN
        if node.op != "/" and _is(left, Kind.BIGINT) and _is(right, Kind.BIGINT):
            return BIGINT
        return DOUBLE

    def _function(self, node: ast.Function) -> ExpressionType:
        entry = FUNCTIONS[node.name]
        types: list[ExpressionType] = []
        for operand, kind in zip(node.operands, entry.takes, strict=True):
            if kind == NUMBER:
                types.append(self._number(operand, node.name))
            else:
                self._text(operand, node.name)
                types.append(STRING)
        return types[0] if entry.result is None else entry.result

    # -- comparisons

    def _compare(self, node: ast.Compare) -> None:
        self._same([node.left, node.right], ordered=node.op not in ("=", "<>"))
        self._one_array(node)

    def _same(self, nodes: list[Node], *, ordered: bool) -> None:
        """All nodes must be comparable with the first that has a type."""
        before = len(self.problems)
        for node in nodes:
            if isinstance(node, _CONDITIONS):
                self.problem("a condition cannot be compared", "join conditions with AND and OR", node)
                return
        types = [self.value(n) for n in nodes]
        if len(self.problems) > before:
            return
        first = None
        for node, found in zip(nodes, types, strict=True):
            if found in (Special.ANY, Special.NULL):
                continue
            if _is(found, Kind.GRAPH):
                self.problem("a GRAPH cannot be compared", "write GRAPH { ... } to match it", node)
                return
            if first is None:
                first = found
            elif not _comparable(first, found):
                self.problem(f"{_a(found)} cannot be compared with {_a(first)}", _mend(first, found), node)
                return
        if ordered and isinstance(first, Type) and first.kind in _UNORDERED:
            self.problem(f"{first.kind.value.upper()} has no order", "use = or <>", nodes[0])

    def _one_array(self, node: Node) -> None:
        """One ARRAY attribute an atom: the quantifier encloses the whole of it."""
        arrays: dict[tuple[ast.Path, str, bool], Node] = {}
        inside: set[int] = set()
        for below in ast.walk(node):
            if isinstance(below, ast.Every):
                inside.add(id(below.attribute))
                arrays.setdefault((below.attribute.path, below.attribute.scope, True), below)
            elif isinstance(below, ast.Attribute) and id(below) not in inside:
                try:
                    found = self._lookup(below)
                except LanguageError:
                    return
                if found is not None and found.array:
                    arrays.setdefault((below.path, below.scope, False), below)
        if len(arrays) > 1:
            second = list(arrays.values())[1]
            self.problem("one comparison takes one ARRAY attribute", "compare them one at a time", second)

    # -- texts

    def _text(self, node: Node, what: str) -> None:
        found = self.value(node)
        if found not in (Special.ANY, Special.NULL) and not _is(found, Kind.STRING):
            self.problem(f"{what} works on text, this is {_a(found)}", "", node)

    def _test(self, node: ast.Test) -> None:
        self._text(node.operands[0], node.name)
        entry = TESTS[node.name]
        if entry.prepare is None:
            for operand in node.operands[1:]:
                self._text(operand, node.name)
            self._one_array(node)
            return
        patterns = []
        for pattern in node.operands[1:]:
            if not isinstance(pattern, ast.Literal):
                hint = "use CONTAINS for a part that varies"
                self.problem(f"the pattern of {node.name} is a text literal", hint, pattern)
                return
            if not isinstance(pattern.value, str | ast.Hole | None):
                self._text(pattern, node.name)
                return
            patterns.append(pattern.value)
        if entry.check is not None and all(isinstance(p, str) for p in patterns):
            wrong = entry.check(*patterns)
            if wrong is not None:
                self.problem(*wrong, node.operands[1])


def _literal(value: object) -> ExpressionType:
    if value is None:
        return Special.NULL
    for python, ours in ((bool, BOOLEAN), (int, BIGINT), (float, DOUBLE), (str, STRING)):
        if isinstance(value, python):
            return ours
    return Special.ANY


def _is(found: ExpressionType, *kinds: Kind) -> bool:
    return isinstance(found, Type) and found.kind in kinds


def _comparable(a: ExpressionType, b: ExpressionType) -> bool:
    if isinstance(a, Type) and isinstance(b, Type):
        return a.kind is b.kind or (a.kind in _NUMBERS and b.kind in _NUMBERS)
    spans = {a, b} - {Special.SPAN}
    return not spans or any(_is(t, *_NUMBERS) for t in spans)


def _mend(first: ExpressionType, second: ExpressionType) -> str:
    if {first, second} == {TIMESTAMP, STRING}:
        return "write TIMESTAMP '...' for a time"
    if _is(first, Kind.STRING) or _is(second, Kind.STRING):
        return "text stands in single quotes, numbers do not"
    return ""


def _a(found: ExpressionType) -> str:
    return str(found)


def _name(attribute: ast.Attribute) -> str:
    name = ".".join(attribute.path)
    return f"{attribute.scope}.{name}" if attribute.scope else name
