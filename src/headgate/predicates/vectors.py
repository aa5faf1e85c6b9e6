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

from headgate.columns import Column, Columns, offsets_of
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates import arithmetic, operands, rows, tests, values
from headgate.predicates.functions import FUNCTIONS
from headgate.predicates.operands import ByRows, Constant, Mixed, Operand, Typed
from headgate.predicates.times import instant
from headgate.schema import Instant, Kind, Path

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
        lists: dict[Path, bool] = {}
        for node in ast.walk(atom):
            attribute = node.attribute if isinstance(node, ast.Every) else node
            if isinstance(attribute, ast.Attribute) and self._is_array(attribute.path):
                lists.setdefault(attribute.path, isinstance(node, ast.Every))
        try:
            if not lists:
                return self.atom(atom)
            if len(lists) > 1:
                raise ByRows
            ((path, every),) = lists.items()
            if path not in self._arrays:
                self._arrays[path] = _Elements(self, self._columns, self._defaults, path)
            return self._arrays[path].quantified(atom, every=every)
        except ByRows:
            return self._by_rows(atom)

    def _by_rows(self, atom: Node) -> Truth:
        """The atom on one row after the other."""
        holds = rows.compile_truth(atom, self._defaults)
        paths = {n.path for n in ast.walk(atom) if isinstance(n, ast.Attribute)}
        read = {path: column for path in paths if (column := self._columns.get(path)) is not None}
        yes, no = np.zeros((2, self._columns.rows), np.bool_)
        for row in range(self._columns.rows):
            found = holds(rows.Values({path: column.value(row) for path, column in read.items()}, {}))
            yes[row], no[row] = found is True, found is False
        return Truth(yes, no)

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
                return Constant(Instant(instant(text)))
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
        return found if default is None or isinstance(found, Mixed) else operands.filled(found, default)

    def _default(self, path: Path) -> Any:
        return None if self._defaults is None else self._defaults.get(path)

    def _is_array(self, path: Path) -> bool:
        column = self._columns.get(path)
        if column is None:
            return isinstance(self._default(path), list)
        return column.offsets is not None or (column.any is not None and column.any.lists() is not None)

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
        if isinstance(a, Mixed):
            if isinstance(b, Mixed):
                return self._compare_mixed(op, a, b)
            a = _like(a, b)
        elif isinstance(b, Mixed):
            b = _like(b, a)
        alike = len({operands.kind_of(a), operands.kind_of(b)} - {None}) < 2
        holds: Any = operands.compared(op, a, b) if alike else np.False_
        known: Any = a.known & b.known if alike else np.False_
        scalar = alike and a.other is None and b.other is None
        if op not in ("=", "<>") or (self._defaults is None and scalar):
            return self._settled(holds, known)
        return self._equality(op, holds & known, known, _present(a), _present(b))

    def _equality(self, op: str, holds: Any, known: Any, a_there: Any, b_there: Any) -> Truth:
        """`known`: both values are there and of one kind. Values of different kinds are different."""
        different = a_there & b_there & ~known
        if op == "=":
            yes, no = holds, (known & ~holds) | different
            of_omega = ~(a_there | b_there)
        else:
            yes, no = holds | different, known & ~holds
            of_omega = a_there ^ b_there
        return Truth(yes, no) if self._defaults is None else self._settled(yes | of_omega, np.True_)

    def _compare_mixed(self, op: str, a: Mixed, b: Mixed) -> Truth:
        """Two attributes of the type ANY: kind by kind."""
        holds = known = np.zeros(np.shape(a.known), np.bool_)
        for number, kind in values.VIEWS.items():
            if a.has(kind) and b.has(kind) and (number in values.ORDERED or op in ("=", "<>")):
                x, y = a.of_kind(kind), b.of_kind(kind)
                both = x.known & y.known
                holds = holds | (operands.compared(op, x, y) & both)
                known = known | both
        if op in ("=", "<>"):
            return self._equality(op, holds, known, a.known, b.known)
        return self._settled(holds, known)

    def _in(self, a: Operand, items: list[Operand]) -> Truth:
        constants = [i.value for i in items if isinstance(i, Constant) and i.value is not None]
        kinds = set(map(values.view_of, constants))
        if len(constants) < len(items) or isinstance(a, Constant) or (isinstance(a, Mixed) and len(kinds) > 1):
            return reduce(Truth.__or__, (self._compare("=", a, item) for item in items), Truth(np.False_, np.True_))
        if isinstance(a, Mixed):
            a = _like(a, Constant(constants[0]))
        assert not isinstance(a, Constant)
        found = self._settled(operands.member(a, constants), a.known)
        return found if a.other is None or self._defaults is not None else Truth(found.yes, found.no | a.other)

    def _test(self, test: Any, *nodes: Node) -> Truth:
        wanted = Kind.BOOLEAN if test is bool else Kind.STRING
        found = [operands.as_kind(self.operand(node), wanted) for node in nodes]
        known = reduce(np.logical_and, (o.known for o in found))
        return self._settled(operands.tested(test, *found), known)


def _like(a: Mixed, b: Typed) -> Typed:
    """The values that can be compared with another operand."""
    kind = operands.kind_of(b)
    return operands.Numbers(np.zeros(len(a.known), np.bool_), a.known) if kind is None else a.of_kind(kind)


def _present(operand: Typed) -> Any:
    return operand.known if operand.other is None else operand.known | operand.other


def _elements(column: Column) -> tuple[Any, Column | None]:
    return (column.offsets, column.elements) if column.any is None else column.any.elements()


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
        column, events_at = columns.get(path), np.arange(columns.rows)
        offsets, elements = (None, None) if column is None else _elements(column)
        if column is None or elements is None or offsets is None:
            self._element: Operand
            self._event = np.repeat(events_at, len(instead))
            self._element = operands.taken(
                operands.of_values(instead), np.tile(np.arange(len(instead)), len(events_at))
            )
            return
        lengths = np.where(column.defined, np.diff(offsets), len(instead))
        starts = offsets_of(lengths)
        self._event = np.repeat(events_at, lengths)
        first = np.where(column.defined, offsets[:-1], len(elements)) - starts[:-1]
        stored = operands.of_column(elements)
        assert not isinstance(stored, Constant)
        whole = stored if isinstance(stored, Mixed) else operands.appended(stored, instead)
        self._element = operands.taken(whole, np.arange(starts[-1]) + first[self._event])

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
