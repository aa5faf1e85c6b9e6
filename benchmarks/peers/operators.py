"""The order in which operators are called: our schedulers, no order at all, and A-Greedy's.

A-Greedy (SIGMOD 2004) orders the predicates of one query by what they drop for their cost and knows nothing of others; an
answer that one subscription has paid for is free for the next, for all orders alike. The figure is the mean number of
predicates evaluated an event, on the operators paper's workload.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks import measure
from benchmarks.measure import Row
from benchmarks.papers.operators_bound import lower_bound
from benchmarks.papers.operators_workload import Workload, workload
from headgate.operators.schedule import SCHEDULERS, Residuals, Run, no_joins, run_table, scheduler

SIZES = {"small": (2_000, 8_000), "paper": (20_000, 80_000)}
EVENTS = {"small": 10, "paper": 20}


def a_greedy(work: Workload, truths: list[int]) -> int:
    """Each subscription by itself, its predicates by cost over what they drop."""
    rank = work.cost / (1.0 - work.chance)
    asked: set[int] = set()
    for first, end in zip(work.indptr.tolist(), work.indptr[1:].tolist(), strict=False):
        members = work.members[first:end]
        for predicate in members[np.argsort(rank[members], kind="stable")].tolist():
            asked.add(predicate)
            if not truths[predicate]:
                break
    return len(asked)


def scheduled(work: Workload, name: str, drawn: list[list[int]]) -> float:
    chosen, residuals, none = scheduler(name), Residuals(work.program), np.zeros(0, np.bool_)
    rank = chosen.arrange(work.program, work.chance, work.cost)
    slots = np.arange(work.program.slots) if rank is None else np.argsort(rank)
    asked = [
        len(run_table(Run(chosen, work.program, residuals.of(slots, none, work.chance, work.cost), no_joins), truths))
        for truths in drawn
    ]
    return float(np.mean(asked))


def run(scale: str, out: Path) -> Iterator[Row]:
    for popularity in ("uniform", "Zipf"):
        for size in SIZES[scale]:
            work = workload(size, size // 2, zipf=1.0 if popularity == "Zipf" else None)
            drawn = [work.event(np.random.default_rng([7, i])) for i in range(EVENTS[scale])]
            calls = {name: scheduled(work, name, drawn) for name in SCHEDULERS}
            calls["a-greedy"] = float(np.mean([a_greedy(work, truths) for truths in drawn]))
            calls["bound"] = float(np.mean([lower_bound(work.indptr, work.members, truths) for truths in drawn]))
            rounded = {name: round(value, 1) for name, value in calls.items()}
            yield {"table": "operators", "x": size, "popularity": popularity, "events": len(drawn), **rounded}


if __name__ == "__main__":
    measure.main(run)
