"""Automata one run at a time, in plain Python: the slower path, and the twin of the kernels.

It follows the same rules as `kernels.py` on the same automata and the same memory, and can decide whatever an
expression may say. Subscriptions with a predicate or aggregate that the kernel cannot do are run here; so is an
explanation, which asks for every decision through `watch`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from headgate.language.ast import DUR, Node, Path
from headgate.predicates.rows import Truth, Value, compile_truth, compile_value
from headgate.sequences.aggregates import State as Accumulated
from headgate.sequences.aggregates import accumulate, begin, finish
from headgate.sequences.automaton import Automaton, Edge, State, Target
from headgate.sequences.memory import Memory
from headgate.sequences.pending.pairs import JointPredicates, Pairs
from headgate.sequences.spine import Accumulator

States = tuple[tuple[Accumulated, ...], ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Run:
    """`handles` are the bound events by place, -1 for none; `states` the aggregates of the FOLDs so far, in order."""

    t0: int
    t1: int
    handles: tuple[int, ...]
    states: States
    born: int = field(default=0, compare=False)

    def key(self) -> tuple[Any, ...]:
        return self.t0, self.t1, self.handles, tuple(tuple(map(_comparable, s)) for s in self.states)


@dataclass(frozen=True)
class Accepted:
    target: Target
    run: Run


Watch = Callable[[str, State, Run, int], None]
"""Hears what happens to runs: the word, the state, the run, the handle of the event or -1."""


@dataclass
class View:
    """What a run knows while an event comes in: `place` is that of the step, `new` its aggregates after the event."""

    memory: Memory
    run: Run
    folds: Sequence[tuple[int, tuple[Accumulator, ...]]]
    place: int = -1
    event: int = -1
    now: int = 0
    hits: Collection[int] = frozenset()
    starts: Mapping[Path, Path | None] = field(default_factory=dict)
    new: States | None = None

    def attribute(self, path: Path) -> Any:
        head = path[0]
        if path == (DUR,):
            return self.now - self.run.t0 + 1
        if head == "@":
            return self._aggregate(self.place, path[1], self.run.states)
        if head[0] == "@":
            place = int(head[1:])
            fresh = self.new if place == self.place and self.new is not None else self.run.states
            return self._aggregate(place, path[1], fresh)
        if head == "$":
            handle = self.run.handles[self.place]
            if handle >= 0:
                return self.memory.get(handle, path[1:])
            start = self.starts.get(path[1:])
            return None if start is None else self.attribute(start)
        place = int(head[1:])
        handle = self.event if place == self.place else self.run.handles[place]
        if path[1:] == (DUR,):
            return int(self.memory.t1[handle] - self.memory.t0[handle] + 1)
        return self.memory.get(handle, path[1:])

    def _aggregate(self, place: int, name: str, states: States) -> Any:
        for (at, accumulators), known in zip(self.folds, states, strict=False):
            if at == place:
                for a, s in zip(accumulators, known, strict=True):
                    if a.name == name:
                        return finish(a.function, s)
        return None

    def decided(self, slot: int) -> bool:
        return slot in self.hits

    def variable(self, name: str) -> Any:
        raise AssertionError(f"nothing binds ?{name} in a run")


@dataclass(frozen=True)
class _Test:
    """A predicate by its parts, in the order in which they are decided: what is cheap, the slot of what is static, which
    may wait for an operator, and the number of what is joint."""

    dynamic: Truth
    slot: int
    joint: int


@dataclass
class _Compiled:
    theta: _Test
    keep: _Test
    edges: list[tuple[Edge, _Test]]
    operands: list[Value | None]
    begins: list[Value | None]
    folds: list[tuple[int, tuple[Accumulator, ...]]]


@dataclass
class _Pair:
    """A run and an event that is later: whether theta holds, and where the run then goes, as far as it is known."""

    state: State
    run: Run
    view: View
    event: int
    answers: dict[int, bool] = field(default_factory=dict)
    affected: bool = False
    moves: list[tuple[State | Target, Run]] = field(default_factory=list)


class Stepper:
    def __init__(
        self,
        automaton: Automaton,
        memory: Memory,
        joint: Mapping[int, JointPredicates] | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._memory = memory
        self.watch = watch
        self._automaton = automaton
        self._compiled = {s.number: self._compile(s, (joint or {}).get(s.number)) for s in automaton.states}
        self._waiting: dict[tuple[int, int], list[State]] = {}
        for s in automaton.states:
            self._waiting.setdefault((s.stream, s.slot), []).append(s)
        self._starts: dict[tuple[int, int], list[tuple[Edge, Truth]]] = {}
        for edge in automaton.starts:
            self._starts.setdefault((edge.target.streams[0], edge.slot), []).append((edge, compile_truth(edge.dynamic)))
        self.runs: dict[int, dict[int, Run]] = {s.number: {} for s in automaton.states}
        self._deadlines: list[tuple[int, int, int]] = []
        self._serial = 0
        self.evaluated = 0
        self.dropped: dict[int, int] = {}

    def _compile(self, state: State, joint: JointPredicates | None) -> _Compiled:
        defaults = _defaults(state) if state.missing == "default" else None

        def test(dynamic: Node, slot: int, asked: Node) -> _Test:
            return _Test(compile_truth(dynamic, defaults), slot, -1 if joint is None else joint.number(asked))

        accumulators = state.step.accumulators
        return _Compiled(
            test(state.theta, state.slot, state.joint),
            test(state.keep, state.keep_slot, state.keep_joint),
            [(edge, test(edge.dynamic, edge.slot, edge.joint)) for edge in state.edges],
            [None if a.operand is None else compile_value(a.operand) for a in accumulators],
            [None if a.start is None else compile_value(a.start) for a in accumulators],
            [*state.origin.folds, (state.place, accumulators)] if accumulators else list(state.origin.folds),
        )

    # -- time

    def advance(
        self, epochs: Iterable[tuple[int, Sequence[tuple[int, Collection[int]]]]], closed: int, pairs: Pairs
    ) -> Iterator[Accepted]:
        """Epochs in order, each a time and its events with the slots that hold; then the deadlines up to `closed`.
        `pairs` decides what is joint."""
        for now, events in epochs:
            yield from self._deadlines_until(now - 1)
            yield from self._epoch(now, events, pairs)
            yield from self._deadlines_until(now)
        yield from self._deadlines_until(closed)

    def _deadlines_until(self, limit: int) -> Iterator[Accepted]:
        while self._deadlines and self._deadlines[0][0] <= limit:
            due, number, born = heapq.heappop(self._deadlines)
            run = self.runs[number].pop(born, None)
            if run is None:
                continue
            state = self._automaton.states[number]
            self._tell("came out: what it waited for did not happen", state, run, -1)
            view = self._view(state, run, -1, due, frozenset())
            out = replace(run, t1=due, handles=(*run.handles[: state.place], -1))
            for edge, test in self._compiled[number].edges:
                if test.dynamic(view) is True:
                    yield from self._arrive(edge.target, out, due)

    def _epoch(self, now: int, events: Sequence[tuple[int, Collection[int]]], pairs: Pairs) -> Iterator[Accepted]:
        met = [list(self._meet(now, event, hits)) for event, hits in events]
        waiting = [(pair, asked) for group in met for pair in group if (asked := self._settle(pair, now))]
        while waiting:
            pairs.ask(waiting)
            waiting = [(pair, asked) for pair, _ in waiting if (asked := self._settle(pair, now))]
        fresh: dict[tuple[int, Any], tuple[State, Run]] = {}
        accepted: dict[tuple[int, Any], Accepted] = {}
        affected = [pair for group in met for pair in group if pair.affected]
        for (event, hits), group in zip(events, met, strict=True):
            for pair in group:
                if pair.affected:
                    for target, made in pair.moves:
                        self._offer(target, made, now, fresh, accepted)
                    what = "moved on" if pair.moves else "died: the event fits theta and no edge"
                    self._tell(what, pair.state, pair.run, event)
            for edge, test in self._of_event(self._starts, event, hits):
                run = Run(int(self._memory.t0[event]), now, (event,), ())
                if test(View(self._memory, run, (), 0, event, now, hits)) is True and (
                    edge.slot < 0 or edge.slot in hits
                ):
                    self._offer(edge.target, run, now, fresh, accepted)
        for pair in affected:
            self.runs[pair.state.number].pop(pair.run.born, None)
        for state, run in fresh.values():
            self._install(state, run)
        yield from accepted.values()

    def _of_event(self, known: Mapping[tuple[int, int], Sequence[T]], event: int, hits: Collection[int]) -> Iterator[T]:
        """What waits for the stream of an event, with no static predicate or with one that may hold."""
        stream = int(self._memory.stream[event])
        return (one for slot in (-1, *hits) for one in known.get((stream, slot), ()))

    def _meet(self, now: int, event: int, hits: Collection[int]) -> Iterator[_Pair]:
        """The runs that see an event; those that are past their bound go."""
        for state in self._of_event(self._waiting, event, hits):
            for born, run in list(self.runs[state.number].items()):
                if state.step.kind != "ABSENT" and now - run.t0 + 1 > state.bound:
                    del self.runs[state.number][born]
                    self._tell("expired: no event can come within its DUR any more", state, run, event)
                elif self._memory.t0[event] > run.t1:
                    yield _Pair(state, run, self._view(state, run, event, now, hits), event)

    def _settle(self, pair: _Pair, now: int) -> list[int]:
        """Decides a pair as far as its answers go; the joint predicates whose answers it needs next."""
        state, run, view = pair.state, pair.run, pair.view
        compiled = self._compiled[state.number]
        view.new = None
        self.evaluated += 1
        theta = _keys_agree(state, view) and _holds(compiled.theta, pair)
        if theta is None:
            return [compiled.theta.joint]
        pair.affected = theta
        if not theta or state.step.kind == "ABSENT":
            return []
        states = run.states
        if state.step.kind == "FOLD":
            keep = _holds(compiled.keep, pair)
            if not keep:
                return [compiled.keep.joint] if keep is None else []
            if state.step.accumulators:
                states = (*states[:-1], self._accumulated(state, view, states[-1]))
        view.new = states
        forward = [(edge, test, _holds(test, pair)) for edge, test in compiled.edges]
        asked = [test.joint for _, test, truth in forward if truth is None]
        if not asked:
            made = Run(run.t0, now, (*run.handles[: state.place], pair.event), states)
            pair.moves = [(state, made)] if state.step.kind == "FOLD" else []
            pair.moves += [(edge.target, made) for edge, _, truth in forward if truth]
        return asked

    def _accumulated(self, state: State, view: View, known: tuple[Accumulated, ...]) -> tuple[Accumulated, ...]:
        return tuple(
            accumulate(a.function, s, None if operand is None else operand(view), star=operand is None)
            for a, s, operand in zip(state.step.accumulators, known, self._compiled[state.number].operands, strict=True)
        )

    def _offer(
        self,
        to: State | Target,
        run: Run,
        now: int,
        fresh: dict[tuple[int, Any], tuple[State, Run]],
        accepted: dict[tuple[int, Any], Accepted],
    ) -> None:
        """Collects what the epoch gives, each run once."""
        if isinstance(to, State):
            fresh.setdefault((to.number, run.key()), (to, run))
            return
        if to.accepts:
            accepted.setdefault((to.number, run.key()), Accepted(to, run))
        for state in to.states:
            waiting = self._entering(state, run, now)
            fresh.setdefault((state.number, waiting.key()), (state, waiting))

    def _arrive(self, target: Target, run: Run, now: int) -> Iterator[Accepted]:
        if target.accepts:
            yield Accepted(target, run)
        for state in target.states:
            self._install(state, self._entering(state, run, now))

    def _entering(self, state: State, run: Run, now: int) -> Run:
        states = run.states
        if state.step.accumulators:
            view = View(self._memory, run, state.origin.folds, state.place, -1, now, frozenset())
            begun = tuple(
                begin(a.function, None if start is None else start(view), star=a.operand is None)
                for a, start in zip(state.step.accumulators, self._compiled[state.number].begins, strict=True)
            )
            states = (*states, begun)
        return Run(run.t0, run.t1, (*run.handles, -1), states)

    def _view(self, state: State, run: Run, event: int, now: int, hits: Collection[int]) -> View:
        folds = self._compiled[state.number].folds
        return View(self._memory, run, folds, state.place, event, now, hits, state.step.starts)

    def _install(self, state: State, run: Run) -> None:
        if state.step.kind != "ABSENT" and run.t1 + 1 - run.t0 + 1 > state.bound:
            self._tell("expired: no event can come within its DUR any more", state, run, -1)
            return
        self._serial += 1
        runs = self.runs[state.number]
        runs[self._serial] = replace(run, born=self._serial)
        self._tell("waits", state, run, -1)
        if state.step.kind == "ABSENT":
            heapq.heappush(self._deadlines, (run.t1 + state.step.within, state.number, self._serial))
        if len(runs) > state.quota:
            oldest = next(iter(runs))
            self._tell("dropped: the quota of its subscription is used up", state, runs.pop(oldest), -1)
            self.dropped[state.number] = self.dropped.get(state.number, 0) + 1

    def _tell(self, what: str, state: State, run: Run, event: int) -> None:
        if self.watch is not None:
            self.watch(what, state, run, event)

    # -- state

    def copy(self, memory: Memory) -> Stepper:
        """The same runs once more, over a copy of their memory."""
        made = copy(self)
        made._memory = memory
        made.runs = {number: dict(runs) for number, runs in self.runs.items()}
        made._deadlines, made.dropped = list(self._deadlines), dict(self.dropped)
        return made

    def restore(self, state: State, run: Run) -> None:
        self._install(state, run)

    def collect(self, now: int) -> None:
        for state in self._automaton.states:
            if state.step.kind != "ABSENT":
                runs = self.runs[state.number]
                for born in [b for b, r in runs.items() if now + 1 - r.t0 + 1 > state.bound]:
                    del runs[born]

    def handles(self) -> set[int]:
        return {h for runs in self.runs.values() for run in runs.values() for h in run.handles if h >= 0}

    def move(self, moved: Mapping[int, int]) -> None:
        for runs in self.runs.values():
            for born, run in runs.items():
                if any(h in moved for h in run.handles):
                    runs[born] = replace(run, handles=tuple(moved.get(h, h) for h in run.handles))


def _keys_agree(state: State, view: View) -> bool:
    """Whether the values are equal that the AI index compares."""
    equality = state.equality
    if equality is None:
        return True
    here, held = view.attribute((f"#{state.place}", *equality.incoming)), view.attribute(equality.held)
    return here is not None and held is not None and (here == held or (here != here and held != held))


def _holds(test: _Test, pair: _Pair) -> bool | None:
    """None where it waits for the answer to what is joint."""
    view = pair.view
    # A slot that waits for an operator is asked when it is looked for, so that comes after what is cheap.
    if test.dynamic(view) is not True or (test.slot >= 0 and test.slot not in view.hits):
        return False
    return True if test.joint < 0 else pair.answers.get(test.joint)


def _defaults(state: State) -> dict[Path, Any]:
    """What `default` mode puts for missing attributes, under the names that the step's expressions use."""
    found: dict[Path, Any] = {}
    for place, source in enumerate((*state.origin.sources, state.step.source)):
        for a in source.schema:
            if a.default is not None:
                found[f"#{place}", *a.path] = a.default
                if place == state.place:
                    found["$", *a.path] = a.default
    return found


def _comparable(state: Accumulated) -> Any:
    """Equal states have equal futures: NaN is NaN, and 1 is not 1.0."""
    return tuple(
        (type(v).__name__, repr(v) if isinstance(v, list | tuple | dict) else "NaN" if v != v else v) for v in state
    )
