"""Predicates that operators and graphs decide about a run and the incoming event together.

`NEXT {far($1.place, $2.place)}` cannot be decided when the event comes, only once it meets a run. A pair of the two is a
row: the event's own attributes, and beside them, below RUN, what the predicate reads of the run. Over such rows the
predicate is an ordinary late formula, and the solver that decides those of filters decides it. An operator sees the
incoming event as its event. A call is made once for an event and its argument values, however many runs ask for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.language import ast
from headgate.language.ast import DUR, RUN, TRUE, Node, Path, rewrite
from headgate.schema import Attribute, Kind, Schema, Type
from headgate.sequences.automaton import Automaton, Edge, State
from headgate.sequences.memory import Arrivals, column_of
from headgate.sequences.parameterized import intern
from headgate.sequences.pending import Pending, Trouble
from headgate.sequences.static import Answers, Static, StaticIndex, StaticPredicates
from headgate.sequences.tables import Ints

_BIGINT = Type(Kind.BIGINT)


class Known(Protocol):
    """What a run knows while an event comes in."""

    def attribute(self, path: Path) -> Any: ...


@dataclass(frozen=True, eq=False)
class JointPredicates:
    """Those of one state: theta, keep and the edges that have one, each with its number in the index."""

    index: StaticIndex
    bodies: tuple[tuple[Node, tuple[Edge, ...]], ...]
    """The predicates by number, and the edges that a run may take if one holds."""
    held: Mapping[Path, Type | None]
    """What they read of the run."""

    def number(self, joint: Node) -> int:
        """-1 for a predicate that asks nothing."""
        return next((i for i, (body, _) in enumerate(self.bodies) if body == joint), -1)

    def row_columns(self, runs: Sequence[Known], events: Columns) -> Columns:
        """Pairs as columns: run i beside event i."""
        columns = dict(events.columns)
        for path, kind in self.held.items():
            columns[RUN, *path] = column_of(kind, [run.attribute(path) for run in runs])
        return replace(events, columns=columns)


def joint_predicates(automaton: Automaton, schemas: Sequence[Schema], static: Static) -> dict[int, JointPredicates]:
    """Of each state that has some, by its number; `schemas` are those of the level's streams."""
    found = {}
    for state in automaton.states:
        every = tuple(state.edges)
        asked = [(state.joint, every), (state.keep_joint, every), *((e.joint, (e,)) for e in every)]
        bodies = {joint: edges for joint, edges in asked if joint != TRUE}
        if bodies:
            found[state.number] = _compile(state, tuple(bodies.items()), schemas, static)
    return found


def _compile(
    state: State, bodies: tuple[tuple[Node, tuple[Edge, ...]], ...], schemas: Sequence[Schema], static: Static
) -> JointPredicates:
    incoming = f"#{state.place}"
    paths = dict.fromkeys(n.path for body, _ in bodies for n in ast.walk(body) if isinstance(n, ast.Attribute))
    held = {path: _attribute(path, state, schemas) for path in paths if path[0] != incoming}
    own = schemas[state.stream]
    beside = {(RUN, *path): replace(a, path=(RUN, *path), not_null=False) for path, a in held.items()}
    schema = replace(own, attributes={**own.attributes, **beside})

    def change(n: Node) -> Node | None:
        if not isinstance(n, ast.Attribute):
            return None
        return ast.Attribute(n.path[1:] if n.path[0] == incoming else (RUN, *n.path), at=n.at)

    mode = "default" if state.missing == "default" else "null"
    index = static(schema, [StaticPredicates(intern(rewrite(body, change)), mode) for body, _ in bodies])
    return JointPredicates(index, bodies, {path: a.type for path, a in held.items()})


def _attribute(path: Path, state: State, schemas: Sequence[Schema]) -> Attribute:
    """The type and the DEFAULT of what a run holds under a path."""
    head, rest = path[0], path[1:]
    if path[-1] == DUR:
        return Attribute(path, _BIGINT)
    if head[0] == "@":
        place = int(head[1:]) if head[1:] else state.place
        folds = (*state.origin.folds, (state.place, state.step.accumulators))
        return Attribute(path, next(a.type for at, made in folds if at == place for a in made if a.name == rest[0]))
    stream = state.stream if head == "$" else state.origin.streams[int(head[1:])]
    return schemas[stream].get(rest) or Attribute(path, None)


class Pair(Protocol):
    """A run and an event that may move it; `answers` are those of joint predicates, by number."""

    @property
    def state(self) -> State: ...

    @property
    def view(self) -> Known: ...

    @property
    def event(self) -> int: ...

    @property
    def answers(self) -> dict[int, bool]: ...


class Pairs:
    """Decides joint predicates on the events of one batch of a level; a handle numbers an event in the memory."""

    def __init__(
        self,
        predicates: Mapping[int, JointPredicates],
        first: int,
        parts: Sequence[tuple[Arrivals, Ints]],
        pending: Pending,
    ) -> None:
        """`parts` are the events of the batch with their places behind the handle `first`."""
        self._predicates = predicates
        self._first = first
        self._parts = parts
        self._pending = pending
        self._columns: dict[int, Columns] = {}
        self._answered: dict[int, Answers] = {}
        self._troubles: set[tuple[int, int, str]] = set()
        self._home = np.zeros((2, sum(len(a) for a, _ in parts)), np.int64)
        for number, (arrivals, places) in enumerate(parts):
            self._home[0, places], self._home[1, places] = number, np.arange(len(arrivals))

    def ask(self, waiting: Sequence[tuple[Pair, Sequence[int]]]) -> None:
        """Enters the answers to these predicates, by number, into their pairs."""
        groups: dict[tuple[int, int], list[tuple[Pair, Sequence[int]]]] = {}
        for pair, numbers in waiting:
            part = int(self._home[0, pair.event - self._first])
            groups.setdefault((pair.state.number, part), []).append((pair, numbers))
        for (state, part), asked in groups.items():
            self._ask(self._predicates[state], part, asked)

    def _ask(self, predicates: JointPredicates, part: int, asked: Sequence[tuple[Pair, Sequence[int]]]) -> None:
        places = [pair.event - self._first for pair, _ in asked]
        rows = self._home[1, places]
        columns = predicates.row_columns([pair.view for pair, _ in asked], self._events(part).take(rows))
        for pair, numbers in asked:
            pair.answers.update(dict.fromkeys(numbers, False))
        waiting = predicates.index.waiting(columns, [self._calls(place) for place in places])
        assert waiting is not None, "joint predicates ask operators or graphs"
        wanted = {(row, number) for row, (_, numbers) in enumerate(asked) for number in numbers}
        open_ = zip(waiting.pairs.event.tolist(), waiting.pairs.slot.tolist(), strict=True)
        chosen = np.array([pair for pair in open_ if pair in wanted], np.int64).reshape(-1, 2)
        hits = waiting.ask(Hits(chosen[:, 0], chosen[:, 1].astype(np.int32)))
        for row, number in zip(hits.event.tolist(), hits.slot.tolist(), strict=True):
            asked[row][0].answers[number] = True
        for u in (*waiting.pairs.problems, *hits.problems):
            edges = None if u.slot is None else predicates.bodies[u.slot][1]
            self._trouble(places[u.event], part, int(rows[u.event]), edges, u.reason, u.code)

    def _events(self, part: int) -> Columns:
        if part not in self._columns:
            self._columns[part] = self._parts[part][0].with_duration()
        return self._columns[part]

    def _calls(self, place: int) -> Answers:
        """The answers of the calls that were made about an event, by key: the static pass and all pairs share them."""
        if place not in self._answered:
            self._answered[place] = self._pending.answered(place)
        return self._answered[place]

    def _trouble(self, place: int, part: int, row: int, edges: tuple[Edge, ...] | None, reason: str, code: str) -> None:
        """A failure is told once for an event and a predicate, however many runs met it."""
        key = (place, 0 if edges is None else id(edges), reason)
        if key not in self._troubles:
            self._troubles.add(key)
            self._pending.troubles.append(Trouble(self._parts[part][0], row, edges, reason, code))
