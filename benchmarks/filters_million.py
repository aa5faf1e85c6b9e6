"""A million conjunctions: 3 to 5 conjuncts, one of them an equality on a key of 10,000 values.

Matching from Arrow columns to counts, with event keys uniform and Zipf; against a kernel that checks every candidate of
every event one by one, on the rows that the engine built. Then what a plan and a book weigh, and how long one change of
the book takes to be in a plan.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import measure
from benchmarks.baselines import candidates_one_by_one
from benchmarks.measure import Row, clock, interleaved, must, same_counts
from benchmarks.memory import held, largest
from benchmarks.workloads.filters import MILLION_SCHEMA, million_events, million_texts
from headgate import Subscriptions
from headgate.columns import Columns
from headgate.events import decode
from headgate.filters.engine import SLICE, FilterIndex, _Slice
from headgate.filters.filing import Lane
from headgate.filters.rows import Batch, prepare
from headgate.plan import Plan
from headgate.plan.segment import collector_paused

SIZES = {"small": 100_000, "paper": 1_000_000}
EVENTS = {"small": SLICE, "paper": 4 * SLICE}
STREAM = MILLION_SCHEMA.stream
CHANGES = 20


def one_by_one(index: FilterIndex, columns: Columns) -> Callable[[], Any]:
    """The baseline on one slice: its rows are built outside the clock, in the sorted order that suits its cache."""
    assert not index.lanes.dense
    given = [_given(lane, _Slice(index, columns).batch()) for lane in index.lanes.sparse]

    def run() -> Any:
        counts = np.zeros(len(index), np.int64)
        kernel: Any = candidates_one_by_one
        for tables in given:
            kernel(*tables, counts)
        return counts

    return run


def _given(lane: Lane, batch: Batch) -> tuple[Any, ...]:
    """What the baseline reads: the key of every event, the conjuncts of every key, and the rows."""
    assert not len(lane.multiple)
    keys, placed = _keys(lane, batch)
    width, words = len(lane.rows), -(-len(keys) // 64)
    bits = np.zeros(words * width, np.uint64)
    prepare(lane.rows, placed).write(0, words, bits, 1, width)
    single = lane.single
    return keys, single.first, single.starts, single.literals, single.slots, width, bits


def _keys(lane: Lane, batch: Batch) -> tuple[Any, Batch]:
    """The key of each event in sorted order; a key of this workload is one cell."""
    assert (lane.low == lane.high).all()
    order, starts = lane.order(batch.cells)
    of_cell = np.full(lane.cells, -1, np.int64)
    of_cell[lane.low] = np.arange(len(lane.low))
    cells = np.repeat(np.arange(lane.cells), np.diff(starts))
    return of_cell[cells], Batch(len(order), order, batch.cells, batch.texts, batch.vectors, batch.complete)


def _table(columns: Columns) -> pa.Table:
    """The same events as they would come: an Arrow table."""
    values: dict[str, Any] = {a.name: columns[a.path].values for a in MILLION_SCHEMA}
    return pa.table({name: pa.array(v) for name, v in values.items()})


def _from_arrow(index: FilterIndex, table: pa.Table) -> Any:
    return index.count(decode(table, MILLION_SCHEMA).columns)


def _matching(index: FilterIndex, scale: str) -> Iterator[Row]:
    for keys, floor in (("uniform", 300_000), ("zipf", 150_000)):
        columns = million_events(EVENTS[scale], keys == "zipf")
        table, some = _table(columns), columns.slice(0, SLICE)
        baseline = one_by_one(index, some)
        ways: dict[str, Callable[[], Any]] = {
            "arrow": partial(_from_arrow, index, table),
            "columns": partial(index.count, columns),
            "one_by_one": baseline,
        }
        same_counts({"one by one": baseline(), "engine": index.count(some)})
        matches = same_counts({"arrow": ways["arrow"](), "columns": ways["columns"]()})
        times = interleaved(ways, 5)
        speeds = {n: (SLICE if n == "one_by_one" else columns.rows) / t.median for n, t in times.items()}
        ratio = speeds["arrow"] / speeds["one_by_one"]
        yield {
            "table": "matching", "keys": keys, "subscriptions": len(index), "events": columns.rows,
            "matches_an_event": round(matches / columns.rows, 1),
            **{f"{n}_events_a_second": round(v) for n, v in speeds.items()},
            "arrow_spread": [round(columns.rows / t) for t in (times["arrow"].most, times["arrow"].least)],
            "ratio": round(ratio, 1), "ratio_columns": round(speeds["columns"] / speeds["one_by_one"], 1),
            "note": f"one by one runs on {SLICE:,} events, its rows given; speeds are per event",
        }  # fmt: skip
        yield must(f"events/s from Arrow columns to counts, {keys} keys", speeds["arrow"], scale, least=floor)
        if keys == "zipf":
            yield must("times one-by-one, zipf keys", ratio, scale, least=20)


def _filled(count: int) -> tuple[Subscriptions, Row]:
    """A book of so many subscriptions, and what it weighs: the growth of this process."""
    book = Subscriptions().stream(STREAM, MILLION_SCHEMA)
    gc.collect()
    before, begun = measure.resident_bytes(), clock()
    with collector_paused():
        for i, text in enumerate(million_texts(count)):
            book.add(f"s{i}", text)
    gc.collect()
    weight = (measure.resident_bytes() - before) / count
    seconds = clock() - begun
    return book, {"table": "book", "subscriptions": count, "add_s": round(seconds, 2), "bytes_each": round(weight)}


def _weights(plan: Plan, index: FilterIndex, scale: str) -> Iterator[Row]:
    (segment,) = plan.segments
    whole, filters = held(segment), held(index)
    each = {f"index_{k}": round(v / len(plan), 1) for k, v in filters.items()}
    each |= {f"plan_{k}": round(v / len(plan), 1) for k, v in whole.items()}
    parts = {name: round(size / len(plan), 1) for name, size in largest(segment).items()}
    yield {"table": "plan", "bytes_each": each, "largest": parts}
    yield must("bytes of the plan a subscription", sum(whole.values()) / len(plan), scale, most=500)


def _changes(book: Subscriptions, scale: str) -> Iterator[Row]:
    """One subscription more, then one fewer, each compiled."""
    texts = list(million_texts(CHANGES, seed=9))
    times: dict[str, list[float]] = {"add": [], "remove": []}
    walls: dict[str, list[float]] = {"add": [], "remove": []}
    for i, text in enumerate(texts):
        before = len(book)
        for what, change in (
            ("add", partial(book.add, f"new{i}", text)),
            ("remove", partial(book.remove, f"s{i * 37}")),
        ):
            begun, wall = clock(), time.perf_counter()
            change()
            plan = book.compile()
            times[what].append(clock() - begun)
            walls[what].append(time.perf_counter() - wall)
            assert len(plan) == len(book)
        assert len(book) == before
    for what, taken in times.items():
        spread = {"least_ms": round(min(taken) * 1000, 2), "most_ms": round(max(taken) * 1000, 2)}
        spread["wall_ms"] = round(statistics.median(walls[what]) * 1000, 2)
        median = statistics.median(taken) * 1000
        yield {"table": "change", "what": what, "subscriptions": len(book), "median_ms": round(median, 2), **spread}
        yield must(f"ms for one {what} to be in a plan, median of {CHANGES}", median, scale, most=50)


def run(scale: str, out: Path) -> Iterator[Row]:
    """Fill a book, compile it, then match, weigh and change it."""
    book, row = _filled(SIZES[scale])
    yield row
    yield must("bytes of the book a subscription", row["bytes_each"], scale, most=1000)
    begun = clock()
    plan = book.compile()
    compiled = clock() - begun
    index = plan.segments[0].filters[STREAM]
    lanes = np.bincount(index.lanes.where, minlength=4).tolist()
    yield {
        "table": "compile", "subscriptions": len(plan), "compile_s": round(compiled, 2),
        "peak_gb": round(measure.peak_bytes() / 1e9, 2),
        "lanes": dict(zip(("never", "dense", "sparse", "both"), lanes, strict=True)),
    }  # fmt: skip
    rows = list(_matching(index, scale))
    yield from rows
    yield from _weights(plan, index, scale)
    yield from _changes(book, scale)
    plot([r for r in rows if r.get("table") == "matching"], out / "filters-million.png")


def plot(rows: list[Row], to: Path) -> None:
    """Events a second of each way, by the distribution of event keys."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    ways = ("arrow", "columns", "one_by_one")
    for i, way in enumerate(ways):
        heights = [r[f"{way}_events_a_second"] for r in rows]
        bars = axes.bar(np.arange(len(rows)) + (i - 1) * 0.27, heights, 0.25, label=way.replace("_", " "))
        axes.bar_label(bars, fmt="{:,.0f}", fontsize="small")
    axes.set_xticks(range(len(rows)), [f"{r['keys']} event keys" for r in rows])
    axes.set(ylabel="events a second", yscale="log", title=f"{rows[0]['subscriptions']:,} subscriptions, one core")
    axes.legend()
    figure.tight_layout()
    figure.savefig(to, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    measure.main(run)
