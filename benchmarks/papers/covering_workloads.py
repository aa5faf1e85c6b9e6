"""The subscriptions of the covering paper's experiments (its section 6), where the text leaves room: our guesses.

* **1.b, redundant cover.** s is cut along x1 into slices that overlap a little, 20 % of the subscriptions; they cover s
  on every other attribute. The other 80 % cover s partly. If these left out parts of s at random ends, every attribute
  would be full of conflicts and MCS could remove nothing, against the paper's 80 to 100 %; so on each attribute they
  leave out the same end (interests are alike), but for a few that do not.
* **2.b, not covered.** On x1 subscriptions reach from beyond an end of s up to a small range that all leave out; a few
  lie between. On the other attributes they are as in 1.b.
* **2.c, a narrow gap.** s is cut along x1 into slices except for a gap of the given size.
* **Cells.** Not in the paper: s is cut in two along a random attribute, then the parts, and so on; a proof of cover
  must look at all attributes. The other 80 % are random boxes.
* **Growth.** Attributes are drawn 0.6 m times by Zipf (2.0), centres by Pareto (1.0), widths by a normal distribution,
  with mean and deviation such that pairwise cover does about as well as in the paper.

Coordinates are whole numbers, fine enough to count as continuous. s is the same box for all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.covering.boxes import Union
from headgate.covering.grid import FIRST, Grid, Piece, Rows
from headgate.covering.portion import Portion
from headgate.covering.space import Dimension
from headgate.predicates.domain import BIGINT, DOUBLE

Ints = NDArray[np.int64]
UNIT = 1 << 40
"""The width of s; it lies between UNIT and 2 UNIT on every axis."""
OFFSET = FIRST + UNIT


@dataclass(frozen=True, slots=True)
class Instance:
    """k boxes, of which those marked cover s together; without marks s is not covered."""

    lo: Ints
    hi: Ints
    covering: NDArray[np.bool_]

    @property
    def attributes(self) -> int:
        return int(self.lo.shape[1])

    def rows(self) -> Rows:
        rows = Rows(Grid())
        for j in range(self.attributes):
            rows.grid.axis(Dimension(("attribute", j), BIGINT, False, (f"x{j + 1}",)))
        for lo, hi in zip(self.lo.tolist(), self.hi.tolist(), strict=True):
            rows.append([(j, a, b) for j, (a, b) in enumerate(zip(lo, hi, strict=True))])
        return rows

    def subject(self) -> list[Piece]:
        return [(j, OFFSET, OFFSET + UNIT - 1) for j in range(self.attributes)]


def _instance(rng: np.random.Generator, lo: NDArray[np.float64], hi: NDArray[np.float64], covering: int) -> Instance:
    """From shares of s to numbers, in random order; the first `covering` are marked."""
    order = rng.permutation(len(lo))
    marks = np.arange(len(lo)) < covering
    low = OFFSET + np.round(lo * UNIT).astype(np.int64)
    high = OFFSET + np.round(hi * UNIT).astype(np.int64)
    return Instance(low[order], high[order], marks[order])


def _around(rng: np.random.Generator, k: int, m: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """k boxes that reach beyond s on every side."""
    return -rng.uniform(0.01, 0.5, (k, m)), 1.0 + rng.uniform(0.01, 0.5, (k, m))


def _partly(
    rng: np.random.Generator, k: int, m: int, odd: float = 0.06
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """k boxes that leave out one end of s on most attributes: the same for all, but for the odd one."""
    lo, hi = _around(rng, k, m)
    upper = (rng.random(m) < 0.5) ^ (rng.random((k, m)) < odd)
    partly = rng.random((k, m)) < 0.7
    partly[np.arange(k), rng.integers(0, m, k)] = True
    cut = rng.uniform(0.05, 0.95, (k, m))
    return np.where(partly & ~upper, cut, lo), np.where(partly & upper, cut, hi)


def _slices(
    rng: np.random.Generator, k: int, m: int, start: float, end: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """k boxes that cover s from `start` to `end` along x1, each a slice, and all of it on other attributes."""
    lo, hi = _around(rng, k, m)
    cuts = np.concatenate(
        [[start], start + (end - start) * (np.arange(1, k) + rng.uniform(-0.3, 0.3, k - 1)) / k, [end]]
    )
    lap = (end - start) / k * 0.1
    lo[1:, 0] = cuts[1:-1] - lap
    hi[:-1, 0] = cuts[1:-1] + lap
    if end < 1.0:
        hi[-1, 0] = end
    if start > 0.0:
        lo[0, 0] = start
    return lo, hi


def redundant_cover(rng: np.random.Generator, k: int, m: int) -> Instance:
    """Scenario 1.b."""
    covering = max(2, round(0.2 * k))
    slices, partly = _slices(rng, covering, m, 0.0, 1.0), _partly(rng, k - covering, m)
    return _instance(rng, np.vstack([slices[0], partly[0]]), np.vstack([slices[1], partly[1]]), covering)


def not_covered(rng: np.random.Generator, k: int, m: int) -> Instance:
    """Scenario 2.b: a range of x1 of 1 to 5 % of s is left out by all."""
    lo, hi = _partly(rng, k, m)
    width = rng.uniform(0.01, 0.05)
    start = rng.uniform(0.1, 0.85)
    lo[:, 0], hi[:, 0] = -0.1, 1.1
    below = rng.random(k) < start
    inside = rng.random(k) < 0.02
    near, far = rng.uniform(0, 1, k), rng.uniform(0, 1, k)
    hi[:, 0] = np.where(below, start * (1 - 0.9 * near), 1.1)
    lo[:, 0] = np.where(below, -0.1, start + width + (1 - start - width) * 0.9 * near)
    lo[:, 0] = np.where(inside & below, hi[:, 0] * far, lo[:, 0])
    hi[:, 0] = np.where(inside & ~below, lo[:, 0] + (1 - lo[:, 0]) * far, hi[:, 0])
    hi[below, 0] = np.minimum(hi[below, 0], start - 1e-9)
    return _instance(rng, lo, hi, 0)


def narrow_gap(rng: np.random.Generator, k: int, m: int, gap: float) -> Instance:
    """Scenario 2.c: everything is covered but a slice of x1 of the given share."""
    start = rng.uniform(0.1, 0.9 - gap)
    below = max(1, min(k - 1, round(k * start / (1.0 - gap))))
    left, right = _slices(rng, below, m, 0.0, start), _slices(rng, k - below, m, start + gap, 1.0)
    return _instance(rng, np.vstack([left[0], right[0]]), np.vstack([left[1], right[1]]), 0)


def cells(rng: np.random.Generator, k: int, m: int) -> Instance:
    """Cover by recursive cuts along all attributes."""
    parts: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []

    def cut(low: NDArray[np.float64], high: NDArray[np.float64], count: int) -> None:
        if count == 1:
            parts.append((low, high))
            return
        j, left = int(rng.integers(m)), int(rng.integers(1, count))
        at = low[j] + (high[j] - low[j]) * left / count
        cut(low, np.where(np.arange(m) == j, at, high), left)
        cut(np.where(np.arange(m) == j, at, low), high, count - left)

    covering = max(2, round(0.2 * k))
    cut(np.zeros(m), np.ones(m), covering)
    lo = np.array([low for low, _ in parts]) - rng.uniform(0.001, 0.05, (covering, m))
    hi = np.array([high for _, high in parts]) + rng.uniform(0.001, 0.05, (covering, m))
    middle, half = rng.uniform(0, 1, (k - covering, m)), rng.uniform(0.15, 0.5, (k - covering, m))
    free = rng.random((k - covering, m)) < 0.5
    lo = np.vstack([lo, np.where(free, -0.1, middle - half)])
    hi = np.vstack([hi, np.where(free, 1.1, middle + half)])
    return _instance(rng, lo, hi, covering)


def growth(rng: np.random.Generator, m: int) -> Iterator[Union]:
    """Scenario (1-2): an endless stream of subscriptions with popular attributes and popular ranges."""
    dimensions = [Dimension(("attribute", (f"x{j + 1}",)), DOUBLE, False, (f"x{j + 1}",)) for j in range(m)]
    popularity = 1.0 / np.arange(1, m + 1) ** 2.0
    popularity /= popularity.sum()
    while True:
        chosen = sorted(set(rng.choice(m, size=round(0.6 * m), p=popularity).tolist()))
        box = {}
        for j in chosen:
            centre = min(100.0 * float(rng.pareto(1.0)), 1000.0)
            half = abs(float(rng.normal(400.0, 100.0))) / 2
            inside = Portion(DOUBLE.compare(">=", centre - half)) & Portion(DOUBLE.compare("<=", centre + half))
            box[dimensions[j]] = inside
        yield (box,)


def growth_event(rng: np.random.Generator, m: int) -> dict[str, float]:
    """An event near the popular ranges."""
    return {f"x{j + 1}": min(100.0 * float(rng.pareto(1.0)), 1000.0) for j in range(m)}
