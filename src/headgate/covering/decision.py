"""Is a union of boxes covered by rows? From the cheap answers to the dear ones, within a budget of time.

For each box of s: the row that covers it alone (corollary 1); counts that promise a witness (corollary 3); MCS, which
leaves the rows that matter, often none; then, by mode, the exact search with SAT behind it, or RSPC. A witness found
among the rows that matter is carried over to those MCS removed. What the budget does not suffice for is unknown.

Dimensions that are not concrete make the space larger than what events can reach. So "covered" stands as it is; "not
covered" is tried again with everything such dimensions ask taken as fulfilled, and else becomes unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headgate.covering import exact, rspc
from headgate.covering.grid import Piece, Rows
from headgate.covering.kernels import Subject
from headgate.covering.space import Box
from headgate.covering.table import Table, certainly_not, conflicts, extended, minimise, polyhedron, subject
from headgate.covering.table import counts as counts_of
from headgate.errors import UsageError

Ints = NDArray[np.int64]
MODES = ("exact", "search", "rspc", "mcs", "pairwise")


@dataclass(frozen=True, slots=True)
class Procedure:
    """How to decide. `budget` is in seconds; `error` and `trials` are RSPC's: the error asked for, the most guesses."""

    mode: str = "exact"
    budget: float = 1.0
    error: float = 1e-9
    trials: int = 100_000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise UsageError(f"there is no way {self.mode!r} to decide cover", f"the modes are {', '.join(MODES)}")
        if self.budget <= 0 or not 0 < self.error < 1 or self.trials < 1:
            raise UsageError("budget and trials must be positive, error between 0 and 1")


@dataclass(frozen=True, slots=True)
class Decision:
    """`rows` cover together; `point` is a witness by axis of the grid; `error` the chance that "covered" is wrong."""

    covered: bool | None
    method: str
    rows: tuple[int, ...] = ()
    point: Mapping[int, int] = field(default_factory=dict)
    error: float = 0.0


class _Question(NamedTuple):
    """Whether the rows numbered in `among` cover something, and until when to think about it."""

    rows: Rows
    among: Ints
    procedure: Procedure
    deadline: float


def decide(rows: Rows, among: Ints, boxes: Sequence[Box], procedure: Procedure) -> Decision:
    """Whether the rows numbered in `among` cover the union of boxes."""
    question = _Question(rows, among, procedure, perf_counter() + procedure.budget)
    rows.grid.number(boxes)
    opaque = rows.grid.opaque
    nothing = np.zeros(len(opaque), np.bool_)
    used: set[int] = set()
    error = 0.0
    method = "empty"
    unknown: Decision | None = None
    for box in boxes:
        pieces = rows.grid.pieces(box)
        found = _decide_box(question, pieces, nothing)
        if found.covered is False and opaque.any():
            found = _firm(question, pieces, opaque, found)
        if found.covered is False:
            return found
        if found.covered is None:
            unknown = unknown or found
            continue
        used.update(found.rows)
        error = min(1.0, error + found.error)
        method = found.method if _DEPTH[found.method] > _DEPTH[method] else method
    return unknown or Decision(True, method, tuple(sorted(used)), error=error)


_DEPTH = {name: i for i, name in enumerate(("empty", "pairwise", "mcs", "search", "sat", "rspc"))}


def _firm(question: _Question, pieces: Sequence[Piece], opaque: NDArray[np.bool_], found: Decision) -> Decision:
    """A witness of "not covered" that is an event, if there is one to be had."""
    if any(opaque[axis] for axis, _, _ in pieces):
        return Decision(None, "opaque")
    if not any(opaque[axis] for axis in found.point):
        return found
    again = _decide_box(question, pieces, opaque)
    return again if again.covered is False else Decision(None, "opaque")


def decide_pieces(rows: Rows, among: Ints, pieces: Sequence[Piece], procedure: Procedure) -> Decision:
    """Whether rows cover one box given in numbers, all of whose dimensions are taken to be concrete."""
    question = _Question(rows, among, procedure, perf_counter() + procedure.budget)
    return _decide_box(question, pieces, np.zeros(len(rows.grid.axes), np.bool_))


def _decide_box(question: _Question, pieces: Sequence[Piece], ignored: NDArray[np.bool_]) -> Decision:
    rows, among, procedure, deadline = question
    s = subject(pieces, rows.grid)
    table = conflicts(rows, among, s, ignored)
    if isinstance(table, int):
        return Decision(True, "pairwise", (table,))
    if procedure.mode == "pairwise":
        return _pairwise(table, s, pieces)
    counts = counts_of(table)
    low, high = table.s_lo.copy(), table.s_hi.copy()
    if certainly_not(counts):
        # Rows with many entries can wait: whatever the others take, one is left.
        extended(table, np.argsort(counts, kind="stable"), low, high)
        return Decision(False, "corollary 3" if len(table) else "apart", point=_point(table, s, pieces, low))
    core, removed = minimise(table, counts)
    method = "mcs"
    if len(core):
        if procedure.mode == "mcs":
            return Decision(None, "mcs")
        if procedure.mode == "rspc":
            outcome, error = _guess(core, procedure)
        else:
            way = exact.search if procedure.mode == "search" else exact.decide
            outcome, error = way(core, deadline), 0.0
        method = outcome.method
        if outcome.covered is None:
            return Decision(None, method)
        if outcome.covered:
            proof = core.rows if outcome.used is None else core.rows[outcome.used]
            return Decision(True, method, tuple(int(r) for r in proof if r >= 0), error=error)
        assert outcome.point is not None
        low, high = polyhedron(core, outcome.point)
    extended(table, removed[::-1].copy(), low, high)
    return Decision(False, method, point=_point(table, s, pieces, low))


def _pairwise(table: Table, s: Subject, pieces: Sequence[Piece]) -> Decision:
    if np.all(table.rows < 0):
        low, high = table.s_lo.copy(), table.s_hi.copy()
        extended(table, np.arange(len(table)), low, high)
        return Decision(False, "apart", point=_point(table, s, pieces, low))
    return Decision(None, "pairwise")


def _guess(core: Table, procedure: Procedure) -> tuple[exact.Outcome, float]:
    cells = rspc.cells_of(core)
    share = rspc.witness_share(core, cells)
    found = rspc.guess(core, cells, share, procedure.error, procedure.trials, procedure.seed)
    if found.point is not None:
        return exact.Outcome(False, "rspc", found.point), 0.0
    return exact.Outcome(True, "rspc"), found.error


def _point(table: Table, s: Subject, pieces: Sequence[Piece], low: Ints) -> dict[int, int]:
    """A point of the witness box: what s restricts and what rows do; elsewhere any value will do."""
    point = {axis: int(s.lo[axis]) for axis, _, _ in reversed(pieces)}
    point.update((int(axis), int(number)) for axis, number in zip(table.axes, low, strict=True))
    return point
