"""The sparse lane: conjuncts filed under the range of cells of one attribute, their key.

The events of a batch are sorted by that attribute's cell, so the events of a key are neighbours, and its conjuncts are
evaluated 64 events at a time on those words alone, the most selective literal first, stopping when none is left. An
equality is a range of one cell; an interval, or a prefix, is a wider one. Two equalities can make one key (a *pair*) where
a single one leaves too long a list.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headgate.columns import offsets_of
from headgate.filters.kernels import sparse_count, sparse_list
from headgate.filters.rows import Batch, Ints, Keys, Rows, prepare

Longs = NDArray[np.int64]
PAIRS = 1 << 20
"""Pairs (event, slot) written before the kernel is called again."""


@dataclass(frozen=True)
class Conjuncts:
    """Conjuncts in the order of their keys: CSR from key to conjunct and from conjunct to rows."""

    first: Longs
    starts: Longs
    literals: Ints
    slots: Ints

    def __len__(self) -> int:
        return len(self.slots)


@dataclass(frozen=True)
class Lane:
    """All conjuncts filed under one attribute, or one pair of attributes."""

    attributes: tuple[int, ...]
    pairs: Longs
    """For a pair of attributes: the sorted codes first << 32 | second of the pairs in use; they are its cells."""
    low: Longs
    high: Longs
    """The range of cells of each key."""
    rows: Rows
    single: Conjuncts
    """Conjuncts that are all of their subscription."""
    multiple: Conjuncts
    """Conjuncts of subscriptions that have several; an event may match more than one."""
    cells: int

    def order(self, cells: Callable[[int], Ints]) -> tuple[Longs, Longs]:
        """Events sorted by cell, those without one left out, and where each cell begins."""
        if len(self.attributes) == 1:
            codes = cells(self.attributes[0])
        else:
            codes = _pair_cells(cells(self.attributes[0]), cells(self.attributes[1]), self.pairs)
        return _sorted(codes, self.cells)

    def ranges(self, starts: Longs) -> Longs:
        """(key, begin, end) of the keys that have events."""
        begin, end = starts[self.low], starts[self.high + 1]
        live = np.flatnonzero(end > begin)
        return np.stack([live, begin[live], end[live]], axis=1)

    def evaluate(self, batch: Batch, counts: Longs | None) -> list[Longs]:
        """Count single conjuncts into `counts`, or list them; multiple ones are always listed, with repeats."""
        order, starts = self.order(batch.cells)
        ranges = self.ranges(starts)
        if not len(ranges):
            return []
        placed = Batch(len(order), order, batch.cells, batch.texts, batch.vectors, batch.complete)
        width = len(self.rows)
        words = -(-len(order) // 64)
        bits = np.zeros(words * width, np.uint64)
        prepare(self.rows, placed).write(0, words, bits, 1, width)
        found: list[Longs] = []
        for conjuncts, counted in ((self.single, counts), (self.multiple, None)):
            if not len(conjuncts):
                continue
            tables = (conjuncts.first, conjuncts.starts, conjuncts.literals, conjuncts.slots)
            if counted is not None:
                sparse_count(ranges, *tables, width, bits, counted)
                continue
            resume = np.zeros(3, np.int64)
            while resume[0] >= 0:
                out = np.empty((PAIRS, 2), np.int64)
                filled = sparse_list(ranges, *tables, width, bits, order, resume, out)
                found.append(out[:filled])
        return found


@njit(cache=True)
def _sorted(codes: Ints, count: int) -> tuple[Longs, Longs]:
    """A counting sort: the events of each cell together, in their order; missing ones left out."""
    starts = np.zeros(count + 1, np.int64)
    for c in codes:
        if c >= 0:
            starts[c + 1] += 1
    for c in range(count):
        starts[c + 1] += starts[c]
    order = np.empty(starts[count], np.int64)
    place = starts[:-1].copy()
    for e in range(len(codes)):
        c = codes[e]
        if c >= 0:
            order[place[c]] = e
            place[c] += 1
    return order, starts


@njit(cache=True)
def _pair_cells(first: Ints, second: Ints, pairs: Longs) -> Ints:
    """The number of each event's pair, -1 if no conjunct asks for it."""
    out = np.empty(len(first), np.int32)
    for e in range(len(first)):
        out[e] = -1
        if first[e] >= 0 and second[e] >= 0:
            wanted = (np.int64(first[e]) << 32) | np.int64(second[e])
            at = np.searchsorted(pairs, wanted)
            if at < len(pairs) and pairs[at] == wanted:
                out[e] = at
    return out


def make_conjuncts(key_of: Longs, keys: int, lengths: Longs, literals: Ints, slots: Ints) -> Conjuncts:
    """Conjuncts given in any order, `literals` one after the other; sorted here by key."""
    order = np.argsort(key_of, kind="stable")
    starts = offsets_of(lengths)
    taken = lengths[order]
    new_starts = offsets_of(taken)
    at = np.repeat(starts[:-1][order] - new_starts[:-1], taken) + np.arange(new_starts[-1])
    first = np.searchsorted(key_of[order], np.arange(keys + 1)).astype(np.int64)
    return Conjuncts(first, new_starts, literals[at], slots[order].astype(np.int32))


def distinct_ranges(low: Keys, high: Keys) -> tuple[Longs, Longs, Longs]:
    """The distinct (low, high) and, for each given one, which it is."""
    codes = (low << 32) | high
    unique, inverse = np.unique(codes, return_inverse=True)
    return unique >> 32, unique & 0xFFFFFFFF, inverse.astype(np.int64)
