"""From a filter to a union of boxes.

NOT is pushed to the atoms, where it has a meaning of its own: under `null` an atom is TRUE on one set of values, FALSE on
another and UNKNOWN if an operand is missing; under `default` FALSE is the complement of TRUE. With these two sets for
each atom, AND is the product of unions of boxes and OR their union (SEMANTICS, sections 2 and 6).

What restricts a single attribute by constants becomes a portion of its dimension. A term gets a dimension of its own, so
that `price * vol > 20` is seen inside `price * vol > 10`; anything else becomes one dimension with the values FALSE and
TRUE, shared by all subscriptions that say the same. Where such an atom is TRUE or FALSE its attributes are present.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headgate.covering import domain, terms
from headgate.covering.portion import ALL, MISSING, NONE, PRESENT, Portion
from headgate.covering.space import Box, Dimension, contains, meet, of_attribute
from headgate.covering.terms import Constant
from headgate.errors import HeadgateError
from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.values import FLIPPED, compare
from headgate.schema import Attribute, Schema

MODES = ("null", "strict", "default", "total")
LIMIT = 512
"""The most boxes a subscription may become; beyond that its formula goes to SAT as it is."""
Union = tuple[Box, ...]
EVERYTHING: Union = ({},)
NOTHING: Union = ()

_ORDER = {"<": (0,), "=": (1,), ">": (2,), "<=": (0, 1), ">=": (1, 2), "<>": (0, 2)}
"""The results of a three-way comparison for which an operator holds."""
_ONE, _BOTH = 3, 4
"""In `default` mode one of the two terms, or both, may be ω."""


class TooWide(HeadgateError):
    """A filter whose disjunctive form has more boxes than the limit allows."""

    code = "wide"


@dataclass(frozen=True, slots=True)
class Truth:
    """Where an atom is TRUE and where it is FALSE."""

    true: Union
    false: Union


def boxes_of(body: Node, schema: Schema, missing: str = "null", limit: int = LIMIT) -> Union:
    """The union of boxes on which a checked filter body is TRUE in a missing-mode."""
    return _Reader(schema, missing == "default", limit).body(body, missing)


class _Reader:
    def __init__(self, schema: Schema, two_valued: bool, limit: int) -> None:
        self._schema = schema
        self._two_valued = two_valued
        self._limit = limit

    def body(self, node: Node, missing: str) -> Union:
        found = self._where(node, True)
        if missing == "strict":
            return self._both(found, self._present(terms.attributes(node)))
        if missing == "total":
            return self._both(found, self._present(ast.Attribute(a.path) for a in self._schema))
        return found

    # -- the formula

    def _where(self, node: Node, wanted: bool) -> Union:
        match node:
            case ast.Not(operand):
                return self._where(operand, not wanted)
            case ast.And(items) | ast.Or(items):
                parts = [self._where(item, wanted) for item in items]
                if isinstance(node, ast.And) is wanted:
                    return self._all(parts)
                return self._any(parts)
            case ast.Between(operand, low, high) if not terms.quantified(node, self._schema):
                bounds = (ast.Compare(">=", operand, low), ast.Compare("<=", operand, high))
                return self._where(ast.And(bounds), wanted)
            case ast.In(operand, items) if not terms.quantified(node, self._schema):
                return self._where(ast.Or(tuple(ast.Compare("=", operand, item) for item in items)), wanted)
        truth = self._atom(node, wanted)
        return truth.true if wanted else truth.false

    def _all(self, parts: list[Union]) -> Union:
        # Short unions first keep the products small until the last moment.
        found = EVERYTHING
        for part in sorted(parts, key=len):
            found = self._both(found, part)
        return found

    def _both(self, left: Union, right: Union) -> Union:
        return self._any([tuple(b for x in left for y in right if (b := meet(x, y)) is not None)])

    def _any(self, parts: list[Union]) -> Union:
        """The union, without boxes inside others, and with what restricts one dimension only put together."""
        single: dict[Dimension, Portion] = {}
        others: list[Box] = []
        for box in (b for part in parts for b in part):
            if not box:
                return EVERYTHING
            if len(box) == 1:
                ((dimension, portion),) = box.items()
                single[dimension] = single.get(dimension, NONE) | portion
            else:
                others.append(box)
        if any(portion.full(dimension.nullable) for dimension, portion in single.items()):
            return EVERYTHING
        found: list[Box] = [{d: p} for d, p in single.items()]
        for box in sorted(others, key=len):
            if not any(contains(kept, box) for kept in found[-64:]):
                found.append(box)
            if len(found) > self._limit:
                raise TooWide(f"the filter is a union of more than {self._limit} boxes", "raise the limit")
        return tuple(found)

    # -- atoms

    def _atom(self, node: Node, wanted: bool) -> Truth:
        match node:
            case ast.Literal(value):
                yes = value is True
                no = value is False or (self._two_valued and not yes)
                return Truth(EVERYTHING if yes else NOTHING, EVERYTHING if no else NOTHING)
            case ast.IsNull(operand):
                return self._is_null(operand)
        if terms.quantified(node, self._schema):
            return self._opaque(node, wanted)
        match node:
            case ast.Compare(op, left, right):
                return self._compare(op, left, right, node, wanted)
            case ast.Like(operand, pattern, escape, False):
                spans = terms.like_spans(pattern, escape)
            case ast.TextTest("STARTS", operand, ast.Literal(str() as part)):
                spans = domain.prefixed(part)
            case ast.TextTest("CONTAINS" | "ENDS", operand, ast.Literal("")):
                spans = PRESENT.spans
            case ast.Attribute():
                operand, spans = node, domain.BOOLEAN.compare("=", True)
            case _:
                return self._opaque(node, wanted)
        return self._opaque(node, wanted) if spans is None else self._on(operand, spans, node, wanted)

    def _compare(self, op: str, left: Node, right: Node, node: Node, wanted: bool) -> Truth:
        a, b = terms.constant(left), terms.constant(right)
        if a is not None and b is not None:
            return self._constants(op, a, b)
        if a is not None:
            op, left, b = FLIPPED[op], right, a
        if b is None:
            return self._order(op, left, right)
        if b.value is None:
            return self._against_null(op, left)
        dimension = self._dimension(left, b)
        return self._on(left, dimension.domain.compare(op, b.value), node, wanted, dimension, omega=op == "<>")

    def _constants(self, op: str, a: Constant, b: Constant) -> Truth:
        if a.value is None or b.value is None:
            if not self._two_valued:
                return Truth(NOTHING, NOTHING)
            holds = op == ("=" if a.value is b.value else "<>")
        else:
            holds = compare(op, a.value, b.value)
        return Truth(EVERYTHING, NOTHING) if holds else Truth(NOTHING, EVERYTHING)

    def _against_null(self, op: str, operand: Node) -> Truth:
        if not self._two_valued:
            return Truth(NOTHING, NOTHING)
        omega = self._is_null(operand)
        match op:
            case "=":
                return omega
            case "<>":
                return Truth(omega.false, omega.true)
        return Truth(NOTHING, EVERYTHING)

    def _is_null(self, operand: Node) -> Truth:
        constant = terms.constant(operand)
        if constant is not None:
            return Truth(EVERYTHING, NOTHING) if constant.value is None else Truth(NOTHING, EVERYTHING)
        dimension = self._dimension(operand)
        if self._two_valued and isinstance(operand, ast.Attribute) and self._attribute(operand).default is not None:
            return Truth(NOTHING, EVERYTHING)
        missing = MISSING if dimension.nullable else NONE
        return Truth(_box(dimension, missing), self._guarded(dimension, PRESENT, operand))

    def _on(
        self,
        operand: Node,
        spans: tuple[domain.Span, ...],
        node: Node,
        wanted: bool,
        dimension: Dimension | None = None,
        omega: bool = False,
    ) -> Truth:
        """The atom holds where the operand is in the spans. `omega`: and, in `default` mode, where it is ω."""
        if terms.constant(operand) is not None:
            return self._opaque(node, wanted)
        dimension = dimension or self._dimension(operand)
        holds = Portion(spans)
        if not self._two_valued:
            fails = ~holds & PRESENT
            return Truth(self._guarded(dimension, holds, operand), self._guarded(dimension, fails, operand))
        if isinstance(operand, ast.Attribute) and (default := self._attribute(operand).default) is not None:
            at = dimension.domain.at_least(default)
            omega = any(low <= at < high for low, high in spans)
        holds = Portion(spans, omega and dimension.nullable)
        fails = ~holds & (ALL if dimension.nullable else PRESENT)
        return Truth(_box(dimension, holds), _box(dimension, fails))

    def _order(self, op: str, left: Node, right: Node) -> Truth:
        """Two terms: below, equal or above, as one dimension that both ways of writing it share."""
        if repr(right) < repr(left):
            op, left, right = FLIPPED[op], right, left
        outcomes = _ORDER[op]
        if self._two_valued:
            outcomes += (_BOTH,) if op == "=" else (_ONE,) if op == "<>" else ()
        dimension = Dimension(
            ("order", self._two_valued, left, right), domain.choice(5 if self._two_valued else 3), not self._two_valued
        )
        holds = NONE
        for outcome in outcomes:
            holds |= Portion(dimension.domain.compare("=", outcome))
        fails = ~holds & PRESENT
        operand = ast.And((left, right))
        return Truth(self._guarded(dimension, holds, operand), self._guarded(dimension, fails, operand))

    def _opaque(self, node: Node, wanted: bool) -> Truth:
        """An atom of which only TRUE and FALSE are known.

        A positive call or pattern holds for *one* binding of its variables, a negated one for none: with variables the
        two are not opposites, so they get two dimensions.
        """
        negated = not wanted and any(isinstance(n, ast.Variable) for n in ast.walk(node))
        dimension = Dimension(("atom", self._two_valued, negated, node), domain.choice(2), not self._two_valued)
        true, false = (Portion(dimension.domain.compare("=", value)) for value in (1, 0))
        return Truth(self._guarded(dimension, true, node), self._guarded(dimension, false, node))

    # -- dimensions

    def _attribute(self, node: ast.Attribute) -> Attribute:
        return self._schema.get(node.path) or Attribute(node.path, None)

    def _dimension(self, term: Node, against: Constant | None = None) -> Dimension:
        """The dimension of an attribute, or of a term; `against` tells what kind of value a term has."""
        if isinstance(term, ast.Attribute):
            return of_attribute(self._attribute(term))
        textual = isinstance(against.value, str) if against else terms.textual(term)
        return Dimension(("term", self._two_valued, textual, term), domain.STRING if textual else domain.TERM)

    def _guarded(self, dimension: Dimension, portion: Portion, operand: Node) -> Union:
        """The portion; and where a term or atom has a value its attributes are there."""
        found = _box(dimension, portion)
        if self._two_valued or dimension.path is not None:
            return found
        return self._both(found, self._present(a for a in terms.attributes(operand)))

    def _present(self, attributes: Iterable[ast.Attribute]) -> Union:
        dimensions = {of_attribute(self._attribute(a)) for a in attributes}
        return ({d: PRESENT for d in dimensions if d.nullable},)


def _box(dimension: Dimension, portion: Portion) -> Union:
    if not portion:
        return NOTHING
    return EVERYTHING if portion.full(dimension.nullable) else ({dimension: portion},)
