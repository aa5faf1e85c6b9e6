"""The paper's greedy path for Sub-Order, with its sign put right: edges by falling savings, joined end to end, in- and
out-degree at most one, no cycle. The product ranks by net savings, which is better and cheaper; this is for comparison.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headgate.operators import ranking
from headgate.operators.kernels import Floats, Ints, Longs
from headgate.operators.program import Program
from headgate.operators.ranking.kernels import difference, first_shared

NEIGHBOURS = 32
"""Where a predicate is shared by more, the greedy path weighs each chain against the next so many."""


def greedy_path(program: Program, chance: Floats, cost: Floats, neighbours: int = NEIGHBOURS) -> Longs:
    """The rank of every slot along the paper's path: the most saving edges, joined end to end."""
    indptr, nodes = ranking.chains(program, chance, cost)
    first, users = ranking.users_of(indptr, nodes, program.predicates)
    source, target, weight = _edges(indptr, nodes, first, users, chance, cost, neighbours)
    order = np.lexsort((target, source, -weight))
    after = _path(source[order], target[order], program.slots)
    return _along(after)


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
                if a == b or first_shared(indptr, nodes, a, b) != t:
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
