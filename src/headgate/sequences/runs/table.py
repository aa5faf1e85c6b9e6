"""The runs of one level, with the memory of the events they have bound: what lives between two batches."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.sequences.automaton import Automaton, Edge, State, slots_of
from headgate.sequences.kernels import advance
from headgate.sequences.match_rows import Rows
from headgate.sequences.memory import Arrivals, Memory
from headgate.sequences.pending import Pending, advance_asking, ask_starts
from headgate.sequences.pending.pairs import Pairs
from headgate.sequences.runs.kernels import bound_events, collect, install, move_events, refile
from headgate.sequences.stepper import Run, Stepper
from headgate.sequences.tables import (
    ALIVE,
    CREATED,
    DROPPED,
    EXPIRED,
    FREE,
    FRESH,
    HIGH,
    KILLED,
    LOST,
    MASK,
    NODE,
    SAME,
    SCALARS,
    SERIAL,
    STEPPED,
    TIED,
    TOUCHED,
    Batch,
    Ints,
    Runs,
)

if TYPE_CHECKING:
    from headgate.sequences.level_index import LevelIndex

_ROOM = 16
_NOTHING = np.zeros(0, np.int64)
_SLACK = 4096


class RunTable:
    def __init__(self, level: LevelIndex) -> None:
        self._level = level
        layout = level.layout
        types = [
            {path: None if (a := schema.get(path)) is None else a.type for path in columns}
            for schema, columns in zip(layout.schemas, layout.columns, strict=True)
        ]
        self.memory = Memory(layout.columns, types, layout.texts)
        self._tables = level.numbered.tables
        self.stepper = Stepper(level.interpreted if level.slow else Automaton(), self.memory, level.joint)
        scalars = np.zeros(SCALARS, np.int64)
        scalars[FREE], scalars[MASK] = -1, _ROOM - 1
        self.runs = Runs(
            rows=np.zeros((64, self._tables.width), np.int64),
            heads=np.full(len(self._tables.groups) + _ROOM, -1, np.int64),
            lists=np.zeros((0, 4), np.int64),
            heap=np.zeros((64, 3), np.int64),
            fresh=np.zeros(64, np.int64),
            scalars=scalars,
        )
        self._told: dict[int, int] = {}
        self._swept = 0
        self._compacted = 0
        self._values = 0

    def advance(
        self,
        parts: Sequence[tuple[int, Arrivals, Ints]],
        count: int,
        hits: Sequence[tuple[Ints, Ints]],
        closed: int,
        pending: Pending,
    ) -> Rows:
        """One batch: its events in merged order, the static predicates that hold for each, and those that are open."""
        memory, first = self.memory, self.memory.size
        memory.append(parts)
        hit_from, slots = _by_event(hits, count)
        batch = Batch(
            memory.cells, memory.defined, memory.t0[: memory.size], memory.t1[: memory.size], memory.stream,
            hit_from, slots, first, closed,
        )  # fmt: skip
        mark = int(self.runs.scalars[SERIAL])
        self.runs.scalars[FRESH] = 0
        if pending:
            ask_starts(pending, frozenset(self._level.starting.tolist()))
            self.runs, out = advance_asking(self._tables, batch, self.runs, pending)
        else:
            out = np.zeros((64, self._tables.width), np.int64)
            self.runs, out, accepted = advance(self._tables, batch, self.runs, out)
            out = out[:accepted]
        others: list[tuple[Any, Run]] = []
        if self._level.slow:
            pairs = Pairs(self._level.joint, first, [(a, at) for _, a, at in parts], pending)
            found = self.stepper.advance(_epochs(memory, first, hit_from, slots, pending), closed, pairs)
            others = [(a.target, a.run) for a in found]
        rows = Rows(memory, out, self._level.numbered.ends, self._tables.cells_at, others)
        self._settle(batch, first, mark, closed)
        return rows

    def _settle(self, batch: Batch, first: int, mark: int, closed: int) -> None:
        """Keeps of the new events those that runs have bound; now and then takes out what has expired."""
        scalars = self.runs.scalars
        if scalars[ALIVE] > 2 * self._swept + _SLACK:
            collect(self.runs, closed)
            self._swept = int(scalars[ALIVE])
        if self._level.slow:
            self.stepper.collect(closed)
        full = self.memory.size > 2 * self._compacted + _SLACK + len(batch.t1) - first
        start, since = (0, -1) if full else (first, mark)
        used = np.zeros(self.memory.size - start, np.bool_)
        bound_events(self._tables.cells_at, self.runs, start, since, used)
        slow = sorted(h for h in self.stepper.handles() if h >= start) if self._level.slow else []
        used[np.array(slow, np.int64) - start] = True
        kept = np.flatnonzero(used)
        moved = np.cumsum(used) - 1 + start
        move_events(self._tables.cells_at, self.runs, start, since, moved)
        self.stepper.move({h: int(moved[h - start]) for h in slow})
        self.memory.keep(start, kept + start)
        if full:
            self._compacted = self.memory.size
            self._forget(batch)

    def _forget(self, batch: Batch) -> None:
        if self.memory.values < 2 * self._values + _SLACK or self._level.text_aggregates:
            return
        self.memory.forget_values()
        self._values = self.memory.values
        memory = self.memory
        batch = batch._replace(cells=memory.cells, defined=memory.defined)
        self.runs = refile(self._tables, batch, self.runs)

    def put_in(self, waiting: Ints, count: int) -> None:
        """Files runs that were saved; their events are in memory already."""
        memory = self.memory
        batch = Batch(
            memory.cells, memory.defined, memory.t0, memory.t1, memory.stream, _NOTHING, _NOTHING, memory.size, 0
        )
        self.runs = install(self._tables, batch, self.runs, waiting, count)
        # Two of them may come from one epoch of the past, so the next epoch looks for equal runs.
        self.runs.scalars[TIED] = 1

    def copy(self) -> RunTable:
        """The same runs once more: what happens to them here does not touch those there."""
        made = copy(self)
        made.memory = self.memory.snapshot(np.arange(self.memory.size))
        made.runs = Runs(*(array.copy() for array in self.runs))
        made.stepper = self.stepper.copy(made.memory)
        made._told = dict(self._told)
        return made

    def waiting(self) -> Ints:
        """How many runs of the kernel wait at each state."""
        nodes = self.runs.rows[: self.runs.scalars[HIGH], NODE]
        return np.bincount(nodes[nodes >= 0], minlength=len(self._tables.nodes))

    def lost(self) -> Ints:
        """How many runs of the kernel each state has lost to its quota."""
        lists = self.runs.lists
        return lists[:, LOST] if len(lists) else np.zeros(len(self._tables.nodes), np.int64)

    def newly_lost(self) -> Iterator[tuple[State, int]]:
        """The states that have lost runs to their quota since this was last asked, and how many."""
        lost = self.lost()
        found = [(self._level.compiled.states[n], int(lost[n])) for n in np.flatnonzero(lost)]
        found += [(self._level.interpreted.states[n], count) for n, count in self.stepper.dropped.items()]
        for state, count in found:
            if more := count - self._told.get(id(state), 0):
                self._told[id(state)] = count
                yield state, more

    def by_subscription(self) -> dict[int, int]:
        """How many runs wait on the way to each subscription; those that several share are counted for each."""
        waiting = self.waiting()
        counts = {id(self._level.compiled.states[n]): int(waiting[n]) for n in np.flatnonzero(waiting)}
        for n, runs in self.stepper.runs.items():
            if runs:
                counts[id(self._level.interpreted.states[n])] = len(runs)
        return count_by_subscription(self._level, counts) if counts else {}

    def stats(self) -> dict[str, Any]:
        scalars = self.runs.scalars
        slow = sum(len(runs) for runs in self.stepper.runs.values())
        return {
            "runs": int(scalars[ALIVE]) + slow,
            "runs_on_slower_path": slow,
            "created": int(scalars[CREATED]),
            "touched": int(scalars[TOUCHED]),
            "stepped": int(scalars[STEPPED]),
            "left": int(scalars[KILLED]),
            "expired": int(scalars[EXPIRED]),
            "dropped": int(scalars[DROPPED]) + sum(self.stepper.dropped.values()),
            "same": int(scalars[SAME]),
            "slower_path": {
                self._level.producers[i].publisher or "(nested)": why for i, why in self._level.slow.items()
            },
            "evaluated_on_slower_path": self.stepper.evaluated,
            "events_bound": self.memory.size,
            "bytes": self.runs.rows.nbytes + self.memory.cells.nbytes + self.memory.defined.nbytes,
        }


def subscriptions_after(level: LevelIndex, state: State) -> list[int]:
    """The subscriptions to which runs of this state may lead."""
    return [s for edge in state.edges for s in subscriptions_behind(level, edge)]


def subscriptions_behind(level: LevelIndex, edge: Edge) -> list[int]:
    """The subscriptions to which a run that takes this edge may lead."""
    found = [s for p in edge.target.accepts for s in level.producers[p].subscriptions]
    return found + [s for following in edge.target.states for s in subscriptions_after(level, following)]


def subscribers(level: LevelIndex, about: int | Sequence[Edge], names: Sequence[str]) -> tuple[str, ...]:
    """The subscriptions that look at a static predicate, or lie behind some edges, by name."""
    found: set[int] = set()
    if isinstance(about, int):
        for automaton in (level.compiled, level.interpreted):
            for target in automaton.targets:
                if about in slots_of(automaton, target):
                    found.update(s for p in target.accepts for s in level.producers[p].subscriptions)
    else:
        found.update(s for edge in about for s in subscriptions_behind(level, edge))
    return tuple(sorted({names[s] for s in found}))


def count_by_subscription(level: LevelIndex, counts: Mapping[int, int]) -> dict[int, int]:
    """The sum of `counts`, by the identity of a state, on the way to each subscription."""
    found: dict[int, int] = {}
    for automaton in (level.compiled, level.interpreted):
        sums: dict[int, int] = {}
        # A target stands behind the one its run came from.
        for target in automaton.targets:
            above = target.origin
            if above is not None:
                sums[id(target)] = sums.get(id(above.origin), 0) + counts.get(id(above), 0)
            if total := sums.get(id(target), 0):
                found.update((s, total) for p in target.accepts for s in level.producers[p].subscriptions)
    return found


def _by_event(hits: Sequence[tuple[Ints, Ints]], count: int) -> tuple[Ints, Ints]:
    if not hits:
        return np.zeros(count + 1, np.int64), np.zeros(0, np.int64)
    events = np.concatenate([e for e, _ in hits])
    slots = np.concatenate([s for _, s in hits])
    if len(hits) > 1 or (len(events) > 1 and (np.diff(events) < 0).any()):
        slots = slots[np.argsort(events, kind="stable")]
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(np.bincount(events, minlength=count), out=offsets[1:])
    return offsets, slots


def _epochs(
    memory: Memory, first: int, hit_from: Ints, slots: Ints, pending: Pending
) -> Iterator[tuple[int, list[tuple[int, Collection[int]]]]]:
    at = first
    while at < memory.size:
        now = int(memory.t1[at])
        events: list[tuple[int, Collection[int]]] = []
        while at < memory.size and memory.t1[at] == now:
            lo, hi = hit_from[at - first], hit_from[at - first + 1]
            events.append((at, pending.shown(at - first, frozenset(slots[lo:hi].tolist()))))
            at += 1
        yield now, events
