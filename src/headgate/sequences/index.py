"""Automata to tables: numbers for states, edges and groups, programs for dynamic predicates, columns for attributes.

Only what leads to an accepted subscription is entered. Groups are the AN and AI index: all states whose theta has the
same static part and compares the same attribute of the incoming event. Edges of a state are sorted by slot, so that the
kernel can look hits up among them (FR index).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.language.ast import TRUE, Node, Path
from headgate.predicates.programs.compiler import TEXT, Instruction, Unsupported, is_float, sort_of
from headgate.schema import Schema, Type
from headgate.sequences import tables
from headgate.sequences.aggregates import WIDTH
from headgate.sequences.automaton import Automaton, Edge, State, Target
from headgate.sequences.predicates import FOREVER
from headgate.sequences.programs.compiler import FUNCTIONS, Place, compile_program
from headgate.sequences.spine import Accumulator
from headgate.sequences.tables import Bits, Ints, Tables

KINDS = {"NEXT": tables.NEXT_STEP, "FOLD": tables.FOLD_STEP, "ABSENT": tables.ABSENT_STEP}
_LINE = 8
"""Numbers in a line of the cache: a run fills whole ones."""


@dataclass
class Layout:
    """Which attribute of which stream of the level lies in which column of its memory, and the codes of literals."""

    schemas: list[Schema]
    columns: list[dict[Path, int]] = field(default_factory=list)
    texts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.columns = self.columns or [{} for _ in self.schemas]

    def column(self, stream: int, path: Path) -> tuple[int, Type | None]:
        found = self.schemas[stream].get(path)
        columns = self.columns[stream]
        return columns.setdefault(path, len(columns)), None if found is None else found.type

    def code(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))


def width_of(accumulators: Sequence[Accumulator]) -> int:
    """Cells of a FOLD: a tag and a value for each part of each state."""
    return sum(2 * WIDTH[a.function] for a in accumulators)


@dataclass
class Programs:
    """Compiles predicates once each, and says why one cannot be compiled."""

    layout: Layout
    _trouble: dict[int, str | None] = field(default_factory=dict)
    _known: dict[tuple[object, ...], tuple[Node, list[Instruction]]] = field(default_factory=dict)
    """By the identity of a predicate and of what its names mean at its place."""

    def trouble(self, target: Target) -> str | None:
        """Why the automaton up to `target` needs the slower path; None if the kernel can do it."""
        key = id(target)
        if key not in self._trouble:
            try:
                self._trouble[key] = self._path(target)
            except Unsupported as reason:
                self._trouble[key] = str(reason)
        return self._trouble[key]

    def _path(self, target: Target) -> str | None:
        state = target.origin
        if state is None:
            if target.entry is not None:
                self.start(target.entry)
            return None
        above = self.trouble(state.origin)
        if above is not None:
            return above
        edge = state.edges[target.after]
        if any(joint is not TRUE and joint != TRUE for joint in (state.joint, state.keep_joint, edge.joint)):
            raise Unsupported("an operator or GRAPH that looks at the run")
        self._state(state)
        self.predicate(state, edge.dynamic)
        return None

    def _state(self, state: State) -> None:
        if state.missing == "default":
            for node in (state.theta, state.keep, *(e.dynamic for e in state.edges.values())):
                if node != TRUE:
                    raise Unsupported("a dynamic predicate in `default` mode")
        self.predicate(state, state.theta)
        self.predicate(state, state.keep)
        for a in state.step.accumulators:
            if a.function not in FUNCTIONS:
                raise Unsupported(a.function)
            if a.operand is not None and sort_of(a.type) == TEXT and a.function in ("MIN", "MAX"):
                raise Unsupported(f"{a.function} of texts")
            self.expression(state, a.operand)
            self.expression(state, a.start)

    def predicate(self, state: State, node: Node) -> list[Instruction] | None:
        return None if node is TRUE or node == TRUE else self._compiled(state, node)

    def expression(self, state: State, node: Node | None) -> list[Instruction] | None:
        return None if node is None else self._compiled(state, node)

    def _compiled(self, state: State, node: Node) -> list[Instruction]:
        origin, step = state.origin, state.step
        folds = tuple([(place, id(accumulators)) for place, accumulators in origin.folds])
        key = (id(node), origin.streams, state.stream, folds, id(step.accumulators), id(step.starts))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = node, compile_program(node, self._place(state))
        return known[1]

    def start(self, edge: Edge) -> list[Instruction] | None:
        if edge.dynamic is TRUE or edge.dynamic == TRUE:
            return None
        place = Place(
            0,
            lambda _, path: self.layout.column(edge.target.streams[0], path),
            _no_aggregate,
            _no_start,
            self.layout.code,
        )
        return compile_program(edge.dynamic, place)

    def _place(self, state: State) -> Place:
        origin = state.origin
        streams = origin.streams

        def column(place: int, path: Path) -> tuple[int, Type | None]:
            stream = state.stream if place == state.place else streams[place]
            return self.layout.column(stream, path)

        def aggregate(place: int, name: str) -> tuple[int, str, Type | None]:
            cell = 0
            for at, accumulators in (*origin.folds, (state.place, state.step.accumulators)):
                for a in accumulators:
                    if at == place and a.name == name:
                        return cell, a.function, a.type
                    cell += 2 * WIDTH[a.function]
            raise AssertionError(f"no aggregate {name} at {place}")

        return Place(state.place, column, aggregate, state.step.starts.get, self.layout.code)


def _no_aggregate(place: int, name: str) -> tuple[int, str, Type | None]:
    raise AssertionError((place, name))


def _no_start(path: Path) -> Path | None:
    raise AssertionError(path)


Folds = tuple[tuple[int, tuple[Accumulator, ...]], ...]
"""The accumulators of a run, by place."""


@dataclass(frozen=True)
class Ends:
    """Where runs of the kernel are accepted, by the number of the target: the last place bound, which of `folds` it
    has, and the producers that accept, those of target i from accept_from[i] to accept_from[i + 1]."""

    place: Ints
    fold: Ints
    folds: tuple[Folds, ...]
    accept_from: Ints
    accepts: Ints

    def accepting(self, target: int) -> Ints:
        return self.accepts[self.accept_from[target] : self.accept_from[target + 1]]


@dataclass(frozen=True)
class Numbered:
    """What the kernel runs on."""

    tables: Tables
    ends: Ends

    def folds(self, state: int) -> Folds:
        """The accumulators of a run that waits at a state: those at the end of any of its edges."""
        edge = self.tables.nodes[state, tables.EDGE_FROM]
        return self.ends.folds[self.ends.fold[self.tables.edges[edge, tables.EDGE_TARGET]]]


def number(automaton: Automaton, programs: Programs) -> Numbered:
    return _Numbering(automaton, programs).build()


def numbered_parts(automaton: Automaton) -> tuple[list[State], list[Target]]:
    """The states and targets in the order in which the tables number them: only what leads to an accepted run."""
    useful = _useful(automaton)
    targets = [t for t in automaton.targets if t.number in useful]
    return [s for t in targets for s in t.states.values() if _leads(s, useful)], targets


class _Numbering:
    def __init__(self, automaton: Automaton, programs: Programs) -> None:
        self._automaton = automaton
        self._programs = programs
        self._code: list[Instruction] = []
        self._known: dict[tuple[Instruction, ...], int] = {}
        self._states, self._targets = numbered_parts(automaton)
        self._useful = {t.number for t in self._targets}
        self._state_number = {id(s): i for i, s in enumerate(self._states)}
        self._target_number = {id(t): i for i, t in enumerate(self._targets)}

    def build(self) -> Numbered:
        states, programs = self._states, self._programs
        groups, held = self._groups(), [self._held(s) for s in states]
        places = max([t.place for t in self._targets] + [s.place for s in states], default=0) + 1
        cells = max([width_of(s.step.accumulators) + _cells_before(s) for s in states], default=0)
        accs: list[tuple[State, Accumulator, int]] = []
        for s in states:
            cell = tables.HANDLES + places + _cells_before(s)
            for a in s.step.accumulators:
                accs.append((s, a, cell))
                cell += 2 * WIDTH[a.function]
        edges = [self._edges(s) for s in states]
        slots, streams = len(self._automaton.slots.predicates), len(programs.layout.schemas)
        waits = [sum(id(s) in self._state_number for s in t.states.values()) for t in self._targets]
        state_from = _offsets(waits)
        starts = sorted(
            (e for e in self._automaton.starts.values() if e.target.number in self._useful),
            key=lambda e: _waiting_order(e.slot, e.target.streams[0]),
        )
        acc_from, edge_from = _offsets(len(s.step.accumulators) for s in states), _offsets(map(len, edges))
        nodes = [
            _ints(KINDS[s.step.kind] for s in states),
            _ints(groups[self._group_key(s)] for s in states),
            _ints(s.bound for s in states),
            _ints(h[0] for h in held),
            _ints(self._program(programs.predicate(s, s.theta)) for s in states),
            edge_from[:-1],
            edge_from[1:],
            _ints(e[0].slot if len(e) == 1 else tables.SEVERAL for e in edges),
            _ints(s.place for s in states),
            _ints(1 + sum(waits[self._target_number[id(e.target)]] for e in own) for own in edges),
            _ints(h[1] for h in held),
            _ints(s.keep_slot for s in states),
            _ints(self._program(programs.predicate(s, s.keep)) for s in states),
            _ints(s.step.within for s in states),
            acc_from[:-1],
            acc_from[1:],
        ]
        owned = [(s, e) for s, group in zip(states, edges, strict=True) for e in group]
        edge_table = self._edge_table(
            [e for _, e in owned], [programs.predicate(s, e.dynamic) for s, e in owned], state_from
        )
        group_list = list(groups)
        by_group = _by_slot([(g[1], g[0]) for g in group_list], slots, streams)
        by_start = _by_slot([(e.slot, e.target.streams[0]) for e in starts], slots, streams)
        quotas = _ints(s.quota for s in states)
        made = Tables(
            code=np.zeros((0, 5), np.int64),
            nodes=_matrix(nodes),
            quotas=quotas,
            accs=_matrix(
                [
                    _ints(FUNCTIONS[a.function] for _, a, _ in accs),
                    _ints(cell for _, _, cell in accs),
                    _ints(self._program(programs.expression(s, a.operand)) for s, a, _ in accs),
                    _ints(self._program(programs.expression(s, a.start)) for s, a, _ in accs),
                ]
            ),
            edges=edge_table,
            edge_slots=np.ascontiguousarray(edge_table[:, tables.EDGE_SLOT]),
            groups=_matrix(
                [
                    _ints(-1 if g[2] is None else programs.layout.column(g[0], g[2])[0] for g in group_list),
                    _ints(g[3] for g in group_list),
                ]
            ),
            starts=self._edge_table(starts, [programs.start(e) for e in starts], state_from),
            slots=_matrix([*by_group[0], *by_start[0]]),
            roles=_roles(by_group[0], by_start[0]),
            open_from=by_group[1],
            free_from=by_start[1],
            keyed=any(g[2] is not None for g in group_list),
            least_quota=int(quotas.min(initial=FOREVER)),
            cells_at=tables.HANDLES + places,
            width=-(-(tables.HANDLES + places + cells) // _LINE) * _LINE,
        )
        code = np.array(self._code or [(0, 0, 0, 0, 0)], np.int64)
        return Numbered(made._replace(code=code), self._ends())

    def _ends(self) -> Ends:
        folds: dict[tuple[object, ...], tuple[int, Folds]] = {}
        fold = []
        for t in self._targets:
            # Of a hundred thousand targets few differ in this, and those that do not have the same objects.
            key = tuple((place, id(accumulators)) for place, accumulators in t.folds)
            fold.append(folds.setdefault(key, (len(folds), t.folds))[0])
        return Ends(
            _ints(t.place for t in self._targets),
            _ints(fold),
            tuple(f for _, f in folds.values()),
            _offsets(len(t.accepts) for t in self._targets),
            _ints(p for t in self._targets for p in t.accepts),
        )

    def _edge_table(
        self, edges: Sequence[Edge], programs: Sequence[list[Instruction] | None], state_from: Ints
    ) -> Ints:
        targets = _ints(self._target_number[id(e.target)] for e in edges)
        return _matrix(
            [
                _ints(e.slot for e in edges),
                _ints(map(self._program, programs)),
                targets,
                _ints(len(e.target.accepts) for e in edges),
                state_from[targets],
                state_from[targets + 1],
            ]
        )

    def _program(self, program: list[Instruction] | None) -> int:
        if program is None:
            return -1
        key = tuple(program)
        at = self._known.get(key)
        if at is None:
            at = self._known[key] = len(self._code)
            self._code += program
        return at

    def _edges(self, state: State) -> list[Edge]:
        found = [e for e in state.edges.values() if e.target.number in self._useful]
        return sorted(found, key=lambda e: e.slot)

    def _group_key(self, state: State) -> tuple[int, int, Path | None, int]:
        stream, slot, path = state.group
        return stream, slot, path, 0 if path is None else self._modes(state)[0]

    def _modes(self, state: State) -> tuple[int, int, int]:
        """How the keys of the incoming, the held and the first held value are made; see `_key` in the kernel."""
        layout, equality = self._programs.layout, state.equality
        assert equality is not None
        kinds = [layout.column(state.stream, equality.incoming)[1]]
        for path in self._held_paths(state):
            stream = state.stream if path[0] == "$" else self._stream(state, path)
            kinds.append(layout.column(stream, path[1:])[1])
        reals = [is_float(kind) for kind in kinds]
        modes = [0 if not r else 1 if all(reals) else 2 for r in reals]
        return modes[0], modes[1], modes[-1]

    def _held_paths(self, state: State) -> list[Path]:
        assert state.equality is not None
        held = state.equality.held
        start = state.step.starts.get(held[1:]) if held[0] == "$" else None
        return [held] if start is None else [held, start]

    def _stream(self, state: State, path: Path) -> int:
        return state.origin.streams[int(path[0][1:])]

    def _groups(self) -> dict[tuple[int, int, Path | None, int], int]:
        found = dict.fromkeys(map(self._group_key, self._states))
        return {g: i for i, g in enumerate(sorted(found, key=lambda g: _waiting_order(g[1], g[0])))}

    def _held(self, state: State) -> tuple[int, int]:
        """Where the value lies that theta compares for equality, and where before the first iteration: place, column
        and mode in one number, -1 for nowhere."""
        if state.equality is None:
            return -1, -1
        layout, paths, modes = self._programs.layout, self._held_paths(state), self._modes(state)
        packed = []
        for path, mode in zip(paths, modes[1:], strict=False):
            own = path[0] == "$"
            place = state.place if own else int(path[0][1:])
            column = layout.column(state.stream if own else self._stream(state, path), path[1:])[0]
            packed.append(place << 32 | column << 2 | mode)
        return packed[0], packed[1] if len(packed) > 1 else -1


def _useful(automaton: Automaton) -> set[int]:
    found: set[int] = set()
    for target in reversed(automaton.targets):
        if target.accepts or any(_leads(s, found) for s in target.states.values()):
            found.add(target.number)
    return found


def _leads(state: State, useful: set[int]) -> bool:
    return any(e.target.number in useful for e in state.edges.values())


def _cells_before(state: State) -> int:
    return sum(width_of(accumulators) for _, accumulators in state.origin.folds)


def _ints(values: Iterable[int]) -> Ints:
    return np.fromiter(values, np.int64)


def _matrix(columns: list[Ints]) -> Ints:
    return np.ascontiguousarray(np.stack(columns, axis=1))


def _offsets(lengths: Iterable[int]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(_ints(lengths), dtype=np.int64)])


def _waiting_order(slot: int, stream: int) -> tuple[bool, int]:
    """What waits for no slot comes first, by its stream; then the others by their slot."""
    return slot >= 0, stream if slot < 0 else slot


def _by_slot(entries: Sequence[tuple[int, int]], slots: int, streams: int) -> tuple[tuple[Ints, Ints], Ints]:
    """Of entries in waiting order, each a slot and a stream: where those of each slot begin and end, and where those of
    each stream begin that wait for none."""
    open_from = _offsets(np.bincount(_ints(stream for slot, stream in entries if slot < 0), minlength=streams))
    counts = np.bincount(_ints(slot for slot, _ in entries if slot >= 0), minlength=slots)
    offsets = open_from[-1] + _offsets(counts)
    return (offsets[:-1], offsets[1:]), open_from


def _roles(groups: tuple[Ints, Ints], starts: tuple[Ints, Ints]) -> Bits:
    return ((groups[1] > groups[0]) + 2 * (starts[1] > starts[0])).astype(np.uint8)
