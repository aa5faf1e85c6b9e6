"""Where greedy finds the predicate that decides most for its cost, compiled.

Predicates of like scores lie on one shelf, and those of the topmost shelf that has any are on a heap.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headgate.operators.kernels import (
    CHANCE,
    COST,
    HEAPED,
    IF_FALSE,
    IF_TRUE,
    SHELF,
    SHELVES,
    Floats,
    Ints,
    Longs,
    Residual,
)

ARITY = 4
"""Children of a heap node: a flat heap has fewer levels, and neighbours share a cache line."""


@njit(cache=True, inline="always")
def score(worth: Floats, t: int) -> float:
    """What asking t is expected to decide, for its cost."""
    p = min(max(worth[4 * t + CHANCE], 1e-6), 1.0 - 1e-6)
    return float(((1.0 - p) * worth[4 * t + IF_FALSE] + p * worth[4 * t + IF_TRUE]) / worth[4 * t + COST])


@njit(cache=True, inline="always")
def _before(key: float, t: int, other_key: float, other: int) -> bool:
    """Greater scores first; of equal ones the predicate that was met first."""
    return key > other_key or (key == other_key and t < other)


@njit(cache=True)
def sink(keys: Floats, heap: Ints, size: int, at: int) -> None:
    key, t = keys[at], heap[at]
    while True:
        child = ARITY * at + 1
        if child >= size:
            break
        for other in range(child + 1, min(child + ARITY, size)):
            if _before(keys[other], heap[other], keys[child], heap[child]):
                child = other
        if not _before(keys[child], heap[child], key, t):
            break
        keys[at], heap[at] = keys[child], heap[child]
        at = child
    keys[at], heap[at] = key, t


@njit(cache=True, inline="always")
def shelf_of(scale: Floats, key: float) -> int:
    """Greater scores lie higher. The fourth root: scores differ by factors, and most are far below the best."""
    return int(min(np.sqrt(np.sqrt(key / scale[0])), 1.0) * (SHELVES - 1)) if key > 0 else 0


@njit(cache=True, inline="always")
def put(below: Ints, shelf: Ints, shelves: Ints, t: int, at: int) -> None:
    below[t] = shelves[at]
    shelves[at] = t
    shelf[t] = at


@njit(cache=True)
def _take(s: Residual, t: int) -> None:
    """Off its shelf."""
    at, before = s.shelves[s.shelf[t]], -1
    while at != t:
        at, before = s.below[at], at
    if before < 0:
        s.shelves[s.shelf[t]] = s.below[t]
    else:
        s.below[before] = s.below[t]
    s.shelf[t] = -1


@njit(cache=True)
def clear(s: Residual, counters: Longs) -> None:
    """Put what lies on the next shelf on the heap, which is empty: down to the first one that has something live."""
    below, shelf, shelves, keys, heap, live = s.below, s.shelf, s.shelves, s.keys, s.heap, s.live
    size = 0
    while size == 0 and counters[SHELF] > 0:
        counters[SHELF] -= 1
        t = shelves[counters[SHELF]]
        shelves[counters[SHELF]] = -1
        while t >= 0:
            following = below[t]
            shelf[t] = -1
            if live[t] > 0:
                key = score(s.worth, t)
                at = shelf_of(s.scale, key)
                if at < counters[SHELF]:
                    put(below, shelf, shelves, t, at)
                else:
                    keys[size] = key
                    heap[size] = t
                    size += 1
            t = following
    for at in range((size - 2) // ARITY, -1, -1):
        sink(keys, heap, size, at)
    counters[HEAPED] = size


@njit(cache=True)
def push(s: Residual, counters: Longs, t: int) -> None:
    """On the heap, or on its shelf where that is lower than those that are on the heap."""
    keys, heap = s.keys, s.heap
    key = score(s.worth, t)
    if s.shelf[t] >= 0:
        _take(s, t)
    if shelf_of(s.scale, key) < counters[SHELF]:
        put(s.below, s.shelf, s.shelves, t, shelf_of(s.scale, key))
        return
    at = counters[HEAPED]
    counters[HEAPED] += 1
    while at > 0:
        above = (at - 1) // ARITY
        if not _before(key, t, keys[above], heap[above]):
            break
        keys[at], heap[at] = keys[above], heap[above]
        at = above
    keys[at], heap[at] = key, t


@njit(cache=True)
def pop(keys: Floats, heap: Ints, counters: Longs) -> None:
    counters[HEAPED] -= 1
    size = counters[HEAPED]
    keys[0], heap[0] = keys[size], heap[size]
    if size:
        sink(keys, heap, size, 0)


@njit(cache=True)
def heapify(s: Residual, counters: Longs) -> None:
    """Put every live predicate on a shelf by its score now, and the topmost ones on the heap."""
    keys, shelf, live, worth = s.keys, s.shelf, s.live, s.worth
    s.shelves[:] = -1
    s.scale[0] = 1e-300
    for t in range(len(live)):
        keys[t] = score(worth, t) if live[t] > 0 else 0.0
        s.scale[0] = max(s.scale[0], keys[t])
    for t in range(len(live) - 1, -1, -1):
        shelf[t] = -1
        if live[t] > 0:
            put(s.below, shelf, s.shelves, t, shelf_of(s.scale, keys[t]))
    counters[SHELF] = SHELVES
    clear(s, counters)
