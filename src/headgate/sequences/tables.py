"""The arrays of one level: its automata, a batch of events, and the runs.

Runs are rows of one int64 matrix, so that growing, copying and comparing a run is one operation; a DOUBLE is kept as
its bits. The columns of a row are named here; then come the handles of the bound events, one a place, -1 where none is
bound, and the cells of the aggregates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bits = NDArray[np.uint8]

NODE, T0, T1, NEXT, PREV, NEWER, OLDER, BUCKET, STAMP, KEY, KEYED, BORN, HANDLES = range(13)
"""Columns of a run. NEXT and PREV chain a bucket, NEWER and OLDER the runs of a node by age."""
ALIVE, HIGH, FREE, MASK, HEAP, TIED, EPOCH, SERIAL, EXPIRED, KILLED, DROPPED, TOUCHED, STEPPED, CREATED, SAME = range(
    15
)
"""Scalars of the state, kept in one array."""
SCALARS = 16
NEXT_STEP, FOLD_STEP, ABSENT_STEP = 1, 2, 3
COUNT, SUM, AVG, MIN, MAX, FIRST, LAST, STDDEV, RECURRENCE = range(1, 10)


class Tables(NamedTuple):
    """The automata of a level as arrays. `*_from` are offsets: the entries of i are from[i] to from[i + 1]."""

    code: Ints
    kind: Ints
    place: Ints
    group: Ints
    theta: Ints
    bound: Ints
    keep_slot: Ints
    keep: Ints
    within: Ints
    quota: Ints
    held_place: Ints
    held_column: Ints
    held_mode: Ints
    held_else: Ints
    acc_from: Ints
    acc_function: Ints
    acc_cell: Ints
    acc_operand: Ints
    acc_start: Ints
    edge_from: Ints
    edge_slot: Ints
    edge_program: Ints
    edge_target: Ints
    state_from: Ints
    states: Ints
    accepts: Ints
    group_column: Ints
    group_mode: Ints
    group_from: Ints
    groups: Ints
    open_from: Ints
    open_groups: Ints
    start_from: Ints
    starts: Ints
    free_from: Ints
    free_starts: Ints
    start_program: Ints
    start_target: Ints
    cells_at: int
    width: int


class Batch(NamedTuple):
    """The events: rows of the level's memory, those from `first` on being new and sorted by t1."""

    cells: Ints
    defined: Bits
    t0: Ints
    t1: Ints
    stream: Ints
    hit_from: Ints
    hits: Ints
    first: int
    closed: int


class Runs(NamedTuple):
    """All state of a level: the runs, the heads of their chains, ABSENT's heap of deadlines, counts by node."""

    rows: Ints
    heads: Ints
    oldest: Ints
    newest: Ints
    counts: Ints
    dropped: Ints
    heap: Ints
    scalars: Ints
