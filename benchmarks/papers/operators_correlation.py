"""What knowing pairs of predicates saves: events on which groups of predicates tend to hold together, and the papers' own.

`plain` and `paired` are the predicates that greedy asks on the same events without and with pairs, after learning on as
many events before. Predicates of a group follow one draw of the event, most of the time, each with its own selectivity.
Where most subscriptions match, or share their groups, nothing can be saved; such a case is among the rows. There greedy,
which looks one step ahead, asks in another order and up to 1% more: less than what chance lets it save or lose elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.papers.operators_workload import Workload, workload
from headgate.operators.correlation import Correlation
from headgate.operators.learned import REFRESH
from headgate.operators.program import Program, conjunctions
from headgate.operators.schedule import Residuals, Run, greedy, no_joins, run_table


@dataclass(frozen=True)
class Planted:
    """Conjunctions over predicates of which each follows its group's draw, as often as `follow` says."""

    program: Program
    members: list[list[int]]
    chance: NDArray[np.float64]
    group: NDArray[np.int64]
    follow: float

    @property
    def cost(self) -> NDArray[np.float64]:
        return np.ones(len(self.chance))

    def event(self, rng: np.random.Generator) -> list[int]:
        size = len(self.chance)
        own, shared = rng.random(size), rng.random(int(self.group.max()) + 1)[self.group]
        drawn = np.where(rng.random(size) < self.follow, shared, own)
        truths: list[int] = (drawn < self.chance).astype(np.int64).tolist()
        return truths


def planted(
    subscriptions: int = 1_000,
    predicates: int = 300,
    groups: int = 30,
    width: int = 8,
    chance: float = 0.5,
    zipf: float = 0.7,
    together: bool = False,
    follow: float = 0.9,
) -> Planted:
    """`together`: half of a subscription's predicates are of one group, half of another."""
    rng = np.random.default_rng(5)
    group = rng.permutation(np.arange(predicates) % groups)
    weight = rng.permutation(1.0 / np.arange(1, predicates + 1) ** zipf)
    members = []
    for _ in range(subscriptions):
        if together:
            pools = [np.flatnonzero(group == g) for g in rng.choice(groups, 2, replace=False)]
            members.append([int(t) for pool in pools for t in rng.choice(pool, width // 2, replace=False)])
        else:
            members.append(rng.choice(predicates, width, replace=False, p=weight / weight.sum()).tolist())
    chances = chance + 0.4 * (rng.random(predicates) - 0.5)
    return Planted(conjunctions(members, predicates), members, chances, group, follow)


def correlation(scale: str) -> Iterator[dict[str, Any]]:
    events = 600 if scale == "small" else 2_000
    yield _trial("groups, uniform", planted(zipf=0.0), events)
    yield _trial("groups, Zipf 0.7", planted(), events)
    yield _trial("groups inside subscriptions", planted(2_000, 300, 60, 4, 0.3, 1.0, together=True), events)
    for zipf in (None, 1.0):
        w = workload(2_000, 500, zipf=zipf)
        yield _trial(f"paper, {f'Zipf {zipf}' if zipf else 'uniform'}", w, events)


def _trial(name: str, w: Planted | Workload, events: int) -> dict[str, Any]:
    names = [str(t) for t in range(len(w.chance))]
    members = np.concatenate([np.asarray(m) for m in w.members]) if isinstance(w, Planted) else w.members
    uses = np.bincount(members, minlength=len(names))
    pairs = Correlation(0.998)
    pairs.watch([names[t] for t in np.argsort(-uses, kind="stable")])
    slots = pairs.slots(names)
    residuals, none, every = Residuals(w.program), np.zeros(0, np.bool_), np.arange(w.program.slots)
    links = None
    counts = {"plain": 0, "paired": 0}
    for e in range(2 * events):
        truths = w.event(np.random.default_rng([3, e]))
        asked: dict[str, list[int]] = {}
        for kind, used in (("plain", None), ("paired", links)):
            packed = residuals.of(every, none, w.chance, w.cost)
            asked[kind] = run_table(Run(greedy(), w.program, packed, no_joins, used, w.chance), truths)
            if e >= events:
                counts[kind] += len(asked[kind])
        watched = np.array([t for t in asked["paired"] if slots[t] >= 0], np.int64)
        pairs.observe(slots[watched], np.array(truths, np.bool_)[watched])
        if (e + 1) % REFRESH == 0:
            links = pairs.links(slots)
    row: dict[str, Any] = {"figure": "correlation", "x": name, "events": events}
    row |= {kind: round(count / events, 1) for kind, count in counts.items()}
    return {**row, "ratio": round(counts["paired"] / counts["plain"], 4)}
