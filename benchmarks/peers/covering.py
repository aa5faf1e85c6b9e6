"""Is a subscription covered by others together? Our decision, a comparison with each of them alone, and plain SAT.

The scenarios are the covering paper's, where the truth is known by construction; an answer that contradicts it ends the
benchmark, save that of pairwise cover, which can only miss (`missed`). Plain SAT gets the same conflict table as our exact
decision, without what we do before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benchmarks import measure
from benchmarks.measure import Differ, Row, interleaved
from benchmarks.papers import covering_workloads as workloads
from benchmarks.papers.covering_workloads import Instance
from headgate.covering import exact
from headgate.covering.decision import Procedure, decide_pieces
from headgate.covering.table import Table, conflicts, subject

SIZES = {"small": ((100, 10), (310, 20)), "paper": ((100, 10), (310, 20), (1_600, 20))}
INSTANCES = {"small": 5, "paper": 20}
ROUNDS = 3
SCENARIOS: dict[str, Callable[[np.random.Generator, int, int], Instance]] = {
    "redundant cover (1.b)": workloads.redundant_cover,
    "not covered (2.b)": workloads.not_covered,
    "cells": workloads.cells,
}


def decided(instance: Instance, procedure: Procedure) -> bool | None:
    rows = instance.rows()
    return decide_pieces(rows, np.arange(rows.count), instance.subject(), procedure).covered


def by_sat(instance: Instance) -> bool | None:
    rows = instance.rows()
    ignored = np.zeros(instance.attributes, np.bool_)
    table = conflicts(rows, np.arange(rows.count), subject(instance.subject(), rows.grid), ignored)
    assert isinstance(table, Table), "the scenarios know no pairwise cover"
    return exact.solve(table, math.inf).covered


WAYS: dict[str, Callable[[Instance], bool | None]] = {
    "headgate": lambda i: decided(i, Procedure(budget=30.0)),
    "pairwise": lambda i: decided(i, Procedure("pairwise")),
    "plain SAT": by_sat,
}


def run(scale: str, out: Path) -> Iterator[Row]:
    for scenario, make in SCENARIOS.items():
        for count, attributes in SIZES[scale]:
            rng = np.random.default_rng([3, count, attributes])
            instances = [make(rng, count, attributes) for _ in range(INSTANCES[scale])]
            missed = {name: _missed(name, instances) for name in WAYS}
            ways = {name: lambda way=way: [way(i) for i in instances] for name, way in WAYS.items()}  # noqa: B023 - used at once
            for name, timing in interleaved(ways, ROUNDS).items():
                each = 1e3 / len(instances)
                yield {
                    "table": "covering", "scenario": scenario, "x": count, "attributes": attributes, "system": name,
                    "missed": missed[name], "instances": len(instances),
                    "ms_a_decision": round(timing.median * each, 3), "least_ms": round(timing.least * each, 3),
                    "most_ms": round(timing.most * each, 3), "rounds": ROUNDS,
                }  # fmt: skip


def _missed(name: str, instances: list[Instance]) -> int:
    """How many covered instances the way does not see; a wrong answer of another kind is an error."""
    missed = 0
    for instance in instances:
        truth, found = bool(instance.covering.any()), WAYS[name](instance)
        if found is not truth:
            if name != "pairwise" or found:
                raise Differ(f"{name} says {found} of an instance that is {'' if truth else 'not '}covered")
            missed += 1
    return missed


if __name__ == "__main__":
    measure.main(run)
