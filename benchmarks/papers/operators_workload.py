"""The synthetic workload of the operators paper (DEBS 2007, section 5.2), as far as the text fixes it.

Given: the numbers of subscriptions and predicates, lengths uniform from 3 to a maximum, predicates drawn by popularity
(weights uniform in [0, 1], or Zipf), and that an event matches 0.2% of the subscriptions on average. Not given, and
guessed here: the selectivities. They are drawn uniformly from [0, 2m] with m set so that the expected share of matches
is 0.2%; `selectivity="single"` gives every predicate the same one. Predicates are numbered at random, so that ties
broken by number favour nobody.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.operators.program import Program, conjunctions

MATCHING = 0.002
SHORTEST = 3


@dataclass(frozen=True)
class Workload:
    program: Program
    indptr: NDArray[np.int64]
    members: NDArray[np.int64]
    chance: NDArray[np.float64]
    cost: NDArray[np.float64]

    def event(self, rng: np.random.Generator) -> list[int]:
        """The truths of one event."""
        drawn: list[int] = (rng.random(len(self.chance)) < self.chance).astype(np.int64).tolist()
        return drawn


def workload(
    subscriptions: int,
    predicates: int,
    longest: int = 5,
    zipf: float | None = None,
    selectivity: str = "uniform",
    seed: int = 1,
) -> Workload:
    rng = np.random.default_rng(seed)
    weights = rng.random(predicates) if zipf is None else 1.0 / np.arange(1, predicates + 1) ** zipf
    weights = rng.permutation(weights)
    lengths = rng.integers(SHORTEST, longest + 1, subscriptions)
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    members = _members(rng, lengths, np.cumsum(weights / weights.sum()))
    shape = rng.random(predicates) * 2.0 if selectivity == "uniform" else np.ones(predicates)
    chance = _calibrated(shape, indptr, members)
    program = conjunctions((indptr, members), predicates)
    return Workload(program, indptr, members, chance, np.ones(predicates))


def _members(rng: np.random.Generator, lengths: NDArray[np.int64], cumulated: NDArray[np.float64]) -> NDArray[np.int64]:
    """Different predicates for every subscription, each drawn by its weight."""
    wide = 4 * int(lengths.max())
    drawn = np.searchsorted(cumulated, rng.random((len(lengths), wide)))
    drawn = np.minimum(drawn, len(cumulated) - 1)
    chosen: list[int] = []
    for row, length in zip(drawn.tolist(), lengths.tolist(), strict=True):
        different = list(dict.fromkeys(row))
        while len(different) < length:
            more = int(np.searchsorted(cumulated, rng.random()))
            if more < len(cumulated) and more not in different:
                different.append(more)
        chosen += different[:length]
    return np.array(chosen, np.int64)


def _calibrated(
    shape: NDArray[np.float64], indptr: NDArray[np.int64], members: NDArray[np.int64]
) -> NDArray[np.float64]:
    """The selectivities, scaled so that the expected share of matching subscriptions is what the paper says."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        chance = np.clip(shape * middle, 1e-6, 0.999)
        matching = np.exp(np.add.reduceat(np.log(chance[members]), indptr[:-1])).mean()
        low, high = (middle, high) if matching < MATCHING else (low, middle)
    return np.clip(shape * high, 1e-6, 0.999)
