"""The paper's subscriptions S1 to S5 over the example's stream: what was drawn is what is found."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from benchmarks.papers.operators_bound import lower_bound
from benchmarks.papers.operators_workload import workload
from examples.drones import SUBSCRIPTIONS, chains, match, stream

from headgate.operators.explain import evaluation
from headgate.operators.program import conjunctions
from headgate.oracle.operators import Tree, optimum


@pytest.mark.parametrize("schedule", ["naive", "sequential", "suborder", "greedy"])
def test_each_picture_matches_the_subscriptions_it_was_drawn_for(schedule: str) -> None:
    scenes, columns = stream(14)
    _, _, outcome = match(columns, schedule)
    names = list(SUBSCRIPTIONS)
    found: list[set[str]] = [set() for _ in scenes]
    for event, slot in zip(outcome.hits.event, outcome.hits.slot, strict=True):
        found[event].add(names[slot])
    assert found == [set(scene.expected) for scene in scenes]
    assert outcome.hits.problems == []


def test_an_explanation_tells_what_each_call_decided_and_saved() -> None:
    _, columns = stream(1)
    _, index, outcome = match(columns, "naive")
    told = evaluation(index, outcome.asked[0], list(SUBSCRIPTIONS))
    assert "loc_in('Bronx') -> TRUE" in told
    assert "chase_pattern('police_car', 'car') -> TRUE" in told
    assert "decided S1" in told
    assert "call(s), 11 predicate(s) in the book" in told


def test_the_chains_are_drawn_as_svg_dot_and_mermaid_with_the_same_boxes_steps_and_links() -> None:
    _, columns = stream(2)
    engine, index, _ = match(columns)
    drawn = chains(engine, index)
    boxes, steps, links = 2 + 2 + 3 + 4 + 3 + 5, 2 + 2 + 3 + 4 + 3, 3
    root = ElementTree.fromstring(drawn.svg())  # noqa: S314 - we wrote it ourselves
    kinds = [child.tag.rpartition("}")[2] for child in root]
    assert (kinds.count("g"), kinds.count("path")) == (boxes, steps + links)
    dot, chart = drawn.graphviz, drawn.mermaid
    assert (dot.count("shape="), dot.count(" -> ") - links, dot.count("style=dashed")) == (boxes, steps, links)
    assert (chart.count("["), chart.count(" --> "), chart.count(" -.->")) == (boxes, steps, links)
    assert "loc_in('Bronx')" in dot
    assert "loc_in('Bronx')" in chart


@pytest.mark.parametrize("seed", range(12))
def test_the_clairvoyant_bound_is_never_above_the_optimum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    members = [rng.choice(9, size=int(rng.integers(1, 4)), replace=False).tolist() for _ in range(7)]
    truths = (rng.random(9) < 0.4).astype(int).tolist()
    program = conjunctions(members, 9)
    indptr = np.cumsum([0, *map(len, members)])
    bound = lower_bound(indptr, np.array([t for m in members for t in m]), truths)
    least = optimum([Tree(program, s) for s in range(7)], truths, 9)
    assert least - 2 <= bound <= least


def test_the_workload_has_the_match_ratio_of_the_paper() -> None:
    w = workload(4_000, 1_000, zipf=1.0)
    held = []
    for i in range(60):
        truth = np.array(w.event(np.random.default_rng([1, i])), np.bool_)
        held.append(np.logical_and.reduceat(truth[w.members], w.indptr[:-1]).mean())
    assert np.mean(held) == pytest.approx(0.002, rel=0.5)
