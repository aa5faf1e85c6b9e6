"""The dense lane as it is kept: a program with its rows, and the attribute sets of its roots.

`Edges` turns literals into edges of the program: a complement instead of a row of its own, where there is no NULL to
mind; else whether the attribute is there joins in.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headgate.filters.filing import Longs
from headgate.filters.formulas import ALWAYS, NEVER, Tree, join
from headgate.filters.leaves import present_key
from headgate.filters.lookup import Lookup
from headgate.filters.program import Program
from headgate.filters.rows import Family, Ints, Reach, Rows, pack, unpack
from headgate.language.ast import Path
from headgate.schema import Schema


@dataclass(frozen=True)
class Roots:
    """Roots of a program, those of one attribute set together; `first` is where each set begins."""

    first: Longs
    edges: Ints
    slots: Ints

    def __len__(self) -> int:
        return len(self.edges)


@dataclass(frozen=True)
class Dense:
    """A dense program with its rows and, for strict subscriptions, the attribute sets of its roots."""

    rows: Rows
    program: Program
    single: Roots
    multiple: Roots
    """Roots of subscriptions that have filed conjuncts too."""
    paths: tuple[Path, ...]
    """The attributes of all sets; empty unless strict."""
    set_first: Longs
    set_paths: Longs
    """CSR: for each set the numbers of its paths."""


def support_bit(number: int) -> int:
    return number % 64


def make_roots(edges: Ints, slots: Ints, set_of: Longs, sets: int) -> Roots:
    order = np.argsort(set_of, kind="stable")
    return Roots(np.searchsorted(set_of[order], np.arange(sets + 1)).astype(np.int64), edges[order], slots[order])


class Edges:
    """Literals as edges of the dense program: complements instead of rows of their own, where there is no NULL to mind.

    `rows` numbers the rows that are needed; an edge is 2 * number + 2, plus 1 if complemented; 0 and 1 are constants.
    """

    def __init__(self, lookup: Lookup, schema: Schema, strict: bool) -> None:
        self._lookup = lookup
        self._strict = strict
        self._present = {
            a: (strict or ((found := schema.get(path)) is not None and found.not_null)) and not lookup.cells[a].view
            for a, path in lookup.paths.items()
        }
        self.rows: dict[int, int] = {}
        self._known: dict[int, Tree] = {}

    def literal(self, key: int) -> Tree:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(key)
        return found

    def _row(self, key: int) -> int:
        return 2 * self.rows.setdefault(key, len(self.rows)) + 2

    def _make(self, key: int) -> Tree:
        family, a, reach, argument, missing = (int(x[0]) for x in unpack(np.array([key])))
        if family == Family.COMPLETE and self._strict:
            return ALWAYS  # the attribute set of the root says so
        if family in (Family.VECTOR, Family.COMPLETE):
            return self._row(key)
        if family == Family.CELL and reach == Reach.OUTSIDE and self._lookup.cells[a].view:
            return self._row(key)  # it holds for values of other kinds too, which are not "there"
        there = self._there(a)
        if family == Family.CELL and argument < 0:
            return _complement(there) if missing else NEVER
        negative = reach in (Reach.FROM, Reach.OUTSIDE)
        if reach == Reach.FROM:
            base = int(pack(family, a, Reach.UPTO, argument - 1))
        else:
            base = int(pack(family, a, Reach.MEMBER if reach == Reach.OUTSIDE else reach, argument))
        if family == Family.CELL and base == present_key(a, self._lookup.cells[a]):
            return there if not missing else ALWAYS
        edge = self._row(base) | negative
        if negative:
            return edge if missing else join("and", [there, edge])
        return ("or", (edge, _complement(there))) if missing and there != ALWAYS else edge

    def _there(self, attribute: int) -> Tree:
        if self._present[attribute]:
            return ALWAYS
        return self._row(present_key(attribute, self._lookup.cells[attribute]))


def _complement(tree: Tree) -> Tree:
    if tree == ALWAYS:
        return NEVER
    assert isinstance(tree, int)
    return tree ^ 1
