"""Python objects to columns: a list of dicts, or the parsed lines of JSON.

Each path is collected with one list comprehension and its set of Python types decides how: `set(map(type, values))`
runs without a call of ours per value, and only a column of well-behaved types goes to Arrow as a whole. Without that
look Arrow would take True for 1.0, bytes for text and a set for an array.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.columns import Column, offsets_of
from headgate.events.any_values import of_objects
from headgate.events.outcome import Limits, Misfit, show, shown_text
from headgate.events.values import fit
from headgate.events.vectors import by_value, convert, list_column, without
from headgate.predicates.values import is_missing, within
from headgate.schema import Attribute, Kind, Path, Type, format_path

if TYPE_CHECKING:
    from headgate.columns import Mask

_WHOLE = frozenset({int})
_FLOAT = frozenset({float})
_TEXT = frozenset({str})
_NATURAL: dict[tuple[Kind, frozenset[type]], Any] = {
    (Kind.BOOLEAN, frozenset({bool})): pa.bool_(),
    (Kind.BIGINT, _WHOLE): pa.int64(),
    (Kind.BIGINT, _FLOAT): pa.float64(),
    (Kind.DOUBLE, _FLOAT): pa.float64(),
    (Kind.DOUBLE, _WHOLE): pa.float64(),
    (Kind.DOUBLE, _FLOAT | _WHOLE): pa.float64(),
    (Kind.STRING, _TEXT): pa.string(),
    (Kind.GRAPH, _TEXT): pa.string(),
    (Kind.TIMESTAMP, _WHOLE): pa.int64(),
    (Kind.TIMESTAMP, _TEXT): pa.string(),
    (Kind.TIMESTAMP, frozenset({datetime})): pa.timestamp("us", "UTC"),
    (Kind.BINARY, frozenset({bytes})): pa.binary(),
}
_LISTS = frozenset({list, tuple})


def object_column(values: Sequence[Any], type_: Type, limits: Limits) -> tuple[Column, Mask | None]:
    """One column of Python values, and the mask of those that do not fit."""
    kinds = frozenset(map(type, values)) - {NoneType}
    if not kinds:
        return Column.missing(type_, len(values)), None
    if type_.array and kinds <= _LISTS:
        defined = np.fromiter((v is not None for v in values), np.bool_, len(values))
        lists = values if defined.all() else [v if v is not None else () for v in values]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        elements, bad = object_column(list(chain.from_iterable(lists)), type_.element, limits)
        return list_column(type_, defined, offsets_of(lengths), elements, bad)
    natural = None if type_.array else _NATURAL.get((type_.kind, kinds))
    if natural is not None:
        try:
            array = pa.array(values, natural)
            if isinstance(array, pa.Array):
                return convert(array, type_, limits)
        except (pa.ArrowException, OverflowError, UnicodeError):
            pass
    return by_value(values, type_, lambda value: fit(value, type_, limits))


class Objects:
    """A batch of events as dicts. If they come from JSON, `lines` is their text and `change` what was made of it."""

    def __init__(
        self,
        events: Sequence[Mapping[Any, Any]],
        limits: Limits,
        lines: Sequence[bytes] | None = None,
        change: Callable[[Any], Any] | None = None,
    ) -> None:
        self.rows = len(events)
        self._events = events
        self._limits = limits
        self._lines = lines
        self._change = change or (lambda event: event)
        self._found: dict[Path, list[Any]] = {}
        self._blocked: dict[Path, Mask] = {}

    def text(self, row: int) -> str:
        return shown_text(self._lines[row]) if self._lines is not None else show(self._events[row])

    def column(self, attribute: Attribute) -> tuple[Column, Mask | None]:
        values, path = self._values(attribute.path), attribute.path
        if attribute.type is None:
            return of_objects(values, None if self._lines is None else lambda row: self._written(row, path)), None
        column, bad = object_column(values, attribute.type, self._limits)
        if self._lines is not None and attribute.type.kind in (Kind.BIGINT, Kind.DOUBLE):
            bad = self._rounded(column, bad, attribute)
            column = without(column, bad) if bad is not None else column
        blocked = self._blocked.get(attribute.path)
        if blocked is not None:
            bad = blocked if bad is None else bad | blocked
        return column, bad

    def misfit(self, row: int, attribute: Attribute) -> Misfit:
        """Why a row of a column is bad."""
        try:
            value = self._exact(row, attribute.path)
            assert attribute.type is not None
            fit(value, attribute.type, self._limits)
        except Misfit as problem:
            return problem
        return Misfit(f"{show(value)} is not a {attribute.type}")

    def typed(self, attribute: Attribute) -> bool:
        return False

    def _values(self, path: Path) -> list[Any]:
        if path not in self._found:
            self._found[path] = self._collect(path)
        return self._found[path]

    def _collect(self, path: Path) -> list[Any]:
        key = path[-1]
        if len(path) == 1:
            return [event.get(key) for event in self._events]
        parents = self._values(path[:-1])
        if frozenset(map(type, parents)) <= {dict, NoneType}:
            if path[:-1] in self._blocked:
                self._blocked[path] = self._blocked[path[:-1]]
            return [parent.get(key) if parent is not None else None for parent in parents]
        blocked = [not isinstance(p, Mapping) and not is_missing(p) for p in parents]
        above = self._blocked.get(path[:-1])
        self._blocked[path] = np.array(blocked, np.bool_) if above is None else np.array(blocked, np.bool_) | above
        return [within(parent, key) for parent in parents]

    def _written(self, row: int, path: Path) -> Any:
        """The value at a path as it was written, whatever it goes through."""
        try:
            return self._exact(row, ()) if not path else within(self._written(row, path[:-1]), path[-1])
        except Misfit:  # beyond what Python reads: as it was rounded
            return self._values(path)[row] if path else self._events[row]

    def _exact(self, row: int, path: Path) -> Any:
        """The value at a path; numbers beyond 64 bits as they were written, for orjson reads them as floats."""
        event: Any = self._events[row]
        if self._lines is not None:
            try:
                event = self._change(json.loads(self._lines[row]))
            except RecursionError:
                pass
            except ValueError:
                raise Misfit("it holds an integer of more than 4300 digits", "range") from None
        for depth, part in enumerate(path):
            if is_missing(event):
                return None
            if not isinstance(event, Mapping):
                above = format_path(path[:depth])
                raise Misfit(f"{above} is {show(event)}, not an object, so it has no {format_path(path[depth:])}")
            event = event.get(part)
        return event

    def _rounded(self, column: Column, bad: Mask | None, attribute: Attribute) -> Mask | None:
        """Rows whose number orjson may have rounded: look at the text again."""
        leaf = column.elements if column.elements is not None else column
        if leaf.type.kind is Kind.BIGINT:
            suspects = np.flatnonzero(leaf.values == -(2**63))
        else:
            suspects = np.flatnonzero(np.abs(leaf.values) >= 2.0**63)
        if not len(suspects):
            return bad
        assert attribute.type is not None
        if column.offsets is not None:
            suspects = np.unique(np.searchsorted(column.offsets, suspects, "right") - 1)
        found = np.zeros(self.rows, np.bool_) if bad is None else bad.copy()
        for row in suspects.tolist():
            try:
                fit(self._exact(row, attribute.path), attribute.type, self._limits)
            except Misfit:
                found[row] = True
        return found if found.any() else None
