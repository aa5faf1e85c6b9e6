"""Filing of runs: in buckets by what can affect them, by age in the list of their node, ABSENT's in a heap.

The buckets of keyed groups are one hash table with chains. It grows with the runs; each growth files all keyed runs
anew, which costs a constant per run put in.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headgate.sequences.tables import (
    ABSENT_STEP,
    ALIVE,
    BORN,
    BOUND,
    BUCKET,
    CREATED,
    DROPPED,
    EXPIRED,
    FREE,
    GROUP,
    GROUP_COLUMN,
    GROUP_MODE,
    HANDLES,
    HEAP,
    HELD_COLUMN,
    HELD_ELSE,
    HELD_MODE,
    HELD_PLACE,
    HIGH,
    KEY,
    KEYED,
    KIND,
    MASK,
    NEWER,
    NEXT,
    NODE,
    OLDER,
    PREV,
    QUOTA,
    SERIAL,
    STAMP,
    T0,
    T1,
    WITHIN,
    Batch,
    Ints,
    Runs,
    Tables,
)


@njit(cache=True)
def bucket_of(p: Tables, b: Batch, g: int, e: int, mask: int) -> tuple[int, int]:
    """Where the runs of a group that this event may affect are filed; -1: nowhere."""
    column = p.group_table[g, GROUP_COLUMN]
    if column < 0:
        return g, 0
    if b.defined[e, column] == 0:
        return -1, 0
    keyed, key = _key(b.cells, e, column, p.group_table[g, GROUP_MODE])
    if not keyed:
        return -1, 0
    return len(p.group_table) + (_mixed(g, key) & mask), key


@njit(cache=True)
def _key(cells: Ints, handle: int, column: int, mode: int) -> tuple[bool, int]:
    """The key of a value: equal values have equal keys and others do not. A DOUBLE compared with DOUBLE only (mode 1)
    has its bits; compared with a BIGINT (mode 2) it equals one only if it is whole."""
    value = cells[handle, column]
    if mode == 0:
        return True, value
    real = cells[handle, column : column + 1].view(np.float64)[0]
    if mode == 1:
        if real != real:
            return True, 0x7FF8000000000000
        return True, (0 if real == 0.0 else value)
    if real == np.floor(real) and -9223372036854775808.0 <= real < 9223372036854775808.0:
        return True, int(real)
    return False, 0


@njit(cache=True)
def _mixed(g: int, key: int) -> int:
    x = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(g) * np.uint64(0xC2B2AE3D27D4EB4F)
    x ^= x >> np.uint64(32)
    x *= np.uint64(0xD6E8FEB86659FD93)
    x ^= x >> np.uint64(29)
    return int(np.int64(x >> np.uint64(1)))


@njit(cache=True)
def install(p: Tables, b: Batch, s: Runs, waiting: Ints, first: int, end: int) -> Runs:
    """Puts new runs in: each into its bucket, into the list of its node, and ABSENT's into the heap."""
    rows, heads, oldest, newest, counts, dropped, heap, scalars = s
    groups = len(p.group_table)
    for i in range(first, end):
        n = waiting[i, NODE]
        if _expired_at_birth(p, waiting, i):
            scalars[EXPIRED] += 1
            continue
        if scalars[FREE] >= 0:
            r = scalars[FREE]
            scalars[FREE] = rows[r, NEXT]
        else:
            r = scalars[HIGH]
            scalars[HIGH] += 1
            if r >= len(rows):
                rows = taller(rows)
        rows[r] = waiting[i]
        rows[r, STAMP] = 0
        scalars[SERIAL] += 1
        scalars[ALIVE] += 1
        scalars[CREATED] += 1
        rows[r, BORN] = scalars[SERIAL]
        _hold_key(p, b, rows, r)
        g = p.nodes[n, GROUP]
        bucket = g
        if p.group_table[g, GROUP_COLUMN] >= 0:
            if scalars[ALIVE] > scalars[MASK]:
                heads = _rehash(p, rows, heads, scalars, r)
            bucket = groups + (_mixed(g, rows[r, KEY]) & scalars[MASK])
        rows[r, BUCKET] = bucket
        rows[r, PREV] = -1
        rows[r, NEXT] = heads[bucket]
        if heads[bucket] >= 0:
            rows[heads[bucket], PREV] = r
        heads[bucket] = r
        rows[r, NEWER] = -1
        rows[r, OLDER] = newest[n]
        if newest[n] >= 0:
            rows[newest[n], NEWER] = r
        else:
            oldest[n] = r
        newest[n] = r
        counts[n] += 1
        if p.nodes[n, KIND] == ABSENT_STEP:
            heap = _push(heap, scalars, rows[r, T1] + p.nodes[n, WITHIN], r, rows[r, BORN])
        if counts[n] > p.nodes[n, QUOTA]:
            remove(Runs(rows, heads, oldest, newest, counts, dropped, heap, scalars), oldest[n])
            dropped[n] += 1
            scalars[DROPPED] += 1
    return Runs(rows, heads, oldest, newest, counts, dropped, heap, scalars)


@njit(cache=True)
def _expired_at_birth(p: Tables, waiting: Ints, i: int) -> bool:
    """No event later than this run can satisfy the bound on DUR, so it need not be filed."""
    n = waiting[i, NODE]
    return bool(p.nodes[n, KIND] != ABSENT_STEP and waiting[i, T1] + 1 - waiting[i, T0] + 1 > p.nodes[n, BOUND])


@njit(cache=True)
def _hold_key(p: Tables, b: Batch, rows: Ints, r: int) -> None:
    """Notes the value that theta compares for equality; before the first iteration `$` is that of an earlier event."""
    n = rows[r, NODE]
    rows[r, KEYED] = 0
    rows[r, KEY] = 0
    place, column, mode = p.nodes[n, HELD_PLACE], p.nodes[n, HELD_COLUMN], p.nodes[n, HELD_MODE]
    if column < 0:
        return
    handle = rows[r, HANDLES + place]
    if handle < 0:
        packed = p.nodes[n, HELD_ELSE]
        if packed < 0:
            return
        place, column, mode = packed >> 32, (packed >> 2) & 0x3FFFFFFF, packed & 3
        handle = rows[r, HANDLES + place]
    if b.defined[handle, column] == 1:
        keyed, key = _key(b.cells, handle, column, mode)
        rows[r, KEYED] = int(keyed)
        rows[r, KEY] = key


@njit(cache=True)
def _rehash(p: Tables, rows: Ints, heads: Ints, scalars: Ints, skip: int) -> Ints:
    groups = len(p.group_table)
    mask = (scalars[MASK] << 2) | 3
    scalars[MASK] = mask
    made = np.full(groups + mask + 1, -1, np.int64)
    made[:groups] = heads[:groups]
    for r in range(scalars[HIGH]):
        n = rows[r, NODE]
        if n < 0 or r == skip or p.group_table[p.nodes[n, GROUP], GROUP_COLUMN] < 0:
            continue
        bucket = groups + (_mixed(p.nodes[n, GROUP], rows[r, KEY]) & mask)
        rows[r, BUCKET] = bucket
        rows[r, PREV] = -1
        rows[r, NEXT] = made[bucket]
        if made[bucket] >= 0:
            rows[made[bucket], PREV] = r
        made[bucket] = r
    return made


@njit(cache=True)
def remove(s: Runs, r: int) -> None:
    rows, scalars = s.rows, s.scalars
    n = rows[r, NODE]
    if rows[r, PREV] >= 0:
        rows[rows[r, PREV], NEXT] = rows[r, NEXT]
    else:
        s.heads[rows[r, BUCKET]] = rows[r, NEXT]
    if rows[r, NEXT] >= 0:
        rows[rows[r, NEXT], PREV] = rows[r, PREV]
    if rows[r, OLDER] >= 0:
        rows[rows[r, OLDER], NEWER] = rows[r, NEWER]
    else:
        s.oldest[n] = rows[r, NEWER]
    if rows[r, NEWER] >= 0:
        rows[rows[r, NEWER], OLDER] = rows[r, OLDER]
    else:
        s.newest[n] = rows[r, OLDER]
    s.counts[n] -= 1
    rows[r, NODE] = -1
    rows[r, BORN] = -1
    rows[r, NEXT] = scalars[FREE]
    scalars[FREE] = r
    scalars[ALIVE] -= 1


@njit(cache=True)
def _push(heap: Ints, scalars: Ints, due: int, r: int, born: int) -> Ints:
    if scalars[HEAP] == len(heap):
        heap = taller(heap)
    i = scalars[HEAP]
    scalars[HEAP] += 1
    while i > 0 and heap[(i - 1) // 2, 0] > due:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i, 0], heap[i, 1], heap[i, 2] = due, r, born
    return heap


@njit(cache=True)
def pop(heap: Ints, scalars: Ints) -> None:
    scalars[HEAP] -= 1
    size = scalars[HEAP]
    due, r, born = heap[size, 0], heap[size, 1], heap[size, 2]
    i = 0
    while 2 * i + 1 < size:
        child = 2 * i + 1
        if child + 1 < size and heap[child + 1, 0] < heap[child, 0]:
            child += 1
        if heap[child, 0] >= due:
            break
        heap[i] = heap[child]
        i = child
    heap[i, 0], heap[i, 1], heap[i, 2] = due, r, born


@njit(cache=True)
def unique(rows: Ints, first: int, end: int) -> int:
    """Rows first to end without repeats, in their order; gives the new end."""
    size = 4
    while size < 2 * (end - first):
        size *= 2
    table = np.full(size, -1, np.int64)
    kept = first
    for i in range(first, end):
        h = 0
        for c in (NODE, T0, T1):
            h = _mixed(h, rows[i, c])
        for c in range(HANDLES, rows.shape[1]):
            h = _mixed(h, rows[i, c])
        at = h & (size - 1)
        found = False
        while table[at] >= 0:
            j = table[at]
            same = rows[i, NODE] == rows[j, NODE] and rows[i, T0] == rows[j, T0] and rows[i, T1] == rows[j, T1]
            c = HANDLES
            while same and c < rows.shape[1]:
                same = rows[i, c] == rows[j, c]
                c += 1
            if same:
                found = True
                break
            at = (at + 1) & (size - 1)
        if not found:
            table[at] = kept
            rows[kept] = rows[i]
            kept += 1
    return kept


@njit(cache=True)
def taller(rows: Ints) -> Ints:
    made = np.zeros((2 * len(rows), rows.shape[1]), np.int64)
    made[: len(rows)] = rows
    return made


@njit(cache=True)
def longer(items: Ints) -> Ints:
    made = np.zeros(2 * len(items), np.int64)
    made[: len(items)] = items
    return made


@njit(cache=True)
def collect(p: Tables, s: Runs, now: int) -> int:
    """Takes out all runs that no event after `now` can satisfy; gives their number. Visits every run."""
    gone = 0
    for r in range(s.scalars[HIGH]):
        n = s.rows[r, NODE]
        if n >= 0 and p.nodes[n, KIND] != ABSENT_STEP and now + 1 - s.rows[r, T0] + 1 > p.nodes[n, BOUND]:
            remove(s, r)
            gone += 1
    s.scalars[EXPIRED] += gone
    return gone


@njit(cache=True)
def fresh_handles(p: Tables, s: Runs, first: int, mark: int, used: NDArray[np.bool_]) -> None:
    """Marks the events from `first` on that runs born after `mark` have bound; `used[i]` is for handle first + i."""
    for n in range(len(s.newest)):
        r = s.newest[n]
        while r >= 0 and s.rows[r, BORN] > mark:
            for c in range(HANDLES, p.cells_at):
                if s.rows[r, c] >= first:
                    used[s.rows[r, c] - first] = True
            r = s.rows[r, OLDER]


@njit(cache=True)
def move_handles(p: Tables, s: Runs, first: int, mark: int, moved: Ints) -> None:
    """Gives those events their new handles: `moved[i]` is that of first + i."""
    for n in range(len(s.newest)):
        r = s.newest[n]
        while r >= 0 and s.rows[r, BORN] > mark:
            for c in range(HANDLES, p.cells_at):
                if s.rows[r, c] >= first:
                    s.rows[r, c] = moved[s.rows[r, c] - first]
            r = s.rows[r, OLDER]


@njit(cache=True)
def refile(p: Tables, b: Batch, s: Runs) -> Runs:
    """Files keyed runs anew, after the codes of texts have changed."""
    for r in range(s.scalars[HIGH]):
        if s.rows[r, NODE] >= 0:
            _hold_key(p, b, s.rows, r)
    s.scalars[MASK] >>= 2
    heads = _rehash(p, s.rows, s.heads, s.scalars, -1)
    return Runs(s.rows, heads, s.oldest, s.newest, s.counts, s.dropped, s.heap, s.scalars)
