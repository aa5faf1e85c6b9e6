"""Plain twins of the compiled loops, and random arrays in the layouts that those read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.filters.kernels import WIDTH

_ALL = 2**64 - 1


def bits(holds: Any) -> int:
    return sum(1 << i for i, h in enumerate(holds) if h)


def words_of(holds: Any) -> list[int]:
    return [bits(holds[at : at + 64]) for at in range(0, len(holds), 64)]


# ------------------------------------------------------------------- rows


@dataclass(frozen=True)
class Source:
    """Two attributes of five cells each: what each row holds for, as sets of cells, and the arrays that say so."""

    cells: Any
    holds: list[tuple[int, set[int], bool]]
    """(attribute, cells, holds if missing) of each row."""
    arrays: tuple[Any, ...]

    @property
    def rows(self) -> int:
        return len(self.holds)


def random_source(random: Any, events: int, cells: int = 5) -> Source:
    """Rows up to a cell, from a cell on, of a set and outside one, as `rows._Sources` lays them out."""
    holds: list[tuple[int, set[int], bool]] = []
    sources, tables = [], []
    member: list[int] = []
    outside: list[int] = []
    missing: list[int] = []
    for attribute in range(2):
        upto, from_ = (sorted(random.choice(cells, random.integers(0, 4)).tolist()) for _ in range(2))
        sets, complements = (
            [set(random.choice(cells, 2).tolist()) for _ in range(random.integers(0, 3))] for _ in "ab"
        )
        first = [len(holds)]
        for group in (
            [set(range(c + 1)) for c in upto],
            [set(range(c, cells)) for c in from_],
            sets,
            [set(range(cells)) - c for c in complements],
        ):
            holds += [(attribute, inside, bool(random.random() < 0.3)) for inside in group]
            first.append(len(holds))
        before = len(missing)
        missing += [row for row in range(first[0], first[4]) if holds[row][2]]
        sources.append(
            (
                attribute * cells,
                first[0],
                len(upto),
                first[1],
                len(from_),
                first[3],
                len(complements),
                before,
                len(missing),
            )
        )
        for cell in range(cells):
            entry = [sum(c < cell for c in upto), sum(c <= cell for c in from_) - 1]
            for listed, chosen, start in ((member, sets, first[2]), (outside, complements, first[3])):
                entry.append(len(listed))
                listed += [start + i for i, inside in enumerate(chosen) if cell in inside]
                entry.append(len(listed))
            tables.append(entry)
    found = random.integers(-1, cells, (2, events)).astype(np.int32)
    lists = [np.array(x, np.int32) for x in (member, outside, missing)]
    return Source(found, holds, (found, np.array(sources, np.int32), np.array(tables, np.int32), *lists))


def plain_build(source: Source) -> list[list[bool]]:
    return [
        [missing if cell < 0 else cell in inside for cell in source.cells[attribute].tolist()]
        for attribute, inside, missing in source.holds
    ]


# ---------------------------------------------------------------- programs


def random_program(random: Any, rows: int, nodes: int) -> Any:
    """Nodes over rows and earlier nodes, with complemented edges anywhere."""
    table = [random.integers(0, 2 * (rows + i), 3).tolist() for i in range(nodes)]
    return np.array(table, np.int32).reshape(-1, 3)


def plain_program(table: Any, rows: int, values: list[int]) -> list[int]:
    values = list(values)
    for i, edges in enumerate(table.tolist()):
        for k in range(WIDTH):
            x, a, b = (values[(e >> 1) * WIDTH + k] ^ (_ALL if e & 1 else 0) for e in edges)
            values[(rows + i) * WIDTH + k] = (x & a) | (~x & _ALL & b)
    return values


# ------------------------------------------------------------------ filing


@dataclass(frozen=True)
class Filed:
    """Conjuncts filed under ranges of sorted events."""

    events: int
    ranges: Any
    tables: tuple[Any, ...]
    width: int
    words: Any
    order: Any

    @property
    def count(self) -> int:
        return len(self.tables[3])

    @classmethod
    def random(cls, random: Any, disjoint: bool = False) -> Filed:
        events, keys, width, conjuncts = int(random.integers(1, 300)), 4, 5, 9
        first = np.array([0, *sorted(random.integers(0, conjuncts + 1, keys - 1).tolist()), conjuncts], np.int64)
        lengths = random.integers(0, 4, conjuncts)
        starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        literals = random.integers(0, width, starts[-1]).astype(np.int32)
        words = -(-events // 64)
        bits = random.integers(0, 2**64, words * width, np.uint64) | random.integers(0, 2**64, words * width, np.uint64)
        bounds = np.sort(random.integers(0, events + 1, keys + 1)) if disjoint else None
        ranges = []
        for key in range(keys):
            begin, end = sorted(random.integers(0, events + 1, 2).tolist()) if bounds is None else bounds[key : key + 2]
            if begin < end:
                ranges.append((key, begin, end))
        tables = (first, starts, literals, random.permutation(conjuncts).astype(np.int32))
        return cls(events, np.array(ranges, np.int64).reshape(-1, 3), tables, width, bits, random.permutation(events))


def filed_pairs(filed: Filed) -> list[tuple[int, int]]:
    first, starts, literals, slots = filed.tables
    found = []
    for key, begin, end in filed.ranges.tolist():
        for c in range(first[key], first[key + 1]):
            for place in range(begin, end):
                rows = literals[starts[c] : starts[c + 1]].tolist()
                base = place // 64 * filed.width
                if all(int(filed.words[base + row]) >> (place % 64) & 1 for row in rows):
                    found.append((int(filed.order[place]), int(slots[c])))
    return found
