"""Automata of patterns: states with forward, filter and rebind edges (the paper's section 3).

A *state* waits for the right operand of one NEXT, FOLD or ABSENT. Its filter edge is theta, negated; a FOLD has a
rebind edge with its keep predicate; each forward edge carries the FILTER around the step and leads to a *target*, where
runs are accepted and wait in the states of the steps that follow. Subscriptions that agree from their start on share
states and targets, so the automata of a level are one DAG.

The DAG is made as columns (`merging.py`), and the kernel runs on columns; the objects here are made of them for what
looks at states one by one: explanations, reports of trouble, and the slower path.

Each of the paper's optimisations can be switched off, for its figure 7 and for tests: without `merge` every
subscription has states of its own; without `an`, `ai` or `fr` the static part of a predicate, or the equality, is
decided run by run with the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates.rows import Decided
from headgate.sequences.predicates import Equality
from headgate.sequences.spine import Accumulator, Source, Step

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


@dataclass(eq=False, slots=True)
class Edge:
    slot: int
    dynamic: Node
    target: Target
    joint: Node
    """What operators and graphs decide about the run and the event together."""


@dataclass(eq=False, slots=True)
class State:
    number: int
    origin: Target
    step: Step
    stream: int
    missing: str
    quota: int
    slot: int
    theta: Node
    equality: Equality | None
    keep_slot: int
    keep: Node
    bound: int
    joint: Node
    keep_joint: Node
    edges: list[Edge] = field(default_factory=list)

    @property
    def place(self) -> int:
        return self.origin.place + 1


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
    accepts: list[int]
    states: list[State] = field(default_factory=list)


@dataclass(eq=False)
class Automaton:
    """The merged automata of one level."""

    states: list[State] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    """The one that leads to each target."""

    @property
    def starts(self) -> list[Edge]:
        """The edges that begin a run."""
        return [edge for edge in self.edges if edge.target.origin is None]


def path_of(target: Target) -> Iterator[State]:
    """The states from the start to a target."""
    above: list[State] = []
    at: Target | None = target
    while at is not None and at.origin is not None:
        above.append(at.origin)
        at = at.origin.origin
    return reversed(above)


def slots_of(automaton: Automaton, target: Target) -> set[int]:
    """The static predicates on the way to a target."""
    states = list(path_of(target))
    edges = [automaton.edges[t.number] for t in (*(s.origin for s in states), target)]
    nodes = [n for s in states for n in (s.theta, s.keep)] + [e.dynamic for e in edges]
    inside = [n for node in nodes for n in ast.walk(node) if isinstance(n, Decided)]
    return {
        *(s.slot for s in states),
        *(s.keep_slot for s in states),
        *(e.slot for e in edges),
        *(n.yes for n in inside),
        *(n.no for n in inside),
    }
