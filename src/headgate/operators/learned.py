"""What the scheduler is told of an index: the chance and cost of every predicate now, and the order of its slots.

Estimates of what was just asked are refreshed after every event; all of them, and the order of the chains, every
`REFRESH` events, because operators' pooled rates move the predicates that are seldom asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.operators.answer import ERROR, TRUE, Answer
from headgate.operators.index import OperatorIndex
from headgate.operators.kernels import Floats
from headgate.operators.registry import Registry
from headgate.operators.schedule import Scheduler
from headgate.operators.statistics import Prior, Statistics

REFRESH = 256


class Observed(Protocol):
    """A predicate that was asked."""

    @property
    def predicate(self) -> int: ...
    @property
    def answer(self) -> Answer: ...
    @property
    def milliseconds(self) -> float: ...


class Learned:
    def __init__(self, index: OperatorIndex, registry: Registry, statistics: Statistics, scheduler: Scheduler) -> None:
        self._index, self._statistics, self._scheduler = index, statistics, scheduler
        priors = [
            Prior() if p.graph is not None else Prior(registry[p.name].selectivity, registry[p.name].cost)
            for p in index.predicates
        ]
        self._rows = np.array(
            [statistics.number(str(p), p.name, prior) for p, prior in zip(index.predicates, priors, strict=True)],
            np.int64,
        )
        self._events = 0
        self._rank: NDArray[np.int64] | None = None
        self.chance: Floats = np.zeros(0)
        self.cost: Floats = np.zeros(0)
        self.refresh()

    def refresh(self) -> None:
        self.chance = self._statistics.chances(self._rows)
        self.cost = self._statistics.costs(self._rows)
        self._rank = self._scheduler.arrange(self._index.program, self.chance, self.cost)

    def arranged(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots in the order in which the scheduler wants to meet them."""
        return slots if self._rank is None else slots[np.argsort(self._rank[slots], kind="stable")]

    def observe(self, asked: Sequence[Observed]) -> None:
        """Take in what one event showed; failed calls say nothing about selectivity."""
        self._events += 1
        useful = [a for a in asked if a.answer.truth != ERROR]
        if useful:
            numbers = np.array([a.predicate for a in useful], np.int64)
            held = np.array([a.answer.truth == TRUE for a in useful], np.bool_)
            spent = np.array([a.milliseconds for a in useful], np.float64)
            rows = self._rows[numbers]
            self._statistics.observe(rows, held, spent)
            self.chance[numbers] = self._statistics.chances(rows)
            self.cost[numbers] = self._statistics.costs(rows)
        if self._events % REFRESH == 0:
            self.refresh()
