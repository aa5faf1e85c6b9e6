"""Automata: spines to states with forward, filter and rebind edges, merged from the start on (the paper's section 3).

A *state* waits for the right operand of one NEXT, FOLD or ABSENT. Its filter edge is theta, negated; a FOLD has a
rebind edge with its keep predicate; each forward edge carries the FILTER around the step and leads to a *target*, where
runs are accepted and wait in the states of the steps that follow. Subscriptions that agree from their start on share
states and targets, so the automata of a level are one DAG.

Each of the paper's optimisations can be switched off, for its figure 7 and for tests: without `merge` every
subscription has states of its own; without `an`, `ai` or `fr` the static part of a predicate, or the equality, is
decided run by run with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from headgate.language import ast
from headgate.language.ast import DUR, TRUE, Node
from headgate.predicates.rows import Decided
from headgate.schema import Path
from headgate.sequences.algebra import is_late
from headgate.sequences.parameterized import plain
from headgate.sequences.predicates import FOREVER, Equality, event_paths, parts, refer
from headgate.sequences.spine import Accumulator, Source, Spine, Step, conjunction

QUOTA = 1_000_000
"""The most runs one state may hold, unless a subscription says otherwise."""


@dataclass(frozen=True, slots=True)
class Options:
    merge: bool = True
    an: bool = True
    ai: bool = True
    fr: bool = True
    kernel: bool = True
    """If not, all subscriptions take the slower path, as explanations and the tests of the stepper do."""


@dataclass(frozen=True, slots=True)
class Predicate:
    """A static predicate of the level: a filter on events of one of its streams."""

    stream: int
    body: Node
    missing: str


class Slots:
    """The static predicates of a level, each once. `Hits` of the static pass name them by number."""

    def __init__(self) -> None:
        self.predicates: list[Predicate] = []
        self._numbers: dict[tuple[int, Node, str], int] = {}

    def ask(self, stream: int, node: Node, missing: str) -> int:
        """-1 for what every event satisfies."""
        if missing != "total" and (node is TRUE or node == TRUE):
            return -1
        key = (stream, node, missing)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.predicates)
            self.predicates.append(Predicate(stream, event_paths(node), missing))
        return number


@dataclass(eq=False, slots=True)
class Edge:
    slot: int
    dynamic: Node
    target: Target
    bound: int = FOREVER
    text: Node = TRUE
    """The predicate as it was, for explanations."""
    joint: Node = TRUE
    """What operators and graphs decide about the run and the event together."""


@dataclass(eq=False, slots=True)
class State:
    number: int
    origin: Target
    step: Step
    place: int
    stream: int
    missing: str
    quota: int
    slot: int
    theta: Node
    equality: Equality | None
    own_bound: int
    keep_slot: int
    keep: Node
    bound: int = FOREVER
    joint: Node = TRUE
    keep_joint: Node = TRUE
    edges: dict[Node, Edge] = field(default_factory=dict)

    @property
    def group(self) -> tuple[int, int, Path | None]:
        """Runs with equal groups are affected by the same events, as far as the indexes can tell."""
        return self.stream, self.slot, None if self.equality is None else self.equality.incoming


@dataclass(eq=False, slots=True)
class Target:
    """Where forward edges lead. `sources` are the primaries bound here and `streams` the numbers of what they read;
    `folds` are the accumulators by place."""

    number: int
    place: int
    origin: State | None
    streams: tuple[int, ...]
    after: Node
    sources: tuple[Source, ...]
    folds: tuple[tuple[int, tuple[Accumulator, ...]], ...]
    owner: object
    states: dict[object, State] = field(default_factory=dict)
    accepts: list[int] = field(default_factory=list)
    entry: Edge | None = None
    """The edge from the start, of a target that has one."""


@dataclass(eq=False)
class Automaton:
    """The merged automata of one level."""

    slots: Slots = field(default_factory=Slots)
    options: Options = field(default_factory=Options)
    states: list[State] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    starts: dict[object, Edge] = field(default_factory=dict)
    _steps: dict[tuple[object, ...], tuple[Step, object]] = field(default_factory=dict)
    """By the identity of its parts: what a step is besides its predicates, as the key of a state has it."""
    _keys: dict[object, object] = field(default_factory=dict)

    def _step_key(self, step: Step) -> object:
        """The same object for steps that differ in predicates alone: aggregates are trees, which take long to hash."""
        own = (step.kind, id(step.accumulators), id(step.starts), step.within)
        known = self._steps.get(own)
        if known is None:
            key = (step.kind, step.accumulators, tuple(sorted(step.starts.items())), step.within)
            known = self._steps[own] = step, self._keys.setdefault(key, len(self._keys))
        return known[1]

    def add(
        self, number: int, spine: Spine, streams: Sequence[int], missing: str = "null", quota: int = QUOTA
    ) -> Target:
        """Enters a spine whose primaries read `streams`; `number` is accepted where it ends."""
        owner: object = None if self.options.merge else number
        target = self._start(spine, streams[0], missing, owner)
        for place, step in enumerate(spine.steps, start=1):
            state = self._state(target, step, streams[place], missing, quota, owner)
            target = self._forward(state, step, missing, owner)
        target.accepts.append(number)
        return target

    def _start(self, spine: Spine, stream: int, missing: str, owner: object) -> Target:
        mode = self._mode(spine.start, missing)
        key = (stream, spine.start.where, mode, owner)
        edge = self.starts.get(key)
        if edge is None:
            found = parts(spine.start.where, 0, missing)
            slot, dynamic = self._decide(found.static, found.dynamic, 0, stream, mode, indexed=self.options.fr)
            target = Target(len(self.targets), 0, None, (stream,), spine.start.where, (spine.start,), (), owner)
            self.targets.append(target)
            edge = self.starts[key] = Edge(slot, dynamic, target, text=spine.start.where)
            target.entry = edge
        return edge.target

    def _mode(self, source: Source, missing: str) -> str:
        """`total` is about events of declared streams; what is derived has no missing attributes to be refused for."""
        return "null" if missing == "total" and not isinstance(source.origin, str) else missing

    def _decide(
        self,
        static: Node,
        dynamic: Node,
        place: int,
        stream: int,
        missing: str,
        *,
        indexed: bool,
        nothing_comes_in: bool = False,
    ) -> tuple[int, Node]:
        """The slot of the static part and the predicate that is left to decide run by run. Nothing comes in when ABSENT
        comes out, so nothing is static there."""
        if static is TRUE and dynamic is TRUE and missing != "total":
            return -1, TRUE
        slot = -1
        if (indexed or missing == "default" or is_late(static)) and not nothing_comes_in:
            slot = self.slots.ask(stream, static, missing)
        else:
            dynamic = conjunction((plain(static), dynamic))
            if missing == "total" and not nothing_comes_in:
                slot = self.slots.ask(stream, TRUE, missing)
                dynamic = conjunction((Decided(slot, slot), dynamic)) if slot >= 0 else dynamic
                slot = -1
        mode = "null" if missing in ("total", "strict") else missing
        if dynamic is TRUE or dynamic == TRUE:
            return slot, TRUE
        return slot, refer(dynamic, place, lambda node: self.slots.ask(stream, node, mode))

    def _state(self, origin: Target, step: Step, stream: int, missing: str, quota: int, owner: object) -> State:
        place = origin.place + 1
        mode = self._mode(step.source, missing)
        key = (self._step_key(step), stream, step.theta, step.keep, mode, quota, owner)
        state = origin.states.get(key)
        if state is not None:
            return state
        theta = parts(step.theta, place, missing, keyed=self.options.ai)
        if theta.equality is not None and not _indexable(theta.equality, step, origin):
            theta = parts(step.theta, place, missing)
        dynamic = theta.dynamic
        if step.kind == "ABSENT":
            # Its runs are not collected when DUR has grown too long: they come out.
            dynamic = conjunction((dynamic, _bounded(theta.bound)))
        slot, dynamic = self._decide(theta.static, dynamic, place, stream, mode, indexed=self.options.an)
        keep = parts(step.keep, place, missing)
        keep_mode = "null" if mode == "total" else mode
        keep_slot, keep_dynamic = self._decide(
            keep.static, keep.dynamic, place, stream, keep_mode, indexed=self.options.fr
        )
        state = State(
            len(self.states), origin, step, place, stream, missing, quota, slot, dynamic, theta.equality,
            min(theta.bound, keep.bound), keep_slot, keep_dynamic, joint=theta.joint, keep_joint=keep.joint,
        )  # fmt: skip
        origin.states[key] = state
        self.states.append(state)
        return state

    def _forward(self, state: State, step: Step, missing: str, owner: object) -> Target:
        edge = state.edges.get(step.after)
        if edge is not None:
            return edge.target
        mode = "null" if missing == "total" else missing
        found = parts(step.after, state.place, missing)
        dynamic = found.dynamic
        if found.bound != FOREVER:
            dynamic = conjunction((dynamic, _bounded(found.bound)))
        absent = step.kind == "ABSENT"
        slot, dynamic = self._decide(
            found.static, dynamic, state.place, state.stream, mode, indexed=self.options.fr, nothing_comes_in=absent
        )
        above = state.origin
        folds = above.folds
        if step.accumulators:
            folds = (*folds, (state.place, step.accumulators))
        target = Target(
            len(self.targets), state.place, state, (*above.streams, state.stream), step.after,
            (*above.sources, step.source), folds, owner,
        )  # fmt: skip
        self.targets.append(target)
        state.edges[step.after] = Edge(slot, dynamic, target, found.bound, step.after, found.joint)
        return target

    def settle_bounds(self) -> None:
        """How long a run at each state can still lead to something: DUR only grows, so a bound on any later step
        holds from the start."""
        reach: dict[int, int] = {}
        for target in reversed(self.targets):
            for state in target.states.values():
                onward = max((min(e.bound, reach[e.target.number]) for e in state.edges.values()), default=FOREVER)
                state.bound = min(state.own_bound, onward)
            held = [s.bound if s.step.kind != "ABSENT" else FOREVER for s in target.states.values()]
            reach[target.number] = FOREVER if target.accepts or not held else max(held)


def _bounded(bound: int) -> Node:
    """The bound on DUR as a predicate again: another edge of the state may allow a longer run."""
    return TRUE if bound == FOREVER else ast.Compare("<=", ast.Attribute((DUR,)), ast.Literal(bound))


def _indexable(equality: Equality, step: Step, origin: Target) -> bool:
    """The AI index holds values of events only, of one type, and no arrays, on which equality is ANY."""
    start = step.starts.get(equality.held[1:]) if equality.held[0] == "$" else equality.held
    if start is not None and start[0].startswith("@"):
        return False
    sources = [(step.source, equality.incoming)]
    if equality.held[0] == "$":
        sources.append((step.source, equality.held[1:]))
    if start is not None:
        sources.append((origin.sources[int(start[0][1:])], start[1:]))
    found = [source.schema.get(path) for source, path in sources]
    return all(a is not None and a.type is not None and not a.type.array for a in found)


def path_of(target: Target) -> Iterator[State]:
    """The states from the start to a target."""
    above: list[State] = []
    at: Target | None = target
    while at is not None and at.origin is not None:
        above.append(at.origin)
        at = at.origin.origin
    return reversed(above)


def slots_of(target: Target) -> set[int]:
    """The static predicates on the way to a target."""
    states = list(path_of(target))
    targets = [s.origin for s in states] + [target]
    edges = [t.entry if t.origin is None else t.origin.edges[t.after] for t in targets]
    nodes = [n for s in states for n in (s.theta, s.keep)] + [e.dynamic for e in edges if e is not None]
    inside = [n for node in nodes for n in ast.walk(node) if isinstance(n, Decided)]
    return {
        *(s.slot for s in states),
        *(s.keep_slot for s in states),
        *(e.slot for e in edges if e is not None),
        *(n.yes for n in inside),
        *(n.no for n in inside),
    }
