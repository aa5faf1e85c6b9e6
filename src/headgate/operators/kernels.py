"""The residual of one event, compiled: the formulas that are still open, as arrays.

`gather` copies the trees of the subscriptions that are open for an event, settles their early parts and numbers the
predicates that are left; `climb` decides the gates above a node that has its value. A residual is many narrow arrays,
for the sake of the cache, packed into a few, because handing an array from Python to compiled code is what costs most:
see `unfold`. The schedulers' kernels work on it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Bytes = NDArray[np.int8]
Ints = NDArray[np.int32]
Longs = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

AND, OR, ORDERED, EXHAUSTIVE, LITERAL, EARLY, JOIN = 0, 1, 2, 3, 4, 5, 6
FALSE, TRUE, ERROR, UNKNOWN = 0, 1, 2, 3
PENDING, DEAD = -1, 4

# Columns of a program's node. OPEN: how many children of a gate are undecided. JOINED: the join its rows go to, or -1.
KIND, PARENT, ARGUMENT, WANTED, SIZE, OPEN, JOINED = 0, 1, 2, 3, 4, 5, 6
COLUMNS = 7
# Places in `worth`, four a predicate: the weights of its live literals for FALSE and for TRUE, its chance, its cost.
IF_FALSE, IF_TRUE, CHANCE, COST = 0, 1, 2, 3
# Places in `counters`: first the sizes of the parts, then what a run counts, then which scheduler it follows.
NODES, ROOTS, PREDICATES, LITERALS, JOINS = 0, 1, 2, 3, 4
ASKED, MARKS, RESERVED, WIDTH, HEAPED, CURSOR, LISTED, READY, CURRENT, SHELF = 5, 6, 7, 8, 9, 10, 11, 12, 13, 14
CHOOSER, GUARDED = 15, 16
COUNTERS = 17

ASIDE = 64
"""How many favourites the guarantee may refuse before the best owned predicate is taken instead."""
SHELVES = 1024
"""Predicates of like scores lie on one shelf, and only those of the topmost one in order: a score that falls is put down
one shelf lower, and need not sink through all the others."""


class Residual(NamedTuple):
    """The open formulas of one event. Its predicates are numbered anew from 0; `number` is the one in the program."""

    value: Bytes
    kind: Bytes
    wanted: Bytes
    parent: Ints
    argument: Ints
    size: Ints
    open: Ints
    joined: Ints
    root: Ints
    weight: Ints
    """Where in `shares` the pair (weight of FALSE, weight of TRUE) of a literal stands."""
    roots: Ints
    number: Ints
    first: Ints
    live: Ints
    truth: Ints
    owned: Ints
    leaves: Ints
    """The literals of predicate t are `leaves[first[t] : first[t + 1]]`."""
    heap: Ints
    work: Ints
    below: Ints
    """The next predicate on the shelf of this one, or -1."""
    shelf: Ints
    """The shelf of a predicate, -1 for one on the heap."""
    shelves: Ints
    """The first predicate of each shelf, or -1."""
    ready: Ints
    worth: Floats
    keys: Floats
    scale: Floats
    """One number: the score of the topmost shelf."""


@njit(cache=True, inline="always")
def unfold(shape: Bytes, links: Ints, value: Bytes, ints: Ints, floats: Floats, counters: Longs) -> Residual:
    """The packed arrays of a residual as its parts; runs as Python too. `shape` and `links` never change."""
    n, r, p, k = counters[NODES], counters[ROOTS], counters[PREDICATES], counters[LITERALS]
    a = 6 * n
    b = a + r
    c = b + p
    d = c + p + 1
    e = n + 3 * p
    f = e + 2 * p + 8
    g = f + p + ASIDE
    h = g + p
    i = h + p
    j = i + SHELVES
    w = 6 * p + 8
    return Residual(
        value,
        shape[:n],
        shape[n:],
        links[:n],
        links[n : 2 * n],
        links[2 * n : 3 * n],
        ints[:n],
        links[3 * n : 4 * n],
        links[4 * n : 5 * n],
        links[5 * n : a],
        links[a:b],
        links[b:c],
        links[c:d],
        ints[n : n + p],
        ints[n + p : n + 2 * p],
        ints[n + 2 * p : e],
        links[d : d + k],
        ints[e:f],
        ints[f:g],
        ints[g:h],
        ints[h:i],
        ints[i:j],
        ints[j:],
        floats[: 4 * p],
        floats[4 * p : w],
        floats[w:],
    )


@njit(cache=True)
def gather(
    nodes: Ints,
    start: Longs,
    weight: Ints,
    shares: Floats,
    slots: Longs,
    early: Flags,
    chance: Floats,
    cost: Floats,
    where: Ints,
) -> tuple[Bytes, Ints, Bytes, Ints, Floats, Longs]:
    """The packed residual of the given slots, roots in the order given. `where` is scratch: -1 for every predicate."""
    total = 0
    for slot in slots:
        total += start[slot + 1] - start[slot]
    value = np.full(total, PENDING, np.int8)
    shape = np.empty(2 * total, np.int8)
    kind, wanted = shape[:total], shape[total:]
    space = np.empty(6 * total, np.int32)
    parent, argument, size = space[:total], space[total : 2 * total], space[2 * total : 3 * total]
    joined, root, shared = space[3 * total : 4 * total], space[4 * total : 5 * total], space[5 * total :]
    opened = np.empty(total, np.int32)
    most = min(total, len(where))
    number = np.empty(most, np.int32)
    live = np.zeros(most, np.int32)
    worth = np.zeros(4 * most, np.float64)
    at = 0
    count = 0
    literals = 0
    joins = 0
    for slot in slots:
        here = at
        plain = True
        for n in range(start[slot], start[slot + 1]):
            kind[at] = nodes[n, KIND]
            wanted[at] = nodes[n, WANTED]
            parent[at] = nodes[n, PARENT] + here if nodes[n, PARENT] >= 0 else -1
            argument[at] = nodes[n, ARGUMENT]
            size[at] = nodes[n, SIZE]
            opened[at] = nodes[n, OPEN]
            joined[at] = nodes[n, JOINED]
            root[at] = here
            shared[at] = weight[n]
            plain = plain and kind[at] != EARLY
            at += 1
        if not plain:
            for m in range(here, at):
                if kind[m] == EARLY and value[m] == PENDING:
                    value[m] = TRUE if early[argument[m]] else FALSE
                    top = climb(value, kind, parent, size, opened, m)
                    for below in range(top + 1, top + size[top]):
                        if value[below] == PENDING:
                            value[below] = DEAD
        for m in range(here, at):
            if kind[m] == LITERAL and value[m] == PENDING:
                old = argument[m]
                t = where[old]
                if t < 0:
                    t = count
                    where[old] = t
                    number[t] = old
                    worth[4 * t + CHANCE] = chance[old]
                    worth[4 * t + COST] = cost[old]
                    count += 1
                argument[m] = t
                live[t] += 1
                worth[4 * t + IF_FALSE] += shares[shared[m]]
                worth[4 * t + IF_TRUE] += shares[shared[m] + 1]
                literals += 1
                joins += joined[m] >= 0
    counters = np.zeros(COUNTERS, np.int64)
    counters[NODES], counters[ROOTS], counters[PREDICATES] = total, len(slots), count
    counters[LITERALS], counters[JOINS] = literals, joins
    counters[SHELF] = SHELVES + 1  # nothing is on a shelf before the first choice
    links = np.empty(6 * total + len(slots) + 2 * count + 1 + literals, np.int32)
    ints = np.empty(total + 8 * count + 8 + ASIDE + SHELVES + joins, np.int32)
    floats = np.empty(6 * count + 9, np.float64)
    links[: 6 * total] = space
    ints[:total] = opened
    floats[: 4 * count] = worth[: 4 * count]
    s = unfold(shape, links, value, ints, floats, counters)
    s.number[:] = number[:count]
    s.live[:] = live[:count]
    s.truth[:] = PENDING
    s.owned[:] = 0
    s.first[0] = 0
    fill = number
    for t in range(count):
        where[s.number[t]] = -1
        fill[t] = s.first[t]
        s.first[t + 1] = s.first[t] + live[t]
    leaves, roots = s.leaves, s.roots
    seen = np.full(count, -1, np.int32)
    i = 0
    width = 0
    for m in range(total):
        if root[m] == m:
            roots[i] = m
            i += 1
            width = 0
        if kind[m] == LITERAL and value[m] == PENDING:
            t = argument[m]
            leaves[fill[t]] = m
            fill[t] += 1
            if seen[t] != i:
                seen[t] = i
                width += 1
                counters[WIDTH] = max(counters[WIDTH], width)
    return shape, links, value, ints, floats, counters


@njit(cache=True)
def climb(value: Bytes, kind: Bytes, parent: Ints, size: Ints, opened: Ints, node: int) -> int:
    """A node has its value: decide the gates above it as far as it goes; the topmost decided node."""
    top = node
    while True:
        gate = parent[top]
        if gate < 0 or value[gate] != PENDING:
            return top
        opened[gate] -= 1
        found = value[top]
        over = opened[gate] == 0
        decided = PENDING
        if kind[gate] == AND:
            if found == FALSE:
                decided = FALSE
            elif over:
                decided = ERROR if has(value, size, gate, ERROR) else TRUE
        elif kind[gate] == OR:
            if found == TRUE:
                decided = TRUE
            elif over:
                decided = ERROR if has(value, size, gate, ERROR) else FALSE
        elif kind[gate] == ORDERED:
            decided = first_true(value, size, gate)
        elif over:
            decided = FALSE
            if has(value, size, gate, TRUE):
                decided = TRUE
            elif has(value, size, gate, ERROR):
                decided = ERROR
        if decided == PENDING:
            return top
        value[gate] = decided
        top = gate


@njit(cache=True)
def has(value: Bytes, size: Ints, gate: int, wanted: int) -> bool:
    child = gate + 1
    end = gate + size[gate]
    while child < end:
        if value[child] == wanted:
            return True
        child += size[child]
    return False


@njit(cache=True)
def first_true(value: Bytes, size: Ints, gate: int) -> int:
    """TRUE once a child is TRUE and nothing before it can be; what failed before it does not stand in the way."""
    child = gate + 1
    end = gate + size[gate]
    failed = False
    while child < end:
        if value[child] == TRUE:
            return TRUE
        if value[child] == PENDING:
            return PENDING
        failed = failed or value[child] == ERROR
        child += size[child]
    return ERROR if failed else FALSE


@njit(cache=True)
def chain_key(chance: float, cost: float, if_false: float, if_true: float) -> float:
    """The place of a node in its chain: cost for the chance to decide; in a conjunction the paper's c / (1 - p)."""
    use = 0.0
    if if_false == 1.0 or if_true < 1.0:
        use += (1.0 - chance) * if_false
    if if_true == 1.0 or if_false < 1.0:
        use += chance * if_true
    return cost / max(use, 1e-12)
