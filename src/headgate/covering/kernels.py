"""Compiled loops over boxes and conflict tables: arrays in, arrays out. The plain twins: `headgate.oracle.covering`.

Boxes are rows of *pieces*: row r owns `axis/lo/hi[start[r]:start[r+1]]`, sorted by axis and lo; pieces of one axis
are a union of intervals of cells, an axis without pieces is not restricted. A conflict table is rows of *entries*:
intervals of one axis, of which a witness must lie in at least one for every row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Pieces(NamedTuple):
    """Rows of pieces. Handed to the kernels array by array: a tuple would cost more than many a decision."""

    start: Ints
    axis: Ints
    lo: Ints
    hi: Ints


class Entries(NamedTuple):
    """Rows of entries."""

    ptr: Ints
    axis: Ints
    lo: Ints
    hi: Ints


class Subject(NamedTuple):
    """The box s in numbers: its hull on every axis, and its holes."""

    lo: Ints
    hi: Ints
    hole_axis: Ints
    hole_lo: Ints
    hole_hi: Ints


@njit(cache=True)
def conflict_table(
    start: Ints,
    axis: Ints,
    lo: Ints,
    hi: Ints,
    rows: Ints,
    s_lo: Ints,
    s_hi: Ints,
    hole_axis: Ints,
    hole_lo: Ints,
    hole_hi: Ints,
    ignored: NDArray[np.bool_],
) -> tuple[int, Ints, Ints, Ints, Ints, Ints]:
    """The entries of every row that meets s, and the first row that covers s alone, or -1.

    A hole of s becomes a row of its own, numbered -1: a box that covers the hole and all else on the other axes. What
    rows ask of the axes that are ignored counts as fulfilled.
    """
    room = hole_axis.size * 2
    for r in rows:
        room += 2 * (start[r + 1] - start[r])
    kept = np.empty(rows.size + hole_axis.size, np.int64)
    ptr = np.zeros(rows.size + hole_axis.size + 1, np.int64)
    e_axis = np.empty(room, np.int64)
    e_lo = np.empty(room, np.int64)
    e_hi = np.empty(room, np.int64)
    n = 0
    used = 0
    covering = -1
    for r in rows:
        at = used
        apart = False
        p = start[r]
        end = start[r + 1]
        while p < end:
            j = axis[p]
            if ignored[j]:
                p += 1
                continue
            cursor = s_lo[j]
            last = s_hi[j]
            whole = True
            first = at
            while p < end and axis[p] == j:
                if hi[p] >= cursor and lo[p] <= last:
                    whole = False
                    if lo[p] > cursor:
                        e_axis[at] = j
                        e_lo[at] = cursor
                        e_hi[at] = lo[p] - 1
                        at += 1
                    cursor = hi[p] + 1
                p += 1
            if whole:
                apart = True
                break
            if cursor <= last:
                e_axis[at] = j
                e_lo[at] = cursor
                e_hi[at] = last
                at += 1
            if hole_axis.size > 0:
                at = _trim(e_axis, e_lo, e_hi, first, at, hole_axis, hole_lo, hole_hi)
        if apart:
            continue
        if at == used:
            covering = r
            break
        kept[n] = r
        n += 1
        used = at
        ptr[n] = used
    for h in range(hole_axis.size):
        j = hole_axis[h]
        kept[n] = -1
        n += 1
        e_axis[used] = j
        e_lo[used] = s_lo[j]
        e_hi[used] = hole_lo[h] - 1
        e_axis[used + 1] = j
        e_lo[used + 1] = hole_hi[h] + 1
        e_hi[used + 1] = s_hi[j]
        used += 2
        ptr[n] = used
    return covering, kept[:n], ptr[: n + 1], e_axis[:used], e_lo[:used], e_hi[:used]


@njit(cache=True)
def _trim(
    e_axis: Ints, e_lo: Ints, e_hi: Ints, first: int, end: int, hole_axis: Ints, hole_lo: Ints, hole_hi: Ints
) -> int:
    """Cut the holes of s off the ends of the entries [first, end); entries inside a hole go."""
    at = first
    for e in range(first, end):
        low, high = e_lo[e], e_hi[e]
        for h in range(hole_axis.size):
            if hole_axis[h] == e_axis[e]:
                if hole_lo[h] <= low <= hole_hi[h]:
                    low = hole_hi[h] + 1
        for h in range(hole_axis.size - 1, -1, -1):
            if hole_axis[h] == e_axis[e]:
                if hole_lo[h] <= high <= hole_hi[h]:
                    high = hole_lo[h] - 1
        if low <= high:
            e_axis[at] = e_axis[e]
            e_lo[at] = low
            e_hi[at] = high
            at += 1
    return at


@njit(cache=True)
def defined_counts(ptr: Ints, e_axis: Ints, e_lo: Ints, e_hi: Ints, s_lo: Ints, s_hi: Ints) -> Ints:
    """t of every row: how many choices of other rows it survives.

    The paper counts entries, of which another row's entry excludes at most one. That holds where all entries of an axis
    reach an end of s; on an axis with entries in the middle one entry may exclude several, so such an axis counts once.
    """
    simple = np.ones(s_lo.size, np.bool_)
    for e in range(e_axis.size):
        j = e_axis[e]
        if e_lo[e] != s_lo[j] and e_hi[e] != s_hi[j]:
            simple[j] = False
    counts = np.zeros(ptr.size - 1, np.int64)
    for r in range(ptr.size - 1):
        last = -1
        for e in range(ptr[r], ptr[r + 1]):
            if simple[e_axis[e]] or e_axis[e] != last:
                counts[r] += 1
            last = e_axis[e]
    return counts


@njit(cache=True)
def minimised(ptr: Ints, e_axis: Ints, e_lo: Ints, e_hi: Ints, counts: Ints, axes: int) -> Ints:
    """The rows that MCS removes, in the order of removal.

    A row goes if one of its entries meets every entry of every other row on its axis, or if its count reaches the
    number of rows that are left. Two rows decide the first question: that with the greatest lo, that with the least hi.
    """
    rows = ptr.size - 1
    removed = np.empty(rows, np.int64)
    gone = np.zeros(rows, np.bool_)
    n = 0
    top_lo = np.empty((axes, 2), np.int64)
    top_row = np.empty(axes, np.int64)
    low_hi = np.empty((axes, 2), np.int64)
    low_row = np.empty(axes, np.int64)
    least = np.iinfo(np.int64).min
    most = np.iinfo(np.int64).max
    changed = True
    while changed:
        changed = False
        top_lo[:] = least
        low_hi[:] = most
        top_row[:] = -1
        low_row[:] = -1
        for r in range(rows):
            if gone[r]:
                continue
            for e in range(ptr[r], ptr[r + 1]):
                j = e_axis[e]
                if top_row[j] == r:
                    top_lo[j, 0] = max(top_lo[j, 0], e_lo[e])
                elif e_lo[e] > top_lo[j, 0] or top_row[j] < 0:
                    top_lo[j, 1] = top_lo[j, 0]
                    top_lo[j, 0] = e_lo[e]
                    top_row[j] = r
                elif e_lo[e] > top_lo[j, 1]:
                    top_lo[j, 1] = e_lo[e]
                if low_row[j] == r:
                    low_hi[j, 0] = min(low_hi[j, 0], e_hi[e])
                elif e_hi[e] < low_hi[j, 0] or low_row[j] < 0:
                    low_hi[j, 1] = low_hi[j, 0]
                    low_hi[j, 0] = e_hi[e]
                    low_row[j] = r
                elif e_hi[e] < low_hi[j, 1]:
                    low_hi[j, 1] = e_hi[e]
        for r in range(rows):
            if gone[r]:
                continue
            out = counts[r] >= rows - n
            e = ptr[r]
            while not out and e < ptr[r + 1]:
                j = e_axis[e]
                other_lo = top_lo[j, 1] if top_row[j] == r else top_lo[j, 0]
                other_hi = low_hi[j, 1] if low_row[j] == r else low_hi[j, 0]
                out = other_lo <= e_hi[e] and other_hi >= e_lo[e]
                e += 1
            if out:
                gone[r] = True
                removed[n] = r
                n += 1
                changed = True
    return removed[:n]


@njit(cache=True)
def narrow(
    ptr: Ints, e_axis: Ints, e_lo: Ints, e_hi: Ints, rows: Ints, at_low: Ints, at_high: Ints, low: Ints, high: Ints
) -> bool:
    """Narrow the box [low, high] in place by one entry of each row, in order; False if some row has none that fits.

    An entry fits that meets the box [at_low, at_high]: that very one, or a witness point.
    """
    for r in rows:
        best = -1
        for e in range(ptr[r], ptr[r + 1]):
            j = e_axis[e]
            if e_lo[e] <= at_high[j] and e_hi[e] >= at_low[j]:
                best = e
                if e_lo[e] <= low[j] and e_hi[e] >= high[j]:
                    break
        if best < 0:
            return False
        j = e_axis[best]
        low[j] = max(low[j], e_lo[best])
        high[j] = min(high[j], e_hi[best])
    return True


@njit(cache=True)
def inside(start: Ints, axis: Ints, lo: Ints, hi: Ints, rows: Ints, outer: int) -> Ints:
    """Those of the rows whose box lies in the box of row `outer`."""
    found = np.empty(rows.size, np.int64)
    n = 0
    for r in rows:
        good = True
        q = start[outer]
        while q < start[outer + 1] and good:
            j = axis[q]
            stop = q
            while stop < start[outer + 1] and axis[stop] == j:
                stop += 1
            p = start[r]
            while p < start[r + 1] and axis[p] < j:
                p += 1
            if p == start[r + 1] or axis[p] != j:
                good = False
            while good and p < start[r + 1] and axis[p] == j:
                held = False
                for o in range(q, stop):
                    if lo[o] <= lo[p] and hi[p] <= hi[o]:
                        held = True
                good = held
                p += 1
            q = stop
        if good:
            found[n] = r
            n += 1
    return found[:n]


@njit(cache=True)
def sample(
    ptr: Ints,
    e_axis: Ints,
    e_lo: Ints,
    e_hi: Ints,
    edge_ptr: Ints,
    edges: Ints,
    weight: NDArray[np.float64],
    trials: int,
    seed: int,
) -> tuple[int, Ints]:
    """RSPC: up to `trials` random cells of s; the number of trials and the cell that no row contains, or an empty one.

    Axis j has the cells that start at `edges[edge_ptr[j]:edge_ptr[j+1]]`; `weight` holds their cumulative shares.
    """
    np.random.seed(seed)
    axes = edge_ptr.size - 1
    point = np.empty(axes, np.int64)
    for trial in range(trials):
        for j in range(axes):
            u = np.random.random()
            a, b = edge_ptr[j], edge_ptr[j + 1] - 1
            while a < b:
                middle = (a + b) // 2
                if weight[middle] > u:
                    b = middle
                else:
                    a = middle + 1
            point[j] = edges[a]
        held = False
        for r in range(ptr.size - 1):
            out = False
            for e in range(ptr[r], ptr[r + 1]):
                v = point[e_axis[e]]
                if e_lo[e] <= v <= e_hi[e]:
                    out = True
                    break
            if not out:
                held = True
                break
        if not held:
            return trial + 1, point
    return trials, point[:0]


@njit(cache=True)
def meeting(start: Ints, axis: Ints, lo: Ints, hi: Ints, rows: Ints, other: int) -> Ints:
    """Those of the rows whose box meets the box of row `other`."""
    found = np.empty(rows.size, np.int64)
    n = 0
    for r in rows:
        p, q = start[r], start[other]
        good = True
        while p < start[r + 1] and q < start[other + 1] and good:
            if axis[p] != axis[q]:
                if axis[p] < axis[q]:
                    p += 1
                else:
                    q += 1
                continue
            j = axis[p]
            good = False
            while p < start[r + 1] and axis[p] == j and q < start[other + 1] and axis[q] == j:
                if lo[p] <= hi[q] and lo[q] <= hi[p]:
                    good = True
                if hi[p] < hi[q]:
                    p += 1
                else:
                    q += 1
            while p < start[r + 1] and axis[p] == j:
                p += 1
            while q < start[other + 1] and axis[q] == j:
                q += 1
        if good:
            found[n] = r
            n += 1
    return found[:n]
