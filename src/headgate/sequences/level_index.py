"""One level of patterns, compiled: static predicates, tables of the kernel, automata of the slower path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from headgate.language import ast
from headgate.language.ast import RUN, TRUE, Node, Path
from headgate.schema import Kind
from headgate.sequences.automaton import Automaton, Options
from headgate.sequences.distinct import distinct, positions
from headgate.sequences.index import Layout, Numbered, Programs, number
from headgate.sequences.match_rows import Output
from headgate.sequences.memory import Lists
from headgate.sequences.merging import DYNAMIC, PLACE, SLOT, STREAM, MergedAutomata, Merger, Slots
from headgate.sequences.parameterized import plain
from headgate.sequences.pending.pairs import JointPredicates, joint_predicates
from headgate.sequences.predicates import event_paths
from headgate.sequences.producers import ProducerKind, Producers
from headgate.sequences.publish_levels import Joined, Level, Levels, Subscription
from headgate.sequences.runs.signatures import signature
from headgate.sequences.spine_table import MODES, Spines, SpineTable, SubscriptionTable, predicates_of
from headgate.sequences.static import Static, StaticIndex, StaticPredicates
from headgate.sequences.tables import Ints


@dataclass(frozen=True, eq=False)
class LevelIndex:
    """One level, compiled, as it is kept in a file. `producers` are numbered; the ends of the kernel's tables accept
    those numbers.

    What a session needs is arrays. The automata as objects are there for explanations, for reports of trouble and for
    the slower path; they are built when one of these asks for them.
    """

    streams: tuple[str, ...]
    layout: Layout
    unions: tuple[Joined, ...]
    numbered: Numbered
    producers: Producers
    slow: Mapping[int, str]
    """Producers on the slower path, with the reason."""
    statics: Mapping[int, tuple[StaticIndex, Ints]]
    sides: Mapping[str, tuple[StaticIndex | None, ...]]
    predicates: int
    """How many static predicates there are."""
    starting: Ints
    """The slots that start a run by themselves."""
    open_streams: Ints
    """The streams of which some step takes any event, as far as the event alone tells."""
    watches_time: bool
    """Whether time alone can make something happen: there is an ABSENT."""
    merged: tuple[MergedAutomata, MergedAutomata]
    """The automata of the kernel and of the slower path."""
    signed: tuple[Sequence[str], Sequence[str]] | None = None
    """The signatures of their states, where these are known."""
    _static: Static | None = field(default=None, repr=False)
    """Makes the indexes of joint predicates."""
    _outputs: dict[int, Output] = field(default_factory=dict, repr=False)

    @cached_property
    def subscribers(self) -> Lists:
        return self.producers.subscribers

    @cached_property
    def givers(self) -> frozenset[int]:
        return self.producers.givers

    @cached_property
    def compiled(self) -> Automaton:
        return self.merged[0].objects(self.producers, self.streams)

    @cached_property
    def interpreted(self) -> Automaton:
        return self.merged[1].objects(self.producers, self.streams)

    @cached_property
    def joint(self) -> dict[int, JointPredicates]:
        """What operators and graphs decide about runs and events together, by state of the slower path."""
        if not self.slow:
            return {}
        assert self._static is not None
        return joint_predicates(self.interpreted, self.layout.schemas, self._static)

    @cached_property
    def signatures(self) -> tuple[Sequence[str], Sequence[str]]:
        if self.signed is not None:
            return self.signed
        kernel, slower = ([signature(s, self.streams) for s in a.states] for a in (self.compiled, self.interpreted))
        return kernel, slower

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

    def bound(self, spines: Spines, names: Sequence[str], static: Static) -> LevelIndex:
        """With what is beside it: the spines and the names of subscriptions, and what decides joint predicates."""
        producers = replace(self.producers, _spines=spines, _names=names)
        return replace(self, producers=producers, _static=static)

    def output(self, producer: int) -> Output:
        if producer not in self._outputs:
            self._outputs[producer] = Output(self.producers[producer].spine)
        return self._outputs[producer]


def compile_levels(
    table: SubscriptionTable, first: int, below: Levels | None, static: Static, options: Options
) -> tuple[Levels, list[LevelIndex]]:
    """The levels of subscriptions, whose numbers begin with `first`. Those that share an outline, a mode and a quota are
    planned as one."""
    spines = table.table
    kind, example = distinct(spines.outline[table.spine], table.mode, table.quota)
    shown = [
        Subscription(
            table.names[i], spines.outlines[int(spines.outline[table.spine[i]])], MODES[int(table.mode[i])],
            int(table.quota[i]),
        )
        for i in example.tolist()
    ]  # fmt: skip
    members = positions(kind, len(example))
    plan = Levels(shown, below)
    made = []
    for level in plan.levels:
        kinds, spine, numbers = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for producer in level.producers:
            kinds.append(ProducerKind(producer.streams, producer.missing, producer.quota, producer.gives))
            mine = members[producer.subscriptions[0]] if producer.subscriptions else np.array([-1])
            numbers.append(first + mine if producer.subscriptions else mine)
            spine.append(table.spine[mine] if producer.subscriptions else np.array([spines.add(producer.spine)]))
        sizes = [len(part) for part in spine[1:]]
        of_kind = np.repeat(np.arange(len(kinds)), sizes)
        producers = Producers(tuple(kinds), of_kind, np.concatenate(spine), np.concatenate(numbers))
        made.append((level, producers))
    compiled = [_level(level, producers, plan, spines, static, options) for level, producers in made]
    # The predicates of all levels are in the columns by now.
    names = [""] * first + list(table.names)
    bound = [level.bound(table.spines, names, static) for level in compiled]
    for one in bound:
        one.joint  # noqa: B018 - compiled here, so that its errors are those of the compilation
    return plan, bound


def _level(
    level: Level, producers: Producers, plan: Levels, spines: SpineTable, static: Static, options: Options
) -> LevelIndex:
    streams = tuple(level.inputs)
    layout = Layout([plan.schemas.get(name, level.inputs[name]) for name in streams])
    merger = Merger(spines, producers, streams, options)
    programs = Programs(layout, merger, spines.predicates)
    everyone = np.arange(len(producers))
    compiled = merger.merge(everyone)
    slow = dict.fromkeys(everyone.tolist(), "the kernel is switched off")
    if options.kernel:
        slow = programs.troubles(compiled, producers)
    slower = np.array(sorted(slow), np.int64)
    if slow:
        compiled = merger.merge(np.setdiff1d(everyone, slower))
    merged = (compiled, merger.merge(slower))
    _ask_columns(producers, slower, streams, spines, layout)
    rows = [m.states for m in merged] + [m.targets[m.targets[:, PLACE] == 0] for m in merged]
    waiting = np.concatenate([r[r[:, SLOT] < 0, STREAM] for r in rows])
    starts = np.concatenate(rows[2:])
    return LevelIndex(
        streams,
        layout,
        tuple(level.unions),
        number(compiled, merger, programs, producers, len(streams)),
        producers,
        slow,
        _statics(merger.slots, spines, layout, static),
        {union.name: tuple(_side_index(side.source, union, static) for side in union.sides) for union in level.unions},
        len(merger.slots),
        np.unique(starts[starts[:, DYNAMIC] == 0, SLOT]),
        np.unique(waiting),
        any(c.step is not None and c.step.kind == "ABSENT" for c in merger.contexts),
        merged,
    )


def _ask_columns(
    producers: Producers, slower: Ints, streams: Sequence[str], spines: SpineTable, layout: Layout
) -> None:
    """Gives columns to the attributes that SELECT asks of bound events; on the slower path those of predicates too."""
    asked: list[tuple[int, Node]] = []
    outlines = spines.outline[producers.spine]
    for p in distinct(producers.kind, outlines)[1].tolist():
        kind = int(producers.kind[p])
        asked += [(kind, item.expression) for item in spines.outlines[int(outlines[p])].items]
    for p, spine in zip(slower.tolist(), spines.objects(producers.spine[slower]), strict=True):
        kind = int(producers.kind[p])
        asked += [(kind, plain(node)) for node in predicates_of(spine)]
        for place, step in enumerate(spine.steps, start=1):
            asked += [(kind, n) for a in step.accumulators for n in (a.operand, a.start) if n is not None]
            paths = [start for start in step.starts.values() if start is not None]
            paths += [(f"#{place}", *path) for path in step.starts]
            asked += [(kind, ast.Attribute(path)) for path in paths]
    for kind, node in asked:
        reads = producers.kinds[kind].streams
        for n in ast.walk(node):
            if isinstance(n, ast.Attribute) and n.path[0].startswith("#") and len(n.path) > 1:
                layout.column(streams.index(reads[int(n.path[0][1:])]), n.path[1:])


def _statics(slots: Slots, spines: SpineTable, layout: Layout, static: Static) -> dict[int, tuple[StaticIndex, Ints]]:
    """An index of static predicates for each stream, with the slots its numbers stand for."""
    made = {}
    for stream in np.unique(slots.rows[:, 0]).tolist():
        found, numbers = [], []
        ours = np.flatnonzero(slots.rows[:, 0] == stream)
        for at, mode in enumerate(MODES):
            mine = ours[slots.rows[ours, 2] == at]
            for skeleton, which, rows in spines.predicates.by_skeleton(slots.rows[mine, 1]):
                found.append(StaticPredicates(event_paths(skeleton), mode, rows))
                numbers.append(mine[which])
        made[stream] = (static(layout.schemas[stream], found), np.concatenate(numbers))
    return made


def _side_index(source: Any, union: Joined, static: Static) -> StaticIndex | None:
    if source is None or (source.where == TRUE and union.missing != "total"):
        return None
    mode = union.missing if isinstance(source.origin, str) or union.missing != "total" else "null"
    return static(source.schema, [StaticPredicates(event_paths(source.where), mode)])
