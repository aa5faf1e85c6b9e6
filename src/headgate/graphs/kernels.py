"""The compiled loops that find candidates: statements, then patterns.

`statements` meets every arc of every event with the statement patterns that its property and the classes of its
subject lead to, through sorted keys (OPS, section 5.2: the EMS array and its ancestor lists), each shared statement
pattern once. `candidates` keeps the (event, pattern) pairs whose statement patterns all have a row: one AND of event
bitsets a statement. What is left goes to `join.kernels`.

Arrays only. The plain twins stand in `headgate.oracle.graph_kernels`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Int32 = NDArray[np.int32]
Words = NDArray[np.uint64]
Mask = NDArray[np.bool_]
Int = Any
"""A whole number, Python's or NumPy's: compiled code does not tell them apart."""

_ONE = np.uint64(1)


@njit(cache=True)
def lower(keys: Ints, low: Int, high: Int, key: Int) -> Int:
    """The first place in keys[low:high], sorted, that is not below `key`."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def bit(words: Words, i: Int) -> bool:
    return bool((words[i >> 6] >> np.uint64(i & 63)) & _ONE)


@njit(cache=True)
def _fits(
    n: Int, v: Int, base: Int,
    v_row: Int32, v_const: Int32, v_rank: Ints, row_any: Mask, row_bits: Words,
    n_home: Mask, n_const: Int32, n_class_at: Ints, n_class: Int32, n_ranked: Mask, n_range_at: Ints, n_low: Ints,
    n_high: Ints,
) -> bool:  # fmt: skip
    """Whether event vertex v satisfies what pattern vertex n says of it alone."""
    if n_home[n] and v != 0:
        return False
    if n_const[n] >= 0 and v_const[base + v] != n_const[n]:
        return False
    row = v_row[base + v]
    if not row_any[row]:
        for i in range(n_class_at[n], n_class_at[n + 1]):
            if not bit(row_bits[row], n_class[i]):
                return False
    if n_ranked[n]:
        rank = v_rank[base + v]
        for i in range(n_range_at[n], n_range_at[n + 1]):  # noqa: SIM110 - compiled, no generators
            if n_low[i] <= rank <= n_high[i]:
                return True
        return False
    return True


@njit(cache=True)
def statements(
    # the events
    vertex_at: Ints, v_row: Int32, v_const: Int32, v_rank: Ints, arc_at: Ints, a_subject: Int32, a_row: Int32,
    a_object: Int32,
    # names in use: classes of a vertex row, properties above a property row
    row_any: Mask, row_bits: Words, row_at: Ints, row_class: Int32, above_at: Ints, above: Int32,
    # the statement patterns, filed by property and class of the subject, or by property and constant object
    classes: Int, by_class: Ints, by_class_m: Int32, constants: Int, by_const: Ints, by_const_m: Int32,
    m_subject: Int32, m_object: Int32, m_loop: Mask,
    # the vertices of patterns
    n_home: Mask, n_const: Int32, n_class_at: Ints, n_class: Int32, n_ranked: Mask, n_range_at: Ints, n_low: Ints,
    n_high: Ints,
) -> tuple[Ints, Ints, Int32, Int32, Words]:  # fmt: skip
    """The rows of every statement pattern: for each event sorted keys (pattern * n + subject) * n + object, n the
    number of its vertices; the subject and the object of each row; and, a statement pattern, the bitset of events that
    have a row of it."""
    events = len(vertex_at) - 1
    words = (events + 63) >> 6
    present = np.zeros((max(1, len(m_subject)), max(1, words)), np.uint64)
    row_of = np.zeros(events + 1, np.int64)
    keys = np.empty(max(64, 4 * len(a_subject)), np.int64)
    filled = 0
    spans = np.empty((2, 2 + len(row_class)), np.int64)
    for e in range(events):
        base = vertex_at[e]
        n = vertex_at[e + 1] - base
        first = filled
        for a in range(arc_at[e], arc_at[e + 1]):
            s, o = a_subject[a], a_object[a]
            row = v_row[base + s]
            for i in range(above_at[a_row[a]], above_at[a_row[a] + 1]):
                p = above[i]
                count = 0
                if row_any[row]:
                    spans[0, 0] = lower(by_class, 0, len(by_class), p * classes)
                    spans[1, 0] = lower(by_class, spans[0, 0], len(by_class), (p + 1) * classes)
                    count = 1
                else:
                    for j in range(row_at[row] - 1, row_at[row + 1]):
                        # Class 0 is "none asked for"; every vertex has it.
                        c = 0 if j < row_at[row] else row_class[j]
                        spans[0, count] = lower(by_class, 0, len(by_class), p * classes + c)
                        spans[1, count] = lower(by_class, spans[0, count], len(by_class), p * classes + c + 1)
                        count += 1
                for span in range(count + 1):
                    if span < count:
                        low, high = spans[0, span], spans[1, span]
                    elif v_const[base + o] >= 0:
                        low = lower(by_const, 0, len(by_const), p * constants + v_const[base + o])
                        high = lower(by_const, low, len(by_const), p * constants + v_const[base + o] + 1)
                    else:
                        low, high = 0, 0
                    for j in range(low, high):
                        m = by_class_m[j] if span < count else by_const_m[j]
                        if m_loop[m] and s != o:
                            continue
                        if not _fits(
                            m_subject[m], s, base, v_row, v_const, v_rank, row_any, row_bits, n_home, n_const,
                            n_class_at, n_class, n_ranked, n_range_at, n_low, n_high,
                        ):  # fmt: skip
                            continue
                        if not _fits(
                            m_object[m], o, base, v_row, v_const, v_rank, row_any, row_bits, n_home, n_const,
                            n_class_at, n_class, n_ranked, n_range_at, n_low, n_high,
                        ):  # fmt: skip
                            continue
                        if filled == len(keys):
                            grown = np.empty(2 * len(keys), np.int64)
                            grown[:filled] = keys
                            keys = grown
                        keys[filled] = (np.int64(m) * n + s) * n + o
                        filled += 1
                        present[m, e >> 6] |= _ONE << np.uint64(e & 63)
        part = np.sort(keys[first:filled])
        # Several arcs and several classes lead to the same row.
        filled = first
        for i in range(len(part)):
            if i == 0 or part[i] != part[i - 1]:
                keys[filled] = part[i]
                filled += 1
        row_of[e + 1] = filled
    subject_of, object_of = np.empty(filled, np.int32), np.empty(filled, np.int32)
    for e in range(events):
        n = vertex_at[e + 1] - vertex_at[e]
        for r in range(row_of[e], row_of[e + 1]):
            subject_of[r] = keys[r] // n % n
            object_of[r] = keys[r] % n
    return row_of, keys[:filled].copy(), subject_of, object_of, present


@njit(cache=True)
def candidates(present: Words, m_at: Ints, m_of: Int32, asked: Words, events: Int) -> tuple[Int32, Int32]:
    """The (event, pattern) pairs all of whose statement patterns have a row. `asked` has a row of event bits for each
    pattern, or no rows at all if every pair is asked for."""
    patterns = len(m_at) - 1
    words = (events + 63) >> 6
    event = np.empty(1024, np.int32)
    pattern = np.empty(1024, np.int32)
    count = 0
    for p in range(patterns):
        for w in range(words):
            both = ~np.uint64(0)
            if len(asked):
                both = asked[p, w]
            if w == words - 1 and events & 63:
                both &= (_ONE << np.uint64(events & 63)) - _ONE
            for i in range(m_at[p], m_at[p + 1]):
                if both == 0:
                    break
                both &= present[m_of[i], w]
            e = w << 6
            while both != 0:
                if both & _ONE:
                    if count == len(event):
                        event = np.append(event, np.empty(count, np.int32))
                        pattern = np.append(pattern, np.empty(count, np.int32))
                    event[count] = e
                    pattern[count] = p
                    count += 1
                both >>= _ONE
                e += 1
    return event[:count].copy(), pattern[:count].copy()
