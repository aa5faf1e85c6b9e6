"""Graphs on which the paper's algorithm grows exponentially."""

from __future__ import annotations

import time
from itertools import pairwise

from tests.graphs.meaning import graph

from headgate.graphs import tree
from headgate.graphs.event import EventGraph, Limits
from headgate.graphs.index import build
from headgate.graphs.matching import Matcher
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import Prefixes, compile_pattern
from headgate.graphs.rdf import Triple
from headgate.graphs.terms import HOME

BASE = "http://example.org/"
LAYERS = 17


def ladder(layers: int = LAYERS) -> list[Triple]:
    """Two vertices a layer, each with an arc to both of the next: 2 + 4 * (layers - 1) arcs, 2 ** layers paths."""
    arc = f"<{BASE}p>"
    triples: list[Triple] = [(HOME, arc, "_:a0"), (HOME, arc, "_:b0")]
    for i in range(layers - 1):
        triples += [(f"_:{x}{i}", arc, f"_:{y}{i + 1}") for x in "ab" for y in "ab"]
    return triples


def chain(length: int, last: str = "") -> str:
    steps = ["_:H :p ?0", *(f"?{i} :p ?{i + 1}" for i in range(length - 1))]
    return "GRAPH HOM { " + " . ".join([*steps, last] if last else steps) + " }"


def matcher(text: str, limits: Limits | None = None) -> Matcher:
    index = build([compile_pattern(graph(text), Prefixes({"": BASE}))], Ontology.empty())
    return Matcher(index, limits or Limits(steps=20_000))


def test_a_ladder_of_64_arcs_and_more_is_matched_in_polynomial_time() -> None:
    event = EventGraph.of(ladder())
    assert len(event.arcs) >= 64
    found = matcher(chain(LAYERS)).match([event])
    assert found.event.tolist() == [0]
    assert found.counters["steps"] < 1_000


def test_its_matching_tree_is_as_small_as_the_ladder() -> None:
    pattern = compile_pattern(graph(chain(LAYERS)), Prefixes({"": BASE})).pattern
    event = EventGraph.of(ladder())
    rows = [[(s, o) for s, _, o in event.arcs]] * len(pattern.arcs)
    grown = tree.grow(pattern, rows)
    assert grown.possible
    assert grown.size < 200


def test_a_ladder_that_cannot_be_climbed_is_refused_before_the_search() -> None:
    found = matcher(chain(LAYERS, f"?{LAYERS - 1} :q ?x")).match(
        [EventGraph.of([*ladder(), (HOME, f"<{BASE}q>", "_:z")])]
    )
    assert found.event.tolist() == []
    assert found.counters["steps"] == 0


def rungs(layers: int) -> str:
    """A pattern that is a ladder itself, whose two sides must meet in vertices that are never the same."""
    parts = ["_:H :p ?a0, ?b0"]
    for i in range(layers - 1):
        parts += [f"?{x}{i} :p ?{y}{i + 1}" for x in "ab" for y in "ab"]
    return "GRAPH { " + " . ".join(parts) + " }"


def test_a_ladder_as_pattern_finds_a_ladder() -> None:
    found = matcher(rungs(LAYERS), Limits(steps=2_000)).match([EventGraph.of(ladder())])
    assert found.event.tolist() == [0]


def test_failures_are_remembered_where_a_search_goes_on_for_long() -> None:
    """Wide layers, and a pattern whose last layer needs one vertex more than there is: pruning cannot see it."""
    layers, width = 12, 4
    arc = f"<{BASE}p>"
    names = [[f"_:v{i}_{j}" for j in range(width)] for i in range(layers)]
    event: list[Triple] = [(HOME, arc, v) for v in names[0]]
    for above, below in pairwise(names):
        event += [(a, arc, b) for a in above for b in below]
    event += [(v, f"<{BASE}end>", t) for v in names[-1] for t in ("_:t0", "_:t1")]
    # A chain through the layers, then three different ends where there are two.
    text = chain(layers).replace("HOM ", "").removesuffix(" }") + f" . ?{layers - 1} :end ?x, ?y, ?z }}"
    started = time.perf_counter()
    found = matcher(text, Limits(steps=1_000_000)).match([EventGraph.of(event)])
    assert (found.event.tolist(), found.given_up) == ([], ())
    assert found.counters["steps"] < 100_000, "4 ** 12 paths lead there"
    assert time.perf_counter() - started < 20


def test_a_search_that_exceeds_its_limit_says_so_and_decides_nothing() -> None:
    layers, width = 6, 6
    arc = f"<{BASE}p>"
    nodes = [f"_:v{i}" for i in range(layers * width)]
    event: list[Triple] = [(HOME, arc, v) for v in nodes]
    event += [(a, arc, b) for a in nodes for b in nodes if a != b]
    text = "GRAPH { " + " . ".join(["_:H :p ?0", *(f"?{i} :p ?{i + 1}" for i in range(20)), "?20 :p _:H"]) + " }"
    found = matcher(text.replace("?20 :p _:H", "?20 :p ?0"), Limits(steps=10)).match([EventGraph.of(event)])
    assert found.event.tolist() == []
    assert [(g.event, g.slot, g.reason) for g in found.given_up] == [(0, 0, "the search was given up after 10 steps")]
