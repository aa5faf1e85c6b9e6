"""The normal form of a filter: AND and OR over literals, with the missing-mode rewritten away.

NOT is pushed to the atoms. A `Lit` says that its atom evaluates to TRUE, or to FALSE; over a missing operand it does
neither, so the two exclude but do not exhaust each other and three-valued logic costs nothing at run time (docs/semantics.md,
section 2). In `default` mode atoms are two-valued and FALSE is the complement.

* `strict` adds that every attribute of the text is there, `total` that the event has all attributes of its stream.
* Constants stand on the right; what has only constants is computed; BETWEEN on a scalar is two comparisons.
* Calls and GRAPH patterns are literals like others; which step decides them is not this module's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from headgate.language import ast
from headgate.language.ast import Hole, Node
from headgate.predicates import values
from headgate.predicates.functions import FUNCTIONS
from headgate.predicates.modes import demanded
from headgate.predicates.times import instant
from headgate.schema import Schema


@dataclass(frozen=True, slots=True)
class Lit:
    """The atom evaluates to `truth`; in `default` mode after what is missing was replaced."""

    atom: Node
    truth: bool = True
    default: bool = False


@dataclass(frozen=True, slots=True)
class Complete:
    """The event has every attribute of its stream: `total` mode."""


@dataclass(frozen=True, slots=True)
class All:
    items: tuple[Formula, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    items: tuple[Formula, ...]


Formula = Lit | Complete | All | AnyOf
ALWAYS = All(())
NEVER = AnyOf(())
_NULL = ast.Literal(None)


def normalise(body: Node, missing: str, schema: Schema, *, lists: bool = False) -> Formula:
    """The formula that is TRUE for an event exactly if the body, in its mode, matches it. `lists`: attributes of the type
    ANY may hold arrays; without it the formula is right for events in which none does."""
    default = missing == "default"
    formula = _Push(schema, default, lists).formula(body, True)
    if missing == "total":
        return conjunction([formula, Complete()])
    present = tuple(Lit(ast.IsNull(ast.Attribute(path)), False) for path in demanded(missing, body, schema))
    return conjunction([formula, *present]) if present else formula


def literals(formula: Formula) -> Iterator[Lit | Complete]:
    stack: list[Formula] = [formula]
    while stack:
        top = stack.pop()
        if isinstance(top, All | AnyOf):
            stack.extend(reversed(top.items))
        else:
            yield top


def conjunction(items: list[Formula]) -> Formula:
    return _join(items, All, NEVER)


def disjunction(items: list[Formula]) -> Formula:
    return _join(items, AnyOf, ALWAYS)


def _join(items: list[Formula], kind: type[All] | type[AnyOf], absorbing: Formula) -> Formula:
    """Flat, without repeats, and cut short by TRUE or FALSE."""
    flat: dict[Formula, None] = {}
    for item in items:
        if item == absorbing:
            return absorbing
        for part in item.items if isinstance(item, kind) else (item,):
            flat[part] = None
    return next(iter(flat)) if len(flat) == 1 else kind(tuple(flat))


class _Push:
    def __init__(self, schema: Schema, default: bool, lists: bool) -> None:
        self._schema = schema
        self._default = default
        self._lists = lists

    def formula(self, node: Node, truth: bool) -> Formula:
        match node:
            case ast.And(items) | ast.Or(items):
                parts = [self.formula(item, truth) for item in items]
                return conjunction(parts) if isinstance(node, ast.And) == truth else disjunction(parts)
            case ast.Not(operand):
                return self.formula(operand, not truth)
            case ast.Between(operand, low, high) if not self._has_array(node):
                both = ast.And((ast.Compare(">=", operand, low), ast.Compare("<=", operand, high)))
                return self.formula(both, truth)
            case ast.In(operand, items) if not self._has_array(node):
                return self._membership(operand, items, truth)
        return self._literal(self._canonical(node), truth)

    def _membership(self, operand: Node, items: tuple[Node, ...], truth: bool) -> Formula:
        """IN over constants stays one atom with the items in order; the rest means OR of equalities."""
        operand = fold(operand)
        constants = [f for f in map(fold, items) if isinstance(f, ast.Literal) and f.value is not None]
        odd = any(isinstance(c.value, Hole) or c.value != c.value for c in constants)  # NaN is no cut of its own
        plain = isinstance(operand, ast.Attribute) and not odd and len({values.kind(c.value) for c in constants}) == 1
        if not plain or len(constants) < 2 or len(constants) < len(items):
            return self.formula(ast.Or(tuple(ast.Compare("=", operand, item) for item in items)), truth)
        unique: dict[tuple[str, Any], ast.Literal] = {(type(c.value).__name__, c.value): c for c in constants}
        return self._literal(ast.In(operand, tuple(unique[key] for key in sorted(unique))), truth)

    def _literal(self, atom: Node, truth: bool) -> Formula:
        if isinstance(atom, ast.Literal) and not isinstance(atom.value, Hole):
            holds = (atom.value is True) if (truth or self._default) else (atom.value is False)
            return ALWAYS if holds == (truth or not self._default) else NEVER
        return Lit(atom, truth, self._default)

    def _canonical(self, atom: Node) -> Node:
        """Constants on the right, computed where they can be; symmetric comparisons in one order."""
        match atom:
            case ast.Compare(op, left, right):
                left, right = fold(left), fold(right)
                # Not of an array: ANY over an empty one is FALSE and ALL is TRUE, whatever the comparison says.
                if not self._default and _NULL in (left, right) and not self._has_array(atom):
                    return _NULL
                if _is_constant(left) and _is_constant(right):
                    return self._constant(atom, left, right)
                if _is_constant(left) or (not _is_constant(right) and _key(right) < _key(left)):
                    return ast.Compare(values.FLIPPED[op], right, left)
                return ast.Compare(op, left, right)
            case ast.Between(operand, low, high):
                return ast.Between(fold(operand), fold(low), fold(high))
            case ast.In(operand, items):
                return ast.In(fold(operand), tuple(map(fold, items)))
            case ast.Test(name, operands):
                return ast.Test(name, tuple(map(fold, operands)))
            case ast.IsNull(operand):
                return ast.IsNull(fold(operand))
        return fold(atom)

    def _constant(self, atom: ast.Compare, left: Node, right: Node) -> Node:
        a, b = _value(left), _value(right)
        if isinstance(a, Hole) or isinstance(b, Hole):
            return ast.Compare(atom.op, left, right)
        if a is None or b is None:
            if not self._default:
                return ast.Literal(None)
            return ast.Literal(atom.op == ("=" if a is None and b is None else "<>"))
        return ast.Literal(values.compare(atom.op, a, b))

    def _has_array(self, node: Node) -> bool:
        for below in ast.walk(node):
            if isinstance(below, ast.Attribute):
                found = self._schema.get(below.path)
                if self._lists if found is None or found.type is None else found.type.array:
                    return True
        return False


def fold(node: Node) -> Node:
    """An expression with its constant parts computed. Spans become whole numbers of microseconds."""
    match node:
        case ast.Instant(text) if isinstance(text, str):
            return ast.Literal(values.Instant(instant(text)))
        case ast.Span(amount, unit) if not isinstance(amount, Hole):
            return ast.Literal(round(amount * ast.UNITS[unit]))
        case ast.Negate(operand):
            inner = fold(operand)
            return _compute(values.negate, ast.Negate(inner), inner)
        case ast.Function(name, operands):
            folded = tuple(map(fold, operands))
            return _compute(FUNCTIONS[name].row, ast.Function(name, folded), *folded)
        case ast.Arithmetic(op, left, right):
            a, b = fold(left), fold(right)
            return _compute(lambda x, y: values.arithmetic(op, x, y), ast.Arithmetic(op, a, b), a, b)
    return node


def _compute(f: Callable[..., Any], otherwise: Node, *operands: Node) -> Node:
    if all(isinstance(o, ast.Literal) and not isinstance(o.value, Hole) for o in operands):
        given = [_value(o) for o in operands]
        return ast.Literal(None if None in given else f(*given))
    return otherwise


def _is_constant(node: Node) -> bool:
    return isinstance(node, ast.Literal | ast.Instant | ast.Span)


def _value(node: Node) -> Any:
    return node.value if isinstance(node, ast.Literal) else Hole(-1)


def _key(node: Node) -> str:
    return repr(node)
