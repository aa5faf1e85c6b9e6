"""Costs of chains, compiled: differences between pairs, net savings."""

from __future__ import annotations

import numpy as np
from numba import njit

from headgate.operators.kernels import Floats, Ints, Longs, chain_key


@njit(cache=True)
def keys(chance: Floats, cost: Floats, if_false: Floats, if_true: Floats) -> Floats:
    made = np.empty(len(chance))
    for i in range(len(chance)):
        made[i] = chain_key(chance[i], cost[i], if_false[i], if_true[i])
    return made


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
                if a != b and first_shared(indptr, nodes, a, b) == t:
                    d = difference(indptr, nodes, chance, cost, a, b)
                    savings[a] -= d
                    savings[b] += d
    return savings


@njit(cache=True)
def first_shared(indptr: Longs, nodes: Ints, a: int, b: int) -> int:
    for i in range(indptr[a], indptr[a + 1]):
        for j in range(indptr[b], indptr[b + 1]):
            if nodes[i] == nodes[j]:
                return int(nodes[i])
    return -1
