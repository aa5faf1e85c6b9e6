"""Operands of atoms as whole columns: what `predicates.values` says of two values, said of all rows at once.

Text never appears per row. A text column is codes into its distinct values, a function of it maps the distinct values,
and a test of it is a table over them that the codes look up. What stands where an operand is not known means nothing;
a caller combines every result with the `known` masks.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.columns import Column
from headgate.predicates import values

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

    @property
    def known(self) -> Any:
        return np.bool_(self.value is not None)


@dataclass(frozen=True, eq=False)
class Numbers:
    """BIGINT, TIMESTAMP and lengths of time as int64, DOUBLE as float64, BOOLEAN as bool."""

    data: NDArray[Any]
    known: Mask


@dataclass(frozen=True, eq=False)
class Words:
    """STRING or BINARY: codes into `distinct`, -1 where missing. A value may stand in `distinct` more than once."""

    codes: NDArray[np.int32]
    distinct: Sequence[Any]

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


Operand = Constant | Numbers | Words


def of_column(column: Column) -> Operand:
    """A scalar column."""
    if isinstance(column.values, np.ndarray):
        return Numbers(column.values, column.defined)
    codes, distinct = column.dictionary()
    return Words(codes, distinct.to_pylist())


def of_values(found: Sequence[Any]) -> Operand:
    """One row for each value; None is missing. For values that have no column, so their type is what they show."""
    kinds = {type(v) for v in found if v is not None}
    if not kinds:
        return Constant(None)
    if kinds & {str, bytes}:
        return appended(Words(np.empty(0, np.int32), []), found)
    dtype = np.float64 if float in kinds else np.bool_ if bool in kinds else np.int64
    return appended(Numbers(np.empty(0, dtype), np.empty(0, np.bool_)), found)


def appended(operand: Numbers | Words, more: Sequence[Any]) -> Numbers | Words:
    """The operand with further rows below."""
    there = np.fromiter((v is not None for v in more), np.bool_, len(more))
    if isinstance(operand, Words):
        codes = np.where(there, len(operand.distinct) - 1 + np.cumsum(there), -1).astype(np.int32)
        words = [*operand.distinct, *(v for v in more if v is not None)]
        return Words(np.concatenate([operand.codes, codes]), words)
    data = np.array([0 if v is None else v for v in more], operand.data.dtype)
    return Numbers(np.concatenate([operand.data, data]), np.concatenate([operand.known, there]))


def taken(operand: Operand, rows: NDArray[np.int64]) -> Operand:
    if isinstance(operand, Numbers):
        return Numbers(operand.data[rows], operand.known[rows])
    return Words(operand.codes[rows], operand.distinct) if isinstance(operand, Words) else operand


def filled(operand: Operand, default: Any) -> Operand:
    """With a default where the value is missing."""
    if isinstance(operand, Constant):
        return Constant(default) if operand.value is None else operand
    rows = np.where(operand.known, np.arange(len(operand.known)), len(operand.known))
    return taken(appended(operand, [default]), rows)


# -- comparison


def compared(op: str, a: Operand, b: Operand) -> Any:
    """`a op b` where both are known: a mask, or one truth if both are constants."""
    if isinstance(a, Constant):
        if isinstance(b, Constant):
            return np.bool_(bool(a.known & b.known) and values.compare(op, a.value, b.value))
        return compared(values.FLIPPED[op], b, a)
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


def _compare_words(op: str, a: Words, b: Operand) -> Any:
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
    if a.data.dtype.kind == "f":
        found = np.isin(a.data, [float(v) for v in items if isinstance(v, float) or _neighbours(v)[0] == v])
        return found | (a.data != a.data) if any(v != v for v in items) else found
    exact = [int(v) for v in items if (isinstance(v, int) or v.is_integer()) and int(v) in values.INT64]
    return np.isin(a.data, np.array(exact, np.int64))


# -- text tests


def tested(test: Callable[..., bool], *operands: Operand) -> Any:
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
