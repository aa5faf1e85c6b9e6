"""THE pipeline: events as columns, through one step after the other, to matches. No Spark here.

A step takes the work of one batch against one segment and hands it on. What a step decides it adds to `pairs` or
`counts`; what it cannot decide stays for the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.filters.engine import FilterIndex


@dataclass
class Work:
    """One batch of one stream against the indexes of one segment."""

    columns: Columns
    filters: FilterIndex | None
    listing: bool
    """Whether the pairs are wanted; if not, only the counts."""
    hits: Hits = field(default_factory=Hits.none)
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


def filters(work: Work) -> None:
    if work.filters is None:
        return
    if work.listing:
        work.hits = work.filters.evaluate(work.columns)
    else:
        work.counts = work.filters.count(work.columns)


Step = Callable[[Work], None]
STEPS: tuple[Step, ...] = (filters,)


def run(columns: Columns, indexes: Mapping[str, FilterIndex], *, listing: bool) -> Work:
    """All steps on a batch; slots in the result are those of the segment's index for the batch's stream."""
    work = Work(columns, indexes.get(columns.stream), listing)
    for step in STEPS:
        step(work)
    return work
