"""The conflict table: s on one side, the boxes that might cover it on the other (the paper's definition 2).

A row is a box that meets s; its *entries* are what it leaves uncovered of s: intervals on one axis each. s is covered
unless some point lies in an entry of every row. The paper's entries reach from a bound of the row to a bound of s.
Ours may also lie in the middle (`x <> 5` leaves a point, a finite set leaves gaps): as intervals on a line that meet
in pairs meet all together, the corollaries and MCS stay sound, which for sets as entries they would not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.columns import offsets_of
from headgate.covering import kernels
from headgate.covering.grid import END, Grid, Piece, Rows
from headgate.covering.kernels import Entries, Subject

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Table:
    """`rows` are row numbers, -1 for a hole of s; axes are numbered anew, `axes` gives their numbers in the grid."""

    rows: Ints
    entries: Entries
    s_lo: Ints
    s_hi: Ints
    axes: Ints

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, kept: Ints) -> Table:
        """The table of some of the rows, in the order given."""
        old = self.entries
        sizes = old.ptr[kept + 1] - old.ptr[kept]
        ptr = offsets_of(sizes)
        taken = np.repeat(old.ptr[kept] - ptr[:-1], sizes) + np.arange(ptr[-1])
        entries = Entries(ptr, old.axis[taken], old.lo[taken], old.hi[taken])
        return Table(self.rows[kept], entries, self.s_lo, self.s_hi, self.axes)


def subject(pieces: Sequence[Piece], grid: Grid) -> Subject:
    lo = grid.low.copy()
    hi = np.full(len(grid.axes), END - 1, np.int64)
    holes: list[Piece] = []
    last = -1
    for axis, low, high in pieces:
        if axis == last:
            holes.append((axis, int(hi[axis]) + 1, low - 1))
        else:
            lo[axis] = low
        hi[axis] = high
        last = axis
    columns = np.array(holes, np.int64).reshape(-1, 3).T.copy()
    return Subject(lo, hi, columns[0], columns[1], columns[2])


def conflicts(rows: Rows, among: Ints, s: Subject, ignored: NDArray[np.bool_]) -> int | Table:
    """The table of s against some rows; or, by corollary 1, the row that covers s alone.

    On an ignored axis every row is taken to cover s.
    """
    covering, kept, *arrays = kernels.conflict_table(*rows.arrays(), among, *s, ignored)
    if covering >= 0:
        return int(covering)
    ptr, axis, lo, hi = arrays
    axes, local = np.unique(axis, return_inverse=True)
    return Table(kept, Entries(ptr, local.astype(np.int64), lo, hi), s.lo[axes], s.hi[axes], axes)


def certainly_not(counts: Ints) -> bool:
    """Corollary 3: with the counts in order, the j-th is at least j; then a witness can be put together row by row."""
    return bool(np.all(np.sort(counts) >= np.arange(1, len(counts) + 1)))


def counts(table: Table) -> Ints:
    """The t of the rows: how many choices made for other rows a row survives at least."""
    return kernels.defined_counts(*table.entries, table.s_lo, table.s_hi)


def minimise(table: Table, counts: Ints) -> tuple[Table, Ints]:
    """MCS: the table of the rows that matter, and the rows removed, in order."""
    removed = kernels.minimised(*table.entries, counts, len(table.axes))
    kept = np.setdiff1d(np.arange(len(table)), removed, assume_unique=True)
    return (table if len(removed) == 0 else table.take(kept)), removed


def polyhedron(table: Table, point: Ints) -> tuple[Ints, Ints]:
    """The polyhedron witness (definition 3) around a point witness: one entry of each row.

    Rows that MCS removed fit any such box, though not any point.
    """
    low, high = table.s_lo.copy(), table.s_hi.copy()
    kernels.narrow(*table.entries, np.arange(len(table)), point, point, low, high)
    return low, high


def extended(table: Table, order: Ints, low: Ints, high: Ints) -> None:
    """Narrow a polyhedron witness by one entry of each of some rows, in place. There is one: they were redundant."""
    if not kernels.narrow(*table.entries, order, low, high, low, high):
        raise AssertionError("a row that was redundant has no entry left")
