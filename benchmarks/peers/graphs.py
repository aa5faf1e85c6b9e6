"""Graph subscriptions against one SPARQL ASK each, on pyoxigraph and rdflib, with the OPS paper's events.

What is matched is compared: an ASK then also says that its variables are different nodes, which is what our patterns mean.
The timed ASK leaves that out, in the peer's favour; each peer has the event loaded before the clock starts, while ours is
timed from the text of the event.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import rdflib
from rdflib.plugins.sparql import prepareQuery

from benchmarks import measure
from benchmarks.measure import Differ, Row, interleaved
from benchmarks.papers import graphs_workload as given
from benchmarks.papers.graphs import matcher_of
from benchmarks.quads import quad
from headgate.graphs import rdf
from headgate.graphs.event import EventGraph
from headgate.graphs.matching import Matcher

SIZES = {"small": (10, 100, 1_000), "paper": (10, 100, 1_000, 10_000)}
EVENTS = 3
RDFLIB_MOST = 10
"""rdflib takes seconds for some single queries of this shape, so it is asked few."""
ROUNDS = 3


def different(drawn: given.Drawn) -> str:
    """The ASK with all its nodes different from each other."""
    names = ["<urn:home>", *(f"?v{i}" for i in range(1, len(drawn.classes)))]
    unequal = " && ".join(f"{a} != {b}" for a, b in itertools.combinations(names, 2))
    return given.ask(drawn).removesuffix(" }") + f" FILTER ({unequal}) }}"


def ours(matcher: Matcher, work: given.Workload) -> list[set[int]]:
    events = [EventGraph.of(given.triples(e)) for e in work.events]
    found = matcher.match(events)
    matched: list[set[int]] = [set() for _ in events]
    for event, slot in zip(found.event.tolist(), found.slot.tolist(), strict=True):
        matched[event].add(slot)
    return matched


def stores(work: given.Workload) -> list[ox.Store]:
    made = []
    for event in work.events:
        store = ox.Store()
        for s, p, o in given.with_home(event):
            store.add(quad(s, p, o))
        made.append(store)
    return made


def same(name: str, expected: list[set[int]], asked: Callable[[int, int], bool], count: int) -> None:
    """The peer says of every event and subscription what we do."""
    for event, matched in enumerate(expected):
        for slot in range(count):
            if asked(event, slot) != (slot in matched):
                raise Differ(f"event {event}, subscription {slot}: we say {slot in matched}, {name} does not")


def run(scale: str, out: Path) -> Iterator[Row]:
    for size in SIZES[scale]:
        work = given.workload(size, 10, size, EVENTS, max(0.03, 1 / size))
        matcher = matcher_of(work)
        texts = [rdf.write(given.triples(e)) for e in work.events]
        expected = ours(matcher, work)
        loaded, strict = stores(work), [different(s) for s in work.subscriptions]
        plain = [given.ask(s) for s in work.subscriptions]
        same("pyoxigraph", expected, lambda e, s: bool(loaded[e].query(strict[s])), size)  # noqa: B023 - used at once

        def headgate(matcher: Matcher = matcher, texts: list[str] = texts) -> None:
            for text in texts:
                matcher.match([EventGraph.of(rdf.read(text, "turtle"))])

        def oxigraph(loaded: list[ox.Store] = loaded, plain: list[str] = plain) -> None:
            for store in loaded:
                for ask in plain:
                    bool(store.query(ask))

        ways: dict[str, Callable[[], object]] = {"headgate": headgate, "pyoxigraph": oxigraph}
        if size <= RDFLIB_MOST:
            ways["rdflib"] = _rdflib(work, expected)
        for name, timing in interleaved(ways, ROUNDS).items():
            each = 1e3 / len(work.events)
            yield {
                "table": "graphs", "x": size, "system": name, "events": len(work.events),
                "matches": sum(map(len, expected)), "ms_an_event": round(timing.median * each, 3),
                "least_ms": round(timing.least * each, 3), "most_ms": round(timing.most * each, 3), "rounds": ROUNDS,
                "peak_mib": round(measure.peak_bytes() / (1 << 20)),
            }  # fmt: skip
        if size > RDFLIB_MOST:
            yield {"table": "graphs", "x": size, "system": "rdflib", "why": "not asked: too slow at this size"}


def _rdflib(work: given.Workload, expected: list[set[int]]) -> Callable[[], None]:
    graphs = []
    for event in work.events:
        graph = rdflib.Graph()
        graph.parse(data=rdf.write(given.with_home(event)), format="nt")
        graphs.append(graph)
    strict: list[Any] = [prepareQuery(different(s)) for s in work.subscriptions]
    plain: list[Any] = [prepareQuery(given.ask(s)) for s in work.subscriptions]
    count = len(work.subscriptions)
    same("rdflib", expected, lambda e, s: bool(graphs[e].query(strict[s]).askAnswer), count)

    def asked() -> None:
        for graph in graphs:
            for ask in plain:
                graph.query(ask).askAnswer  # noqa: B018 - the answer is computed when it is asked for

    return asked


if __name__ == "__main__":
    measure.main(run)
