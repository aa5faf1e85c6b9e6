"""Compiled loops of the sequence engine: one batch of events through one level of automata.

Waiting runs are filed by what can affect them: the static part of theta, and the bound value where theta has an
equality (AN and AI index). An event therefore touches the runs it may affect and no others, however many wait.

An epoch is decided as a whole: affected runs are marked, their successors collected, and only when the last event of
the epoch is done are the old ones taken out and the new ones put in (traps 1 and 2). Plain twin: `stepper.py`.

What costs is not arithmetic but memory: with a hundred thousand subscriptions every look at a table misses the cache.
So what a slot, an edge or a node is asked for lies in one row each; the static predicates that hold for an event are in
a small table of their own (`marked`); and a run that no edge can take dies without being copied.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from headgate.predicates.programs.kernels import STACK
from headgate.sequences import tables
from headgate.sequences.programs.kernels import accumulate, begin, execute, holds, mark, marked
from headgate.sequences.runs.kernels import (
    bucket_of,
    file_runs,
    install,
    is_full,
    longer,
    pop,
    remove,
    room,
    taller,
    unique,
)
from headgate.sequences.tables import Batch, Ints, Runs, Tables

_FEW = 16


@njit(cache=True)
def advance(p: Tables, b: Batch, s: Runs, out: Ints) -> tuple[Runs, Ints, int]:
    """All epochs of a batch. Gives the new state and the accepted runs, NODE being the number of their target."""
    nodes, groups, slots, roles, starts = p.nodes, p.groups, p.slots, p.roles, p.starts
    open_from, free_from, hits, hit_from = p.open_from, p.free_from, b.hits, b.hit_from
    scalars = s.scalars
    marks = _marks(hit_from)
    waiting = np.zeros((64, p.width), np.int64)
    affected = np.zeros(64, np.int64)
    work = np.zeros(p.width, np.int64)
    stack = np.zeros((STACK, 2), np.int64)
    count, touched, stepped, expired = 0, 0, 0, 0
    end = len(b.t1)
    at = b.first
    while True:
        last = at >= end
        now = b.closed if last else b.t1[at]
        # Deadlines before this epoch have passed without an event: each is an epoch of its own.
        if scalars[tables.HEAP] > 0:
            limit = now if last else now - 1
            s, waiting, out, count = _fire(p, b, s, limit, waiting, out, count, work, marks, stack)
        if last:
            break
        rows, heads = s.rows, s.heads
        scalars[tables.EPOCH] += 1
        epoch = scalars[tables.EPOCH]
        n_affected, w, out_before = 0, 0, count
        until = at + 1
        while until < end and b.t1[until] == now:
            until += 1
        if until - at > 1:
            scalars[tables.TIED] = 1
        for e in range(at, until):
            stamp = e - b.first + 1
            lo, hi = hit_from[stamp - 1], hit_from[stamp]
            for h in range(lo, hi):
                mark(marks, stamp, hits[h])
            stream = b.stream[e]
            for h in range(lo - 1, hi):
                if h < lo:
                    g_lo, g_hi = open_from[stream], open_from[stream + 1]
                elif roles[hits[h]] & 1:
                    g_lo, g_hi = slots[hits[h], tables.GROUP_FROM], slots[hits[h], tables.GROUP_TO]
                else:
                    continue
                for g in range(g_lo, g_hi):
                    bucket, key = bucket_of(groups, b.cells, b.defined, g, e, scalars[tables.MASK])
                    if bucket < 0:
                        continue
                    keyed = bucket >= len(groups)
                    r = heads[bucket]
                    while r >= 0:
                        this = r
                        r = rows[this, tables.NEXT]
                        if keyed and (rows[this, tables.KEY] != key or rows[this, tables.KEYED] == 0):
                            continue
                        n = rows[this, tables.NODE]
                        if keyed and nodes[n, tables.GROUP] != g:
                            continue
                        touched += 1
                        if now > rows[this, tables.UNTIL]:
                            remove(rows, heads, s.lists, scalars, this)
                            expired += 1
                            continue
                        if b.t0[e] <= rows[this, tables.T1]:
                            continue
                        theta = nodes[n, tables.THETA]
                        if theta >= 0 and not holds(
                            p.code, theta, rows, this, work, b, e, now, marks, stamp, stack, p.cells_at
                        ):
                            continue
                        if rows[this, tables.STAMP] != epoch:
                            rows[this, tables.STAMP] = epoch
                            if n_affected == len(affected):
                                affected = longer(affected, 0)
                            affected[n_affected] = this
                            n_affected += 1
                        stepped += 1
                        if not _may_move(nodes, p.edge_slots, n, marks, stamp):
                            continue
                        if w + nodes[n, tables.FAN] > len(waiting):
                            waiting = taller(waiting, w + nodes[n, tables.FAN])
                        most = nodes[n, tables.EDGE_TO] - nodes[n, tables.EDGE_FROM]
                        if count + most > len(out):
                            out = taller(out, count + most)
                        w, count = _step(
                            p, b, rows, this, n, e, now, marks, stamp, lo, hi, waiting, w, out, count, work, stack
                        )
            work[:] = 0
            work[tables.HANDLES : p.cells_at] = -1
            work[tables.T0], work[tables.T1], work[tables.HANDLES] = b.t0[e], now, e
            for h in range(lo - 1, hi):
                if h < lo:
                    s_lo, s_hi = free_from[stream], free_from[stream + 1]
                elif roles[hits[h]] & 2:
                    s_lo, s_hi = slots[hits[h], tables.START_FROM], slots[hits[h], tables.START_TO]
                else:
                    continue
                for i in range(s_lo, s_hi):
                    pc = starts[i, tables.EDGE_PROGRAM]
                    if pc >= 0 and not holds(p.code, pc, waiting, 0, work, b, e, now, marks, stamp, stack, p.cells_at):
                        continue
                    more = starts[i, tables.EDGE_STATE_TO] - starts[i, tables.EDGE_STATE_FROM]
                    if w + more > len(waiting):
                        waiting = taller(waiting, w + more)
                    if count == len(out):
                        out = taller(out, 0)
                    w, count = _emit(p, b, starts, i, work, now, waiting, w, out, count, marks, stamp, stack)
        if scalars[tables.TIED] == 1:
            if w > 1:
                kept = unique(waiting, 0, w)
                scalars[tables.SAME] += w - kept
                w = kept
            if count - out_before > 1:
                count = unique(out, out_before, count)
        for i in range(n_affected):
            remove(rows, heads, s.lists, scalars, affected[i])
        scalars[tables.KILLED] += n_affected
        if w > 0:
            if is_full(p, s, w):
                s = room(p, s, w)
            file_runs(nodes, groups, p.quotas, b.cells, b.defined, s, waiting, w)
        if scalars[tables.HEAP] > 0:
            s, waiting, out, count = _fire(p, b, s, now, waiting, out, count, work, marks, stack)
        at = until
    scalars[tables.TOUCHED] += touched
    scalars[tables.STEPPED] += stepped
    scalars[tables.EXPIRED] += expired
    return s, out, count


@njit(cache=True)
def _marks(hit_from: Ints) -> Ints:
    """An empty table for the static predicates that hold for one event; never more than half full."""
    most = 32
    for i in range(len(hit_from) - 1):
        most = max(most, hit_from[i + 1] - hit_from[i])
    size = 64
    while size < 2 * most:
        size *= 2
    return np.zeros(size, np.int64)


@njit(cache=True)
def _may_move(nodes: Ints, edge_slots: Ints, n: int, marks: Ints, stamp: int) -> bool:
    """Can an affected run do anything but die? Most die, and the slots of a few edges tell."""
    if nodes[n, tables.KIND] != tables.NEXT_STEP:
        return bool(nodes[n, tables.KIND] == tables.FOLD_STEP)
    only = nodes[n, tables.ONLY_SLOT]
    if only != tables.SEVERAL:
        return bool(only < 0 or marked(marks, stamp, only))
    lo, hi = nodes[n, tables.EDGE_FROM], nodes[n, tables.EDGE_TO]
    if hi - lo > _FEW:
        return True
    for edge in range(lo, hi):
        slot = edge_slots[edge]
        if slot < 0 or marked(marks, stamp, slot):
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
) -> tuple[int, int]:
    """The forward and rebind edges of an affected run; there is room for what it can make."""
    for c in range(p.width):
        work[c] = rows[r, c]
    work[tables.T1] = now
    work[tables.HANDLES + p.nodes[n, tables.PLACE]] = e
    if p.nodes[n, tables.KIND] == tables.FOLD_STEP:
        if p.nodes[n, tables.KEEP_SLOT] >= 0 and not marked(marks, stamp, p.nodes[n, tables.KEEP_SLOT]):
            return w, count
        if not holds(p.code, p.nodes[n, tables.KEEP], rows, r, work, b, e, now, marks, stamp, stack, p.cells_at):
            return w, count
        for a in range(p.nodes[n, tables.ACC_FROM], p.nodes[n, tables.ACC_TO]):
            if p.accs[a, tables.ACC_OPERAND] >= 0:
                execute(
                    p.code, p.accs[a, tables.ACC_OPERAND], rows, r, work, b, e, now, marks, stamp, stack, p.cells_at
                )
            accumulate(p.accs, a, work, stack)
        for c in range(p.width):
            waiting[w, c] = work[c]
        waiting[w, tables.NODE] = n
        w += 1
    e_lo, e_hi = p.nodes[n, tables.EDGE_FROM], p.nodes[n, tables.EDGE_TO]
    if e_hi - e_lo <= 4 * (hi - lo) + 4:
        for edge in range(e_lo, e_hi):
            slot = p.edge_slots[edge]
            if (slot < 0 or marked(marks, stamp, slot)) and holds(
                p.code, p.edges[edge, tables.EDGE_PROGRAM], rows, r, work, b, e, now, marks, stamp, stack, p.cells_at
            ):
                w, count = _emit(p, b, p.edges, edge, work, now, waiting, w, out, count, marks, stamp, stack)
        return w, count
    # Many edges, few hits: look each hit up among the edges, which are sorted by slot, TRUE first.
    for h in range(lo - 1, hi):
        slot = -1 if h < lo else b.hits[h]
        left, right = e_lo, e_hi
        while left < right:
            middle = (left + right) // 2
            if p.edge_slots[middle] < slot:
                left = middle + 1
            else:
                right = middle
        edge = left
        while edge < e_hi and p.edge_slots[edge] == slot:
            if holds(
                p.code, p.edges[edge, tables.EDGE_PROGRAM], rows, r, work, b, e, now, marks, stamp, stack, p.cells_at
            ):
                w, count = _emit(p, b, p.edges, edge, work, now, waiting, w, out, count, marks, stamp, stack)
            edge += 1
    return w, count


@njit(cache=True)
def _emit(
    p: Tables,
    b: Batch,
    edges: Ints,
    edge: int,
    work: Ints,
    now: int,
    waiting: Ints,
    w: int,
    out: Ints,
    count: int,
    marks: Ints,
    stamp: int,
    stack: Ints,
) -> tuple[int, int]:
    """A run arrives at the target of an edge: it is accepted there, and waits in each of its states."""
    if edges[edge, tables.EDGE_ACCEPTS] > 0:
        for c in range(p.width):
            out[count, c] = work[c]
        out[count, tables.NODE] = edges[edge, tables.EDGE_TARGET]
        count += 1
    for n in range(edges[edge, tables.EDGE_STATE_FROM], edges[edge, tables.EDGE_STATE_TO]):
        for c in range(p.width):
            waiting[w, c] = work[c]
        waiting[w, tables.NODE] = n
        if p.nodes[n, tables.KIND] == tables.FOLD_STEP:
            for a in range(p.nodes[n, tables.ACC_FROM], p.nodes[n, tables.ACC_TO]):
                begin(p.accs, a, waiting[w])
                pc = p.accs[a, tables.ACC_START]
                if pc >= 0:
                    execute(p.code, pc, waiting, w, waiting[w], b, -1, now, marks, stamp, stack, p.cells_at)
                    accumulate(p.accs, a, waiting[w], stack)
        w += 1
    return w, count


@njit(cache=True)
def _fire(
    p: Tables,
    b: Batch,
    s: Runs,
    limit: int,
    waiting: Ints,
    out: Ints,
    count: int,
    work: Ints,
    marks: Ints,
    stack: Ints,
) -> tuple[Runs, Ints, Ints, int]:
    """ABSENT's runs whose deadlines are up to `limit` come out, each deadline an epoch: what they waited for did not
    happen. No event has come in, so no static predicate holds."""
    scalars = s.scalars
    while scalars[tables.HEAP] > 0 and s.heap[0, 0] <= limit:
        due, w = s.heap[0, 0], 0
        rows, heap = s.rows, s.heap
        while scalars[tables.HEAP] > 0 and heap[0, 0] == due:
            r, born = heap[0, 1], heap[0, 2]
            pop(heap, scalars)
            if rows[r, tables.BORN] != born:
                continue
            n = rows[r, tables.NODE]
            work[:] = rows[r]
            work[tables.T1] = due
            work[tables.HANDLES + p.nodes[n, tables.PLACE]] = -1
            if w + p.nodes[n, tables.FAN] > len(waiting):
                waiting = taller(waiting, w + p.nodes[n, tables.FAN])
            most = p.nodes[n, tables.EDGE_TO] - p.nodes[n, tables.EDGE_FROM]
            if count + most > len(out):
                out = taller(out, count + most)
            for edge in range(p.nodes[n, tables.EDGE_FROM], p.nodes[n, tables.EDGE_TO]):
                pc = p.edges[edge, tables.EDGE_PROGRAM]
                if holds(p.code, pc, rows, r, work, b, -1, due, marks, -1, stack, p.cells_at):
                    w, count = _emit(p, b, p.edges, edge, work, due, waiting, w, out, count, marks, -1, stack)
            remove(rows, s.heads, s.lists, scalars, r)
        s = install(p, b, s, waiting, w)
    return s, waiting, out, count
