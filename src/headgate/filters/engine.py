"""The filter engine: an index of many subscriptions of one stream, and a batch evaluated against it.

Work goes slice by slice of at most `SLICE` events. Within a slice every attribute's cells and every distinct text are
looked up once, whatever number of lanes and segments ask for them.

The lanes are made for scalars: two ranges on one attribute are one range. Where an attribute of the type ANY holds an
array they are not, so such events are told apart and evaluated by lanes of their own, compiled when the first one comes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headgate.columns import Column, Columns
from headgate.engine import Hits
from headgate.filters.compile import Lanes, Options, Where, compile_lanes
from headgate.filters.dense import Dense, support_bit
from headgate.filters.filing import PAIRS, Longs
from headgate.filters.kernels import WIDTH, count_roots, list_roots, run_program, set_masks
from headgate.filters.rows import Batch, Family, Ints, Keys, prepare
from headgate.language.ast import Path
from headgate.language.forms import Cut, FilledCuts
from headgate.predicates import vectors
from headgate.predicates.modes import defaults_of
from headgate.schema import Kind, Schema, Type

SLICE = 65_536
_BLOCK = WIDTH * 64
_STRING = Type(Kind.STRING)


Items = Iterable[tuple[Cut | FilledCuts, str]]
"""Filters, each a cut text and its missing-mode."""
ItemsOf = Callable[[NDArray[np.int64]], Items]
"""The filters of some slots."""


@dataclass(frozen=True)
class FilterIndex:
    """The compiled filters of one stream. Slots are numbered in the order the subscriptions were given."""

    schema: Schema
    lanes: Lanes
    _items: list[ItemsOf] = field(default_factory=list, repr=False, compare=False)

    def __len__(self) -> int:
        return len(self.lanes.where)

    @cached_property
    def needs(self) -> frozenset[Path]:
        """The attributes that evaluation reads."""
        found = set(self.lanes.lookup.needs)
        found.update(p for dense in self.lanes.dense for p in dense.paths)
        rows = [*(lane.rows for lane in self.lanes.sparse), *(dense.rows for dense in self.lanes.dense)]
        if any(len(r.of_family(Family.COMPLETE)[0]) for r in rows):
            found.update(a.path for a in self.schema)
        return frozenset(found)

    @cached_property
    def _defaults(self) -> Mapping[Path, object]:
        return defaults_of(self.schema)

    def bind(self, items: ItemsOf) -> None:
        """Says where the filters can be had again, should an event hold an array where nobody declared one."""
        self._items[:] = [items]

    @cached_property
    def _open(self) -> tuple[Path, ...]:
        """The attributes of the type ANY."""
        found = ((path, self.schema.get(path)) for path in self.needs)
        return tuple(path for path, attribute in found if attribute is None or attribute.type is None)

    @cached_property
    def _of_lists(self) -> FilterIndex:
        """The same filters for events with arrays in attributes of the type ANY."""
        (items,) = self._items
        return FilterIndex(
            self.schema, compile_lanes(items(np.arange(len(self))), self.schema, options=Options(lists=True))
        )

    def _lists(self, columns: Columns) -> NDArray[np.bool_] | None:
        """The events with such arrays."""
        found = None
        for path in self._open:
            column = columns.get(path)
            lists = None if column is None or column.any is None else column.any.lists()
            if lists is not None:
                found = lists if found is None else found | lists
        return found

    def _all_pairs(self, columns: Columns, counts: Longs | None) -> Longs:
        lists = self._lists(columns)
        if lists is None:
            return self._pairs(_Slice(self, columns), counts)
        found = []
        for index, chosen in ((self, ~lists), (self._of_lists, lists)):
            rows = np.flatnonzero(chosen)
            if len(rows):
                pairs = index._pairs(_Slice(index, columns.take(rows)), counts)
                pairs[:, 0] = rows[pairs[:, 0]]
                found.append(pairs)
        return _sorted(np.concatenate(found))

    def evaluate(self, columns: Columns) -> Hits:
        """Every (event, slot) that matches, sorted."""
        found: list[Longs] = []
        for first, part in _slices(columns):
            pairs = self._all_pairs(part, None)
            pairs[:, 0] += first
            found.append(pairs)
        pairs = np.concatenate(found) if found else np.zeros((0, 2), np.int64)
        return Hits(pairs[:, 0], pairs[:, 1].astype(np.int32))

    def count(self, columns: Columns) -> Longs:
        """How many events match each slot, without listing them."""
        counts = np.zeros(len(self), np.int64)
        for _, part in _slices(columns):
            pairs = self._all_pairs(part, counts)
            counts += np.bincount(pairs[:, 1], minlength=len(self))
        return counts

    def lane(self, slot: int) -> str:
        """Where a subscription is evaluated, and why there."""
        where = Where(self.lanes.where[slot])
        if where is Where.NEVER:
            return "nowhere: it can never match"
        share = float(self.lanes.selectivity[slot])
        names = {
            Where.DENSE: "dense program: filing it would not pay",
            Where.SPARSE: "filed under a key",
            Where.BOTH: "partly filed, partly dense",
        }
        return f"{names[where]}; its best key lets an estimated {share:.2%} of the events through"

    def stats(self) -> dict[str, Any]:
        """Counts of what the index is made of."""
        where = np.bincount(self.lanes.where, minlength=len(Where))
        lookup = self.lanes.lookup
        return {
            "subscriptions": {w.name.lower(): int(where[w]) for w in Where},
            "attributes": len(lookup.paths),
            "cuts": sum(len(c.cuts) for c in lookup.cells.values()),
            "text_tests": sum(map(len, lookup.tests.values())),
            "vector_atoms": len(lookup.vectors),
            "rows": sum(len(d.rows) for d in self.lanes.dense) + sum(len(x.rows) for x in self.lanes.sparse),
            "nodes": sum(len(d.program.nodes) for d in self.lanes.dense),
            "conjuncts": sum(len(x.single) + len(x.multiple) for x in self.lanes.sparse),
            "keys": sum(len(x.low) for x in self.lanes.sparse),
            "lanes": len(self.lanes.dense) + len(self.lanes.sparse),
            "bytes": nbytes(self),
        }

    def _pairs(self, part: _Slice, counts: Longs | None) -> Longs:
        """Sorted pairs; with `counts`, only of subscriptions in several parts, the rest being counted."""
        found = []
        for lane in self.lanes.sparse:
            found += lane.evaluate(part.batch(), counts)
        for dense in self.lanes.dense:
            found += list(_evaluate_dense(dense, part, counts))
        if not found:
            return np.zeros((0, 2), np.int64)
        return _sorted(np.concatenate(found))


def _sorted(pairs: Longs) -> Longs:
    """Each pair once, in order."""
    # Sorted by hand: np.unique goes through a hash table, in which codes like these collide, and takes ten times as long.
    codes = (pairs[:, 0] << 32) | pairs[:, 1]
    codes.sort()
    codes = codes[np.diff(codes, prepend=-1) != 0]
    return np.stack([codes >> 32, codes & 0xFFFFFFFF], axis=1)


class _Slice:
    """Some events, with what is looked up in them kept for all lanes."""

    def __init__(self, index: FilterIndex, columns: Columns) -> None:
        self._index = index
        self.columns = columns
        self._cells: dict[int, Ints] = {}
        self._texts: dict[int, tuple[Ints, Longs, Ints]] = {}
        self._vectors: dict[int, NDArray[np.bool_]] = {}

    def column(self, path: Path) -> Column:
        found = self.columns.get(path)
        if found is None:
            attribute = self._index.schema.get(path)
            kind = attribute.type if attribute is not None and attribute.type is not None else Type(Kind.BOOLEAN)
            return Column.missing(kind, self.columns.rows)
        return found

    def cells(self, attribute: int) -> Ints:
        found = self._cells.get(attribute)
        if found is None:
            cells = self._index.lanes.lookup.cells[attribute]
            found = self._cells[attribute] = cells.of(self.column(cells.path))
        return found

    def texts(self, attribute: int) -> tuple[Ints, Longs, Ints]:
        found = self._texts.get(attribute)
        if found is None:
            lookup = self._index.lanes.lookup
            column = self.column(lookup.paths[attribute])
            if lookup.cells[attribute].view:
                column = Column.missing(_STRING, len(column)) if column.any is None else column.any.view(Kind.STRING)
            codes, distinct = column.dictionary()
            found = self._texts[attribute] = (codes, *lookup.texts[attribute].hits(distinct))
        return found

    def vectors(self, numbers: Keys) -> NDArray[np.bool_]:
        lits = self._index.lanes.lookup.vectors
        new = [n for n in numbers.tolist() if n not in self._vectors]
        truths = vectors.evaluate([lits[n] for n in new], self.columns, self._index._defaults)
        self._vectors.update(zip(new, truths, strict=True))
        if not len(numbers):
            return np.zeros((0, self.columns.rows), np.bool_)
        return np.stack([self._vectors[n] for n in numbers.tolist()])

    def complete(self) -> NDArray[np.bool_]:
        return self._complete

    @cached_property
    def _complete(self) -> NDArray[np.bool_]:
        there = np.ones(self.columns.rows, np.bool_)
        for attribute in self._index.schema:
            there &= self.column(attribute.path).defined
        return there

    def batch(self, order: Longs | None = None) -> Batch:
        placed = np.zeros(0, np.int64) if order is None else order
        return Batch(self.columns.rows, placed, self.cells, self.texts, self.vectors, self.complete)


def _slices(columns: Columns) -> Iterator[tuple[int, Columns]]:
    if columns.rows <= SLICE:
        if columns.rows:
            yield 0, columns
        return
    for first in range(0, columns.rows, SLICE):
        yield first, columns.slice(first, min(first + SLICE, columns.rows))


def _evaluate_dense(dense: Dense, part: _Slice, counts: Longs | None) -> Iterator[Longs]:
    """Block by block of WIDTH words. Strict programs sort events by what they define, so that blocks can skip."""
    events, width, program = part.columns.rows, len(dense.rows), dense.program
    order, defined = _by_definition(dense, part)
    prepared = prepare(dense.rows, part.batch(order))
    values = np.zeros((width + len(program.nodes)) * WIDTH, np.uint64)
    masks = np.empty((len(dense.set_first) - 1) * WIDTH, np.uint64)
    for first in range(0, events, _BLOCK):
        count = min(_BLOCK, events - first)
        values[: width * WIDTH] = 0
        prepared.write(first // 64, first // 64 + -(-count // 64), values, WIDTH, 1)
        values[:WIDTH] = ~np.uint64(0)
        words, some = _definition(defined, first, count)
        set_masks(dense.set_first, dense.set_paths, words[WIDTH:], words[:WIDTH], masks)
        run_program(program.nodes, program.groups, program.supports, some, width, values)
        for roots, counted in ((dense.single, counts), (dense.multiple, None)):
            if not len(roots):
                continue
            if counted is not None:
                count_roots(roots.first, roots.edges, roots.slots, masks, values, counted)
                continue
            at = 0
            while at < len(roots):
                out = np.empty((PAIRS, 2), np.int64)
                at, filled = list_roots(roots.first, roots.edges, roots.slots, masks, values, at, first, out)
                pairs = out[:filled].copy()
                if len(order):
                    pairs[:, 0] = order[pairs[:, 0]]
                yield pairs


def _by_definition(dense: Dense, part: _Slice) -> tuple[Longs, NDArray[np.bool_]]:
    """Events in the order of the attributes they define, and for each strict attribute which of them do."""
    if not dense.paths:
        return np.zeros(0, np.int64), np.zeros((0, part.columns.rows), np.bool_)
    defined = np.stack([part.column(p).defined for p in dense.paths])
    order = np.lexsort(defined[::-1]).astype(np.int64)
    return order, defined[:, order]


def _definition(defined: NDArray[np.bool_], first: int, count: int) -> tuple[NDArray[np.uint64], Any]:
    """WIDTH words of the events there are, then of those that define each attribute; and the support bits in use."""
    block = np.zeros((len(defined) + 1, _BLOCK), np.bool_)
    block[0, :count] = True
    block[1:, :count] = defined[:, first : first + count]
    if not len(defined):
        return _words(block).ravel(), ~np.uint64(0)
    some = 0
    for i in np.flatnonzero(block[1:].any(axis=1)).tolist():
        some |= 1 << support_bit(i)
    return _words(block).ravel(), np.uint64(some)


def _words(truths: NDArray[np.bool_]) -> NDArray[np.uint64]:
    return np.packbits(truths, axis=1, bitorder="little").view(np.uint64)


def compile_filters(
    items: Items,
    schema: Schema,
    sample: Columns | None = None,
    options: Options | None = None,
) -> FilterIndex:
    """Compile the filters of one stream: each a cut text and its missing-mode."""
    return FilterIndex(schema, compile_lanes(items, schema, sample, options))


def nbytes(value: Any) -> int:
    """The bytes of all arrays in a value."""
    if isinstance(value, np.ndarray | pa.Array):
        return int(value.nbytes)
    if is_dataclass(value) and not isinstance(value, type):
        return sum(nbytes(getattr(value, f.name)) for f in fields(value))
    if isinstance(value, Mapping):
        return sum(map(nbytes, value.values()))
    return sum(map(nbytes, value)) if isinstance(value, tuple | list) else 0
