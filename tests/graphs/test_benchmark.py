"""What the benchmark compares with must answer the same, and its bound must be one."""

from __future__ import annotations

import pytest
from benchmarks.papers import graphs, graphs_workload
from benchmarks.papers.graphs_decomposition import Decomposition

from headgate.graphs.event import EventGraph


@pytest.mark.parametrize(("classes", "subscriptions"), [(2, 40), (4, 60), (10, 100)])
def test_the_decomposition_algorithm_matches_what_the_engine_matches(classes: int, subscriptions: int) -> None:
    work = graphs_workload.workload(classes, classes, subscriptions, 3)
    matcher = graphs.matcher_of(work)
    for led in (False, True):
        network = Decomposition(work.subscriptions, led=led)
        for event in work.events:
            found = set(matcher.match([EventGraph.of(graphs_workload.triples(event))]).slot.tolist())
            assert found
            assert network.match(event) == found


def test_equal_parts_of_patterns_are_one() -> None:
    work = graphs_workload.workload(1, 4, 40, 1)
    once, twice = (Decomposition(s, led=True) for s in (work.subscriptions, (*work.subscriptions, *work.subscriptions)))
    assert len(once.parts) == len(twice.parts) < 19 * 40


def test_no_mean_of_matching_trees_lies_below_its_bound() -> None:
    for classes in (2, 10):
        work = graphs_workload.workload(classes, classes, 200, 3)
        matcher = graphs.matcher_of(work)
        rate = graphs.ours(matcher, work)["match_rate"]
        assert graphs.tree_nodes(matcher, work) >= graphs.tree_bound(rate)
