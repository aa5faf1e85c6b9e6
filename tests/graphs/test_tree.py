"""The matching tree is a sound check, and replays what went by before."""

from __future__ import annotations

from hypothesis import given, settings
from tests.graphs.cases import Case, cases
from tests.graphs.meaning import ontology_of
from tests.graphs.test_properties import PLAIN, compiled

from headgate.graphs import tree
from headgate.graphs.event import EventGraph
from headgate.graphs.index import build
from headgate.oracle import graph_kernels
from headgate.oracle import graphs as oracle


def grown(case: Case, e: int, slot: int) -> tree.MatchingTree:
    _, named = compiled(case)
    index = build(named[slot : slot + 1], ontology_of(case.meaning))
    found = graph_kernels.statements(index, EventGraph.of(case.events[e]))
    return tree.grow(
        index.patterns[0], [[(s, o) for m, s, o in found if m == wanted] for wanted in index.columns.arc_m]
    )


@given(cases())
@settings(PLAIN, max_examples=100)
def test_an_event_that_matches_has_a_checked_root(case: Case) -> None:
    graphs, _ = compiled(case)
    for e, event in enumerate(case.events):
        for slot, graph in enumerate(graphs):
            if oracle.matches(graph, event, case.meaning):
                assert grown(case, e, slot).possible
