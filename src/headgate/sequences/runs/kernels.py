"""Filing of runs: in buckets by what can affect them, ABSENT's in a heap by their deadline.

The buckets of keyed groups are one hash table with chains. It grows with the runs; each growth files all keyed runs
anew, which costs a constant per run put in. Lists of the runs of each node by age are needed for quotas alone, so they
are begun when as many runs live as the least quota allows: until then no node can have used up its own.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headgate.sequences import tables
from headgate.sequences.tables import Batch, Bits, Ints, Runs, Tables

_FOREVER = 2**63 - 1


@njit(cache=True)
def bucket_of(groups: Ints, cells: Ints, defined: Bits, g: int, e: int, mask: int) -> tuple[int, int]:
    """Where the runs of a group that this event may affect are filed; -1: nowhere."""
    column = groups[g, tables.GROUP_COLUMN]
    if column < 0:
        return g, 0
    if defined[e, column] == 0:
        return -1, 0
    keyed, key = _key(cells, e, column, groups[g, tables.GROUP_MODE])
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
        scalars[tables.HIGH] + count > len(s.rows)
        or scalars[tables.HEAP] + count > len(s.heap)
        or scalars[tables.FRESH] + count > len(s.fresh)
        or (p.keyed and scalars[tables.ALIVE] + count > scalars[tables.MASK])
        or (scalars[tables.LISTED] == 0 and scalars[tables.ALIVE] + count > p.least_quota)
    )


@njit(cache=True)
def room(p: Tables, s: Runs, count: int) -> Runs:
    """So much room that `count` more runs need no other arrays."""
    scalars = s.scalars
    rows, heads, lists, heap, fresh = s.rows, s.heads, s.lists, s.heap, s.fresh
    if scalars[tables.HIGH] + count > len(rows):
        rows = taller(rows, scalars[tables.HIGH] + count)
    if scalars[tables.HEAP] + count > len(heap):
        heap = taller(heap, scalars[tables.HEAP] + count)
    if scalars[tables.FRESH] + count > len(fresh):
        fresh = longer(fresh, scalars[tables.FRESH] + count)
    if p.keyed and scalars[tables.ALIVE] + count > scalars[tables.MASK]:
        while scalars[tables.ALIVE] + count > scalars[tables.MASK]:
            scalars[tables.MASK] = (scalars[tables.MASK] << 2) | 3
        heads = _rehash(p, rows, heads, scalars)
    if scalars[tables.LISTED] == 0 and scalars[tables.ALIVE] + count > p.least_quota:
        lists = _listed(len(p.nodes), rows, scalars)
    return Runs(rows, heads, lists, heap, fresh, scalars)


@njit(cache=True)
def _listed(nodes: int, rows: Ints, scalars: Ints) -> Ints:
    """Begins the lists of all nodes, with the runs that are there."""
    lists = np.zeros((nodes, 4), np.int64)
    lists[:, tables.OLDEST] = -1
    lists[:, tables.NEWEST] = -1
    scalars[tables.LISTED] = 1
    for r in np.argsort(rows[: scalars[tables.HIGH], tables.BORN]):
        if rows[r, tables.NODE] >= 0:
            _list(rows, lists, r)
    return lists


@njit(cache=True)
def _list(rows: Ints, lists: Ints, r: int) -> None:
    n = rows[r, tables.NODE]
    rows[r, tables.NEWER] = -1
    rows[r, tables.OLDER] = lists[n, tables.NEWEST]
    if lists[n, tables.NEWEST] >= 0:
        rows[lists[n, tables.NEWEST], tables.NEWER] = r
    else:
        lists[n, tables.OLDEST] = r
    lists[n, tables.NEWEST] = r
    lists[n, tables.LISTED_COUNT] += 1


@njit(cache=True)
def file_runs(
    nodes: Ints, groups: Ints, quotas: Ints, cells: Ints, defined: Bits, s: Runs, waiting: Ints, count: int
) -> None:
    rows, heads, lists, heap, fresh, scalars = s.rows, s.heads, s.lists, s.heap, s.fresh, s.scalars
    listed = scalars[tables.LISTED] == 1
    width = rows.shape[1]
    free, high, born, put = scalars[tables.FREE], scalars[tables.HIGH], scalars[tables.SERIAL], scalars[tables.FRESH]
    for i in range(count):
        n = waiting[i, tables.NODE]
        until = _until(nodes, n, waiting[i, tables.T0])
        if waiting[i, tables.T1] >= until:
            # No event later than this run can satisfy the bound on DUR.
            scalars[tables.EXPIRED] += 1
            continue
        if free >= 0:
            r = free
            free = rows[r, tables.NEXT]
        else:
            r = high
            high += 1
        for c in range(width):
            rows[r, c] = waiting[i, c]
        born += 1
        fresh[put] = r
        put += 1
        rows[r, tables.STAMP] = 0
        rows[r, tables.UNTIL] = until
        rows[r, tables.BORN] = born
        bucket = nodes[n, tables.GROUP]
        if nodes[n, tables.HELD] >= 0:
            bucket = len(groups) + _hold_key(nodes, cells, defined, rows, r, scalars[tables.MASK])
        rows[r, tables.BUCKET] = bucket
        rows[r, tables.PREV] = -1
        rows[r, tables.NEXT] = heads[bucket]
        if heads[bucket] >= 0:
            rows[heads[bucket], tables.PREV] = r
        heads[bucket] = r
        scalars[tables.ALIVE] += 1
        # Time does not get beyond 64 bits: such a deadline never comes.
        if nodes[n, tables.KIND] == tables.ABSENT_STEP and rows[r, tables.T1] <= _FOREVER - nodes[n, tables.WITHIN]:
            _push(heap, scalars, rows[r, tables.T1] + nodes[n, tables.WITHIN], r, born)
        if listed:
            _list(rows, lists, r)
            if lists[n, tables.LISTED_COUNT] > quotas[n]:
                scalars[tables.FREE] = free
                remove(rows, heads, lists, scalars, lists[n, tables.OLDEST])
                free = scalars[tables.FREE]
                lists[n, tables.LOST] += 1
                scalars[tables.DROPPED] += 1
    scalars[tables.CREATED] += born - scalars[tables.SERIAL]
    scalars[tables.FREE], scalars[tables.HIGH], scalars[tables.SERIAL], scalars[tables.FRESH] = free, high, born, put


@njit(cache=True)
def _until(nodes: Ints, n: int, t0: int) -> int:
    """The last time at which an event can satisfy the bound on DUR; ABSENT has its own deadline."""
    bound = nodes[n, tables.BOUND]
    if nodes[n, tables.KIND] == tables.ABSENT_STEP or (t0 > 0 and bound > _FOREVER - t0):
        return _FOREVER
    return int(t0 + (bound - 1))


@njit(cache=True)
def _hold_key(nodes: Ints, cells: Ints, defined: Bits, rows: Ints, r: int, mask: int) -> int:
    """Notes the value that theta compares for equality; before the first iteration `$` is that of an earlier event.
    Gives the place among the buckets of keyed groups."""
    n = rows[r, tables.NODE]
    rows[r, tables.KEYED] = 0
    rows[r, tables.KEY] = 0
    packed = nodes[n, tables.HELD]
    handle = rows[r, tables.HANDLES + (packed >> 32)]
    if handle < 0 and nodes[n, tables.HELD_ELSE] >= 0:
        packed = nodes[n, tables.HELD_ELSE]
        handle = rows[r, tables.HANDLES + (packed >> 32)]
    column = (packed >> 2) & 0x3FFFFFFF
    if handle >= 0 and defined[handle, column] == 1:
        keyed, key = _key(cells, handle, column, packed & 3)
        rows[r, tables.KEYED] = int(keyed)
        rows[r, tables.KEY] = key
    return int(_mixed(nodes[n, tables.GROUP], rows[r, tables.KEY]) & mask)


@njit(cache=True)
def _rehash(p: Tables, rows: Ints, heads: Ints, scalars: Ints) -> Ints:
    groups, mask = len(p.groups), scalars[tables.MASK]
    made = np.full(groups + mask + 1, -1, np.int64)
    made[:groups] = heads[:groups]
    for r in range(scalars[tables.HIGH]):
        n = rows[r, tables.NODE]
        if n < 0 or p.nodes[n, tables.HELD] < 0:
            continue
        bucket = groups + (_mixed(p.nodes[n, tables.GROUP], rows[r, tables.KEY]) & mask)
        rows[r, tables.BUCKET] = bucket
        rows[r, tables.PREV] = -1
        rows[r, tables.NEXT] = made[bucket]
        if made[bucket] >= 0:
            rows[made[bucket], tables.PREV] = r
        made[bucket] = r
    return made


@njit(cache=True)
def remove(rows: Ints, heads: Ints, lists: Ints, scalars: Ints, r: int) -> None:
    following, before = rows[r, tables.NEXT], rows[r, tables.PREV]
    if before >= 0:
        rows[before, tables.NEXT] = following
    else:
        heads[rows[r, tables.BUCKET]] = following
    if following >= 0:
        rows[following, tables.PREV] = before
    if scalars[tables.LISTED] == 1:
        n, newer, older = rows[r, tables.NODE], rows[r, tables.NEWER], rows[r, tables.OLDER]
        if older >= 0:
            rows[older, tables.NEWER] = newer
        else:
            lists[n, tables.OLDEST] = newer
        if newer >= 0:
            rows[newer, tables.OLDER] = older
        else:
            lists[n, tables.NEWEST] = older
        lists[n, tables.LISTED_COUNT] -= 1
    rows[r, tables.NODE] = -1
    rows[r, tables.BORN] = -1
    rows[r, tables.NEXT] = scalars[tables.FREE]
    scalars[tables.FREE] = r
    scalars[tables.ALIVE] -= 1


@njit(cache=True)
def _push(heap: Ints, scalars: Ints, due: int, r: int, born: int) -> None:
    i = scalars[tables.HEAP]
    scalars[tables.HEAP] += 1
    while i > 0 and heap[(i - 1) // 2, 0] > due:
        heap[i] = heap[(i - 1) // 2]
        i = (i - 1) // 2
    heap[i, 0], heap[i, 1], heap[i, 2] = due, r, born


@njit(cache=True)
def pop(heap: Ints, scalars: Ints) -> None:
    scalars[tables.HEAP] -= 1
    size = scalars[tables.HEAP]
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
        for c in (tables.NODE, tables.T0, tables.T1):
            h = _mixed(h, rows[i, c])
        for c in range(tables.HANDLES, rows.shape[1]):
            h = _mixed(h, rows[i, c])
        at = h & (size - 1)
        found = False
        while table[at] >= 0:
            j = table[at]
            same = (
                rows[i, tables.NODE] == rows[j, tables.NODE]
                and rows[i, tables.T0] == rows[j, tables.T0]
                and rows[i, tables.T1] == rows[j, tables.T1]
            )
            c = tables.HANDLES
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
    for r in range(s.scalars[tables.HIGH]):
        if s.rows[r, tables.NODE] >= 0 and now >= s.rows[r, tables.UNTIL]:
            remove(s.rows, s.heads, s.lists, s.scalars, r)
            gone += 1
    s.scalars[tables.EXPIRED] += gone
    return gone


@njit(cache=True)
def bound_events(cells_at: int, s: Runs, first: int, mark: int, used: NDArray[np.bool_]) -> None:
    """Marks the events from `first` on that runs born after `mark` have bound; `used[i]` is for handle first + i."""
    count = s.scalars[tables.HIGH] if mark < 0 else s.scalars[tables.FRESH]
    for i in range(count):
        r = i if mark < 0 else s.fresh[i]
        if s.rows[r, tables.BORN] >= 0 and (mark < 0 or s.rows[r, tables.BORN] == mark + 1 + i):
            for c in range(tables.HANDLES, cells_at):
                if s.rows[r, c] >= first:
                    used[s.rows[r, c] - first] = True


@njit(cache=True)
def move_events(cells_at: int, s: Runs, first: int, mark: int, moved: Ints) -> None:
    """Gives those events their new handles: `moved[i]` is that of first + i."""
    count = s.scalars[tables.HIGH] if mark < 0 else s.scalars[tables.FRESH]
    for i in range(count):
        r = i if mark < 0 else s.fresh[i]
        if s.rows[r, tables.BORN] >= 0 and (mark < 0 or s.rows[r, tables.BORN] == mark + 1 + i):
            for c in range(tables.HANDLES, cells_at):
                if s.rows[r, c] >= first:
                    s.rows[r, c] = moved[s.rows[r, c] - first]


@njit(cache=True)
def refile(p: Tables, b: Batch, s: Runs) -> Runs:
    """Files keyed runs anew, after the codes of texts have changed."""
    for r in range(s.scalars[tables.HIGH]):
        if s.rows[r, tables.NODE] >= 0 and p.nodes[s.rows[r, tables.NODE], tables.HELD] >= 0:
            _hold_key(p.nodes, b.cells, b.defined, s.rows, r, s.scalars[tables.MASK])
    heads = _rehash(p, s.rows, s.heads, s.scalars)
    return Runs(s.rows, heads, s.lists, s.heap, s.fresh, s.scalars)
