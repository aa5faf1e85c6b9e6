"""The algorithms that the filter kernels are measured against, compiled in the same way.

`eval_bdd` and `mv_eval_bdd` are the scalar algorithms of the BDD filtering paper (ICSE 2001, figures 3 and 5).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


@njit(cache=True)
def candidates_one_by_one(
    keys: Any, first_conjunct: Any, starts: Any, literals: Any, slots: Any, rows: int, words: Any, counts: Any
) -> None:
    """The baseline of the sparse lane: every candidate of every event, checked one by one on the same rows."""
    for e in range(len(keys)):
        key = keys[e]
        if key < 0:
            continue
        base, bit = (e >> 6) * rows, np.uint64(1) << np.uint64(e & 63)
        for c in range(first_conjunct[key], first_conjunct[key + 1]):
            holds = True
            for i in range(starts[c], starts[c + 1]):
                if not words[base + literals[i]] & bit:
                    holds = False
                    break
            if holds:
                counts[slots[c]] += 1


@njit(cache=True)
def eval_bdd(nodes: Any, first: int, values: Any) -> None:
    """EvalBDD: every node once, for one event; `values` holds a byte a row and a byte a node."""
    for i in range(nodes.shape[0]):
        test, high, low = nodes[i]
        edge = high if values[test >> 1] ^ (test & 1) else low
        values[first + i] = values[edge >> 1] ^ (edge & 1)


@njit(cache=True)
def mv_eval_bdd(nodes: Any, first: int, values: Any) -> None:
    """MVEvalBDD: as EvalBDD with 2 for undefined; an undefined test or successor makes the node undefined."""
    for i in range(nodes.shape[0]):
        test, high, low = nodes[i]
        x = values[test >> 1]
        if x == 2:
            values[first + i] = 2
            continue
        a, b = values[high >> 1], values[low >> 1]
        if a == 2 or b == 2:
            values[first + i] = 2
        elif x ^ (test & 1):
            values[first + i] = a ^ (high & 1)
        else:
            values[first + i] = b ^ (low & 1)
