"""Operands of atoms as whole columns: what `predicates.values` says of two values, said of all rows at once.

Text never appears per row. A text column is codes into its distinct values, a function of it maps the distinct values,
and a test of it is a table over them that the codes look up. What stands where an operand is not known means nothing;
a caller combines every result with the `known` masks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np

from headgate.columns import Column
from headgate.predicates import values
from headgate.schema import Instant, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Mask = NDArray[np.bool_]

_COMPARE: dict[str, Callable[..., Any]] = {
    "=": np.equal,
    "<>": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, eq=False)
class Constant:
    """One value for every row; None is missing."""

    value: Any
    other: ClassVar[Any] = None

    @property
    def known(self) -> Any:
        return np.bool_(self.value is not None)


@dataclass(frozen=True, eq=False)
class Numbers:
    """BIGINT, TIMESTAMP and lengths of time as int64, DOUBLE as float64, BOOLEAN as bool. Of a view of numbers, `exact`
    has those that no double holds, by row; of any view, `other` says where there is a value of another kind."""

    data: NDArray[Any]
    known: Mask
    instant: bool = False
    exact: Mapping[int, Any] = field(default_factory=dict)
    other: Any = None


@dataclass(frozen=True, eq=False)
class Words:
    """STRING or BINARY: codes into `distinct`, -1 where missing. A value may stand in `distinct` more than once."""

    codes: NDArray[np.int32]
    distinct: Sequence[Any]
    other: Any = None

    @property
    def known(self) -> Mask:
        return self.codes >= 0

    @cached_property
    def order(self) -> tuple[list[Any], NDArray[np.int64]]:
        """The distinct values sorted, and the place of each among them."""
        rows = sorted(range(len(self.distinct)), key=self.distinct.__getitem__)
        ranks = np.empty(len(rows), np.int64)
        ranks[rows] = np.arange(len(rows))
        return [self.distinct[i] for i in rows], ranks

    def look_up(self, table: Any, dtype: Any = np.bool_) -> NDArray[Any]:
        """Per row the entry of a table over the distinct values. The last entry is what -1 reads."""
        padded = np.zeros(len(self.distinct) + 1, dtype)
        padded[:-1] = table
        return padded[self.codes]


Typed = Constant | Numbers | Words


class ByRows(Exception):
    """Columns cannot compute this exactly for the values of this batch; one row at a time can."""


@dataclass(frozen=True, eq=False)
class Mixed:
    """An attribute of the type ANY. `rows` are the rows that it is read at; one past the end is a missing value."""

    column: Column
    rows: NDArray[np.int64] | None = None
    other: ClassVar[Any] = None
    _views: dict[Kind, Typed] = field(default_factory=dict, repr=False)

    @property
    def known(self) -> Mask:
        defined = self.column.defined
        return defined if self.rows is None else np.append(defined, False)[self.rows]

    def has(self, kind: Kind) -> bool:
        assert self.column.any is not None
        return self.column.any.has(kind)

    def of_kind(self, kind: Kind) -> Typed:
        """Its values of one kind."""
        found = self._views.get(kind)
        if found is None:
            assert self.column.any is not None
            view = of_column(self.column.any.view(kind))
            assert isinstance(view, Numbers | Words)
            found = self._views[kind] = view if self.rows is None else taken(appended(view, [None]), self.rows)
        return found


Operand = Typed | Mixed


def of_column(column: Column) -> Operand:
    """A scalar column."""
    if column.any is not None:
        return Mixed(column)
    if isinstance(column.values, np.ndarray):
        instant = column.type.kind is Kind.TIMESTAMP
        return Numbers(column.values, column.defined, instant, column.exact, column.other)
    codes, distinct = column.dictionary()
    return Words(codes, distinct.to_pylist(), column.other)


def kind_of(operand: Typed) -> Kind | None:
    """The kind of an operand's values, named by the type of a view; None for NULL."""
    if isinstance(operand, Words):
        return Kind.BINARY if operand.distinct and isinstance(operand.distinct[0], bytes) else Kind.STRING
    if isinstance(operand, Numbers):
        return Kind.TIMESTAMP if operand.instant else Kind.BOOLEAN if operand.data.dtype.kind == "b" else Kind.DOUBLE
    return values.view_of(operand.value)


def as_kind(operand: Operand, kind: Kind) -> Typed:
    """The values of one kind; missing where all are of another."""
    if isinstance(operand, Mixed):
        return operand.of_kind(kind)
    return operand if kind_of(operand) in (None, kind) else Constant(None)


def of_values(found: Sequence[Any]) -> Typed:
    """One row for each value; None is missing. For values that have no column, so their type is what they show."""
    kinds = {type(v) for v in found if v is not None}
    if not kinds:
        return Constant(None)
    if kinds & {str, bytes}:
        return appended(Words(np.empty(0, np.int32), []), found)
    dtype = np.float64 if float in kinds else np.bool_ if bool in kinds else np.int64
    return appended(Numbers(np.empty(0, dtype), np.empty(0, np.bool_), Instant in kinds), found)


def appended(operand: Numbers | Words, more: Sequence[Any]) -> Numbers | Words:
    """The operand with further rows below."""
    there = np.fromiter((v is not None for v in more), np.bool_, len(more))
    if isinstance(operand, Words):
        codes = np.where(there, len(operand.distinct) - 1 + np.cumsum(there), -1).astype(np.int32)
        words = [*operand.distinct, *(v for v in more if v is not None)]
        return Words(np.concatenate([operand.codes, codes]), words, _extended(operand.other, len(more)))
    data = np.array([0 if v is None else v for v in more], operand.data.dtype)
    known = np.concatenate([operand.known, there])
    return replace(
        operand, data=np.concatenate([operand.data, data]), known=known, other=_extended(operand.other, len(more))
    )


def _extended(other: Any, more: int) -> Any:
    return None if other is None else np.append(other, np.zeros(more, np.bool_))


@overload
def taken(operand: Mixed, rows: NDArray[np.int64]) -> Mixed: ...
@overload
def taken(operand: Typed, rows: NDArray[np.int64]) -> Typed: ...
def taken(operand: Operand, rows: NDArray[np.int64]) -> Operand:
    if isinstance(operand, Constant):
        return operand
    if isinstance(operand, Mixed):
        return Mixed(operand.column, rows if operand.rows is None else operand.rows[rows])
    other = None if operand.other is None else operand.other[rows]
    if isinstance(operand, Words):
        return replace(operand, codes=operand.codes[rows], other=other)
    exact = {new: operand.exact[old] for new, old in enumerate(rows.tolist()) if old in operand.exact}
    return replace(operand, data=operand.data[rows], known=operand.known[rows], exact=exact, other=other)


def filled(operand: Typed, default: Any) -> Typed:
    """With a default where the value is missing."""
    if isinstance(operand, Constant):
        return Constant(default) if operand.value is None else operand
    rows = np.where(operand.known, np.arange(len(operand.known)), len(operand.known))
    return taken(appended(operand, [default]), rows)


# -- comparison


def compared(op: str, a: Typed, b: Typed) -> Any:
    """`a op b` where both are known: a mask, or one truth if both are constants."""
    holds = _compared(op, a, b)
    exact = [o.exact for o in (a, b) if isinstance(o, Numbers) and o.exact]
    if exact:
        holds = np.array(np.broadcast_to(holds, np.broadcast(a.known, b.known).shape))
        for row in {row for found in exact for row in found}:
            if np.ndim(a.known) == 0 or a.known[row]:
                pair = _at(a, row), _at(b, row)
                holds[row] = None not in pair and values.compare(op, *pair)
    return holds


def _at(operand: Typed, row: int) -> Any:
    """The number of one row."""
    if isinstance(operand, Constant):
        return operand.value
    assert isinstance(operand, Numbers)
    return operand.exact.get(row, operand.data[row].item())


def _compared(op: str, a: Typed, b: Typed) -> Any:
    if isinstance(a, Constant):
        if isinstance(b, Constant):
            return np.bool_(bool(a.known & b.known) and values.compare(op, a.value, b.value))
        return _compared(values.FLIPPED[op], b, a)
    if isinstance(b, Constant) and b.value is None:
        return np.False_
    if isinstance(a, Words):
        return _compare_words(op, a, b)
    assert not isinstance(b, Words)
    x, y = a.data, b.data if isinstance(b, Numbers) else b.value
    if isinstance(y, int) and not isinstance(y, bool):
        if x.dtype.kind == "f":
            low, high = _neighbours(y)
            return _ordered(op, x < high, (x == low) & (low == high), ~(x <= low))
        if y not in values.INT64:
            return np.full(len(x), values.compare(op, 0, y))
    y = np.asarray(y)
    whole = (x.dtype.kind != "f", y.dtype.kind != "f")
    if all(whole):
        return _COMPARE[op](x, y)
    if whole[0]:
        return _compare_exactly(op, x, y)
    if whole[1]:
        return _compare_exactly(values.FLIPPED[op], y, x)
    return _ordered(op, _below(x, y), (x == y) | ((x != x) & (y != y)), _below(y, x))


def _compare_words(op: str, a: Words, b: Typed) -> Any:
    if isinstance(b, Words):
        place = {word: i for i, word in enumerate(sorted({*a.distinct, *b.distinct}))}
        ranks = (w.look_up([place[word] for word in w.distinct], np.int64) for w in (a, b))
        return _COMPARE[op](*ranks)
    assert isinstance(b, Constant)
    words, at = a.order
    below, above = at < bisect_left(words, b.value), at >= bisect_right(words, b.value)
    return a.look_up(_ordered(op, below, ~(below | above), above))


def _ordered(op: str, less: Any, equal: Any, more: Any) -> Any:
    match op:
        case "=":
            return equal
        case "<>":
            return ~equal
        case "<":
            return less
        case "<=":
            return ~more
        case ">":
            return more
        case ">=":
            return ~less
    raise AssertionError(op)


def _below(x: NDArray[Any], y: NDArray[Any]) -> Any:
    """Order of DOUBLE with NaN on top."""
    return ~(x >= y) & (x == x)


def _neighbours(whole: int) -> tuple[float, float]:
    """The greatest double at or below a whole number and the least at or above it."""
    try:
        near = float(whole)
    except OverflowError:
        near = math.inf if whole > 0 else -math.inf
    if near == whole:
        return near, near
    return (math.nextafter(near, -math.inf), near) if near > whole else (near, math.nextafter(near, math.inf))


def _compare_exactly(op: str, whole: NDArray[Any], double: NDArray[Any]) -> Any:
    """int64 against float64 by value: first the whole part, which is exact as int64, then the fraction."""
    inside = (double >= -(2.0**63)) & (double < 2.0**63)
    low = double < -(2.0**63)
    near = np.where(inside, double, 0.0)
    cut = np.trunc(near).astype(np.int64)
    rest = near - cut
    less = np.where(inside, (whole < cut) | ((whole == cut) & (rest > 0)), ~low)
    more = np.where(inside, (whole > cut) | ((whole == cut) & (rest < 0)), low)
    return _ordered(op, less, ~(less | more), more)


def member(a: Numbers | Words, items: Sequence[Any]) -> Any:
    """`a IN items`, none of which is None."""
    if isinstance(a, Words):
        wanted = set(items)
        return a.look_up([word in wanted for word in a.distinct])
    if a.data.dtype.kind == "b":
        return np.isin(a.data, [v for v in items if isinstance(v, bool)])
    if a.exact:
        return reduce(np.logical_or, (compared("=", a, Constant(item)) for item in items))
    if a.data.dtype.kind == "f":
        found = np.isin(a.data, [float(v) for v in items if isinstance(v, float) or _neighbours(v)[0] == v])
        return found | (a.data != a.data) if any(v != v for v in items) else found
    exact = [int(v) for v in items if (isinstance(v, int) or v.is_integer()) and int(v) in values.INT64]
    return np.isin(a.data, np.array(exact, np.int64))


# -- text tests


def tested(test: Callable[..., bool], *operands: Typed) -> Any:
    """A test of one or two operands where they are known: once for each distinct value, or pair of values."""
    if any(isinstance(o, Constant) and o.value is None for o in operands):
        return np.False_
    columns = [o for o in operands if not isinstance(o, Constant)]
    if not columns:
        return np.bool_(test(*(o.value for o in operands if isinstance(o, Constant))))
    first = columns[0]
    if isinstance(first, Numbers):
        return first.data.astype(np.bool_)
    if len(columns) == 1:
        if len(operands) == 1:
            return first.look_up([test(word) for word in first.distinct])
        left, right = operands
        if isinstance(right, Constant):
            return first.look_up([test(word, right.value) for word in first.distinct])
        assert isinstance(left, Constant)
        return first.look_up([test(left.value, word) for word in first.distinct])
    second = columns[1]
    assert isinstance(second, Words)
    wide = len(second.distinct) + 1
    pairs, which = np.unique((first.codes + 1).astype(np.int64) * wide + (second.codes + 1), return_inverse=True)
    held = [
        i >= wide and i % wide > 0 and test(first.distinct[i // wide - 1], second.distinct[i % wide - 1])
        for i in pairs.tolist()
    ]
    return np.array(held, np.bool_)[which]
