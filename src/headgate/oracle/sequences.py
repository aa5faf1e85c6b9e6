"""The reference evaluator of sequences: docs/semantics.md, section 5 on finite sets of events, word for word.

Nothing here steps through time or keeps an automaton: NEXT looks for the least t1 among all later events, FOLD takes
the union of its iterations, ABSENT looks at the whole interval. It is quadratic and worse, and serves as the oracle for
the engine and for users' own tests.

Time has passed an instant once an epoch at or after it is closed, for an event at or before a closed epoch is late.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.graphs.event import EventGraph
from headgate.graphs.rdf import Triple, read
from headgate.language import ast
from headgate.language.ast import DUR, Node, Path
from headgate.oracle.filters import Kleene, truth
from headgate.oracle.graphs import Meaning, bindings
from headgate.oracle.operators import evaluate as evaluate_late
from headgate.schema import Attribute, Kind, Schema, format_path
from headgate.sequences.aggregates import State, accumulate, begin, finish
from headgate.sequences.spine import Merged, Source, Spine, Step, publish_order

Row = Mapping[Path, Any]


@dataclass(frozen=True)
class Asked:
    """Whom predicates may ask: operators by name, and what the names in GRAPH patterns mean."""

    operators: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    meaning: Meaning = field(default_factory=Meaning)
    template: Callable[[Mapping[str, Any]], list[Triple]] | None = None
    """What the streams without a GRAPH column make of an event."""


@dataclass(frozen=True)
class Event:
    """An event of a stream, base or derived. Two events are one if they have the same identity."""

    identity: Hashable
    t0: int
    t1: int
    row: Row = field(compare=False, repr=False)


@dataclass(frozen=True)
class Run:
    """What S1 ;theta S2 ... has bound so far. `states` are the aggregates of the FOLDs, by place."""

    bound: tuple[Event, ...]
    t0: int
    t1: int
    states: tuple[tuple[int, tuple[State, ...]], ...] = ()
    iteration: Event | None = None

    def key(self) -> Hashable:
        states = tuple((place, tuple(map(_comparable, s))) for place, s in self.states if s)
        return self.bound, self.iteration, states, self.t0, self.t1


@dataclass(frozen=True)
class Match:
    """One output row of a subscription: its values by name, and the run that gave it."""

    output: tuple[tuple[str, Any], ...]
    run: Run

    def as_event(self, publisher: str = "") -> Event:
        """As an event of a stream. What two subscriptions PUBLISH is never one event; sides of a UNION may be."""
        columns = tuple((name, _comparable((value,))) for name, value in self.output)
        row: Row = {(name,): value for name, value in self.output}
        return Event((publisher, self.run.key(), columns), self.run.t0, self.run.t1, row)


def matches(
    spine: Spine,
    streams: Mapping[str, Iterable[Event]],
    closed: int,
    missing: str = "null",
    asked: Asked | None = None,
) -> list[Match]:
    """The matches of one pattern over the events of its streams, given that the epochs up to `closed` are closed."""
    return _Evaluation(streams, closed, missing, asked or Asked()).matches(spine)


def matches_of_all(
    spines: Mapping[str, Spine],
    streams: Mapping[str, Iterable[Event]],
    closed: int,
    missing: str = "null",
    asked: Asked | None = None,
) -> dict[str, list[Match]]:
    """The matches of several subscriptions, of which some read what others PUBLISH."""
    known = {name: list(events) for name, events in streams.items()}
    found: dict[str, list[Match]] = {}
    for level in publish_order(spines):
        for name in level:
            found[name] = matches(spines[name], known, closed, missing, asked)
        for name in level:
            published = spines[name].publish
            if published is not None:
                known.setdefault(published, []).extend(m.as_event(name) for m in found[name])
    return found


@dataclass(frozen=True)
class _Here:
    """A step of a spine, with the DEFAULTs of all that its expressions may mention."""

    spine: Spine
    place: int
    schema: Schema

    @property
    def step(self) -> Step:
        return self.spine.steps[self.place - 1]


class _Evaluation:
    def __init__(self, streams: Mapping[str, Iterable[Event]], closed: int, missing: str, asked: Asked) -> None:
        self._streams = streams
        self._closed = closed
        self._missing = missing
        self._asked = asked

    def matches(self, spine: Spine) -> list[Match]:
        runs = [Run((e,), e.t0, e.t1) for e in self.events(spine.start, 0)]
        for place, step in enumerate(spine.steps, start=1):
            here = _Here(spine, place, _everything(spine, place))
            runs = _unique(self._step(runs, here, self.events(step.source, place)))
            runs = [r for r in runs if self._holds(step.after, _row(r, spine), here.schema, place)]
        return [self._output(spine, run) for run in runs]

    def events(self, source: Source, place: int) -> list[Event]:
        """The events of a primary: those of its origin, each once, for which the FILTER over it is TRUE."""
        match source.origin:
            case str(name):
                found = [e for e in self._streams.get(name, ()) if self._visible(e, source.schema)]
            case Spine():
                found = [m.as_event() for m in self.matches(source.origin)]
            case Merged():
                found = self._union(source.origin)
        schema = _canonical(source, place)
        return [e for e in found if self._holds(source.where, _event_row(e, place), schema, place)]

    def _union(self, merged: Merged) -> list[Event]:
        both: dict[Hashable, Event] = {}
        for side in (merged.left, merged.right):
            events = self.events(side.start, 0) if not side.steps and side.publish is None else None
            if events is None or not _plain(side):
                events = [m.as_event() for m in self.matches(side)]
            for e in events:
                both.setdefault(e.identity, e)
        return list(both.values())

    def _visible(self, event: Event, schema: Schema) -> bool:
        return self._missing != "total" or all(event.row.get(a.path) is not None for a in schema)

    def _holds(self, predicate: Node, row: Row, schema: Schema, place: int) -> bool:
        """Operators see the event at `place`, the one that has come in, and GRAPH patterns match its graph."""
        mode = "null" if self._missing == "total" else self._missing
        if not any(isinstance(n, ast.Call | ast.Graph) for n in ast.walk(predicate)):
            return truth(predicate, row, schema, mode) is True
        head = f"#{place}"
        event = {format_path(p[1:]): v for p, v in row.items() if p[0] == head and p[-1] != DUR}
        verdict = evaluate_late(
            predicate, row, schema, self._asked.operators, mode, event=event,
            graphs=lambda graph: self._bindings(graph, row, schema, head, event),
        )  # fmt: skip
        return verdict.matched is True

    def _bindings(
        self, graph: ast.Graph, row: Row, schema: Schema, head: str, event: Mapping[str, Any]
    ) -> list[dict[str, Any]] | None:
        own = [a.path for a in schema if a.path[0] == head and a.type is not None and a.type.kind is Kind.GRAPH]
        if graph.column is None and not own:
            assert self._asked.template is not None, "a GRAPH needs a column or a template"
            return bindings(graph, self._asked.template(event), self._asked.meaning)
        text = row.get(own[0] if graph.column is None else graph.column.path)
        if not isinstance(text, str):
            return None
        triples = list(read(text))
        EventGraph.of(triples)
        return bindings(graph, triples, self._asked.meaning)

    def _step(self, runs: list[Run], here: _Here, events: list[Event]) -> list[Run]:
        match here.step.kind:
            case "NEXT":
                return [_join(run, e) for run in runs for e in self._first(run, here, events)]
            case "FOLD":
                return self._fold(runs, here, events)
        return self._absent(runs, here, events)

    def _candidates(self, run: Run, here: _Here, events: list[Event]) -> list[Event]:
        later = (e for e in events if e.t0 > run.t1)
        return [e for e in later if self._holds(here.step.theta, _braces(run, e, here), here.schema, here.place)]

    def _first(self, run: Run, here: _Here, events: list[Event]) -> list[Event]:
        found = self._candidates(run, here, events)
        least = min((e.t1 for e in found), default=None)
        return [e for e in found if e.t1 == least]

    def _fold(self, runs: list[Run], here: _Here, events: list[Event]) -> list[Run]:
        latest = [_with_states(run, here.place, _begin(run, here)) for run in runs]
        found: list[Run] = []
        while latest:
            following: list[Run] = []
            for run in latest:
                for e in self._first(run, here, events):
                    row = _braces(run, e, here)
                    if self._holds(here.step.keep, row, here.schema, here.place):
                        states = _accumulate(here.step, dict(run.states)[here.place], row)
                        following.append(replace(_with_states(run, here.place, states), iteration=e, t1=e.t1))
            latest = _unique(following)
            found += latest
        return [replace(run, bound=(*run.bound, run.iteration or NOTHING), iteration=None) for run in found]

    def _absent(self, runs: list[Run], here: _Here, events: list[Event]) -> list[Run]:
        found = []
        for run in runs:
            end = run.t1 + here.step.within
            if end <= self._closed and not any(e.t1 <= end for e in self._candidates(run, here, events)):
                found.append(replace(run, t1=end, bound=(*run.bound, NOTHING)))
        return found

    def _output(self, spine: Spine, run: Run) -> Match:
        row = _row(run, spine)
        return Match(tuple((item.name, evaluate(item.expression, row)) for item in spine.items), run)


NOTHING = Event("nothing", 0, 0, {})
"""Stands at the place of what ABSENT waited for."""


def evaluate(expression: Node, row: Row) -> Any:
    """The value of an expression on the row of a run; a condition gives True, False or None."""
    match expression:
        case ast.Attribute(path):
            return row.get(path)
        case ast.Literal() | ast.Instant() | ast.Negate() | ast.Arithmetic() | ast.Function():
            return Kleene(row, None).value(expression)
    return truth(expression, row, Schema("", {}))


def _plain(side: Spine) -> bool:
    """A side of a UNION that is one primary keeps the identity of its events."""
    return side.schema is side.start.schema


def _join(run: Run, event: Event) -> Run:
    return replace(run, bound=(*run.bound, event), t1=event.t1)


def _with_states(run: Run, place: int, states: tuple[State, ...]) -> Run:
    return replace(run, states=(*((p, s) for p, s in run.states if p != place), (place, states)))


def _unique(runs: Iterable[Run]) -> list[Run]:
    return list({run.key(): run for run in runs}.values())


def _begin(run: Run, here: _Here) -> tuple[State, ...]:
    row = _row(run, here.spine)
    return tuple(
        begin(a.function, None if a.start is None else evaluate(a.start, row), star=a.operand is None)
        for a in here.step.accumulators
    )


def _accumulate(step: Step, states: Sequence[State], row: Row) -> tuple[State, ...]:
    return tuple(
        accumulate(a.function, s, None if a.operand is None else evaluate(a.operand, row), star=a.operand is None)
        for a, s in zip(step.accumulators, states, strict=True)
    )


def _event_row(event: Event, place: int) -> dict[Path, Any]:
    own = {(f"#{place}", *path): value for path, value in event.row.items()}
    return own | {(f"#{place}", DUR): event.t1 - event.t0 + 1}


def _row(run: Run, spine: Spine) -> dict[Path, Any]:
    """Everything a run knows."""
    row: dict[Path, Any] = {(DUR,): run.t1 - run.t0 + 1}
    for place, event in enumerate(run.bound):
        row |= _event_row(event, place)
    for place, states in run.states:
        for a, s in zip(spine.steps[place - 1].accumulators, states, strict=True):
            row[f"@{place}", a.name] = finish(a.function, s)
    return row


def _braces(run: Run, event: Event, here: _Here) -> dict[Path, Any]:
    """Everything that the braces of a step may mention: the run, the incoming event, the last iteration."""
    row = _row(run, here.spine) | _event_row(event, here.place)
    row[DUR,] = event.t1 - run.t0 + 1
    for a in here.step.accumulators:
        row["@", a.name] = row.get((f"@{here.place}", a.name))
    for path, start in here.step.starts.items():
        if run.iteration is not None:
            row["$", *path] = run.iteration.row.get(path)
        else:
            row["$", *path] = None if start is None else row.get(start)
    return row


def _canonical(source: Source, place: int) -> Schema:
    return Schema("", {(f"#{place}", *a.path): replace(a, path=(f"#{place}", *a.path)) for a in source.schema})


def _everything(spine: Spine, place: int) -> Schema:
    found: dict[Path, Attribute] = {}
    for number, source in enumerate((spine.start, *(s.source for s in spine.steps))):
        found.update(_canonical(source, number).attributes)
    for a in spine.steps[place - 1].source.schema:
        found["$", *a.path] = replace(a, path=("$", *a.path))
    return Schema("", found)


def _comparable(state: State) -> Hashable:
    """NaN equals NaN, and 1 is not 1.0 or TRUE."""
    return tuple(
        (type(v).__name__, repr(v) if isinstance(v, list | tuple | dict) else "NaN" if v != v else v) for v in state
    )
