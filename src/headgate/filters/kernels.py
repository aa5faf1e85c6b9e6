"""The compiled loops of the filter engine, over arrays only.

A *row* is the bitset of the events for which one literal holds, 64 events a word. `build_rows` makes rows from the
cells of attributes; `run_program` evaluates a shared BDD, or any if-then-else program, on rows; `sparse_*` evaluates the
conjuncts filed under a key on the events of that key alone.

Each kernel has a plain twin in the tests, and all together are held equal to `headgate.oracle.filters`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

WIDTH = 8
"""Words a block of the dense lane: one cache line a node."""


def _popcount(_context: Any, word: Any) -> Any:
    def generate(_c: Any, builder: Any, _s: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.uint64(types.uint64), generate


popcount: Any = intrinsic(_popcount)


def _lowest_bit(_context: Any, word: Any) -> Any:
    def generate(_c: Any, builder: Any, _s: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


lowest_bit: Any = intrinsic(_lowest_bit)
"""The number of the lowest set bit; the word is not zero."""


@njit(cache=True)
def build_rows(
    cells: Any, sources: Any, tables: Any, member_rows: Any, outside_rows: Any, missing_rows: Any,
    first_word: int, last_word: int, events: int, out: Any, row_stride: int, word_stride: int,
) -> None:  # fmt: skip
    """The rows of every source for some words. See `rows.Rows` for the layout of `sources` and `tables`."""
    for w in range(first_word, last_word):
        base = (w - first_word) * word_stride
        count = min(64, events - w * 64)
        for s in range(sources.shape[0]):
            (at, upto_first, upto_count, from_first, from_count, outside_first, outside_count, missing_first,
             missing_last) = sources[s]  # fmt: skip
            defined = np.uint64(0)
            missing = np.uint64(0)
            for i in range(count):
                bit = np.uint64(1) << np.uint64(i)
                c = cells[s, w * 64 + i]
                if c < 0:
                    missing |= bit
                    continue
                defined |= bit
                upto, from_, member, member_end, outside, outside_end = tables[at + c]
                if upto < upto_count:
                    out[(upto_first + upto) * row_stride + base] |= bit
                if from_ >= 0:
                    out[(from_first + from_) * row_stride + base] |= bit
                for r in range(member, member_end):
                    out[member_rows[r] * row_stride + base] |= bit
                for r in range(outside, outside_end):
                    out[outside_rows[r] * row_stride + base] |= bit
            so_far = np.uint64(0)
            for j in range(upto_count):
                o = (upto_first + j) * row_stride + base
                so_far |= out[o]
                out[o] = so_far
            so_far = np.uint64(0)
            for j in range(from_count - 1, -1, -1):
                o = (from_first + j) * row_stride + base
                so_far |= out[o]
                out[o] = so_far
            for j in range(outside_count):
                o = (outside_first + j) * row_stride + base
                out[o] = defined & ~out[o]
            if missing:
                for r in range(missing_first, missing_last):
                    out[missing_rows[r] * row_stride + base] |= missing


@njit(cache=True)
def pack_rows(
    truths: Any, order: Any, rows: Any, first_word: int, last_word: int, events: int,
    out: Any, row_stride: int, word_stride: int,
) -> None:  # fmt: skip
    """Rows from truths given event by event: truths[t, event] becomes row rows[t]. `order` may be empty: as they come."""
    for t in range(truths.shape[0]):
        for w in range(first_word, last_word):
            word = np.uint64(0)
            for i in range(min(64, events - w * 64)):
                e = w * 64 + i
                if len(order):
                    e = order[e]
                if truths[t, e]:
                    word |= np.uint64(1) << np.uint64(i)
            out[rows[t] * row_stride + (w - first_word) * word_stride] = word


@njit(cache=True)
def run_program(nodes: Any, groups: Any, supports: Any, defined: Any, first: int, values: Any) -> None:
    """values[first + i] = if nodes[i, 0] then nodes[i, 1] else nodes[i, 2], for WIDTH words each.

    An edge is 2 * index + 1 if it is complemented. Nodes stand in groups of equal support, children first; a group whose
    support has an attribute that no event of the block defines is skipped (`defined` is all ones to skip none).
    """
    # Unsigned throughout: numba spends a branch on every signed index, lest it be negative.
    one, width = np.uint64(1), np.uint64(WIDTH)
    zero = np.uint64(0)
    for g in range(len(supports)):
        if supports[g] & ~defined:
            continue
        for i in range(groups[g], groups[g + 1]):
            test, high, low = np.uint64(nodes[i, 0]), np.uint64(nodes[i, 1]), np.uint64(nodes[i, 2])
            flip_test, flip_high, flip_low = zero - (test & one), zero - (high & one), zero - (low & one)
            t, h, e = (test >> one) * width, (high >> one) * width, (low >> one) * width
            o = np.uint64(first + i) * width
            for k in range(width):
                x = values[t + k] ^ flip_test
                a = values[e + k] ^ flip_low
                values[o + k] = a ^ (x & (a ^ values[h + k] ^ flip_high))


@njit(cache=True)
def set_masks(first: Any, paths: Any, defined: Any, valid: Any, out: Any) -> None:
    """For each attribute set the events that define all of it: WIDTH words a set and an attribute."""
    for s in range(len(first) - 1):
        for k in range(WIDTH):
            word = valid[k]
            for p in range(first[s], first[s + 1]):
                word &= defined[paths[p] * WIDTH + k]
            out[s * WIDTH + k] = word


@njit(cache=True)
def any_bit(words: Any, at: int) -> bool:
    some = np.uint64(0)
    for k in range(WIDTH):
        some |= words[at + k]
    return bool(some != 0)


@njit(cache=True)
def count_roots(first: Any, roots: Any, slots: Any, masks: Any, values: Any, counts: Any) -> None:
    """Add to counts[slot] for how many events of the block each root holds; the roots of a set are neighbours."""
    for s in range(len(first) - 1):
        m = s * WIDTH
        if not any_bit(masks, m):
            continue
        for r in range(first[s], first[s + 1]):
            edge = roots[r]
            flip = np.uint64(0) - np.uint64(edge & 1)
            at = (edge >> 1) * WIDTH
            total = np.uint64(0)
            for k in range(WIDTH):
                total += popcount((values[at + k] ^ flip) & masks[m + k])
            counts[slots[r]] += np.int64(total)


@njit(cache=True)
def list_roots(
    first: Any, roots: Any, slots: Any, masks: Any, values: Any, start: int, first_event: int, out: Any
) -> tuple[int, int]:
    """Write (event, slot) pairs from root `start` on; gives the root to go on with and how many pairs were written."""
    filled = 0
    for s in range(len(first) - 1):
        m = s * WIDTH
        if first[s + 1] <= start or not any_bit(masks, m):
            continue
        for r in range(max(start, first[s]), first[s + 1]):
            if filled + WIDTH * 64 > out.shape[0]:
                return r, filled
            edge = roots[r]
            flip = np.uint64(0) - np.uint64(edge & 1)
            at = (edge >> 1) * WIDTH
            for k in range(WIDTH):
                word = (values[at + k] ^ flip) & masks[m + k]
                while word:
                    out[filled, 0] = first_event + k * 64 + np.int64(lowest_bit(word))
                    out[filled, 1] = slots[r]
                    filled += 1
                    word &= word - np.uint64(1)
    return len(roots), filled


@njit(cache=True)
def sparse_count(
    ranges: Any, first_conjunct: Any, starts: Any, literals: Any, slots: Any, rows: int, words: Any, counts: Any
) -> None:
    """For each key with events: its conjuncts on the words of its range only, stopping at the first zero."""
    for r in range(ranges.shape[0]):
        key, begin, end = ranges[r]
        for w in range(begin >> 6, ((end - 1) >> 6) + 1):
            mask = range_mask(w, begin, end)
            base = w * rows
            for c in range(first_conjunct[key], first_conjunct[key + 1]):
                word = mask
                for i in range(starts[c], starts[c + 1]):
                    word &= words[np.uint64(base + literals[i])]
                    if not word:
                        break
                if word:
                    counts[slots[c]] += np.int64(popcount(word))


@njit(cache=True)
def range_mask(w: int, begin: int, end: int) -> Any:
    """The bits of word `w` that lie in [begin, end)."""
    mask = ~np.uint64(0)
    if begin > w * 64:
        mask &= ~np.uint64(0) << np.uint64(begin - w * 64)
    if end < w * 64 + 64:
        mask &= ~(~np.uint64(0) << np.uint64(end - w * 64))
    return mask


@njit(cache=True)
def sparse_list(
    ranges: Any, first_conjunct: Any, starts: Any, literals: Any, slots: Any, rows: int, words: Any,
    order: Any, resume: Any, out: Any,
) -> int:  # fmt: skip
    """The same, writing (event, slot) pairs. `resume` holds (range, word, conjunct) to go on from; range -1 is the end."""
    filled = 0
    room = out.shape[0] - 64
    r0, w0, c0 = resume
    for r in range(r0, ranges.shape[0]):
        key, begin, end = ranges[r]
        for w in range(max(begin >> 6, w0), ((end - 1) >> 6) + 1):
            mask = range_mask(w, begin, end)
            base = w * rows
            for c in range(max(first_conjunct[key], c0), first_conjunct[key + 1]):
                if filled > room:
                    resume[0], resume[1], resume[2] = r, w, c
                    return filled
                word = mask
                for i in range(starts[c], starts[c + 1]):
                    word &= words[base + literals[i]]
                    if not word:
                        break
                while word:
                    out[filled, 0] = order[w * 64 + np.int64(lowest_bit(word))]
                    out[filled, 1] = slots[c]
                    filled += 1
                    word &= word - np.uint64(1)
            c0 = 0
        w0 = 0
    resume[0] = -1
    return filled


@njit(cache=True)
def supports_of(nodes: Any, first: int, masks: Any) -> None:
    """masks[first + i] = the attributes that node i depends on; masks of rows are given."""
    for i in range(nodes.shape[0]):
        test, high, low = nodes[i]
        masks[first + i] = masks[test >> 1] | masks[high >> 1] | masks[low >> 1]


@njit(cache=True)
def children_first(highs: Any, lows: Any, roots: Any, first: int, values: Any) -> None:
    """Numbers from `first` on for all nodes under the roots, depth first, children before parents.

    values[i] is the number of node i, or -1 as long as it has none.
    """
    stack = np.empty(2 * len(values) + 1, np.int64)
    for root in roots:
        stack[0] = root
        top = 1
        while top:
            i = stack[top - 1]
            high, low = highs[i], lows[i]
            if values[i] >= 0:
                top -= 1
            elif values[high] >= 0 and values[low] >= 0:
                values[i] = first
                first += 1
                top -= 1
            else:
                if values[high] < 0:
                    stack[top] = high
                    top += 1
                if values[low] < 0:
                    stack[top] = low
                    top += 1
