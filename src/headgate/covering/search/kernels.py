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

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headgate.compiled import borrowing

Ints = NDArray[np.int64]

TRAIL, STATUS, SLOTS, QUEUE, CONFLICTS, CHECKED, LEARNED = range(7)
RUNNING, WITNESS, COVERED, FULL = range(4)
DECISION = -1
"""Reasons on the trail: a row, DECISION, or below that the slot of a box that was learned."""


class Table(NamedTuple):
    """A conflict table as the search reads it: row r owns the entries from `ptr[r]` to `ptr[r + 1]`."""

    ptr: Ints
    axis: Ints
    lo: Ints
    hi: Ints
    row: Ints
    """Of an entry."""
    axis_ptr: Ints
    by_lo: Ints
    """The entries of an axis, from `axis_ptr` on, by their low ends; `by_hi` by their high ends."""
    by_hi: Ints
    s_lo: Ints
    s_hi: Ints


class Search(NamedTuple):
    """The state of a search."""

    state: Ints
    low: Ints
    high: Ints
    live: Ints
    """Entries of a row that meet the box."""
    dead_lo: Ints
    dead_hi: Ints
    trail: Ints
    slots: Ints
    queue: Ints
    activity: NDArray[np.float64]
    used: NDArray[np.bool_]
    learned: Ints
    around_low: Ints
    """The box G."""
    around_high: Ints


@borrowing
def search(
    ptr: Ints, axis: Ints, lo: Ints, hi: Ints, row: Ints, axis_ptr: Ints, by_lo: Ints, by_hi: Ints, s_lo: Ints, s_hi: Ints,
    state: Ints, low: Ints, high: Ints, live: Ints, dead_lo: Ints, dead_hi: Ints, trail: Ints, slots: Ints, queue: Ints,
    activity: NDArray[np.float64], used: NDArray[np.bool_], learned: Ints, around_low: Ints, around_high: Ints,
    conflicts: int,
) -> None:  # fmt: skip
    """Go on until the search is over or has met `conflicts` more conflicts; `s.state[STATUS]` says which."""
    # Put together here: to hand over a tuple of arrays from Python takes longer than a short search.
    t = Table(ptr, axis, lo, hi, row, axis_ptr, by_lo, by_hi, s_lo, s_hi)
    s = Search(
        state, low, high, live, dead_lo, dead_hi, trail, slots, queue, activity, used, learned, around_low, around_high
    )
    stop = s.state[CONFLICTS] + conflicts
    failed = -1
    if s.state[CHECKED] == 0:
        s.state[CHECKED] = 1
        for r in range(t.ptr.size - 1):
            if s.live[r] == 1:
                s.queue[s.state[QUEUE]] = r
                s.state[QUEUE] += 1
    while True:
        while failed < 0 and s.state[QUEUE] > 0:
            s.state[QUEUE] -= 1
            r = s.queue[s.state[QUEUE]]
            for e in range(t.ptr[r], t.ptr[r + 1]):
                j = t.axis[e]
                if t.lo[e] <= s.high[j] and t.hi[e] >= s.low[j]:
                    failed = _narrow(t, s, j, max(s.low[j], t.lo[e]), min(s.high[j], t.hi[e]), r)
                    break
        if failed >= 0:
            s.state[CONFLICTS] += 1
            failed = _learn(t, s, failed)
            if s.state[STATUS] != RUNNING:
                return
            if s.state[CONFLICTS] >= stop and failed < 0:
                return
            continue
        e = _choose(t, s)
        if e < 0:
            s.state[STATUS] = WITNESS
            return
        j = t.axis[e]
        a, b = max(s.low[j], t.lo[e]), min(s.high[j], t.hi[e])
        if a > s.low[j] and b < s.high[j]:
            # An entry in the middle takes two decisions; the other side of the first is then one interval again.
            b = s.high[j]
        failed = _narrow(t, s, j, a, b, DECISION)


@borrowing
def _narrow(t: Table, s: Search, j: int, a: int, b: int, reason: int) -> int:
    """Axis j becomes [a, b]. Entries die, rows with one left are queued; the last row left without any, or -1."""
    if a == s.low[j] and b == s.high[j]:
        return -1
    n = s.state[TRAIL]
    s.trail[n, 0] = j
    s.trail[n, 1] = s.low[j]
    s.trail[n, 2] = s.high[j]
    s.trail[n, 3] = reason
    s.state[TRAIL] = n + 1
    s.low[j] = a
    s.high[j] = b
    failed = -1
    k = t.axis_ptr[j] + s.dead_hi[j]
    while k < t.axis_ptr[j + 1] and t.hi[t.by_hi[k]] < a:
        r = t.row[t.by_hi[k]]
        s.live[r] -= 1
        if s.live[r] == 1:
            s.queue[s.state[QUEUE]] = r
            s.state[QUEUE] += 1
        elif s.live[r] == 0:
            failed = r
        k += 1
    s.dead_hi[j] = k - t.axis_ptr[j]
    k = t.axis_ptr[j + 1] - 1 - s.dead_lo[j]
    while k >= t.axis_ptr[j] and t.lo[t.by_lo[k]] > b:
        r = t.row[t.by_lo[k]]
        s.live[r] -= 1
        if s.live[r] == 1:
            s.queue[s.state[QUEUE]] = r
            s.state[QUEUE] += 1
        elif s.live[r] == 0:
            failed = r
        k -= 1
    s.dead_lo[j] = t.axis_ptr[j + 1] - 1 - k
    return failed


@borrowing
def _undo(t: Table, s: Search) -> None:
    """Take back the last step of the trail."""
    s.state[TRAIL] -= 1
    n = s.state[TRAIL]
    j = s.trail[n, 0]
    s.low[j] = s.trail[n, 1]
    s.high[j] = s.trail[n, 2]
    k = t.axis_ptr[j] + s.dead_hi[j] - 1
    while k >= t.axis_ptr[j] and t.hi[t.by_hi[k]] >= s.low[j]:
        s.live[t.row[t.by_hi[k]]] += 1
        k -= 1
    s.dead_hi[j] = k + 1 - t.axis_ptr[j]
    k = t.axis_ptr[j + 1] - s.dead_lo[j]
    while k < t.axis_ptr[j + 1] and t.lo[t.by_lo[k]] <= s.high[j]:
        s.live[t.row[t.by_lo[k]]] += 1
        k += 1
    s.dead_lo[j] = t.axis_ptr[j + 1] - k


@borrowing
def _learn(t: Table, s: Search, failed: int) -> int:
    """Row `failed` covers the box: generalise, go back, take the other side. A row that fails there, or -1."""
    s.state[QUEUE] = 0
    for i in range(s.low.size):
        s.around_low[i], s.around_high[i] = t.s_lo[i], t.s_hi[i]
    _clip(t, s, failed, -1)
    s.used[failed] = True
    s.activity[failed] += 1.0
    while s.state[TRAIL] > 0:
        n = s.state[TRAIL] - 1
        j, reason = s.trail[n, 0], s.trail[n, 3]
        was_low, was_high = s.low[j], s.high[j]
        _undo(t, s)
        if reason < DECISION:
            s.state[SLOTS] -= 1
        if s.around_low[j] <= s.low[j] and s.around_high[j] >= s.high[j]:
            continue
        if reason >= 0:
            s.used[reason] = True
            s.activity[reason] += 1.0
            _clip(t, s, reason, j)
            # The row covers what was cut off, and beyond that as far as its own next entry.
            r_lo, r_hi = t.s_lo[j], t.s_hi[j]
            for e in range(t.ptr[reason], t.ptr[reason + 1]):
                if t.axis[e] == j:
                    if t.hi[e] < s.low[j]:
                        r_lo = max(r_lo, t.hi[e] + 1)
                    elif t.lo[e] > s.high[j]:
                        r_hi = min(r_hi, t.lo[e] - 1)
            if was_low > s.low[j]:
                s.around_low[j] = min(s.around_low[j], r_lo)
            if was_high < s.high[j]:
                s.around_high[j] = max(s.around_high[j], r_hi)
        elif reason < DECISION:
            box = s.slots[DECISION - 1 - reason]
            for i in range(s.low.size):
                if i == j:
                    s.around_low[i] = min(s.around_low[i], box[2 * i])
                    s.around_high[i] = max(s.around_high[i], box[2 * i + 1])
                else:
                    s.around_low[i] = max(s.around_low[i], box[2 * i])
                    s.around_high[i] = min(s.around_high[i], box[2 * i + 1])
        else:
            slot = s.state[SLOTS]
            if slot == s.slots.shape[0]:
                s.state[STATUS] = FULL
                return -1
            s.state[SLOTS] += 1
            kept = s.state[LEARNED] < s.learned.shape[0]
            for i in range(s.low.size):
                s.slots[slot, 2 * i] = s.around_low[i]
                s.slots[slot, 2 * i + 1] = s.around_high[i]
                if kept:
                    s.learned[s.state[LEARNED], 2 * i] = s.around_low[i]
                    s.learned[s.state[LEARNED], 2 * i + 1] = s.around_high[i]
            s.state[LEARNED] += kept
            if s.around_low[j] <= s.low[j]:
                a, b = s.around_high[j] + 1, s.high[j]
            else:
                a, b = s.low[j], s.around_low[j] - 1
            for r in range(s.activity.size):
                s.activity[r] *= 0.98
            return _narrow(t, s, j, a, b, DECISION - 1 - slot)
    s.state[STATUS] = COVERED
    return -1


@borrowing
def _clip(t: Table, s: Search, r: int, but: int) -> None:
    """G shrinks to the part of row r's box around the current one, on all axes but one."""
    for e in range(t.ptr[r], t.ptr[r + 1]):
        j = t.axis[e]
        if j != but:
            if t.hi[e] < s.low[j]:
                s.around_low[j] = max(s.around_low[j], t.hi[e] + 1)
            else:
                s.around_high[j] = min(s.around_high[j], t.lo[e] - 1)


@borrowing
def _choose(t: Table, s: Search) -> int:
    """The entry to try next, or -1 if every row has one that holds already.

    From the row with the fewest entries left, the entry that leaves the box largest.
    """
    best_row = -1
    fewest = np.iinfo(np.int64).max
    for r in range(t.ptr.size - 1):
        if s.live[r] > fewest or (s.live[r] == fewest and s.activity[r] <= s.activity[best_row]):
            continue
        holds = False
        for e in range(t.ptr[r], t.ptr[r + 1]):
            j = t.axis[e]
            if t.lo[e] <= s.low[j] and t.hi[e] >= s.high[j]:
                holds = True
                break
        if not holds:
            best_row = r
            fewest = s.live[r]
    if best_row < 0:
        return -1
    best = -1
    widest = -1.0
    for e in range(t.ptr[best_row], t.ptr[best_row + 1]):
        j = t.axis[e]
        a, b = max(s.low[j], t.lo[e]), min(s.high[j], t.hi[e])
        if a <= b:
            width = (b - a + 1.0) / (s.high[j] - s.low[j] + 1.0)
            if width > widest:
                widest = width
                best = e
    return best
