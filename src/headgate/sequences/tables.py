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


KIND, PLACE, GROUP, THETA, BOUND, KEEP_SLOT, KEEP, WITHIN, QUOTA = range(9)
HELD_PLACE, HELD_COLUMN, HELD_MODE, HELD_ELSE, ACC_FROM, ACC_TO, EDGE_FROM, EDGE_TO = range(9, 17)
"""Columns of `nodes`: what a run needs of its node lies together."""
EDGE_SLOT, EDGE_PROGRAM, EDGE_TARGET = range(3)
ACC_FUNCTION, ACC_CELL, ACC_OPERAND, ACC_START = range(4)
ACCEPTS, STATE_FROM, STATE_TO = range(3)
GROUP_COLUMN, GROUP_MODE = range(2)
START_PROGRAM, START_TARGET = range(2)


class Tables(NamedTuple):
    """The automata of a level as arrays, few of them, because a call hands over each. A matrix has the columns named
    above. `*_from` are offsets: the entries of i are from[i] to from[i + 1]."""

    code: Ints
    nodes: Ints
    accs: Ints
    edges: Ints
    targets: Ints
    states: Ints
    group_table: Ints
    group_from: Ints
    groups: Ints
    open_from: Ints
    open_groups: Ints
    start_table: Ints
    start_from: Ints
    starts: Ints
    free_from: Ints
    free_starts: Ints
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
