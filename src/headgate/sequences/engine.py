"""The sequence engine: compile many patterns into levels of automata, then feed batches of columns.

`Index` is immutable and shared; a `Session` holds what lives between batches. A feed takes the epochs of its batch one
level at a time: static predicates for all events, then the kernel, then the stepper for what the kernel cannot do; what
patterns give becomes columns for the level above. Events that cannot be used are in `errors`, with their reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.errors import PlanError
from headgate.language import ast
from headgate.language.ast import DUR, RUN, TRUE, Path
from headgate.results import Problem
from headgate.schema import Kind, Schema
from headgate.sequences.arrivals import Clock, Until, derived, merged_order
from headgate.sequences.automaton import Automaton, Options, Slots, State
from headgate.sequences.index import Layout, Numbered, Programs, number, numbered_parts
from headgate.sequences.match_rows import Output, Rows
from headgate.sequences.matches import Matches
from headgate.sequences.memory import Arrivals, Lists
from headgate.sequences.parameterized import plain
from headgate.sequences.pending import Pending
from headgate.sequences.pending.pairs import JointPredicates, joint_predicates
from headgate.sequences.predicates import FOREVER, event_paths
from headgate.sequences.publish_levels import Joined, Level, Levels, Producer, Subscription
from headgate.sequences.runs.signatures import signature
from headgate.sequences.runs.table import RunTable, subscribers, subscriptions_after
from headgate.sequences.static import Static, StaticIndex
from headgate.sequences.tables import Ints
from headgate.sequences.unions import each_once, renamed


@dataclass
class LevelIndex:
    """One level, compiled. `producers` are numbered; the ends of the kernel's tables accept those numbers.

    What a session needs is arrays. The automata as objects are there for explanations, for reports of trouble and for
    the slower path; of an index that was opened from a file they are built when one of these asks for them.
    """

    streams: list[str]
    layout: Layout
    unions: Sequence[Joined]
    numbered: Numbered
    producers: Sequence[Producer]
    subscribers: Lists
    """The subscriptions of each producer."""
    givers: frozenset[int]
    """The producers whose rows are events of a stream."""
    slow: Mapping[int, str]
    """Producers on the slower path, with the reason."""
    statics: dict[int, tuple[StaticIndex, Ints]]
    sides: dict[str, list[StaticIndex | None]]
    predicates: int
    """How many static predicates there are."""
    starting: frozenset[int]
    """The slots that start a run by themselves."""
    open_streams: frozenset[int]
    """The streams of which some step takes any event, as far as the event alone tells."""
    watches_time: bool
    """Whether time alone can make something happen: there is an ABSENT."""
    automata: tuple[Callable[[], Automaton], Callable[[], Automaton]]
    """Those of the kernel and of the slower path."""
    signed: Callable[[], tuple[list[str], list[str]]]
    """The signatures of their states."""
    static: Static
    """Makes the indexes of joint predicates."""
    outputs: dict[int, Output] = field(default_factory=dict)

    @cached_property
    def compiled(self) -> Automaton:
        return self.automata[0]()

    @cached_property
    def interpreted(self) -> Automaton:
        return self.automata[1]()

    @cached_property
    def joint(self) -> dict[int, JointPredicates]:
        """What operators and graphs decide about runs and events together, by state of the slower path."""
        return joint_predicates(self.interpreted, self.layout.schemas, self.static) if self.slow else {}

    @cached_property
    def states(self) -> list[State]:
        """The states of the kernel, in the order of its tables."""
        return numbered_parts(self.compiled)[0]

    @cached_property
    def signatures(self) -> tuple[list[str], list[str]]:
        return self.signed()

    @cached_property
    def numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        """The numbers of states by signature, of the kernel and of the slower path."""
        kernel, slower = self.signatures
        return {s: i for i, s in enumerate(kernel)}, {s: i for i, s in enumerate(slower)}

    @cached_property
    def accepts(self) -> tuple[Ints, Ints]:
        """The subscriptions that each end accepts for, as offsets and a list."""
        ends = self.numbered.ends
        found = self.subscribers.take(ends.accepts)
        return found.offsets[ends.accept_from], found.values

    @cached_property
    def producer_of(self) -> dict[int, int]:
        return dict(zip(self.subscribers.values.tolist(), self.subscribers.events.tolist(), strict=True))

    @cached_property
    def text_aggregates(self) -> bool:
        """Does a run of the kernel hold texts in its aggregates?"""
        texts = (Kind.STRING, Kind.BINARY, Kind.GRAPH)
        kinds = (a.type for folds in self.numbered.ends.folds for _, accumulators in folds for a in accumulators)
        return any(kind is not None and kind.kind in texts for kind in kinds)

    @cached_property
    def reads(self) -> dict[str, set[Path]]:
        """The attributes that the level asks of each of its streams."""
        found: dict[str, set[Path]] = {
            name: set(columns) for name, columns in zip(self.streams, self.layout.columns, strict=True)
        }
        for stream, (test, _) in self.statics.items():
            found[self.streams[stream]].update(test.needs)
        for state, joint in self.joint.items():
            stream = self.interpreted.states[state].stream
            found[self.streams[stream]].update(p for p in joint.index.needs if p[0] != RUN)
        for union in self.unions:
            for side, side_test in zip(union.sides, self.sides[union.name], strict=True):
                asks = found.setdefault(side.stream, set())
                asks.update(a.path for a in union.schema)
                asks.update(() if side_test is None else side_test.needs)
        return found

    def output(self, producer: int) -> Output:
        if producer not in self.outputs:
            self.outputs[producer] = Output(self.producers[producer].spine)
        return self.outputs[producer]


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
        plan = Levels(subscriptions)
        levels = [_level(level, plan, static, self.options) for level in plan.levels]
        alive = np.ones(len(subscriptions), np.bool_)
        names = [s.name for s in subscriptions]
        self._set(subscriptions, names, plan, levels, alive, {**(streams or {}), **plan.base})

    def _set(
        self,
        subscriptions: Sequence[Subscription],
        names: list[str],
        plan: Levels,
        levels: list[LevelIndex],
        alive: NDArray[np.bool_],
        fed: Mapping[str, Schema],
        since: Mapping[int, int] | None = None,
    ) -> None:
        self.subscriptions = subscriptions
        self.names = names
        self.plan = plan
        self.levels = levels
        self.alive = alive
        self.fed = dict(fed)
        """All streams that may come."""
        times = {schema.time_kind for schema in plan.base.values()}
        self.streams = {name: schema for name, schema in fed.items() if schema.time_kind in times}
        """Those that keep a time that some pattern keeps."""
        self.sources = sorted(self.streams)
        if since is None:
            since = {i: s.since for i, s in enumerate(subscriptions) if s.since is not None}
        self.since = since
        """The epoch after which a subscription sees runs begin, of those that may share older ones."""
        self.recent = np.zeros(len(names), np.bool_)
        self.recent[list(since)] = True

    @classmethod
    def opened(
        cls,
        subscriptions: Sequence[Subscription],
        names: list[str],
        plan: Levels,
        levels: list[LevelIndex],
        alive: NDArray[np.bool_],
        fed: Mapping[str, Schema],
    ) -> Index:
        """An index that was compiled elsewhere."""
        made = cls.__new__(cls)
        made.options = Options()
        made._set(subscriptions, names, plan, levels, alive, fed, {})
        return made

    def activated(self, since: Mapping[str, int]) -> Index:
        """The same index, in which some subscriptions see only runs that begin after a time."""
        made = copy(self)
        known = {i: since[name] for i, name in enumerate(self.names) if name in since}
        made._set(self.subscriptions, self.names, self.plan, self.levels, self.alive, self.fed, known)
        return made

    def extended(self, more: Sequence[Subscription], gone: Iterable[int], static: Static) -> Index:
        """This index with more subscriptions, and without those numbered `gone`, at the cost of what is new alone.

        The new ones run in levels of their own, above the others, whose automata they do not share. What PUBLISHes can
        neither go nor give a stream that is there already; then a PlanError says so, and all must be compiled anew.
        """
        plan = Levels(more, self.plan)
        alive = np.append(self.alive, np.ones(len(more), np.bool_))
        for at in gone:
            if self.subscriptions[at].spine.publish is not None:
                raise PlanError(f"{self.names[at]} publishes, so it cannot go by itself")
            alive[at] = False
        made = copy(self)
        made.__dict__.pop("_read", None)
        levels = [*self.levels, *(_level(level, plan, static, self.options) for level in plan.levels)]
        names = [*self.names, *(s.name for s in more)]
        made._set([*self.subscriptions, *more], names, plan, levels, alive, {**self.fed, **plan.base})
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


def _level(level: Level, plan: Levels, static: Static, options: Options) -> LevelIndex:
    streams = list(level.inputs)
    numbers = {name: i for i, name in enumerate(streams)}
    layout = Layout([plan.schemas.get(name, level.inputs[name]) for name in streams])
    slots = Slots()
    compiled, interpreted = Automaton(slots, options), Automaton(slots, options)
    programs = Programs(layout)
    slow: dict[int, str] = {}
    asked: set[tuple[int, tuple[int, ...]]] = set()
    for i, producer in enumerate(level.producers):
        reads = [numbers[name] for name in producer.streams]
        target = compiled.add(i, producer.spine, reads, producer.missing, producer.quota)
        trouble = programs.trouble(target) if options.kernel else "the kernel is switched off"
        if trouble is not None:
            target.accepts.remove(i)
            slow[i] = trouble
            interpreted.add(i, producer.spine, reads, producer.missing, producer.quota)
        _ask_columns(producer, reads, layout, asked, everything=trouble is not None)
    compiled.settle_bounds()
    interpreted.settle_bounds()
    automata = (compiled, interpreted)
    starts = [e for a in automata for e in a.starts.values()]
    states = [s for a in automata for s in a.states]
    free = {s.stream for s in states if s.slot < 0} | {e.target.streams[0] for e in starts if e.slot < 0}
    made = LevelIndex(
        streams,
        layout,
        level.unions,
        number(compiled, programs),
        level.producers,
        Lists.of([p.subscriptions for p in level.producers]),
        frozenset(i for i, p in enumerate(level.producers) if p.gives is not None),
        slow,
        _statics(slots, layout, static),
        {union.name: [_side_index(side.source, union, static) for side in union.sides] for union in level.unions},
        len(slots.predicates),
        frozenset(e.slot for e in starts if e.dynamic == TRUE),
        frozenset(free),
        any(s.step.kind == "ABSENT" for s in states),
        (lambda: compiled, lambda: interpreted),
        lambda: (
            [signature(s, streams) for s in numbered_parts(compiled)[0]],
            [signature(s, streams) for s in interpreted.states],
        ),
        static,
    )
    made.joint  # noqa: B018 - compiled here, so that its errors are those of the compilation
    return made


def _ask_columns(
    producer: Producer,
    reads: Sequence[int],
    layout: Layout,
    asked: set[tuple[int, tuple[int, ...]]],
    *,
    everything: bool,
) -> None:
    """Gives columns to the attributes that SELECT asks of bound events; on the slower path those of predicates too."""
    spine = producer.spine
    key = (id(spine.items), tuple(reads))
    if not everything and key in asked:
        return
    asked.add(key)
    nodes = [item.expression for item in spine.items]
    paths: list[Path] = []
    if everything:
        nodes.append(spine.start.where)
        for place, step in enumerate(spine.steps, start=1):
            nodes += [step.theta, step.keep, step.after]
            nodes += [n for a in step.accumulators for n in (a.operand, a.start) if n is not None]
            paths += [start for start in step.starts.values() if start is not None]
            paths += [(f"#{place}", *path) for path in step.starts]
    paths += [n.path for node in nodes for n in ast.walk(plain(node)) if isinstance(n, ast.Attribute)]
    for path in paths:
        if path[0].startswith("#") and len(path) > 1:
            layout.column(reads[int(path[0][1:])], path[1:])


def _statics(slots: Slots, layout: Layout, static: Static) -> dict[int, tuple[StaticIndex, Ints]]:
    """An index of static predicates for each stream, with the slots its numbers stand for."""
    by_stream: dict[int, list[int]] = {}
    for slot, predicate in enumerate(slots.predicates):
        by_stream.setdefault(predicate.stream, []).append(slot)
    made = {}
    for stream, ours in by_stream.items():
        bodies = [(slots.predicates[s].body, slots.predicates[s].missing) for s in ours]
        made[stream] = (static(layout.schemas[stream], bodies), np.array(ours, np.int64))
    return made


def _side_index(source: Any, union: Joined, static: Static) -> StaticIndex | None:
    if source is None or (source.where == TRUE and union.missing != "total"):
        return None
    mode = union.missing if isinstance(source.origin, str) or union.missing != "total" else "null"
    return static(source.schema, [(event_paths(source.where), mode)])


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
