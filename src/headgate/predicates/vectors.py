"""Atoms over whole columns: which literals hold on which rows of a batch.

This is the lane of every atom that no look-up structure decides: attributes against each other, arithmetic, functions,
quantified arrays. Each distinct sub-expression is computed once per batch. A truth is two masks, TRUE and FALSE; where
both are clear it is UNKNOWN, so Kleene's AND and OR are two bit operations each (docs/semantics.md, section 2).

`default` mode runs the same code two-valued: an operand that is not known there is the value ω.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.columns import Columns, offsets_of
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates import arithmetic, operands, tests
from headgate.predicates.functions import FUNCTIONS
from headgate.predicates.operands import Constant, Operand
from headgate.predicates.times import instant
from headgate.schema import Path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.predicates.normal import Lit

    Mask = NDArray[np.bool_]


def evaluate(lits: Sequence[Lit], columns: Columns, defaults: Mapping[Path, object]) -> Mask:
    """Row i, column j: does literal i hold on event j? `defaults` are the DEFAULTs of the stream."""
    held = np.empty((len(lits), columns.rows), np.bool_)
    same: dict[tuple[Node, bool], list[int]] = {}
    for i, lit in enumerate(lits):
        same.setdefault((lit.atom, lit.default), []).append(i)
    modes = {False: _Rows(columns, None), True: _Rows(columns, defaults)}
    for (atom, default), places in same.items():
        truth = modes[default].truth(atom)
        for i in places:
            held[i] = truth.yes if lits[i].truth else truth.no
    return held


@dataclass(frozen=True, eq=False)
class Truth:
    """Where an atom is TRUE and where it is FALSE; each a mask, or one value for all rows."""

    yes: Any
    no: Any

    def __and__(self, other: Truth) -> Truth:
        return Truth(self.yes & other.yes, self.no | other.no)

    def __or__(self, other: Truth) -> Truth:
        return Truth(self.yes | other.yes, self.no & other.no)


class _Rows:
    """The operands and truths over the rows of a batch, in one mode: `defaults` is None for three-valued logic."""

    def __init__(self, columns: Columns, defaults: Mapping[Path, object] | None) -> None:
        self._columns = columns
        self._defaults = defaults
        self._operands: dict[Node, Operand] = {}
        self._arrays: dict[Path, _Elements] = {}

    def truth(self, atom: Node) -> Truth:
        match atom:
            case ast.IsNull(ast.Attribute(path)):
                return self._settled(~self._present(path), np.True_)
        for node in ast.walk(atom):
            attribute = node.attribute if isinstance(node, ast.Every) else node
            if isinstance(attribute, ast.Attribute) and self._is_array(attribute.path):
                if attribute.path not in self._arrays:
                    self._arrays[attribute.path] = _Elements(self, self._columns, self._defaults, attribute.path)
                return self._arrays[attribute.path].quantified(atom, every=isinstance(node, ast.Every))
        return self.atom(atom)

    def atom(self, node: Node) -> Truth:
        match node:
            case ast.Compare(op, left, right):
                return self._compare(op, self.operand(left), self.operand(right))
            case ast.Between(operand, low, high):
                a = self.operand(operand)
                return self._compare(">=", a, self.operand(low)) & self._compare("<=", a, self.operand(high))
            case ast.In(operand, items):
                return self._in(self.operand(operand), [self.operand(item) for item in items])
            case ast.Test():
                holds, nodes = tests.resolve(node)
                return self._test(holds, *nodes)
            case ast.IsNull(operand):
                return self._settled(~self.operand(operand).known, np.True_)
        return self._test(bool, node)

    def operand(self, node: Node) -> Operand:
        found = self._operands.get(node)
        if found is None:
            found = self._operands[node] = self._compute(node)
        return found

    def _compute(self, node: Node) -> Operand:
        match node:
            case ast.Literal(value):
                return Constant(value)
            case ast.Instant(text):
                return Constant(instant(text))
            case ast.Span(amount, unit):
                return Constant(round(amount * ast.UNITS[unit]))
            case ast.Attribute(path):
                return self._read(path)
            case ast.Every(attribute):
                return self.operand(attribute)
            case ast.Negate(operand):
                return arithmetic.negated(self.operand(operand))
            case ast.Arithmetic(op, left, right):
                return arithmetic.calculated(op, self.operand(left), self.operand(right))
            case ast.Function(name, below):
                return FUNCTIONS[name].over([self.operand(o) for o in below])
        raise AssertionError(f"{type(node).__name__} is not decided by columns")

    def _read(self, path: Path) -> Operand:
        column = self._columns.get(path)
        found = Constant(None) if column is None else operands.of_column(column)
        default = self._default(path)
        return found if default is None else operands.filled(found, default)

    def _default(self, path: Path) -> Any:
        return None if self._defaults is None else self._defaults.get(path)

    def _is_array(self, path: Path) -> bool:
        column = self._columns.get(path)
        return isinstance(self._default(path), list) if column is None else column.offsets is not None

    def _present(self, path: Path) -> Any:
        column = self._columns.get(path)
        if self._default(path) is not None:
            return np.True_
        return np.False_ if column is None else column.defined

    # -- where the modes differ

    def _settled(self, holds: Any, known: Any) -> Truth:
        yes = holds & known
        return Truth(yes, known & ~holds if self._defaults is None else ~yes)

    def _compare(self, op: str, a: Operand, b: Operand) -> Truth:
        holds, known = operands.compared(op, a, b), a.known & b.known
        if self._defaults is None or op not in ("=", "<>"):
            return self._settled(holds, known)
        of_omega = ~(a.known | b.known) if op == "=" else a.known ^ b.known
        return self._settled((holds & known) | of_omega, np.True_)

    def _in(self, a: Operand, items: list[Operand]) -> Truth:
        constants = [i.value for i in items if isinstance(i, Constant) and i.value is not None]
        if len(constants) == len(items) and not isinstance(a, Constant):
            return self._settled(operands.member(a, constants), a.known)
        return reduce(Truth.__or__, (self._compare("=", a, item) for item in items), Truth(np.False_, np.True_))

    def _test(self, test: Any, *nodes: Node) -> Truth:
        found = [self.operand(node) for node in nodes]
        known = reduce(np.logical_and, (o.known for o in found))
        return self._settled(operands.tested(test, *found), known)


class _Elements(_Rows):
    """The elements of one ARRAY attribute as rows, other operands repeated for each.

    An event that lacks the array has the elements of its DEFAULT, else one missing element: an atom over that is what
    the atom over a missing operand is.
    """

    def __init__(self, events: _Rows, columns: Columns, defaults: Mapping[Path, object] | None, path: Path) -> None:
        super().__init__(columns, defaults)
        self._events = events
        self._path = path
        default = self._default(path)
        instead = [None] if default is None else default
        column, rows = columns.get(path), np.arange(columns.rows)
        if column is None or column.elements is None or column.offsets is None:
            self._event = np.repeat(rows, len(instead))
            self._element = operands.taken(operands.of_values(instead), np.tile(np.arange(len(instead)), len(rows)))
            return
        lengths = np.where(column.defined, np.diff(column.offsets), len(instead))
        starts = offsets_of(lengths)
        self._event = np.repeat(rows, lengths)
        first = np.where(column.defined, column.offsets[:-1], len(column.elements)) - starts[:-1]
        stored = operands.of_column(column.elements)
        assert not isinstance(stored, Constant)
        self._element = operands.taken(operands.appended(stored, instead), np.arange(starts[-1]) + first[self._event])

    def quantified(self, atom: Node, *, every: bool) -> Truth:
        """Kleene's OR over the elements of each event, or AND if `every`."""
        truth = self.atom(atom)
        if every:
            return Truth(self._all(truth.yes), self._any(truth.no))
        return Truth(self._any(truth.yes), self._all(truth.no))

    def _any(self, holds: Any) -> Mask:
        found = np.zeros(self._columns.rows, np.bool_)
        found[self._event[np.broadcast_to(holds, self._event.shape)]] = True
        return found

    def _all(self, holds: Any) -> Mask:
        return ~self._any(~holds)

    def _compute(self, node: Node) -> Operand:
        if isinstance(node, ast.Attribute) and node.path == self._path:
            return self._element
        if not any(isinstance(below, ast.Attribute) and below.path == self._path for below in ast.walk(node)):
            return operands.taken(self._events.operand(node), self._event)
        return super()._compute(node)
