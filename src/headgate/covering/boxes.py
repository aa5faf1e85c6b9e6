"""From a filter in normal form to a union of boxes.

The normal form has pushed NOT to the atoms and rewritten the missing-mode; what is left are literals "the atom
evaluates to TRUE" or "to FALSE". Under `null` these are two sets of values that exclude but do not exhaust each
other, under `default` each is the complement of the other (docs/semantics.md, sections 2 and 6). AND is then the product of
unions of boxes, and OR their union.

What restricts a single attribute by constants becomes a portion of its dimension. A term gets a dimension of its own,
so that `price * vol > 20` is seen inside `price * vol > 10`; anything else becomes one dimension with the values
FALSE and TRUE, shared by all subscriptions that say the same. Where such an atom has a truth its attributes are
present.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headgate.covering import terms
from headgate.covering.portion import ALL, MISSING, NONE, PRESENT, Portion
from headgate.covering.space import Box, Dimension, contains, meet, of_attribute
from headgate.errors import HeadgateError
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates import domain
from headgate.predicates.normal import All, AnyOf, Complete, Formula, Lit
from headgate.schema import Attribute, Schema

LIMIT = 512
"""The most boxes a filter may become."""
Union = tuple[Box, ...]
EVERYTHING: Union = ({},)
NOTHING: Union = ()

_OUTCOMES = {"<": (0,), "=": (1,), ">": (2,), "<=": (0, 1), ">=": (1, 2), "<>": (0, 2)}
"""The results of a three-way comparison for which an operator holds."""
_ONE, _BOTH = 3, 4
"""Further results in `default` mode: one of the two terms is ω, or both are."""


class TooWide(HeadgateError):
    """A filter whose disjunctive form has more boxes than the limit allows."""

    code = "wide"


def boxes_of(formula: Formula, schema: Schema, limit: int = LIMIT) -> Union:
    """The union of boxes on which a filter in normal form holds; TooWide if they are too many."""
    return _Reader(schema, limit).union(formula)


class _Reader:
    def __init__(self, schema: Schema, limit: int) -> None:
        self._schema = schema
        self._limit = limit
        # Most schemas have no arrays; then no atom needs to be searched for them.
        self._arrays = not schema.declared or bool(schema.open) or any(a.type is None or a.type.array for a in schema)

    def union(self, formula: Formula) -> Union:
        match formula:
            case All(items):
                found = EVERYTHING
                # Short unions first keep the products small until the last moment.
                for part in sorted(map(self.union, items), key=len):
                    found = self._both(found, part)
                return found
            case AnyOf(items):
                return self._any([box for item in items for box in self.union(item)])
            case Complete():
                return self._present(ast.Attribute(a.path) for a in self._schema)
        return self._literal(formula)

    def _both(self, left: Union, right: Union) -> Union:
        if left == EVERYTHING:
            return right
        return self._any([b for x in left for y in right if (b := meet(x, y)) is not None])

    def _any(self, boxes: Sequence[Box]) -> Union:
        """The union, without boxes inside others, and with what restricts one dimension only put together."""
        single: dict[Dimension, Portion] = {}
        others: list[Box] = []
        for box in boxes:
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

    # -- literals

    def _literal(self, lit: Lit) -> Union:
        atom = lit.atom
        if isinstance(atom, ast.IsNull):
            return self._is_null(atom.operand, lit)
        if not (self._arrays and terms.quantified(atom, self._schema)):
            match atom:
                case ast.Compare(op, left, ast.Literal(value)):
                    return self._against(op, left, value, lit)
                case ast.Compare(op, left, right):
                    return self._order(op, left, right, lit)
                case ast.In(operand, items):
                    return self._in(operand, items, lit)
                case ast.Attribute():
                    return self._where(atom, domain.BOOLEAN.compare("=", True), lit)
            tested = terms.text_spans(atom)
            if tested is not None:
                return self._where(*tested, lit)
        return self._opaque(lit)

    def _is_null(self, operand: Node, lit: Lit) -> Union:
        if isinstance(operand, ast.Literal):
            return EVERYTHING if (operand.value is None) is lit.truth else NOTHING
        if lit.default and self._default(operand) is not None:
            return NOTHING if lit.truth else EVERYTHING
        if isinstance(operand, ast.Attribute):
            dimension = of_attribute(self._attribute(operand))
        else:
            dimension = self._dimension(operand, terms.textual(operand), lit)
        if lit.truth:
            return _box(dimension, MISSING if dimension.nullable else NONE)
        return self._guarded(dimension, PRESENT, operand, lit)

    def _against(self, op: str, operand: Node, value: object, lit: Lit) -> Union:
        """A term against a constant; in `default` mode the constant NULL is ω."""
        if value is None:
            match op:
                case "=":
                    return self._is_null(operand, lit)
                case "<>":
                    return self._is_null(operand, Lit(lit.atom, not lit.truth, lit.default))
            return NOTHING if lit.truth else EVERYTHING
        dimension = self._dimension(operand, isinstance(value, str), lit)
        return self._where(operand, dimension.domain.compare(op, value), lit, dimension, omega=op == "<>")

    def _in(self, operand: Node, items: tuple[Node, ...], lit: Lit) -> Union:
        values = [item.value for item in items if isinstance(item, ast.Literal)]
        dimension = self._dimension(operand, isinstance(values[0], str), lit)
        holds = NONE
        for value in values:
            holds |= Portion(dimension.domain.compare("=", value))
        return self._where(operand, holds.spans, lit, dimension)

    def _where(
        self,
        operand: Node,
        spans: tuple[domain.Span, ...],
        lit: Lit,
        dimension: Dimension | None = None,
        omega: bool = False,
    ) -> Union:
        """The atom holds where the operand is in the spans. `omega`: and, in `default` mode, where it is ω."""
        dimension = dimension or self._dimension(operand, True, lit)
        everything = ALL if dimension.nullable and lit.default else PRESENT
        default = self._default(operand)
        if default is not None:
            at = dimension.domain.at_least(default)
            omega = any(low <= at < high for low, high in spans)
        holds = Portion(spans, omega) & everything
        return self._guarded(dimension, holds if lit.truth else ~holds & everything, operand, lit)

    def _order(self, op: str, left: Node, right: Node, lit: Lit) -> Union:
        """Two terms: below, equal or above."""
        outcomes = _OUTCOMES[op]
        if lit.default:
            outcomes += (_BOTH,) if op == "=" else (_ONE,) if op == "<>" else ()
        choices = domain.choice(5 if lit.default else 3)
        dimension = Dimension(("order", lit.default, left, right), choices, not lit.default)
        holds = NONE
        for outcome in outcomes:
            holds |= Portion(choices.compare("=", outcome))
        return self._guarded(dimension, holds if lit.truth else ~holds & PRESENT, ast.And((left, right)), lit)

    def _opaque(self, lit: Lit) -> Union:
        """An atom of which only TRUE and FALSE are known.

        A positive call or pattern holds for *one* binding of its variables, a negated one for none: with variables the
        two are not opposites, so they get two dimensions.
        """
        negated = not lit.truth and any(isinstance(n, ast.Variable) for n in ast.walk(lit.atom))
        dimension = Dimension(("atom", lit.default, negated, lit.atom), domain.choice(2), not lit.default)
        return self._guarded(dimension, Portion(dimension.domain.compare("=", int(lit.truth))), lit.atom, lit)

    # -- dimensions

    def _attribute(self, node: ast.Attribute) -> Attribute:
        return self._schema.get(node.path) or Attribute(node.path, None)

    def _default(self, operand: Node) -> object:
        return self._attribute(operand).default if isinstance(operand, ast.Attribute) else None

    def _dimension(self, term: Node, textual: bool, lit: Lit) -> Dimension:
        """The dimension of an attribute, or of a term that is a text or a number."""
        if isinstance(term, ast.Attribute):
            return of_attribute(self._attribute(term))
        return Dimension(("term", lit.default, textual, term), domain.STRING if textual else domain.TERM)

    def _guarded(self, dimension: Dimension, portion: Portion, operand: Node, lit: Lit) -> Union:
        """The portion; and where a term or atom has a value its attributes are there."""
        found = _box(dimension, portion)
        if lit.default or dimension.path is not None:
            return found
        return self._both(found, self._present(terms.attributes(operand)))

    def _present(self, attributes: Iterable[ast.Attribute]) -> Union:
        dimensions = {of_attribute(self._attribute(a)) for a in attributes}
        return ({d: PRESENT for d in dimensions if d.nullable},)


def _box(dimension: Dimension, portion: Portion) -> Union:
    if not portion:
        return NOTHING
    return EVERYTHING if portion.full(dimension.nullable) else ({dimension: portion},)
