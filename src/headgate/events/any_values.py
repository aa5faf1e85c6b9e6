"""Values of the type ANY in a batch: one column for each kind that some condition asks for, made when it is asked for.

A kind is named by the type that holds its values; numbers are DOUBLE, and the few that no double holds exactly (large
integers, decimals) stand beside them. A column in which all values are of one kind, which is nearly every column, goes
to Arrow as a whole, as a column of a declared type does. Nothing here is an error: a value of another kind is `other`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.columns import Column, any_column, offsets_of
from headgate.events.outcome import DEFAULT_LIMITS
from headgate.events.vectors import convert
from headgate.predicates import values
from headgate.predicates.values import is_missing, plain, view_of
from headgate.schema import Kind, Type, is_bytes, is_list, is_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from headgate.columns import AnyValues, Array, Ints, Mask

Exact = Callable[[int], Any]
"""The value of a row as it was written, where reading it may have rounded a number."""
_TYPES: dict[Kind, frozenset[type]] = {
    Kind.BOOLEAN: frozenset({bool}),
    Kind.DOUBLE: frozenset({int, float}),
    Kind.STRING: frozenset({str}),
    Kind.TIMESTAMP: frozenset({datetime}),
    Kind.BINARY: frozenset({bytes}),
}
"""The Python types of which Arrow takes a whole column, if it has no others."""
_ARROW: dict[Kind, Any] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.BINARY: pa.binary(),
}
_SCALARS = frozenset[type]().union(*_TYPES.values())
_NO_LIMITS = replace(DEFAULT_LIMITS, field_bytes=2**62)
_ROUNDED = 2.0**63


def of_objects(found: Sequence[Any], exact: Exact | None = None) -> Column:
    """The column of Python values. `exact` is asked for numbers that may have been rounded."""
    types = frozenset(map(type, found)) - {NoneType}
    if types <= _SCALARS | {list, dict}:
        defined = np.fromiter((v is not None for v in found), np.bool_, len(found))
    else:
        defined = np.fromiter((not is_missing(v) for v in found), np.bool_, len(found))
    return any_column(defined, Objects(found, types, defined, exact))


def of_arrow(array: Array) -> Column:
    return any_column(array.is_valid().to_numpy(zero_copy_only=False), Arrow(array))


class Objects:
    """Python values."""

    def __init__(self, found: Sequence[Any], types: frozenset[type], defined: Mask, exact: Exact | None = None) -> None:
        self._values = found
        self._types = types
        self._defined = defined
        self._exact = exact
        self._views: dict[Kind, Column] = {}
        self._plain: list[Any] | None = None

    def value(self, row: int) -> object:
        found = self._values[row]
        return None if is_missing(found) else found.item() if isinstance(found, np.generic) else found

    def has(self, kind: Kind) -> bool:
        if self._types <= _SCALARS:
            return not self._types.isdisjoint(_TYPES[kind])
        return any(view_of(v) is kind for v in self._all())

    def lists(self) -> Mask | None:
        if self._types <= _SCALARS:
            return None
        found = np.fromiter((isinstance(v, list) for v in self._all()), np.bool_, len(self._values))
        return found if found.any() else None

    def elements(self) -> tuple[Ints, Column]:
        parts = [values.flat(v) if isinstance(v, list) else [] if v is None else [v] for v in self._all()]
        return offsets_of([len(p) for p in parts]), of_objects([e for part in parts for e in part])

    def take(self, rows: NDArray[Any]) -> AnyValues:
        chosen = rows.tolist()
        exact = self._exact
        return Objects(
            [self._values[row] for row in chosen],
            self._types,
            self._defined[rows],
            None if exact is None else lambda row: exact(chosen[row]),
        )

    def slice(self, start: int, stop: int) -> AnyValues:
        exact = self._exact
        moved = None if exact is None else lambda row: exact(row + start)
        return Objects(self._values[start:stop], self._types, self._defined[start:stop], moved)

    def view(self, kind: Kind) -> Column:
        found = self._views.get(kind)
        if found is None:
            found = self._views[kind] = self._view(kind)
        return found

    def _view(self, kind: Kind) -> Column:
        if self._types <= _TYPES[kind] and kind in _ARROW:
            found = self._whole(kind)
            if found is not None:
                return found
        if self._types <= _SCALARS and self._types.isdisjoint(_TYPES[kind]):
            return replace(Column.missing(Type(kind), len(self._values)), other=self._defined)
        mine = [v if view_of(v) is kind else None for v in self._all()]
        there = np.fromiter((v is not None for v in mine), np.bool_, len(mine))
        exact: dict[int, Any] = {}
        if kind is Kind.DOUBLE:
            for row in np.flatnonzero(there).tolist():
                mine[row] = _double(mine[row], row, exact)
        return replace(Column.of(Type(kind), mine), other=self._defined & ~there, exact=exact)

    def _whole(self, kind: Kind) -> Column | None:
        """The view of a column that holds nothing else; None if some value needs a closer look."""
        try:
            array = pa.array(self._values, _ARROW[kind])
        except (pa.ArrowException, OverflowError, UnicodeError):
            return None
        column, _ = convert(array, Type(kind), _NO_LIMITS)
        if kind is Kind.DOUBLE and self._exact is not None and np.any(np.abs(column.values) >= _ROUNDED):
            return None
        return column

    def _all(self) -> list[Any]:
        """All values in their plain form, numbers as they were written."""
        if self._plain is None:
            self._plain = list(map(plain, self._values))
            if self._exact is not None:
                for row, value in enumerate(self._plain):
                    if _may_be_rounded(value):
                        self._plain[row] = plain(self._exact(row))
        return self._plain


def _may_be_rounded(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_may_be_rounded, values.flat(value)))
    return type(value) is float and abs(value) >= _ROUNDED


def _double(value: Any, row: int, exact: dict[int, Any]) -> float:
    """The double nearest to a number; one that is not exact is noted."""
    try:
        near = float(value)
    except OverflowError:
        near = float("inf") if value > 0 else float("-inf")
    if not isinstance(value, float) and near != value:
        exact[row] = value
    return near


class Arrow:
    """The values of an Arrow array, which are of one kind."""

    def __init__(self, array: Array) -> None:
        self._array = array
        self._kind = _arrow_kind(array.type)
        self._views: dict[Kind, Column] = {}
        self._objects: Objects | None = None

    def value(self, row: int) -> object:
        found: Any = self._array[row]
        try:
            return found.as_py()
        except (ValueError, OverflowError):  # text that is not UTF-8, years beyond Python's
            return values.OPAQUE

    def has(self, kind: Kind) -> bool:
        return self._kind is kind

    def lists(self) -> Mask | None:
        if not is_list(self._array.type):
            return None
        found: Mask = self._array.is_valid().to_numpy(zero_copy_only=False)
        return found if found.any() else None

    def elements(self) -> tuple[Ints, Column]:
        return self._as_objects().elements()

    def take(self, rows: NDArray[Any]) -> AnyValues:
        return Arrow(self._array.take(pa.array(rows)))

    def slice(self, start: int, stop: int) -> AnyValues:
        return Arrow(self._array[start:stop])

    def view(self, kind: Kind) -> Column:
        found = self._views.get(kind)
        if found is None:
            found = self._views[kind] = self._view(kind)
        return found

    def _view(self, kind: Kind) -> Column:
        if self._kind is not kind:
            defined = self._array.is_valid().to_numpy(zero_copy_only=False)
            return replace(Column.missing(Type(kind), len(defined)), other=defined)
        if kind is Kind.DOUBLE and not pa.types.is_floating(self._array.type):
            return self._whole_numbers()
        column, bad = convert(self._array, Type(kind), _NO_LIMITS)
        return column if bad is None else replace(column, other=bad)

    def _whole_numbers(self) -> Column:
        if pa.types.is_integer(self._array.type):
            try:
                return convert(self._array.cast(pa.float64()), Type(Kind.DOUBLE), _NO_LIMITS)[0]
            except pa.ArrowInvalid:  # beyond 2**53
                pass
        return self._as_objects().view(Kind.DOUBLE)

    def _as_objects(self) -> Objects:
        if self._objects is None:
            found = [self.value(row) for row in range(len(self._array))]
            types = frozenset(map(type, found)) - {NoneType}
            self._objects = Objects(found, types, self._array.is_valid().to_numpy(zero_copy_only=False))
        return self._objects


def _arrow_kind(kind: Any) -> Kind | None:
    t = pa.types
    tests: tuple[tuple[Callable[[Any], bool], Kind], ...] = (
        (t.is_boolean, Kind.BOOLEAN),
        (t.is_integer, Kind.DOUBLE),
        (t.is_floating, Kind.DOUBLE),
        (t.is_decimal, Kind.DOUBLE),
        (is_text, Kind.STRING),
        (t.is_timestamp, Kind.TIMESTAMP),
        (t.is_date, Kind.TIMESTAMP),
        (is_bytes, Kind.BINARY),
    )
    if t.is_dictionary(kind):
        return _arrow_kind(kind.value_type)
    return next((ours for holds, ours in tests if holds(kind)), None)
