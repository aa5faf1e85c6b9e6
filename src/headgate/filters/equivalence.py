"""The meaning of filters: a canonical form, so that equal meanings are one BDD node.

The cells of an attribute that can hold a value, and one for "missing", are numbered in binary over a few variables. A
literal is a set of those numbers, so a formula is a boolean function of them, and CUDD keeps one node per function.
Contradictions are the node FALSE, tautologies TRUE, duplicates share a node whatever their texts look like. What has no
cells (text tests, arithmetic, arrays) is a variable of its own: equal texts are equal, other relations are not seen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
from dd import cudd

from headgate.filters.formulas import LEAF, Composer, Tree, join
from headgate.filters.leaves import SHIFT
from headgate.filters.rows import SETS, Family, Ints, Reach, unpack
from headgate.language.forms import Cut
from headgate.predicates.cells import Cells
from headgate.schema import Kind, Schema


class Meanings:
    """Meanings of the subscriptions of one stream; those given together can be compared."""

    def __init__(self, items: Iterable[tuple[Cut, str]], schema: Schema) -> None:
        composer = Composer(schema, lists=True)
        trees = [self._tree(composer, schema, cut, missing) for cut, missing in items]
        interned = composer.leaves.intern()
        self._keys = [k.tolist() for k in interned.keys]
        self._sets = interned.sets
        self._bdd = cudd.BDD()
        self._bdd.configure(reordering=False)
        lookup = interned.lookup
        self._codes = {a: _Codes(self._bdd, a, c, _never_null(schema, c)) for a, c in lookup.cells.items()}
        self._known: dict[int, Any] = {}
        self._nodes = [self._build(tree) for tree in trees]

    @staticmethod
    def _tree(composer: Composer, schema: Schema, cut: Cut, missing: str) -> Tree:
        tree = composer.compose(cut, missing)
        there = {"strict": composer.attributes(cut), "total": frozenset(a.path for a in schema)}.get(
            missing, frozenset()
        )
        return join("and", [tree, *map(composer.present, sorted(there))])

    def is_contradiction(self, number: int) -> bool:
        """No event can match."""
        return bool(self._nodes[number] == self._bdd.false)

    def is_tautology(self, number: int) -> bool:
        """Every event matches."""
        return bool(self._nodes[number] == self._bdd.true)

    def duplicates(self) -> list[list[int]]:
        """Groups of two or more that match the same events."""
        groups: dict[int, list[int]] = {}
        for number, node in enumerate(self._nodes):
            groups.setdefault(int(node), []).append(number)
        return [g for g in groups.values() if len(g) > 1]

    def implies(self, a: int, b: int) -> bool:
        """Whether every event that matches a is proven to match b."""
        return bool((self._nodes[a] & ~self._nodes[b]) == self._bdd.false)

    def _build(self, tree: Tree) -> Any:
        if isinstance(tree, int):
            return self._literal(self._keys[tree >> SHIFT][tree & LEAF])
        joint, parts = tree
        made = self._bdd.true if joint == "and" else self._bdd.false
        for part in parts:
            made = made & self._build(part) if joint == "and" else made | self._build(part)
        return made

    def _literal(self, key: int) -> Any:
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._make(key)
        return found

    def _make(self, key: int) -> Any:
        family, a, reach, argument, missing = (int(x[0]) for x in unpack(np.array([key])))
        if family == Family.CELL:
            codes = self._codes[a]
            if argument >= SETS:
                inside = codes.any_of(self._sets[argument - SETS])
            elif reach == Reach.UPTO:
                inside = codes.up_to(argument)
            elif reach == Reach.FROM:
                inside = codes.there & ~codes.up_to(argument - 1)
            else:
                inside = codes.any_of(np.array([argument])) if argument >= 0 else self._bdd.false
            if reach == Reach.OUTSIDE:
                inside = codes.there & ~inside
            return inside | ~codes.there if missing else inside
        name = f"o{family}_{a}_{argument}_{missing}"
        self._bdd.declare(name)
        opaque = self._bdd.var(name)
        if family == Family.TEXT:
            there = self._codes[a].there
            inside = there & (~opaque if reach == Reach.OUTSIDE else opaque)
            return inside | ~there if missing else inside
        return opaque


class _Codes:
    """The cells of one attribute in binary. Cells that no value lies in have no number: between 3 and 4 is no BIGINT."""

    def __init__(self, bdd: Any, attribute: int, cells: Cells, never_null: bool) -> None:
        self._bdd = bdd
        self._valid = _valid(cells)
        self._numbers = {int(c): n for n, c in enumerate(self._valid)}
        count = len(self._valid)
        bits = max(1, (count if not never_null else count - 1).bit_length())
        names = [f"a{attribute}_{i}" for i in range(bits)]
        bdd.declare(*names)
        self._bits = [bdd.var(n) for n in names]
        """The highest bit first."""
        self.there = bdd.true if never_null else self._at_most(count - 1)

    def up_to(self, cell: int) -> Any:
        last = int(np.searchsorted(self._valid, cell, "right")) - 1
        if last < 0:
            return self._bdd.false
        return self.there if last == len(self._valid) - 1 else self._at_most(last)

    def any_of(self, cells: Ints) -> Any:
        made = self._bdd.false
        for cell in cells.tolist():
            number = self._numbers.get(cell)
            if number is not None:
                last = number == len(self._valid) - 1
                upper = self.there if last else self._at_most(number)
                made = made | (upper & ~self._at_most(number - 1) if number else upper)
        return made

    def _at_most(self, number: int) -> Any:
        """The binary number is at most `number`."""
        if number < 0:
            return self._bdd.false
        made = self._bdd.true
        for i, bit in enumerate(reversed(self._bits)):
            made = ~bit | made if number >> i & 1 else ~bit & made
        return made


def _valid(cells: Cells) -> Any:
    """The cells that some value of the attribute's type lies in."""
    cuts: list[Any] = cells.cuts.tolist() if isinstance(cells.cuts, np.ndarray) else cells.cuts.to_pylist()
    if not cuts:
        return np.array([0])
    valid = np.ones(cells.count, np.bool_)
    if cells.kind is Kind.BOOLEAN:
        valid[:] = False
        for truth in (0, 1):
            if truth in cuts:
                valid[2 * cuts.index(truth) + 1] = True
            else:
                valid[2 * (truth if 1 - truth in cuts and 1 - truth < truth else 0)] = True
        return np.flatnonzero(valid)
    for i, cut in enumerate(cuts):
        valid[2 * i] = not _nothing_between(cells.kind, cuts[i - 1] if i else None, cut)
    if cells.kind in (Kind.BIGINT, Kind.TIMESTAMP) and cuts[-1] == 2**63 - 1:
        valid[-1] = False
    return np.flatnonzero(valid)


def _nothing_between(kind: Kind, low: Any, high: Any) -> bool:
    if kind is Kind.STRING:
        return bool(high == "" if low is None else high == low + "\0")
    if kind is Kind.DOUBLE:
        return bool(high == -math.inf if low is None else math.nextafter(low, math.inf) == high)
    return bool(high == -(2**63) if low is None else low + 1 == high)


def _never_null(schema: Schema, cells: Cells) -> bool:
    found = schema.get(cells.path)
    return found is not None and found.not_null
