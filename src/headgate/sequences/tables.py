"""The arrays of one level: its automata, a batch of events, and the runs.

Runs are rows of one int64 matrix, so that growing, copying and comparing a run is one operation; a DOUBLE is kept as
its bits. The columns of a row are named here; then come the handles of the bound events, one a place, -1 where none is
bound, and the cells of the aggregates.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headgate.errors import PlanError

Ints = NDArray[np.int64]
Bits = NDArray[np.uint8]

NODE, T0, T1, NEXT, PREV, UNTIL, STAMP, KEY, KEYED, BUCKET, BORN, NEWER, OLDER, HANDLES = range(14)
"""Columns of a run, those first that a visit reads. NEXT and PREV chain a bucket, NEWER and OLDER the runs of a node by
age; after UNTIL no event can affect it."""
ALIVE, HIGH, FREE, MASK, HEAP, TIED, EPOCH, SERIAL, EXPIRED, KILLED, DROPPED, TOUCHED, STEPPED, CREATED, SAME = range(
    15
)
FRESH, LISTED = 15, 16
"""Scalars of the state, kept in one array. FRESH counts the runs put in by this batch."""
SCALARS = 17
NEXT_STEP, FOLD_STEP, ABSENT_STEP = 1, 2, 3
COUNT, SUM, AVG, MIN, MAX, FIRST, LAST, STDDEV, RECURRENCE = range(1, 10)


KIND, GROUP, BOUND, HELD, THETA, EDGE_FROM, EDGE_TO, ONLY_SLOT = range(8)
PLACE, FAN, HELD_ELSE, KEEP_SLOT, KEEP, WITHIN, ACC_FROM, ACC_TO = range(8, 16)
"""Columns of `nodes`: the birth and the death of a run read the first eight, which are one line of the cache.
ONLY_SLOT is the slot of the only edge, SEVERAL where there are more; FAN is the most runs that one step can make."""
SEVERAL = -2
EDGE_SLOT, EDGE_PROGRAM, EDGE_TARGET, EDGE_ACCEPTS, EDGE_STATE_FROM, EDGE_STATE_TO = range(6)
"""Columns of `edges` and `starts`; the last three tell what stands at the target, whose states are numbered in a row."""
ACC_FUNCTION, ACC_CELL, ACC_OPERAND, ACC_START = range(4)
GROUP_COLUMN, GROUP_MODE = range(2)
GROUP_FROM, GROUP_TO, START_FROM, START_TO = range(4)
"""Columns of `slots`: the groups and the starts that wait for a static predicate."""
OLDEST, NEWEST, LISTED_COUNT, LOST = range(4)
"""Columns of `lists`."""


class Tables(NamedTuple):
    """The automata of a level as arrays, few of them, because a call hands over each. A matrix has the columns named
    above. Groups and starts are numbered so that those of a slot, or of a stream where they wait for no slot, follow
    one another: those of stream i are from[i] to from[i + 1]."""

    code: Ints
    nodes: Ints
    quotas: Ints
    accs: Ints
    edges: Ints
    edge_slots: Ints
    groups: Ints
    starts: Ints
    slots: Ints
    roles: Bits
    """1 if groups wait for the slot, 2 if starts do, 3 for both; the others are asked by edges only."""
    open_from: Ints
    free_from: Ints
    keyed: bool
    """Has a group a key?"""
    least_quota: int
    cells_at: int
    width: int


def check(p: Tables, slots: int, streams: int, targets: int) -> None:
    """Refuses tables whose numbers point outside them: the kernel does not look."""
    nodes, edges, groups, starts = len(p.nodes), len(p.edges), len(p.groups), len(p.starts)
    matrices = ((p.code, 5), (p.nodes, 16), (p.accs, 4), (p.edges, 6), (p.groups, 2), (p.starts, 6), (p.slots, 4))
    good = all(m.ndim == 2 and m.shape[1] == width for m, width in matrices)
    good = good and len(p.slots) == len(p.roles) == slots and len(p.quotas) == nodes and len(p.edge_slots) == edges
    good = good and len(p.open_from) == len(p.free_from) == streams + 1 and 14 <= p.cells_at <= p.width
    if not good:
        raise PlanError("the plan is damaged: the tables of its sequences do not fit together")
    inside = [
        (p.nodes[:, [THETA, KEEP]], -1, len(p.code)),
        (p.nodes[:, GROUP], 0, groups),
        (p.nodes[:, KIND], NEXT_STEP, ABSENT_STEP + 1),
        (p.nodes[:, [EDGE_FROM, EDGE_TO]], 0, edges + 1),
        (p.nodes[:, [ACC_FROM, ACC_TO]], 0, len(p.accs) + 1),
        (p.nodes[:, PLACE], 0, p.cells_at - HANDLES),
        (p.nodes[:, KEEP_SLOT], -1, slots),
        (p.accs[:, ACC_CELL], p.cells_at, max(p.width - 1, p.cells_at)),
        (p.accs[:, [ACC_OPERAND, ACC_START]], -1, len(p.code)),
        (p.slots[:, [GROUP_FROM, GROUP_TO]], 0, groups + 1),
        (p.slots[:, [START_FROM, START_TO]], 0, starts + 1),
        (p.open_from, 0, groups + 1),
        (p.free_from, 0, starts + 1),
    ]
    for table in (p.edges, p.starts):
        inside += [
            (table[:, EDGE_SLOT], -1, slots),
            (table[:, EDGE_PROGRAM], -1, len(p.code)),
            (table[:, EDGE_TARGET], 0, targets),
            (table[:, [EDGE_STATE_FROM, EDGE_STATE_TO]], 0, nodes + 1),
        ]
    for numbers, least, end in inside:
        if numbers.size and (numbers.min() < least or numbers.max() >= end):
            raise PlanError("the plan is damaged: a table of its sequences points outside itself")


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
    """All state of a level: the runs, the heads of their chains, the lists of each node by age, ABSENT's heap of
    deadlines, and the runs that this batch put in."""

    rows: Ints
    heads: Ints
    lists: Ints
    heap: Ints
    fresh: Ints
    scalars: Ints
