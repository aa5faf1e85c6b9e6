"""Which attributes are worth a lane of their own.

A lane sorts the batch by its key and builds the rows of all its literals in that order, however few conjuncts are filed
there; a book over a thousand attributes would pay that a thousand times. So every conjunct that would rather be filed
than join the dense program first says under which attribute and what that would save, and an attribute opens only if
what is offered to it pays for the lane. The conjuncts of the others look for a key among those that opened.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LANE, COLUMN = 3_000.0, 60.0
"""Costs a word of 64 events, in the units of `compile`: of a lane, and of each attribute its literals read. Together they put
the break-even where it was measured, between 1,000 and 2,000 conjuncts; the share of the second is an estimate."""


class Opening:
    def __init__(self, attributes: int) -> None:
        self._saved = np.zeros(attributes)
        self._reads: list[NDArray[np.int64]] = []

    def offer(self, attribute: Any, saved: Any, reads: Any) -> None:
        """Conjuncts, one a row: their key's attribute, what filing saves, and the attributes of all their literals."""
        np.add.at(self._saved, attribute, saved)
        if len(attribute):
            self._reads.append(np.unique((attribute[:, None] << 32) | reads))

    def pays(self) -> NDArray[np.bool_]:
        """For every attribute whether it opens."""
        reads = np.unique(np.concatenate([np.zeros(0, np.int64), *self._reads]))
        columns = np.bincount(reads >> 32, minlength=len(self._saved))
        opened: NDArray[np.bool_] = self._saved > LANE + COLUMN * columns
        return opened
