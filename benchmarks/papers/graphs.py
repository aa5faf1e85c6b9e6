"""Figures 8a to 8f of the OPS paper (Middleware 2004), and two peers on the same events.

    python -m benchmarks.papers.graphs --scale small|paper --out FOLDER [--must]

Figure 8b compares with the paper's own peer, the decomposition algorithm, written here in plain Python
(`graphs_decomposition`); the paper had both in Java. With connected parts of equal size it is far from the 500 ms of the
paper, and with arcs that lead from part to part it is faster than ours up to some hundred subscriptions.

Figure 8f cannot be as the paper states it, "about 5 nodes, growing just a little": the tree of a pattern that matches
holds each of its 10 vertices and 11 arcs at least, so the mean is at least 1 + 20 * rate, which alone grows from 1.3 to
5.8 nodes over the paper's rates of matching. The bound stands in the rows and in the plot.

The other peers: one SPARQL ASK per subscription on pyoxigraph, and on rdflib at the sizes where it can run. A peer gets the
event loaded and only its queries are timed; homomorphism suffices it, while ours are injective, and its statements
come in an order in which each hangs on an earlier one. Ours is timed twice: one event at a time from its text to the
bindings of its matches, and its matching alone in one batch. All times are processor time of one core.

The rows named `must` are verdicts on the figures the project promises; `--must` measures those alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pyoxigraph as ox

from benchmarks.measure import clock, must
from benchmarks.papers import graphs_workload as given
from benchmarks.papers.graphs_decomposition import Decomposition
from benchmarks.quads import quad
from headgate.graphs import rdf, tree
from headgate.graphs.event import EventGraph
from headgate.graphs.index import build
from headgate.graphs.matching import Bindings, Matcher
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import Prefixes, compile_pattern

mpl.use("Agg")

Row = dict[str, Any]
SIZES = {"small": [500, 1_000, 2_000], "paper": [500, 1_000, 2_000, 4_000, 6_000, 8_000, 10_000]}
CLASSES = {"small": [2, 6, 10, 20], "paper": [2, 4, 6, 8, 10, 12, 14, 16, 18, 20]}
EVENTS = {"small": 5, "paper": 20}
_PREFIXES = Prefixes({"": given.BASE})


def matcher_of(work: given.Workload) -> Matcher:
    named = [compile_pattern(given.pattern(s), _PREFIXES) for s in work.subscriptions]
    return Matcher(build(named, Ontology.empty()))


def milliseconds(call: Callable[[], object], repeat: int = 5) -> float:
    """The median of several runs, after one that does not count."""
    call()
    taken = []
    for _ in range(repeat):
        started = clock()
        call()
        taken.append(1e3 * (clock() - started))
    return statistics.median(taken)


def ours(matcher: Matcher, work: given.Workload) -> Row:
    texts = [rdf.write(given.triples(e)) for e in work.events]
    events = [EventGraph.of(given.triples(e)) for e in work.events]

    def one_by_one() -> None:
        for text in texts:
            event = EventGraph.of(rdf.read(text, "turtle"))
            list(Bindings(matcher.index, [event.terms], matcher.match([event])))

    found = matcher.match(events)
    matched = len(set(zip(found.event.tolist(), found.slot.tolist(), strict=True)))
    return {
        "ms_per_event": milliseconds(one_by_one) / len(events),
        "ms_per_event_in_batch": milliseconds(lambda: matcher.match(events)) / len(events),
        "match_rate": matched / len(events) / len(work.subscriptions),
        "candidates_per_event": found.counters["candidates"] / len(events),
        "events": len(events),
    }


def tree_nodes(matcher: Matcher, work: given.Workload) -> float:
    """The mean number of nodes of a matching tree, over all subscriptions and some events."""
    events = [EventGraph.of(given.triples(e)) for e in work.events[:3]]
    table, _ = matcher.rows(matcher.index.dictionary.encode(events))
    columns = matcher.index.columns
    nodes = trees = 0
    for e, event in enumerate(events):
        n = len(event.terms)
        rows: dict[int, list[tuple[int, int]]] = {}
        for key in table.keys[table.at[e] : table.at[e + 1]].tolist():
            rows.setdefault(key // (n * n), []).append((key // n % n, key % n))
        for p, pattern in enumerate(matcher.index.patterns):
            ms = columns.arc_m[columns.arcs_at[p] : columns.arcs_at[p + 1]].tolist()
            nodes += tree.grow(pattern, [rows.get(m, []) for m in ms]).size
            trees += 1
    return nodes / trees


def tree_bound(rate: float) -> float:
    """The least mean number of nodes: a root each, and every vertex and arc of the patterns that match."""
    return 1 + rate * (given.PATTERN_VERTICES + given.PATTERN_ARCS - 1)


def by_decomposition(work: given.Workload, matcher: Matcher) -> Row:
    """Milliseconds for an event, from its arcs to the names of what matched, as published and with arcs that lead from
    part to part; both must match what ours does."""
    found = [set(matcher.match([EventGraph.of(given.triples(e))]).slot.tolist()) for e in work.events]
    row: Row = {}
    for name, led in (("decomposition_ms", False), ("decomposition_led_ms", True)):
        network = Decomposition(work.subscriptions, led=led)
        assert list(map(network.match, work.events)) == found
        row[name] = milliseconds(partial(_each, network, work), repeat=3) / len(work.events)
    return row


def _each(network: Decomposition, work: given.Workload) -> None:
    for event in work.events:
        network.match(event)


def by_pyoxigraph(work: given.Workload) -> float:
    """Milliseconds for one event: an ASK for each subscription."""
    asks = [given.ask(s) for s in work.subscriptions]
    taken = []
    for event in work.events[:3]:
        store = ox.Store()
        for s, p, o in given.with_home(event):
            store.add(quad(s, p, o))
        started = clock()
        matched = sum(bool(store.query(ask)) for ask in asks)
        taken.append(1e3 * (clock() - started))
        assert matched
    return statistics.median(taken)


def by_rdflib(work: given.Workload) -> float | None:
    """The same on rdflib, with its queries prepared; None where it is not installed."""
    try:
        import rdflib
        from rdflib.plugins.sparql import prepareQuery
    except ImportError:
        return None
    asks = [prepareQuery(given.ask(s)) for s in work.subscriptions]
    graph = rdflib.Graph()
    graph.parse(data=rdf.write(given.with_home(work.events[0])), format="nt")
    started = clock()
    for ask in asks:
        graph.query(ask).askAnswer  # noqa: B018 - the answer is computed when it is asked for
    return 1e3 * (clock() - started)


def run(scale: str, out: Path) -> Iterator[Row]:
    """All rows of all figures; the pictures go to the folder `out`."""
    rows: list[Row] = []

    def done(row: Row) -> Row:
        rows.append(row)
        return row

    for size in SIZES[scale]:
        work = given.workload(size, 10, size, EVENTS[scale])
        matcher = matcher_of(work)
        setting = {"classes": 10, "subscriptions": size}
        yield done({"figure": "8a", **setting, **ours(matcher, work)})
        yield done({"figure": "8e", **setting, "nodes_per_tree": tree_nodes(matcher, work)})
    for size in (1, 5, 10, 20):
        work = given.workload(size, 10, size, 1, max(0.05, 1 / size))
        matcher = matcher_of(work)
        row = {"figure": "8b", "classes": 10, "subscriptions": size, **ours(matcher, work)}
        row.update(by_decomposition(work, matcher))
        # rdflib orders statements by the terms they hold, so that one query can take a minute: not at every size.
        slow = by_rdflib(work) if size >= 10 else None
        yield done({**row, "pyoxigraph_ms": by_pyoxigraph(work), "rdflib_ms": slow})
    for classes in CLASSES[scale]:
        work = given.workload(classes, classes, 1_000, EVENTS[scale])
        matcher = matcher_of(work)
        measured = ours(matcher, work)
        setting = {"classes": classes, "subscriptions": 1_000}
        yield done({"figure": "8c,d", **setting, **measured})
        nodes = {"nodes_per_tree": tree_nodes(matcher, work), "match_rate": measured["match_rate"]}
        yield done({"figure": "8f", **setting, **nodes, "least_nodes": tree_bound(measured["match_rate"])})
    for row in peers(scale):
        yield done(row)
    for row in promises(scale):
        yield done(row)
    draw(rows, out)


def peers(scale: str) -> Iterator[Row]:
    """One ASK per subscription, at 1,000 subscriptions; rdflib at 100."""
    work = given.workload(7, 10, 1_000, 10)
    matcher = matcher_of(work)
    mine = ours(matcher, work)["ms_per_event"]
    theirs = by_pyoxigraph(work)
    setting = {"figure": "peers", "classes": 10, "subscriptions": 1_000, "ms_per_event": mine}
    yield {**setting, **by_decomposition(work, matcher)}
    yield must("at 1,000 subscriptions, times faster than one ASK each", theirs / mine, scale, least=50)
    work = given.workload(7, 10, 100, 1)
    mine = ours(matcher_of(work), work)["ms_per_event"]
    yield {"figure": "peers", "subscriptions": 100, "ms_per_event": mine, "rdflib_ms": by_rdflib(work)}


def promises(scale: str) -> Iterator[Row]:
    """What must hold, measured."""
    work = given.workload(8, 10, 10_000, 10)
    measured = ours(matcher_of(work), work)
    yield must("ms an event at 10,000 subscriptions, 10 classes, one core", measured["ms_per_event"], scale, most=5)
    lines = ["@prefix : <http://example.org/> .", f"@prefix rdfs: <{given.RDFS}> ."]
    lines += [f":C{i} rdfs:subClassOf :C{i // 2}, :C{i // 3} ." for i in range(1, 1_000)]
    lines += [f":p{i} rdfs:subPropertyOf :p{i // 2} ; rdfs:domain :C{i % 999} ." for i in range(1, 1_500)]
    started = clock()
    ontology = Ontology.parse("\n".join(lines))
    taken = clock() - started
    yield must("s to load and close an ontology of 1,000 classes and 1,500 properties", taken, scale, most=2)
    graphs = given.spread(9, 1_000, 1_500, 9_091)
    started = clock()
    index = build([compile_pattern(g, _PREFIXES) for g in graphs], ontology)
    taken = clock() - started
    yield must(f"s to index {len(index.columns.arc_m):,} statement patterns over it", taken, scale, most=10)


PAPER: dict[str, tuple[tuple[float, float], ...]] = {
    "8a": ((10_000, 1_200.0),),
    "8b": ((20, 1.0), (20, 500.0)),
    "8c": ((2, 2_500.0), (20, 50.0)),
    "8d": ((0.238, 2_500.0), (0.013, 50.0)),
    "8e": ((10_000, 5.0),),
    "8f": ((0.013, 5.0), (0.238, 5.0)),
}
"""The points that the paper's text gives, on a Pentium 4 of 1.6 GHz; in 8b its own way and the decomposition algorithm."""


def draw(rows: list[Row], out: Path) -> None:
    from matplotlib import pyplot

    def points(figure: str, x: str, y: str) -> tuple[list[float], list[float]]:
        chosen = sorted((r[x], r[y]) for r in rows if r.get("figure") == figure and r.get(y) is not None)
        return [a for a, _ in chosen], [b for _, b in chosen]

    panels = [
        ("8a", "8a", "subscriptions", ["ms_per_event", "ms_per_event_in_batch"], True),
        (
            "8b",
            "8b",
            "subscriptions",
            ["ms_per_event", "decomposition_ms", "decomposition_led_ms", "pyoxigraph_ms", "rdflib_ms"],
            True,
        ),
        ("8c", "8c,d", "classes", ["ms_per_event"], True),
        ("8d", "8c,d", "match_rate", ["ms_per_event"], True),
        ("8e", "8e", "subscriptions", ["nodes_per_tree"], False),
        ("8f", "8f", "match_rate", ["nodes_per_tree", "least_nodes"], False),
    ]
    sheet, axes = pyplot.subplots(2, 3, figsize=(13, 7))
    for (title, figure, x, names, log), axis in zip(panels, axes.flat, strict=True):
        for name in names:
            bound = name == "least_nodes"
            label = "no mean can be smaller" if bound else name
            axis.plot(*points(figure, x, name), marker="" if bound else "o", ls="--" if bound else "-", label=label)
        axis.plot(*zip(*PAPER[title], strict=True), marker="x", markersize=9, ls="", color="grey", label="paper")
        axis.set_title(f"OPS, figure {title}")
        axis.set_xlabel(x.replace("_", " "))
        if log:
            axis.set_yscale("log")
        else:
            axis.set_ylim(0, 1.15 * axis.get_ylim()[1])
        axis.legend(fontsize=8)
    sheet.tight_layout()
    out.mkdir(parents=True, exist_ok=True)
    sheet.savefig(out / "graphs.png", dpi=110)
    pyplot.close(sheet)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", choices=sorted(SIZES), default="small")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/out"))
    parser.add_argument("--must", action="store_true")
    options = parser.parse_args()
    alone = chain(peers(options.scale), promises(options.scale))
    for row in alone if options.must else run(options.scale, options.out):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
