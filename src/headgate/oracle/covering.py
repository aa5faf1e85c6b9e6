"""Covering, decided by looking at every event, and the plain twins of its kernels.

`uncovered` follows docs/semantics.md, section 6 literally: it evaluates the filters on every combination of given values. With
one value of every cell of every attribute (`witness_values`) that is an exact decision. The twins take lists where
the kernels take arrays: a box is a list of (axis, lo, hi), an entry (axis, lo, hi).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.oracle.filters import truth
from headgate.predicates.normal import fold
from headgate.schema import Kind, Schema

Filter = tuple[Node, str]
"""A body and its missing-mode."""
Interval = tuple[int, int, int]


def uncovered(
    subject: Filter, others: Sequence[Filter], schema: Schema, values: Mapping[Path, Sequence[Any]]
) -> Iterator[dict[Path, Any]]:
    """The events, over all combinations of values, that match the subject and none of the others."""
    for combination in product(*values.values()):
        row = dict(zip(values, combination, strict=True))
        if truth(subject[0], row, schema, subject[1]) is True and not any(
            truth(body, row, schema, missing) is True for body, missing in others
        ):
            yield row


def witness_values(filters: Iterable[Filter], schema: Schema) -> dict[Path, list[Any]]:
    """For each attribute: missing, the ends of its type, and the constants of the filters with their neighbours."""
    literals = (fold(part) for body, _ in filters for part in ast.walk(body))
    constants = [node.value for node in dict.fromkeys(n for n in literals if isinstance(n, ast.Literal))]
    found: dict[Path, list[Any]] = {}
    for attribute in schema:
        values = list(dict.fromkeys(_around(attribute.type.kind if attribute.type else None, constants)))
        found[attribute.path] = values if attribute.not_null else [None, *values]
    return found


def _around(kind: Kind | None, constants: Iterable[Any]) -> Iterator[Any]:
    numbers = [c for c in constants if isinstance(c, int | float) and not isinstance(c, bool)]
    match kind:
        case Kind.BOOLEAN:
            yield from (False, True)
        case Kind.BIGINT | Kind.TIMESTAMP:
            yield from (-(2**63), 2**63 - 1)
            for c in numbers:
                yield from (v for v in range(math.floor(c) - 1, math.ceil(c) + 2) if -(2**63) <= v < 2**63)
        case Kind.DOUBLE:
            yield from (-math.inf, math.inf, math.nan)
            for c in numbers:
                near = float(c)
                yield from (math.nextafter(near, -math.inf), near, math.nextafter(near, math.inf))
        case Kind.STRING:
            yield ""
            for c in constants:
                if isinstance(c, str):
                    stem = c.rstrip("%")
                    yield from (c, c + "\0", stem, stem + "\0")
                    if stem:
                        yield stem[:-1] + chr(ord(stem[-1]) + 1)


# ----------------------------------------------------------- twins of kernels


def conflict_entries(box: Sequence[Interval], s: Sequence[Interval]) -> list[Interval] | None:
    """What a box leaves uncovered of s, by axis, as maximal runs of numbers of s; None if the two do not meet.

    `s` has one piece for each axis; holes are not treated here.
    """
    entries: list[Interval] = []
    for axis in dict.fromkeys(piece[0] for piece in box):
        ((low, high),) = [(lo, hi) for j, lo, hi in s if j == axis]
        inside = [v for v in range(low, high + 1) if any(lo <= v <= hi for j, lo, hi in box if j == axis)]
        if not inside:
            return None
        outside = [v for v in range(low, high + 1) if v not in inside]
        for v in outside:
            if entries and entries[-1][0] == axis and entries[-1][2] == v - 1:
                entries[-1] = (axis, entries[-1][1], v)
            else:
                entries.append((axis, v, v))
    return entries


def defined_counts(table: Sequence[Sequence[Interval]], s: Mapping[int, tuple[int, int]]) -> list[int]:
    """The entries of a row; of an axis on which some entry reaches neither end of s, only one."""
    middle = {j for row in table for j, lo, hi in row if lo != s[j][0] and hi != s[j][1]}
    return [sum(j not in middle for j, _, _ in row) + len({j for j, _, _ in row if j in middle}) for row in table]


def conflicting(a: Interval, b: Interval) -> bool:
    """Definition 5: two entries of different rows that no point satisfies both."""
    return a[0] == b[0] and (a[2] < b[1] or b[2] < a[1])


def minimised(table: Sequence[Sequence[Interval]], counts: Sequence[int]) -> list[int]:
    """Algorithm 2: the rows removed. Each round looks at the entries that were there when it began."""
    left = list(range(len(table)))
    removed: list[int] = []
    while True:
        began = list(left)
        for i in began:
            others = [e for r in began if r != i for e in table[r]]
            free = any(not any(conflicting(e, other) for other in others) for e in table[i])
            if free or counts[i] >= len(left):
                left.remove(i)
                removed.append(i)
        if left == began:
            return removed


def points(s: Sequence[Interval]) -> Iterator[tuple[int, ...]]:
    """Every point of a box with one piece an axis, in the order of its axes."""
    return product(*(range(lo, hi + 1) for _, lo, hi in s))


def contains(box: Sequence[Interval], point: Mapping[int, int]) -> bool:
    return all(any(lo <= point[axis] <= hi for j, lo, hi in box if j == axis) for axis in {piece[0] for piece in box})


def evades(table: Sequence[Sequence[Interval]], point: Mapping[int, int]) -> bool:
    """Whether a point lies in an entry of every row."""
    return all(any(lo <= point[j] <= hi for j, lo, hi in row) for row in table)
