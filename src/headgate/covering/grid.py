"""Cuts to numbers: every dimension in use becomes an axis, every cut on it a whole number, in order.

The cells between cuts are then intervals of whole numbers, which is all the kernels know. Missing is the cell 0,
before all values. Numbers are handed out with room between them, so that a newcomer's cuts fit without touching those
who are there; when the room is used up the axis is numbered anew and `Rows` translates itself.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.covering.kernels import Pieces
from headgate.covering.portion import Portion
from headgate.covering.space import Box, Dimension
from headgate.predicates.domain import BOTTOM, TOP, Cut

Ints = NDArray[np.int64]
Piece = tuple[int, int, int]
"""Axis, first and last number."""
Renumbered = Callable[[Ints, Ints], None]
"""Is told the old and the new numbers of an axis."""
NULL = 0
FIRST = 1
END = 1 << 60


class Axis:
    """The cuts of one dimension with their numbers."""

    def __init__(self, dimension: Dimension, renumbered: Renumbered) -> None:
        self.dimension = dimension
        self.cuts: list[Cut] = [BOTTOM, TOP]
        self.numbers: list[int] = [FIRST, END]
        self._renumbered = renumbered

    @property
    def low(self) -> int:
        return NULL if self.dimension.nullable else FIRST

    def number(self, cut: Cut) -> int:
        at = bisect_left(self.cuts, cut)
        if self.cuts[at] != cut:
            if self.numbers[at] - self.numbers[at - 1] < 2:
                self._renumber()
            self.cuts.insert(at, cut)
            self.numbers.insert(at, (self.numbers[at - 1] + self.numbers[at]) // 2)
        return self.numbers[at]

    def _renumber(self) -> None:
        old = np.array([NULL, *self.numbers], np.int64)
        step = (END - FIRST) // (len(self.numbers) - 1)
        self.numbers = [FIRST + i * step for i in range(len(self.numbers) - 1)] + [END]
        self._renumbered(old, np.array([NULL, *self.numbers], np.int64))

    def intervals(self, portion: Portion) -> list[tuple[int, int]]:
        for span in portion.spans:  # number all cuts first: a renumbering must not come between two of them
            for cut in span:
                self.number(cut)
        found = [(NULL, NULL)] if portion.missing and self.dimension.nullable else []
        for span in portion.spans:
            low, high = self.number(span[0]), self.number(span[1]) - 1
            if found and found[-1][1] + 1 == low:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
        return found

    def value(self, number: int) -> Any:
        """A value of the cell that a number is in; None for missing."""
        if number == NULL:
            return None
        at = bisect_left(self.numbers, number + 1)
        return self.dimension.domain.pick(self.cuts[at - 1], self.cuts[at])


class Grid:
    """The axes, by dimension."""

    def __init__(self) -> None:
        self.axes: list[Axis] = []
        self.renumbered: Callable[[int, Ints, Ints], None] = lambda axis, old, new: None
        self._index: dict[Dimension, int] = {}
        self._low = np.zeros(16, np.int64)
        self._opaque = np.zeros(16, np.bool_)

    def axis(self, dimension: Dimension) -> int:
        at = self._index.get(dimension)
        if at is None:
            at = self._index[dimension] = len(self.axes)
            self.axes.append(Axis(dimension, lambda old, new: self.renumbered(at, old, new)))
            if at == len(self._low):
                self._low, self._opaque = np.resize(self._low, 2 * at), np.resize(self._opaque, 2 * at)
            self._low[at] = self.axes[at].low
            self._opaque[at] = dimension.path is None
        return at

    @property
    def low(self) -> Ints:
        """The least number of every axis."""
        return self._low[: len(self.axes)]

    @property
    def opaque(self) -> NDArray[np.bool_]:
        """Which axes belong to dimensions that are not concrete."""
        return self._opaque[: len(self.axes)]

    def number(self, boxes: Iterable[Box]) -> None:
        """Number all cuts of some boxes, so that taking their pieces afterwards moves nothing."""
        for box in boxes:
            self.pieces(box)

    def pieces(self, box: Box) -> list[Piece]:
        """A box in numbers, sorted by axis."""
        by_axis = sorted(((self.axis(d), d) for d in box), key=itemgetter(0))
        return [(at, low, high) for at, d in by_axis for low, high in self.axes[at].intervals(box[d])]

    def event(self, point: Mapping[int, int]) -> dict[str, Any]:
        """The event at a point, nested by path: what is missing is None."""
        event: dict[str, Any] = {}
        for at, number in sorted(point.items()):
            path = self.axes[at].dimension.path
            if path is None:
                continue
            inner = event
            for part in path[:-1]:
                inner = inner.setdefault(part, {})
            inner[path[-1]] = self.axes[at].value(number)
        return event


class Rows:
    """Boxes as rows of pieces, growing at the end; a removed row leaves a gap until enough of them are gone."""

    def __init__(self, grid: Grid, boxes: Iterable[Box] = ()) -> None:
        self.grid = grid
        self._start = np.zeros(64, np.int64)
        self._axis = np.empty(256, np.int64)
        self._lo = np.empty(256, np.int64)
        self._hi = np.empty(256, np.int64)
        self.count = 0
        grid.renumbered = self._translate
        for box in boxes:
            self.append(grid.pieces(box))

    def arrays(self) -> Pieces:
        """As the kernels take them."""
        used = self._start[self.count]
        return Pieces(self._start[: self.count + 1], self._axis[:used], self._lo[:used], self._hi[:used])

    def append(self, pieces: Iterable[Piece]) -> int:
        """Add a box; its row number."""
        pieces = list(pieces)
        at = int(self._start[self.count])
        if at + len(pieces) > self._axis.size:
            room = max(2 * self._axis.size, at + len(pieces))
            self._axis, self._lo, self._hi = (np.resize(a, room) for a in (self._axis, self._lo, self._hi))
        if self.count + 1 == self._start.size:
            self._start = np.resize(self._start, 2 * self._start.size)
        for i, (axis, low, high) in enumerate(pieces, at):
            self._axis[i], self._lo[i], self._hi[i] = axis, low, high
        self.count += 1
        self._start[self.count] = at + len(pieces)
        return self.count - 1

    def keep(self, rows: Ints) -> None:
        """Drop all rows but these, which are numbered anew in their order."""
        start, axis, lo, hi = self.arrays()
        sizes = start[rows + 1] - start[rows]
        taken = np.repeat(start[rows], sizes) + np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        self._axis, self._lo, self._hi = axis[taken].copy(), lo[taken].copy(), hi[taken].copy()
        self._start = np.zeros(max(64, len(rows) + 1), np.int64)
        self._start[1 : len(rows) + 1] = np.cumsum(sizes)
        self.count = len(rows)

    def _translate(self, at: int, old: Ints, new: Ints) -> None:
        used = int(self._start[self.count])
        here = np.flatnonzero(self._axis[:used] == at)
        self._lo[here] = new[np.searchsorted(old, self._lo[here])]
        self._hi[here] = new[np.searchsorted(old, self._hi[here] + 1)] - 1
