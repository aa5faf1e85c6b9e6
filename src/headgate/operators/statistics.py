"""What is learned of predicates while they run: how often they hold and what they cost, with decay.

Each observation weighs a little more than the one before it, so selectivities that drift are followed. A predicate that
has not been seen leans on its operator's other predicates, and these on what the operator declared. The counts are
sums, so the statistics of several workers are merged by adding them; a book ships its own as priors. What predicates
tell of each other is in `correlation`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from headgate.errors import PlanError
from headgate.operators.correlation import Correlation, Saved
from headgate.operators.kernels import Floats

VERSION = 2
COUNT, HITS, TIMED, SPENT = range(4)
"""Columns: decayed observations, those that held, those that were timed, milliseconds in these."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What an operator declares."""

    selectivity: float = 0.5
    cost: float = 1.0


@dataclass
class Statistics:
    """Decayed counts by predicate, named by its text; `strength` is how many observations a prior counts for."""

    decay: float = 0.998
    strength: float = 4.0
    _names: dict[str, int] = field(default_factory=dict)
    _operator: list[int] = field(default_factory=list)
    _operators: dict[str, int] = field(default_factory=dict)
    _priors: list[Prior] = field(default_factory=list)
    _counts: Floats = field(default_factory=lambda: np.zeros((16, 4)))
    _pooled: Floats = field(default_factory=lambda: np.zeros((16, 4)))
    pairs: Correlation = field(init=False)

    def __post_init__(self) -> None:
        self.pairs = Correlation(self.decay)

    def __len__(self) -> int:
        return len(self._names)

    def number(self, predicate: str, operator: str, prior: Prior) -> int:
        """The row of a predicate; it is taken in if it is new."""
        found = self._names.get(predicate)
        if found is not None:
            return found
        group = self._operators.setdefault(operator, len(self._operators))
        if group == len(self._priors):
            self._priors.append(prior)
            self._pooled = _room(self._pooled, group)
        found = self._names[predicate] = len(self._names)
        self._operator.append(group)
        self._counts = _room(self._counts, found)
        return found

    def observe(self, rows: NDArray[np.int64], held: NDArray[np.bool_], spent: Floats) -> None:
        """Take in one event's answers, a row at most once; `spent` in milliseconds, NaN where nothing was timed."""
        timed = ~np.isnan(spent)
        seen = np.stack([np.ones(len(rows)), held, timed, np.where(timed, spent, 0.0)], axis=1)
        keep = np.full((len(rows), 4), self.decay)
        keep[~timed, TIMED:] = 1.0
        self._counts[rows] = self._counts[rows] * keep + seen
        groups = np.array(self._operator, np.int64)[rows]
        self._pooled[np.unique(groups)] *= self.decay
        np.add.at(self._pooled, groups, seen)

    def chances(self, rows: NDArray[np.int64]) -> Floats:
        """The probability of each predicate to hold."""
        return self._estimate(rows, HITS, COUNT, lambda p: p.selectivity)

    def costs(self, rows: NDArray[np.int64]) -> Floats:
        """The cost of each predicate in milliseconds, never zero."""
        return np.maximum(self._estimate(rows, SPENT, TIMED, lambda p: p.cost), 1e-6)

    def _estimate(self, rows: NDArray[np.int64], total: int, count: int, declared: Any) -> Floats:
        k = self.strength
        given = np.array([declared(p) for p in self._priors] or [0.0])
        pooled = self._pooled[: len(given)]
        prior = (pooled[:, total] + k * given) / (pooled[:, count] + k)
        own = self._counts[rows]
        groups = np.array(self._operator, np.int64)[rows]
        made: Floats = (own[:, total] + k * prior[groups]) / (own[:, count] + k)
        return made

    # -- travelling

    def save(self) -> bytes:
        """As JSON, so that it can be read, diffed and kept beside a book."""
        operators = list(self._operators)
        return orjson.dumps(
            {
                "version": VERSION,
                "decay": self.decay,
                "strength": self.strength,
                "operators": {
                    o: [p.selectivity, p.cost, *self._pooled[i].tolist()]
                    for i, (o, p) in enumerate(zip(operators, self._priors, strict=True))
                },
                "predicates": {
                    name: [operators[self._operator[i]], *self._counts[i].tolist()] for name, i in self._names.items()
                },
                "pairs": self.pairs.saved(),
            }
        )

    @classmethod
    def load(cls, saved: bytes) -> Statistics:
        read = orjson.loads(saved)
        if read.get("version") != VERSION:
            raise PlanError(f"statistics of version {read.get('version')} cannot be read", "learn them anew")
        made = cls(read["decay"], read["strength"])
        made._add(read["operators"], read["predicates"], read["pairs"])
        return made

    def merge(self, others: Iterable[Statistics]) -> None:
        """Add what others have learned."""
        for other in others:
            read = orjson.loads(other.save())
            self._add(read["operators"], read["predicates"], read["pairs"])

    def _add(self, operators: dict[str, list[float]], predicates: dict[str, list[Any]], pairs: Saved) -> None:
        for name, (operator, *counts) in predicates.items():
            selectivity, cost = operators[operator][:2]
            row = self.number(name, operator, Prior(selectivity, cost))
            self._counts[row] += counts
        for operator, (_, _, *pooled) in operators.items():
            if operator in self._operators:
                self._pooled[self._operators[operator]] += pooled
        self.pairs.add(pairs)

    def counts(self, predicate: str) -> Sequence[float]:
        """Observations, hits, timed observations and milliseconds of a predicate, decayed; for explanations."""
        at = self._names.get(predicate)
        return (0.0, 0.0, 0.0, 0.0) if at is None else tuple(self._counts[at].tolist())


def _room(table: Floats, row: int) -> Floats:
    if row < len(table):
        return table
    grown = np.zeros((2 * len(table), table.shape[1]))
    grown[: len(table)] = table
    return grown
