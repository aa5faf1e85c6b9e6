"""The compiled loops that decide: prune, plan, join.

`verify` prunes the rows of a candidate until every vertex that is left has what its arcs ask for (SBPV, OPS, section
5.5, but in both directions and over all arcs), and joins what is left by backtracking; OPS's boolean expressions
(BEBV) are exponential.

The rows of a statement pattern in one event are sorted by subject. A slice of them with the subject bound is OPS's
derived pattern; because the whole event is indexed first, no statement has passed before its pattern was derived, and
(arc, bound subject) is looked at once however many paths lead to it. Where a join goes on for long, failures are
remembered by what the rest of the join can see of the vertices bound so far, which keeps ladders polynomial.

Arrays only. The plain twins stand in `headgate.oracle.graph_kernels`.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from headgate.graphs.kernels import Int, Int32, Ints, Mask, Words, bit, lower

_ONE = np.uint64(1)
_REMEMBERED = 1 << 16


@njit(cache=True)
def prune(
    subject_of: Int32, object_of: Int32, alive: Mask, span: Ints, arc_s: Int32, arc_o: Int32, dom: Words, fresh: Words
) -> bool:
    """Take from every vertex's domain what some arc cannot use, until nothing changes; False if a domain is empty.
    span[0, i] to span[1, i] are the rows of arc i."""
    words = dom.shape[1]
    changed = True
    while changed:
        changed = False
        for i in range(len(arc_s)):
            s, o = arc_s[i], arc_o[i]
            for w in range(words):
                fresh[0, w] = 0
                fresh[1, w] = 0
            for r in range(span[0, i], span[1, i]):
                if not alive[r]:
                    continue
                a, b = np.int64(subject_of[r]), np.int64(object_of[r])
                if bit(dom[s], a) and bit(dom[o], b):
                    fresh[0, a >> 6] |= _ONE << np.uint64(a & 63)
                    fresh[1, b >> 6] |= _ONE << np.uint64(b & 63)
            some = False
            for w in range(words):
                left, right = dom[s, w] & fresh[0, w], dom[o, w] & fresh[1, w]
                if left != dom[s, w] or right != dom[o, w]:
                    changed = True
                dom[s, w] = left
                dom[o, w] = right
                some = some or fresh[0, w] != 0
            if not some:
                return False
    return True


@njit(cache=True)
def plan(
    dom: Words, span: Ints, k: Int, arc_s: Int32, arc_o: Int32, group: Int32,
    order: Int32, place: Int32, lead: Int32, check_at: Ints, check: Int32, last: Int32,
) -> None:  # fmt: skip
    """The order of the join: from home on, always the vertex with the fewest candidates left. `lead` is the arc that
    proposes them, `check` the arcs that can be tested as soon as a vertex is bound, `last` when a bound vertex is
    needed for the last time."""
    size = np.zeros(k, np.int64)
    for x in range(k):
        place[x] = -1
        for w in range(dom.shape[1]):
            word = dom[x, w]
            while word != 0:
                word &= word - _ONE
                size[x] += 1
    place[0] = 0
    order[0] = 0
    lead[0] = -1
    for depth in range(1, k):
        best, by = -1, -1
        for i in range(len(arc_s)):
            s, o = arc_s[i], arc_o[i]
            if place[s] < 0 or place[o] >= 0:
                continue
            if best < 0 or size[o] < size[best]:
                best, by = o, i
            elif o == best and span[1, i] - span[0, i] < span[1, by] - span[0, by]:
                by = i
        order[depth] = best
        place[best] = depth
        lead[depth] = by
    count = 0
    for depth in range(k):
        last[depth] = 0
        check_at[depth] = count
        for i in range(len(arc_s)):
            if i != lead[depth] and max(place[arc_s[i]], place[arc_o[i]]) == depth:
                check[count] = i
                count += 1
    check_at[k] = count
    for i in range(len(arc_s)):
        s, o = place[arc_s[i]], place[arc_o[i]]
        last[s] = max(last[s], o)
        last[o] = max(last[o], s)
    for x in range(k):
        for y in range(k):
            if group[x] == group[y]:
                last[place[x]] = max(last[place[x]], place[y])


@njit(cache=True)
def _has_row(keys: Ints, alive: Mask, low: Int, high: Int, m: Int, n: Int, s: Int, o: Int) -> bool:
    key = (np.int64(m) * n + s) * n + o
    r = lower(keys, low, high, key)
    return bool(r < high and keys[r] == key and alive[r])


@njit(cache=True)
def _memory_key(
    depth: Int, value: Int32, order: Int32, last: Int32, ahead: Words, hom: bool, key: Ints, k: Int
) -> np.uint64:
    """What the rest of a join from `depth` on can see, into `key`: bound vertices that are still needed, and under ISO
    the used vertices that are candidates further on. Returns a hash of it."""
    words = ahead.shape[1]
    for i in range(len(key)):
        key[i] = -1
    key[0] = depth
    for d in range(depth):
        if last[d] >= depth:
            key[1 + d] = value[order[d]]
    if not hom:
        for w in range(words):
            key[1 + k + w] = 0
        for d in range(depth):
            v = value[order[d]]
            if bit(ahead[depth], v):
                key[1 + k + (v >> 6)] |= np.int64(1) << np.int64(v & 63)
    mixed = np.uint64(1469598103934665603)
    for i in range(len(key)):
        mixed = (mixed ^ np.uint64(key[i])) * np.uint64(1099511628211)
        mixed ^= mixed >> np.uint64(29)
    return mixed


@njit(cache=True)
def _find(table: Int32, stored: Ints, mixed: np.uint64, key: Ints) -> Int:
    """The place of a key in the table, or that where it belongs, as -1 - place."""
    at = np.int64(mixed & np.uint64(len(table) - 1))
    while table[at] >= 0:
        same = True
        for i in range(len(key)):
            if stored[table[at], i] != key[i]:
                same = False
                break
        if same:
            return at
        at = (at + 1) & (len(table) - 1)
    return -1 - at


@njit(cache=True)
def join(
    keys: Ints, object_of: Int32, alive: Mask, span: Ints, n: Int, k: Int, m_of_arc: Int32, arc_s: Int32,
    arc_o: Int32, group: Int32, alike: Mask, hom: bool, term: Int32, dom: Words, order: Int32, lead: Int32,
    check_at: Ints, check: Int32, last: Int32, value: Int32, cursor: Ints, found: Int32, budget: Int,
    remember_after: Int,
) -> tuple[Int, Int]:  # fmt: skip
    """Backtracking over the vertices in `order`. Solutions go into the rows of `found` until it is full.

    Failures are remembered after so many steps; a shorter join is not worth a table.
    Returns their number and what is left of the budget of steps; a budget below zero means that it gave up.
    """
    value[0] = 0
    for c in range(check_at[0], check_at[1]):
        i = check[c]
        if not _has_row(keys, alive, span[0, i], span[1, i], m_of_arc[i], n, 0, 0):
            return 0, budget
    if k == 1:
        found[0, 0] = 0
        return 1, budget
    words = dom.shape[1]
    count = 0
    started = budget
    remembering = False
    table = np.empty(1, np.int32)
    stored = np.empty((1, 1), np.int64)
    ahead = np.empty((1, 1), np.uint64)
    key = np.empty(1, np.int64)
    remembered = 0
    entered = np.zeros(k, np.int64)
    depth = 1
    i = lead[1]
    cursor[0, 1] = lower(keys, span[0, i], span[1, i], (np.int64(m_of_arc[i]) * n + value[arc_s[i]]) * n)
    cursor[1, 1] = lower(keys, cursor[0, 1], span[1, i], (np.int64(m_of_arc[i]) * n + value[arc_s[i]] + 1) * n)
    while depth >= 1:
        if cursor[0, depth] == cursor[1, depth]:
            if remembering and count == entered[depth] and remembered < _REMEMBERED:
                mixed = _memory_key(depth, value, order, last, ahead, hom, key, k)
                at = _find(table, stored, mixed, key)
                if at < 0:
                    if remembered == len(stored):
                        grown = np.empty((2 * remembered, len(key)), np.int64)
                        grown[:remembered] = stored
                        stored = grown
                    stored[remembered] = key
                    table[-1 - at] = remembered
                    remembered += 1
            depth -= 1
            continue
        r = cursor[0, depth]
        cursor[0, depth] += 1
        budget -= 1
        if budget < 0:
            return count, budget
        x = order[depth]
        v = np.int64(object_of[r])
        if not alive[r] or not bit(dom[x], v):
            continue
        good = True
        for d in range(depth):
            y = order[d]
            if group[y] == group[x]:
                if alike[x] and term[value[y]] != term[v]:
                    good = False
                    break
            elif not hom and value[y] == v:
                good = False
                break
        if not good:
            continue
        value[x] = v
        for c in range(check_at[depth], check_at[depth + 1]):
            i = check[c]
            s, o = value[arc_s[i]], value[arc_o[i]]
            if not _has_row(keys, alive, span[0, i], span[1, i], m_of_arc[i], n, s, o):
                good = False
                break
        if not good:
            continue
        if depth == k - 1:
            found[count, :k] = value[:k]
            count += 1
            if count == len(found):
                return count, budget
            continue
        depth += 1
        i = lead[depth]
        low = lower(keys, span[0, i], span[1, i], (np.int64(m_of_arc[i]) * n + value[arc_s[i]]) * n)
        cursor[0, depth] = low
        cursor[1, depth] = lower(keys, low, span[1, i], (np.int64(m_of_arc[i]) * n + value[arc_s[i]] + 1) * n)
        # A subtree that was entered before remembering began is never remembered as failed by mistake: the key is
        # computed from what is bound, and the count tells whether it gave a solution.
        entered[depth] = count
        if not remembering and started - budget > remember_after:
            remembering = True
            table = np.full(4 * _REMEMBERED, -1, np.int32)
            stored = np.empty((256, 1 + k + words), np.int64)
            key = np.empty(1 + k + words, np.int64)
            ahead = np.zeros((k + 1, words), np.uint64)
            for d in range(k - 1, -1, -1):
                for w in range(words):
                    ahead[d, w] = ahead[d + 1, w] | dom[order[d], w]
        if remembering:
            mixed = _memory_key(depth, value, order, last, ahead, hom, key, k)
            if _find(table, stored, mixed, key) >= 0:
                cursor[0, depth] = cursor[1, depth]
    return count, budget


@njit(cache=True)
def verify(
    # the rows of the batch
    row_of: Ints, keys: Ints, subject_of: Int32, object_of: Int32, alive: Mask, vertex_at: Ints, v_term: Int32,
    v_order: Int32,
    # the candidates
    event: Int32, pattern: Int32,
    # the patterns: arcs with their statement patterns, vertices with their groups
    hom: Mask, vertices_at: Ints, group: Int32, alike: Mask, arcs_at: Ints, arc_s: Int32, arc_o: Int32, arc_m: Int32,
    # what is asked of a pattern: views of it, each an order of its vertices
    view_at: Ints, view_vertex_at: Ints, view_vertex: Int32,
    budget: Int, remember_after: Int,
) -> tuple[NDArray[np.int8], Int32, Int32, Int32, NDArray[np.int64]]:  # fmt: skip
    """For each candidate 1 if it holds, 0 if not, -1 if the join gave up. For each that holds, and each view of its
    pattern, the candidate, the view and the solution whose vertices are least in the order of the view (v_order: equal
    for equal values). Last, counters: candidates that pruning refused, steps of all joins."""
    most_vertices, most_arcs, most_words = 1, 1, 1
    rows = 0
    for c in range(len(event)):
        p = pattern[c]
        most_vertices = max(most_vertices, vertices_at[p + 1] - vertices_at[p])
        most_arcs = max(most_arcs, arcs_at[p + 1] - arcs_at[p])
        most_words = max(most_words, (vertex_at[event[c] + 1] - vertex_at[event[c]] + 63) >> 6)
        rows += view_at[p + 1] - view_at[p]
    status = np.zeros(len(event), np.int8)
    out_candidate = np.empty(rows, np.int32)
    out_view = np.empty(rows, np.int32)
    out_value = np.full((rows, most_vertices), -1, np.int32)
    counters = np.zeros(2, np.int64)
    span = np.empty((2, most_arcs), np.int64)
    fresh = np.empty((2, most_words), np.uint64)
    order = np.empty(most_vertices, np.int32)
    place = np.empty(most_vertices, np.int32)
    lead = np.empty(most_vertices, np.int32)
    last = np.empty(most_vertices, np.int32)
    check_at = np.empty(most_vertices + 1, np.int64)
    check = np.empty(most_arcs, np.int32)
    value = np.empty(most_vertices, np.int32)
    cursor = np.empty((2, most_vertices), np.int64)
    found = np.empty((1, most_vertices), np.int32)
    best = np.empty(most_vertices, np.int32)
    domains = np.empty((most_vertices, most_words), np.uint64)
    pruned = np.empty((most_vertices, most_words), np.uint64)
    filled = 0
    for c in range(len(event)):
        e, p = event[c], pattern[c]
        n = vertex_at[e + 1] - vertex_at[e]
        words = (n + 63) >> 6
        k = vertices_at[p + 1] - vertices_at[p]
        dom = domains[:, :words]
        subjects, objects = arc_s[arcs_at[p] : arcs_at[p + 1]], arc_o[arcs_at[p] : arcs_at[p + 1]]
        wanted = arc_m[arcs_at[p] : arcs_at[p + 1]]
        groups, alikes = group[vertices_at[p] : vertices_at[p + 1]], alike[vertices_at[p] : vertices_at[p + 1]]
        terms = v_term[vertex_at[e] : vertex_at[e + 1]]
        ranks = v_order[vertex_at[e] : vertex_at[e + 1]]
        spans(row_of[e], row_of[e + 1], keys, n, wanted, span)
        open_domains(dom, k, hom[p])
        if not prune(subject_of, object_of, alive, span, subjects, objects, dom, fresh):
            counters[0] += 1
            continue
        plan(dom, span, k, subjects, objects, groups, order, place, lead, check_at, check, last)
        count, left = join(
            keys, object_of, alive, span, n, k, wanted, subjects, objects, groups, alikes, hom[p], terms, dom, order,
            lead, check_at, check, last, value, cursor, found, budget, remember_after,
        )  # fmt: skip
        counters[1] += budget - left
        if left < 0:
            status[c] = -1
            continue
        if count == 0:
            continue
        status[c] = 1
        pruned[:k, :words] = dom[:k]
        for view in range(view_at[p], view_at[p + 1]):
            best[:k] = found[0, :k]
            first = best[:k].copy()
            dom[:k] = pruned[:k, :words]
            for j in range(view_vertex_at[view], view_vertex_at[view + 1]):
                x = view_vertex[j]
                if single(dom[x]):
                    continue
                lesser = np.empty(n, np.int64)
                lessers = 0
                for v in range(n):
                    if bit(dom[x], v) and ranks[v] < ranks[best[x]]:
                        lesser[lessers] = np.int64(ranks[v]) * n + v
                        lessers += 1
                rest = np.sort(lesser[:lessers])
                at = 0
                while at < lessers:
                    rank = rest[at] // n
                    for w in range(words):
                        fresh[0, w] = 0
                    while at < lessers and rest[at] // n == rank:
                        v = rest[at] % n
                        fresh[0, v >> 6] |= _ONE << np.uint64(v & 63)
                        at += 1
                    kept = dom[x].copy()
                    dom[x] = fresh[0, :words]
                    count, left = join(
                        keys, object_of, alive, span, n, k, wanted, subjects, objects, groups, alikes, hom[p], terms,
                        dom, order, lead, check_at, check, last, value, cursor, found, budget, remember_after,
                    )  # fmt: skip
                    counters[1] += budget - left
                    dom[x] = kept
                    if left < 0:
                        status[c] = -1
                    if count:
                        best[:k] = found[0, :k]
                        break
                for w in range(words):
                    fresh[0, w] = 0
                for v in range(n):
                    if bit(dom[x], v) and ranks[v] == ranks[best[x]]:
                        fresh[0, v >> 6] |= _ONE << np.uint64(v & 63)
                dom[x] = fresh[0, :words]
            out_candidate[filled] = c
            out_view[filled] = view
            out_value[filled, :k] = best[:k]
            filled += 1
            found[0, :k] = first
    return status, out_candidate[:filled].copy(), out_view[:filled].copy(), out_value[:filled].copy(), counters


@njit(cache=True)
def single(words: Words) -> bool:
    """Whether exactly one bit is set."""
    seen = False
    for word in words:
        if word:
            if seen or word & (word - _ONE):
                return False
            seen = True
    return seen


@njit(cache=True)
def spans(low: Int, high: Int, keys: Ints, n: Int, m: Int32, span: Ints) -> None:
    """For each statement pattern of m the rows it has in the event whose rows are low to high."""
    for i in range(len(m)):
        span[0, i] = lower(keys, low, high, np.int64(m[i]) * n * n)
        span[1, i] = lower(keys, span[0, i], high, (np.int64(m[i]) + 1) * n * n)


@njit(cache=True)
def open_domains(dom: Words, k: Int, hom: bool) -> None:
    """Home is home; anything may be anything else, but under ISO only home is home."""
    for x in range(k):
        for w in range(dom.shape[1]):
            dom[x, w] = np.uint64(0) if x == 0 else ~np.uint64(0)
        if x and not hom:
            dom[x, 0] &= ~_ONE
    dom[0, 0] = _ONE


@njit(cache=True)
def enumerate_all(
    low: Int, high: Int, keys: Ints, subject_of: Int32, object_of: Int32, alive: Mask, n: Int, term: Int32, hom: bool,
    group: Int32, alike: Mask, arc_s: Int32, arc_o: Int32, arc_m: Int32, most: Int, budget: Int, remember_after: Int,
) -> tuple[Int32, Int]:  # fmt: skip
    """All solutions of one pattern in one event, at most `most` of them; and what is left of the budget of steps."""
    k, arcs = len(group), len(arc_s)
    words = (n + 63) >> 6
    span = np.empty((2, arcs), np.int64)
    dom = np.empty((k, words), np.uint64)
    found = np.empty((most, k), np.int32)
    order, place, lead = np.empty(k, np.int32), np.empty(k, np.int32), np.empty(k, np.int32)
    last, check, value = np.empty(k, np.int32), np.empty(arcs, np.int32), np.empty(k, np.int32)
    check_at = np.empty(k + 1, np.int64)
    spans(low, high, keys, n, arc_m, span)
    open_domains(dom, k, hom)
    if not prune(subject_of, object_of, alive, span, arc_s, arc_o, dom, np.empty((2, words), np.uint64)):
        return found[:0], budget
    plan(dom, span, k, arc_s, arc_o, group, order, place, lead, check_at, check, last)
    count, left = join(
        keys, object_of, alive, span, n, k, arc_m, arc_s, arc_o, group, alike, hom, term, dom, order, lead, check_at,
        check, last, value, np.empty((2, k), np.int64), found, budget, remember_after,
    )  # fmt: skip
    return found[:count].copy(), left
