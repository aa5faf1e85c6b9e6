"""Figures 6a to 6c, 7 and 8 of the Cayuga paper (EDBT 2006), with the paper's workload, and what the project promises.

    python -m benchmarks.papers.sequences --scale small
    python -m benchmarks.papers.sequences --scale paper --figure promises

A point is measured from an Arrow table of events to the Arrow table of matches, in CPU time of this process, after a
warm-up; static predicates are decided by the filters' engine, as in a plan. The paper's numbers stand beside ours where
its text has them (its curves are printed without numbers); its machine was a Pentium 4 at 3 GHz.
"""

from __future__ import annotations

import argparse
import gc
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa

from benchmarks.measure import must, peak_bytes
from benchmarks.papers import sequences_rss
from benchmarks.papers.sequences_workload import SCHEMA, TEMPLATES, Setting, spines, stream
from headgate.events import decode
from headgate.language.catalogue import Catalogue
from headgate.plan.compile_context import CompileContext
from headgate.schema import Schema
from headgate.sequences.automaton import Options
from headgate.sequences.engine import Index
from headgate.sequences.publish_levels import Subscription
from headgate.sequences.shapes import Shapes
from headgate.sequences.spine import Spine

mpl.use("Agg")
from matplotlib import pyplot as plt

MODES = {
    "Cayuga": Options(),
    "No State Merging": Options(merge=False),
    "No FR-Index": Options(fr=False),
    "No Instance Index": Options(an=False, ai=False),
    "No MQO": Options(merge=False, an=False, ai=False, fr=False),
}
"""The paper's table 4."""
_BATCH = 65_536


@dataclass(frozen=True)
class Scale:
    events: int
    subscriptions: tuple[int, ...]
    default: int
    modes: tuple[int, ...]
    mode_events: int
    rss: tuple[int, ...]


SCALES = {
    "small": Scale(20_000, (2_000, 5_000, 10_000), 5_000, (1_000, 2_000), 2_000, (1_000, 2_000)),
    "paper": Scale(
        100_000,
        (100_000, 200_000, 300_000, 400_000),
        200_000,
        (10_000, 20_000, 40_000),
        10_000,
        (10_000, 20_000, 40_000),
    ),
}


def compiled(plans: list[Spine], schema: Schema, options: Options | None = None) -> Index:
    tools, catalogue = CompileContext(), Catalogue(streams={schema.stream: schema})
    subscriptions = [Subscription(f"q{i}", spine) for i, spine in enumerate(plans)]
    return Index(subscriptions, tools.static(catalogue), options)


def measure(
    plans: list[Spine], events: pa.Table, options: Options | None = None, schema: Schema = SCHEMA
) -> dict[str, Any]:
    """Compiles and feeds; events a second of CPU time, after one small feed that compiles the kernels."""
    start = time.process_time()
    index = compiled(plans, schema, options)
    compile_seconds = time.process_time() - start
    gc.collect()
    needs = index.needs()[schema.stream]
    warm = min(len(events) // 10, 1000)
    session = index.session()
    session.feed([decode(events.slice(0, warm), schema, needs).columns]).to_arrow()
    start, wall = time.process_time(), time.perf_counter()
    matches = 0
    for at in range(warm, len(events), _BATCH):
        batch = decode(events.slice(at, _BATCH), schema, needs, first=at).columns
        matches += len(session.feed([batch]).to_arrow())
    took = time.process_time() - start
    stats = session.stats()["levels"][0]
    return {
        "events_per_second": round((len(events) - warm) / took),
        "wall_seconds": round(time.perf_counter() - wall, 3),
        "compile_seconds": round(compile_seconds, 1),
        "peak_mb": peak_bytes() >> 20,
        "matches": matches,
        "states": len(index.levels[0].numbered.tables.nodes),
        "static_predicates": index.levels[0].predicates,
        "runs": stats["runs"],
        "touched_per_event": round(stats["touched"] / len(events), 2),
    }


PROMISES = {
    100_000: {"LinearStat": 100_000, "Filter": 100_000, "NonDeterministicAgg": 30_000},
    400_000: {"LinearStat": 40_000, "Filter": 40_000, "NonDeterministicAgg": 12_000},
}


def promises(scale: Scale) -> Iterator[dict[str, Any]]:
    """Throughput, the gain of the optimisations, the cost of events that affect no run."""
    name = "paper" if scale is SCALES["paper"] else "small"
    for count, templates in PROMISES.items():
        size = count if name == "paper" else count // 50
        for template, least in templates.items():
            found = measure(spines(template, size), stream(scale.events))
            yield {"figure": "promises", "template": template, "x": size, **found}
            yield must(f"events a second, {template}, {size:,}", found["events_per_second"], name, least=least)
    size = 10_000 if name == "paper" else 500
    plans, events = spines("Filter", size), stream(scale.events)
    fast = measure(plans, events)["events_per_second"]
    slow = measure(plans, events.slice(0, 300), MODES["No MQO"])["events_per_second"]
    yield must(f"times faster than without optimisations, {size:,}", fast / slow, name, least=100)
    yield must(
        "cost of idle events, 1,000,000 runs to 1,000", idle(1_000_000 if name == "paper" else 50_000), name, most=1.25
    )


def idle(many: int) -> float:
    """What 10,000 events that affect no run cost with many runs alive, as a ratio to 1,000; the least of several."""
    schema = Schema.of("s", {"k": "bigint", "v": "bigint", "at": "bigint"}, "at")
    text = " ".join(("SELECT e2.v AS v", "FROM FILTER {v = 1} (s) NEXT {$2.k = $1.k AND v = 2} s"))
    plan = Shapes(Catalogue(streams={"s": schema})).spine(text)
    sessions = {}
    for runs in (1_000, many):
        sessions[runs] = compiled([plan], schema).session()
        sessions[runs].feed([decode(_keys(0, runs, 1), schema).columns])
    costs: dict[int, list[float]] = {runs: [] for runs in sessions}
    for turn in range(9):
        for runs, session in sessions.items():
            batch = decode(_keys(many + turn * 10_000, 10_000, 3), schema).columns
            start = time.process_time()
            session.feed([batch])
            costs[runs].append(time.process_time() - start)
    return min(costs[many]) / min(costs[1_000])


def _keys(first: int, count: int, value: int) -> pa.Table:
    number = np.arange(first, first + count, dtype=np.int64)
    return pa.table({"k": number, "v": np.full(count, value), "at": number})


def figure_6a(scale: Scale) -> Iterator[dict[str, Any]]:
    events = stream(scale.events)
    for template in TEMPLATES:
        for count in scale.subscriptions:
            found = measure(spines(template, count), events)
            yield {"figure": "6a", "template": template, "x": count, **found, "paper": "above 1000 at 400,000"}


def figure_6b(scale: Scale) -> Iterator[dict[str, Any]]:
    events = stream(scale.events)
    for template in TEMPLATES:
        for zipf in (0.8, 1.0, 1.2, 1.4):
            found = measure(spines(template, scale.default, Setting(zipf1=zipf)), events)
            yield {"figure": "6b", "template": template, "x": zipf, **found, "paper": "rises with the exponent"}


def figure_6c(scale: Scale) -> Iterator[dict[str, Any]]:
    events = stream(scale.events)
    for template in TEMPLATES:
        for selectivity in (0.5, 0.6, 0.7, 0.8):
            found = measure(spines(template, scale.default, Setting(selectivity=selectivity)), events)
            yield {"figure": "6c", "template": template, "x": selectivity, **found, "paper": "falls, inverse quadratic"}


def figure_7(scale: Scale) -> Iterator[dict[str, Any]]:
    events = stream(scale.mode_events)
    for name, options in MODES.items():
        for count in scale.modes:
            slow = not (options.fr and options.an)
            found = measure(spines("Filter", count), events.slice(0, 500) if slow else events, options)
            yield {"figure": "7", "template": name, "x": count, **found, "paper": "orders of magnitude by the indexes"}


def figure_8(scale: Scale) -> Iterator[dict[str, Any]]:
    events = sequences_rss.stream()
    events = events if scale is SCALES["paper"] else events.slice(0, 5_000)
    for template in sequences_rss.TEMPLATES:
        for count in scale.rss:
            found = measure(sequences_rss.spines(template, count), events, schema=sequences_rss.SCHEMA)
            yield {"figure": "8", "template": template, "x": count, **found, "paper": "Iteration above 100 at 40,000"}


FIGURES = {"promises": promises, "6a": figure_6a, "6b": figure_6b, "6c": figure_6c, "7": figure_7, "8": figure_8}


def run(scale: str, out: Path, figures: tuple[str, ...] = tuple(FIGURES)) -> Iterator[dict[str, Any]]:
    """The points of the figures, one after the other; a picture is drawn when a figure is done."""
    out.mkdir(parents=True, exist_ok=True)
    for name in figures:
        points = []
        for point in FIGURES[name](SCALES[scale]):
            points.append(point)
            yield point
        if name != "promises":
            _draw(name, points, out / f"sequences-{name}.png")


PAPER = {"6a": (1_000, "paper: above, at 400,000"), "8": (100, "paper: Iteration above, at 40,000")}
"""The levels that the paper's text gives."""


def _draw(name: str, points: list[dict[str, Any]], path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6, 4))
    for template in dict.fromkeys(p["template"] for p in points):
        ours = [p for p in points if p["template"] == template]
        axes.plot([p["x"] for p in ours], [p["events_per_second"] for p in ours], marker="o", label=template)
    if name in PAPER:
        level, words = PAPER[name]
        axes.axhline(level, color="grey", linestyle="--", label=words)
    axes.set_yscale("log")
    axes.set_ylabel("events / second")
    axes.set_xlabel({"6b": "Zipf exponent", "6c": "selectivity of a range"}.get(name, "subscriptions"))
    axes.set_title(f"Cayuga, figure {name}: our engine")
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", choices=sorted(SCALES), default="small")
    parser.add_argument("--out", type=Path, default=Path("bench-out"))
    parser.add_argument("--figure", choices=sorted(FIGURES), action="append")
    chosen = parser.parse_args()
    for point in run(chosen.scale, chosen.out, tuple(chosen.figure or FIGURES)):
        print(json.dumps(point), flush=True)


if __name__ == "__main__":
    main()
