"""A compiled index of sequences as columns, to be written to a file and opened without parsing or building.

What differs from subscription to subscription is in arrays: constants of predicates by skeleton, numbers of states and
edges, the kernel's tables. What a whole shape has in common, its outline, sources, aggregates and the trees of its
predicates, is kept once and looked at only when somebody asks for it: `Shared` holds it as texts that are decoded one by
one. Objects of automata and spines are built from this for explanations, output rows and the slower path.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.language.ast import TRUE, Node
from headgate.sequences.automaton import Automaton, Edge, State, Target
from headgate.sequences.engine import Index, LevelIndex
from headgate.sequences.index import Ends, Folds, Layout, Numbered
from headgate.sequences.memory import Lists
from headgate.sequences.parameterized import Parameterized, intern
from headgate.sequences.predicates import Equality
from headgate.sequences.publish_levels import Joined, Levels, Producer, Subscription
from headgate.sequences.saved_columns import Nodes, SavedAutomaton, SavedIndex, SavedLevel, Spines
from headgate.sequences.spine import Source, Spine, Step
from headgate.sequences.static import Static, StaticIndex
from headgate.sequences.tables import Ints, Tables, check

Encode = Callable[[Any], str]
Decode = Callable[[str], Any]
Bind = Callable[[StaticIndex], StaticIndex]
MODES = ("null", "strict", "default", "total")


_ORIGIN, _STREAM, _AFTER, _SOURCE = range(4)
"""Columns of a target."""
(_FROM, _STEP, _THETA_TEXT, _KEEP_TEXT, _STARTS, _READS, _MODE, _QUOTA, _SLOT, _THETA, _EQUALITY, _OWN_BOUND,
 _KEEP_SLOT, _KEEP, _BOUND, _JOINT, _KEEP_JOINT) = range(17)  # fmt: skip
"""Columns of a state."""
_STATE, _EDGE_SLOT, _DYNAMIC, _TARGET, _EDGE_BOUND, _EDGE_JOINT = range(6)
"""Columns of an edge; a start has no state."""


# -- to columns


class _Saver:
    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self.shared: list[str] = []
        self._by_text: dict[str, int] = {}
        self._by_key: dict[object, int] = {}
        self._alive: list[object] = []
        self._nodes: dict[Node, int] = {}
        self._skeletons: list[int] = []
        self._rows: list[int] = []
        self._constants: dict[int, list[tuple[Any, ...]]] = {}
        self._spines: dict[int, int] = {}
        self._outlines: list[int] = []
        self._starts: list[list[int]] = []
        self._spine_nodes: list[list[int]] = []

    def share(self, value: object, key: object = None) -> int:
        """The number of what shapes have in common. `key` says cheaply that it is known; it names objects by identity."""
        key = ("object", id(value)) if key is None else key
        number = self._by_key.get(key)
        if number is None:
            text = self._encode(value)
            number = self._by_text.setdefault(text, len(self.shared))
            if number == len(self.shared):
                self.shared.append(text)
            self._by_key[key] = number
            self._alive.append(value)
        return number

    def node(self, node: Node) -> int:
        number = self._nodes.get(node)
        if number is None:
            number = self._nodes[node] = len(self._skeletons)
            given = node if isinstance(node, Parameterized) else None
            skeleton = self.share(node if given is None else given.skeleton)
            rows = self._constants.setdefault(skeleton, [])
            self._skeletons.append(skeleton)
            self._rows.append(-1 if given is None else len(rows))
            if given is not None:
                rows.append(given.values)
        return number

    def spine(self, spine: Spine) -> int:
        number = self._spines.get(id(spine))
        if number is None:
            number = self._spines[id(spine)] = len(self._outlines)
            self._alive.append(spine)
            start, steps = spine.start, spine.steps
            key = (
                "spine", id(start.origin), id(start.schema), start.alias, id(spine.items), spine.publish,
                id(spine.schema), spine.rewritten,
                *((s.kind, id(s.source), id(s.accumulators), s.within) for s in steps),
            )  # fmt: skip
            known = self._by_key.get(key)
            self._outlines.append(self.share(_bare(spine), key) if known is None else known)
            self._starts.append([self.share(s.starts) for s in steps])
            nodes = (start.where, *(n for s in steps for n in (s.theta, s.keep, s.after)))
            self._spine_nodes.append([self.node(n) for n in nodes])
        return number

    def nodes(self) -> Nodes:
        constants = {s: tuple(map(_column, zip(*rows, strict=True))) for s, rows in self._constants.items() if rows}
        return Nodes(_ints(self._skeletons), _ints(self._rows), constants)

    def spines(self) -> Spines:
        starts, nodes = Lists.of(self._starts), Lists.of(self._spine_nodes)
        return Spines(_ints(self._outlines), starts.values, starts.offsets, nodes.values, nodes.offsets)

    def automaton(self, automaton: Automaton) -> SavedAutomaton:
        targets = [
            (
                -1 if t.origin is None else t.origin.number,
                t.streams[-1],
                self.node(t.after),
                -1 if t.origin is not None else self.share(*_start(t.sources[0])),
            )
            for t in automaton.targets
        ]
        states = [
            (
                s.origin.number, self.share(*_step(s.step)), self.node(s.step.theta), self.node(s.step.keep),
                self.share(s.step.starts), s.stream, MODES.index(s.missing), s.quota, s.slot, self.node(s.theta),
                -1 if s.equality is None else self.share(s.equality, s.equality), s.own_bound, s.keep_slot,
                self.node(s.keep), s.bound, self.node(s.joint), self.node(s.keep_joint),
            )
            for s in automaton.states
        ]  # fmt: skip
        edges = [
            (number, e.slot, self.node(e.dynamic), e.target.number, e.bound, self.node(e.joint))
            for number, e in (
                *((-1, e) for e in automaton.starts.values()),
                *((s.number, e) for s in automaton.states for e in s.edges.values()),
            )
        ]
        accepts = Lists.of([t.accepts for t in automaton.targets])
        return SavedAutomaton(
            _ints(targets).reshape(-1, 4),
            _ints(states).reshape(-1, 17),
            _ints(edges).reshape(-1, 6),
            accepts.offsets,
            accepts.values,
        )

    def level(self, level: LevelIndex) -> SavedLevel:
        producers, ends, layout = level.producers, level.numbered.ends, level.layout
        return SavedLevel(
            tuple(level.streams),
            tuple(layout.schemas),
            tuple(layout.columns),
            pa.array(list(layout.texts), pa.string()),
            tuple(level.numbered.tables),
            ends.place,
            ends.fold,
            tuple(self.share(f) for f in ends.folds),
            ends.accept_from,
            ends.accepts,
            _ints([self.spine(p.spine) for p in producers]),
            _ints([self.share(p.streams, ("streams", p.streams)) for p in producers]),
            _ints([MODES.index(p.missing) for p in producers]),
            _ints([p.quota for p in producers]),
            _ints([-1 if p.gives is None else self.share(p.gives, ("gives", p.gives)) for p in producers]),
            level.subscribers.offsets,
            level.subscribers.values,
            tuple(self.share(u) for u in level.unions),
            dict(level.slow),
            level.statics,
            {name: tuple(sides) for name, sides in level.sides.items()},
            level.predicates,
            _ints(sorted(level.starting)),
            _ints(sorted(level.open_streams)),
            level.watches_time,
            self.automaton(level.compiled),
            self.automaton(level.interpreted),
            (pa.array(level.signatures[0], pa.string()), pa.array(level.signatures[1], pa.string())),
        )


def save_index(index: Index, encode: Encode) -> SavedIndex:
    """`encode` writes what is shared as text."""
    saver = _Saver(encode)
    levels = tuple(saver.level(level) for level in index.levels)
    subscriptions = index.subscriptions
    spine_of = _ints([saver.spine(s.spine) for s in subscriptions])
    return SavedIndex(
        pa.array(index.names, pa.string()),
        _ints([MODES.index(s.missing) for s in subscriptions]),
        _ints([s.quota for s in subscriptions]),
        spine_of,
        index.alive,
        index.fed,
        index.plan.known,
        saver.nodes(),
        saver.spines(),
        pa.array(saver.shared, pa.string()),
        levels,
    )


def _bare(spine: Spine) -> Spine:
    """The outline: no predicates, and nothing that depends on them."""
    steps = tuple(Step(s.kind, s.source, TRUE, TRUE, s.accumulators, s.within) for s in spine.steps)
    start = Source(spine.start.origin, TRUE, spine.start.schema, spine.start.alias)
    return Spine(start, steps, spine.items, spine.publish, spine.schema, spine.rewritten)


def _start(source: Source) -> tuple[Source, object]:
    bare = Source(source.origin, TRUE, source.schema, source.alias)
    return bare, ("source", id(source.origin), id(source.schema), source.alias)


def _step(step: Step) -> tuple[Step, object]:
    bare = Step(step.kind, step.source, TRUE, TRUE, step.accumulators, step.within)
    return bare, ("step", step.kind, id(step.source), id(step.accumulators), step.within)


def _column(values: tuple[Any, ...]) -> Any:
    """The constants of one hole as an array, if they are of one type that an array holds."""
    kinds = set(map(type, values))
    if kinds == {int} and max(values) < 2**63 and min(values) >= -(2**63):
        return np.array(values, np.int64)
    if kinds == {float}:
        return np.array(values, np.float64)
    return pa.array(values, pa.string()) if kinds == {str} else values


def _ints(values: Sequence[Any]) -> Ints:
    return np.array(values, np.int64)


# -- from columns


class Opened:
    """What is shared, the nodes and the spines of a saved index, each decoded when it is asked for."""

    def __init__(self, saved: SavedIndex, decode: Decode, bind: Bind, static: Static) -> None:
        self._saved = saved
        self._decode = decode
        self._bind = bind
        self._static = static
        self._shared: dict[int, Any] = {}
        self._nodes: dict[int, Node] = {}
        self._spines: dict[int, Spine] = {}

    def shared(self, number: int) -> Any:
        if number not in self._shared:
            found = self._decode(self._saved.shared[number].as_py())
            self._shared[number] = intern(found) if isinstance(found, Node) else found
        return self._shared[number]

    def node(self, number: int) -> Node:
        found = self._nodes.get(number)
        if found is None:
            nodes = self._saved.nodes
            skeleton, row = int(nodes.skeletons[number]), int(nodes.rows[number])
            tree: Node = self.shared(skeleton)
            if row >= 0:
                tree = Parameterized(tree, tuple(_value(c, row) for c in nodes.constants[skeleton]))
            found = self._nodes[number] = tree
        return found

    def spine(self, number: int) -> Spine:
        found = self._spines.get(number)
        if found is None:
            spines = self._saved.spines
            bare: Spine = self.shared(int(spines.outlines[number]))
            nodes = iter(spines.nodes[spines.node_from[number] : spines.node_from[number + 1]].tolist())
            starts = spines.starts[spines.start_from[number] : spines.start_from[number + 1]].tolist()
            start = Source(bare.start.origin, self.node(next(nodes)), bare.start.schema, bare.start.alias)
            steps = []
            for s, begin in zip(bare.steps, starts, strict=True):
                theta, keep, after = (self.node(next(nodes)) for _ in range(3))
                steps.append(Step(s.kind, s.source, theta, keep, s.accumulators, s.within, after, self.shared(begin)))
            found = Spine(start, tuple(steps), bare.items, bare.publish, bare.schema, bare.rewritten)
            self._spines[number] = found
        return found

    def automaton(self, saved: SavedAutomaton) -> Automaton:
        made = Automaton()
        accepts = Lists(saved.accept_from, saved.accepts)
        waiting: dict[int, list[int]] = {}
        for number, row in enumerate(saved.states.tolist()):
            waiting.setdefault(row[_FROM], []).append(number)
        states: dict[int, State] = {}
        ends = accepts.offsets.tolist()
        # A target stands behind the states that lead to it, and these behind the target they wait at.
        for number, (origin, stream, after, source) in enumerate(saved.targets.tolist()):
            above = states.get(origin)
            target = Target(
                number,
                0 if above is None else above.place,
                above,
                (stream,) if above is None else (*above.origin.streams, stream),
                self.node(after),
                (self._source(source, after),) if above is None else (*above.origin.sources, above.step.source),
                () if above is None else _folds(above),
                None,
                accepts=accepts.values[ends[number] : ends[number + 1]].tolist(),
            )
            made.targets.append(target)
            for n in waiting.get(number, ()):
                states[n] = target.states[n] = self._state(n, target, saved.states[n].tolist())
        made.states = [states[n] for n in range(len(saved.states))]
        for state, slot, dynamic, to, bound, joint in saved.edges.tolist():
            target = made.targets[to]
            edge = Edge(slot, self.node(dynamic), target, bound, target.after, self.node(joint))
            if state < 0:
                made.starts[to] = target.entry = edge
            else:
                made.states[state].edges[target.after] = edge
        return made

    def _source(self, number: int, where: int) -> Source:
        bare: Source = self.shared(number)
        return Source(bare.origin, self.node(where), bare.schema, bare.alias)

    def _state(self, number: int, origin: Target, row: list[int]) -> State:
        bare: Step = self.shared(row[_STEP])
        theta, keep = self.node(row[_THETA_TEXT]), self.node(row[_KEEP_TEXT])
        starts = self.shared(row[_STARTS])
        step = Step(bare.kind, bare.source, theta, keep, bare.accumulators, bare.within, TRUE, starts)
        equality: Equality | None = None if row[_EQUALITY] < 0 else self.shared(row[_EQUALITY])
        return State(
            number, origin, step, origin.place + 1, row[_READS], MODES[row[_MODE]], row[_QUOTA], row[_SLOT],
            self.node(row[_THETA]), equality, row[_OWN_BOUND], row[_KEEP_SLOT], self.node(row[_KEEP]), row[_BOUND],
            self.node(row[_JOINT]), self.node(row[_KEEP_JOINT]),
        )  # fmt: skip

    def level(self, saved: SavedLevel, names: list[str]) -> LevelIndex:
        tables = Tables(*saved.tables)
        folds: tuple[Folds, ...] = tuple(self.shared(n) for n in saved.folds)
        ends = Ends(saved.end_place, saved.end_fold, folds, saved.accept_from, saved.accepts)
        subscribers = Lists(saved.subscriber_from, saved.subscribers)
        check(tables, saved.predicates, len(saved.streams), len(ends.place))
        texts = {str(t): i for i, t in enumerate(saved.texts.to_pylist())}
        unions: list[Joined] = [self.shared(n) for n in saved.unions]
        first, second = saved.signatures
        return LevelIndex(
            list(saved.streams),
            Layout(list(saved.schemas), [dict(c) for c in saved.columns], texts),
            unions,
            Numbered(tables, ends),
            Producers(saved, self, subscribers, names),
            subscribers,
            frozenset(np.flatnonzero(saved.producer_gives >= 0).tolist()),
            saved.slow,
            {stream: (self._bind(test), slots) for stream, (test, slots) in saved.statics.items()},
            {name: [None if s is None else self._bind(s) for s in sides] for name, sides in saved.sides.items()},
            saved.predicates,
            frozenset(saved.starting.tolist()),
            frozenset(saved.open_streams.tolist()),
            saved.watches_time,
            (lambda: self.automaton(saved.compiled), lambda: self.automaton(saved.interpreted)),
            lambda: (first.to_pylist(), second.to_pylist()),
            self._static,
        )


def open_index(saved: SavedIndex, decode: Decode, bind: Bind, static: Static) -> Index:
    """`decode` reads what `encode` wrote; `bind` gives static predicates the operators that they call, and `static`
    makes those that ask operators about runs and events together."""
    opened = Opened(saved, decode, bind, static)
    names = saved.names.to_pylist()
    levels = [opened.level(level, names) for level in saved.levels]
    plan = Levels.of(saved.known)
    return Index.opened(Subscriptions(saved, opened, names), names, plan, levels, saved.alive, saved.streams)


@dataclass(frozen=True, eq=False)
class Subscriptions(Sequence[Subscription]):
    saved: SavedIndex
    opened: Opened
    names: list[str]
    _made: dict[int, Subscription] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        found = self._made.get(at)
        if found is None:
            saved = self.saved
            spine = self.opened.spine(int(saved.spine_of[at]))
            mode, quota = MODES[int(saved.modes[at])], int(saved.quotas[at])
            found = self._made[at] = Subscription(self.names[at], spine, mode, quota)
        return found


@dataclass(frozen=True, eq=False)
class Producers(Sequence[Producer]):
    saved: SavedLevel
    opened: Opened
    subscribers: Lists
    names: list[str]

    def __len__(self) -> int:
        return len(self.saved.producer_spine)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        saved, opened = self.saved, self.opened
        gives = int(saved.producer_gives[at])
        mine = self.subscribers.values[self.subscribers.offsets[at] : self.subscribers.offsets[at + 1]].tolist()
        return Producer(
            opened.spine(int(saved.producer_spine[at])),
            opened.shared(int(saved.producer_streams[at])),
            MODES[int(saved.producer_mode[at])],
            int(saved.producer_quota[at]),
            tuple(mine),
            None if gives < 0 else opened.shared(gives),
            self.names[mine[0]] if mine else "",
        )


def _folds(state: State) -> Folds:
    own = state.step.accumulators
    return (*state.origin.folds, (state.place, own)) if own else state.origin.folds


def _value(column: Any, row: int) -> Any:
    if isinstance(column, np.ndarray):
        return column[row].item()
    return column[row] if isinstance(column, tuple) else column[row].as_py()
