"""Pairs of predicates: how often one holds on events that have shown the other to hold, or to fail.

Where a drone sees no person it sees no crowd either: once the first is known, the second is a better bet than its own
rate says. The predicates that most subscriptions use are watched, `WATCHED` at a time; every event counts the pairs
among those it asked anyway, with decay. A pair is used only if its two rates differ by more than chance explains, so
that predicates that have nothing to do with each other cost what they cost without it.

The counts are sums, and travel and merge with the other statistics.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headgate.operators.kernels import FALSE, TRUE, Flags, Floats, Ints, Longs

WATCHED = 128
EVIDENCE = 5.0
"""Standard errors between the two rates of a pair. At 16,000 pairs less would find some in pure chance."""
DIFFERENCE = 0.1
LEAST = 8.0
"""Observations of either outcome, decayed."""
STRENGTH = 4.0
"""How many observations a predicate's rate among all events of a pair counts for."""
Saved = dict[str, dict[str, list[float]]]
"""Of a pair, by its names in order: how often neither held, the second, the first, both."""


@dataclass(frozen=True, slots=True)
class Links:
    """The pairs that an index can use: by the number of a predicate and its truth, the numbers of others and their
    chances then."""

    given: dict[int, tuple[tuple[Ints, Floats], tuple[Ints, Floats]]]

    def told(self, predicate: int, truth: int) -> tuple[Ints, Floats] | None:
        """What a truth says of others; a call that failed or was never made says nothing."""
        found = self.given.get(predicate)
        return found[truth] if found is not None and truth in (FALSE, TRUE) else None


class Correlation:
    """Decayed counts of the pairs among the watched predicates, which are named by their text."""

    def __init__(self, decay: float, room: int = WATCHED) -> None:
        self._decay = decay
        self._room = room
        self._slots: dict[str, int] = {}
        self._seen = np.zeros(room, np.bool_)
        self._counts = np.zeros((room, room, 2, 2))
        """[a, b, whether a held, whether b held], and the same pair as [b, a]."""
        self.changes = 0
        """How often a predicate has taken another's place: what `slots` said before no longer holds."""

    def watch(self, names: Sequence[str]) -> None:
        """Watch these, the first of them first. Where there is no room those give way that no event asks any more."""
        wanted = names[: self._room]
        keep = set(wanted)
        idle = [name for name, slot in self._slots.items() if name not in keep and not self._seen[slot]]
        for name in wanted:
            if name in self._slots:
                continue
            if len(self._slots) < self._room:
                slot = len(self._slots)
            elif idle:
                slot = self._slots.pop(idle.pop())
                self.changes += 1
                self._counts[slot] = 0.0
                self._counts[:, slot] = 0.0
            else:
                break
            self._slots[name] = slot
        self._seen[:] = False

    def slots(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Where each predicate is watched, or -1."""
        return np.array([self._slots.get(name, -1) for name in names], np.int64)

    def observe(self, slots: NDArray[np.int64], held: Flags) -> None:
        """Take in one event's answers to watched predicates, each at most once."""
        self._seen[slots] = True
        _count(self._counts, slots, held, self._decay)

    def links(self, slots: NDArray[np.int64]) -> Links | None:
        """The pairs of strong evidence; `slots` says where each predicate of a program is watched."""
        numbers = np.flatnonzero(slots >= 0).astype(np.int32)
        chance, strong = _strong(self._counts[np.ix_(slots[numbers], slots[numbers])])
        made = {}
        for a in np.flatnonzero(strong.any(axis=1)).tolist():
            others = np.flatnonzero(strong[a])
            made[int(numbers[a])] = (
                (numbers[others], chance[a, others, FALSE]),
                (numbers[others], chance[a, others, TRUE]),
            )
        return Links(made) if made else None

    # -- travelling

    def saved(self) -> Saved:
        made: Saved = {}
        for a, i in self._slots.items():
            after = {b: self._counts[i, j].ravel().tolist() for b, j in self._slots.items() if a < b}
            known = {b: counts for b, counts in after.items() if any(counts)}
            if known:
                made[a] = known
        return made

    def add(self, saved: Saved) -> None:
        """Add what was counted elsewhere, of predicates that are watched here or that there is room for."""
        names = dict.fromkeys(name for a, after in saved.items() for name in (a, *after))
        for name in names:
            if name not in self._slots and len(self._slots) < self._room:
                self._slots[name] = len(self._slots)
        for a, after in saved.items():
            for b, counts in after.items():
                if a in self._slots and b in self._slots:
                    i, j = self._slots[a], self._slots[b]
                    pair = np.reshape(counts, (2, 2))
                    self._counts[i, j] += pair
                    self._counts[j, i] += pair.T


def _strong(counts: Floats) -> tuple[Floats, Flags]:
    """The chance of b given that a failed and that it held, and whether the difference is worth believing."""
    # What another process has taken back, because it decayed there, may be more than is left here.
    counts = np.maximum(counts, 0.0)
    seen, hits = counts.sum(axis=3), counts[..., TRUE]
    some = np.maximum(seen, 1e-9)
    rate = hits.sum(axis=2) / some.sum(axis=2)
    chance = (hits + STRENGTH * rate[..., None]) / (seen + STRENGTH)
    apart = np.abs(hits[..., TRUE] / some[..., TRUE] - hits[..., FALSE] / some[..., FALSE])
    error = np.sqrt(rate * (1.0 - rate) * (1.0 / some).sum(axis=2))
    return chance, (seen.min(axis=2) >= LEAST) & (apart >= DIFFERENCE) & (apart >= EVIDENCE * error)


@njit(cache=True)
def _count(counts: Floats, slots: Longs, held: Flags, decay: float) -> None:
    for i in range(len(slots)):
        for j in range(len(slots)):
            if i != j:
                pair = counts[slots[i], slots[j]]
                for x in range(2):
                    for y in range(2):
                        pair[x, y] *= decay
                pair[int(held[i]), int(held[j])] += 1.0
