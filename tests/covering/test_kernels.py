"""The kernels against their plain twins in `headgate.oracle.covering`, on random boxes over small grids."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headgate.covering import exact, kernels, table
from headgate.covering.table import Table
from headgate.oracle import covering as oracle
from headgate.oracle.covering import Interval

Ints = NDArray[np.int64]
SIZE = 6
AXES = 3
EMPTY = np.empty(0, np.int64)
S: list[Interval] = [(j, 0, SIZE - 1) for j in range(AXES)]


def pieces(axis: int) -> st.SearchStrategy[list[Interval]]:
    """A non-empty set of numbers of one axis, some of them outside of s, as maximal runs."""

    def runs(chosen: set[int]) -> list[Interval]:
        found: list[Interval] = []
        for v in sorted(chosen):
            if found and found[-1][2] == v - 1:
                found[-1] = (axis, found[-1][1], v)
            else:
                found.append((axis, v, v))
        return found

    ends = st.tuples(st.integers(-2, SIZE), st.integers(0, SIZE))
    interval = ends.map(lambda p: set(range(p[0], min(p[0] + p[1], SIZE + 1) + 1)))
    return st.one_of(interval, st.sets(st.integers(-2, SIZE + 1), min_size=1)).map(runs)


def box(min_axes: int = 0) -> st.SearchStrategy[list[Interval]]:
    axes = st.sets(st.integers(0, AXES - 1), min_size=min_axes)
    return axes.flatmap(lambda chosen: st.tuples(*(pieces(j) for j in sorted(chosen)))).map(lambda p: [*chain(*p)])


BOXES = st.lists(box(), min_size=0, max_size=8)


def arrays(rows: Sequence[Sequence[Interval]]) -> kernels.Pieces:
    start = np.cumsum([0, *(len(r) for r in rows)]).astype(np.int64)
    axis, lo, hi = np.array([piece for r in rows for piece in r], np.int64).reshape(-1, 3).T.copy()
    return kernels.Pieces(start, axis, lo, hi)


def table_of(rows: Sequence[Sequence[Interval]]) -> Table | int:
    s_lo, s_hi = np.zeros(AXES, np.int64), np.full(AXES, SIZE - 1)
    s = kernels.Subject(s_lo, s_hi, EMPTY, EMPTY, EMPTY)
    among = np.arange(len(rows))
    covering, kept, *found = kernels.conflict_table(*arrays(rows), among, *s, np.zeros(AXES, np.bool_))
    return int(covering) if covering >= 0 else Table(kept, kernels.Entries(*found), s_lo, s_hi, np.arange(AXES))


def entries(found: Table) -> list[list[Interval]]:
    t = found.entries
    return [
        [(int(t.axis[e]), int(t.lo[e]), int(t.hi[e])) for e in range(t.ptr[r], t.ptr[r + 1])] for r in range(len(found))
    ]


@given(BOXES)
def test_the_conflict_table_holds_what_every_box_leaves_uncovered(rows: list[list[Interval]]) -> None:
    expected = [(i, oracle.conflict_entries(r, S)) for i, r in enumerate(rows)]
    found = table_of(rows)
    if isinstance(found, int):
        assert expected[found][1] == []
    else:
        kept = [(i, e) for i, e in expected if e is not None]
        assert found.rows.tolist() == [i for i, _ in kept]
        assert entries(found) == [e for _, e in kept]


@given(BOXES)
def test_counts_and_mcs_follow_the_paper_with_its_corrections(rows: list[list[Interval]]) -> None:
    found = table_of(rows)
    if isinstance(found, int):
        return
    counts = table.counts(found)
    assert counts.tolist() == oracle.defined_counts(entries(found), dict.fromkeys(range(AXES), (0, SIZE - 1)))
    core, removed = table.minimise(found, counts)
    assert removed.tolist() == oracle.minimised(entries(found), counts.tolist())
    kept = [e for i, e in enumerate(entries(found)) if i not in removed.tolist()]
    assert entries(core) == kept


@settings(max_examples=200)
@given(BOXES)
def test_search_and_sat_find_a_witness_exactly_if_there_is_one(rows: list[list[Interval]]) -> None:
    found = table_of(rows)
    if isinstance(found, int):
        return
    listed = entries(found)
    witnesses = [p for p in oracle.points(S) if oracle.evades(listed, dict(enumerate(p)))]
    for way in (exact.search, exact.solve):
        outcome = way(found, float("inf"))
        assert outcome.covered is not bool(witnesses)
        if outcome.covered:
            assert outcome.used is not None
            proof = [listed[i] for i in outcome.used]
            assert not any(oracle.evades(proof, dict(enumerate(p))) for p in oracle.points(S))
        else:
            assert outcome.point is not None
            assert tuple(outcome.point.tolist()) in witnesses
            low, high = table.polyhedron(found, outcome.point)
            inside = [(j, int(low[j]), int(high[j])) for j in range(AXES)]
            assert all(p in witnesses for p in oracle.points(inside))


@given(st.lists(box(1), min_size=1, max_size=8), box(1))
def test_boxes_inside_and_boxes_that_meet_are_found(rows: list[list[Interval]], other: list[Interval]) -> None:
    everything = [(j, -2, SIZE + 2) for j in range(AXES)]
    all_points = [dict(enumerate(p)) for p in oracle.points(everything)]
    members = [{i for i, p in enumerate(all_points) if oracle.contains(r, p)} for r in (*rows, other)]
    stored = arrays([*rows, other])
    among = np.arange(len(rows))
    meeting = kernels.meeting(*stored, among, len(rows)).tolist()
    assert meeting == [i for i in among if members[i] & members[-1]]
    inside = kernels.inside(*stored, among, len(rows)).tolist()
    assert inside == [i for i in among if members[i] <= members[-1]]


@given(st.lists(box(1), min_size=1, max_size=5), st.integers(0, 1000))
def test_a_guess_that_no_row_contains_ends_the_guessing(rows: list[list[Interval]], seed: int) -> None:
    found = table_of(rows)
    if isinstance(found, int) or not len(found):
        return
    edge_ptr = np.arange(AXES + 1) * SIZE
    edges = np.tile(np.arange(SIZE), AXES)
    weight = np.tile(np.cumsum(np.full(SIZE, 1 / SIZE)), AXES)
    trials, point = kernels.sample(*found.entries, edge_ptr, edges, weight, 20, seed)
    if len(point):
        assert oracle.evades(entries(found), dict(enumerate(point.tolist())))
        assert 1 <= trials <= 20
    else:
        assert trials == 20
