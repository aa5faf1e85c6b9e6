"""The order of subscriptions for Sub-Order: pairwise cost differences, net savings, and the paper's greedy path.

Two chains that share predicates cost differently depending on which is evaluated first (section 4.2.4). With the shared
nodes e_1..e_k in the same order on both,

    C(1 first) - C(2 first) = sum over l of (1 - p_l) (P_2 C'_1 - P_1 C'_2)

where P is the product of p over all nodes above e_l, and C' the expected cost of the unshared nodes above it, counting
only unshared ones: the sum of c_i times the product of p before i. A chain is sorted by c/(1-p), ties by predicate
number, which keeps links from crossing. `headgate.oracle.operators` checks this against simulation.

`net_savings` sorts by the sum of a chain's differences against all others. For one link the sum over partners splits
into sums over the predicate, so it takes one pass over the literals; pairs with several links are corrected one by one
as long as there are few enough of them. `greedy_path` is the paper's step with its sign put right: edges by falling
savings, in- and out-degree at most one, no cycle.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headgate.operators.kernels import ARGUMENT, KIND, LITERAL, Floats, Ints, Longs, chain_key
from headgate.operators.program import Program

PAIRS = 20_000_000
"""Up to so many pairs of chains are looked at one by one."""
NEIGHBOURS = 32
"""Where a predicate is shared by more, the greedy path weighs each chain against the next so many."""


def chains(program: Program, chance: Floats, cost: Floats) -> tuple[Longs, Ints]:
    """The literals of each slot as a chain: (indptr, predicates), most decisive for its cost first."""
    slot = np.repeat(np.arange(program.slots), np.diff(program.start))
    literal = np.flatnonzero(program.nodes[:, KIND] == LITERAL)
    predicate = program.nodes[literal, ARGUMENT]
    key = _keys(
        chance[predicate],
        cost[predicate],
        program.shares[program.weight[literal]],
        program.shares[program.weight[literal] + 1],
    )
    order = np.lexsort((predicate, key, slot[literal]))
    indptr = np.zeros(program.slots + 1, np.int64)
    np.cumsum(np.bincount(slot[literal], minlength=program.slots), out=indptr[1:])
    return indptr, predicate[order].astype(np.int32)


@njit(cache=True)
def _keys(chance: Floats, cost: Floats, if_false: Floats, if_true: Floats) -> Floats:
    made = np.empty(len(chance))
    for i in range(len(chance)):
        made[i] = chain_key(chance[i], cost[i], if_false[i], if_true[i])
    return made


def net_savings(program: Program, chance: Floats, cost: Floats, pairs: int = PAIRS) -> Longs:
    """The rank of every slot: those whose going first saves most come first."""
    indptr, nodes = chains(program, chance, cost)
    savings = single_link_savings(indptr, nodes, chance, cost, program.predicates)
    first, users = users_of(indptr, nodes, program.predicates)
    counts = np.diff(first)
    if int((counts * (counts - 1) // 2).sum()) <= pairs:
        savings = exact_savings(indptr, nodes, first, users, chance, cost)
    return _ranks(savings)


def _ranks(savings: Floats) -> Longs:
    order = np.lexsort((np.arange(len(savings)), -savings))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank


def users_of(indptr: Longs, nodes: Ints, predicates: int) -> tuple[Longs, Longs]:
    """For every predicate the chains that hold it: (indptr, chains)."""
    chain = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    order = np.argsort(nodes, kind="stable")
    first = np.zeros(predicates + 1, np.int64)
    np.cumsum(np.bincount(nodes, minlength=predicates), out=first[1:])
    return first, chain[order]


@njit(cache=True)
def single_link_savings(indptr: Longs, nodes: Ints, chance: Floats, cost: Floats, predicates: int) -> Floats:
    """What going first saves each chain, as if no two chains shared more than one predicate."""
    reach = np.zeros(predicates)
    spent = np.zeros(predicates)
    for q in range(len(indptr) - 1):
        p, c = 1.0, 0.0
        for i in range(indptr[q], indptr[q + 1]):
            t = nodes[i]
            reach[t] += p
            spent[t] += c
            c += p * cost[t]
            p *= chance[t]
    savings = np.zeros(len(indptr) - 1)
    for q in range(len(indptr) - 1):
        p, c = 1.0, 0.0
        for i in range(indptr[q], indptr[q + 1]):
            t = nodes[i]
            savings[q] -= (1.0 - chance[t]) * ((reach[t] - p) * c - p * (spent[t] - c))
            c += p * cost[t]
            p *= chance[t]
    return savings


@njit(cache=True)
def difference(indptr: Longs, nodes: Ints, chance: Floats, cost: Floats, a: int, b: int) -> float:
    """C(a first) - C(b first), for any number of links."""
    total = 0.0
    i, j = indptr[a], indptr[b]
    reach_a, reach_b = 1.0, 1.0
    alone_a, alone_b = 1.0, 1.0
    spent_a, spent_b = 0.0, 0.0
    while i < indptr[a + 1]:
        t = nodes[i]
        at = -1
        for k in range(j, indptr[b + 1]):
            if nodes[k] == t:
                at = k
                break
        if at < 0:
            spent_a += cost[t] * alone_a
            alone_a *= chance[t]
            reach_a *= chance[t]
            i += 1
            continue
        while j < at:
            spent_b += cost[nodes[j]] * alone_b
            alone_b *= chance[nodes[j]]
            reach_b *= chance[nodes[j]]
            j += 1
        total += (1.0 - chance[t]) * (reach_b * spent_a - reach_a * spent_b)
        reach_a *= chance[t]
        reach_b *= chance[t]
        i += 1
        j += 1
    return total


@njit(cache=True)
def exact_savings(indptr: Longs, nodes: Ints, first: Longs, users: Longs, chance: Floats, cost: Floats) -> Floats:
    """What going first saves each chain, over all pairs that share a predicate; a pair counts once."""
    savings = np.zeros(len(indptr) - 1)
    for t in range(len(first) - 1):
        for i in range(first[t], first[t + 1]):
            for j in range(i + 1, first[t + 1]):
                a, b = users[i], users[j]
                if a != b and _first_shared(indptr, nodes, a, b) == t:
                    d = difference(indptr, nodes, chance, cost, a, b)
                    savings[a] -= d
                    savings[b] += d
    return savings


@njit(cache=True)
def _first_shared(indptr: Longs, nodes: Ints, a: int, b: int) -> int:
    for i in range(indptr[a], indptr[a + 1]):
        for j in range(indptr[b], indptr[b + 1]):
            if nodes[i] == nodes[j]:
                return int(nodes[i])
    return -1


def greedy_path(program: Program, chance: Floats, cost: Floats, neighbours: int = NEIGHBOURS) -> Longs:
    """The rank of every slot along the paper's path: the most saving edges, joined end to end."""
    indptr, nodes = chains(program, chance, cost)
    first, users = users_of(indptr, nodes, program.predicates)
    source, target, weight = _edges(indptr, nodes, first, users, chance, cost, neighbours)
    order = np.lexsort((target, source, -weight))
    after = _path(source[order], target[order], program.slots)
    return _along(after)


@njit(cache=True)
def _edges(
    indptr: Longs, nodes: Ints, first: Longs, users: Longs, chance: Floats, cost: Floats, neighbours: int
) -> tuple[Longs, Longs, Floats]:
    """(u, v, what u before v saves) for pairs that share a predicate, in the direction that saves."""
    size = 0
    for t in range(len(first) - 1):
        size += (first[t + 1] - first[t]) * neighbours
    source = np.empty(size, np.int64)
    target = np.empty(size, np.int64)
    weight = np.empty(size, np.float64)
    count = 0
    for t in range(len(first) - 1):
        for i in range(first[t], first[t + 1]):
            for j in range(i + 1, min(first[t + 1], i + 1 + neighbours)):
                a, b = users[i], users[j]
                if a == b or _first_shared(indptr, nodes, a, b) != t:
                    continue
                d = difference(indptr, nodes, chance, cost, a, b)
                if d != 0.0:
                    source[count] = a if d < 0 else b
                    target[count] = b if d < 0 else a
                    weight[count] = abs(d)
                    count += 1
    return source[:count], target[:count], weight[:count]


@njit(cache=True)
def _path(source: Longs, target: Longs, slots: int) -> Longs:
    """Take the edges in order; each chain has at most one before and one after it, and no ring closes."""
    after = np.full(slots, -1, np.int64)
    before = np.full(slots, -1, np.int64)
    group = np.arange(slots)
    for e in range(len(source)):
        u, v = source[e], target[e]
        if after[u] >= 0 or before[v] >= 0:
            continue
        a, b = u, v
        while group[a] != a:
            group[a] = group[group[a]]
            a = group[a]
        while group[b] != b:
            group[b] = group[group[b]]
            b = group[b]
        if a != b:
            group[b] = a
            after[u] = v
            before[v] = u
    return after


def _along(after: Longs) -> Longs:
    heads = np.ones(len(after), np.bool_)
    heads[after[after >= 0]] = False
    rank = np.empty(len(after), np.int64)
    at = 0
    for head in np.flatnonzero(heads):
        node = int(head)
        while node >= 0:
            rank[node] = at
            at += 1
            node = int(after[node])
    return rank
