"""Which pending predicates the runs could use, compiled. Twin: the stepper, which asks when it looks for a slot."""

from __future__ import annotations

import numpy as np
from numba import njit

from headgate.sequences.programs.kernels import DECIDED, END, STACK, execute, holds
from headgate.sequences.runs.kernels import bucket_of
from headgate.sequences.tables import (
    ABSENT_STEP,
    BOUND,
    EDGE_FROM,
    EDGE_PROGRAM,
    EDGE_SLOT,
    EDGE_TO,
    FOLD_STEP,
    GROUP,
    GROUP_COLUMN,
    HANDLES,
    KEEP,
    KEEP_SLOT,
    KEY,
    KEYED,
    KIND,
    MASK,
    NEXT,
    NODE,
    PLACE,
    START_PROGRAM,
    T0,
    T1,
    THETA,
    Batch,
    Ints,
    Runs,
    Tables,
)


@njit(cache=True)
def useful(
    p: Tables, b: Batch, s: Runs, e: int, holding: Ints, waiting: Ints, marks: Ints, wanted: Ints, stamp: int
) -> None:
    """Sets `wanted` to the stamp for those of the `waiting` slots that decide what happens next to a run or a start.

    In `marks`, what holds has the stamp and what waits its negative. A predicate behind another one that waits, such as
    that of an edge behind theta, is not wanted yet.
    """
    for slot in holding:
        marks[slot] = stamp
    for slot in waiting:
        marks[slot] = -stamp
    stack = np.zeros((STACK, 2), np.int64)
    work = np.zeros(p.width, np.int64)
    work[HANDLES : p.cells_at] = -1
    work[T0], work[T1], work[HANDLES] = b.t0[e], b.t1[e], e
    stream = b.stream[e]
    slots = len(holding) + len(waiting)
    free = p.free_from[stream + 1] - p.free_from[stream]
    for i in range(-free, slots):
        slot = -1 if i < 0 else _nth(holding, waiting, i)
        lo, hi = (p.free_from[stream + 1] + i, p.free_from[stream + 1] + i + 1) if i < 0 else _of(p.start_from, slot)
        for si in range(lo, hi):
            program = p.start_table[p.free_starts[si] if i < 0 else p.starts[si], START_PROGRAM]
            if _waits(p.code, program, marks, stamp):
                _want(p.code, program, marks, wanted, stamp)
            elif (
                slot >= 0
                and marks[slot] == -stamp
                and holds(p.code, program, s.rows, 0, work, b, e, b.t1[e], marks, stamp, stack, p.cells_at)
            ):
                wanted[slot] = stamp
    free = p.open_from[stream + 1] - p.open_from[stream]
    for i in range(-free, slots):
        slot = -1 if i < 0 else _nth(holding, waiting, i)
        lo, hi = (p.open_from[stream + 1] + i, p.open_from[stream + 1] + i + 1) if i < 0 else _of(p.group_from, slot)
        for gi in range(lo, hi):
            g = p.open_groups[gi] if i < 0 else p.groups[gi]
            _ask_group(p, b, s, g, slot, e, holding, waiting, marks, wanted, stamp, work, stack)


@njit(cache=True)
def _nth(holding: Ints, waiting: Ints, i: int) -> int:
    return int(holding[i]) if i < len(holding) else int(waiting[i - len(holding)])


@njit(cache=True)
def _of(offsets: Ints, i: int) -> tuple[int, int]:
    return int(offsets[i]), int(offsets[i + 1])


@njit(cache=True)
def _waits(code: Ints, pc: int, marks: Ints, stamp: int) -> bool:
    """Does the program at `pc` look at a slot that waits?"""
    if pc < 0:
        return False
    while code[pc, 0] != END:
        if code[pc, 0] == DECIDED and (marks[code[pc, 1]] == -stamp or marks[code[pc, 2]] == -stamp):
            return True
        pc += 1
    return False


@njit(cache=True)
def _want(code: Ints, pc: int, marks: Ints, wanted: Ints, stamp: int) -> None:
    if pc < 0:
        return
    while code[pc, 0] != END:
        if code[pc, 0] == DECIDED:
            for k in (1, 2):
                if marks[code[pc, k]] == -stamp:
                    wanted[code[pc, k]] = stamp
        pc += 1


@njit(cache=True)
def _ask_group(
    p: Tables,
    b: Batch,
    s: Runs,
    g: int,
    slot: int,
    e: int,
    holding: Ints,
    waiting: Ints,
    marks: Ints,
    wanted: Ints,
    stamp: int,
    work: Ints,
    stack: Ints,
) -> None:
    """The runs of a group that this event may affect; `slot` is the static part of their theta."""
    rows, now = s.rows, b.t1[e]
    bucket, key = bucket_of(p, b, g, e, s.scalars[MASK])
    if bucket < 0:
        return
    r = s.heads[bucket]
    while r >= 0:
        here = r
        r = rows[r, NEXT]
        n = rows[here, NODE]
        if p.nodes[n, GROUP] != g or not (
            p.group_table[g, GROUP_COLUMN] < 0 or (rows[here, KEYED] == 1 and rows[here, KEY] == key)
        ):
            continue
        kind = p.nodes[n, KIND]
        if (now - rows[here, T0] + 1 > p.nodes[n, BOUND] and kind != ABSENT_STEP) or b.t0[e] <= rows[here, T1]:
            continue
        theta = p.nodes[n, THETA]
        ready = not _waits(p.code, theta, marks, stamp)
        if (
            ready
            and theta >= 0
            and execute(p.code, theta, rows, here, rows[here], b, e, now, marks, stamp, stack, p.cells_at) != 1
        ):
            continue
        if slot >= 0 and marks[slot] == -stamp:
            wanted[slot] = stamp
            return
        if not ready:
            _want(p.code, theta, marks, wanted, stamp)
        elif kind != ABSENT_STEP:
            work[:] = rows[here]
            work[T1] = now
            work[HANDLES + p.nodes[n, PLACE]] = e
            _ask_edges(p, b, rows, here, n, e, holding, waiting, marks, wanted, stamp, work, stack)


@njit(cache=True)
def _ask_edges(
    p: Tables,
    b: Batch,
    rows: Ints,
    r: int,
    n: int,
    e: int,
    holding: Ints,
    waiting: Ints,
    marks: Ints,
    wanted: Ints,
    stamp: int,
    work: Ints,
    stack: Ints,
) -> None:
    """An affected run: its rebind edge first, then its forward edges, which are sorted by slot, TRUE first."""
    now, fold = b.t1[e], p.nodes[n, KIND] == FOLD_STEP
    if fold:
        slot, keep = p.nodes[n, KEEP_SLOT], p.nodes[n, KEEP]
        if slot >= 0 and marks[slot] != stamp:
            if marks[slot] == -stamp:
                wanted[slot] = stamp
            return
        if _waits(p.code, keep, marks, stamp):
            _want(p.code, keep, marks, wanted, stamp)
            return
        if not holds(p.code, keep, rows, r, work, b, e, now, marks, stamp, stack, p.cells_at):
            return
    last = p.nodes[n, EDGE_TO]
    for i in range(-1, len(holding) + len(waiting)):
        slot = -1 if i < 0 else _nth(holding, waiting, i)
        left, right = p.nodes[n, EDGE_FROM], last
        while left < right:
            middle = (left + right) // 2
            if p.edges[middle, EDGE_SLOT] < slot:
                left = middle + 1
            else:
                right = middle
        while left < last and p.edges[left, EDGE_SLOT] == slot:
            program = p.edges[left, EDGE_PROGRAM]
            left += 1
            waits = slot >= 0 and marks[slot] == -stamp
            if _waits(p.code, program, marks, stamp):
                if waits:
                    wanted[slot] = stamp
                else:
                    _want(p.code, program, marks, wanted, stamp)
            elif waits and (
                # Behind a FOLD the predicate may speak of aggregates that only the step itself computes.
                fold or holds(p.code, program, rows, r, work, b, e, now, marks, stamp, stack, p.cells_at)
            ):
                wanted[slot] = stamp
