"""How many events a literal lets through: from a sample where one is given, else from the book itself.

Without data, the cells of an attribute are taken as equally likely. That says that a constant which few subscriptions
lie beyond is selective, and that an equality on a key with many constants is very selective, which is what keys are.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.filters.rows import SETS, Family, Ints, Keys, Reach, unpack
from headgate.predicates.cells import Cells

Shares = NDArray[np.float64]
_DEFAULT = 0.5
_PRESENT = 0.9
"""The prior that an attribute is there."""


class Selectivity:
    """Cumulated shares of the cells of every attribute."""

    def __init__(self, cells: Mapping[int, Cells], sets: list[Ints], sample: Columns | None = None) -> None:
        self._sets = sets
        self.tops = np.zeros(max(cells, default=-1) + 1, np.int64)
        self._base = np.zeros(len(self.tops), np.int64)
        cumulated = [np.zeros(0)]
        at = 0
        for a, c in sorted(cells.items()):
            shares = _shares(c, sample)
            self.tops[a] = c.top
            self._base[a] = at
            cumulated.append(np.concatenate([[0.0], np.cumsum(shares)]))
            at += c.count + 1
        self._cumulated = np.concatenate(cumulated)

    def of_range(self, attribute: Ints, low: Keys, high: Keys) -> Shares:
        """The share of events whose attribute lies in the cells low to high."""
        base = self._base[attribute]
        found: Shares = np.maximum(0.0, self._cumulated[base + high + 1] - self._cumulated[base + low])
        return found

    def of_keys(self, keys: Keys) -> Shares:
        """The share of events for which each row holds."""
        families, attributes, reaches, arguments, _ = unpack(keys)
        found = np.full(len(keys), _DEFAULT)
        cell = families == Family.CELL
        a = np.where(cell, attributes, 0)
        top = self.tops[a] if len(self.tops) else np.zeros(len(keys), np.int64)
        single = cell & (arguments < SETS)
        low = np.where(reaches == Reach.UPTO, 0, np.minimum(np.maximum(arguments, 0), top))
        high = np.where(reaches == Reach.FROM, top, low)
        high = np.where(reaches == Reach.UPTO, arguments, high)
        if single.any():
            found[single] = self.of_range(a[single], low[single], high[single])
        for i in np.flatnonzero(cell & (arguments >= SETS)):
            inside = self._sets[arguments[i] - SETS].astype(np.int64)
            found[i] = self.of_range(np.full(len(inside), a[i]), inside, inside).sum()
        nothing = cell & (arguments < 0)
        found[nothing] = 1 - _PRESENT
        return np.where(cell & (reaches == Reach.OUTSIDE), 1.0 - found, found)


def _shares(cells: Cells, sample: Columns | None) -> Shares:
    column = sample.get(cells.path) if sample is not None else None
    if column is None or not len(column):
        return np.full(cells.count, _PRESENT / (cells.top + 1))
    seen = cells.of(column)
    counts = np.bincount(seen[seen >= 0], minlength=cells.count)
    # One event more, spread out: what a sample did not show may still come.
    return np.asarray((counts + 1.0 / cells.count) / (len(column) + 1.0), np.float64)
