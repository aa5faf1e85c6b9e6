"""THE pipeline: events as columns, through one step after the other, to matches. No Spark here.

A step takes the work of one batch against one segment and hands it on: filters first, then what waits for graphs and
operators. Sequences have state and cross streams; a session moves them once the stateless steps are done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.covering.gates import GatedIndex
from headgate.engine import Hits
from headgate.filters.engine import FilterIndex
from headgate.match.residual import Failed, LateIndex


@dataclass
class Work:
    """One batch of one stream against the indexes of one segment."""

    columns: Columns
    filters: FilterIndex | GatedIndex | None
    late: LateIndex | None
    listing: bool
    """Whether the pairs of the filters are wanted; if not, only their counts."""
    hits: Hits = field(default_factory=Hits.none)
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    late_hits: Hits = field(default_factory=Hits.none)
    failed: list[Failed] = field(default_factory=list)


def filters(work: Work) -> None:
    if work.filters is None:
        return
    if work.listing:
        work.hits = work.filters.evaluate(work.columns)
    else:
        work.counts = work.filters.count(work.columns)


def late(work: Work) -> None:
    """Graphs, then operators, for what the filters left open."""
    if work.late is not None:
        work.late_hits, work.failed = work.late.evaluate(work.columns)


Step = Callable[[Work], None]
STEPS: tuple[Step, ...] = (filters, late)


def run(columns: Columns, filters: FilterIndex | GatedIndex | None, late: LateIndex | None, *, listing: bool) -> Work:
    """All stateless steps on a batch; slots in the result are those of the two indexes."""
    work = Work(columns, filters, late, listing)
    for step in STEPS:
        step(work)
    return work
