"""The sequence engine: compile many patterns into levels of automata, then feed batches of columns.

`Index` is immutable and shared; a `Session` holds what lives between batches. A feed takes the epochs of its batch one
level at a time: static predicates for all events, then the kernel, then the stepper for what the kernel cannot do; what
patterns give becomes columns for the level above. Events that cannot be used are in `errors`, with their reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.errors import PlanError
from headgate.language.ast import DUR, Path
from headgate.results import Problem
from headgate.schema import Schema
from headgate.sequences.arrivals import Clock, Until, derived, merged_order
from headgate.sequences.automaton import Options
from headgate.sequences.level_index import LevelIndex, compile_levels
from headgate.sequences.match_rows import Rows
from headgate.sequences.matches import Matches
from headgate.sequences.memory import Arrivals, Lists
from headgate.sequences.pending import Pending
from headgate.sequences.predicates import FOREVER
from headgate.sequences.publish_levels import Levels, Subscription
from headgate.sequences.runs.table import RunTable, subscribers, subscriptions_after
from headgate.sequences.spine_table import Chain, SubscriptionTable
from headgate.sequences.static import Static, StaticIndex
from headgate.sequences.tables import Ints
from headgate.sequences.unions import each_once, renamed


class Index:
    """Many patterns, compiled."""

    def __init__(
        self,
        subscriptions: Sequence[Subscription],
        static: Static,
        options: Options | None = None,
        streams: Mapping[str, Schema] | None = None,
    ) -> None:
        """`streams` are others that are fed: if they keep time as those do that patterns read, they move it on for
        ABSENT, and if all are without TIME, their rows count too."""
        self.options = options or Options()
        table = SubscriptionTable.of(subscriptions)
        plan, levels = compile_levels(table, 0, None, static, self.options)
        self._set((table,), plan, levels, np.ones(len(table), np.bool_), {**(streams or {}), **plan.base}, table.since)

    def _set(
        self,
        tables: tuple[SubscriptionTable, ...],
        plan: Levels,
        levels: Sequence[LevelIndex],
        alive: NDArray[np.bool_],
        fed: Mapping[str, Schema],
        since: Mapping[int, int],
    ) -> None:
        self.tables = tables
        self.subscriptions: Sequence[Subscription] = tables[0] if len(tables) == 1 else Chain(tables)
        self.names = [name for table in tables for name in table.names]
        self.plan = plan
        self.levels = levels
        self.alive = alive
        self.fed = dict(fed)
        """All streams that may come."""
        times = {schema.time_kind for schema in plan.base.values()}
        self.streams = {name: schema for name, schema in fed.items() if schema.time_kind in times}
        """Those that keep a time that some pattern keeps."""
        self.sources = sorted(self.streams)
        self.since = since
        """The epoch after which a subscription sees runs begin, of those that may share older ones."""
        self.recent = np.zeros(len(self.names), np.bool_)
        self.recent[list(since)] = True

    @classmethod
    def opened(
        cls,
        tables: tuple[SubscriptionTable, ...],
        plan: Levels,
        levels: Sequence[LevelIndex],
        alive: NDArray[np.bool_],
        fed: Mapping[str, Schema],
    ) -> Index:
        """An index that was compiled elsewhere."""
        made = cls.__new__(cls)
        made.options = Options()
        made._set(tables, plan, levels, alive, fed, {})
        return made

    def activated(self, since: Mapping[str, int]) -> Index:
        """The same index, in which some subscriptions see only runs that begin after a time."""
        made = copy(self)
        known = {i: since[name] for i, name in enumerate(self.names) if name in since}
        made._set(self.tables, self.plan, self.levels, self.alive, self.fed, known)
        return made

    def extended(self, more: Sequence[Subscription], gone: Iterable[int], static: Static) -> Index:
        """This index with more subscriptions, and without those numbered `gone`, at the cost of what is new alone.

        The new ones run in levels of their own, above the others, whose automata they do not share. What PUBLISHes can
        neither go nor give a stream that is there already; then a PlanError says so, and all must be compiled anew.
        """
        table = SubscriptionTable.of(more)
        count = len(self.names)
        plan, levels = compile_levels(table, count, self.plan, static, self.options)
        alive = np.append(self.alive, np.ones(len(more), np.bool_))
        for at in gone:
            if self.subscriptions[at].spine.publish is not None:
                raise PlanError(f"{self.names[at]} publishes, so it cannot go by itself")
            alive[at] = False
        made = copy(self)
        made.__dict__.pop("_read", None)
        since = {**self.since, **{count + i: epoch for i, epoch in table.since.items()}}
        tables = (*self.tables, table)
        made._set(tables, plan, [*self.levels, *levels], alive, {**self.fed, **plan.base}, since)
        return made

    def needs(self) -> dict[str, frozenset[Path]]:
        """The attributes of each base stream that the index reads, TIME included."""
        return self._read

    @cached_property
    def _read(self) -> dict[str, frozenset[Path]]:
        # Kept, because every batch asks, and with many patterns the walk through them costs more than the batch.
        found: dict[str, set[Path]] = {name: set(schema.time) for name, schema in self.plan.base.items()}
        for level in self.levels:
            for name, paths in level.reads.items():
                if name in found:
                    found[name].update(paths)
        # A UNION asks each side for the columns of both: what a declared stream cannot have is not read.
        base = self.plan.base
        return {n: frozenset(p for p in paths if p[-1] != DUR and base[n].may_have(p)) for n, paths in found.items()}

    def session(self) -> Session:
        return Session(self)

    def stats(self) -> dict[str, Any]:
        """What was compiled: states, static predicates, and what takes the slower path, with the reason."""
        slow = {
            self.names[s]: why
            for level in self.levels
            for p, why in level.slow.items()
            for s in level.producers[p].subscriptions
        }
        return {
            "subscriptions": int(self.alive.sum()),
            "levels": len(self.levels),
            "states": sum(len(v.numbered.tables.nodes) + len(v.signatures[1]) for v in self.levels),
            "static_predicates": sum(v.predicates for v in self.levels),
            "slower_path": slow,
        }


class Session:
    """The runs of an index, and the events they have bound. Feed it batches in the order of time."""

    def __init__(self, index: Index) -> None:
        self.index = index
        self.tables = [RunTable(level) for level in index.levels]
        self.clock = Clock(index.streams)
        self._times = [index.plan.time(level.streams) if level.streams else None for level in index.levels]
        self.errors: list[Problem] = []
        self.waiting: list[Arrivals] = []
        """Events whose epochs were not asked for yet."""

    @property
    def closed(self) -> int | None:
        """The last epoch that is done; an event at or before it is late. Of several kinds of time, the greatest."""
        return max(self.clock.closed.values(), default=None)

    def feed(
        self,
        batches: Mapping[str, Columns] | Iterable[Columns],
        until: Until | None = None,
        decided: Sequence[Lists | None] | None = None,
    ) -> Matches:
        """Takes the epochs before `until` (default: all) and gives their matches. What is later waits. Rows of streams
        without TIME do not wait if others have one.

        `decided` has, for each batch, the slots of the first level that hold for its events, where somebody has
        evaluated them before; they are not evaluated again.
        """
        parts = list(batches.values() if isinstance(batches, Mapping) else batches)
        known = decided or [None] * len(parts)
        arrived = [self.clock.arrivals(c, self.errors, d) for c, d in zip(parts, known, strict=True)]
        events = [*self.waiting, *(a for a in arrived if a is not None and len(a))]
        self.waiting = []
        if until is not None:
            later = [(a, self.clock.later(a, until)) for a in events]
            self.waiting = [a.take(np.flatnonzero(mask)) for a, mask in later if mask.any()]
            events = [a.take(np.flatnonzero(~mask)) for a, mask in later]
        closed = self.clock.close(events, until)
        found = Matches(self.index)
        streams: dict[str, list[Arrivals]] = {}
        for a in events:
            streams.setdefault(a.stream, []).append(a)
        for at, (level, time) in enumerate(zip(self.index.levels, self._times, strict=True)):
            if time not in closed:
                continue
            self._unions(level, streams)
            rows = self._level(at, level, streams, closed[time])
            found.add(level, rows)
            for name, arrivals in derived(self.index, level, rows):
                streams.setdefault(name, []).append(arrivals)
            self._tell_lost(at, level, [a for a in events if self.index.streams[a.stream].time_kind is time])
        return found.sorted()

    def _tell_lost(self, at: int, level: LevelIndex, events: Sequence[Arrivals]) -> None:
        """Runs that a quota dropped are reported, with the last event that came."""
        for state, count in self.tables[at].newly_lost():
            last = max(events, key=lambda a: int(a.t1.max(initial=-FOREVER)), default=None)
            row = -1 if last is None or not len(last) else int(last.row[np.argmax(last.t1)])
            names = sorted({self.index.names[s] for s in subscriptions_after(level, state)})
            reason = (
                f"{count} of the oldest runs dropped, because more than {state.quota} wait for the event at place "
                f"{state.place + 1}"
            )
            self.errors.append(
                Problem("" if last is None else last.stream, row, "quota", reason, subscriptions=tuple(names))
            )

    def _unions(self, level: LevelIndex, streams: dict[str, list[Arrivals]]) -> None:
        for union in level.unions:
            parts: list[Arrivals] = []
            for side, test in zip(union.sides, level.sides[union.name], strict=True):
                for a in streams.get(side.stream, ()):
                    if test is not None:
                        a = a.take(self._admitted(test, a, union.name))
                    parts.append(renamed(a, union))
            streams[union.name] = list(each_once(parts))

    def _level(self, at: int, level: LevelIndex, streams: Mapping[str, list[Arrivals]], closed: int) -> Rows:
        parts = [(i, a) for i, name in enumerate(level.streams) for a in streams.get(name, ()) if len(a)]
        order, places = merged_order([a for _, a in parts])
        table = self.tables[at]
        hits: list[tuple[Ints, Ints]] = []
        pending = Pending()
        for (stream, a), place in zip(parts, places, strict=True):
            if stream in level.statics:
                test, slots = level.statics[stream]
                columns = a.with_duration()
                if at == 0 and a.decided is not None:
                    hits.append((place[a.decided.events], a.decided.values))
                else:
                    found = test.hits(columns)
                    hits.append((place[found.event], slots[found.slot]))
                waiting = test.waiting(columns)
                if waiting is not None:
                    pending.add(waiting, a, place, slots)
        events = [(s, a, p) for (s, a), p in zip(parts, places, strict=True)]
        rows = table.advance(events, len(order), hits, closed, pending)
        for t in pending.troubles:
            names = () if t.about is None else subscribers(level, t.about, self.index.names)
            self._report(t.arrivals, t.row, t.reason, t.code, names)
        return rows

    def _admitted(self, test: StaticIndex, a: Arrivals, union: str) -> Ints:
        """The events that one side of a UNION lets in: whoever reads it needs to know, so nothing is left open."""
        columns = a.with_duration()
        found, waiting = test.hits(columns), test.waiting(columns)
        if waiting is None:
            return found.event
        asked = waiting.ask(waiting.pairs)
        for u in (*waiting.pairs.problems, *asked.problems):
            self._report(a, u.event, f"a FILTER in {union}: {u.reason}", u.code)
        return np.unique(np.concatenate([found.event, asked.event]))

    def _report(self, a: Arrivals, row: int, reason: str, code: str, names: tuple[str, ...] = ()) -> None:
        source = self.index.sources[int(a.source[row])]
        self.errors.append(Problem(source, int(a.row[row]), code, reason, subscriptions=names))

    def stats(self) -> dict[str, Any]:
        return {"closed": self.closed, "levels": [table.stats() for table in self.tables]}

    def runs(self) -> dict[str, int]:
        """How many runs wait for each subscription that has some."""
        names = self.index.names
        counted = [table.by_subscription() for table in self.tables]
        return {names[s]: n for found in counted for s, n in sorted(found.items()) if self.index.alive[s]}
