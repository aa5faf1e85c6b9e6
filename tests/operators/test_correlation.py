"""Pairs of predicates: what one answer says of others, where it is believed, and that it saves calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from benchmarks.papers.operators_correlation import Planted, planted
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.columns import Columns
from headgate.language import ast
from headgate.operators import operator
from headgate.operators.answer import ERROR, FALSE, TRUE, UNKNOWN
from headgate.operators.caller import Caller, Reply, Request
from headgate.operators.correlation import Correlation, Links
from headgate.operators.engine import OperatorEngine
from headgate.operators.program import conjunctions
from headgate.operators.schedule import Residuals, Run, greedy, no_joins, run_table
from headgate.operators.statistics import Prior, Statistics
from headgate.oracle.operators import Tree, optimum

PREDICATES = 6


class Steady(Caller):
    """Every call takes a millisecond, so that the order does not depend on the machine."""

    def ask(self, requests: Sequence[Request]) -> list[Reply]:
        return [replace(reply, milliseconds=1.0) for reply in super().ask(requests)]


def matches(work: Planted, drawn: list[list[int]], paired: bool) -> tuple[list[tuple[int, int]], int, OperatorEngine]:
    """What the engine finds on the events, and in how many calls."""

    @operator(cost=1.0, needs=["n"])
    def sees(event: dict[str, int], predicate: int) -> bool:
        return bool(drawn[event["n"]][predicate])

    engine = OperatorEngine([sees], schedule=greedy(paired=paired), caller=Steady())
    bodies = [ast.And(tuple(ast.Call("sees", (ast.Literal(t),)) for t in m)) for m in work.members]
    outcome = engine.run(engine.compile(bodies), Columns.of("drone", {"n": ("bigint", list(range(len(drawn))))}))
    return list(zip(outcome.hits.event.tolist(), outcome.hits.slot.tolist(), strict=True)), outcome.calls, engine


def test_planted_correlation_saves_calls_and_changes_no_match() -> None:
    work = planted(subscriptions=300, predicates=100, groups=10)
    drawn = [work.event(np.random.default_rng([1, e])) for e in range(800)]
    oracle = [(e, s) for e, truths in enumerate(drawn) for s, m in enumerate(work.members) if all(truths[t] for t in m)]
    with_pairs, few, engine = matches(work, drawn, paired=True)
    without, many, _ = matches(work, drawn, paired=False)
    assert with_pairs == without == oracle
    assert len(oracle) > 100
    assert engine.statistics.pairs.saved()
    # The first 256 events only teach.
    assert few < 0.96 * many


def test_without_correlation_no_pair_is_believed() -> None:
    work = replace(planted(subscriptions=300, predicates=100, groups=10), follow=0.0)
    pairs = Correlation(0.998)
    pairs.watch([str(t) for t in range(100)])
    every = np.arange(100)
    for e in range(400):
        pairs.observe(every, np.array(work.event(np.random.default_rng([2, e])), np.bool_))
    assert pairs.links(every) is None


def pair_of(both: int, neither: int, one: int = 0) -> Correlation:
    pairs = Correlation(1.0)
    pairs.watch(["a", "b"])
    for held, times in (((True, True), both), ((False, False), neither), ((True, False), one), ((False, True), one)):
        for _ in range(times):
            pairs.observe(np.array([0, 1]), np.array(held))
    return pairs


def said(links: Links, predicate: int, truth: int) -> tuple[Any, Any]:
    found = links.told(predicate, truth)
    assert found is not None
    return found[0].tolist(), found[1].tolist()


def test_a_pair_says_what_to_expect_of_either_given_the_other() -> None:
    links = pair_of(both=30, neither=60, one=10).links(np.array([1, -1, 0]))
    assert links is not None
    assert said(links, 0, TRUE) == ([2], pytest.approx([(30 + 4 * 40 / 110) / 44]))
    assert said(links, 2, FALSE) == ([0], pytest.approx([(10 + 4 * 40 / 110) / 74]))
    assert links.told(1, TRUE) is None


@pytest.mark.parametrize("truth", [ERROR, UNKNOWN])
def test_a_call_that_failed_says_nothing_of_others(truth: int) -> None:
    links = pair_of(both=50, neither=50).links(np.array([0, 1]))
    assert links is not None
    assert links.told(0, truth) is None


def test_a_few_events_are_no_evidence() -> None:
    assert pair_of(both=6, neither=6).links(np.array([0, 1])) is None


def test_what_is_watched_gives_way_only_if_no_event_asks_it_any_more() -> None:
    pairs = Correlation(1.0, room=2)
    pairs.watch(["a", "b"])
    pairs.observe(pairs.slots(["a", "b"]), np.array([True, True]))
    pairs.watch(["c", "d"])
    assert (pairs.slots(["a", "b", "c"]).tolist(), pairs.changes) == ([0, 1, -1], 0)
    pairs.observe(pairs.slots(["a"]), np.array([True]))
    pairs.watch(["c", "d"])
    assert sorted(pairs.slots(["a", "c", "b"]).tolist()) == [-1, 0, 1]
    assert pairs.changes == 1
    assert pairs.saved() == {}


def learned(predicates: str, held: list[tuple[bool, ...]]) -> Statistics:
    made = Statistics(decay=1.0)
    rows = np.array([made.number(name, "op", Prior()) for name in predicates])
    made.pairs.watch(list(predicates))
    for truths in held:
        made.observe(rows, np.array(truths), np.ones(len(rows)))
        made.pairs.observe(made.pairs.slots(list(predicates)), np.array(truths))
    return made


def test_pairs_are_saved_and_merged_with_the_other_statistics() -> None:
    one = learned("ba", [(True, False)] * 3)
    two = learned("abc", [(True, True, False), (False, True, False)])
    back = Statistics.load(one.save())
    assert back.pairs.saved() == one.pairs.saved() == {"a": {"b": [0.0, 3.0, 0.0, 0.0]}}
    one.merge([two])
    assert one.pairs.saved() == {
        "a": {"b": [0.0, 4.0, 0.0, 1.0], "c": [1.0, 0.0, 1.0, 0.0]},
        "b": {"c": [0.0, 0.0, 2.0, 0.0]},
    }


chances = st.lists(st.floats(0.05, 0.95), min_size=PREDICATES, max_size=PREDICATES)
sets = st.lists(st.integers(0, PREDICATES - 1), min_size=1, max_size=4, unique=True)
told = st.dictionaries(
    st.integers(0, PREDICATES - 1),
    st.tuples(*[st.dictionaries(st.integers(0, PREDICATES - 1), st.floats(0.0, 1.0), max_size=4)] * 2),
)


@settings(deadline=None, max_examples=200)
@given(
    members=st.lists(sets, min_size=1, max_size=8),
    table=st.lists(st.sampled_from([FALSE, TRUE]), min_size=PREDICATES, max_size=PREDICATES),
    chance=chances,
    pairs=told,
)
def test_greedy_asks_what_decides_most_as_far_as_the_event_has_shown(
    members: list[list[int]],
    table: list[int],
    chance: list[float],
    pairs: dict[int, tuple[dict[int, float], dict[int, float]]],
) -> None:
    program = conjunctions(members, PREDICATES)
    trees = [Tree(program, s) for s in range(program.slots)]
    links = Links(
        {
            t: tuple((np.array(list(g), np.int32), np.array(list(g.values()), np.float64)) for g in given)  # type: ignore[misc]  # a pair
            for t, given in pairs.items()
        }
    )
    asked: dict[bool, list[int]] = {}
    for guarded in (False, True):
        packed = Residuals(program).of(
            np.arange(program.slots), np.zeros(0, np.bool_), np.array(chance), np.ones(PREDICATES)
        )
        going = Run(greedy(guarded), program, packed, no_joins, links, np.array(chance))
        asked[guarded] = run_table(going, table)
        found = going.residual.value[going.residual.roots].tolist()
        assert found == [int(all(table[t] for t in m)) for m in members]
    assert len(asked[True]) <= max(map(len, members)) * optimum(trees, table, PREDICATES)
    now, known = list(chance), dict[int, int]()
    for t in asked[False]:
        score = dict.fromkeys(range(PREDICATES), 0.0)
        for s, tree in enumerate(trees):
            for number in {int(program.nodes[program.start[s] + node, 2]) for node in tree.open(known)}:
                p = min(max(now[number], 1e-6), 1 - 1e-6)
                score[number] += (1 - p) + p * 0.5 / len(members[s])
        assert score[t] >= max(score.values()) * (1 - 1e-9)
        known[t] = table[t]
        for other, p in pairs.get(t, ({}, {}))[table[t]].items():
            if abs(p - chance[other]) > abs(now[other] - chance[other]):
                now[other] = p
