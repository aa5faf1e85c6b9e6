"""RSPC: guess points of s; one that no row contains settles the matter, and if none is found s is *probably* covered.

The paper's algorithm 1. A point is guessed by guessing a cell on every axis, uniformly or by the cells' widths. The
error after d guesses is at most (1 - rho)^d where rho is the share of the smallest witness. The paper bounds it by
the distances between the bounds of s and those of the rows; that overlooks the gap between two rows, which may be far
smaller, so the bound here takes, per axis, the smallest positive overlap of two entries. Both can be had, to compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.columns import offsets_of
from headgate.covering import kernels
from headgate.covering.table import Table

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Width = Callable[[int, Ints], Floats]
"""For an axis of the grid and the numbers of n+1 edges, the widths of the n cells between them."""


@dataclass(frozen=True, slots=True)
class Cells:
    """Per axis the numbers where cells start, and the end of the last; the cells' shares of s on that axis."""

    edges: tuple[Ints, ...]
    shares: tuple[Floats, ...]


def cells_of(table: Table, width: Width | None = None) -> Cells:
    edges, shares = [], []
    for j, axis in enumerate(table.axes):
        here = table.entries.axis == j
        ends = np.array([table.s_lo[j], table.s_hi[j] + 1])
        edge = np.unique(np.concatenate([ends, table.entries.lo[here], table.entries.hi[here] + 1]))
        widths = np.ones(len(edge) - 1) if width is None else width(int(axis), edge)
        edges.append(edge)
        shares.append(widths / widths.sum())
    return Cells(tuple(edges), tuple(shares))


def witness_share(table: Table, cells: Cells, *, printed: bool = False) -> float:
    """A lower bound on the share of s that a witness fills, if there is one; `printed` as in the paper."""
    rho = 1.0
    for j, (edge, share) in enumerate(zip(cells.edges, cells.shares, strict=True)):
        here = table.entries.axis == j
        if not here.any():
            continue
        start = np.searchsorted(edge, table.entries.lo[here])
        end = np.searchsorted(edge, table.entries.hi[here] + 1)
        upto = np.concatenate([[0.0], np.cumsum(share)])
        if not printed:
            # The intersection of entries runs from the start of one to the end of one: for each start the next end.
            ends = np.unique(end)
            end = ends[np.searchsorted(ends, start, side="right")]
        rho *= float(np.min(upto[end] - upto[start]))
    return rho


def trials_for(rho: float, error: float) -> float:
    """How many guesses bring the error down to `error`; may be infinite."""
    if rho >= 1.0:
        return 1.0
    return math.log(error) / math.log1p(-rho) if rho > 0.0 else math.inf


@dataclass(frozen=True, slots=True)
class Guess:
    """`point` is a witness, by axis of the table, or None; then the chance of an error is at most `error`."""

    point: Ints | None
    trials: int
    error: float


def guess(table: Table, cells: Cells, rho: float, error: float, limit: int, seed: int) -> Guess:
    """Guess as often as `error` asks, but at most `limit` times."""
    trials = min(math.ceil(trials_for(rho, error)), limit) if rho > 0.0 else limit
    ptr = offsets_of([len(s) for s in cells.shares])
    starts = np.concatenate([edge[:-1] for edge in cells.edges])
    weight = np.concatenate([np.cumsum(share) for share in cells.shares])
    done, point = kernels.sample(*table.entries, ptr, starts, weight, trials, seed)
    if len(point):
        return Guess(point, int(done), 0.0)
    return Guess(None, int(done), math.exp(trials * math.log1p(-rho)) if rho < 1.0 else 0.0)
