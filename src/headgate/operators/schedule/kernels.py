"""Choosing the next predicate, compiled.

`_settle` gives a predicate its truth in every formula, decides what follows and takes decided formulas out of the
counts. The `_next_*` functions choose: naive, sequential and suborder walk the roots in order, greedy keeps scores on
shelves and those of the topmost shelf on a heap. All of it costs a constant for each literal and event, plus the heap.
`step` is what Python calls for every predicate asked.

`headgate.oracle.operators` holds the plain twins, which the tests compare these with, choice by choice.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headgate.compiled import borrowing
from headgate.operators.kernels import (
    AND,
    ASIDE,
    ASKED,
    CHANCE,
    CHOOSER,
    COST,
    CURRENT,
    CURSOR,
    DEAD,
    ERROR,
    FALSE,
    GUARDED,
    HEAPED,
    IF_FALSE,
    IF_TRUE,
    LISTED,
    LITERAL,
    MARKS,
    PENDING,
    READY,
    RESERVED,
    SHELF,
    SHELVES,
    TRUE,
    WIDTH,
    Bytes,
    Floats,
    Ints,
    Longs,
    Residual,
    chain_key,
    climb,
    unfold,
)
from headgate.operators.schedule.score_buckets import clear, heapify, pop, push, put, score, shelf_of, sink

NAIVE, SEQUENTIAL, SUBORDER, GREEDY = 0, 1, 2, 3


@njit(cache=True, inline="always")
def _kill(
    value: Bytes,
    kind: Bytes,
    argument: Ints,
    size: Ints,
    weight: Ints,
    live: Ints,
    truth: Ints,
    owned: Ints,
    worth: Floats,
    shares: Floats,
    counters: Longs,
    top: int,
) -> None:
    """Take everything below a decided node out of the counts."""
    for m in range(top + 1, top + size[top]):
        if value[m] == PENDING:
            value[m] = DEAD
            if kind[m] == LITERAL:
                t = argument[m]
                if truth[t] == PENDING:
                    live[t] -= 1
                    worth[4 * t + IF_FALSE] -= shares[weight[m]]
                    worth[4 * t + IF_TRUE] -= shares[weight[m] + 1]
                    if live[t] == 0 and owned[t]:
                        counters[RESERVED] -= 1


@njit(cache=True)
def _decide(s: Residual, shares: Floats, counters: Longs, node: int, found: int) -> None:
    """Give a node its value, and follow it up and down."""
    s.value[node] = found
    top = climb(s.value, s.kind, s.parent, s.size, s.open, node)
    _kill(s.value, s.kind, s.argument, s.size, s.weight, s.live, s.truth, s.owned, s.worth, shares, counters, top)


@njit(cache=True, inline="always")
def _record(s: Residual, counters: Longs, t: int, truth: int) -> None:
    """Remember the truth of a predicate without telling any formula: all that the naive scheduler does."""
    s.truth[t] = truth
    s.live[t] = 0
    counters[ASKED] += 1
    if s.owned[t]:
        counters[RESERVED] -= 1


@njit(cache=True, inline="always")
def _outcome(truth: int, wanted: int) -> int:
    """What a predicate's truth makes of a literal: an UNKNOWN satisfies neither p nor NOT p."""
    if truth == ERROR:
        return ERROR
    return TRUE if truth == wanted else FALSE


@njit(cache=True)
def _apply(s: Residual, shares: Floats, counters: Longs, leaf: int, truth: int) -> None:
    """Tell one literal; a join with one call less to wait for goes on the ready list."""
    found = _outcome(truth, s.wanted[leaf])
    _decide(s, shares, counters, leaf, found)
    if found != FALSE and s.joined[leaf] >= 0 and s.value[s.parent[leaf]] == PENDING:
        s.ready[counters[READY]] = s.parent[leaf]
        counters[READY] += 1


@njit(cache=True, inline="always")
def _settle(s: Residual, shares: Floats, counters: Longs, t: int, found: int) -> int:
    """Give a predicate its truth in every formula; how many joins want to look at their rows.

    The loop is written out over local arrays: a call for each literal with the whole residual would cost more than
    all the rest.
    """
    _record(s, counters, t, found)
    counters[READY] = 0
    value, kind, wanted, parent, argument, size = s.value, s.kind, s.wanted, s.parent, s.argument, s.size
    opened, joined, weight, live, truth, owned = s.open, s.joined, s.weight, s.live, s.truth, s.owned
    leaves, worth, ready = s.leaves, s.worth, s.ready
    for i in range(s.first[t], s.first[t + 1]):
        leaf = leaves[i]
        if value[leaf] != PENDING:
            continue
        outcome = _outcome(found, wanted[leaf])
        value[leaf] = outcome
        gate = parent[leaf]
        if outcome == FALSE and gate >= 0 and kind[gate] == AND and parent[gate] < 0:
            value[gate] = FALSE
            top = gate
        else:
            top = climb(value, kind, parent, size, opened, leaf)
        if top != leaf:
            _kill(value, kind, argument, size, weight, live, truth, owned, worth, shares, counters, top)
        if outcome != FALSE and joined[leaf] >= 0 and value[gate] == PENDING:
            ready[counters[READY]] = gate
            counters[READY] += 1
    return int(counters[READY])


@njit(cache=True)
def _next_naive(s: Residual, shares: Floats, counters: Longs) -> int:
    """Root by root, literal by literal, from what is remembered where it is."""
    while counters[CURSOR] < len(s.roots):
        root = s.roots[counters[CURSOR]]
        m = root
        while m < root + s.size[root] and s.value[root] == PENDING:
            if s.kind[m] == LITERAL and s.value[m] == PENDING:
                t = s.argument[m]
                if s.truth[t] == PENDING:
                    return int(t)
                counters[READY] = 0
                for n in range(m, root + s.size[root]):
                    if s.kind[n] == LITERAL and s.argument[n] == t and s.value[n] == PENDING:
                        _apply(s, shares, counters, n, s.truth[t])
                if counters[READY]:
                    return -2
            m += 1
        counters[CURSOR] += 1
    return -1


@njit(cache=True)
def _next_sequential(s: Residual, counters: Longs) -> int:
    """Mark an undecided root and go through all its predicates, also past its decision: so within d times optimal."""
    while True:
        while counters[LISTED] > 0:
            counters[LISTED] -= 1
            t = s.work[counters[LISTED]]
            if s.live[t] > 0:
                return int(t)
        while counters[CURSOR] < len(s.roots) and s.value[s.roots[counters[CURSOR]]] != PENDING:
            counters[CURSOR] += 1
        if counters[CURSOR] == len(s.roots):
            return -1
        root = s.roots[counters[CURSOR]]
        for m in range(root + s.size[root] - 1, root - 1, -1):
            if s.kind[m] == LITERAL and s.value[m] == PENDING and counters[LISTED] < len(s.work):
                s.work[counters[LISTED]] = s.argument[m]
                counters[LISTED] += 1


@njit(cache=True)
def _next_suborder(s: Residual, shares: Floats, counters: Longs) -> int:
    """The first undecided root's predicate with the least cost for its chance to decide; roots come in chain order."""
    while counters[CURSOR] < len(s.roots):
        root = s.roots[counters[CURSOR]]
        if s.value[root] == PENDING:
            best, least = -1, np.inf
            for m in range(root, root + s.size[root]):
                if s.kind[m] == LITERAL and s.value[m] == PENDING:
                    t = s.argument[m]
                    if_false, if_true = shares[s.weight[m]], shares[s.weight[m] + 1]
                    key = chain_key(s.worth[4 * t + CHANCE], s.worth[4 * t + COST], if_false, if_true)
                    if best < 0 or key < least or (key == least and s.number[t] < s.number[best]):
                        best, least = t, key
            return int(best)
        counters[CURSOR] += 1
    return -1


@njit(cache=True)
def _mark(
    kind: Bytes,
    value: Bytes,
    argument: Ints,
    owned: Ints,
    roots: Ints,
    size: Ints,
    leaves: Ints,
    counters: Longs,
) -> bool:
    """Mark an undecided subscription that has one of the leaves and shares no open predicate with those marked."""
    for leaf in leaves:
        if value[leaf] != PENDING:
            continue
        root = roots[leaf]
        end = root + size[root]
        apart = True
        for m in range(root, end):
            if kind[m] == LITERAL and value[m] == PENDING and owned[argument[m]]:
                apart = False
                break
        if apart:
            for m in range(root, end):
                if kind[m] == LITERAL and value[m] == PENDING and not owned[argument[m]]:
                    owned[argument[m]] = 1
                    counters[RESERVED] += 1
            counters[MARKS] += 1
            return True
    return False


@njit(cache=True, inline="always")
def _allowed(s: Residual, counters: Longs, t: int) -> bool:
    """May t be asked so that all that was asked stays within d times the marked, and so within d times the optimum?

    The marked subscriptions were undecided and had no open predicate in common when they were marked, so every way to
    decide all of them asks at least one predicate for each (the paper's theorem 2). Each mark pays for d predicates;
    what the marked still own is reserved, the rest may be spent on any predicate.
    """
    leaves = s.leaves[s.first[t] : s.first[t + 1]]
    if s.owned[t] or _mark(s.kind, s.value, s.argument, s.owned, s.root, s.size, leaves, counters):
        return True
    return bool(counters[ASKED] + 1 + counters[RESERVED] <= counters[WIDTH] * counters[MARKS])


@njit(cache=True, inline="always")
def _next_greedy(s: Residual, counters: Longs, guarded: bool) -> int:
    """The live predicate that decides most for its cost; if `guarded`, within d times the optimum."""
    keys, heap, live, worth = s.keys, s.heap, s.live, s.worth
    below, shelf, shelves, scale = s.below, s.shelf, s.shelves, s.scale
    aside = 0
    chosen = -1
    while aside < ASIDE:
        if counters[HEAPED] == 0:
            clear(s, counters)
            if counters[HEAPED] == 0:
                break
        t = heap[0]
        if live[t] <= 0:
            pop(keys, heap, counters)
            continue
        now = score(worth, t)
        if now < keys[0]:
            # Decisions since have taken literals of t away. Scores only fall on their own, so the heap may be lazy.
            at = shelf_of(scale, now)
            if at >= counters[SHELF]:
                keys[0] = now
                sink(keys, heap, counters[HEAPED], 0)
                continue
            pop(keys, heap, counters)
            if shelf[t] < 0:
                put(below, shelf, shelves, t, at)
            continue
        pop(keys, heap, counters)
        if not guarded or _allowed(s, counters, t):
            chosen = t
            break
        s.work[aside] = t
        aside += 1
    if chosen < 0 and aside > 0:
        best = -1.0
        for t in range(len(live)):
            if live[t] > 0 and s.owned[t] and score(worth, t) > best:
                best = score(worth, t)
                chosen = t
    for i in range(aside):
        push(s, counters, s.work[i])
    return chosen


@njit(cache=True, inline="always")
def _choose(s: Residual, shares: Floats, counters: Longs) -> int:
    chooser = counters[CHOOSER]
    if chooser == NAIVE:
        return _next_naive(s, shares, counters)
    if chooser == SEQUENTIAL:
        return _next_sequential(s, counters)
    if chooser == SUBORDER:
        return _next_suborder(s, shares, counters)
    return _next_greedy(s, counters, counters[GUARDED] != 0)


@borrowing
def choose(
    shape: Bytes,
    links: Ints,
    value: Bytes,
    ints: Ints,
    floats: Floats,
    counters: Longs,
    shares: Floats,
) -> int:
    """The next predicate to ask; -1 if all is decided, -2 if joins on the ready list must be looked at before."""
    s = unfold(shape, links, value, ints, floats, counters)
    if counters[CHOOSER] == GREEDY and counters[SHELF] > SHELVES:
        heapify(s, counters)
    counters[CURRENT] = _choose(s, shares, counters)
    return int(counters[CURRENT])


@borrowing
def step(
    shape: Bytes,
    links: Ints,
    value: Bytes,
    ints: Ints,
    floats: Floats,
    counters: Longs,
    shares: Floats,
    truth: int,
) -> int:
    """Take the answer to the current predicate in and choose again: what is called once for every predicate asked."""
    s = unfold(shape, links, value, ints, floats, counters)
    t = counters[CURRENT]
    if counters[CHOOSER] == NAIVE:
        _record(s, counters, t, truth)
    elif _settle(s, shares, counters, t, truth):
        return -2
    counters[CURRENT] = _choose(s, shares, counters)
    return int(counters[CURRENT])


@borrowing
def give(
    shape: Bytes,
    links: Ints,
    value: Bytes,
    ints: Ints,
    floats: Floats,
    counters: Longs,
    shares: Floats,
    t: int,
    truth: int,
) -> None:
    """Take in an answer that nobody had to ask for."""
    _settle(unfold(shape, links, value, ints, floats, counters), shares, counters, t, truth)
    counters[ASKED] -= 1


@borrowing
def conclude(
    shape: Bytes,
    links: Ints,
    value: Bytes,
    ints: Ints,
    floats: Floats,
    counters: Longs,
    shares: Floats,
    gates: Ints,
    found: Bytes,
) -> None:
    """Give joins their values, those at these gates that are still open."""
    s = unfold(shape, links, value, ints, floats, counters)
    for i in range(len(gates)):
        if s.value[gates[i]] == PENDING:
            _decide(s, shares, counters, gates[i] + s.size[gates[i]] - 1, found[i])


@borrowing
def revise(
    shape: Bytes,
    links: Ints,
    value: Bytes,
    ints: Ints,
    floats: Floats,
    counters: Longs,
    partners: Ints,
    chances: Floats,
    usual: Floats,
    where: Ints,
) -> None:
    """Some predicates, by their numbers in the program, have these chances now. `where` are their places here, -1 for
    those that are not open, and `usual` what was believed before the event.

    Of several answers that tell of one predicate the one counts that says most: they often tell the same.
    """
    s = unfold(shape, links, value, ints, floats, counters)
    for i in range(len(partners)):
        t = where[partners[i]]
        if t < 0 or s.live[t] <= 0:
            continue
        at = 4 * t + CHANCE
        before = usual[partners[i]]
        if np.abs(chances[i] - before) <= np.abs(s.worth[at] - before):
            continue
        old = score(s.worth, t)
        s.worth[at] = chances[i]
        # A lower score is found out when it comes up. Before the first choice there is no heap yet.
        if score(s.worth, t) > old and counters[SHELF] <= SHELVES:
            if counters[HEAPED] < len(s.heap):
                push(s, counters, t)
            else:
                heapify(s, counters)
