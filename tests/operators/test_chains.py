"""Linked chains: the pairwise cost formula against enumeration, the order, insertion and deletion."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.papers.operators_path import greedy_path
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.errors import DuplicateName, UnknownName
from headgate.operators import ranking
from headgate.operators.chains import LinkedChains
from headgate.operators.kernels import chain_key
from headgate.operators.program import conjunctions
from headgate.operators.ranking import kernels
from headgate.oracle.operators import expected_cost

PREDICATES = 9
numbers = st.lists(st.floats(0.01, 0.99), min_size=PREDICATES, max_size=PREDICATES)
costs = st.lists(st.floats(0.1, 20.0), min_size=PREDICATES, max_size=PREDICATES)


@st.composite
def linked_pairs(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Two sets of predicates with one to three in common."""
    shared = draw(st.integers(1, 3))
    own = draw(st.tuples(st.integers(0, 3), st.integers(0, 3)))
    names = draw(st.permutations(range(PREDICATES)))
    common = names[:shared]
    return [*common, *names[shared : shared + own[0]]], [*common, *names[shared + own[0] : shared + sum(own)]]


@settings(deadline=None, max_examples=300)
@given(pair=linked_pairs(), chance=numbers, cost=costs)
def test_the_pairwise_formula_is_the_simulated_cost_difference(
    pair: tuple[list[int], list[int]], chance: list[float], cost: list[float]
) -> None:
    program = conjunctions(pair, PREDICATES)
    p, c = np.array(chance), np.array(cost)
    indptr, nodes = ranking.chains(program, p, c)
    a, b = (nodes[indptr[i] : indptr[i + 1]].tolist() for i in (0, 1))
    simulated = expected_cost([a, b], chance, cost) - expected_cost([b, a], chance, cost)
    assert kernels.difference(indptr, nodes, p, c, 0, 1) == pytest.approx(simulated, abs=1e-9)


@settings(deadline=None, max_examples=100)
@given(
    members=st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=4, unique=True), min_size=2, max_size=7),
    chance=numbers,
    cost=costs,
)
def test_net_savings_are_the_sum_of_the_pairwise_differences(
    members: list[list[int]], chance: list[float], cost: list[float]
) -> None:
    program = conjunctions(members, PREDICATES)
    p, c = np.array(chance), np.array(cost)
    indptr, nodes = ranking.chains(program, p, c)
    first, users = ranking.users_of(indptr, nodes, PREDICATES)
    made = kernels.exact_savings(indptr, nodes, first, users, p, c)
    for i in range(len(members)):
        total = -sum(kernels.difference(indptr, nodes, p, c, i, j) for j in range(len(members)) if i != j)
        assert made[i] == pytest.approx(total, abs=1e-9)
    if all(len(set(a) & set(b)) <= 1 for i, a in enumerate(members) for b in members[:i]):
        assert kernels.single_link_savings(indptr, nodes, p, c, PREDICATES) == pytest.approx(made, abs=1e-9)


@settings(deadline=None, max_examples=100)
@given(pair=linked_pairs(), chance=numbers, cost=costs)
@pytest.mark.parametrize("rank", [ranking.net_savings, greedy_path])
def test_of_two_chains_the_one_that_saves_goes_first(
    rank: object, pair: tuple[list[int], list[int]], chance: list[float], cost: list[float]
) -> None:
    program = conjunctions(pair, PREDICATES)
    p, c = np.array(chance), np.array(cost)
    indptr, nodes = ranking.chains(program, p, c)
    chains = [nodes[indptr[i] : indptr[i + 1]].tolist() for i in (0, 1)]
    order = np.argsort(rank(program, p, c))  # type: ignore[operator]  # parametrised
    chosen = expected_cost([chains[i] for i in order], chance, cost)
    other = expected_cost([chains[i] for i in order[::-1]], chance, cost)
    assert chosen <= other + 1e-9


def table(chance: list[float], cost: list[float]) -> LinkedChains[int]:
    return LinkedChains(chance.__getitem__, cost.__getitem__)


@settings(deadline=None, max_examples=100)
@given(
    changes=st.lists(st.tuples(st.integers(0, 5), st.lists(st.integers(0, 8), min_size=1, max_size=4)), max_size=12),
    chance=numbers,
    cost=costs,
)
def test_after_any_insertions_and_deletions_the_chains_are_those_of_a_fresh_build(
    changes: list[tuple[int, list[int]]], chance: list[float], cost: list[float]
) -> None:
    chains = table(chance, cost)
    present: dict[str, list[int]] = {}
    for number, predicates in changes:
        name = f"s{number}"
        if name in present:
            chains.delete(name)
            del present[name]
        else:
            chains.insert(name, predicates)
            present[name] = predicates
    fresh = table(chance, cost)
    for name, predicates in present.items():
        fresh.insert(name, predicates)
    assert {t: set(chains.sharing(t)) for t in range(9)} == {t: set(fresh.sharing(t)) for t in range(9)}
    chains.reorder()
    fresh.reorder()
    assert list(chains) == list(fresh)
    assert [chains[c] for c in chains] == [fresh[c] for c in fresh]


def test_a_chain_is_sorted_by_cost_for_its_chance_to_fail() -> None:
    chains = table([0.9, 0.5, 0.1], [1.0, 1.0, 5.0])
    chains.insert("s", [0, 1, 2])
    assert chains["s"] == (1, 2, 0)
    assert chain_key(0.5, 1.0, 1.0, 0.25) == pytest.approx(2.0)


def test_links_join_neighbours_that_hold_the_same_predicate() -> None:
    chains = table([0.1, 0.2, 0.3], [1.0] * 3)
    chains.insert("a", [0, 1])
    chains.insert("b", [1, 2])
    (link,) = chains.links()
    assert link.predicate == 1
    assert {link.left, link.right} == {"a", "b"}


def test_a_chain_goes_in_once_and_out_once() -> None:
    chains = table([0.5], [1.0])
    chains.insert("a", [0])
    with pytest.raises(DuplicateName, match="chain a already"):
        chains.insert("a", [0])
    chains.delete("a")
    assert len(chains) == 0
    assert chains.sharing(0) == ()
    with pytest.raises(UnknownName, match="no chain a"):
        chains.delete("a")
