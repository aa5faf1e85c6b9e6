"""The cell of every value of a column: one search among sorted cuts, or one look-up in a table."""

from __future__ import annotations

from typing import Any

from numba import njit


@njit(cache=True)
def numeric_cells(values: Any, defined: Any, cuts: Any, out: Any) -> None:
    """2i + 1 for a value equal to cut i, 2i between cuts i - 1 and i; -1 where missing. NaN is above every cut."""
    last = len(cuts)
    for e in range(len(values)):
        if not defined[e]:
            out[e] = -1
            continue
        x = values[e]
        if x != x:
            out[e] = 2 * last
            continue
        low, size = 0, last
        while size > 0:
            half = size >> 1
            if cuts[low + half] < x:
                low += half + 1
                size -= half + 1
            else:
                size = half
        out[e] = 2 * low + 1 if low < last and cuts[low] == x else 2 * low


@njit(cache=True)
def table_cells(values: Any, defined: Any, first: Any, table: Any, out: Any) -> None:
    """The same for whole numbers whose cuts lie close together: `table[x - first]`, with both ends repeated."""
    last = first + (len(table) - 1)  # first + len(table) may lie beyond int64
    for e in range(len(values)):
        if defined[e]:
            x = values[e]
            if x < first:
                out[e] = table[0]
            elif x > last:
                out[e] = table[len(table) - 1]
            else:
                out[e] = table[x - first]
        else:
            out[e] = -1
