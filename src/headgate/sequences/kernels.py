"""Compiled loops of the sequence engine: one batch of events through one level of automata.

Waiting runs are filed by what can affect them: the static part of theta, and the bound value where theta has an
equality (AN and AI index). An event therefore touches the runs it may affect and no others, however many wait.

An epoch is decided as a whole: affected runs are marked, their successors collected, and only when the last event of
the epoch is done are the old ones taken out and the new ones put in (traps 1 and 2). Plain twin: `stepper.py`.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headgate.sequences.programs.kernels import STACK, accumulate, begin, execute, holds
from headgate.sequences.runs.kernels import bucket_of, install, longer, pop, remove, taller, unique
from headgate.sequences.tables import (
    ABSENT_STEP,
    ACC_FROM,
    ACC_OPERAND,
    ACC_START,
    ACC_TO,
    ACCEPTS,
    BORN,
    BOUND,
    EDGE_FROM,
    EDGE_PROGRAM,
    EDGE_SLOT,
    EDGE_TARGET,
    EDGE_TO,
    EPOCH,
    EXPIRED,
    FOLD_STEP,
    GROUP,
    GROUP_COLUMN,
    HANDLES,
    HEAP,
    KEEP,
    KEEP_SLOT,
    KEY,
    KEYED,
    KILLED,
    KIND,
    MASK,
    NEWER,
    NEXT,
    NEXT_STEP,
    NODE,
    PLACE,
    PREV,
    SAME,
    STAMP,
    START_PROGRAM,
    START_TARGET,
    STATE_FROM,
    STATE_TO,
    STEPPED,
    T0,
    T1,
    THETA,
    TIED,
    TOUCHED,
    Batch,
    Ints,
    Runs,
    Tables,
)


@njit(cache=True)
def advance(p: Tables, b: Batch, s: Runs, out: Ints) -> tuple[Runs, Ints, int]:
    """All epochs of a batch. Gives the new state and the accepted runs, NODE being the number of their target."""
    rows, heads, oldest, newest, counts, dropped, heap, scalars = s
    marks = np.zeros(len(p.group_from), np.int64)
    waiting = np.zeros((64, p.width), np.int64)
    affected = np.zeros(64, np.int64)
    work = np.zeros(p.width, np.int64)
    stack = np.zeros((STACK, 2), np.int64)
    count = 0
    end = len(b.t1)
    at = b.first
    while True:
        last = at >= end
        now = b.closed if last else b.t1[at]
        # Deadlines before this epoch have passed without an event: each is an epoch of its own.
        limit = now if last else now - 1
        while scalars[HEAP] > 0 and heap[0, 0] <= limit:
            due = heap[0, 0]
            s = Runs(rows, heads, oldest, newest, counts, dropped, heap, scalars)
            waiting, w, out, count = _fire(p, b, s, due, waiting, out, count, work, stack)
            s = install(p, b, s, waiting, 0, w)
            rows, heads, oldest, newest, counts, dropped, heap, scalars = s
        if last:
            break
        scalars[EPOCH] += 1
        epoch = scalars[EPOCH]
        n_affected, w, out_before = 0, 0, count
        until = at
        while until < end and b.t1[until] == now:
            until += 1
        if until - at > 1:
            scalars[TIED] = 1
        s = Runs(rows, heads, oldest, newest, counts, dropped, heap, scalars)
        for e in range(at, until):
            stamp = e - b.first + 1
            lo, hi = b.hit_from[e - b.first], b.hit_from[e - b.first + 1]
            for h in range(lo, hi):
                marks[b.hits[h]] = stamp
            stream = b.stream[e]
            o_lo, o_hi = p.open_from[stream], p.open_from[stream + 1]
            for h in range(lo + o_lo - o_hi, hi):
                if h < lo:
                    g_lo, g_hi = o_hi + h - lo, o_hi + h - lo + 1
                    from_open = True
                else:
                    slot = b.hits[h]
                    g_lo, g_hi = p.group_from[slot], p.group_from[slot + 1]
                    from_open = False
                for gi in range(g_lo, g_hi):
                    g = p.open_groups[gi] if from_open else p.groups[gi]
                    bucket, key = bucket_of(p, b, g, e, scalars[MASK])
                    if bucket < 0:
                        continue
                    r = heads[bucket]
                    while r >= 0:
                        following = rows[r, NEXT]
                        n = rows[r, NODE]
                        if p.nodes[n, GROUP] == g and (
                            p.group_table[g, GROUP_COLUMN] < 0 or (rows[r, KEYED] == 1 and rows[r, KEY] == key)
                        ):
                            scalars[TOUCHED] += 1
                            if now - rows[r, T0] + 1 > p.nodes[n, BOUND] and p.nodes[n, KIND] != ABSENT_STEP:
                                remove(s, r)
                                scalars[EXPIRED] += 1
                            elif b.t0[e] > rows[r, T1] and (
                                p.nodes[n, THETA] < 0
                                or execute(
                                    p.code,
                                    p.nodes[n, THETA],
                                    rows,
                                    r,
                                    rows[r],
                                    b,
                                    e,
                                    now,
                                    marks,
                                    stamp,
                                    stack,
                                    p.cells_at,
                                )
                                == 1
                            ):
                                if rows[r, STAMP] != epoch:
                                    rows[r, STAMP] = epoch
                                    if n_affected == len(affected):
                                        affected = longer(affected)
                                    affected[n_affected] = r
                                    n_affected += 1
                                scalars[STEPPED] += 1
                                if _may_move(p.nodes, p.edges, n, marks, stamp):
                                    waiting, w, out, count = _step(
                                        p,
                                        b,
                                        rows,
                                        r,
                                        n,
                                        e,
                                        now,
                                        marks,
                                        stamp,
                                        lo,
                                        hi,
                                        waiting,
                                        w,
                                        out,
                                        count,
                                        work,
                                        stack,
                                    )
                        r = following
            work[:] = 0
            work[HANDLES : p.cells_at] = -1
            work[T0], work[T1], work[HANDLES] = b.t0[e], now, e
            f_lo, f_hi = p.free_from[stream], p.free_from[stream + 1]
            for h in range(lo + f_lo - f_hi, hi):
                if h < lo:
                    s_lo, s_hi = f_hi + h - lo, f_hi + h - lo + 1
                    from_open = True
                else:
                    slot = b.hits[h]
                    s_lo, s_hi = p.start_from[slot], p.start_from[slot + 1]
                    from_open = False
                for si in range(s_lo, s_hi):
                    edge = p.free_starts[si] if from_open else p.starts[si]
                    if holds(
                        p.code,
                        p.start_table[edge, START_PROGRAM],
                        waiting,
                        0,
                        work,
                        b,
                        e,
                        now,
                        marks,
                        stamp,
                        stack,
                        p.cells_at,
                    ):
                        waiting, w, out, count = _emit(
                            p,
                            b,
                            p.start_table[edge, START_TARGET],
                            work,
                            now,
                            waiting,
                            w,
                            out,
                            count,
                            marks,
                            stamp,
                            stack,
                        )
        if scalars[TIED] == 1:
            if w > 1:
                kept = unique(waiting, 0, w)
                scalars[SAME] += w - kept
                w = kept
            if count - out_before > 1:
                count = unique(out, out_before, count)
        for i in range(n_affected):
            remove(s, affected[i])
            scalars[KILLED] += 1
        if w > 0:
            s = install(p, b, s, waiting, 0, w)
            rows, heads, oldest, newest, counts, dropped, heap, scalars = s
        while scalars[HEAP] > 0 and heap[0, 0] <= now:
            waiting, w, out, count = _fire(p, b, s, heap[0, 0], waiting, out, count, work, stack)
            s = install(p, b, s, waiting, 0, w)
            rows, heads, oldest, newest, counts, dropped, heap, scalars = s
        at = until
    return Runs(rows, heads, oldest, newest, counts, dropped, heap, scalars), out, count


@njit(cache=True)
def _may_move(nodes: Ints, edges: Ints, n: int, marks: Ints, stamp: int) -> bool:
    """Can an affected run do anything but die? Most die, and the marks of a few edges tell."""
    if nodes[n, KIND] != NEXT_STEP:
        return bool(nodes[n, KIND] == FOLD_STEP)
    lo, hi = nodes[n, EDGE_FROM], nodes[n, EDGE_TO]
    if hi - lo > 16:
        return True
    for edge in range(lo, hi):
        slot = edges[edge, EDGE_SLOT]
        if slot < 0 or marks[slot] == stamp:
            return True
    return False


@njit(cache=True)
def _step(
    p: Tables,
    b: Batch,
    rows: Ints,
    r: int,
    n: int,
    e: int,
    now: int,
    marks: Ints,
    stamp: int,
    lo: int,
    hi: int,
    waiting: Ints,
    w: int,
    out: Ints,
    count: int,
    work: Ints,
    stack: Ints,
) -> tuple[Ints, int, Ints, int]:
    """The forward and rebind edges of an affected run."""
    work[:] = rows[r]
    work[T1] = now
    work[HANDLES + p.nodes[n, PLACE]] = e
    if p.nodes[n, KIND] == FOLD_STEP:
        if p.nodes[n, KEEP_SLOT] >= 0 and marks[p.nodes[n, KEEP_SLOT]] != stamp:
            return waiting, w, out, count
        if not holds(p.code, p.nodes[n, KEEP], rows, r, work, b, e, now, marks, stamp, stack, p.cells_at):
            return waiting, w, out, count
        for a in range(p.nodes[n, ACC_FROM], p.nodes[n, ACC_TO]):
            if p.accs[a, ACC_OPERAND] >= 0:
                execute(p.code, p.accs[a, ACC_OPERAND], rows, r, work, b, e, now, marks, stamp, stack, p.cells_at)
            accumulate(p, a, work, stack)
        if w == len(waiting):
            waiting = taller(waiting)
        waiting[w] = work
        waiting[w, NODE] = n
        w += 1
    e_lo, e_hi = p.nodes[n, EDGE_FROM], p.nodes[n, EDGE_TO]
    if e_hi - e_lo <= 4 * (hi - lo) + 4:
        for edge in range(e_lo, e_hi):
            slot = p.edges[edge, EDGE_SLOT]
            if slot < 0 or marks[slot] == stamp:
                if holds(
                    p.code, p.edges[edge, EDGE_PROGRAM], rows, r, work, b, e, now, marks, stamp, stack, p.cells_at
                ):
                    waiting, w, out, count = _emit(
                        p, b, p.edges[edge, EDGE_TARGET], work, now, waiting, w, out, count, marks, stamp, stack
                    )
        return waiting, w, out, count
    # Many edges, few hits: look each hit up among the edges, which are sorted by slot, TRUE first.
    for h in range(lo - 1, hi):
        slot = -1 if h < lo else b.hits[h]
        left, right = e_lo, e_hi
        while left < right:
            middle = (left + right) // 2
            if p.edges[middle, EDGE_SLOT] < slot:
                left = middle + 1
            else:
                right = middle
        edge = left
        while edge < e_hi and p.edges[edge, EDGE_SLOT] == slot:
            if holds(p.code, p.edges[edge, EDGE_PROGRAM], rows, r, work, b, e, now, marks, stamp, stack, p.cells_at):
                waiting, w, out, count = _emit(
                    p, b, p.edges[edge, EDGE_TARGET], work, now, waiting, w, out, count, marks, stamp, stack
                )
            edge += 1
    return waiting, w, out, count


@njit(cache=True)
def _emit(
    p: Tables,
    b: Batch,
    target: int,
    work: Ints,
    now: int,
    waiting: Ints,
    w: int,
    out: Ints,
    count: int,
    marks: Ints,
    stamp: int,
    stack: Ints,
) -> tuple[Ints, int, Ints, int]:
    """A run arrives at a target: it is accepted there, and waits in each of its states."""
    if p.targets[target, ACCEPTS] > 0:
        if count == len(out):
            out = taller(out)
        out[count] = work
        out[count, NODE] = target
        out[count, NEXT] = 0
        out[count, PREV] = 0
        out[count, NEWER:HANDLES] = 0
        count += 1
    for i in range(p.targets[target, STATE_FROM], p.targets[target, STATE_TO]):
        n = p.states[i]
        if w == len(waiting):
            waiting = taller(waiting)
        waiting[w] = work
        waiting[w, NODE] = n
        waiting[w, HANDLES + p.nodes[n, PLACE]] = -1
        if p.nodes[n, KIND] == FOLD_STEP:
            for a in range(p.nodes[n, ACC_FROM], p.nodes[n, ACC_TO]):
                begin(p, a, waiting[w])
                if p.accs[a, ACC_START] >= 0:
                    execute(
                        p.code,
                        p.accs[a, ACC_START],
                        waiting,
                        w,
                        waiting[w],
                        b,
                        -1,
                        now,
                        marks,
                        stamp,
                        stack,
                        p.cells_at,
                    )
                    accumulate(p, a, waiting[w], stack)
        w += 1
    return waiting, w, out, count


@njit(cache=True)
def _fire(
    p: Tables, b: Batch, s: Runs, due: int, waiting: Ints, out: Ints, count: int, work: Ints, stack: Ints
) -> tuple[Ints, int, Ints, int]:
    """ABSENT's runs whose deadline is `due` come out: what they waited for did not happen."""
    rows, heap, scalars = s.rows, s.heap, s.scalars
    marks = np.zeros(1, np.int64)
    w = 0
    while scalars[HEAP] > 0 and heap[0, 0] == due:
        r, born = heap[0, 1], heap[0, 2]
        pop(heap, scalars)
        if rows[r, BORN] != born:
            continue
        n = rows[r, NODE]
        work[:] = rows[r]
        work[T1] = due
        work[HANDLES + p.nodes[n, PLACE]] = -1
        for edge in range(p.nodes[n, EDGE_FROM], p.nodes[n, EDGE_TO]):
            if holds(p.code, p.edges[edge, EDGE_PROGRAM], rows, r, work, b, -1, due, marks, 1, stack, p.cells_at):
                waiting, w, out, count = _emit(
                    p, b, p.edges[edge, EDGE_TARGET], work, due, waiting, w, out, count, marks, 1, stack
                )
        remove(s, r)
    return waiting, w, out, count
