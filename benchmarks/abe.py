"""Boolean expressions by the generator of A-Tree (SIGMOD 2021): depth 1 to 6; 1000 attributes, 5 to 30 an event.

The engine as it chooses its lanes, against a shared DAG of AND and OR nodes that is evaluated for one event after the
other. The truth of every atom is given to that baseline, outside the clock, so to beat it is to beat atoms plus DAG.
The bit-parallel engine on that same DAG is printed too: it tells what the choice of lanes and the BDDs are worth.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure, scalar
from benchmarks.measure import Row, clock, interleaved, must, same_counts
from benchmarks.workloads.filters import abe_events, abe_schema, abe_texts
from headgate.filters.compile import Options
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.filters.program import Budget
from headgate.language.forms import Cut, cut_text
from headgate.plan.segment import collector_paused

SIZES = {"small": (1_000, 10_000), "paper": (10_000, 100_000)}
EVENTS = 4_096
BASELINE_EVENTS = 256
GIB = 1 << 30
A_TREE = "A-Tree, 1,392,196 advertising expressions, about 20 attributes an event: 1.6 ms an event, 205 MB"


def _compiled(cuts: list[Cut], options: Options) -> tuple[FilterIndex, float]:
    gc.collect()
    with collector_paused():
        begun = clock()
        index = compile_filters(((c, "null") for c in cuts), abe_schema(), None, options)
        return index, clock() - begun


def _build_row(count: int, index: FilterIndex, parse: float, seconds: float) -> Row:
    lanes = np.bincount(index.lanes.where, minlength=4).tolist()
    return {
        "table": "build", "expressions": count, "parse_s": round(parse, 2), "compile_s": round(seconds, 2),
        "peak_gib": round(measure.peak_bytes() / GIB, 2),
        "lanes": dict(zip(("never", "dense", "sparse", "both"), lanes, strict=True)),
        "nodes": sum(len(d.program.nodes) for d in index.lanes.dense),
        "dense_rows": sum(len(d.rows) for d in index.lanes.dense), "keys": len(index.lanes.sparse),
        "filed": sum(len(x.single) + len(x.multiple) for x in index.lanes.sparse),
    }  # fmt: skip


def run(scale: str, out: Path) -> Iterator[Row]:
    """Build, match and compare at two sizes. The peak is read before the baseline has anything."""
    rows: list[Row] = []
    events = abe_events(EVENTS)
    few = events.slice(0, BASELINE_EVENTS)
    for count in SIZES[scale]:
        texts = list(abe_texts(count))
        with collector_paused():
            begun = clock()
            cuts = [cut_text(text) for text in texts]
            parse = clock() - begun
        index, seconds = _compiled(cuts, Options())
        counts = index.count(events)
        peak = measure.peak_bytes() / GIB
        yield _build_row(count, index, parse, seconds)
        rows.append(_matching_row(count, index, cuts, events, few, counts))
        yield rows[-1]
        if count == SIZES[scale][-1]:
            yield must(f"GiB at most while building and matching {count:,} expressions", peak, scale, most=4)
            yield must(f"times the shared DAG an event, {count:,} expressions", rows[-1]["ratio"], scale, least=1)
        del index, cuts, texts
    plot(rows, out / "abe.png")


def _matching_row(count: int, index: FilterIndex, cuts: list[Cut], events: Any, few: Any, counts: Any) -> Row:
    plain, seconds = index, 0.0
    if index.lanes.sparse or len(index.lanes.dense) != 1 or len(index.lanes.dense[0].rows) <= Budget().rows:
        plain, seconds = _compiled(cuts, Options(lanes="dense", budget=Budget(variables=0)))
    # Else the engine chose that very program: neither a key paid, nor a BDD.
    dense = scalar.only_dense(plain)
    batch = list(scalar.blocks(plain, few))
    truths = np.concatenate([b.truths(len(dense.rows)) for b in batch])
    sets = np.concatenate([b.sets() for b in batch])
    ways: dict[str, Callable[[], Any]] = {
        "engine": lambda: index.count(events),
        "dag_in_words": lambda: plain.count(events),
        "dag_an_event": lambda: scalar.count_by_event(dense, truths, sets, count),
    }
    matches = same_counts({"engine": counts, "dag in words": ways["dag_in_words"]()})
    same_counts({"engine": index.count(few), "dag an event": ways["dag_an_event"]()})
    times = interleaved(ways, 3)
    speeds = {n: (few.rows if n == "dag_an_event" else events.rows) / t.median for n, t in times.items()}
    return {
        "table": "matching", "expressions": count, "matches_an_event": round(matches / events.rows, 1),
        **{f"{n}_events_a_second": round(v, 1) for n, v in speeds.items()},
        "ms_an_event": round(1000 / speeds["engine"], 4), "ratio": round(speeds["engine"] / speeds["dag_an_event"], 2),
        "ratio_dag_in_words": round(speeds["dag_in_words"] / speeds["dag_an_event"], 2),
        "dag_nodes": len(dense.program.nodes), "atoms": len(dense.rows), "dag_compile_s": round(seconds, 2),
        "note": f"the DAG an event runs on {few.rows} events, its atoms given; speeds are per event. {A_TREE}",
    }  # fmt: skip


def plot(rows: list[Row], to: Path) -> None:
    """Events a second of each way, by the number of expressions."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    for i, way in enumerate(("engine", "dag_in_words", "dag_an_event")):
        heights = [r[f"{way}_events_a_second"] for r in rows]
        bars = axes.bar(np.arange(len(rows)) + (i - 1) * 0.27, heights, 0.25, label=way.replace("_", " "))
        axes.bar_label(bars, fmt="{:,.0f}", fontsize="small")
    axes.set_xticks(range(len(rows)), [f"{r['expressions']:,} expressions" for r in rows])
    axes.set(ylabel="events a second", yscale="log")
    axes.legend()
    figure.tight_layout()
    figure.savefig(to, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    measure.main(run)
