"""A clairvoyant lower bound: what even a scheduler that knew every truth would have to ask on this event.

It must ask every predicate of every subscription that matches, and of each other subscription at least one that is
false. The second part is a minimum hitting set; its linear relaxation has the packing dual "give each subscription as
much as possible, no false predicate more than 1 in all". `packed` keeps a feasible packing at every step, so its sum is
a bound whenever it stops: dividing each subscription's share by the fullest load among its predicates leaves every load
at most 1, and raises shares until each subscription meets a full predicate. In between, shares are moved towards the
largest packing by prices on the loads; what that makes infeasible the last steps put right.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

ROUNDS = 60


def lower_bound(indptr: NDArray[np.int64], members: NDArray[np.int64], truths: list[int]) -> float:
    """At least so many predicates must be asked."""
    truth = np.array(truths, np.bool_)
    forced, packing = _bound(indptr, members, truth, ROUNDS)
    # The bound is a whole number of predicates; a little is kept back for rounding.
    return float(forced + np.ceil(packing - 1e-6))


@njit(cache=True)
def _bound(
    indptr: NDArray[np.int64], members: NDArray[np.int64], truth: NDArray[np.bool_], rounds: int
) -> tuple[int, float]:
    must = np.zeros(len(truth), np.bool_)
    share = np.zeros(len(indptr) - 1)
    degree = np.zeros(len(truth))
    for q in range(len(share)):
        false = 0
        for i in range(indptr[q], indptr[q + 1]):
            if not truth[members[i]]:
                false += 1
                degree[members[i]] += 1.0
        if false == 0:
            for i in range(indptr[q], indptr[q + 1]):
                must[members[i]] = True
        else:
            share[q] = 1.0
    forced = must.sum()
    # Subscriptions whose false predicates are seldom shared begin with more.
    for q in range(len(share)):
        if share[q] > 0.0:
            most = 0.0
            for i in range(indptr[q], indptr[q + 1]):
                if not truth[members[i]]:
                    most = max(most, degree[members[i]])
            share[q] = 1.0 / most**2
    load = np.zeros(len(truth))
    best = 0.0
    for _ in range(rounds):
        best = max(best, _fill(indptr, members, truth, share, load))
    # From a maximal packing towards the largest one: shares grow where the predicates are cheap and shrink where they
    # are dear, a predicate's price rising steeply as its load nears 1.
    for step in range(8 * rounds):
        softness = 0.2 if step < 2 * rounds else 0.1 if step < 5 * rounds else 0.05
        _loads(indptr, members, truth, share, load)
        for q in range(len(share)):
            if share[q] > 0.0:
                price = 0.0
                for i in range(indptr[q], indptr[q + 1]):
                    if not truth[members[i]]:
                        price += np.exp((load[members[i]] - 1.0) / softness)
                share[q] *= np.exp(0.5 * softness * min(1.0, max(-3.0, 1.0 - price)))
    for _ in range(rounds):
        best = max(best, _fill(indptr, members, truth, share, load))
    return forced, best


@njit(cache=True)
def _loads(
    indptr: NDArray[np.int64],
    members: NDArray[np.int64],
    truth: NDArray[np.bool_],
    share: NDArray[np.float64],
    load: NDArray[np.float64],
) -> None:
    load[:] = 0.0
    for q in range(len(share)):
        if share[q] > 0.0:
            for i in range(indptr[q], indptr[q + 1]):
                if not truth[members[i]]:
                    load[members[i]] += share[q]


@njit(cache=True)
def _fill(
    indptr: NDArray[np.int64],
    members: NDArray[np.int64],
    truth: NDArray[np.bool_],
    share: NDArray[np.float64],
    load: NDArray[np.float64],
) -> float:
    """Divide every share by the fullest load it meets: feasible afterwards, whatever it was before; the sum."""
    _loads(indptr, members, truth, share, load)
    total = 0.0
    for q in range(len(share)):
        if share[q] > 0.0:
            fullest = 0.0
            for i in range(indptr[q], indptr[q + 1]):
                if not truth[members[i]]:
                    fullest = max(fullest, load[members[i]])
            share[q] /= fullest
            total += share[q]
    return total
