"""The covering paper's figures 4 to 12, with pairwise cover, MCS + RSPC and the exact decision side by side.

    python -m benchmarks.papers.covering [--scale small|paper] [--out FOLDER] [--only NAME ...]

Prints one JSON object a line and leaves plots in the folder. Workloads: `covering_workloads.py`, which says what had to
be guessed. Each row names its figure and, where the paper gives a number, that number.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from time import perf_counter
from typing import Any

import numpy as np

from benchmarks.measure import clock, must
from benchmarks.papers import covering_gates
from benchmarks.papers import covering_workloads as workloads
from benchmarks.papers.covering_network import Network, found_probability
from benchmarks.papers.covering_workloads import Instance
from headgate.covering import exact, rspc
from headgate.covering.coverset import CoverSet
from headgate.covering.decision import Procedure, decide_pieces
from headgate.covering.rspc import Floats, Ints
from headgate.covering.table import Table, conflicts, counts, minimise, subject

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Scale:
    runs: int
    gap_runs: int
    book: int
    brokers: int
    chain_subscriptions: int
    chain_events: int
    loss_runs: int
    gate_events: int
    name: str = "small"


SCALES = {
    "small": Scale(20, 200, 1000, 10, 300, 100, 500, 10_000),
    "paper": Scale(1000, 3000, 5000, 10, 2000, 500, 5000, 4_000, "paper"),
}
ATTRIBUTES = (10, 15, 20)
SIZES = range(10, 311, 30)


def _table(instance: Instance) -> Table:
    rows = instance.rows()
    ignored = np.zeros(instance.attributes, np.bool_)
    found = conflicts(rows, np.arange(rows.count), subject(instance.subject(), rows.grid), ignored)
    assert isinstance(found, Table), "the scenarios know no pairwise cover"
    return found


def _width(_axis: int, edges: Ints) -> Floats:
    """Numbers are coordinates in these workloads, so the measure of a cell is its length."""
    return np.diff(edges).astype(np.float64)


def _log_trials(table: Table, error: float, *, printed: bool) -> float:
    """log10 of the number of guesses; no rows need none."""
    if not len(table):
        return 0.0
    share = rspc.witness_share(table, rspc.cells_of(table, _width), printed=printed)
    trials = rspc.trials_for(share, error)
    return (
        math.log10(trials) if math.isfinite(trials) else math.log10(-math.log(error)) - math.log10(max(share, 1e-300))
    )


def reduction(scale: Scale, seed: int = 0) -> Iterator[Row]:
    """Figures 5 to 8: what MCS removes, how often RSPC would have to guess, and how often it does."""
    scenarios: tuple[tuple[str, Callable[[np.random.Generator, int, int], Instance]], ...] = (
        ("1.b", workloads.redundant_cover),
        ("2.b", workloads.not_covered),
    )
    for scenario, make in scenarios:
        for m in ATTRIBUTES:
            for k in SIZES:
                rng = np.random.default_rng([seed, k, m])
                found = [_reduced(make(rng, k, m), scenario, i) for i in range(scale.runs)]
                row = {key: mean(f[key] for f in found) for key in found[0]}
                yield {"figure": "5, 6" if scenario == "1.b" else "7, 8", "scenario": scenario, "k": k, "m": m, **row}


def _reduced(instance: Instance, scenario: str, seed: int) -> dict[str, float]:
    table = _table(instance)
    core, removed = minimise(table, counts(table))
    redundant = ~instance.covering
    row = {
        "removed": float(np.count_nonzero(redundant[table.rows[removed]]) / np.count_nonzero(redundant)),
        "log_d_all": _log_trials(table, 1e-10, printed=True),
        "log_d_mcs": _log_trials(core, 1e-10, printed=True),
        "log_d_mcs_corrected": _log_trials(core, 1e-10, printed=False),
    }
    if scenario == "2.b":
        row["guesses"] = 0.0
        if len(core):
            cells = rspc.cells_of(core, _width)
            row["guesses"] = float(rspc.guess(core, cells, 0.0, 1e-10, 100_000, seed).trials)
    return row


def narrow_gaps(scale: Scale, seed: int = 1) -> Iterator[Row]:
    """Figures 9 and 10: guesses and wrong answers of RSPC alone when almost everything is covered."""
    for error in (1e-3, 1e-6, 1e-10):
        for gap in np.arange(0.005, 0.0451, 0.005):
            rng = np.random.default_rng([seed, int(gap * 1000)])
            guesses: dict[str, list[int]] = {"printed": [], "corrected": []}
            wrong = dict.fromkeys(guesses, 0)
            exactly = 0
            for i in range(scale.gap_runs):
                table = _table(workloads.narrow_gap(rng, 50, 5, float(gap)))
                cells = rspc.cells_of(table, _width)
                for bound in guesses:
                    share = rspc.witness_share(table, cells, printed=bound == "printed")
                    found = rspc.guess(table, cells, share, error, 1_000_000, i)
                    guesses[bound].append(found.trials)
                    wrong[bound] += found.point is None
                exactly += exact.search(table, math.inf).covered is True
            yield {
                "figure": "9, 10", "scenario": "2.c", "error": error, "gap": round(float(gap), 4),
                "runs": scale.gap_runs,
                **{f"guesses_{b}": mean(g) for b, g in guesses.items()}, **{f"wrong_{b}": w for b, w in wrong.items()},
                "wrong_exact": exactly, "paper": "none wrong below 1e-6 and above 1 %",
            }  # fmt: skip


def decisions(scale: Scale, seed: int = 2) -> Iterator[Row]:
    """How much processor time one decision takes, k = 310 and m = 20 among them; the first of each kind does not count."""
    makers: dict[str, Callable[[np.random.Generator, int, int], Instance]] = {
        "1.b": workloads.redundant_cover, "2.b": workloads.not_covered, "cells": workloads.cells,
    }  # fmt: skip
    for name, make in makers.items():
        for k, m in ((310, 10), (310, 20), (1600, 20)):
            rng = np.random.default_rng([seed, k, m])
            times, methods = [], []
            for i in range(min(scale.runs, 100) + 1):
                rows = (instance := make(rng, k, m)).rows()
                start = clock()
                found = decide_pieces(rows, np.arange(rows.count), instance.subject(), Procedure(budget=10.0))
                times.append(1e3 * (clock() - start))
                methods.append(found.method)
                assert found.covered is bool(instance.covering.any())
                if i == 0:
                    times.clear()
            used = {method: methods.count(method) for method in sorted(set(methods))}
            yield {
                "figure": "time", "scenario": name, "k": k, "m": m, "median_ms": round(median(times), 3),
                "max_ms": round(max(times), 3), "methods": used,
            }  # fmt: skip
            if (k, m) == (310, 20):
                yield must(
                    f"ms, the median of a decision at k = 310, m = 20, {name}", median(times), scale.name, most=5
                )


GROWTH = {
    "pairwise": Procedure("pairwise"),
    "MCS + RSPC": Procedure("rspc", error=1e-6, trials=10_000),
    "exact": Procedure("exact", budget=0.02),
}
PAPER_SHARE = {10: (0.10, 0.15), 15: (0.10, 0.15), 20: (0.33, 0.50)}
"""Of 5000 subscriptions the part that stays active: group and pairwise cover, read off figure 11."""


def growth(scale: Scale, seed: int = 3) -> Iterator[Row]:
    """Figures 11 and 12: a book that grows, and what of it stays active."""
    for m in ATTRIBUTES:
        for name, procedure in GROWTH.items():
            covers = CoverSet(None, procedure)
            stream = workloads.growth(np.random.default_rng([seed, m]), m)
            start = clock()
            for i in range(1, scale.book + 1):
                covers.add_union(i, next(stream))
                if i % (scale.book // 10) == 0:
                    active = sum(1 for _ in covers.active)
                    yield {
                        "figure": "11, 12", "m": m, "mode": name, "subscriptions": i, "active": active,
                        "share": active / i, "unknown": covers.unknown if name != "pairwise" else None,
                        "seconds": round(clock() - start, 2),
                        "paper_share_at_5000": PAPER_SHARE[m][name == "pairwise"],
                    }  # fmt: skip
            if name == "exact":
                taken, share = clock() - start, sum(1 for _ in covers.active) / scale.book
                what = f"a book of {scale.book:,} at m = {m}, {covers.unknown} decisions unknown"
                yield must(f"s to grow {what}", taken, scale.name, most=60)
                yield must(f"paper's active share over ours, {what}", PAPER_SHARE[m][0] / share, scale.name, least=1)


def chain(scale: Scale, seed: int = 4) -> Iterator[Row]:
    """Section 5: traffic along a chain of brokers with each kind of cover; deliveries must not differ."""
    ways: dict[str, tuple[Procedure | None, str]] = {
        "none": (None, "none"), "pairwise": (GROWTH["pairwise"], "none"), "group": (GROWTH["exact"], "none"),
        "group, demoting": (GROWTH["exact"], "pairwise"),
    }  # fmt: skip
    expected: list[set[Any]] = []
    for name, (procedure, demote) in ways.items():
        rng = np.random.default_rng(seed)
        network = Network.chain(scale.brokers, procedure, demote=demote)
        stream = workloads.growth(rng, 10)
        start = perf_counter()
        for i in range(scale.chain_subscriptions):
            network.subscribe(i, next(stream), int(rng.integers(1, scale.brokers + 1)))
        for i in range(0, scale.chain_subscriptions, 5):
            network.unsubscribe(i)
        seconds = perf_counter() - start
        found = [
            network.publish(workloads.growth_event(rng, 10), int(rng.integers(1, scale.brokers + 1)))
            for _ in range(scale.chain_events)
        ]
        expected = expected or found
        yield {
            "figure": "chain", "cover": name, "brokers": scale.brokers, "subscriptions": scale.chain_subscriptions,
            "messages": network.traffic.subscriptions, "taken_back": network.traffic.unsubscriptions,
            "stored": network.stored(), "event_messages": network.traffic.events, "events": scale.chain_events,
            "lost": sum(len(a - b) for a, b in zip(expected, found, strict=True)), "seconds": round(seconds, 2),
        }  # fmt: skip


def loss(scale: Scale, seed: int = 5) -> Iterator[Row]:
    """Figure 4 and proposition 4: how often an event is found when RSPC may wrongly withhold a subscription."""
    rng = np.random.default_rng(seed)
    rho, gap = 0.2, 0.02
    table = _table(workloads.narrow_gap(rng, 50, 5, gap))
    cells = rspc.cells_of(table, _width)
    for trials in (1, 10, 50, 100, 200, 400):
        found = 0
        for _ in range(scale.loss_runs):
            for _broker in range(scale.brokers):
                if rng.random() < rho:
                    found += 1
                    break
                if rspc.guess(table, cells, 0.0, 1e-9, trials, int(rng.integers(2**31))).point is None:
                    break
        predicted = found_probability(scale.brokers, rho, gap, trials)
        yield {
            "figure": "4", "brokers": scale.brokers, "rho": rho, "witness_share": gap, "guesses": trials,
            "predicted": round(predicted, 4), "measured": found / scale.loss_runs, "runs": scale.loss_runs,
        }  # fmt: skip


def gates(scale: Scale) -> Iterator[Row]:
    """When `compile(cover=True)` pays."""
    yield from covering_gates.gates(min(scale.book, 2_000), scale.gate_events)


PARTS: dict[str, Callable[[Scale], Iterator[Row]]] = {
    "reduction": reduction, "gaps": narrow_gaps, "decisions": decisions, "growth": growth, "chain": chain, "loss": loss,
    "gates": gates,
}  # fmt: skip


def run(scale: str, out: Path, only: tuple[str, ...] = ()) -> Iterator[Row]:
    """The rows of all figures, or of some parts; plots are drawn at the end."""
    from benchmarks.papers import covering_plots

    rows: list[Row] = []
    for name in only or PARTS:
        for row in PARTS[name](SCALES[scale]):
            rows.append(row)
            yield row
    out.mkdir(parents=True, exist_ok=True)
    for path in covering_plots.draw(rows, out):
        yield {"plot": str(path)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=SCALES, default="small")
    parser.add_argument("--out", type=Path, default=Path("bench-covering"))
    parser.add_argument("--only", nargs="*", choices=PARTS, default=[])
    arguments = parser.parse_args()
    for row in run(arguments.scale, arguments.out, tuple(arguments.only)):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
