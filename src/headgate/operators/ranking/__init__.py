"""The order of subscriptions for Sub-Order: pairwise cost differences and net savings.

Two chains that share predicates cost differently depending on which is evaluated first (section 4.2.4). With the shared
nodes e_1..e_k in the same order on both,

    C(1 first) - C(2 first) = sum over l of (1 - p_l) (P_2 C'_1 - P_1 C'_2)

where P is the product of p over all nodes above e_l, and C' the expected cost of the unshared nodes above it, counting
only unshared ones: the sum of c_i times the product of p before i. A chain is sorted by c/(1-p), ties by predicate
number, which keeps links from crossing. `headgate.oracle.operators` checks this against simulation.

`net_savings` sorts by the sum of a chain's differences against all others. For one link the sum over partners splits
into sums over the predicate, so it takes one pass over the literals; pairs with several links are corrected one by one
as long as there are few enough of them.
"""

from __future__ import annotations

import numpy as np

from headgate.columns import offsets_of
from headgate.operators.kernels import ARGUMENT, KIND, LITERAL, Floats, Ints, Longs
from headgate.operators.program import Program
from headgate.operators.ranking import kernels

PAIRS = 20_000_000
"""Up to so many pairs of chains are looked at one by one."""


def chains(program: Program, chance: Floats, cost: Floats) -> tuple[Longs, Ints]:
    """The literals of each slot as a chain: (indptr, predicates), most decisive for its cost first."""
    slot = np.repeat(np.arange(program.slots), np.diff(program.start))
    literal = np.flatnonzero(program.nodes[:, KIND] == LITERAL)
    predicate = program.nodes[literal, ARGUMENT]
    key = kernels.keys(
        chance[predicate],
        cost[predicate],
        program.shares[program.weight[literal]],
        program.shares[program.weight[literal] + 1],
    )
    order = np.lexsort((predicate, key, slot[literal]))
    indptr = offsets_of(np.bincount(slot[literal], minlength=program.slots))
    return indptr, predicate[order].astype(np.int32)


def net_savings(program: Program, chance: Floats, cost: Floats, pairs: int = PAIRS) -> Longs:
    """The rank of every slot: those whose going first saves most come first."""
    indptr, nodes = chains(program, chance, cost)
    savings = kernels.single_link_savings(indptr, nodes, chance, cost, program.predicates)
    first, users = users_of(indptr, nodes, program.predicates)
    counts = np.diff(first)
    if int((counts * (counts - 1) // 2).sum()) <= pairs:
        savings = kernels.exact_savings(indptr, nodes, first, users, chance, cost)
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
    first = offsets_of(np.bincount(nodes, minlength=predicates))
    return first, chain[order]
