"""The compiled search for a witness in a conflict table.

The state is a box, `low..high`, that shrinks: to the one entry a row has left (a propagation) or to an entry that is
tried (a decision). A row without entries covers the box. Then the search knows *why*: a box G around the current one
that is covered too. It goes back over the trail; where G reaches as far as the box was before a step, the step did
not matter, decisions among them, and is undone; at a propagation G is joined with the row that forced it; at a
decision that mattered G forces the other side. When nothing is left on the trail, G is all of s. This is resolution
on boxes, and `used` collects the rows of the proof.

All state lives in the arrays, so that a caller can stop between two calls and look at the clock.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

Ints = NDArray[np.int64]

TRAIL, STATUS, SLOTS, QUEUE, CONFLICTS, CHECKED, LEARNED = range(7)
RUNNING, WITNESS, COVERED, FULL = range(4)
DECISION = -1
"""Reasons on the trail: a row, DECISION, or below that the slot of a box that was learned."""


@njit(cache=True)
def search(
    ptr: Ints,
    e_axis: Ints,
    e_lo: Ints,
    e_hi: Ints,
    e_row: Ints,
    axis_ptr: Ints,
    by_lo: Ints,
    by_hi: Ints,
    s_lo: Ints,
    s_hi: Ints,
    state: Ints,
    low: Ints,
    high: Ints,
    live: Ints,
    dead_lo: Ints,
    dead_hi: Ints,
    trail: Ints,
    slots: Ints,
    queue: Ints,
    activity: NDArray[np.float64],
    used: NDArray[np.bool_],
    learned: Ints,
    conflicts: int,
) -> None:
    """Go on until the search is over or has met `conflicts` more conflicts; `state[STATUS]` says which."""
    axes = low.size
    g_lo = np.empty(axes, np.int64)
    g_hi = np.empty(axes, np.int64)
    stop = state[CONFLICTS] + conflicts
    failed = -1
    if state[CHECKED] == 0:
        state[CHECKED] = 1
        for r in range(ptr.size - 1):
            if live[r] == 1:
                queue[state[QUEUE]] = r
                state[QUEUE] += 1
    while True:
        while failed < 0 and state[QUEUE] > 0:
            state[QUEUE] -= 1
            r = queue[state[QUEUE]]
            for e in range(ptr[r], ptr[r + 1]):
                j = e_axis[e]
                if e_lo[e] <= high[j] and e_hi[e] >= low[j]:
                    failed = _narrow(
                        j, max(low[j], e_lo[e]), min(high[j], e_hi[e]), r, e_lo, e_hi, e_row, axis_ptr, by_lo, by_hi,
                        state, low, high, live, dead_lo, dead_hi, trail, queue,
                    )  # fmt: skip
                    break
        if failed >= 0:
            state[CONFLICTS] += 1
            failed = _learn(
                failed, ptr, e_axis, e_lo, e_hi, e_row, axis_ptr, by_lo, by_hi, s_lo, s_hi, state, low, high, live,
                dead_lo, dead_hi, trail, slots, queue, activity, used, learned, g_lo, g_hi,
            )  # fmt: skip
            if state[STATUS] != RUNNING:
                return
            if state[CONFLICTS] >= stop and failed < 0:
                return
            continue
        e = _choose(ptr, e_axis, e_lo, e_hi, low, high, live, activity)
        if e < 0:
            state[STATUS] = WITNESS
            return
        j = e_axis[e]
        a, b = max(low[j], e_lo[e]), min(high[j], e_hi[e])
        if a > low[j] and b < high[j]:
            # An entry in the middle takes two decisions; the other side of the first is then one interval again.
            b = high[j]
        failed = _narrow(
            j, a, b, DECISION, e_lo, e_hi, e_row, axis_ptr, by_lo, by_hi, state, low, high, live, dead_lo, dead_hi,
            trail, queue,
        )  # fmt: skip


@njit(cache=True)
def _narrow(
    j: int,
    a: int,
    b: int,
    reason: int,
    e_lo: Ints,
    e_hi: Ints,
    e_row: Ints,
    axis_ptr: Ints,
    by_lo: Ints,
    by_hi: Ints,
    state: Ints,
    low: Ints,
    high: Ints,
    live: Ints,
    dead_lo: Ints,
    dead_hi: Ints,
    trail: Ints,
    queue: Ints,
) -> int:
    """Axis j becomes [a, b]. Entries die, rows with one left are queued; the last row left without any, or -1."""
    if a == low[j] and b == high[j]:
        return -1
    n = state[TRAIL]
    trail[n, 0] = j
    trail[n, 1] = low[j]
    trail[n, 2] = high[j]
    trail[n, 3] = reason
    state[TRAIL] = n + 1
    low[j] = a
    high[j] = b
    failed = -1
    k = axis_ptr[j] + dead_hi[j]
    while k < axis_ptr[j + 1] and e_hi[by_hi[k]] < a:
        r = e_row[by_hi[k]]
        live[r] -= 1
        if live[r] == 1:
            queue[state[QUEUE]] = r
            state[QUEUE] += 1
        elif live[r] == 0:
            failed = r
        k += 1
    dead_hi[j] = k - axis_ptr[j]
    k = axis_ptr[j + 1] - 1 - dead_lo[j]
    while k >= axis_ptr[j] and e_lo[by_lo[k]] > b:
        r = e_row[by_lo[k]]
        live[r] -= 1
        if live[r] == 1:
            queue[state[QUEUE]] = r
            state[QUEUE] += 1
        elif live[r] == 0:
            failed = r
        k -= 1
    dead_lo[j] = axis_ptr[j + 1] - 1 - k
    return failed


@njit(cache=True)
def _undo(
    e_lo: Ints,
    e_hi: Ints,
    e_row: Ints,
    axis_ptr: Ints,
    by_lo: Ints,
    by_hi: Ints,
    state: Ints,
    low: Ints,
    high: Ints,
    live: Ints,
    dead_lo: Ints,
    dead_hi: Ints,
    trail: Ints,
) -> None:
    """Take back the last step of the trail."""
    state[TRAIL] -= 1
    n = state[TRAIL]
    j = trail[n, 0]
    low[j] = trail[n, 1]
    high[j] = trail[n, 2]
    k = axis_ptr[j] + dead_hi[j] - 1
    while k >= axis_ptr[j] and e_hi[by_hi[k]] >= low[j]:
        live[e_row[by_hi[k]]] += 1
        k -= 1
    dead_hi[j] = k + 1 - axis_ptr[j]
    k = axis_ptr[j + 1] - dead_lo[j]
    while k < axis_ptr[j + 1] and e_lo[by_lo[k]] <= high[j]:
        live[e_row[by_lo[k]]] += 1
        k += 1
    dead_lo[j] = axis_ptr[j + 1] - k


@njit(cache=True)
def _learn(
    failed: int,
    ptr: Ints,
    e_axis: Ints,
    e_lo: Ints,
    e_hi: Ints,
    e_row: Ints,
    axis_ptr: Ints,
    by_lo: Ints,
    by_hi: Ints,
    s_lo: Ints,
    s_hi: Ints,
    state: Ints,
    low: Ints,
    high: Ints,
    live: Ints,
    dead_lo: Ints,
    dead_hi: Ints,
    trail: Ints,
    slots: Ints,
    queue: Ints,
    activity: NDArray[np.float64],
    used: NDArray[np.bool_],
    learned: Ints,
    g_lo: Ints,
    g_hi: Ints,
) -> int:
    """Row `failed` covers the box: generalise, go back, take the other side. A row that fails there, or -1."""
    state[QUEUE] = 0
    g_lo[:] = s_lo
    g_hi[:] = s_hi
    _clip(failed, -1, ptr, e_axis, e_lo, e_hi, low, g_lo, g_hi)
    used[failed] = True
    activity[failed] += 1.0
    while state[TRAIL] > 0:
        n = state[TRAIL] - 1
        j, reason = trail[n, 0], trail[n, 3]
        was_low, was_high = low[j], high[j]
        _undo(e_lo, e_hi, e_row, axis_ptr, by_lo, by_hi, state, low, high, live, dead_lo, dead_hi, trail)
        if reason < DECISION:
            state[SLOTS] -= 1
        if g_lo[j] <= low[j] and g_hi[j] >= high[j]:
            continue
        if reason >= 0:
            used[reason] = True
            activity[reason] += 1.0
            _clip(reason, j, ptr, e_axis, e_lo, e_hi, low, g_lo, g_hi)
            # The row covers what was cut off, and beyond that as far as its own next entry.
            r_lo, r_hi = s_lo[j], s_hi[j]
            for e in range(ptr[reason], ptr[reason + 1]):
                if e_axis[e] == j:
                    if e_hi[e] < low[j]:
                        r_lo = max(r_lo, e_hi[e] + 1)
                    elif e_lo[e] > high[j]:
                        r_hi = min(r_hi, e_lo[e] - 1)
            if was_low > low[j]:
                g_lo[j] = min(g_lo[j], r_lo)
            if was_high < high[j]:
                g_hi[j] = max(g_hi[j], r_hi)
        elif reason < DECISION:
            slot = slots[DECISION - 1 - reason]
            for i in range(low.size):
                if i == j:
                    g_lo[i] = min(g_lo[i], slot[2 * i])
                    g_hi[i] = max(g_hi[i], slot[2 * i + 1])
                else:
                    g_lo[i] = max(g_lo[i], slot[2 * i])
                    g_hi[i] = min(g_hi[i], slot[2 * i + 1])
        else:
            s = state[SLOTS]
            if s == slots.shape[0]:
                state[STATUS] = FULL
                return -1
            state[SLOTS] += 1
            for i in range(low.size):
                slots[s, 2 * i] = g_lo[i]
                slots[s, 2 * i + 1] = g_hi[i]
            if state[LEARNED] < learned.shape[0]:
                learned[state[LEARNED]] = slots[s]
                state[LEARNED] += 1
            if g_lo[j] <= low[j]:
                a, b = g_hi[j] + 1, high[j]
            else:
                a, b = low[j], g_lo[j] - 1
            activity *= 0.98
            return _narrow(
                j, a, b, DECISION - 1 - s, e_lo, e_hi, e_row, axis_ptr, by_lo, by_hi, state, low, high, live, dead_lo,
                dead_hi, trail, queue,
            )  # fmt: skip
    state[STATUS] = COVERED
    return -1


@njit(cache=True)
def _clip(r: int, but: int, ptr: Ints, e_axis: Ints, e_lo: Ints, e_hi: Ints, low: Ints, g_lo: Ints, g_hi: Ints) -> None:
    """G shrinks to the part of row r's box around the current one, on all axes but one."""
    for e in range(ptr[r], ptr[r + 1]):
        j = e_axis[e]
        if j != but:
            if e_hi[e] < low[j]:
                g_lo[j] = max(g_lo[j], e_hi[e] + 1)
            else:
                g_hi[j] = min(g_hi[j], e_lo[e] - 1)


@njit(cache=True)
def _choose(
    ptr: Ints,
    e_axis: Ints,
    e_lo: Ints,
    e_hi: Ints,
    low: Ints,
    high: Ints,
    live: Ints,
    activity: NDArray[np.float64],
) -> int:
    """The entry to try next, or -1 if every row has one that holds already.

    From the row with the fewest entries left, the entry that leaves the box largest.
    """
    best_row = -1
    fewest = np.iinfo(np.int64).max
    for r in range(ptr.size - 1):
        if live[r] > fewest or (live[r] == fewest and activity[r] <= activity[best_row]):
            continue
        holds = False
        for e in range(ptr[r], ptr[r + 1]):
            j = e_axis[e]
            if e_lo[e] <= low[j] and e_hi[e] >= high[j]:
                holds = True
                break
        if not holds:
            best_row = r
            fewest = live[r]
    if best_row < 0:
        return -1
    best = -1
    widest = -1.0
    for e in range(ptr[best_row], ptr[best_row + 1]):
        j = e_axis[e]
        a, b = max(low[j], e_lo[e]), min(high[j], e_hi[e])
        if a <= b:
            width = (b - a + 1.0) / (high[j] - low[j] + 1.0)
            if width > widest:
                widest = width
                best = e
    return best
