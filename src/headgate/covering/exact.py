"""Exact decision on a conflict table: the compiled search, and SAT for what it does not finish in time.

The search (`search/kernels.py`) is over in microseconds where a few rows decide; where the proof is long, a SAT
solver with all its learning wins. Its encoding is by order: one variable "x is at or above this cut" for each cut of
an axis, so an entry is one or two literals and a row is a clause over entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.columns import offsets_of
from headgate.covering.kernels import Entries
from headgate.covering.search import kernels
from headgate.covering.table import Table
from headgate.errors import EnvironmentProblem

Ints = NDArray[np.int64]
_FIRST_RUN, _LONGER = 50, 1.2
"""Conflicts until the search begins anew, and how much longer every further run is."""
_SLOTS = 4096
_SAT_RUN = 2000
"""Conflicts after which SAT looks at the clock."""
SEARCH_SHARE, SEARCH_SECONDS = 0.5, 0.25
"""How much of the time, and how long at most, the search may take before SAT gets the rest."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """`point` is a witness, by axis of the table; `used` are the positions of the rows in the proof of cover."""

    covered: bool | None
    method: str
    point: Ints | None = None
    used: Ints | None = None


UNKNOWN = Outcome(None, "budget")


def decide(table: Table, deadline: float) -> Outcome:
    """Search for a share of the time that is left, then SAT until the deadline (in `perf_counter` seconds)."""
    now = perf_counter()
    found = search(table, now + min(SEARCH_SHARE * (deadline - now), SEARCH_SECONDS))
    return found if found.covered is not None else solve(table, deadline)


def search(table: Table, deadline: float) -> Outcome:
    """The compiled search, begun anew now and then with the boxes it has learned as further rows."""
    own = len(table)
    used = np.zeros(own, np.bool_)
    activity = np.zeros(own)
    conflicts = _FIRST_RUN
    while True:
        start = perf_counter()
        found, learned = _attempt(table, own, used, activity, conflicts)
        if found is not None:
            return found
        now = perf_counter()
        # A run cannot be interrupted, so the last ones are as long as the time that is left.
        affordable = (deadline - now) * conflicts / (now - start)
        if affordable < 1:
            return UNKNOWN
        table = _with_boxes(table, learned)
        activity = np.concatenate([activity, np.zeros(len(table) - len(activity))])
        conflicts = max(1, int(min(conflicts * _LONGER, affordable)))


def _attempt(
    table: Table, own: int, used: NDArray[np.bool_], activity: NDArray[np.float64], conflicts: int
) -> tuple[Outcome | None, Ints]:
    """Search until an answer or so many conflicts; then the boxes learned. Rows from `own` on were learned before."""
    entries, rows, axes = table.entries, len(table), len(table.axes)
    by_lo, by_hi = (
        np.lexsort((table.entries.lo, table.entries.axis)),
        np.lexsort((table.entries.hi, table.entries.axis)),
    )
    axis_ptr = offsets_of(np.bincount(table.entries.axis, minlength=axes))
    live = np.diff(table.entries.ptr)
    row = np.repeat(np.arange(rows), live)
    here = kernels.Search(
        state=np.zeros(7, np.int64),
        low=table.s_lo.copy(),
        high=table.s_hi.copy(),
        live=live,
        dead_lo=np.zeros(axes, np.int64),
        dead_hi=np.zeros(axes, np.int64),
        # Every step moves a bound of an axis to another bound of an entry, so the trail has an end.
        trail=np.empty((4 * entries.axis.size + 2 * axes + 8, 4), np.int64),
        slots=np.empty((min(_SLOTS, entries.axis.size + 8), 2 * axes), np.int64),
        queue=np.empty(rows + 1, np.int64),
        activity=activity,
        used=np.zeros(rows, np.bool_),
        learned=np.empty((conflicts, 2 * axes), np.int64),
        around_low=np.empty(axes, np.int64),
        around_high=np.empty(axes, np.int64),
    )
    order = (row, axis_ptr, by_lo, by_hi)
    kernels.search(*entries, *order, table.s_lo, table.s_hi, *here, conflicts)  # type: ignore[arg-type]  # mypy takes no named tuple apart
    used |= here.used[:own]
    status = here.state[kernels.STATUS]
    if status == kernels.WITNESS:
        return Outcome(False, "search", here.low), here.learned
    if status == kernels.COVERED:
        return Outcome(True, "search", used=np.flatnonzero(used)), here.learned
    if status == kernels.FULL:
        return UNKNOWN, here.learned
    return None, here.learned[: here.state[kernels.LEARNED]]


def _with_boxes(table: Table, boxes: Ints) -> Table:
    """The table with rows for boxes that are known to be covered; -1 as row number, for they are nobody's."""
    lo, hi = boxes[:, 0::2], boxes[:, 1::2]
    below, above = lo > table.s_lo, hi < table.s_hi
    # One entry for each side of s that a box does not reach, ordered by box.
    box, axis, side = np.nonzero(np.stack([below, above], axis=2))
    low = np.where(side == 0, table.s_lo[axis], hi[box, axis] + 1)
    high = np.where(side == 0, lo[box, axis] - 1, table.s_hi[axis])
    ptr = table.entries.ptr[-1] + np.cumsum(np.bincount(box, minlength=len(boxes)))
    return Table(
        np.concatenate([table.rows, np.full(len(boxes), -1)]),
        Entries(*map(np.concatenate, zip(table.entries, (ptr, axis, low, high), strict=True))),
        table.s_lo,
        table.s_hi,
        table.axes,
    )


def solve(table: Table, deadline: float) -> Outcome:
    """SAT by order encoding; the rows of a proof come from the solver's core."""
    if perf_counter() > deadline:
        return UNKNOWN
    try:
        from pysat.solvers import Glucose4
    except ImportError as problem:
        raise EnvironmentProblem(
            "exact cover needs the package python-sat", "install it, or use mode='search'"
        ) from problem
    edges, first = _edges(table)
    above = _variables(table, edges, first)
    count = int(first[-1])
    selectors = list(range(count + 1, count + len(table) + 1))
    with Glucose4() as solver:
        for j in range(len(table.axes)):
            for v in range(int(first[j]) + 2, int(first[j + 1]) + 1):
                solver.add_clause([-v, v - 1])
        fresh = selectors[-1] + 1 if selectors else count + 1
        for r in range(len(table)):
            clause = [-selectors[r]]
            for e in range(table.entries.ptr[r], table.entries.ptr[r + 1]):
                literals = above(e)
                if len(literals) == 2:
                    for literal in literals:
                        solver.add_clause([-fresh, literal])
                    literals = [fresh]
                    fresh += 1
                clause += literals
            solver.add_clause(clause)
        return _run(solver, selectors, table, edges, first, deadline)


def _edges(table: Table) -> tuple[list[Ints], Ints]:
    """The first numbers of the cells of every axis, and where its variables start."""
    edges = []
    for j in range(len(table.axes)):
        here = table.entries.axis == j
        starts = np.concatenate([table.entries.lo[here], table.entries.hi[here] + 1])
        edges.append(np.unique(starts[(starts > table.s_lo[j]) & (starts <= table.s_hi[j])]))
    first = offsets_of([len(e) for e in edges])
    return edges, first


def _variables(table: Table, edges: list[Ints], first: Ints) -> Any:
    """For an entry the literals that say so: at or above its start, not at or above what follows its end."""
    start = np.zeros(len(table.entries.axis), np.int64)
    end = np.zeros(len(table.entries.axis), np.int64)
    for j, edge in enumerate(edges):
        here = table.entries.axis == j
        lo, hi = table.entries.lo[here], table.entries.hi[here]
        start[here] = np.where(lo > table.s_lo[j], first[j] + 1 + np.searchsorted(edge, lo), 0)
        end[here] = np.where(hi < table.s_hi[j], first[j] + 1 + np.searchsorted(edge, hi + 1), 0)
    starts, ends = start.tolist(), end.tolist()

    def literals(e: int) -> list[int]:
        return ([starts[e]] if starts[e] else []) + ([-ends[e]] if ends[e] else [])

    return literals


def _run(solver: Any, selectors: list[int], table: Table, edges: list[Ints], first: Ints, deadline: float) -> Outcome:
    while perf_counter() < deadline:
        solver.conf_budget(_SAT_RUN)
        answer = solver.solve_limited(assumptions=selectors)
        if answer is None:
            continue
        if not answer:
            core = set(solver.get_core() or ())
            return Outcome(True, "sat", used=np.array([i for i, v in enumerate(selectors) if v in core], np.int64))
        model = solver.get_model()
        point = table.s_lo.copy()
        for j, edge in enumerate(edges):
            for i, number in enumerate(edge):
                if model[int(first[j]) + i] > 0:
                    point[j] = number
        return Outcome(False, "sat", point)
    return UNKNOWN
