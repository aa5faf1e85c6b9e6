"""Every compiled loop against a plain twin, on random arrays."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pytest
from benchmarks import baselines
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.filters.plain_kernels import (
    Filed,
    bits,
    filed_pairs,
    plain_build,
    plain_program,
    random_program,
    random_source,
    words_of,
)

from headgate.filters import kernels as compiled
from headgate.filters.filing import _pair_cells, _sorted, distinct_ranges, make_conjuncts
from headgate.filters.kernels import WIDTH
from headgate.predicates import kernels as kernels_of_cells

kernels: Any = compiled  # numba's annotations take no argument for granted
ALL = 2**64 - 1
seeds = st.integers(0, 2**32).map(np.random.default_rng)
quick = settings(max_examples=40, deadline=None)


def cell_of(cuts: list[Any], x: Any) -> int:
    return 2 * len(cuts) if x != x else bisect_left(cuts, x) + bisect_right(cuts, x)


@quick
@given(st.data(), st.sampled_from(["bigint", "double", "boolean"]))
def test_a_cell_is_found_by_search(data: st.DataObject, kind: str) -> None:
    numbers: st.SearchStrategy[Any] = {
        "bigint": st.integers(-3, 3) | st.sampled_from([2**63 - 1, 2**63 - 2, -(2**63)]),
        "double": st.sampled_from([0.0, -0.0, 1.5, float("inf"), float("-inf"), float("nan"), 5e-324]),
        "boolean": st.integers(0, 1),
    }[kind]
    values, cuts = data.draw(st.lists(numbers)), sorted(set(data.draw(st.lists(numbers.filter(lambda x: x == x)))))
    defined = data.draw(st.lists(st.booleans(), min_size=len(values), max_size=len(values)))
    dtype: Any = {"bigint": np.int64, "double": np.float64, "boolean": np.int8}[kind]
    out = np.empty(len(values), np.int32)
    table = np.array(cuts, np.float64 if kind == "double" else np.int64)
    kernels_of_cells.numeric_cells(np.array(values, dtype), np.array(defined, np.bool_), table, out)
    cell = partial(cell_of, cuts)
    assert out.tolist() == [cell(x) if there else -1 for x, there in zip(values, defined, strict=True)]


@pytest.mark.parametrize("cuts", [[0], [-1, 3], [2**63 - 1], [2**63 - 2], [-(2**63)], [-(2**63), -(2**63) + 5]])
def test_a_cell_is_found_by_table_at_the_ends_of_int64_too(cuts: list[int]) -> None:
    least, most = -(2**63), 2**63 - 1
    first = max(cuts[0] - 1, least)
    around = range(first, min(cuts[-1] + 1, most) + 1)
    table = np.array([bisect_left(cuts, x) + bisect_right(cuts, x) for x in around], np.int32)
    values = [least, least + 1, -2, -1, 0, 1, 2, 3, 4, most - 2, most - 1, most]
    out = np.empty(len(values) + 1, np.int32)
    defined = np.array([True] * len(values) + [False])
    kernels_of_cells.table_cells(np.array([*values, 0], np.int64), defined, first, table, out)
    assert out.tolist() == [*(bisect_left(cuts, x) + bisect_right(cuts, x) for x in values), -1]


@quick
@given(seeds, st.sampled_from([1, 63, 64, 65, 200]))
def test_rows_are_built_from_cells(random: Any, events: int) -> None:
    source = random_source(random, events)
    words = -(-events // 64)
    rows = source.rows
    for first, last in ((0, words), (words - 1, words)):
        for row_stride, word_stride in ((1, rows), (words, 1)):
            out = np.zeros(rows * words, np.uint64)
            kernels.build_rows(*source.arrays, first, last, events, out, row_stride, word_stride)
            for row, holds in enumerate(plain_build(source)):
                for w in range(first, last):
                    found = out[row * row_stride + (w - first) * word_stride]
                    assert int(found) == bits(holds[w * 64 : w * 64 + 64])


@quick
@given(seeds, st.sampled_from([1, 63, 64, 65, 200]), st.booleans())
def test_rows_are_packed_from_truths(random: Any, events: int, ordered: bool) -> None:
    truths = random.random((3, events)) < 0.5
    order = random.permutation(events) if ordered else np.zeros(0, np.int64)
    words = -(-events // 64)
    out = np.zeros(4 * words, np.uint64)
    kernels.pack_rows(truths, order, np.array([2, 0, 3], np.int32), 0, words, events, out, words, 1)
    placed = truths[:, order] if ordered else truths
    for row, holds in zip((2, 0, 3), placed, strict=True):
        assert out[row * words : row * words + words].tolist() == words_of(holds)
    assert not out[words : 2 * words].any()


@quick
@given(seeds, st.integers(1, 5), st.integers(0, 12))
def test_a_program_is_if_then_else_with_complements(random: Any, rows: int, nodes: int) -> None:
    table = random_program(random, rows, nodes)
    values = random.integers(0, 2**64, (rows + nodes) * WIDTH, np.uint64)
    before = values.copy()
    groups = np.array([0, nodes // 2, nodes])
    kernels.run_program(table, groups, np.zeros(2, np.uint64), np.uint64(0), rows, values)
    assert values.tolist() == plain_program(table, rows, before.tolist())


@quick
@given(seeds, st.integers(1, 5), st.integers(2, 12))
def test_a_group_whose_support_no_event_defines_is_skipped(random: Any, rows: int, nodes: int) -> None:
    table = random_program(random, rows, nodes)
    middle = nodes // 2
    values = random.integers(0, 2**64, (rows + nodes) * WIDTH, np.uint64)
    before = values.copy()
    supports = np.array([0b01, 0b11], np.uint64)
    kernels.run_program(table, np.array([0, middle, nodes]), supports, np.uint64(0b101), rows, values)
    ran = plain_program(table[:middle], rows, before[: (rows + middle) * WIDTH].tolist())
    assert values.tolist() == ran + before[(rows + middle) * WIDTH :].tolist()


@quick
@given(seeds)
def test_the_mask_of_a_set_is_what_defines_all_of_it(random: Any) -> None:
    sets = [random.choice(4, random.integers(0, 4), replace=False).tolist() for _ in range(3)]
    first = np.cumsum([0, *map(len, sets)])
    defined, valid = random.integers(0, 2**64, 4 * WIDTH, np.uint64), random.integers(0, 2**64, WIDTH, np.uint64)
    out = np.zeros(3 * WIDTH, np.uint64)
    kernels.set_masks(first, np.array([p for s in sets for p in s], np.int64), defined, valid, out)
    for number, members in enumerate(sets):
        for k in range(WIDTH):
            word = int(valid[k])
            for p in members:
                word &= int(defined[p * WIDTH + k])
            assert int(out[number * WIDTH + k]) == word


@quick
@given(seeds, st.sampled_from([512, 600, 5000]))
def test_roots_are_counted_and_listed_under_the_mask_of_their_set(random: Any, room: int) -> None:
    """A buffer of 512 pairs takes one root at a time."""
    sets, roots, rows = 3, 7, 4
    values = random.integers(0, 2**64, rows * WIDTH, np.uint64)
    masks = random.integers(0, 2**64, sets * WIDTH, np.uint64)
    masks[WIDTH : 2 * WIDTH] = 0
    first = np.array([0, *sorted(random.integers(0, roots + 1, sets - 1)), roots])
    edges = random.integers(0, 2 * rows, roots).astype(np.int32)
    slots = random.permutation(roots).astype(np.int32)
    expected = []
    for s in range(sets):
        for r in range(first[s], first[s + 1]):
            for k in range(WIDTH):
                word = int(values[(edges[r] >> 1) * WIDTH + k]) ^ (ALL if edges[r] & 1 else 0)
                word &= int(masks[s * WIDTH + k])
                expected += [(1024 + k * 64 + i, int(slots[r])) for i in range(64) if word >> i & 1]
    counts = np.zeros(roots, np.int64)
    kernels.count_roots(first, edges, slots, masks, values, counts)
    assert counts.tolist() == [Counter(slot for _, slot in expected)[slot] for slot in range(roots)]
    found, at = [], 0
    while at < roots:
        out = np.empty((room, 2), np.int64)
        at, filled = kernels.list_roots(first, edges, slots, masks, values, at, 1024, out)
        found += [tuple(p) for p in out[:filled].tolist()]
    assert found == expected


@quick
@given(seeds, st.sampled_from([64, 65, 100, 5000]))
def test_filed_conjuncts_are_counted_and_listed_on_the_range_of_their_key(random: Any, room: int) -> None:
    """A buffer of 64 pairs makes the kernel stop and go on at every place there is."""
    filed = Filed.random(random)
    expected = filed_pairs(filed)
    counts = np.zeros(filed.count, np.int64)
    kernels.sparse_count(filed.ranges, *filed.tables, filed.width, filed.words, counts)
    assert counts.tolist() == [Counter(slot for _, slot in expected)[slot] for slot in range(filed.count)]
    found, resume = [], np.zeros(3, np.int64)
    while resume[0] >= 0:
        out = np.empty((room, 2), np.int64)
        filled = kernels.sparse_list(filed.ranges, *filed.tables, filed.width, filed.words, filed.order, resume, out)
        found += [tuple(p) for p in out[:filled].tolist()]
    assert sorted(found) == sorted(expected)


@quick
@given(seeds)
def test_candidates_one_by_one_count_what_the_sparse_lane_counts(random: Any) -> None:
    filed = Filed.random(random, disjoint=True)
    counts, expected = np.zeros(filed.count, np.int64), np.zeros(filed.count, np.int64)
    keys = np.full(filed.events, -1, np.int64)
    for key, begin, end in filed.ranges.tolist():
        keys[begin:end] = key
    kernel: Any = baselines.candidates_one_by_one
    kernel(keys, *filed.tables, filed.width, filed.words, counts)
    kernels.sparse_count(filed.ranges, *filed.tables, filed.width, filed.words, expected)
    assert counts.tolist() == expected.tolist()


@quick
@given(st.integers(0, 3), st.integers(0, 200), st.integers(1, 200))
def test_the_mask_of_a_range_has_its_bits_of_one_word(w: int, begin: int, length: int) -> None:
    end = begin + length
    if begin >> 6 <= w <= (end - 1) >> 6:
        mask = int(kernels.range_mask(w, begin, end))
        assert [i for i in range(64) if mask >> i & 1] == [i for i in range(64) if begin <= w * 64 + i < end]


@quick
@given(seeds, st.integers(1, 5), st.integers(1, 12))
def test_the_scalar_bdd_kernels_agree_with_the_program_event_by_event(random: Any, rows: int, nodes: int) -> None:
    table = random_program(random, rows, nodes)
    values = random.integers(0, 2**64, (rows + nodes) * WIDTH, np.uint64)
    kernels.run_program(table, np.array([0, nodes]), np.zeros(1, np.uint64), np.uint64(0), rows, values)
    for event in random.integers(0, WIDTH * 64, 5).tolist():
        expected = [int(values[i * WIDTH + event // 64]) >> event % 64 & 1 for i in range(rows + nodes)]
        for kernel in (baselines.eval_bdd, baselines.mv_eval_bdd):
            scalar = np.zeros(rows + nodes, np.uint8)
            scalar[:rows] = expected[:rows]
            kernel(table, rows, scalar)
            assert scalar.tolist() == expected


@quick
@given(seeds, st.integers(1, 5), st.integers(1, 12))
def test_a_node_with_an_undefined_test_or_successor_is_undefined(random: Any, rows: int, nodes: int) -> None:
    table = random_program(random, rows, nodes)
    values = random.integers(0, 3, rows).astype(np.uint8)
    twin = values.tolist()
    for test, high, low in table.tolist():
        parts = [twin[e >> 1] if twin[e >> 1] == 2 else twin[e >> 1] ^ (e & 1) for e in (test, high, low)]
        twin.append(2 if 2 in parts else parts[1] if parts[0] else parts[2])
    out = np.concatenate([values, np.zeros(nodes, np.uint8)])
    baselines.mv_eval_bdd(table, rows, out)
    assert out.tolist() == twin


@quick
@given(seeds, st.integers(1, 5), st.integers(0, 12))
def test_the_support_of_a_node_is_that_of_all_it_reads(random: Any, rows: int, nodes: int) -> None:
    table = random_program(random, rows, nodes)
    masks = np.concatenate([random.integers(0, 2**64, rows, np.uint64), np.zeros(nodes, np.uint64)])
    twin = masks[:rows].tolist()
    for edges in table.tolist():
        twin.append(twin[edges[0] >> 1] | twin[edges[1] >> 1] | twin[edges[2] >> 1])
    kernels.supports_of(table, rows, masks)
    assert masks.tolist() == twin


@quick
@given(st.lists(st.integers(-1, 4), max_size=30))
def test_events_are_sorted_by_cell_in_their_order(codes: list[int]) -> None:
    order, starts = _sorted(np.array(codes, np.int32), 5)
    assert order.tolist() == sorted((e for e, c in enumerate(codes) if c >= 0), key=lambda e: codes[e])
    assert starts.tolist() == [sum(0 <= c < cell for c in codes) for cell in range(6)]


@quick
@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(-1, 3)), max_size=30), st.sets(st.integers(0, 15)))
def test_a_pair_of_cells_is_found_among_the_pairs_in_use(events: list[tuple[int, int]], used: set[int]) -> None:
    pairs = sorted((u // 4, u % 4) for u in used)
    codes = np.array([a << 32 | b for a, b in pairs], np.int64)
    first, second = (np.array([e[k] for e in events], np.int32) for k in (0, 1))
    assert _pair_cells(first, second, codes).tolist() == [pairs.index(e) if e in pairs else -1 for e in events]


@quick
@given(st.lists(st.tuples(st.integers(0, 4), st.lists(st.integers(0, 9), max_size=3)), max_size=12))
def test_conjuncts_are_sorted_by_key_with_their_literals(given_: list[tuple[int, list[int]]]) -> None:
    keys, lengths = np.array([k for k, _ in given_], np.int64), np.array([len(x) for _, x in given_], np.int64)
    literals = np.array([x for _, xs in given_ for x in xs], np.int32)
    made = make_conjuncts(keys, 5, lengths, literals, np.arange(len(given_), dtype=np.int32))
    for key in range(5):
        mine = range(made.first[key], made.first[key + 1])
        listed = [(made.slots[c], made.literals[made.starts[c] : made.starts[c + 1]].tolist()) for c in mine]
        assert listed == [(slot, xs) for slot, (k, xs) in enumerate(given_) if k == key]


@quick
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=12))
def test_equal_ranges_are_one_key(ranges: list[tuple[int, int]]) -> None:
    low, high, key = distinct_ranges(np.array([a for a, _ in ranges]), np.array([b for _, b in ranges]))
    assert [(int(low[k]), int(high[k])) for k in key] == ranges
    assert len(low) == len(set(ranges))
