"""The dense lane: all formulas as one straight-line program of if-then-else nodes over rows.

Formulas become BDDs in CUDD, with the rows as variables in the order of their attributes, and each is restricted by the
dependencies between its own variables (BDD filtering, ICSE 2001, section 7): x = 10 implies x <= 20, so whatever the
formula says where both differ is of no account. What would grow past a budget stays AND and OR nodes, which are
if-then-else too: wide expressions blow BDDs up (A-Tree, SIGMOD 2021). Then everything is flattened to arrays, children
first.

A strict program leaves out whether attributes are there: its roots carry their attribute set instead, and nodes whose
support no event of a block defines are skipped, which is what MVEvalBDD intends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from dd import cudd
from numpy.typing import NDArray

from headgate.filters.dependencies import Dependencies
from headgate.filters.formulas import Tree, leaves_of
from headgate.filters.kernels import children_first, supports_of

Edges = NDArray[np.int32]
TRUE_EDGE, FALSE_EDGE = 0, 1
"""Row 0 is all ones."""
_LARGEST = (1, 2, 4, 6, 10, 18, 30, 46, 78)
"""How many nodes a BDD over 0 to 8 variables can have: counting those of a large one takes time."""


@dataclass(frozen=True, slots=True)
class Budget:
    """When a formula is given to CUDD, and how large its BDD may be."""

    variables: int = 24
    nodes_a_literal: int = 12
    rows: int = 16_384
    """With more rows than this CUDD is not used at all: it keeps a table for every variable, some kilobytes each, and
    formulas over so many conditions have little to share."""


@dataclass(frozen=True)
class Program:
    rows: int
    """Values 0 to rows - 1 are rows; node i is value rows + i."""
    nodes: Edges
    """(test, high, low) a node; an edge is 2 * value, plus 1 if complemented."""
    groups: NDArray[np.int64]
    supports: NDArray[np.uint64]
    roots: Edges
    unrestricted: int
    """How many nodes the shared BDD had before the restriction, where that was counted."""


class Builder:
    """Collects formulas, then flattens them all."""

    def __init__(
        self, rows: Mapping[int, int], dependencies: Dependencies, budget: Budget | None = None, count: bool = False
    ) -> None:
        """`rows` gives the row of each variable; `count` also counts nodes before the restriction."""
        self._bdd = cudd.BDD()
        self._bdd.configure(reordering=False)
        self._budget = budget or Budget()
        if len(rows) > self._budget.rows:
            self._budget = replace(self._budget, variables=0)
        # Rows are sorted by attribute, which is the order we want.
        ordered = sorted(rows, key=rows.__getitem__) if self._budget.variables else []
        self._bdd.declare(*(f"v{v}" for v in ordered))
        self._constant = int(self._bdd.true)
        self._vars = {v: self._bdd.var(f"v{v}") for v in ordered}
        self._literals: dict[int, Any] = {}
        self._rows = dict(rows)
        self._row_at = [rows[v] for v in ordered]
        """By level, that is in the order of declaration."""
        self._dependencies = dependencies
        self._count = count
        self._roots: list[Any] = []
        self._plain: list[Any] = []
        self._wide: dict[tuple[int, int, int], int] = {}

    def add(self, tree: Tree) -> None:
        """A formula over edges: a leaf is 2 * variable, plus 1 for its complement."""
        leaves = leaves_of(tree, [])
        variables = {e >> 1 for e in leaves}
        if len(variables) <= self._budget.variables:
            made = self._build(tree)
            if self._count:
                self._plain.append(made)
            if int(made) & ~1 != self._constant:
                care = self._dependencies.care({self._rows[v]: self._vars[v] for v in variables})
                made = made if care is None else cudd.restrict(made, care)
            most = self._budget.nodes_a_literal * max(4, len(leaves))
            if (len(variables) < len(_LARGEST) and _LARGEST[len(variables)] <= most) or len(made) <= most:
                self._roots.append(made)
                return
        self._roots.append(self._wide_edge(tree))

    def _build(self, tree: Tree) -> Any:
        if isinstance(tree, int):
            return self._literal(tree)
        joint, parts = tree
        made = None
        for part in parts:
            other = self._literal(part) if isinstance(part, int) else self._build(part)
            if made is None:
                made = other
            elif joint == "and":
                made = made & other
            else:
                made = made | other
        if made is None:
            return self._bdd.true if joint == "and" else self._bdd.false
        return made

    def _literal(self, edge: int) -> Any:
        found = self._literals.get(edge)
        if found is None:
            var = self._vars[edge >> 1]
            found = self._literals[edge] = ~var if edge & 1 else var
        return found

    def _wide_edge(self, tree: Tree) -> int:
        """AND and OR nodes, shared by structure. Their values are numbered from -1 down until BDD nodes are counted."""
        if isinstance(tree, int):
            return 2 * self._rows[tree >> 1] | (tree & 1)
        joint, parts = tree
        edges = sorted({self._wide_edge(p) for p in parts})
        if not edges:
            return TRUE_EDGE if joint == "and" else FALSE_EDGE
        made = edges[0]
        for edge in edges[1:]:
            node = (made, edge, FALSE_EDGE) if joint == "and" else (made, TRUE_EDGE, edge)
            number = self._wide.setdefault(node, len(self._wide))
            made = -2 * (number + 1)
        return made

    def finish(self, rows: int, row_supports: NDArray[np.uint64], skip: bool) -> Program:
        """Flatten. `row_supports` has the attribute bit of every row; `skip` groups nodes by support."""
        unrestricted = len(_reachable(self._bdd, self._plain).keys) - 1 if self._count else 0
        bdds = [r for r in self._roots if not isinstance(r, int)]
        nodes, edges = _flatten(
            _reachable(self._bdd, bdds), np.array(list(map(int, bdds)), np.int64), self._row_at, rows
        )
        first_wide = rows + len(nodes)

        def resolved(edges: Any) -> Any:
            return np.where(edges < 0, 2 * (first_wide - (edges >> 1) - 1) | (edges & 1), edges)

        wide = np.array(list(self._wide), np.int64).reshape(-1, 3)
        table = np.concatenate([nodes, resolved(wide)]).astype(np.int32)
        roots = np.array([r if isinstance(r, int) else 0 for r in self._roots], np.int64)
        roots = resolved(roots)
        roots[[not isinstance(r, int) for r in self._roots]] = edges
        masks = np.zeros(rows + len(table), np.uint64)
        masks[:rows] = row_supports
        supports_of(table, rows, masks)
        roots = roots.astype(np.int32)
        if not skip:
            return Program(rows, table, np.array([0, len(table)]), np.zeros(1, np.uint64), roots, unrestricted)
        return _grouped(rows, table, masks[rows:], roots, unrestricted)


class _Nodes(NamedTuple):
    """Nodes of CUDD in columns, the constant first. Edges are the numbers that CUDD gives them: the lowest bit says that
    one is complemented, the rest is its node's key."""

    keys: NDArray[np.int64]
    levels: NDArray[np.int64]
    highs: NDArray[np.int64]
    lows: NDArray[np.int64]


def _reachable(bdd: Any, roots: Sequence[Any]) -> _Nodes:
    """Every node under some roots."""
    constant = int(bdd.true)
    seen = {constant}
    levels, highs, lows = [0], [constant], [constant]
    keys, stack = [constant], list(roots)
    while stack:
        u = stack.pop()
        key = int(u) & ~1
        if key in seen:
            continue
        seen.add(key)
        high, low = u.high, u.low
        high_edge, low_edge = int(high), int(low)
        keys.append(key)
        levels.append(u.level)
        highs.append(high_edge)
        lows.append(low_edge)
        if high_edge & ~1 not in seen:
            stack.append(high)
        if low_edge & ~1 not in seen:
            stack.append(low)
    return _Nodes(*(np.array(column, np.int64) for column in (keys, levels, highs, lows)))


def _flatten(nodes: _Nodes, roots: Any, row_at: Sequence[int], rows: int) -> tuple[Any, Any]:
    """The nodes as a table, each right behind its children where they are new: neighbours stay in the cache; and the
    edges to the roots."""
    by_key = np.argsort(nodes.keys)
    ordered = nodes.keys[by_key]
    indexes = [by_key[np.searchsorted(ordered, edges & ~1)] for edges in (nodes.highs, nodes.lows, roots)]
    values = np.full(len(nodes.keys), -1, np.int64)
    values[0] = 0  # the constant is row 0
    high_at, low_at, root_at = indexes
    children_first(high_at, low_at, root_at, rows, values)
    high, low, root = (
        2 * values[at] | (edges & 1) for at, edges in zip(indexes, (nodes.highs, nodes.lows, roots), strict=True)
    )
    table = np.empty((len(nodes.keys) - 1, 3), np.int64)
    tests = 2 * np.array([*row_at, 0], np.int64)[nodes.levels]
    table[values[1:] - rows] = np.column_stack([tests, high, low])[1:]
    return table, root


def _grouped(rows: int, nodes: Edges, masks: NDArray[np.uint64], roots: Edges, unrestricted: int) -> Program:
    """Nodes by support, small supports first: a child's support is within its parent's, so children stay first."""
    sizes = np.array([int(m).bit_count() for m in masks.tolist()], np.int64)
    order = np.lexsort((np.arange(len(nodes)), masks, sizes))
    place = np.empty(len(nodes) + rows, np.int64)
    place[:rows] = np.arange(rows)
    place[rows + order] = rows + np.arange(len(nodes))

    def moved(edges: Edges) -> Edges:
        return np.asarray(2 * place[edges >> 1] + (edges & 1), np.int32)

    ordered = masks[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(order) else np.zeros(0, np.int64)
    return Program(
        rows, moved(nodes)[order], np.append(starts, len(order)), ordered[starts], moved(roots), unrestricted
    )  # fmt: skip
