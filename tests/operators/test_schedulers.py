"""The compiled schedulers against their plain twins, on random formulas and truth tables."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from benchmarks.papers.operators_path import greedy_path
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import UsageError
from headgate.language import ast
from headgate.operators.answer import ERROR, FALSE, TRUE, UNKNOWN
from headgate.operators.body import Both, Early, Either, Formula, Late
from headgate.operators.kernels import chain_key
from headgate.operators.predicate import Predicate
from headgate.operators.program import Flattener, Program, conjunctions
from headgate.operators.ranking import net_savings
from headgate.operators.schedule import Residuals, Run, greedy, no_joins, run_table, scheduler, suborder
from headgate.oracle.operators import Tree, optimum, walk_in_order

PREDICATES = 7
NAMES = [Predicate(f"p{i}", ()) for i in range(PREDICATES)]
leaves = st.one_of(
    st.builds(Late, st.sampled_from(NAMES), st.booleans()),
    st.builds(Early, st.sampled_from([ast.Attribute(("a",)), ast.Attribute(("b",))])),
)
formulas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(Both, st.lists(inner, min_size=2, max_size=4).map(tuple)),
        st.builds(Either, st.lists(inner, min_size=2, max_size=4).map(tuple)),
    ),
    max_leaves=8,
)
truths = st.lists(st.sampled_from([FALSE, FALSE, TRUE, TRUE, ERROR, UNKNOWN]), min_size=PREDICATES, max_size=PREDICATES)
plain_truths = st.lists(st.sampled_from([FALSE, TRUE]), min_size=PREDICATES, max_size=PREDICATES)
sets = st.lists(st.integers(0, PREDICATES - 1), min_size=1, max_size=4, unique=True)
hubs = st.permutations(range(1, PREDICATES)).map(lambda order: [[t, 0] for t in order[:4]])
"""Subscriptions that one predicate could decide, the last of each."""
chances = st.lists(st.floats(0.05, 0.95), min_size=PREDICATES, max_size=PREDICATES)
costs = st.lists(st.floats(0.1, 10.0), min_size=PREDICATES, max_size=PREDICATES)
SCHEDULERS = ["naive", "sequential", "suborder", "greedy"]


def program_of(made: Sequence[Formula]) -> tuple[Program, int]:
    flat = Flattener()
    for predicate in NAMES:
        flat.predicates[predicate] = len(flat.predicates)
    for part in (ast.Attribute(("a",)), ast.Attribute(("b",))):
        flat.early[(part, "null")] = len(flat.early)
    for f in made:
        flat.add(f)
    return flat.program(), len(flat.early)


def run(
    name: str,
    program: Program,
    early: Sequence[bool],
    table: Sequence[int],
    chance: Sequence[float],
    cost: Sequence[float],
    order: Sequence[int] | None = None,
) -> tuple[list[int], list[int]]:
    """The predicates asked and the values of the roots."""
    slots = np.array(range(program.slots) if order is None else order, np.int64)
    packed = Residuals(program).of(slots, np.array(early, np.bool_), np.array(chance), np.array(cost))
    going = Run(scheduler(name), program, packed, no_joins)
    asked = run_table(going, table)
    return asked, going.residual.value[going.residual.roots].tolist()


@pytest.mark.parametrize("name", SCHEDULERS)
@settings(deadline=None, max_examples=150)
@given(
    made=st.lists(formulas, min_size=1, max_size=6),
    early=st.tuples(st.booleans(), st.booleans()),
    table=truths,
    chance=chances,
    cost=costs,
)
def test_every_scheduler_decides_every_formula_as_the_plain_evaluation_does(
    name: str, made: list[Formula], early: tuple[bool, bool], table: list[int], chance: list[float], cost: list[float]
) -> None:
    program, _ = program_of(made)
    asked, found = run(name, program, early, table, chance, cost)
    everything = dict(enumerate(table))
    assert found == [Tree(program, s, early).value(everything) for s in range(program.slots)]
    assert len(asked) == len(set(asked))


@pytest.mark.parametrize("name", ["naive", "sequential", "suborder"])
@settings(deadline=None, max_examples=150)
@given(
    made=st.lists(formulas, min_size=1, max_size=6),
    early=st.tuples(st.booleans(), st.booleans()),
    table=truths,
    cost=costs,
)
def test_the_walking_schedulers_ask_exactly_what_their_plain_twin_asks(
    name: str, made: list[Formula], early: tuple[bool, bool], table: list[int], cost: list[float]
) -> None:
    program, _ = program_of(made)
    chance = [0.5] * PREDICATES
    if name == "suborder":  # in formulas with OR the key depends on the literal; the plain twin knows conjunctions
        program = conjunctions([[p % PREDICATES for p in range(s, s + 3)] for s in range(4)], PREDICATES)
    trees = [Tree(program, s, early) for s in range(program.slots)]
    asked, _ = run(name, program, early, table, chance, cost)
    assert asked == walk_in_order(trees, table, name, lambda t: chain_key(chance[t], cost[t], 1.0, 0.1))


@settings(deadline=None, max_examples=150)
@given(made=st.lists(formulas, min_size=1, max_size=6), table=truths, chance=chances, cost=costs)
def test_greedy_always_asks_the_predicate_that_decides_most_for_its_cost(
    made: list[Formula], table: list[int], chance: list[float], cost: list[float]
) -> None:
    program, _ = program_of(made)
    trees = [Tree(program, s, (True, False)) for s in range(program.slots)]
    slots = np.arange(program.slots)
    packed = Residuals(program).of(slots, np.array([True, False]), np.array(chance), np.array(cost))
    asked = run_table(Run(greedy(guarded=False), program, packed, no_joins), table)
    known: dict[int, int] = {}
    for t in asked:
        score = dict.fromkeys(range(PREDICATES), 0.0)
        for tree in trees:
            for node in tree.open(known):
                at = int(program.start[tree.slot]) + node
                number = int(program.nodes[at, 2])
                if_false, if_true = program.shares[program.weight[at] : program.weight[at] + 2]
                score[number] += ((1 - chance[number]) * if_false + chance[number] * if_true) / cost[number]
        assert score[t] >= max(score.values()) * (1 - 1e-9)
        assert score[t] > 0
        known[t] = table[t]
    assert all(tree.value(known) is not None for tree in trees)


@pytest.mark.parametrize("name", ["sequential", "greedy"])
@settings(deadline=None, max_examples=200)
@given(
    members=st.lists(sets, min_size=1, max_size=8) | hubs,
    table=plain_truths | st.just([FALSE] * PREDICATES),
    chance=chances,
    cost=costs,
)
def test_sequential_and_guarded_greedy_stay_within_d_times_the_optimum(
    name: str, members: list[list[int]], table: list[int], chance: list[float], cost: list[float]
) -> None:
    program = conjunctions(members, PREDICATES)
    asked, _ = run(name, program, (), table, chance, cost)
    trees = [Tree(program, s) for s in range(program.slots)]
    assert len(asked) <= max(map(len, members)) * optimum(trees, table, PREDICATES)


def test_without_the_guard_greedy_may_leave_the_bound_that_the_guard_keeps() -> None:
    # One predicate in every subscription decides all of them, but it looks dear and the others look cheap.
    members = [[0, 1 + i] for i in range(12)]
    program = conjunctions(members, 13)
    chance, cost = np.full(13, 0.5), np.array([100.0] + [1.0] * 12)
    table = [FALSE] + [TRUE] * 12
    slots = np.arange(program.slots)
    counts = {}
    for guarded in (False, True):
        packed = Residuals(program).of(slots, np.zeros(0, np.bool_), chance, cost)
        counts[guarded] = len(run_table(Run(greedy(guarded), program, packed, no_joins), table))
    assert counts[False] == 13
    assert counts[True] <= 2


def test_sequential_goes_on_after_its_subscription_is_decided() -> None:
    # Short-circuiting would ask one predicate of each pair and never the shared one: 50 where the optimum is 1.
    members = [[1 + i, 0] for i in range(50)]
    program = conjunctions(members, 51)
    packed = Residuals(program).of(np.arange(50), np.zeros(0, np.bool_), np.full(51, 0.5), np.ones(51))
    asked = run_table(Run(scheduler("sequential"), program, packed, no_joins), [FALSE] + [FALSE] * 50)
    assert asked == [1, 0]


def test_naive_remembers_but_does_not_look_ahead() -> None:
    program = conjunctions([[0, 1], [2, 1], [1, 2]], 3)
    packed = Residuals(program).of(np.arange(3), np.zeros(0, np.bool_), np.full(3, 0.5), np.ones(3))
    assert run_table(Run(scheduler("naive"), program, packed, no_joins), [TRUE, FALSE, TRUE]) == [0, 1, 2]


@pytest.mark.parametrize("ranking", [net_savings, greedy_path])
def test_suborder_takes_subscriptions_in_the_order_of_its_ranking(ranking: object) -> None:
    members = [[0, 1, 2], [2, 3], [3, 4, 5], [5]]
    program = conjunctions(members, 6)
    chance, cost = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6]), np.ones(6)
    rank = suborder(ranking).arrange(program, chance, cost)  # type: ignore[arg-type]  # parametrised
    assert rank is not None
    assert sorted(rank.tolist()) == [0, 1, 2, 3]


def test_an_unknown_scheduler_is_refused_by_name() -> None:
    with pytest.raises(UsageError, match="no scheduler random"):
        scheduler("random")
