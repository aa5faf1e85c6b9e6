"""Rows: the literals of one lane, laid out so that a kernel builds all their bitsets in one pass over the events.

The rows of an attribute stand together: first those that hold up to a cell (`x < c`, `x <= c`, "is there"), then those
that hold from a cell on, then those of single cells and sets, then their complements. For an event in cell c a table
tells which row to mark; running ORs spread the marks. Rows that also hold for missing values are listed apart.

A row's key packs (family, attribute, kind, argument, holds if missing) into one number, so that literals are interned by
sorting numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.filters.kernels import build_rows, pack_rows
from headgate.predicates.cells import Cells

Keys = NDArray[np.int64]
Ints = NDArray[np.int32]
Words = NDArray[np.uint64]


class Family(IntEnum):
    CELL = 0
    TEXT = 1
    VECTOR = 2
    COMPLETE = 3


class Reach(IntEnum):
    """What a row of an attribute holds for: the cells up to one, from one on, those in a set, those outside it."""

    UPTO = 0
    FROM = 1
    MEMBER = 2
    OUTSIDE = 3


_ATTRIBUTE, _REACH, _ARGUMENT = 44, 42, 1
_MASK = (1 << (_REACH - _ARGUMENT)) - 1
SETS = 1 << 39
"""Arguments of MEMBER and OUTSIDE from here on are numbers of sets of cells rather than cells."""


ATTRIBUTES = 1 << 16
"""How many attributes a key can tell apart."""


def pack(family: int, attribute: Any, reach: int, argument: Any, missing: Any = 0) -> Any:
    """The key of a row, or an array of keys; arguments count from -1."""
    return (family << 60) | (attribute << _ATTRIBUTE) | (reach << _REACH) | ((argument + 1) << _ARGUMENT) | missing


def unpack(keys: Keys) -> tuple[Keys, Keys, Keys, Keys, Keys]:
    """(family, attribute, reach, argument, missing) of each key."""
    return (
        keys >> 60,
        (keys >> _ATTRIBUTE) & (ATTRIBUTES - 1),
        (keys >> _REACH) & 3,
        ((keys >> _ARGUMENT) & _MASK) - 1,
        keys & 1,
    )


@dataclass(frozen=True)
class Rows:
    """The literals of a lane. `offset` rows at the front are the lane's own."""

    keys: Keys
    offset: int
    cell_attributes: Ints
    sources: Ints
    tables: Ints
    member_rows: Ints
    outside_rows: Ints
    missing_rows: Ints
    text_attributes: Ints

    def __len__(self) -> int:
        return self.offset + len(self.keys)

    def find(self, keys: Keys) -> Ints:
        """The row of each key."""
        return (np.searchsorted(self.keys, keys) + self.offset).astype(np.int32)

    def of_family(self, family: Family) -> tuple[Ints, Keys]:
        """The rows of a family and their arguments."""
        families, _, _, arguments, _ = unpack(self.keys)
        at = np.flatnonzero(families == family)
        return (at + self.offset).astype(np.int32), arguments[at]


def make_rows(keys: Keys, offset: int, cells: Mapping[int, Cells], sets: list[Ints]) -> Rows:
    """Lay out distinct keys. `cells` are those of each attribute, `sets` the cells of each set."""
    keys = np.unique(keys)
    families, attributes, reaches, arguments, missing = unpack(keys)
    rows = np.arange(len(keys), dtype=np.int64) + offset
    by_cell = families == Family.CELL
    used = np.unique(attributes[by_cell]).astype(np.int32)
    builder = _Sources()
    for a in used.tolist():
        mine = by_cell & (attributes == a)
        builder.add(cells[a], rows[mine], reaches[mine], arguments[mine], missing[mine], sets)
    texts = np.unique(attributes[families == Family.TEXT]).astype(np.int32)
    return Rows(keys, offset, used, *builder.arrays(), texts)


class _Sources:
    """Collects the layout that `kernels.build_rows` reads, one source an attribute."""

    def __init__(self) -> None:
        self._sources: list[tuple[int, ...]] = []
        self._tables: list[Ints] = []
        self._member: list[Ints] = []
        self._outside: list[Ints] = []
        self._missing: list[Ints] = []
        self._cells = 0

    def add(self, of: Cells, rows: Any, reaches: Any, arguments: Any, missing: Any, sets: Any) -> None:
        upto, from_ = reaches == Reach.UPTO, reaches == Reach.FROM
        count = of.count
        cells = np.arange(count)
        table = np.zeros((count, 6), np.int32)
        table[:, 0] = np.searchsorted(arguments[upto], cells, "left")
        table[:, 1] = np.searchsorted(arguments[from_], cells, "right") - 1
        table[of.top + 1 :, 1] = -1  # a value of another kind is above nothing
        for column, reach, listed in ((2, Reach.MEMBER, self._member), (4, Reach.OUTSIDE, self._outside)):
            mine = reaches == reach
            at, row = _cells_of(rows[mine], arguments[mine], sets)
            offsets = np.searchsorted(at, np.arange(count + 1)) + sum(map(len, listed))
            table[:, column], table[:, column + 1] = offsets[:-1], offsets[1:]
            listed.append(row)
        outside = reaches == Reach.OUTSIDE
        before = sum(map(len, self._missing))
        holds = rows[missing == 1].astype(np.int32)
        self._missing.append(holds)
        self._sources.append(
            (
                self._cells, *_run(rows[upto]), *_run(rows[from_]), *_run(rows[outside]), before, before + len(holds)
            )
        )  # fmt: skip
        self._tables.append(table)
        self._cells += count

    def arrays(self) -> tuple[Ints, Ints, Ints, Ints, Ints]:
        member, outside, missing = (
            np.concatenate([np.zeros(0, np.int32), *x]) for x in (self._member, self._outside, self._missing)
        )
        sources = np.array(self._sources, np.int32).reshape(-1, 9)
        tables = np.concatenate([np.zeros((0, 6), np.int32), *self._tables])
        return sources, tables, member, outside, missing


def _run(rows: Any) -> tuple[int, int]:
    return (int(rows[0]), len(rows)) if len(rows) else (0, 0)


def _cells_of(rows: Any, arguments: Any, sets: list[Ints]) -> tuple[Any, Ints]:
    """(cell, row) pairs sorted by cell: of single cells and of sets; argument -1 is no cell at all."""
    single = (arguments >= 0) & (arguments < SETS)
    cells, owners = [arguments[single]], [rows[single]]
    for row, number in zip(rows[arguments >= SETS], arguments[arguments >= SETS] - SETS, strict=True):
        cells.append(sets[number].astype(np.int64))
        owners.append(np.full(len(sets[number]), row))
    at, owner = np.concatenate(cells), np.concatenate(owners)
    order = np.argsort(at, kind="stable")
    return at[order], owner[order].astype(np.int32)


@dataclass(frozen=True)
class Batch:
    """What rows are built from, in the order of the lane: cells by attribute, text hits, and truths by event."""

    events: int
    order: NDArray[np.int64]
    """The event at each place; empty if they stand as they came."""
    cells: Callable[[int], Ints]
    texts: Callable[[int], tuple[Ints, NDArray[np.int64], Ints]]
    """For a text attribute: the code of every event (-1 missing), and the tests that hold for each code, as CSR."""
    vectors: Callable[[Keys], NDArray[np.bool_]]
    complete: Callable[[], NDArray[np.bool_]]


@dataclass(frozen=True)
class Prepared:
    """The inputs of `build_rows` for one batch, gathered once, used block by block."""

    rows: Rows
    events: int
    order: NDArray[np.int64]
    cells: Ints
    texts: list[tuple[Ints, Ints, Ints, Ints, Ints, Ints]]
    truths: NDArray[np.bool_]
    truth_rows: Ints

    def write(self, first_word: int, last_word: int, out: Words, row_stride: int, word_stride: int) -> None:
        """Write the rows of some words; `out` holds zeros there."""
        r = self.rows
        where = (first_word, last_word, self.events, out, row_stride, word_stride)
        build_rows(self.cells, r.sources, r.tables, r.member_rows, r.outside_rows, r.missing_rows, *where)
        for cells, sources, tables, member, outside, missing in self.texts:
            build_rows(cells, sources, tables, member, outside, missing, *where)
        if len(self.truths):
            pack_rows(self.truths, self.order, self.truth_rows, *where)


def prepare(rows: Rows, batch: Batch) -> Prepared:
    def placed(values: Ints) -> Ints:
        return values[batch.order] if len(batch.order) else values

    cells = np.empty((len(rows.cell_attributes), batch.events), np.int32)
    for i, a in enumerate(rows.cell_attributes.tolist()):
        cells[i] = placed(batch.cells(a))
    texts = [_text_source(rows, a, batch, placed) for a in rows.text_attributes.tolist()]
    vector_rows, vectors = rows.of_family(Family.VECTOR)
    complete_rows, _ = rows.of_family(Family.COMPLETE)
    truths = batch.vectors(vectors)
    if len(complete_rows):
        truths = np.concatenate([truths, np.repeat(batch.complete()[None, :], len(complete_rows), axis=0)])
    truth_rows = np.concatenate([vector_rows, complete_rows])
    return Prepared(rows, batch.events, batch.order, cells, texts, truths, truth_rows)


def _text_source(
    rows: Rows, attribute: int, batch: Batch, placed: Callable[[Ints], Ints]
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    """A text attribute as a source whose cells are the codes of this batch."""
    families, attributes, reaches, arguments, missing = unpack(rows.keys)
    mine = np.flatnonzero((families == Family.TEXT) & (attributes == attribute))
    codes, offsets, tests = batch.texts(attribute)
    count = len(offsets) - 1
    code = np.repeat(np.arange(count), np.diff(offsets))
    table = np.zeros((count, 6), np.int32)
    table[:, 1] = -1
    lists: list[Ints] = []
    for column, reach in ((2, Reach.MEMBER), (4, Reach.OUTSIDE)):
        some = mine[reaches[mine] == reach]
        codes_hit, rows_hit = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for flag in (0, 1):
            chosen = some[missing[some] == flag]
            if len(chosen):
                at = np.minimum(np.searchsorted(arguments[chosen], tests), len(chosen) - 1)
                hit = arguments[chosen][at] == tests
                codes_hit.append(code[hit])
                rows_hit.append(chosen[at[hit]] + rows.offset)
        by_code, by_row = np.concatenate(codes_hit), np.concatenate(rows_hit)
        order = np.argsort(by_code, kind="stable")
        bounds = np.searchsorted(by_code[order], np.arange(count + 1))
        table[:, column], table[:, column + 1] = bounds[:-1], bounds[1:]
        lists.append(by_row[order].astype(np.int32))
    outside = mine[reaches[mine] == Reach.OUTSIDE] + rows.offset
    holds = (mine[missing[mine] == 1] + rows.offset).astype(np.int32)
    source = np.array([(0, 0, 0, 0, 0, *_run(outside), 0, len(holds))], np.int32)
    return placed(codes)[None, :], source, table, lists[0], lists[1], holds
