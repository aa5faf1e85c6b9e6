"""What the scheduler is told of an index: the chance and cost of every predicate now, which of them tell of others, and
the order of its slots.

Estimates of what was just asked are refreshed after every event; all of them, the pairs and the order of the chains
every `REFRESH` events, because operators' pooled rates move the predicates that are seldom asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.operators.answer import ERROR, TRUE, Answer
from headgate.operators.correlation import Links
from headgate.operators.index import OperatorIndex
from headgate.operators.kernels import ARGUMENT, KIND, LITERAL, Floats
from headgate.operators.program import Program
from headgate.operators.registry import Registry
from headgate.operators.schedule import Scheduler
from headgate.operators.statistics import Prior, Statistics

REFRESH = 256


@dataclass(frozen=True, slots=True)
class Asked:
    """One predicate that was asked on an event: for explanations and for measuring."""

    predicate: int
    answer: Answer
    called: bool
    """False where another predicate's call had the same key."""
    milliseconds: float
    decided: tuple[int, ...] = ()
    """The slots that were open before and are not after."""
    saved: int = 0
    """How many predicates nobody needs any more because of it."""


class Learned:
    def __init__(self, index: OperatorIndex, registry: Registry, statistics: Statistics, scheduler: Scheduler) -> None:
        self._index, self._statistics, self._scheduler = index, statistics, scheduler
        priors = [
            Prior() if p.graph is not None else Prior(registry[p.name].selectivity, registry[p.name].cost)
            for p in index.predicates
        ]
        self._names = [str(p) for p in index.predicates]
        self._rows = np.array(
            [
                statistics.number(name, p.name, prior)
                for name, p, prior in zip(self._names, index.predicates, priors, strict=True)
            ],
            np.int64,
        )
        self._popular = [self._names[t] for t in _by_use(index.program)] if scheduler.paired else []
        self._watched, self._changes = np.full(len(self._names), -1, np.int64), 0
        self.links: Links | None = None
        """What predicates tell of others, if the scheduler listens."""
        self._events = 0
        self._rank: NDArray[np.int64] | None = None
        self.chance: Floats = np.zeros(0)
        self.cost: Floats = np.zeros(0)
        self.refresh()

    def refresh(self) -> None:
        self.chance = self._statistics.chances(self._rows)
        self.cost = self._statistics.costs(self._rows)
        self._rank = self._scheduler.arrange(self._index.program, self.chance, self.cost)
        if self._popular:
            self._statistics.pairs.watch(self._popular)
            self._watch()

    def _watch(self) -> None:
        pairs = self._statistics.pairs
        self._watched, self._changes = pairs.slots(self._names), pairs.changes
        self.links = pairs.links(self._watched)

    def arranged(self, slots: NDArray[np.int64]) -> NDArray[np.int64]:
        """The slots in the order in which the scheduler wants to meet them."""
        return slots if self._rank is None else slots[np.argsort(self._rank[slots], kind="stable")]

    def observe(self, asked: Sequence[Asked]) -> None:
        """Take in what one event showed; failed calls say nothing about selectivity."""
        self._events += 1
        useful = [a for a in asked if a.answer.truth != ERROR]
        if useful:
            numbers = np.array([a.predicate for a in useful], np.int64)
            held = np.array([a.answer.truth == TRUE for a in useful], np.bool_)
            spent = np.array([a.milliseconds for a in useful], np.float64)
            rows = self._rows[numbers]
            self._statistics.observe(rows, held, spent)
            if self._popular:
                self._observe_pairs(numbers, held)
            self.chance[numbers] = self._statistics.chances(rows)
            self.cost[numbers] = self._statistics.costs(rows)
        if self._events % REFRESH == 0:
            self.refresh()

    def _observe_pairs(self, numbers: NDArray[np.int64], held: NDArray[np.bool_]) -> None:
        pairs = self._statistics.pairs
        if pairs.changes != self._changes:
            self._watch()
        # Predicates of two missing-modes may have one text, and so one place.
        slots, at = np.unique(self._watched[numbers], return_index=True)
        pairs.observe(slots[slots >= 0], held[at[slots >= 0]])


def _by_use(program: Program) -> list[int]:
    """Predicates, those in most literals first."""
    literals = program.nodes[program.nodes[:, KIND] == LITERAL, ARGUMENT]
    uses = np.bincount(literals, minlength=program.predicates)
    order: list[int] = np.argsort(-uses, kind="stable").tolist()
    return order
