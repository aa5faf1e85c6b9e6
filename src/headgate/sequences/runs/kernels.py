"""Filing of runs: in buckets by what can affect them, ABSENT's in a heap by their deadline.

The buckets of keyed groups are one hash table with chains. It grows with the runs; each growth files all keyed runs
anew, which costs a constant per run put in. Lists of the runs of each node by age are needed for quotas alone, so they
are begun when as many runs live as the least quota allows: until then no node can have used up its own.
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
    FRESH,
    GROUP,
    GROUP_COLUMN,
    GROUP_MODE,
    HANDLES,
    HEAP,
    HELD,
    HELD_ELSE,
    HIGH,
    KEY,
    KEYED,
    KIND,
    LISTED,
    LISTED_COUNT,
    LOST,
    MASK,
    NEWER,
    NEWEST,
    NEXT,
    NODE,
    OLDER,
    OLDEST,
    PREV,
    SERIAL,
    STAMP,
    T0,
    T1,
    UNTIL,
    WITHIN,
    Batch,
    Bits,
    Ints,
    Runs,
    Tables,
)

_FOREVER = 2**63 - 1


@njit(cache=True)
def bucket_of(groups: Ints, cells: Ints, defined: Bits, g: int, e: int, mask: int) -> tuple[int, int]:
    """Where the runs of a group that this event may affect are filed; -1: nowhere."""
    column = groups[g, GROUP_COLUMN]
    if column < 0:
        return g, 0
    if defined[e, column] == 0:
        return -1, 0
    keyed, key = _key(cells, e, column, groups[g, GROUP_MODE])
    if not keyed:
        return -1, 0
    return len(groups) + (_mixed(g, key) & mask), key


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
def install(p: Tables, b: Batch, s: Runs, waiting: Ints, count: int) -> Runs:
    """Puts the first `count` of the waiting runs in."""
    if is_full(p, s, count):
        s = room(p, s, count)
    file_runs(p.nodes, p.groups, p.quotas, b.cells, b.defined, s, waiting, count)
    return s


@njit(cache=True)
def is_full(p: Tables, s: Runs, count: int) -> bool:
    """Might `count` more runs not fit?"""
    scalars = s.scalars
    return bool(
        scalars[HIGH] + count > len(s.rows)
        or scalars[HEAP] + count > len(s.heap)
        or scalars[FRESH] + count > len(s.fresh)
        or (p.keyed and scalars[ALIVE] + count > scalars[MASK])
        or (scalars[LISTED] == 0 and scalars[ALIVE] + count > p.least_quota)
    )


@njit(cache=True)
def room(p: Tables, s: Runs, count: int) -> Runs:
    """So much room that `count` more runs need no other arrays."""
    scalars = s.scalars
    rows, heads, lists, heap, fresh = s.rows, s.heads, s.lists, s.heap, s.fresh
    if scalars[HIGH] + count > len(rows):
        rows = taller(rows, scalars[HIGH] + count)
    if scalars[HEAP] + count > len(heap):
        heap = taller(heap, scalars[HEAP] + count)
    if scalars[FRESH] + count > len(fresh):
        fresh = longer(fresh, scalars[FRESH] + count)
    if p.keyed and scalars[ALIVE] + count > scalars[MASK]:
        while scalars[ALIVE] + count > scalars[MASK]:
            scalars[MASK] = (scalars[MASK] << 2) | 3
        heads = _rehash(p, rows, heads, scalars)
    if scalars[LISTED] == 0 and scalars[ALIVE] + count > p.least_quota:
        lists = _listed(len(p.nodes), rows, scalars)
    return Runs(rows, heads, lists, heap, fresh, scalars)


@njit(cache=True)
def _listed(nodes: int, rows: Ints, scalars: Ints) -> Ints:
    """Begins the lists of all nodes, with the runs that are there."""
    lists = np.zeros((nodes, 4), np.int64)
    lists[:, OLDEST] = -1
    lists[:, NEWEST] = -1
    scalars[LISTED] = 1
    for r in np.argsort(rows[: scalars[HIGH], BORN]):
        if rows[r, NODE] >= 0:
            _list(rows, lists, r)
    return lists


@njit(cache=True)
def _list(rows: Ints, lists: Ints, r: int) -> None:
    n = rows[r, NODE]
    rows[r, NEWER] = -1
    rows[r, OLDER] = lists[n, NEWEST]
    if lists[n, NEWEST] >= 0:
        rows[lists[n, NEWEST], NEWER] = r
    else:
        lists[n, OLDEST] = r
    lists[n, NEWEST] = r
    lists[n, LISTED_COUNT] += 1


@njit(cache=True)
def file_runs(
    nodes: Ints, groups: Ints, quotas: Ints, cells: Ints, defined: Bits, s: Runs, waiting: Ints, count: int
) -> None:
    rows, heads, lists, heap, fresh, scalars = s.rows, s.heads, s.lists, s.heap, s.fresh, s.scalars
    listed = scalars[LISTED] == 1
    width = rows.shape[1]
    free, high, born, put = scalars[FREE], scalars[HIGH], scalars[SERIAL], scalars[FRESH]
    for i in range(count):
        n = waiting[i, NODE]
        until = _until(nodes, n, waiting[i, T0])
        if waiting[i, T1] >= until:
            # No event later than this run can satisfy the bound on DUR.
            scalars[EXPIRED] += 1
            continue
        if free >= 0:
            r = free
            free = rows[r, NEXT]
        else:
            r = high
            high += 1
        for c in range(width):
            rows[r, c] = waiting[i, c]
        born += 1
        fresh[put] = r
        put += 1
        rows[r, STAMP] = 0
        rows[r, UNTIL] = until
        rows[r, BORN] = born
        bucket = nodes[n, GROUP]
        if nodes[n, HELD] >= 0:
            bucket = len(groups) + _hold_key(nodes, cells, defined, rows, r, scalars[MASK])
        rows[r, BUCKET] = bucket
        rows[r, PREV] = -1
        rows[r, NEXT] = heads[bucket]
        if heads[bucket] >= 0:
            rows[heads[bucket], PREV] = r
        heads[bucket] = r
        scalars[ALIVE] += 1
        # Time does not get beyond 64 bits: such a deadline never comes.
        if nodes[n, KIND] == ABSENT_STEP and rows[r, T1] <= _FOREVER - nodes[n, WITHIN]:
            _push(heap, scalars, rows[r, T1] + nodes[n, WITHIN], r, born)
        if listed:
            _list(rows, lists, r)
            if lists[n, LISTED_COUNT] > quotas[n]:
                scalars[FREE] = free
                remove(rows, heads, lists, scalars, lists[n, OLDEST])
                free = scalars[FREE]
                lists[n, LOST] += 1
                scalars[DROPPED] += 1
    scalars[CREATED] += born - scalars[SERIAL]
    scalars[FREE], scalars[HIGH], scalars[SERIAL], scalars[FRESH] = free, high, born, put


@njit(cache=True)
def _until(nodes: Ints, n: int, t0: int) -> int:
    """The last time at which an event can satisfy the bound on DUR; ABSENT has its own deadline."""
    bound = nodes[n, BOUND]
    if nodes[n, KIND] == ABSENT_STEP or (t0 > 0 and bound > _FOREVER - t0):
        return _FOREVER
    return int(t0 + (bound - 1))


@njit(cache=True)
def _hold_key(nodes: Ints, cells: Ints, defined: Bits, rows: Ints, r: int, mask: int) -> int:
    """Notes the value that theta compares for equality; before the first iteration `$` is that of an earlier event.
    Gives the place among the buckets of keyed groups."""
    n = rows[r, NODE]
    rows[r, KEYED] = 0
    rows[r, KEY] = 0
    packed = nodes[n, HELD]
    handle = rows[r, HANDLES + (packed >> 32)]
    if handle < 0 and nodes[n, HELD_ELSE] >= 0:
        packed = nodes[n, HELD_ELSE]
        handle = rows[r, HANDLES + (packed >> 32)]
    column = (packed >> 2) & 0x3FFFFFFF
    if handle >= 0 and defined[handle, column] == 1:
        keyed, key = _key(cells, handle, column, packed & 3)
        rows[r, KEYED] = int(keyed)
        rows[r, KEY] = key
    return int(_mixed(nodes[n, GROUP], rows[r, KEY]) & mask)


@njit(cache=True)
def _rehash(p: Tables, rows: Ints, heads: Ints, scalars: Ints) -> Ints:
    groups, mask = len(p.groups), scalars[MASK]
    made = np.full(groups + mask + 1, -1, np.int64)
    made[:groups] = heads[:groups]
    for r in range(scalars[HIGH]):
        n = rows[r, NODE]
        if n < 0 or p.nodes[n, HELD] < 0:
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
def remove(rows: Ints, heads: Ints, lists: Ints, scalars: Ints, r: int) -> None:
    following, before = rows[r, NEXT], rows[r, PREV]
    if before >= 0:
        rows[before, NEXT] = following
    else:
        heads[rows[r, BUCKET]] = following
    if following >= 0:
        rows[following, PREV] = before
    if scalars[LISTED] == 1:
        n, newer, older = rows[r, NODE], rows[r, NEWER], rows[r, OLDER]
        if older >= 0:
            rows[older, NEWER] = newer
        else:
            lists[n, OLDEST] = newer
        if newer >= 0:
            rows[newer, OLDER] = older
        else:
            lists[n, NEWEST] = older
        lists[n, LISTED_COUNT] -= 1
    rows[r, NODE] = -1
    rows[r, BORN] = -1
    rows[r, NEXT] = scalars[FREE]
    scalars[FREE] = r
    scalars[ALIVE] -= 1


@njit(cache=True)
def _push(heap: Ints, scalars: Ints, due: int, r: int, born: int) -> None:
    i = scalars[HEAP]
    scalars[HEAP] += 1
    while i > 0 and heap[(i - 1) // 2, 0] > due:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i, 0], heap[i, 1], heap[i, 2] = due, r, born


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
def taller(rows: Ints, least: int) -> Ints:
    made = np.zeros((max(2 * len(rows), least), rows.shape[1]), np.int64)
    made[: len(rows)] = rows
    return made


@njit(cache=True)
def longer(items: Ints, least: int) -> Ints:
    made = np.zeros(max(2 * len(items), least), np.int64)
    made[: len(items)] = items
    return made


@njit(cache=True)
def collect(s: Runs, now: int) -> int:
    """Takes out all runs that no event after `now` can satisfy; gives their number. Visits every run."""
    gone = 0
    for r in range(s.scalars[HIGH]):
        if s.rows[r, NODE] >= 0 and now >= s.rows[r, UNTIL]:
            remove(s.rows, s.heads, s.lists, s.scalars, r)
            gone += 1
    s.scalars[EXPIRED] += gone
    return gone


@njit(cache=True)
def bound_events(cells_at: int, s: Runs, first: int, mark: int, used: NDArray[np.bool_]) -> None:
    """Marks the events from `first` on that runs born after `mark` have bound; `used[i]` is for handle first + i."""
    count = s.scalars[HIGH] if mark < 0 else s.scalars[FRESH]
    for i in range(count):
        r = i if mark < 0 else s.fresh[i]
        if s.rows[r, BORN] >= 0 and (mark < 0 or s.rows[r, BORN] == mark + 1 + i):
            for c in range(HANDLES, cells_at):
                if s.rows[r, c] >= first:
                    used[s.rows[r, c] - first] = True


@njit(cache=True)
def move_events(cells_at: int, s: Runs, first: int, mark: int, moved: Ints) -> None:
    """Gives those events their new handles: `moved[i]` is that of first + i."""
    count = s.scalars[HIGH] if mark < 0 else s.scalars[FRESH]
    for i in range(count):
        r = i if mark < 0 else s.fresh[i]
        if s.rows[r, BORN] >= 0 and (mark < 0 or s.rows[r, BORN] == mark + 1 + i):
            for c in range(HANDLES, cells_at):
                if s.rows[r, c] >= first:
                    s.rows[r, c] = moved[s.rows[r, c] - first]


@njit(cache=True)
def refile(p: Tables, b: Batch, s: Runs) -> Runs:
    """Files keyed runs anew, after the codes of texts have changed."""
    for r in range(s.scalars[HIGH]):
        if s.rows[r, NODE] >= 0 and p.nodes[s.rows[r, NODE], HELD] >= 0:
            _hold_key(p.nodes, b.cells, b.defined, s.rows, r, s.scalars[MASK])
    heads = _rehash(p, s.rows, s.heads, s.scalars)
    return Runs(s.rows, heads, s.lists, s.heap, s.fresh, s.scalars)
