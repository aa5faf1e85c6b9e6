"""What a case must give, by the oracles: every subscription alone, on every event that takes part.

The oracles see the events as they were decoded, for what fits a type is the decoder's business (`tests/events`). Which
attributes a plan reads decides only which events it rejects; the oracles are shown all attributes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import count
from typing import Any

from tests.core.operators import OPERATORS

import headgate as hg
from headgate.events import decode
from headgate.graphs import rdf
from headgate.graphs.event import EventGraph
from headgate.graphs.terms import HOME, TYPE, literal_of
from headgate.language import ast
from headgate.language.ast import Node, Path, Pattern
from headgate.language.parser import parse_body
from headgate.oracle import filters, operators, sequences
from headgate.oracle import graphs as graph_oracle
from headgate.oracle.sequences import NOTHING
from headgate.predicates.times import instant_text
from headgate.predicates.values import Instant, written
from headgate.schema import Kind, Schema
from headgate.sequences.scopes import check_pattern
from headgate.sequences.spine import Spine, publish_order, reads

Row = dict[Path, Any]
Place = tuple[str, int]
"""A stream and the number of an event in it."""
Match = tuple[str, int, str, str]
"""Stream, event, subscription and output, the output in a form that can be compared."""
_CALLED = {o.name: o.function for o in OPERATORS}


@dataclass
class Verdict:
    matches: list[Match] = field(default_factory=list)
    problems: set[tuple[str, int, str]] = field(default_factory=set)
    """(stream, event, subscription) for which no answer can be given: an operator failed."""
    rejected: set[Place] = field(default_factory=set)
    """Events that do not take part."""


def judge(book: hg.Subscriptions, plan: hg.Plan, events: Mapping[str, Sequence[Any]]) -> Verdict:
    verdict = Verdict()
    rows = {stream: _rows(plan, stream, given, verdict) for stream, given in events.items() if stream in plan.schemas}
    spines: dict[str, Spine] = {}
    for name in book:
        entry = book[name]
        body = parse_body(entry.text)
        if isinstance(body, Pattern):
            scoped = check_pattern(body, plan.catalogue)
            assert scoped.spine is not None
            spines[name] = scoped.spine
            continue
        for number, row in rows.get(entry.stream, {}).items():
            _judge_body(verdict, plan, name, body, entry.stream, number, row, entry.missing)
    _judge_sequences(verdict, plan, book, spines, rows)
    verdict.matches.sort()
    return verdict


def _rows(plan: hg.Plan, stream: str, events: Sequence[Any], verdict: Verdict) -> dict[int, Row]:
    """The events of a stream that take part, by number."""
    schema = plan.schemas[stream]
    needs = set(plan.needs(stream)) | set(schema.time)
    if stream in plan.total_streams:
        needs |= set(schema.attributes)
    part = decode(events, schema, needs)
    verdict.rejected |= {(stream, r.event) for r in part.rejected}
    found: dict[int, Row] = {number: {} for number in part.rows.tolist()}
    for path in set(schema.attributes) | needs:
        one = decode(events, schema, {path})
        for at, number in enumerate(one.rows.tolist()):
            if number in found:
                column = one.columns.get(path)
                found[number][path] = None if column is None else column.value(at)
    return found


# -- filters, operators and graphs


def _judge_body(
    verdict: Verdict, plan: hg.Plan, name: str, body: Node, stream: str, number: int, row: Row, missing: str
) -> None:
    schema = plan.schemas[stream]
    if not _late(body):
        if filters.truth(body, row, schema, missing) is True:
            verdict.matches.append((stream, number, name, "null"))
        return
    named = {".".join(path): value for path, value in row.items()}
    found = operators.evaluate(body, row, schema, _CALLED, missing, event=named, graphs=_bindings(plan, row))
    if found.matched is None:
        verdict.problems.add((stream, number, name))
    elif found.matched:
        verdict.matches.append((stream, number, name, comparable(found.bindings[0] or None)))


def _late(body: Node) -> bool:
    return any(isinstance(n, ast.Call | ast.Graph) for n in ast.walk(body))


def _bindings(plan: hg.Plan, event: Row) -> operators.Graphs:
    """Answers GRAPH patterns on one event. A document that cannot be used raises."""

    def bindings(graph: ast.Graph) -> list[dict[str, Any]] | None:
        column = ("doc",) if graph.column is None else graph.column.path[-1:]
        if column == ("doc",) and column not in event:
            triples = _filled({".".join(path): value for path, value in event.items()})
        elif not isinstance(event.get(column), str):
            return None
        else:
            triples = rdf.read(event[column])
            EventGraph.of(triples)
        return graph_oracle.bindings(graph, triples, graph_oracle.Meaning(prefixes=plan.catalogue.prefixes))

    return bindings


def _filled(event: Mapping[str, Any]) -> list[rdf.Triple]:
    """The graph that the template in `tests.core.cases` makes of an event: what is missing leaves no trace."""
    name = "<http://example.org/{}>".format
    n, text, x = event.get("n"), event.get("name"), event.get("x")
    made: list[rdf.Triple] = [(HOME, TYPE, name("C0"))]
    made += [] if n is None else [(HOME, name("p0"), literal_of(n))]
    made += [] if text is None else [(HOME, name("p1"), literal_of(text))]
    made += [] if x is None else [(HOME, name("p2"), "_:k"), ("_:k", name("p0"), literal_of(x))]
    return made


# -- sequences


def _judge_sequences(
    verdict: Verdict,
    plan: hg.Plan,
    book: hg.Subscriptions,
    spines: Mapping[str, Spine],
    rows: Mapping[str, dict[int, Row]],
) -> None:
    if not spines:
        return
    ticks = count()
    streams = {stream: _timed(plan.schemas[stream], found, ticks) for stream, found in rows.items()}
    times = {stream: plan.schemas[stream].time_kind for stream in streams}
    closed: dict[Kind | None, int] = {}
    for stream, part in streams.items():
        for event in part:
            closed[times[stream]] = max(event.t1, closed.get(times[stream], event.t1))

    asked = sequences.Asked(_CALLED, graph_oracle.Meaning(prefixes=plan.catalogue.prefixes), _filled)
    for level in publish_order(spines):
        for name in level:
            spine = spines[name]
            time = next((times[s] for s in reads(spine) if s in times), None)
            found = sequences.matches(spine, streams, closed[time], book[name].missing, asked) if time in closed else []
            for match in found:
                stream, number = _base(match.run.bound)
                verdict.matches.append((stream, number, name, comparable(_written(spine, dict(match.output)))))
            if spine.publish is not None:
                streams.setdefault(spine.publish, []).extend(m.as_event(name) for m in found)
                times[spine.publish] = time


def _timed(schema: Schema, rows: Mapping[int, Row], ticks: Iterator[int]) -> list[sequences.Event]:
    """The events of a stream that have a time; without TIME it is their place in the input of all streams."""
    made = []
    for number, row in rows.items():
        if not schema.time:
            t0: Any = next(ticks)
            t1: Any = t0
        else:
            t0, t1 = row.get(schema.time[0]), row.get(schema.time[-1])
            if t0 is None or t1 is None or t0 > t1:
                continue
        made.append(sequences.Event((schema.stream, number), t0, t1, row))
    return made


def _base(bound: Sequence[sequences.Event]) -> Place:
    """The event of a base stream that a run bound last; a derived event is the last one of its own run."""
    identity: Any = [e for e in bound if e is not NOTHING][-1].identity
    while not isinstance(identity[1], int):
        identity = [e for e in identity[1][0] if e is not NOTHING][-1].identity
    return identity[0], identity[1]


def _written(spine: Spine, output: dict[str, Any]) -> dict[str, Any]:
    shown = {}
    for item in spine.items:
        kind = None if item.type is None else item.type.kind
        value = output[item.name]
        made = [_instant(v, kind) for v in value] if isinstance(value, list) else _instant(value, kind)
        shown[item.name] = made
    return shown


def _instant(value: Any, kind: Kind | None) -> Any:
    return instant_text(value) if kind is Kind.TIMESTAMP and isinstance(value, int) else value


# -- outputs


def comparable(output: Mapping[str, Any] | None) -> str:
    """An output as a text that is the same for the same output: JSON has no NaN, and zeros of either sign are equal."""
    return "null" if output is None else repr(sorted((name, _same(value)) for name, value in output.items()))


def _same(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_same(v) for v in value]
    if isinstance(value, Instant | date | bytes):
        return written(value)
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**64:
        return str(value)
    if isinstance(value, float):
        return None if not math.isfinite(value) else 0.0 if value == 0 else value
    # A value that nobody has typed may be anything; what has no form in JSON is shown as text.
    return value if value is None or isinstance(value, str | int | dict) else str(value)
