"""The workloads of the paper's experiments are what they claim to be, and every figure gets drawn."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.papers import covering, covering_plots
from benchmarks.papers import covering_workloads as workloads

from headgate.covering.decision import Procedure, decide_pieces

TINY = replace(
    covering.SCALES["small"],
    runs=1,
    gap_runs=3,
    book=30,
    brokers=4,
    chain_subscriptions=20,
    chain_events=5,
    loss_runs=10,
)


@pytest.mark.parametrize("seed", range(3))
def test_the_covered_scenarios_are_covered_and_the_others_not(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for made, expected in (
        (workloads.redundant_cover(rng, 60, 6), True),
        (workloads.not_covered(rng, 60, 6), False),
        (workloads.narrow_gap(rng, 50, 5, 0.005), False),
        (workloads.cells(rng, 40, 6), True),
    ):
        rows = made.rows()
        found = decide_pieces(rows, np.arange(rows.count), made.subject(), Procedure(budget=30.0))
        assert found.covered is expected
        assert bool(made.covering.any()) is expected


@pytest.mark.slow
def test_every_figure_is_drawn(tmp_path: Path) -> None:
    rows = [row for part in ("gaps", "growth", "chain", "loss") for row in covering.PARTS[part](TINY)]
    rng = np.random.default_rng(0)
    for scenario, make in (("1.b", workloads.redundant_cover), ("2.b", workloads.not_covered)):
        rows += [
            {"scenario": scenario, "k": k, "m": 10, **covering._reduced(make(rng, k, 10), scenario, 0)}
            for k in (10, 40)
        ]
    drawn = {path.name for path in covering_plots.draw(rows, tmp_path)}
    assert drawn == {f"covering_figure_{n}.png" for n in range(1, 13)} | {"covering_chain.png"}
    assert all(row["lost"] == 0 for row in rows if row.get("figure") == "chain")


def test_a_chain_of_brokers_sends_less_the_more_it_knows_of_cover() -> None:
    sent = {row["cover"]: row["messages"] for row in covering.chain(replace(TINY, chain_subscriptions=120))}
    assert sent["none"] > sent["pairwise"] >= sent["group"]
