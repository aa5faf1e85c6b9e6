"""Many patterns against a batch of event graphs.

The kernels decide; in between, conditions that no rank decides are evaluated, for the rows of candidates only. Patterns
with a FILTER over several variables, and slots that want every binding, are enumerated one pair at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from headgate.graphs import conditions, kernels
from headgate.graphs.dictionary import Batch
from headgate.graphs.event import LIMITS, EventGraph, Limits
from headgate.graphs.index import PatternIndex, asked_words
from headgate.graphs.join import kernels as join
from headgate.graphs.kernels import Int32, Ints, Mask, Words
from headgate.graphs.pattern import ITSELF
from headgate.graphs.terms import Term, order_of, python_of

CHUNK = 512
"""Events that go through the kernels together, at most."""
_PRESENT_WORDS = 4_000_000
"""Words of the table of statement patterns by events: with very many patterns a chunk is smaller."""
_KEPT = 200_000


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A pattern whose search in an event exceeded a limit; `slot` is None if that holds for a whole event."""

    event: int
    slot: int
    reason: str


@dataclass(frozen=True, eq=False)
class Found:
    """One row for each (event, slot, binding), sorted. `vertex` has the event vertices of the slot's variables, in the
    order of their names, -1 behind the last."""

    event: Ints
    slot: Int32
    vertex: Int32
    given_up: tuple[GivenUp, ...] = ()
    counters: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Bindings(Sequence[dict[str, Any]]):
    """The bindings of found rows; each is made when it is asked for."""

    patterns: PatternIndex
    terms: Sequence[Sequence[Term]]
    """The terms of the vertices of each event."""
    found: Found
    _values: dict[int, list[Any]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.found.event)

    def __getitem__(self, i: Any) -> Any:
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        return self._binding(int(self.found.event[i]), int(self.found.slot[i]), self.found.vertex[i].tolist())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        found = self.found
        return map(self._binding, found.event.tolist(), found.slot.tolist(), found.vertex.tolist())

    def _binding(self, event: int, slot: int, vertices: list[int]) -> dict[str, Any]:
        values = self._values.get(event)
        if values is None:
            values = self._values[event] = [python_of(t) for t in self.terms[event]]
        return dict(zip(self.patterns.slots.names[slot], map(values.__getitem__, vertices), strict=False))


class Rows(NamedTuple):
    """The rows of statement patterns, `at[e]` to `at[e + 1]` those of event e; a refused row is not `alive`."""

    at: Ints
    keys: Ints
    subject: Int32
    object: Int32
    alive: Mask


class Matcher:
    """An index with what it remembers between batches: values that slow conditions were asked about."""

    def __init__(self, index: PatternIndex, limits: Limits = LIMITS, remember_after: int = 2_000) -> None:
        self.index = index
        self.limits = limits
        self.remember_after = remember_after
        columns = index.columns
        slow = index.statements.slow
        self._slow = np.array(
            [bool(slow[columns.arc_m[a:b]].any()) for a, b in pairwise(columns.arcs_at)],
            np.bool_,
        )
        wanted = {int(index.slots.view[slot]) for slot in index.slots.every}
        self._whole = np.array(
            [
                bool(p.joint) or any(v in wanted for v in range(columns.view_at[i], columns.view_at[i + 1]))
                for i, p in enumerate(index.patterns)
            ],
            np.bool_,
        )
        self._known: dict[tuple[int, Term], bool] = {}

    def match(self, graphs: Sequence[EventGraph], asked: tuple[Ints, Int32] | None = None) -> Found:
        """Which patterns hold for which events. `asked` are (event, slot) pairs, sorted; None asks for all."""
        if not self.index.patterns or not graphs:
            return Found(np.empty(0, np.int64), np.empty(0, np.int32), np.empty((0, 0), np.int32))
        parts = []
        words = max(1, min(CHUNK // 64, _PRESENT_WORDS // len(self.index.statements.subject)))
        for first in range(0, len(graphs), 64 * words):
            some = graphs[first : first + 64 * words]
            part = None
            if asked is not None:
                low, high = np.searchsorted(asked[0], [first, first + len(some)])
                part = asked[0][low:high] - first, asked[1][low:high]
            parts.append(self._chunk(self.index.dictionary.encode(some), part, first))
        width = max(p.vertex.shape[1] for p in parts)
        counters: dict[str, int] = {}
        for p in parts:
            for name, n in p.counters.items():
                counters[name] = counters.get(name, 0) + n
        return Found(
            np.concatenate([p.event for p in parts]),
            np.concatenate([p.slot for p in parts]),
            np.concatenate([_widen(p.vertex, width) for p in parts]),
            tuple(g for p in parts for g in p.given_up),
            counters,
        )

    def rows(self, batch: Batch) -> tuple[Rows, Words]:
        """The rows of every statement pattern in the batch, and which events have any."""
        d, s, v = self.index.dictionary, self.index.statements, self.index.vertices
        anything, bits, row_at, row_class, above_at, above = d.tables()
        at, keys, subject, object_, present = kernels.statements(
            batch.vertex_at, batch.row, batch.constant, batch.rank, batch.arc_at, batch.subject, batch.property,
            batch.object, anything, bits, row_at, row_class, above_at, above, len(d.classes) + 1, s.by_class,
            s.by_class_m, len(d.constants), s.by_constant, s.by_constant_m, s.subject, s.object, s.loop, v.home,
            v.constant, v.class_at, v.classes, v.ranked, v.range_at, v.low, v.high,
        )  # fmt: skip
        return Rows(at, keys, subject, object_, np.ones(len(keys), np.bool_)), present

    def _chunk(self, batch: Batch, asked: tuple[Ints, Int32] | None, first: int) -> Found:
        index, columns = self.index, self.index.columns
        events = len(batch.graphs)
        rows, present = self.rows(batch)
        words = np.empty((0, 0), np.uint64) if asked is None else asked_words(index, *asked, events)
        event, pattern = kernels.candidates(present, columns.rare_at, columns.rare_m, words, events)
        self._refuse_slow(batch, rows, event, pattern)
        status, candidate, view, value, counted = join.verify(
            *rows, batch.vertex_at, batch.term, batch.orders(np.unique(event).tolist()), event, pattern,
            columns.hom, columns.vertices_at, columns.group, columns.alike, columns.arcs_at, columns.arc_subject,
            columns.arc_object, columns.arc_m, columns.view_at, columns.view_vertex_at, columns.view_vertex,
            self.limits.steps, self.remember_after,
        )  # fmt: skip
        given_up: list[GivenUp] = []
        for c in np.flatnonzero(status < 0).tolist():
            reason = f"the search was given up after {self.limits.steps:,} steps"
            given_up += self._give_up(first + int(event[c]), int(pattern[c]), reason)
        plain = ~self._whole[pattern[candidate]] & (status[candidate] > 0)
        found_event, found_slot, vertex = self._spread(
            event[candidate[plain]].astype(np.int64), view[plain], value[plain]
        )
        extra: list[tuple[int, int, list[int]]] = []
        for c in np.flatnonzero(self._whole[pattern] & (status > 0)).tolist():
            try:
                extra += self._enumerate(batch, rows, int(event[c]), int(pattern[c]))
            except _TooMany as problem:
                given_up += self._give_up(first + int(event[c]), int(pattern[c]), str(problem))
        if extra:
            width = max(vertex.shape[1], max(len(v) for _, _, v in extra))
            more = np.full((len(extra), width), -1, np.int32)
            for i, (_, _, v) in enumerate(extra):
                more[i, : len(v)] = v
            found_event = np.concatenate([found_event, np.array([e for e, _, _ in extra], np.int64)])
            found_slot = np.concatenate([found_slot, np.array([s for _, s, _ in extra], np.int32)])
            vertex = np.concatenate([_widen(vertex, width), more])
        if asked is not None:
            slots = len(index.slots.named)
            kept = np.isin(found_event * slots + found_slot, asked[0] * slots + asked[1])
            found_event, found_slot, vertex = found_event[kept], found_slot[kept], vertex[kept]
        order = np.lexsort((found_slot, found_event))
        counters = {
            "rows": len(rows.keys),
            "candidates": len(event),
            "pruned": int(counted[0]),
            "steps": int(counted[1]),
            "verified": int((status > 0).sum()),
        }
        return Found(found_event[order] + first, found_slot[order], vertex[order], tuple(given_up), counters)

    def _give_up(self, event: int, pattern: int, reason: str) -> list[GivenUp]:
        slots, columns = self.index.slots, self.index.columns
        low, high = slots.at[columns.view_at[pattern]], slots.at[columns.view_at[pattern + 1]]
        return [GivenUp(event, slot, reason) for slot in sorted(slots.of_view[low:high].tolist())]

    def _spread(self, event: Ints, view: Int32, value: Int32) -> tuple[Ints, Int32, Int32]:
        """From views to the slots that see them, and from all vertices to those of variables."""
        slots, columns = self.index.slots, self.index.columns
        lengths = np.diff(columns.view_vertex_at)[view]
        width = int(lengths.max(initial=0))
        vertex = np.full((len(view), width), -1, np.int32)
        for j in range(width):
            rows = np.flatnonzero(lengths > j)
            vertex[rows, j] = value[rows, columns.view_vertex[columns.view_vertex_at[view[rows]] + j]]
        seen = np.diff(slots.at)[view]
        inside = np.arange(int(seen.sum())) - np.repeat(np.cumsum(seen) - seen, seen)
        slot = slots.of_view[np.repeat(slots.at[view], seen) + inside]
        return np.repeat(event, seen), slot, np.repeat(vertex, seen, axis=0)

    def _refuse_slow(self, batch: Batch, rows: Rows, event: Int32, pattern: Int32) -> None:
        """Mark the rows of candidates whose slow conditions do not hold as dead."""
        columns, s = self.index.columns, self.index.statements
        needed: dict[tuple[int, int], None] = {}
        for c in np.flatnonzero(self._slow[pattern]).tolist():
            p = pattern[c]
            for m in columns.rare_m[columns.rare_at[p] : columns.rare_at[p + 1]].tolist():
                if s.slow[m]:
                    needed[int(event[c]), m] = None
        for e, m in needed:
            terms = batch.graphs[e].terms
            n = len(terms)
            own = rows.keys[rows.at[e] : rows.at[e + 1]]
            low, high = rows.at[e] + np.searchsorted(own, [m * n * n, (m + 1) * n * n])
            for r in range(low, high):
                a, b = terms[rows.subject[r]], terms[rows.object[r]]
                rows.alive[r] = self._holds(int(s.subject[m]), a) and self._holds(int(s.object[m]), b)

    def _holds(self, vertex: int, term: Term) -> bool:
        slow = self.index.vertices.slow[vertex]
        if not slow:
            return True
        known = self._known.get((vertex, term))
        if known is None:
            given = {ITSELF: conditions.value(term)}
            known = all(conditions.compiled(c)(given) is True for c in slow)
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[vertex, term] = known
        return known

    def _enumerate(self, batch: Batch, rows: Rows, event: int, pattern: int) -> Iterator[tuple[int, int, list[int]]]:
        columns, slots = self.index.columns, self.index.slots
        inside = slice(columns.vertices_at[pattern], columns.vertices_at[pattern + 1])
        arcs = slice(columns.arcs_at[pattern], columns.arcs_at[pattern + 1])
        terms = batch.graphs[event].terms
        low, high = batch.vertex_at[event], batch.vertex_at[event + 1]
        found, left = join.enumerate_all(
            rows.at[event], rows.at[event + 1], *rows[1:], len(terms), batch.term[low:high], columns.hom[pattern],
            columns.group[inside], columns.alike[inside], columns.arc_subject[arcs], columns.arc_object[arcs],
            columns.arc_m[arcs], self.limits.bindings + 1, self.limits.steps, self.remember_after,
        )  # fmt: skip
        if left < 0:
            raise _TooMany(f"the search was given up after {self.limits.steps:,} steps")
        if len(found) > self.limits.bindings:
            raise _TooMany(f"there are more than {self.limits.bindings:,} ways to match")
        joint = self.index.patterns[pattern].joint
        used = frozenset(name for c in joint for name in conditions.variables(c))
        tests = [conditions.compiled(c) for c in joint]
        good = []
        for solution in found.tolist():
            given = {name: conditions.value(terms[solution[int(name)]]) for name in used}
            if all(test(given) is True for test in tests):
                good.append(solution)
        for view in range(columns.view_at[pattern], columns.view_at[pattern + 1]):
            order = columns.view_vertex[columns.view_vertex_at[view] : columns.view_vertex_at[view + 1]].tolist()
            distinct = {tuple(order_of(terms[s[x]]) for x in order): [s[x] for x in order] for s in good}
            every = [distinct[key] for key in sorted(distinct)]
            for slot in slots.of_view[slots.at[view] : slots.at[view + 1]].tolist():
                for vertex in every if slot in slots.every else every[:1]:
                    yield event, slot, vertex


class _TooMany(Exception):
    """A pair that has more solutions than anyone could want."""


def _widen(vertex: Int32, width: int) -> Int32:
    if vertex.shape[1] == width:
        return vertex
    wide = np.full((len(vertex), width), -1, np.int32)
    wide[:, : vertex.shape[1]] = vertex
    return wide
