"""Spines as columns: each an outline, which many share, and the numbers of its predicates.

Subscriptions that come as texts are resolved into these columns form by form (`shapes.py`); a spine that is there as an
object is entered into them. The object is built again where somebody asks for it: for explanations, output rows, and
the slower path.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headgate.language.ast import TRUE, Node
from headgate.schema import Path
from headgate.sequences.algebra import simplify
from headgate.sequences.distinct import Column
from headgate.sequences.predicate_table import Predicates, PredicateTable
from headgate.sequences.publish_levels import Subscription
from headgate.sequences.spine import Source, Spine, Step
from headgate.sequences.tables import Ints

MODES = ("null", "strict", "default", "total")
Starts = Mapping[Path, Path | None]


def predicates_of(spine: Spine) -> list[Node]:
    """The predicates of a spine: that of its start, then theta, keep and FILTER of each step."""
    return [spine.start.where, *(node for step in spine.steps for node in (step.theta, step.keep, step.after))]


def filled(outline: Spine, predicates: Iterable[Node], starts: Iterable[Starts]) -> Spine:
    """An outline with predicates, and with where `$` starts in each step."""
    given = iter(predicates)
    start = Source(outline.start.origin, next(given), outline.start.schema, outline.start.alias)
    steps = tuple(
        Step(s.kind, s.source, next(given), next(given), s.accumulators, s.within, next(given), begin)
        for s, begin in zip(outline.steps, starts, strict=True)
    )
    return Spine(start, steps, outline.items, outline.publish, outline.schema, outline.rewritten)


@dataclass(frozen=True, eq=False)
class Spines:
    """Those of an index that is compiled. A spine of n steps has 3 n + 1 numbers of predicates and n of starts."""

    outlines: Sequence[Spine]
    starts: Sequence[Starts]
    outline: Ints
    node_from: Ints
    nodes: Ints
    start_from: Ints
    start: Ints
    predicates: Predicates
    _made: dict[int, Spine] = field(default_factory=dict, repr=False)

    def __getitem__(self, number: int) -> Spine:
        found = self._made.get(number)
        if found is None:
            outline = self.outlines[int(self.outline[number])]
            nodes = self.nodes[self.node_from[number] : self.node_from[number + 1]].tolist()
            starts = self.start[self.start_from[number] : self.start_from[number + 1]].tolist()
            found = filled(outline, map(self.predicates.node, nodes), (self.starts[s] for s in starts))
            self._made[number] = found
        return found


class SpineTable:
    """Enters spines while an index is compiled."""

    def __init__(self) -> None:
        self.predicates = PredicateTable()
        self.outlines: list[Spine] = []
        self.starts: list[Starts] = []
        self._outline, self._nodes, self._start = Column(), Column(), Column()
        self._node_from, self._start_from = Column(), Column()
        self._node_from.extend([0])
        self._start_from.extend([0])
        self._known: dict[tuple[object, ...], int] = {}
        self._starts: dict[tuple[object, ...], int] = {}
        self._alive: list[object] = []
        """What is known by its identity."""

    def add(self, spine: Spine) -> int:
        starts = [[self.add_starts(s.starts) for s in spine.steps]]
        nodes = [[self.predicates.add(node) for node in predicates_of(spine)]]
        return int(self.extend(self.add_outline(spine), np.array(nodes), np.array(starts, np.int64))[0])

    def extend(self, outline: int, nodes: Ints, starts: Ints) -> Ints:
        """The numbers of spines that share an outline; their predicates and starts are rows."""
        first, count = len(self._outline), len(nodes)
        self._outline.extend(np.full(count, outline))
        for offsets, values, rows in ((self._node_from, self._nodes, nodes), (self._start_from, self._start, starts)):
            offsets.extend(len(values) + rows.shape[1] * np.arange(1, count + 1))
            values.extend(rows.ravel())
        return np.arange(first, first + count)

    def add_outline(self, spine: Spine) -> int:
        start = spine.start
        key = (
            start.origin if isinstance(start.origin, str) else id(start.origin), id(start.schema), start.alias,
            id(spine.items), spine.publish, id(spine.schema), spine.rewritten,
            *((s.kind, id(s.source), id(s.accumulators), s.within) for s in spine.steps),
        )  # fmt: skip
        number = self._known.get(key)
        if number is None:
            number = self._known[key] = len(self.outlines)
            self.outlines.append(filled(spine, _all_true(), ({} for _ in spine.steps)))
            self._alive.append(spine)
        return number

    def add_starts(self, starts: Starts) -> int:
        number = self._starts.setdefault(tuple(sorted(starts.items())), len(self.starts))
        if number == len(self.starts):
            self.starts.append(starts)
        return number

    def finished(self) -> Spines:
        offsets, starts = self._node_from.array, self._start_from.array
        return Spines(
            self.outlines, self.starts, self._outline.array, offsets, self._nodes.array, starts, self._start.array,
            self.predicates.finished(),
        )  # fmt: skip

    def objects(self, numbers: Ints) -> list[Spine]:
        spines = self.finished() if len(numbers) else None
        return [] if spines is None else [spines[n] for n in numbers.tolist()]

    # -- while others read

    @property
    def outline(self) -> Ints:
        return self._outline.array

    def node(self, spine: Ints, at: int) -> Ints:
        """The predicates number `at` of spines."""
        return self._nodes.array[self._node_from.array[spine] + at]

    def start(self, spine: Ints, step: int) -> Ints:
        return self._start.array[self._start_from.array[spine] + step]


def _all_true() -> Iterator[Node]:
    while True:
        yield TRUE


class SubscriptionTable(Sequence[Subscription]):
    """Subscriptions as columns."""

    def __init__(
        self,
        names: Sequence[str],
        spine: Ints,
        mode: Ints,
        quota: Ints,
        spines: Spines | SpineTable,
        since: Mapping[int, int] | None = None,
    ) -> None:
        self.names, self.spine, self.mode, self.quota = names, spine, mode, quota
        self.since = since or {}
        self._spines = spines

    @classmethod
    def of(cls, subscriptions: Sequence[Subscription]) -> SubscriptionTable:
        """Any subscriptions; those whose spines are objects are entered into columns."""
        if isinstance(subscriptions, SubscriptionTable):
            return subscriptions
        table = SpineTable()
        return cls(
            [s.name for s in subscriptions],
            np.array([table.add(simplify(s.spine, s.missing)) for s in subscriptions], np.int64),
            np.array([MODES.index(s.missing) for s in subscriptions], np.int64),
            np.array([s.quota for s in subscriptions], np.int64),
            table,
            {i: s.since for i, s in enumerate(subscriptions) if s.since is not None},
        )

    @property
    def table(self) -> SpineTable:
        """Of subscriptions that are not compiled yet."""
        assert isinstance(self._spines, SpineTable)
        return self._spines

    @property
    def spines(self) -> Spines:
        if isinstance(self._spines, SpineTable):
            self._spines = self._spines.finished()
        return self._spines

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        if at >= len(self):
            raise IndexError(at)
        spine, mode = self.spines[int(self.spine[at])], MODES[int(self.mode[at])]
        return Subscription(self.names[at], spine, mode, int(self.quota[at]), self.since.get(at))


class Chain(Sequence[Subscription]):
    """The subscriptions of several tables, one behind the other."""

    def __init__(self, tables: Sequence[SubscriptionTable]) -> None:
        self._tables = tables

    def __len__(self) -> int:
        return sum(map(len, self._tables))

    def __getitem__(self, at: Any) -> Any:
        for table in self._tables:
            if at < len(table):
                return table[at]
            at -= len(table)
        raise IndexError(at)
