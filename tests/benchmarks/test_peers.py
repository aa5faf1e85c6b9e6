"""The peers that are no processes of their own say what they should: ASK queries, A-Greedy's order, plain SAT."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.measure import Differ
from benchmarks.papers import covering_workloads, graphs_workload
from benchmarks.papers.graphs import matcher_of
from benchmarks.papers.operators_bound import lower_bound
from benchmarks.papers.operators_workload import workload
from benchmarks.peers import covering, graphs, operators


def test_an_ask_with_different_nodes_matches_what_our_pattern_does() -> None:
    work = graphs_workload.workload(3, 10, 8, 1, 0.25)
    expected = graphs.ours(matcher_of(work), work)
    assert expected[0]
    stores = graphs.stores(work)
    asks = [graphs.different(s) for s in work.subscriptions]
    graphs.same("pyoxigraph", expected, lambda e, s: bool(stores[e].query(asks[s])), 8)
    with pytest.raises(Differ, match=r"event 0, subscription \d: we say"):
        graphs.same("liar", expected, lambda e, s: False, 8)


def test_a_greedy_asks_no_more_than_everything_and_no_less_than_the_bound() -> None:
    work = workload(60, 30)
    truths = work.event(np.random.default_rng(1))
    asked = operators.a_greedy(work, truths)
    assert lower_bound(work.indptr, work.members, truths) <= asked <= len(set(work.members.tolist()))


@pytest.mark.parametrize("scenario", list(covering.SCENARIOS))
def test_plain_sat_and_our_decision_know_the_truth_and_pairwise_cover_leaves_open(scenario: str) -> None:
    question = covering.Question.of(covering.SCENARIOS[scenario](np.random.default_rng(5), 30, 5))
    assert covering.WAYS["headgate"](question) is question.truth
    assert covering.WAYS["plain SAT"](question) is question.truth
    assert covering.WAYS["pairwise"](question) in (question.truth, None)


def test_the_scenarios_are_those_of_the_paper() -> None:
    assert covering.SCENARIOS["cells"] is covering_workloads.cells
