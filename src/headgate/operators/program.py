"""All subscriptions as arrays: one small tree a slot, its nodes in a row, parents before children.

The compiled scheduler works on these arrays only, so it can be tested with synthetic truth tables and needs no operator
to run. `conjunctions` makes a program from plain sets of predicates, the case of the paper.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.operators.body import Both, Early, Either, Formula, Join, Late, variables
from headgate.operators.kernels import (
    AND,
    ARGUMENT,
    COLUMNS,
    EARLY,
    EXHAUSTIVE,
    JOIN,
    JOINED,
    KIND,
    LITERAL,
    OPEN,
    OR,
    ORDERED,
    PARENT,
    SIZE,
    WANTED,
    Floats,
    Ints,
)
from headgate.operators.predicate import Predicate


@dataclass(frozen=True, slots=True)
class JoinSite:
    """One join of one slot. `node` is its node, counted from the first of the slot."""

    slot: int
    node: int
    join: Join


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """`nodes[start[s] : start[s + 1]]` is the tree of slot s; PARENT counts from its first node."""

    nodes: Ints
    start: NDArray[np.int64]
    weight: Ints
    shares: Floats
    """`shares[weight[n]]` and the place after it: how far FALSE, and TRUE, of a literal's predicate would decide its
    subscription, from 0 to 1. There are few different pairs."""
    predicates: int
    joins: tuple[JoinSite, ...] = ()

    @property
    def slots(self) -> int:
        return len(self.start) - 1


@dataclass
class Flattener:
    """Turns formulas into a program, interning predicates and early parts as it goes."""

    predicates: dict[Predicate, int] = field(default_factory=dict)
    early: dict[Any, int] = field(default_factory=dict)
    """(early part, missing-mode) to its number."""
    exhaustive: bool = False
    """All bindings are wanted, not the first."""
    _rows: list[list[int]] = field(default_factory=list)
    _weights: list[int] = field(default_factory=list)
    _shares: dict[tuple[float, float], int] = field(default_factory=lambda: {(0.0, 0.0): 0})
    _start: list[int] = field(default_factory=lambda: [0])
    _joins: list[JoinSite] = field(default_factory=list)

    def add(self, f: Formula, missing: str = "null") -> None:
        self._missing = missing
        self._base = len(self._rows)
        self._place(f, -1, (1.0, 1.0))
        self._start.append(len(self._rows))

    def program(self) -> Program:
        nodes = np.array(self._rows, np.int32).reshape(-1, COLUMNS)
        start = np.array(self._start, np.int64)
        weight = np.array(self._weights, np.int32)
        shares = np.array([x for pair in self._shares for x in pair], np.float64)
        return Program(nodes, start, weight, shares, len(self.predicates), tuple(self._joins))

    def _place(self, f: Formula, parent: int, share: tuple[float, float]) -> None:
        """`share` is how far FALSE, and TRUE, of this node would decide the root.

        An outcome that decides the gate above passes on whole; one that does not counts for its part of the gate's
        children. So in a conjunction FALSE weighs 1, which gives the greedy score: (1-p) times the live subscriptions.
        """
        at = len(self._rows)
        row = [AND, parent, -1, 1, 1, 0, -1]
        self._rows.append(row)
        self._weights.append(0)
        me = at - self._base
        match f:
            case Early(node):
                row[KIND], row[ARGUMENT] = EARLY, self.early.setdefault((node, self._missing), len(self.early))
            case Late():
                self._literal(row, f)
                self._weights[at] = self._shared(share if f.wanted else share[::-1])
            case Join(calls):
                join = len(self._joins)
                self._joins.append(JoinSite(len(self._start) - 1, me, f))
                part = _part(share, AND, len(calls) + 1)
                for call in calls:
                    self._place(call, me, part)
                    self._rows[-1][JOINED] = join
                self._rows.append([JOIN, me, join, 1, 1, 0, -1])
                self._weights.append(0)
                row[OPEN] = len(calls) + 1
            case Both(items) | Either(items):
                if isinstance(f, Either):
                    row[KIND] = OR if not variables(f) else EXHAUSTIVE if self.exhaustive else ORDERED
                part = _part(share, row[KIND], len(items))
                for item in items:
                    self._place(item, me, part)
                row[OPEN] = len(items)
        row[SIZE] = len(self._rows) - at

    def _shared(self, pair: tuple[float, float]) -> int:
        return self._shares.setdefault(pair, 2 * len(self._shares))

    def _literal(self, row: list[int], late: Late) -> None:
        row[KIND] = LITERAL
        row[ARGUMENT] = self.predicates.setdefault(late.predicate, len(self.predicates))
        row[WANTED] = int(late.wanted)


UNDECIDING = 0.5
"""What an outcome counts that does not decide its gate, to be divided among the gate's children."""


def _part(share: tuple[float, float], kind: int, children: int) -> tuple[float, float]:
    false, true = share
    little = UNDECIDING / children
    if kind == AND:
        return false, true * little
    if kind in (OR, ORDERED):
        return false * little, true
    return false * little, true * little


def conjunctions(members: Sequence[Sequence[int]] | tuple[NDArray[Any], NDArray[Any]], predicates: int) -> Program:
    """A program of plain conjunctions: each a list of predicate numbers, or all of them as CSR (indptr, indices)."""
    if isinstance(members, tuple) and isinstance(members[0], np.ndarray):
        indptr, indices = (np.asarray(m, np.int64) for m in members)
    else:
        indptr = np.cumsum([0, *map(len, members)], dtype=np.int64)
        indices = np.array([p for m in members for p in m], np.int64)
    lengths = np.diff(indptr)
    start = indptr + np.arange(len(indptr))
    nodes = np.zeros((int(start[-1]), COLUMNS), np.int32)
    nodes[:, JOINED] = -1
    nodes[:, WANTED] = 1
    nodes[:, KIND] = LITERAL
    nodes[:, SIZE] = 1
    roots = start[:-1]
    nodes[roots, KIND] = AND
    nodes[roots, PARENT] = -1
    nodes[roots, ARGUMENT] = -1
    nodes[roots, SIZE] = lengths + 1
    nodes[roots, OPEN] = lengths
    leaves = np.ones(len(nodes), np.bool_)
    leaves[roots] = False
    nodes[leaves, ARGUMENT] = indices
    widths, of_width = np.unique(lengths, return_inverse=True)
    shares = np.zeros(2 * len(widths) + 2)
    shares[2::2] = 1.0
    shares[3::2] = UNDECIDING / np.maximum(widths, 1)
    weight = np.zeros(len(nodes), np.int32)
    weight[leaves] = np.repeat(2 * of_width + 2, lengths)
    return Program(nodes, start, weight, shares, predicates)


def early_parts(early: Mapping[Any, int]) -> tuple[tuple[Any, str], ...]:
    """The early parts with their modes, by number."""
    return tuple(sorted(early, key=early.__getitem__))
