"""The events that a level works on: those of the batch, and older ones that some run has bound.

A run holds handles, row numbers of this memory, and not values, so that binding an event costs one number however wide
it is. A row is a few int64 cells: numbers and instants as they are, a DOUBLE as its bits, text and all else as a code
into a list of values. After a batch only the bound events stay; now and then all rows are compacted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Column, Columns
from headgate.events.any_values import of_objects
from headgate.language.ast import DUR
from headgate.schema import Instant, Kind, Path, Type
from headgate.sequences.tables import Bits, Ints

_PLAIN = {Kind.BIGINT, Kind.TIMESTAMP, Kind.BOOLEAN, Kind.DOUBLE}


@dataclass(frozen=True, eq=False)
class Lists:
    """A list of numbers for each event: those of event i are values[offsets[i]] to values[offsets[i + 1]]."""

    offsets: Ints
    values: Ints

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Lists:
        offsets = np.zeros(len(lists) + 1, np.int64)
        np.cumsum([len(found) for found in lists], out=offsets[1:])
        return cls(offsets, np.array([v for found in lists for v in found], np.int64))

    @property
    def events(self) -> Ints:
        """The event of each value."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def take(self, rows: NDArray[Any]) -> Lists:
        counts = np.diff(self.offsets)[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        inside = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        return Lists(offsets, self.values[np.repeat(self.offsets[rows], counts) + inside])


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Events of one stream with their times: `identity` is a stable number of each, `row` that in the input of the base
    stream number `source`; for a derived event those of the last event in it."""

    stream: str
    columns: Columns
    t0: Ints
    t1: Ints
    identity: NDArray[np.uint64]
    row: Ints
    source: Ints
    decided: Lists | None = None
    """The static predicates of the first level that hold, where they were evaluated before the events came here."""

    def __len__(self) -> int:
        return len(self.t1)

    def take(self, rows: NDArray[Any]) -> Arrivals:
        return replace(
            self,
            columns=self.columns.take(rows),
            t0=self.t0[rows],
            t1=self.t1[rows],
            identity=self.identity[rows],
            row=self.row[rows],
            source=self.source[rows],
            decided=None if self.decided is None else self.decided.take(rows),
        )

    def with_duration(self) -> Columns:
        """The columns with the length of each event, which a FILTER over one stream may ask."""
        length = Column(Type(Kind.BIGINT), np.ones(len(self), np.bool_), self.t1 - self.t0 + 1)
        return Columns(self.columns.stream, len(self), {**self.columns.columns, (DUR,): length}, self.columns.first)


class Memory:
    """`layouts` says which attributes of each stream are kept, and in which column."""

    def __init__(
        self, layouts: Sequence[dict[Path, int]], types: Sequence[dict[Path, Type | None]], texts: dict[str, int]
    ):
        self._layouts = layouts
        self._types = types
        self.width = max([len(layout) for layout in layouts], default=0) or 1
        self.size = 0
        self.settled = 0
        self._values: list[Any] = list(texts)
        self._codes: dict[Any, int] = dict(texts)
        self._literals = len(texts)
        self._room(1024)

    def _room(self, capacity: int) -> None:
        def grown(old: NDArray[Any] | None, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
            made = np.zeros(shape, dtype)
            if old is not None:
                made[: self.size] = old[: self.size]
            return made

        had = self.size > 0
        self.cells: Ints = grown(self.cells if had else None, (capacity, self.width), np.int64)
        self.defined: Bits = grown(self.defined if had else None, (capacity, self.width), np.uint8)
        self.t0: Ints = grown(self.t0 if had else None, (capacity,), np.int64)
        self.t1: Ints = grown(self.t1 if had else None, (capacity,), np.int64)
        self.stream: Ints = grown(self.stream if had else None, (capacity,), np.int64)
        self.source: Ints = grown(self.source if had else None, (capacity,), np.int64)
        self.row: Ints = grown(self.row if had else None, (capacity,), np.int64)
        self.identity: NDArray[np.uint64] = grown(self.identity if had else None, (capacity,), np.uint64)

    def append(self, arrivals: Iterable[tuple[int, Arrivals, Ints]]) -> None:
        """Enters events; each part has its stream's number and the places of its rows behind the present ones."""
        parts = list(arrivals)
        first, count = self.size, sum(len(a) for _, a, _ in parts)
        if first + count > len(self.t1):
            self._room(max(2 * len(self.t1), first + count))
        for stream, events, at in parts:
            rows = at + first
            self.t0[rows], self.t1[rows], self.stream[rows] = events.t0, events.t1, stream
            self.row[rows], self.source[rows], self.identity[rows] = events.row, events.source, events.identity
            self.defined[rows] = 0
            for path, column in self._layouts[stream].items():
                found = events.columns.get(path)
                if found is not None:
                    self.cells[rows, column] = self._encode(found, self._types[stream].get(path))
                    self.defined[rows, column] = found.defined
        self.size = first + count

    def _encode(self, column: Column, kind: Type | None) -> Ints:
        values = column.values
        if kind is not None and column.offsets is None and isinstance(values, np.ndarray):
            return values.view(np.int64) if values.dtype == np.float64 else values.astype(np.int64, copy=False)
        if kind is not None and column.offsets is None:
            codes, distinct = column.dictionary()
            known = np.fromiter((self.code(v) for v in distinct.to_pylist()), np.int64, len(distinct))
            return np.append(known, 0)[codes]
        return np.fromiter((self.code(column.value(i)) for i in range(len(column))), np.int64, len(column))

    @property
    def values(self) -> int:
        """How many texts and other values have a code."""
        return len(self._values)

    def listed(self) -> list[Any]:
        """The values, by code."""
        return self._values

    def code(self, value: Any) -> int:
        """The number that stands for a value; equal texts have one."""
        key = _key(value)
        found = self._codes.get(key)
        if found is None:
            found = self._codes[key] = len(self._values)
            self._values.append(value)
        return found

    def get(self, handle: int, path: Path) -> Any:
        """The Python value of an attribute of an event, None where missing."""
        stream = int(self.stream[handle])
        column = self._layouts[stream].get(path)
        if column is None or not self.defined[handle, column]:
            return None
        return self.decode(int(self.cells[handle, column]), self._types[stream].get(path))

    def decode(self, cell: int, kind: Type | None) -> Any:
        if kind is None or kind.array or kind.kind not in _PLAIN:
            value = self._values[cell]
            return list(value) if isinstance(value, tuple) else value
        if kind.kind is Kind.DOUBLE:
            return float(np.int64(cell).view(np.float64))
        return bool(cell) if kind.kind is Kind.BOOLEAN else Instant(cell) if kind.kind is Kind.TIMESTAMP else cell

    def gather(self, handles: Ints, stream: int, path: Path) -> tuple[NDArray[np.bool_], Ints]:
        """Definedness and cells of one attribute for many events."""
        column = self._layouts[stream].get(path)
        if column is None:
            return np.zeros(len(handles), np.bool_), np.zeros(len(handles), np.int64)
        return self.defined[handles, column].astype(np.bool_), self.cells[handles, column]

    def keep(self, first: int, kept: Ints) -> None:
        """Of the rows from `first` on only `kept` stay, moved together in their order."""
        end = first + len(kept)
        for array in (self.cells, self.defined, self.t0, self.t1, self.stream, self.source, self.row, self.identity):
            array[first:end] = array[kept]
        self.size = end
        self.settled = end

    def snapshot(self, handles: Ints) -> Memory:
        """A memory of these rows only, which later batches do not touch. Handle i is handles[i]."""
        made = copy(self)
        for name in ("cells", "defined", "t0", "t1", "stream", "source", "row", "identity"):
            setattr(made, name, getattr(self, name)[handles])
        made.size = len(handles)
        return made

    def forget_values(self) -> None:
        """Drops texts that no row mentions any more. Call it when the rows are only those that runs have bound."""
        used: dict[int, int] = {i: i for i in range(self._literals)}
        for stream, layout in enumerate(self._layouts):
            rows = np.flatnonzero(self.stream[: self.size] == stream)
            for path, column in layout.items():
                kind = self._types[stream].get(path)
                if kind is not None and not kind.array and kind.kind in _PLAIN:
                    continue
                there = rows[self.defined[rows, column] == 1]
                old = self.cells[there, column]
                for code in np.unique(old).tolist():
                    used.setdefault(code, len(used))
                self.cells[there, column] = np.fromiter((used[c] for c in old.tolist()), np.int64, len(old))
        self._values = [self._values[old] for old in used]
        self._codes = {_key(v): i for i, v in enumerate(self._values)}


def column_of(kind: Type | None, values: Sequence[Any]) -> Column:
    """A column of computed values; where nobody declared a type, of whatever they are."""
    if kind is None:
        return of_objects(values)
    if kind.kind is Kind.DOUBLE and not kind.array:
        values = [None if v is None else float(v) for v in values]
    return Column.of(kind, values)


def _key(value: Any) -> Any:
    """What is equal for equal values of one type; an array or object is known by how it is written."""
    if isinstance(value, str):
        return value
    return type(value).__name__, repr(value) if isinstance(value, list | tuple | dict) else value
