"""Which pending predicates the runs could use, compiled. Twin: the stepper, which asks when it looks for a slot."""

from __future__ import annotations

import numpy as np
from numba import njit

from headgate.predicates.programs.kernels import END, STACK
from headgate.sequences import tables
from headgate.sequences.programs.kernels import DECIDED, holds, mark, marked
from headgate.sequences.runs.kernels import bucket_of
from headgate.sequences.tables import Batch, Ints, Runs, Tables

SETTLED, OPEN, WANTED = 0, 1, 2
"""What is known of a slot on this event: all there is to know, nothing yet, or that it should be asked now."""


@njit(cache=True)
def useful(p: Tables, b: Batch, s: Runs, e: int, holding: Ints, waiting: Ints, state: Ints, stamp: int) -> None:
    """Sets `state` to WANTED for those of the `waiting` slots that decide what happens next to a run or a start.

    `state` has a place for every slot and is OPEN for those that wait. A predicate behind another one that waits, such
    as that of an edge behind theta, is not wanted yet.
    """
    size = 64
    while size < 2 * len(holding):
        size *= 2
    marks = np.zeros(size, np.int64)
    for slot in holding:
        mark(marks, stamp, slot)
    for slot in waiting:
        state[slot] = OPEN
    stack = np.zeros((STACK, 2), np.int64)
    work = np.zeros(p.width, np.int64)
    work[tables.HANDLES : p.cells_at] = -1
    work[tables.T0], work[tables.T1], work[tables.HANDLES] = b.t0[e], b.t1[e], e
    stream = b.stream[e]
    for i in range(-1, len(holding) + len(waiting)):
        slot = -1 if i < 0 else _nth(holding, waiting, i)
        lo, hi = p.free_from[stream], p.free_from[stream + 1]
        if slot >= 0:
            lo, hi = p.slots[slot, tables.START_FROM], p.slots[slot, tables.START_TO]
        for start in range(lo, hi):
            program = p.starts[start, tables.EDGE_PROGRAM]
            if _waits(p.code, program, state):
                _want(p.code, program, state)
            elif (
                slot >= 0
                and state[slot] == OPEN
                and holds(p.code, program, s.rows, 0, work, b, e, b.t1[e], marks, stamp, stack, p.cells_at)
            ):
                state[slot] = WANTED
    for i in range(-1, len(holding) + len(waiting)):
        slot = -1 if i < 0 else _nth(holding, waiting, i)
        lo, hi = p.open_from[stream], p.open_from[stream + 1]
        if slot >= 0:
            lo, hi = p.slots[slot, tables.GROUP_FROM], p.slots[slot, tables.GROUP_TO]
        for g in range(lo, hi):
            _ask_group(p, b, s, g, slot, e, holding, waiting, marks, state, stamp, work, stack)


@njit(cache=True)
def _nth(holding: Ints, waiting: Ints, i: int) -> int:
    return int(holding[i]) if i < len(holding) else int(waiting[i - len(holding)])


@njit(cache=True)
def _waits(code: Ints, pc: int, state: Ints) -> bool:
    """Does the program at `pc` look at a slot that waits?"""
    if pc < 0:
        return False
    while code[pc, 0] != END:
        if code[pc, 0] == DECIDED and (state[code[pc, 1]] != SETTLED or state[code[pc, 2]] != SETTLED):
            return True
        pc += 1
    return False


@njit(cache=True)
def _want(code: Ints, pc: int, state: Ints) -> None:
    if pc < 0:
        return
    while code[pc, 0] != END:
        if code[pc, 0] == DECIDED:
            for k in (1, 2):
                if state[code[pc, k]] == OPEN:
                    state[code[pc, k]] = WANTED
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
    state: Ints,
    stamp: int,
    work: Ints,
    stack: Ints,
) -> None:
    """The runs of a group that this event may affect; `slot` is the static part of their theta."""
    rows, now = s.rows, b.t1[e]
    bucket, key = bucket_of(p.groups, b.cells, b.defined, g, e, s.scalars[tables.MASK])
    if bucket < 0:
        return
    r = s.heads[bucket]
    while r >= 0:
        here = r
        r = rows[r, tables.NEXT]
        n = rows[here, tables.NODE]
        if p.nodes[n, tables.GROUP] != g or not (
            p.groups[g, tables.GROUP_COLUMN] < 0 or (rows[here, tables.KEYED] == 1 and rows[here, tables.KEY] == key)
        ):
            continue
        kind = p.nodes[n, tables.KIND]
        if now > rows[here, tables.UNTIL] or b.t0[e] <= rows[here, tables.T1]:
            continue
        theta = p.nodes[n, tables.THETA]
        ready = not _waits(p.code, theta, state)
        if ready and not holds(p.code, theta, rows, here, work, b, e, now, marks, stamp, stack, p.cells_at):
            continue
        if slot >= 0 and state[slot] != SETTLED:
            state[slot] = WANTED
            return
        if not ready:
            _want(p.code, theta, state)
        elif kind != tables.ABSENT_STEP:
            work[:] = rows[here]
            work[tables.T1] = now
            work[tables.HANDLES + p.nodes[n, tables.PLACE]] = e
            _ask_edges(p, b, rows, here, n, e, holding, waiting, marks, state, stamp, work, stack)


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
    state: Ints,
    stamp: int,
    work: Ints,
    stack: Ints,
) -> None:
    """An affected run: its rebind edge first, then its forward edges, which are sorted by slot, TRUE first."""
    now, fold = b.t1[e], p.nodes[n, tables.KIND] == tables.FOLD_STEP
    if fold:
        slot, keep = p.nodes[n, tables.KEEP_SLOT], p.nodes[n, tables.KEEP]
        if slot >= 0 and state[slot] != SETTLED:
            state[slot] = WANTED
            return
        if slot >= 0 and not marked(marks, stamp, slot):
            return
        if _waits(p.code, keep, state):
            _want(p.code, keep, state)
            return
        if not holds(p.code, keep, rows, r, work, b, e, now, marks, stamp, stack, p.cells_at):
            return
    last = p.nodes[n, tables.EDGE_TO]
    for i in range(-1, len(holding) + len(waiting)):
        slot = -1 if i < 0 else _nth(holding, waiting, i)
        left, right = p.nodes[n, tables.EDGE_FROM], last
        while left < right:
            middle = (left + right) // 2
            if p.edge_slots[middle] < slot:
                left = middle + 1
            else:
                right = middle
        while left < last and p.edge_slots[left] == slot:
            program = p.edges[left, tables.EDGE_PROGRAM]
            left += 1
            waits = slot >= 0 and state[slot] != SETTLED
            if _waits(p.code, program, state):
                if waits:
                    state[slot] = WANTED
                else:
                    _want(p.code, program, state)
            elif waits and (
                # Behind a FOLD the predicate may speak of aggregates that only the step itself computes.
                fold or holds(p.code, program, rows, r, work, b, e, now, marks, stamp, stack, p.cells_at)
            ):
                state[slot] = WANTED
