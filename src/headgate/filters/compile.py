"""From subscriptions to lanes: which conjunct is filed under a key, and which formula joins the dense program.

The choice is made by estimated cost a word of 64 events: a filed conjunct costs the share of events its key lets
through, times the literals looked at; a dense formula costs its nodes. Both constants were measured (benchmarks).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns, offsets_of
from headgate.filters.candidates import FILED, LOOKED_AT, NODE, Candidates, Ranges, Split
from headgate.filters.dense import Dense, Edges, make_roots, support_bit
from headgate.filters.dependencies import Dependencies
from headgate.filters.filing import Lane, Longs, distinct_ranges, make_conjuncts
from headgate.filters.formulas import (
    ALWAYS,
    LEAF,
    NEVER,
    Composer,
    Tree,
    best_key,
    conjuncts,
    join,
    leaves_of,
    map_leaves,
)
from headgate.filters.lane_selection import LANE, Opening
from headgate.filters.leaves import SHIFT
from headgate.filters.lookup import Lookup
from headgate.filters.program import Budget, Builder
from headgate.filters.rows import SETS, Family, Keys, Reach, Rows, make_rows, pack, unpack
from headgate.filters.selectivity import Selectivity
from headgate.language import ast
from headgate.language.ast import Path
from headgate.language.forms import Cut, FilledCuts
from headgate.schema import Schema

_MOST_CONJUNCTS = 16
_DenseItem = tuple[int, Tree, bool]
"""A slot, its formula, and whether the slot has filed conjuncts too."""


class Where(IntEnum):
    """The lane of a subscription."""

    NEVER = 0
    DENSE = 1
    SPARSE = 2
    BOTH = 3


@dataclass(frozen=True, slots=True)
class Options:
    """`lanes` forces one lane for everything; `count` has the dense program count its unrestricted nodes. `lists`:
    attributes of the type ANY may hold arrays."""

    lanes: str = "auto"
    count: bool = False
    lists: bool = False
    budget: Budget = field(default_factory=Budget)


@dataclass(frozen=True)
class Lanes:
    lookup: Lookup
    dense: tuple[Dense, ...]
    sparse: tuple[Lane, ...]
    where: NDArray[np.uint8]
    selectivity: NDArray[np.float32]
    """Of the best key of each subscription: why it is where it is."""


def compile_lanes(
    items: Iterable[tuple[Cut | FilledCuts, str]],
    schema: Schema,
    sample: Columns | None = None,
    options: Options | None = None,
) -> Lanes:
    return _Compiler(schema, sample, options or Options()).run(items)


def build_alone(cut: Cut | FilledCuts, missing: str, schema: Schema) -> None:
    """Build what one filter brings to an index: its formula, and the keys of its rows. What an index does with these is
    the same for all filters, so one that gets here joins any of them."""
    compiler = _Compiler(schema, None, Options())
    compiler._read([(cut, missing)])
    compiler._composer.leaves.intern()


@dataclass
class _Filed:
    """Conjuncts of one length that are to be filed, in columns, with their best key."""

    slots: Longs
    keys: Keys
    multiple: NDArray[np.bool_]
    attribute: Longs
    low: Longs
    high: Longs
    share: NDArray[np.float64]
    needed: Any = None

    def take(self, mine: NDArray[np.bool_]) -> _Filed:
        return _Filed(*(getattr(self, f.name)[mine] for f in fields(self) if f.name != "needed"))


class _Compiler:
    def __init__(self, schema: Schema, sample: Columns | None, options: Options) -> None:
        self._schema = schema
        self._sample = sample
        self._options = options
        self._composer = Composer(schema, lists=options.lists)
        self._every = frozenset(a.path for a in schema)
        self._strict: dict[int, frozenset[Path]] = {}
        self._plain: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        """Conjunctions by length: slots, and their leaves one after the other."""
        self._trees: list[tuple[int, Tree]] = []
        self._filed: dict[int, list[tuple[Longs, Keys, NDArray[np.bool_]]]] = defaultdict(list)
        """Conjuncts to be filed by length: slots, keys, whether their subscription has others."""
        self._dense: list[_DenseItem] = []

    def run(self, items: Iterable[tuple[Cut | FilledCuts, str]]) -> Lanes:
        count = self._read(items)
        self._interned = self._composer.leaves.intern()
        self._lookup = self._interned.lookup
        self._path_numbers = _path_numbers(self._lookup)
        self._flat_keys, self._base = _flatten(self._interned.keys)
        self._unique = np.unique(self._flat_keys)
        self._key_lists = [k.tolist() for k in self._interned.keys]
        self._never = frozenset(self._unique[_is_never(self._unique)].tolist())
        self._estimate = Selectivity(self._lookup.cells, self._interned.sets, self._sample)
        self._shares = dict(zip(self._unique.tolist(), self._single_shares(self._unique).tolist(), strict=True))
        self._where = np.zeros(count, np.uint8)
        self._best = np.ones(count, np.float32)
        self._choose()
        sparse = self._file()
        # What is only needed to choose is let go of: the trees of a large book take gigabytes.
        self._shares, self._key_lists, self._filed = {}, [], defaultdict(list)
        by_set: tuple[list[_DenseItem], list[_DenseItem]] = ([], [])
        for item in self._dense:
            by_set[item[0] in self._strict].append(item)
        self._dense = []
        dense = tuple(self._make_dense(items, bool(strict)) for strict, items in enumerate(by_set) if items)
        return Lanes(self._lookup, dense, sparse, self._where, self._best)

    def _read(self, items: Iterable[tuple[Cut | FilledCuts, str]]) -> int:
        slot = 0
        for cut, missing in items:
            if isinstance(cut, Cut):
                self._read_one(slot, cut, missing)
                slot += 1
                continue
            columns = self._composer.conjoined(cut, missing)
            if columns is None:
                for i, one in enumerate(cut.each()):
                    self._read_one(slot + i, one, missing)
            else:
                slots, leaves = self._plain[len(columns)]
                slots.extend(range(slot, slot + len(cut.rows)))
                leaves.extend(leaf for row in zip(*columns, strict=True) for leaf in row)
            slot += len(cut.rows)
        return slot

    def _read_one(self, slot: int, cut: Cut, missing: str) -> None:
        composer = self._composer
        tree = composer.compose(cut, missing)
        if missing == "strict":
            self._strict[slot] = paths = composer.attributes(cut)
            tree = join("and", [tree, *map(composer.present, sorted(paths))])
        elif missing == "total":
            if composer.attributes(cut) <= self._every:  # else it asks for keys of a map, which may be missing
                self._strict[slot] = self._every
            tree = join("and", [tree, composer.complete()])
        if isinstance(tree, int):
            tree = ("and", (tree,))
        if tree[0] == "and" and tree[1] and all(isinstance(p, int) for p in tree[1]):
            slots, leaves = self._plain[len(tree[1])]
            slots.append(slot)
            leaves.extend(tree[1])  # type: ignore[arg-type]  # every part is a leaf
        elif tree != NEVER:
            self._trees.append((slot, tree))

    def _keys_of(self, leaves: Longs) -> Keys:
        return np.asarray(self._flat_keys[self._base[leaves >> SHIFT] + (leaves & LEAF)], np.int64)

    def _keyed(self, tree: Tree) -> Tree:
        """The tree with keys for its leaves."""
        if isinstance(tree, int):
            key = self._key_lists[tree >> SHIFT][tree & LEAF]
            return NEVER if key in self._never else key
        if self._never:
            return join(tree[0], [self._keyed(t) for t in tree[1]])
        return tree[0], tuple([self._keyed(t) for t in tree[1]])

    # -- choosing

    def _choose(self) -> None:
        """Offer all conjuncts to the keys, then file those whose keys opened."""
        self._open = np.ones(max(self._lookup.paths, default=-1) + 1, np.bool_)
        opening = Opening(len(self._open))
        conjunctions = [self._conjunctions(n, *self._plain.pop(n)) for n in list(self._plain)]
        split = Split()
        self._trees.reverse()
        while self._trees:
            self._choose_tree(*self._trees.pop(), split)
        disjuncts = [d for n in list(split.slots) for d in (split.take(n),) if not _is_never(d.keys).all()]
        if self._options.lanes == "auto":
            for part in (*conjunctions, *disjuncts):
                self._offer(part, opening)
            self._open = opening.pays()
        for part in conjunctions:
            filed = self._saved(part, self._ranges(part.keys)) > 0
            self._filed[part.keys.shape[1]].append((part.slots[filed], part.keys[filed], ~filed[filed]))
            self._where[part.slots] = np.where(filed, Where.SPARSE, Where.DENSE)
            for slot, row in zip(part.slots[~filed].tolist(), part.keys[~filed].tolist(), strict=True):
                self._dense.append((slot, join("and", row), False))
        self._file_disjuncts(disjuncts, split.trees)

    def _conjunctions(self, length: int, slots: list[int], leaves: list[int]) -> Candidates:
        """Those of one length that can match."""
        keys = self._keys_of(np.array(leaves, np.int64)).reshape(-1, length)
        possible = ~_is_never(keys).any(axis=1)
        made = Candidates(np.array(slots)[possible], keys[possible], NODE * length)
        self._best[made.slots] = self._ranges(made.keys).share
        return made

    def _offer(self, part: Candidates, opening: Opening) -> None:
        ranges = self._ranges(part.keys)
        saved = self._saved(part, ranges)
        gladly = saved > 0
        opening.offer(ranges.attribute[gladly], saved[gladly], unpack(part.keys[gladly])[1])

    def _saved(self, part: Candidates, ranges: Ranges) -> Any:
        """What filing saves; no gain where there is no key."""
        if self._options.lanes != "auto":
            return np.where(ranges.share < 1.0, np.inf if self._options.lanes == "sparse" else 0.0, 0.0)
        costs = ranges.share * LOOKED_AT + FILED + ranges.matched * part.pair
        return np.where(ranges.share < 1.0, part.cost - costs, 0.0)

    def _choose_tree(self, slot: int, tree: Tree, split: Split) -> None:
        """A formula whose keys may pay is split into conjuncts; any other joins the dense program."""
        keyed = self._keyed(tree)
        if keyed == NEVER:
            return
        self._where[slot] = Where.DENSE
        if self._options.lanes == "dense":
            self._dense.append((slot, keyed, False))
            return
        bound = best_key(keyed, self._shares.__getitem__)
        self._best[slot] = bound
        cost = NODE * len(leaves_of(keyed, []))
        disjuncts = None
        if keyed != ALWAYS and (self._options.lanes == "sparse" or bound * LOOKED_AT < cost):
            disjuncts = conjuncts(keyed, _MOST_CONJUNCTS)
        if disjuncts is None:
            self._dense.append((slot, keyed, False))
        else:
            split.add(slot, keyed, disjuncts, cost / len(disjuncts) + FILED)

    def _file_disjuncts(self, parts: list[Candidates], trees: dict[int, Tree]) -> None:
        """File the conjuncts for which it pays; the rest of their subscription stays dense, whole if none is filed."""
        filed_of: dict[int, list[list[int]]] = defaultdict(list)
        rest_of: dict[int, list[list[int]]] = defaultdict(list)
        gain_of: dict[int, float] = defaultdict(float)
        for part in parts:
            ranges = self._ranges(part.keys)
            saved = self._saved(part, ranges)
            # Where some are filed, the matches of the others must be listed too.
            gain = np.where(saved > 0, saved, -part.pair * ranges.matched)
            possible = ~_is_never(part.keys).any(axis=1)
            columns = (part.slots, part.keys, possible, saved > 0, gain)
            for slot, keys, ok, glad, gained in zip(*(c.tolist() for c in columns), strict=True):
                if ok:
                    (filed_of if glad else rest_of)[slot].append(keys)
                    gain_of[slot] += gained
        for slot, tree in trees.items():
            filed_keys, rest = filed_of.get(slot, []), rest_of.get(slot, [])
            if rest and gain_of[slot] <= 0:
                filed_keys = []
            if not filed_keys:
                if rest:
                    self._dense.append((slot, tree, False))
                else:
                    self._where[slot] = Where.NEVER
                continue
            multiple = len(filed_keys) + bool(rest) > 1
            for keys in filed_keys:
                self._filed[len(keys)].append((np.array([slot]), np.array([keys], np.int64), np.array([multiple])))
            if rest:
                self._dense.append((slot, join("or", [join("and", list(r)) for r in rest]), multiple))
            self._where[slot] = Where.BOTH if rest else Where.SPARSE

    def _single_shares(self, keys: Keys) -> Any:
        """What each leaf lets through if it can be a key by itself; 1 if not."""
        _, _, _, share, usable = self._cells_of(keys)
        return np.where(usable, share, 1.0)

    def _cells_of(self, keys: Keys) -> tuple[Any, Any, Any, Any, Any]:
        """(attribute, low cell, high cell, share, is a range) of rows; a row that holds if missing is no range."""
        families, attributes, reaches, arguments, missing = unpack(keys)
        usable = (families == Family.CELL) & (missing == 0) & (reaches != Reach.OUTSIDE)
        usable &= (arguments >= 0) & (arguments < SETS)
        attributes = np.where(usable, attributes, 0)
        tops = self._estimate.tops[attributes] if len(self._estimate.tops) else np.zeros_like(attributes)
        low = np.where(usable & (reaches != Reach.UPTO), arguments, 0)
        high = np.where(usable & (reaches != Reach.FROM), arguments, tops)
        share = np.ones(keys.shape)
        share[usable] = self._estimate.of_range(attributes[usable], low[usable], high[usable])
        return attributes, low, high, share, usable

    def _ranges(self, keys: Keys) -> Ranges:
        """For each conjunct (a row of keys) its best key; all of an attribute's ranges in the conjunct are intersected."""
        attributes, low, high, _, usable = self._cells_of(keys)
        usable &= self._open[attributes] if len(self._open) else False
        marked = np.where(usable, attributes, -1 - np.arange(keys.shape[1]))
        first = np.ones(keys.shape, np.bool_)
        for j in range(keys.shape[1]):
            same = (marked == marked[:, j : j + 1]) & usable
            first[:, j] = ~same[:, :j].any(axis=1)
            low[:, j] = np.where(usable[:, j], np.where(same, low, 0).max(axis=1), 0)
            high[:, j] = np.where(usable[:, j], np.where(same, high, np.iinfo(np.int64).max).min(axis=1), 0)
        share = np.ones(keys.shape)
        real = usable & (low <= high)
        share[real] = self._estimate.of_range(attributes[real], low[real], high[real])
        share[usable & (low > high)] = 0.0
        best = share.argmin(axis=1)
        rows = np.arange(len(keys))
        chosen = np.where(usable[rows, best], attributes[rows, best], -1)
        matched = np.where(first, share, 1.0).prod(axis=1)
        return Ranges(chosen, low[rows, best], high[rows, best], share[rows, best], matched)

    # -- the sparse lane

    def _file(self) -> tuple[Lane, ...]:
        """Lanes by key: an attribute, or two of them."""
        groups: dict[tuple[int, ...], list[_Filed]] = defaultdict(list)
        shares = self._estimate.of_keys(self._unique)
        for parts in self._filed.values():
            slots, keys, multiple = (np.concatenate([p[i] for p in parts]) for i in range(3))
            if not len(slots):
                continue
            ranges = self._ranges(keys)
            keep = ranges.low <= ranges.high
            filed = _Filed(slots, keys, multiple, ranges.attribute, ranges.low, ranges.high, ranges.share)
            for key, mine, codes in self._keys_to_file(filed):
                chosen = filed.take(keep & mine)
                needed = self._needed(chosen, key)
                by_share = np.where(needed, shares[np.searchsorted(self._unique, chosen.keys)], 2.0)
                order = np.argsort(by_share, axis=1, kind="stable")
                chosen.keys = np.take_along_axis(chosen.keys, order, 1)
                chosen.needed = np.take_along_axis(needed, order, 1)
                if codes is not None:
                    chosen.low = chosen.high = codes[keep & mine]
                groups[key].append(chosen)
        return tuple(self._lane(key, parts) for key, parts in sorted(groups.items()))

    def _keys_to_file(self, filed: _Filed) -> Iterator[tuple[tuple[int, ...], Any, Any]]:
        """Under which attributes which conjuncts go: under pairs of equalities where that saves more than a lane costs."""
        left = np.ones(len(filed.slots), np.bool_)
        families, attributes, reaches, arguments, missing = unpack(filed.keys)
        equal = (families == Family.CELL) & (reaches == Reach.MEMBER) & (missing == 0)
        equal &= (arguments >= 0) & (arguments < SETS)
        on_key = equal & (attributes == filed.attribute[:, None]) & (arguments == filed.low[:, None])
        other = equal & (attributes != filed.attribute[:, None])
        single = np.where(other, self._cells_of(filed.keys)[3], 2.0)
        second = single.argmin(axis=1)
        rows = np.arange(len(filed.slots))
        usable = on_key.any(axis=1) & other[rows, second] & (filed.low == filed.high)
        saved = filed.share * (1.0 - single[rows, second]) * LOOKED_AT
        a, b = filed.attribute, attributes[rows, second]
        cell_a, cell_b = filed.low, arguments[rows, second]
        codes = np.where(a < b, (cell_a << 32) | cell_b, (cell_b << 32) | cell_a)
        pair = (np.minimum(a, b) << 16) | np.maximum(a, b)
        for chosen in np.unique(pair[usable]).tolist():
            mine = usable & (pair == chosen)
            if saved[mine].sum() > LANE:
                left &= ~mine
                yield (chosen >> 16, chosen & 0xFFFF), mine, codes
        for a_key in np.unique(filed.attribute[left]).tolist():
            yield (a_key,), left & (filed.attribute == a_key), None

    def _needed(self, filed: _Filed, key: tuple[int, ...]) -> Any:
        """The literals of each conjunct that its key does not imply."""
        families, attributes, reaches, arguments, missing = unpack(filed.keys)
        ranged = (families == Family.CELL) & (missing == 0) & (reaches != Reach.OUTSIDE)
        ranged &= (arguments >= 0) & (arguments < SETS)
        if len(key) == 1:
            by_key = ranged & (attributes == key[0])
        else:
            by_key = ranged & (reaches == Reach.MEMBER) & ((attributes == key[0]) | (attributes == key[1]))
        return ~by_key & ~self._implied(filed.keys, families, attributes, missing, ranged)

    def _implied(self, keys: Keys, families: Any, attributes: Any, missing: Any, ranged: Any) -> Any:
        """That an attribute is there is implied by any other literal on it that does not hold for a missing value."""
        tops = self._estimate.tops[np.where(ranged, attributes, 0)] if len(self._estimate.tops) else 0
        present = keys == pack(Family.CELL, attributes, Reach.UPTO, tops)
        implied = np.zeros(keys.shape, np.bool_)
        paths = self._path_numbers[attributes] if len(self._path_numbers) else attributes
        for j in range(keys.shape[1]):
            others = (paths == paths[:, j : j + 1]) & (families <= Family.TEXT) & (missing == 0) & ~present
            implied[:, j] = present[:, j] & others.any(axis=1)
        return implied

    def _lane(self, key: tuple[int, ...], parts: list[_Filed]) -> Lane:
        low, high, key_of = distinct_ranges(
            np.concatenate([p.low for p in parts]), np.concatenate([p.high for p in parts])
        )
        pairs = np.zeros(0, np.int64)
        cells = self._lookup.cells[key[0]].count
        if len(key) == 2:
            pairs, key_of = np.unique(np.concatenate([p.low for p in parts]), return_inverse=True)
            low = high = np.arange(len(pairs))
            cells = len(pairs)
        used = np.concatenate([p.keys[p.needed] for p in parts])
        rows = make_rows(used, 0, self._lookup.cells, self._interned.sets)
        slots = np.concatenate([p.slots for p in parts])
        multiple = np.concatenate([p.multiple for p in parts])
        lengths = np.concatenate([p.needed.sum(axis=1) for p in parts])
        literals = np.concatenate([rows.find(p.keys[p.needed]) for p in parts])
        made = []
        for wanted in (False, True):
            mine = multiple == wanted
            inside = np.repeat(mine, lengths)
            made.append(make_conjuncts(key_of[mine], len(low), lengths[mine], literals[inside], slots[mine]))
        return Lane(key, pairs, low, high, rows, made[0], made[1], cells)

    # -- the dense lane

    def _make_dense(self, items: list[_DenseItem], strict: bool) -> Dense:
        edges = Edges(self._lookup, self._schema, strict)
        mine = [(slot, multiple) for slot, _, multiple in items]
        trees = [map_leaves(tree, edges.literal) for _, tree, _ in items]
        items.clear()
        keys = np.array(list(edges.rows), np.int64)
        rows = make_rows(keys, 1, self._lookup.cells, self._interned.sets)
        row_of = {number + 1: row for number, row in enumerate(rows.find(keys).tolist())}
        dependencies = Dependencies(rows, self._lookup.cells, self._lookup.tests)
        builder = Builder(row_of, dependencies, self._options.budget, self._options.count)
        trees.reverse()
        while trees:
            builder.add(trees.pop())
        paths = tuple(sorted({p for s, _ in mine for p in self._strict[s]})) if strict else ()
        program = builder.finish(len(rows), self._row_supports(rows, paths), strict)
        numbers = {p: i for i, p in enumerate(paths)}
        sets: dict[frozenset[Path], int] = {}
        set_of = np.array([sets.setdefault(self._strict[s], len(sets)) if strict else 0 for s, _ in mine], np.int64)
        members = [sorted(numbers[p] for p in paths_of) for paths_of in sets] if strict else [[]]
        slots, multiple = np.array([s for s, _ in mine], np.int32), np.array([m for _, m in mine], np.bool_)
        single, several = (
            make_roots(program.roots[m], slots[m], set_of[m], len(members)) for m in (~multiple, multiple)
        )
        first = offsets_of([len(m) for m in members])
        return Dense(rows, program, single, several, paths, first, np.array([p for m in members for p in m], np.int64))

    def _row_supports(self, rows: Rows, paths: tuple[Path, ...]) -> NDArray[np.uint64]:
        """The attribute of every row as one bit of 64; past 64 attributes share bits, which skips less."""
        masks = np.zeros(len(rows), np.uint64)
        if not paths:
            return masks
        bits = {p: np.uint64(1 << support_bit(i)) for i, p in enumerate(paths)}
        families, attributes, _, arguments, _ = (x.tolist() for x in unpack(rows.keys))
        for i, (family, a, argument) in enumerate(zip(families, attributes, arguments, strict=True)):
            if family == Family.VECTOR:
                atom = self._lookup.vectors[argument].atom
                read = {n.path for n in ast.walk(atom) if isinstance(n, ast.Attribute)}
            else:
                read = {self._lookup.paths[a]}
            for path in read:
                masks[rows.offset + i] |= bits[path]
        return masks


def _path_numbers(lookup: Lookup) -> Longs:
    """By attribute: a number of its path, which the views of an attribute of the type ANY have in common."""
    numbers: dict[Path, int] = {}
    found = np.zeros(max(lookup.paths, default=-1) + 1, np.int64)
    for attribute, path in lookup.paths.items():
        found[attribute] = numbers.setdefault(path, len(numbers))
    return found


def _is_never(keys: Keys) -> Any:
    families, attributes, _, _, _ = unpack(keys)
    return (families == Family.CELL) & (keys == pack(Family.CELL, attributes, Reach.MEMBER, -1))


def _flatten(keys: list[Keys]) -> tuple[Keys, Longs]:
    base = offsets_of([len(k) for k in keys])
    return np.concatenate([np.zeros(0, np.int64), *keys]), base[:-1]
