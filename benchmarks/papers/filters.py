"""The BDD filtering paper (ICSE 2001), section 8: nodes before and after restriction, and the time to match messages.

Both tables of the paper, its numbers beside ours. On the same arrays run the paper's own algorithms, EvalBDD for total
messages (SiSL) and MVEvalBDD for partial ones (StSL), one event after the other, interleaved with the bit-parallel
engine; all of them must count the same matches.

What differs from the paper: the queries had to be guessed (see `workloads.filters`); atoms are normalised before there
are any nodes (x >= 10 is NOT x < 10), so 120 variables stand for its 208; the BDD has complemented edges.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import measure, scalar
from benchmarks.measure import Row, Timing, clock, interleaved, must, same_counts
from benchmarks.workloads.filters import DENSITIES, PAPER_SCHEMA, paper_messages, paper_queries
from headgate.columns import Columns
from headgate.filters.compile import Options
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.language.forms import cut_text
from headgate.plan.segment import collector_paused

SIZES = {"small": (2_500, 5_000, 7_500, 10_000), "paper": (25_000, 50_000, 75_000, 100_000)}
MESSAGES = 1_024
_COLUMNS = ("7.7%", "15.4%", "23.1%", "30.8%", "100%", "SiSL 100%")
PAPER_NODES = {25_000: (180_226, 108_889), 50_000: (351_616, 206_848), 75_000: (543_677, 299_942),
               100_000: (708_969, 376_992)}  # fmt: skip
PAPER_SECONDS = {
    25_000: (1.56, 3.81, 5.86, 8.23, 27.64, 20.12),
    50_000: (3.56, 7.63, 10.92, 14.74, 55.66, 41.58),
    75_000: (6.65, 12.49, 18.11, 22.56, 89.93, 61.75),
    100_000: (9.01, 15.57, 21.4, 30.83, 121.32, 81.64),
}
"""Seconds for 1000 messages on a Pentium Pro of 200 MHz."""


@dataclass(frozen=True)
class Built:
    total: FilterIndex
    """Of SiSL subscriptions, and timed."""
    strict: FilterIndex
    """Of StSL subscriptions, with its nodes counted before the restriction too."""
    parse: float
    compile: float


def build(queries: list[str]) -> Built:
    """From texts to cuts to an index, as a plan does it."""
    gc.collect()
    with collector_paused():
        begun = clock()
        cuts = [cut_text(text) for text in queries]
        parsed = clock()
        total = compile_filters([(c, "total") for c in cuts], PAPER_SCHEMA, None, Options(lanes="dense"))
        done = clock()
        strict = compile_filters([(c, "strict") for c in cuts], PAPER_SCHEMA, None, Options(lanes="dense", count=True))
    return Built(total, strict, parsed - begun, done - parsed)


def _matched(index: FilterIndex, messages: Columns, partial: bool, rounds: int) -> tuple[dict[str, Timing], int]:
    """The engine whole, its kernels alone, and the paper's algorithm, on the same messages."""
    dense, slots = scalar.only_dense(index), len(index)
    batch = list(scalar.blocks(index, messages))
    truths = np.concatenate([b.truths(len(dense.rows)) for b in batch])
    sets = np.concatenate([b.sets() for b in batch])
    if partial:
        truths[scalar.undefined_rows(index, messages)] = scalar.UNDEFINED
    ways: dict[str, Callable[[], Any]] = {
        "engine": lambda: index.count(messages),
        "kernels": lambda: scalar.count_in_words(dense, batch, slots),
        "scalar": lambda: scalar.count_by_event(dense, truths, sets, slots, partial=partial),
    }
    matches = same_counts({name: run() for name, run in ways.items()})
    return interleaved(ways, rounds), matches


def _timed_row(queries: int, column: str, built: Built, shape: str, rounds: int) -> Row:
    number = _COLUMNS.index(column)
    single = column.startswith("SiSL")
    attributes = list(DENSITIES.values())[number] if number < len(DENSITIES) else None
    messages = paper_messages(MESSAGES, attributes)
    index = built.total if single else built.strict
    times, matches = _matched(index, messages, not single, rounds)
    paper = PAPER_SECONDS.get(queries)
    thousand = 1000 / MESSAGES
    return {
        "table": "seconds per 1000 messages", "shape": shape, "queries": queries, "density": column,
        "paper_s": paper[number] if paper else None,
        **{f"{name}_s": round(t.median * thousand, 6) for name, t in times.items()},
        "engine_spread_s": [round(times["engine"].least * thousand, 6), round(times["engine"].most * thousand, 6)],
        "scalar_algorithm": "EvalBDD" if single else "MVEvalBDD",
        "ratio": round(times["scalar"].median / times["engine"].median, 2),
        "ratio_kernels": round(times["scalar"].median / times["kernels"].median, 2),
        "matches_a_message": round(matches / MESSAGES, 2),
    }  # fmt: skip


def _nodes_row(queries: int, built: Built, shape: str) -> Row:
    program = scalar.only_dense(built.strict).program
    before, after = PAPER_NODES.get(queries, (None, None))
    return {
        "table": "nodes", "shape": shape, "queries": queries, "paper_nodes": before, "nodes": program.unrestricted,
        "paper_restricted": after, "restricted": len(program.nodes),
        "paper_factor": round(before / after, 2) if before and after else None,
        "factor": round(program.unrestricted / len(program.nodes), 2),
    }  # fmt: skip


def run(scale: str, out: Path) -> Iterator[Row]:
    """Both tables, then the largest book of the harder guess, then the verdicts."""
    rows: list[Row] = []
    largest = SIZES[scale][-1]
    for shape, queries in [*(("chain", n) for n in SIZES[scale]), ("tree", largest)]:
        built = build(paper_queries(queries, shape=shape))
        rows.append(_nodes_row(queries, built, shape))
        yield rows[-1]
        yield {
            "table": "build", "shape": shape, "queries": queries, "parse_s": round(built.parse, 2),
            "compile_s": round(built.compile, 2), "build_s": round(built.parse + built.compile, 2),
        }  # fmt: skip
        for column in _COLUMNS if shape == "chain" else _COLUMNS[-1:]:
            rows.append(_timed_row(queries, column, built, shape, 5 if queries == largest else 3))
            yield rows[-1]
        if queries == largest:
            whole, ratio = built.parse + built.compile, rows[-1]["ratio"]
            yield must(f"times EvalBDD, {queries:,} {shape}s, total messages", ratio, scale, least=20)
            yield must(f"seconds to build {queries:,} {shape}s", whole, scale, most=15)
    plot([r for r in rows if r["shape"] == "chain"], out / "filters.png")


def plot(rows: list[Row], to: Path) -> None:
    """Left the nodes, right the seconds, both against the number of queries; crosses are the paper's, at its sizes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5))
    nodes = [r for r in rows if r["table"] == "nodes"]
    queries = [r["queries"] for r in nodes]
    for number, (key, label) in enumerate((("nodes", "before restriction"), ("restricted", "after"))):
        left.plot(queries, [r[key] for r in nodes], "o-", color=f"C{number}", label=label)
        nodes_told = [both[number] for both in PAPER_NODES.values()]
        left.plot(list(PAPER_NODES), nodes_told, "x:", color=f"C{number}", label=f"{label}, paper")
    left.set(xlabel="queries", ylabel="BDD nodes", ylim=(0, None))
    for column, colour in (("15.4%", "tab:green"), ("100%", "tab:orange"), ("SiSL 100%", "tab:blue")):
        timed = [r for r in rows if r.get("density") == column]
        for key, style in (("engine_s", "o-"), ("scalar_s", "s--")):
            right.plot(
                queries, [r[key] for r in timed], style, color=colour, label=f"{column} {key.removesuffix('_s')}"
            )
        told = [seconds[_COLUMNS.index(column)] for seconds in PAPER_SECONDS.values()]
        right.plot(list(PAPER_SECONDS), told, "x:", color=colour, label=f"{column} paper")
    right.set(xlabel="queries", ylabel="seconds per 1000 messages", yscale="log")
    left.legend(fontsize="small")
    right.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(to, dpi=120)
    pyplot.close(figure)


if __name__ == "__main__":
    measure.main(run)
