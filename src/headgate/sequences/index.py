"""Automata to tables: programs for dynamic predicates, columns for attributes, groups, and what else the kernel reads.

Groups are the AN and AI index: all states whose theta has the same static part and compares the same attribute of the
incoming event. Edges of a state are sorted by slot, so that the kernel can look hits up among them (FR index).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from headgate.language.ast import Path
from headgate.predicates.programs.compiler import TEXT, Instruction, Unsupported, is_float, sort_of
from headgate.schema import Schema, Type
from headgate.sequences import merging, tables
from headgate.sequences.aggregates import WIDTH
from headgate.sequences.distinct import RowNumbers, distinct, inverse
from headgate.sequences.merging import Context, Folds, MergedAutomata, Merger
from headgate.sequences.parameterized import plain
from headgate.sequences.predicate_table import PredicateTable
from headgate.sequences.predicates import FOREVER, Equality
from headgate.sequences.producers import Producers
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


class Programs:
    """Compiles predicates once each, and says why one cannot be compiled."""

    def __init__(self, layout: Layout, merger: Merger, predicates: PredicateTable) -> None:
        self.layout = layout
        self._contexts = merger.contexts
        self._predicates = predicates
        self._known: dict[tuple[int, int], list[Instruction] | str] = {}
        self._accumulators: dict[int, list[tuple[Accumulator, list[list[Instruction] | None]]] | str] = {}

    def troubles(self, merged: MergedAutomata, producers: Producers) -> dict[int, str]:
        """The producers that need the slower path, with the reason."""
        default = np.array([kind.missing == "default" for kind in producers.kinds], np.bool_)[producers.kind]
        reasons: list[str] = []
        of_target = np.full(len(merged.targets), -1)

        def first_of(before: Ints, then: Ints) -> Ints:
            return np.where(before >= 0, before, then)

        def reason(text: object) -> int:
            if not isinstance(text, str):
                return -1
            reasons.append(text)
            return len(reasons) - 1

        def of_programs(rows: Ints, column: int) -> Ints:
            return each(lambda p, c: reason(self.predicate(p, c)), rows[:, column], rows[:, merging.CONTEXT])

        joint = reason("an operator or GRAPH that looks at the run")
        in_default = reason("a dynamic predicate in `default` mode")
        states, targets = merged.states, merged.targets
        asking = (states[:, merging.JOINT] > 0) | (states[:, merging.KEEP_JOINT] > 0)
        dynamic = ((states[:, merging.THETA] > 0) | (states[:, merging.KEEP] > 0)) & default[states[:, merging.EXAMPLE]]
        of_state = np.where(asking, joint, np.where(dynamic, in_default, -1))
        of_state = first_of(of_state, of_programs(states, merging.THETA))
        of_state = first_of(of_state, of_programs(states, merging.KEEP))
        context = states[:, merging.CONTEXT]
        of_state = first_of(of_state, each(lambda c, _: reason(self.accumulators(c)), context, context))
        dynamic = (
            (targets[:, merging.STATE] >= 0) & (targets[:, merging.DYNAMIC] > 0) & default[targets[:, merging.EXAMPLE]]
        )
        own = np.where(targets[:, merging.JOINT] > 0, joint, np.where(dynamic, in_default, -1))
        own = first_of(own, of_programs(targets, merging.DYNAMIC))
        for place in range(int(targets[:, merging.PLACE].max(initial=0)) + 1):
            here = np.flatnonzero(targets[:, merging.PLACE] == place)
            above = targets[here, merging.STATE]
            before = np.full(len(here), -1)
            if place:
                before = first_of(of_target[states[above, merging.ORIGIN]], of_state[above])
            of_target[here] = first_of(before, own[here])
        wrong = np.repeat(of_target, np.diff(merged.accept_from))
        return {int(p): reasons[w] for p, w in zip(merged.accepts, wrong, strict=True) if w >= 0}

    def predicate(self, number: int, context: int) -> list[Instruction] | str | None:
        if number == 0:
            return None
        key = (number, context)
        found = self._known.get(key)
        if found is None:
            node = plain(self._predicates.node(number))
            try:
                found = compile_program(node, self._place(self._contexts[context]))
            except Unsupported as reason:
                found = str(reason)
            self._known[key] = found
        return found

    def accumulators(self, context: int) -> list[tuple[Accumulator, list[list[Instruction] | None]]] | str:
        """The aggregates of a step, each with the programs of its operand and of its start."""
        found = self._accumulators.get(context)
        if found is None:
            try:
                found = self._aggregates(self._contexts[context])
            except Unsupported as reason:
                found = str(reason)
            self._accumulators[context] = found
        return found

    def _aggregates(self, context: Context) -> list[tuple[Accumulator, list[list[Instruction] | None]]]:
        assert context.step is not None
        made = []
        for a in context.step.accumulators:
            if a.function not in FUNCTIONS:
                raise Unsupported(a.function)
            if a.operand is not None and sort_of(a.type) == TEXT and a.function in ("MIN", "MAX"):
                raise Unsupported(f"{a.function} of texts")
            place = self._place(context)
            made.append((a, [None if n is None else compile_program(n, place) for n in (a.operand, a.start)]))
        return made

    def _place(self, context: Context) -> Place:
        def column(place: int, path: Path) -> tuple[int, Type | None]:
            return self.layout.column(context.streams[place], path)

        def aggregate(place: int, name: str) -> tuple[int, str, Type | None]:
            cell = 0
            for at, accumulators in context.folds:
                for a in accumulators:
                    if at == place and a.name == name:
                        return cell, a.function, a.type
                    cell += 2 * WIDTH[a.function]
            raise AssertionError(f"no aggregate {name} at {place}")

        starts = {} if context.step is None else context.step.starts
        return Place(context.place, column, aggregate, starts.get, self.layout.code)


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


def number(merged: MergedAutomata, merger: Merger, programs: Programs, producers: Producers, streams: int) -> Numbered:
    return _Numbering(merged, merger, programs, producers).build(streams)


class _Numbering:
    def __init__(self, merged: MergedAutomata, merger: Merger, programs: Programs, producers: Producers) -> None:
        self._merged, self._merger, self._programs, self._producers = merged, merger, programs, producers
        self._code: list[Instruction] = []
        self._known: dict[tuple[Instruction, ...], int] = {}

    def build(self, streams: int) -> Numbered:
        states, targets, contexts = self._merged.states, self._merged.targets, self._merger.contexts
        slots = len(self._merger.slots)
        begun = int(np.searchsorted(targets[:, merging.PLACE], 1))
        starts, edges = targets[:begun], targets[begun:]
        waits = np.bincount(states[:, merging.ORIGIN], minlength=len(targets))
        state_from = _offsets(waits)
        edge_from = np.searchsorted(edges[:, merging.STATE], np.arange(len(states) + 1))
        several = np.diff(edge_from) > 1
        fans = np.concatenate([np.zeros(1, np.int64), np.cumsum(waits[begun:])])
        places = int(targets[:, merging.PLACE].max(initial=0)) + 1
        cells = max((width_of(a) for c in contexts for a in [[a for _, own in c.folds for a in own]]), default=0)
        held = each(lambda e, c: self._held(e, c)[0], states[:, merging.EQUALITY], states[:, merging.CONTEXT])
        held_else = each(lambda e, c: self._held(e, c)[1], states[:, merging.EQUALITY], states[:, merging.CONTEXT])
        group, groups = self._groups()
        accs, acc_from = self._accumulators(tables.HANDLES + places)
        steps = [c.step for c in contexts]
        kinds = np.array([0 if s is None else KINDS[s.kind] for s in steps], np.int64)
        within = np.array([0 if s is None else s.within for s in steps], np.int64)
        quotas = np.array([k.quota for k in self._producers.kinds], np.int64)[
            self._producers.kind[states[:, merging.EXAMPLE]]
        ]
        context = states[:, merging.CONTEXT]
        nodes = [
            kinds[context],
            group,
            states[:, merging.BOUND],
            held,
            each(self._program, states[:, merging.THETA], context),
            edge_from[:-1],
            edge_from[1:],
            np.where(several, tables.SEVERAL, edges[edge_from[:-1], merging.SLOT]),
            states[:, merging.PLACE],
            1 + fans[edge_from[1:]] - fans[edge_from[:-1]],
            held_else,
            states[:, merging.KEEP_SLOT],
            each(self._program, states[:, merging.KEEP], context),
            within[context],
            acc_from[context],
            acc_from[context + 1],
        ]
        edge_table = self._edge_table(edges, begun, state_from)
        by_group = _by_slot(groups[:, 1], groups[:, 0], slots, streams)
        by_start = _by_slot(starts[:, merging.SLOT], starts[:, merging.STREAM], slots, streams)
        made = Tables(
            code=np.zeros((0, 5), np.int64),
            nodes=_matrix(nodes),
            quotas=quotas,
            accs=accs,
            edges=edge_table,
            edge_slots=np.ascontiguousarray(edge_table[:, tables.EDGE_SLOT]),
            groups=np.ascontiguousarray(groups[:, 2:]),
            starts=self._edge_table(starts, 0, state_from),
            slots=_matrix([*by_group[0], *by_start[0]]),
            roles=_roles(by_group[0], by_start[0]),
            open_from=by_group[1],
            free_from=by_start[1],
            keyed=bool((groups[:, 2] >= 0).any()),
            least_quota=int(quotas.min(initial=FOREVER)),
            cells_at=tables.HANDLES + places,
            width=-(-(tables.HANDLES + places + cells) // _LINE) * _LINE,
        )
        code = np.array(self._code or [(0, 0, 0, 0, 0)], np.int64)
        return Numbered(made._replace(code=code), self._ends())

    def _ends(self) -> Ends:
        targets = self._merged.targets
        known: dict[Folds, int] = {}
        fold = np.array([known.setdefault(c.folds, len(known)) for c in self._merger.contexts], np.int64)
        return Ends(
            targets[:, merging.PLACE],
            fold[targets[:, merging.CONTEXT]],
            tuple(known),
            self._merged.accept_from,
            self._merged.accepts,
        )

    def _edge_table(self, edges: Ints, first: int, state_from: Ints) -> Ints:
        numbers = np.arange(first, first + len(edges))
        programs = each(self._program, edges[:, merging.DYNAMIC], edges[:, merging.CONTEXT])
        accepts = np.diff(self._merged.accept_from)[numbers]
        return _matrix(
            [edges[:, merging.SLOT], programs, numbers, accepts, state_from[numbers], state_from[numbers + 1]]
        )

    def _program(self, predicate: int, context: int) -> int:
        found = self._programs.predicate(predicate, context)
        assert not isinstance(found, str)
        return self._at(found)

    def _at(self, program: list[Instruction] | None) -> int:
        if program is None:
            return -1
        key = tuple(program)
        at = self._known.get(key)
        if at is None:
            at = self._known[key] = len(self._code)
            self._code += program
        return at

    def _accumulators(self, cells_at: int) -> tuple[Ints, Ints]:
        """The aggregates of all contexts that states have, and where those of each begin."""
        used = set(self._merged.states[:, merging.CONTEXT].tolist())
        rows: list[tuple[int, ...]] = []
        begins = [0]
        for number, context in enumerate(self._merger.contexts):
            cell = cells_at + sum(width_of(own) for place, own in context.folds if place < context.place)
            made = self._programs.accumulators(number) if number in used else []
            assert not isinstance(made, str)
            for a, (operand, start) in made:
                rows.append((FUNCTIONS[a.function], cell, self._at(operand), self._at(start)))
                cell += 2 * WIDTH[a.function]
            begins.append(len(rows))
        return np.array(rows, np.int64).reshape(-1, 4), np.array(begins, np.int64)

    def _groups(self) -> tuple[Ints, Ints]:
        """The group of each state; and of each group its stream, slot, column and how its key is made."""
        states = self._merged.states
        column = each(self._column, states[:, merging.EQUALITY], states[:, merging.STREAM])
        mode = each(self._mode, states[:, merging.EQUALITY], states[:, merging.CONTEXT])
        number, first = distinct(states[:, merging.STREAM], states[:, merging.SLOT], column, mode)
        found = np.stack(
            [states[first, merging.STREAM], states[first, merging.SLOT], column[first], mode[first]], axis=1
        )
        order = merging.waiting_order(found[:, 1], found[:, 0])
        return inverse(order)[number], found[order]

    def _column(self, equality: int, stream: int) -> int:
        if equality < 0:
            return -1
        return self._programs.layout.column(stream, self._merged.equalities[equality].incoming)[0]

    def _mode(self, equality: int, context: int) -> int:
        return 0 if equality < 0 else self._modes(self._merged.equalities[equality], self._merger.contexts[context])[0]

    def _modes(self, equality: Equality, context: Context) -> tuple[int, int, int]:
        """How the keys of the incoming, the held and the first held value are made; see `_key` in the kernel."""
        asked = [(context.place, equality.incoming), *_held_at(equality, context)]
        reals = [is_float(self._programs.layout.column(context.streams[at], path)[1]) for at, path in asked]
        modes = [0 if not r else 1 if all(reals) else 2 for r in reals]
        return modes[0], modes[1], modes[-1]

    def _held(self, equality: int, context: int) -> tuple[int, int]:
        """Where the value lies that theta compares for equality, and where before the first iteration: place, column
        and mode in one number, -1 for nowhere."""
        if equality < 0:
            return -1, -1
        there, known = self._merger.contexts[context], self._merged.equalities[equality]
        packed = []
        for (place, path), mode in zip(_held_at(known, there), self._modes(known, there)[1:], strict=False):
            column = self._programs.layout.column(there.streams[place], path)[0]
            packed.append(place << 32 | column << 2 | mode)
        return packed[0], packed[1] if len(packed) > 1 else -1


def _held_at(equality: Equality, context: Context) -> list[tuple[int, Path]]:
    """The places and paths of the value that the run holds: that of the last iteration, or the one where it starts."""
    held = equality.held
    if held[0] != "$":
        return [(int(held[0][1:]), held[1:])]
    assert context.step is not None
    start = context.step.starts.get(held[1:])
    return [(context.place, held[1:]), *([] if start is None else [(int(start[0][1:]), start[1:])])]


def each(of_pair: Callable[[int, int], int], one: Ints, other: Ints) -> Ints:
    """What a function gives for pairs of numbers, asked once for each that is different."""
    known = RowNumbers(2)
    numbers = known.of(np.stack([one, other], axis=1))
    return np.array([of_pair(a, b) for a, b in known.rows.tolist()], np.int64)[numbers]


def _matrix(columns: Iterable[Ints]) -> Ints:
    return np.ascontiguousarray(np.stack(list(columns), axis=1))


def _offsets(lengths: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def _by_slot(slot: Ints, stream: Ints, slots: int, streams: int) -> tuple[tuple[Ints, Ints], Ints]:
    """Of entries, those first that wait for no slot, by stream, then the others by slot: where those of each slot begin
    and end, and where those of each stream begin that wait for none."""
    open_from = _offsets(np.bincount(stream[slot < 0], minlength=streams))
    offsets = open_from[-1] + _offsets(np.bincount(slot[slot >= 0], minlength=slots))
    return (offsets[:-1], offsets[1:]), open_from


def _roles(groups: tuple[Ints, Ints], starts: tuple[Ints, Ints]) -> Bits:
    return ((groups[1] > groups[0]) + 2 * (starts[1] > starts[0])).astype(np.uint8)
