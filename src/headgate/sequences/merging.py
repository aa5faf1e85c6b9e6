"""Spines to automata as columns, merged from the start on (the paper's section 3).

All patterns of a level are taken together, one place after the other: those whose rows of origin, step, stream,
predicates, mode and quota are equal share a state, and those that leave a state with the same FILTER share an edge. What a
predicate's parts are is asked once for its skeleton.

Targets are numbered by place, and at each place by the state that leads there and the slot of the edge; states by the
target where they wait. So the edges of a state and the states of a target follow one another, as the kernel wants them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headgate.language import ast
from headgate.language.ast import DUR, TRUE, Node
from headgate.predicates.rows import Decided
from headgate.schema import Path
from headgate.sequences.algebra import is_late
from headgate.sequences.automaton import Automaton, Edge, Options, State, Target
from headgate.sequences.distinct import RowNumbers, distinct, positions
from headgate.sequences.parameterized import Part, part, plain, put_in
from headgate.sequences.predicates import FOREVER, Equality, has_heavy, parts, refer
from headgate.sequences.producers import Producers
from headgate.sequences.spine import Accumulator, Step, conjunction
from headgate.sequences.spine_table import MODES, SpineTable
from headgate.sequences.tables import Ints

ORIGIN, EXAMPLE, PLACE, STREAM, CONTEXT, SLOT, THETA, JOINT, EQUALITY, KEEP_SLOT, KEEP, KEEP_JOINT, BOUND = range(13)
"""Columns of states. An example is the first producer that led to a state or target."""
STATE, DYNAMIC = ORIGIN, THETA
"""Columns of targets and of the edges that lead there, which have those up to JOINT."""
_TOTAL = MODES.index("total")
Folds = tuple[tuple[int, tuple[Accumulator, ...]], ...]
"""The accumulators of a run, by place."""


@dataclass(frozen=True, eq=False)
class MergedAutomata:
    """The automata of some producers."""

    states: Ints
    targets: Ints
    accept_from: Ints
    accepts: Ints
    equalities: tuple[Equality, ...]

    def objects(self, producers: Producers, streams: Sequence[str]) -> Automaton:
        made = Automaton()
        numbers = {name: i for i, name in enumerate(streams)}
        predicates = producers.spines.predicates
        waiting = np.searchsorted(self.states[:, ORIGIN], np.arange(len(self.targets) + 1)).tolist()

        def tree(number: int) -> Node:
            return plain(predicates.node(number))

        for number, row in enumerate(self.targets.tolist()):
            producer, place = producers[row[EXAMPLE]], row[PLACE]
            spine = producer.spine
            steps = spine.steps[:place]
            above = None if row[STATE] < 0 else made.states[row[STATE]]
            target = Target(
                number,
                place,
                above,
                tuple(numbers[name] for name in producer.streams[: place + 1]),
                steps[-1].after if steps else spine.start.where,
                (spine.start, *(s.source for s in steps)),
                _folds(steps),
                self.accepts[self.accept_from[number] : self.accept_from[number + 1]].tolist(),
            )
            made.targets.append(target)
            made.edges.append(Edge(row[SLOT], tree(row[DYNAMIC]), target, tree(row[JOINT])))
            if above is not None:
                above.edges.append(made.edges[-1])
            for at in range(waiting[number], waiting[number + 1]):
                made.states.append(self._state(at, target, producers, tree))
                target.states.append(made.states[-1])
        return made

    def _state(self, number: int, origin: Target, producers: Producers, tree: Any) -> State:
        row = self.states[number].tolist()
        producer = producers[row[EXAMPLE]]
        return State(
            number, origin, producer.spine.steps[row[PLACE] - 1], row[STREAM], producer.missing, producer.quota,
            row[SLOT], tree(row[THETA]), None if row[EQUALITY] < 0 else self.equalities[row[EQUALITY]],
            row[KEEP_SLOT], tree(row[KEEP]), row[BOUND], tree(row[JOINT]), tree(row[KEEP_JOINT]),
        )  # fmt: skip


def _folds(steps: Sequence[Step]) -> Folds:
    return tuple((place, s.accumulators) for place, s in enumerate(steps, start=1) if s.accumulators)


class Slots:
    """The static predicates of a level, each once, as rows of stream, predicate and mode. `Hits` of the static pass name
    them by number."""

    def __init__(self) -> None:
        self._known = RowNumbers(3)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def rows(self) -> Ints:
        return self._known.rows

    def ask(self, stream: int, predicates: Ints, mode: int) -> Ints:
        """-1 for what every event satisfies."""
        found = np.full(len(predicates), -1)
        asked = predicates > 0 if mode != _TOTAL else np.ones(len(predicates), np.bool_)
        rows = np.stack([np.full(len(predicates), stream), predicates, np.full(len(predicates), mode)], axis=1)
        found[asked] = self._known.of(rows[asked])
        return found


@dataclass(frozen=True)
class Context:
    """What names mean in the predicates of a step: the streams and FOLDs so far, with its own, and where `$` starts."""

    streams: tuple[int, ...]
    folds: Folds
    step: Step | None

    @property
    def place(self) -> int:
        return len(self.streams) - 1


@dataclass(frozen=True)
class _Split:
    """The parts of all predicates of a skeleton at a step."""

    static: Part
    dynamic: Part
    joint: Part
    equality: int
    bound: int
    asks: bool
    """Some part of the static predicate is decided before, so that it needs a slot."""
    refers: bool
    """The dynamic part refers to static predicates."""


class Merger:
    """Merges patterns of one level."""

    def __init__(self, table: SpineTable, producers: Producers, streams: Sequence[str], options: Options) -> None:
        self.slots = Slots()
        self.contexts: list[Context] = []
        self._table, self._producers, self._options = table, producers, options
        numbers = {name: i for i, name in enumerate(streams)}
        self._streams = [[numbers[name] for name in kind.streams] for kind in producers.kinds]
        self._context_rows = RowNumbers(4)
        self._splits: dict[tuple[int, ...], _Split] = {}
        self._equalities: dict[Equality, int] = {}
        keys: dict[object, int] = {}
        self.steps: list[Step] = []
        """Steps without their predicates, each once."""
        self._step_of: list[list[int]] = []
        """By outline and place."""
        for outline in table.outlines:
            own = []
            for step in outline.steps:
                number = keys.setdefault((step.kind, step.accumulators, step.within), len(keys))
                own.append(number)
                if number == len(self.steps):
                    self.steps.append(step)
            self._step_of.append(own)

    def merge(self, chosen: Ints) -> MergedAutomata:
        """The automata of some of the producers."""
        table, kind = self._table, self._producers.kind[chosen]
        spine = self._producers.spine[chosen]
        outline = table.outline[spine]
        length = np.array([len(s) for s in self._step_of], np.int64)[outline]
        quota = np.array([k.quota for k in self._producers.kinds], np.int64)[kind]
        owner = np.zeros(len(chosen), np.int64) if self._options.merge else chosen
        target, context = np.full(len(chosen), -1), np.full(len(chosen), -1)
        targets = [self._starts(chosen, spine, kind, outline, owner, target, context)]
        states: list[Ints] = []
        own_bounds: list[Ints] = []
        edge_bounds: list[Ints] = []
        for place in range(1, int(length.max(initial=0)) + 1):
            here = np.flatnonzero(length >= place)
            columns = (chosen, spine, kind, outline, owner, quota, target, context)
            taken = [c[here] for c in columns]
            first_state, first_target = sum(map(len, states)), sum(map(len, targets))
            made, bounds, state = self._states(place, first_state, *taken)
            states.append(made)
            own_bounds.append(bounds)
            context[here] = made[state - first_state, CONTEXT]
            after, bounds, rank = self._edges(place, taken, state, context[here])
            targets.append(after)
            edge_bounds.append(bounds)
            target[here] = first_target + rank
        order = np.argsort(target, kind="stable")
        accept_from = np.searchsorted(target[order], np.arange(sum(map(len, targets)) + 1))
        self._settle(states, targets, own_bounds, edge_bounds, np.diff(accept_from) > 0)
        empty = np.zeros((0, BOUND + 1), np.int64)
        return MergedAutomata(
            np.concatenate([empty, *states]),
            np.concatenate(targets),
            accept_from,
            chosen[order],
            tuple(self._equalities),
        )

    def _modes(self, place: int, kind: Ints, outline: Ints) -> Ints:
        """`total` is about events of declared streams; what is derived has no missing attributes to be refused for."""
        modes = np.array([MODES.index(k.missing) for k in self._producers.kinds], np.int64)[kind]
        sources = [s.steps[place - 1].source if 0 < place <= len(s.steps) else s.start for s in self._table.outlines]
        base = np.array([isinstance(s.origin, str) for s in sources], np.bool_)[outline]
        return np.where((modes == _TOTAL) & ~base, 0, modes)

    def _stream(self, place: int, kind: Ints) -> Ints:
        return np.array([s[place] if place < len(s) else -1 for s in self._streams], np.int64)[kind]

    def _starts(
        self, chosen: Ints, spine: Ints, kind: Ints, outline: Ints, owner: Ints, target: Ints, context: Ints
    ) -> Ints:
        where, stream, mode = self._table.node(spine, 0), self._stream(0, kind), self._modes(0, kind, outline)
        number, first = distinct(stream, where, mode, owner)
        part_of = self._split(where[first], 0, stream[first], mode[first], indexed=self._options.fr)
        # What waits for no slot comes first, by its stream; then the others by their slot.
        order = np.lexsort((np.where(part_of.slot < 0, stream[first], part_of.slot), part_of.slot >= 0))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        target[:] = rank[number]
        nothing = np.full(len(first), -1)
        begun = self._context(nothing, stream[first], nothing, nothing)
        context[:] = begun[number]
        columns = [nothing, chosen[first], 0 * first, stream[first], begun, part_of.slot, part_of.dynamic, 0 * first]
        return np.stack(columns, axis=1)[order]

    def _states(
        self, place: int, base: int, chosen: Ints, spine: Ints, kind: Ints, outline: Ints, owner: Ints, quota: Ints,
        target: Ints, context: Ints,
    ) -> tuple[Ints, Ints, Ints]:  # fmt: skip
        """The states that wait for the event at a place, their own bounds, and the state of each pattern."""
        table = self._table
        theta, keep = table.node(spine, 3 * place - 2), table.node(spine, 3 * place - 1)
        step = self._step(place, outline)
        starts, stream = table.start(spine, place - 1), self._stream(place, kind)
        mode = self._modes(place, kind, outline)
        number, first = distinct(target, step, starts, stream, theta, keep, mode, quota, owner)
        order = np.argsort(target[first], kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        first = first[order]
        theta, keep, stream, mode, starts, step = (c[first] for c in (theta, keep, stream, mode, starts, step))
        absent = self._absent(step)
        of_theta = self._split(
            theta, place, stream, mode, absent, outline[first], starts, keyed=self._options.ai, indexed=self._options.an
        )
        of_keep = self._split(keep, place, stream, np.where(mode == _TOTAL, 0, mode), indexed=self._options.fr)
        columns = [
            target[first], chosen[first], np.full(len(first), place), stream,
            self._context(context[first], stream, step, starts), of_theta.slot, of_theta.dynamic, of_theta.joint,
            of_theta.equality, of_keep.slot, of_keep.dynamic, of_keep.joint, np.full(len(first), FOREVER),
        ]  # fmt: skip
        return np.stack(columns, axis=1), np.minimum(of_theta.bound, of_keep.bound), base + rank[number]

    def _edges(self, place: int, taken: Sequence[Ints], state: Ints, context: Ints) -> tuple[Ints, Ints, Ints]:
        """The targets behind the states of a place, the bounds of the edges to them, and the target of each pattern."""
        chosen, spine, kind, outline = taken[:4]
        after = self._table.node(spine, 3 * place)
        number, first = distinct(state, after)
        mode = self._modes(place, kind, outline)[first]
        stream = self._stream(place, kind[first])
        found = self._split(
            after[first], place, stream, np.where(mode == _TOTAL, 0, mode),
            self._absent(self._step(place, outline[first])), indexed=self._options.fr, leaves=True,
        )  # fmt: skip
        order = np.lexsort((found.slot, state[first]))
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        columns = [
            state[first], chosen[first], np.full(len(first), place), stream, context[first], found.slot, found.dynamic,
            found.joint,
        ]  # fmt: skip
        return np.stack(columns, axis=1)[order], found.bound[order], rank[number]

    def _step(self, place: int, outline: Ints) -> Ints:
        return np.array([s[place - 1] if place <= len(s) else -1 for s in self._step_of], np.int64)[outline]

    def _absent(self, step: Ints) -> Ints:
        return np.array([s.kind == "ABSENT" for s in self.steps], np.int64)[step]

    def _context(self, above: Ints, stream: Ints, step: Ints, starts: Ints) -> Ints:
        numbers = self._context_rows.of(np.stack([above, stream, step, starts], axis=1))
        for before, own, at, begin in self._context_rows.rows[len(self.contexts) :].tolist():
            if before < 0:
                self.contexts.append(Context((own,), (), None))
                continue
            old, s = self.contexts[before], self.steps[at]
            folds = (*old.folds, (old.place + 1, s.accumulators)) if s.accumulators else old.folds
            step_there = Step(s.kind, s.source, TRUE, TRUE, s.accumulators, s.within, TRUE, self._table.starts[begin])
            self.contexts.append(Context((*old.streams, own), folds, step_there))
        return numbers

    # -- predicates

    def _split(
        self,
        numbers: Ints,
        place: int,
        stream: Ints,
        mode: Ints,
        absent: Ints | None = None,
        outline: Ints | None = None,
        starts: Ints | None = None,
        *,
        indexed: bool,
        keyed: bool = False,
        leaves: bool = False,
    ) -> _Columns:
        """The parts of predicates at a place. `leaves`: they are those of forward edges."""
        table = self._table.predicates
        found = _Columns(len(numbers))
        rest = [np.zeros(len(numbers), np.int64) if c is None else c for c in (absent, outline, starts)]
        group, first = distinct(table.skeleton[numbers], stream, mode, *rest)
        for at, which in zip(first.tolist(), positions(group, len(first)), strict=True):
            where, how = int(stream[at]), int(mode[at])
            if numbers[at] == 0 and how != _TOTAL:
                continue
            skeleton = table.skeletons[int(table.skeleton[numbers[at]])]
            given = tuple(int(c[at]) for c in rest)
            key = (id(skeleton), place, where, how, *given, indexed, keyed, leaves)
            split = self._splits.get(key)
            if split is None:
                split = self._skeleton(skeleton, place, where, how, given, indexed=indexed, keyed=keyed, leaves=leaves)
                self._splits[key] = split
            codes = table.codes(numbers[which])
            if split.asks:
                found.slot[which] = self.slots.ask(where, table.fill(split.static, codes), how)
            if split.refers:
                found.dynamic[which] = [self._referring(split.dynamic, c, place, where, how) for c in codes.tolist()]
            else:
                found.dynamic[which] = table.fill(split.dynamic, codes)
            found.joint[which] = table.fill(split.joint, codes)
            found.equality[which], found.bound[which] = split.equality, split.bound
        return found

    def _skeleton(
        self,
        skeleton: Node,
        place: int,
        stream: int,
        mode: int,
        rest: tuple[int, ...],
        *,
        indexed: bool,
        keyed: bool,
        leaves: bool,
    ) -> _Split:
        missing = MODES[mode]
        absent, outline, starts = rest
        found = parts(skeleton, place, missing, keyed=keyed)
        if found.equality is not None and not self._indexable(found.equality, outline, place, starts):
            found = parts(skeleton, place, missing)
        static, dynamic = found.static, found.dynamic
        if leaves or absent:
            # ABSENT's runs are not collected when DUR has grown too long: they come out; and of a state's edges another
            # may allow a longer run.
            dynamic = conjunction((dynamic, _bounded(found.bound)))
        nothing_comes_in = leaves and bool(absent)
        asks = (indexed or missing == "default" or is_late(static)) and not nothing_comes_in
        if not asks:
            dynamic, static = conjunction((static, dynamic)), TRUE
            if missing == "total" and not nothing_comes_in:
                slot = int(self.slots.ask(stream, np.zeros(1, np.int64), mode)[0])
                dynamic = conjunction((Decided(slot, slot), dynamic))
        equality = -1
        if found.equality is not None:
            equality = self._equalities.setdefault(found.equality, len(self._equalities))
        refers = has_heavy(dynamic, place)
        return _Split(part(static), part(dynamic), part(found.joint), equality, found.bound, asks, refers)

    def _referring(self, dynamic: Part, codes: Sequence[int], place: int, stream: int, mode: int) -> int:
        table = self._table.predicates
        how = 0 if MODES[mode] in ("total", "strict") else mode
        tree = put_in(dynamic.skeleton, tuple(table.value(codes[t]) for t in dynamic.tokens))

        def ask(node: Node) -> int:
            return int(self.slots.ask(stream, np.array([table.add(node)]), how)[0])

        return table.add(refer(tree, place, ask))

    def _indexable(self, equality: Equality, outline: int, place: int, starts: int) -> bool:
        """The AI index holds values of events only, of one type, and no arrays, on which equality is ANY."""
        spine = self._table.outlines[outline]
        sources = (spine.start, *(s.source for s in spine.steps))
        held = equality.held
        asked: list[tuple[int, Path]] = [(place, equality.incoming)]
        start: Path | None = held
        if held[0] == "$":
            asked.append((place, held[1:]))
            start = self._table.starts[starts].get(held[1:])
        if start is not None:
            if start[0].startswith("@"):
                return False
            asked.append((int(start[0][1:]), start[1:]))
        found = [sources[at].schema.get(path) for at, path in asked]
        return all(a is not None and a.type is not None and not a.type.array for a in found)

    # -- bounds

    def _settle(
        self, states: list[Ints], targets: list[Ints], own: list[Ints], edges: list[Ints], accepting: Any
    ) -> None:
        """How long a run at each state can still lead to something: DUR only grows, so a bound on any later step
        holds from the start."""
        reach = np.full(len(accepting), FOREVER)
        base = len(accepting)
        for place in range(len(states), 0, -1):
            base -= len(targets[place])
            mine, behind = states[place - 1], targets[place]
            first = int(behind[:, STATE].min()) if len(behind) else 0
            onward = np.full(len(mine), -1)
            ends = np.minimum(edges[place - 1], reach[base : base + len(behind)])
            np.maximum.at(onward, behind[:, STATE] - first, ends)
            mine[:, BOUND] = np.minimum(own[place - 1], onward)
            absent = np.array([c.step is not None and c.step.kind == "ABSENT" for c in self.contexts], np.bool_)
            held = np.where(absent[mine[:, CONTEXT]], FOREVER, mine[:, BOUND])
            furthest = np.full(len(accepting), -1)
            np.maximum.at(furthest, mine[:, ORIGIN], held)
            np.copyto(reach, furthest, where=(furthest >= 0) & ~accepting)


class _Columns:
    """The parts of predicates, by column."""

    def __init__(self, count: int) -> None:
        self.slot, self.equality = np.full(count, -1), np.full(count, -1)
        self.dynamic, self.joint = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.bound = np.full(count, FOREVER)


def _bounded(bound: int) -> Node:
    """The bound on DUR as a predicate again."""
    return TRUE if bound == FOREVER else ast.Compare("<=", ast.Attribute((DUR,)), ast.Literal(bound))
