"""Cells: per attribute, the constants of all comparisons cut the domain; one search gives the truth of all of them.

With cuts c0 < c1 < ... the cells are: below c0, equal to c0, between c0 and c1, and so on, numbered from 0, so that
every comparison with a constant is a range of cells, `=` and `<>` are one cell and its complement, and nothing about
rounding or NaN is left to the kernels (docs/semantics.md, section 1). A missing value is in no cell.

An attribute of the type ANY has cells for each kind that it is compared with. Behind the last of them is one more for all
values of other kinds, on which only `<>` holds.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.columns import Column
from headgate.language.ast import Path
from headgate.predicates import domain
from headgate.predicates.kernels import numeric_cells, table_cells
from headgate.predicates.values import INT64
from headgate.schema import Kind

Ints = NDArray[np.int32]
_CLOSE = 1 << 20
"""Whole-number cuts that lie within this range get a table instead of a search."""
_WHOLE = (Kind.BIGINT, Kind.TIMESTAMP)

NEVER, ALWAYS = "never", "always"


def canonical(kind: Kind, op: str, constant: Any) -> tuple[str, Any]:
    """`x op constant` as a comparison of x with a value of x's own type, exact.

    `op` may become NEVER or ALWAYS (for every x that is there): `i > 2.5` is `i >= 3`, `i = 2.5` is NEVER.
    """
    if kind in _WHOLE:
        if isinstance(constant, int) and constant in INT64:
            return op, constant
    elif kind is not Kind.DOUBLE:
        return op, int(constant) if kind is Kind.BOOLEAN else constant
    elif isinstance(constant, float) and constant == constant:
        return op, constant + 0.0  # -0.0 becomes 0.0
    of_kind = domain.DOUBLE if kind is Kind.DOUBLE else domain.BIGINT
    at, past = of_kind.at_least(constant), of_kind.above(constant)
    match op:
        case "<":
            return _below(kind, at)
        case "<=":
            return _below(kind, past)
        case ">":
            return _from(kind, past)
        case ">=":
            return _from(kind, at)
    if at == past:  # no value of this type equals the constant
        return (NEVER if op == "=" else ALWAYS), _value(kind, domain.BOTTOM)
    if constant != constant:
        return _from(kind, at) if op == "=" else _below(kind, at)
    return op, _value(kind, at)


def _below(kind: Kind, cut: domain.Cut) -> tuple[str, Any]:
    if cut in (domain.BOTTOM, domain.TOP):
        return (NEVER if cut == domain.BOTTOM else ALWAYS), _value(kind, domain.BOTTOM)
    value = _value(kind, cut)
    return ("<", value) if value == value else ("<=", math.inf)  # NaN alone is above infinity


def _from(kind: Kind, cut: domain.Cut) -> tuple[str, Any]:
    if cut in (domain.BOTTOM, domain.TOP):
        return (ALWAYS if cut == domain.BOTTOM else NEVER), _value(kind, domain.BOTTOM)
    value = _value(kind, cut)
    return (">=", value) if value == value else (">", math.inf)


def _value(kind: Kind, cut: domain.Cut) -> Any:
    """The least value behind a cut."""
    if kind is Kind.DOUBLE:
        return -math.inf if cut == domain.BOTTOM else domain.double_of(cut[1])
    return INT64.least if cut == domain.BOTTOM else cut[1]


@dataclass(frozen=True)
class Cells:
    """The cells of one attribute. `cuts` is a sorted array, for text a sorted Arrow column."""

    path: Path
    kind: Kind
    cuts: NDArray[Any] | pa.Array[Any]
    ordered: bool
    """Whether some comparison needs the order; for text, equality alone is looked up by hash."""
    view: bool = False
    """Whether the attribute has the type ANY, and these are the cells of its values of one kind."""
    _table: list[Any] = field(default_factory=list, repr=False, compare=False)

    @property
    def top(self) -> int:
        """The last cell of values of the kind."""
        return 2 * len(self.cuts)

    @property
    def count(self) -> int:
        return self.top + 1 + self.view

    def of(self, column: Column) -> Ints:
        """The cell of every row, -1 where missing."""
        if not self.view:
            return self._of(column)
        if column.any is None:  # the batch has no such column
            return np.full(len(column), -1, np.int32)
        view = column.any.view(self.kind)
        found = self._of(view)
        if view.other is not None:
            found[view.other] = self.top + 1
        if view.exact:
            cuts = self.cuts.tolist()
            for row, value in view.exact.items():
                at = bisect_left(cuts, value)
                found[row] = 2 * at + 1 if at < len(cuts) and cuts[at] == value else 2 * at
        return found

    def _of(self, column: Column) -> Ints:
        if not len(self.cuts):
            return np.where(column.defined, np.int32(0), np.int32(-1))
        if isinstance(self.cuts, np.ndarray):
            out = np.empty(len(column), np.int32)
            assert isinstance(column.values, np.ndarray)
            values = column.values.view(np.int8) if column.values.dtype == np.bool_ else column.values
            if self._is_close():
                first, table = self._dense_table()
                table_cells(values, column.defined, first, table, out)
            else:
                numeric_cells(values, column.defined, self.cuts, out)
            return out
        codes, distinct = column.dictionary()
        cells = np.append(self._text_cells(distinct), np.int32(-1))
        return cells[codes]

    def _is_close(self) -> bool:
        cuts = self.cuts
        return self.kind in _WHOLE and len(cuts) > 0 and int(cuts[-1]) - int(cuts[0]) < _CLOSE

    def _dense_table(self) -> tuple[int, Ints]:
        if not self._table:
            low, high = int(self.cuts[0]), int(self.cuts[-1])
            first = max(low - 1, -(2**63))
            size = min(high + 1, 2**63 - 1) - first + 1
            table = np.empty(size, np.int32)
            numeric_cells(first + np.arange(size), np.ones(size, np.bool_), self.cuts, table)
            self._table.append((first, table))
        found: tuple[int, Ints] = self._table[0]
        return found

    def _text_cells(self, distinct: pa.Array[Any]) -> Ints:
        assert isinstance(self.cuts, pa.Array)
        if self.ordered:
            if not self._table:
                self._table.append(self.cuts.to_pylist())
            cuts = self._table[0]
            last = len(cuts)
            found = []
            for value in distinct.to_pylist():
                at = bisect_left(cuts, value)
                found.append(2 * at + 1 if at < last and cuts[at] == value else 2 * at)
            return np.array(found, np.int32)
        at_cut: Any = pc.index_in(distinct, value_set=self.cuts)
        indexes = at_cut.fill_null(-1).to_numpy(zero_copy_only=False)
        # What equals no cut may lie in any cell between them: no comparison asks which.
        return np.where(indexes < 0, 0, 2 * indexes + 1).astype(np.int32)
