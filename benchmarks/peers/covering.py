"""Is a subscription covered by others together? Our decision, a comparison with each of them alone, and plain SAT.

The scenarios are the covering paper's, where the truth is known by construction; an answer that contradicts it ends the
benchmark. Pairwise cover leaves open whatever no single subscription covers (`left_open`). Plain SAT gets the same conflict
table as our exact decision, without what we do before it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks import measure
from benchmarks.measure import Differ, Row, interleaved
from benchmarks.papers import covering_workloads as workloads
from benchmarks.papers.covering_workloads import Instance
from headgate.covering import exact
from headgate.covering.decision import Procedure, decide_pieces
from headgate.covering.grid import Piece, Rows
from headgate.covering.table import Table, conflicts, subject

SIZES = {"small": ((100, 10), (310, 20)), "paper": ((100, 10), (310, 20), (1_600, 20))}
INSTANCES = {"small": 5, "paper": 20}
ROUNDS = 3
SCENARIOS: dict[str, Callable[[np.random.Generator, int, int], Instance]] = {
    "redundant cover (1.b)": workloads.redundant_cover,
    "not covered (2.b)": workloads.not_covered,
    "cells": workloads.cells,
}


@dataclass(frozen=True)
class Question:
    """An instance made ready, outside the clock, as a book would hold it."""

    rows: Rows
    subject: tuple[Piece, ...]
    truth: bool

    @classmethod
    def of(cls, instance: Instance) -> Question:
        return cls(instance.rows(), tuple(instance.subject()), bool(instance.covering.any()))


def decided(q: Question, procedure: Procedure) -> bool | None:
    return decide_pieces(q.rows, np.arange(q.rows.count), q.subject, procedure).covered


def by_sat(q: Question) -> bool | None:
    ignored = np.zeros(len(q.rows.grid.axes), np.bool_)
    table = conflicts(q.rows, np.arange(q.rows.count), subject(q.subject, q.rows.grid), ignored)
    # A row that covers alone is found while the table is made.
    return exact.solve(table, math.inf).covered if isinstance(table, Table) else True


WAYS: dict[str, Callable[[Question], bool | None]] = {
    "headgate": lambda q: decided(q, Procedure(budget=30.0)),
    "pairwise": lambda q: decided(q, Procedure("pairwise")),
    "plain SAT": by_sat,
}


def run(scale: str, out: Path) -> Iterator[Row]:
    for scenario, make in SCENARIOS.items():
        for count, attributes in SIZES[scale]:
            rng = np.random.default_rng([3, count, attributes])
            questions = [Question.of(make(rng, count, attributes)) for _ in range(INSTANCES[scale])]
            left = {name: _left_open(name, questions) for name in WAYS}
            ways = {name: lambda way=way: [way(q) for q in questions] for name, way in WAYS.items()}  # noqa: B023 - used at once
            for name, timing in interleaved(ways, ROUNDS).items():
                each = 1e3 / len(questions)
                yield {
                    "table": "covering", "scenario": scenario, "x": count, "attributes": attributes, "system": name,
                    "left_open": left[name], "instances": len(questions),
                    "ms_a_decision": round(timing.median * each, 3), "least_ms": round(timing.least * each, 3),
                    "most_ms": round(timing.most * each, 3), "rounds": ROUNDS,
                }  # fmt: skip


def _left_open(name: str, questions: list[Question]) -> int:
    """How many questions the way does not decide; a wrong answer is an error."""
    left = 0
    for question in questions:
        found = WAYS[name](question)
        if found is None:
            left += 1
        elif found is not question.truth:
            raise Differ(f"{name} says {found} of an instance that is {'' if question.truth else 'not '}covered")
    return left


if __name__ == "__main__":
    measure.main(run)
