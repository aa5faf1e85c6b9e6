"""HOM agrees with SPARQL: the same patterns on pyoxigraph, with the closure of the hierarchies materialised."""

from __future__ import annotations

from random import Random
from typing import Any

import pyoxigraph as ox
import pytest
from benchmarks.quads import quad
from hypothesis import given, settings
from tests.graphs.cases import Case, cases, make
from tests.graphs.test_properties import LONG, PLAIN, answers, compiled

from headgate.graphs.rdf import Triple
from headgate.graphs.terms import HOME, TYPE, XSD, Literal, Term, literal_of, value_of
from headgate.language import ast
from headgate.oracle.graphs import Meaning
from headgate.predicates.values import NUMBER, kind

ASKED = "<urn:home>"


def materialised(event: tuple[Triple, ...], meaning: Meaning, patterns: list[ast.Graph]) -> ox.Store:
    """The event with every superclass and superproperty; an untyped vertex gets every class that is asked for, and a
    literal becomes a node of its own with its value, because SPARQL cannot say `a` of a literal."""
    asked = {meaning.iri(t.object) for g in patterns for t in g.triples if meaning.iri(t.predicate) == TYPE}
    typed = {s for s, p, _ in event if p == TYPE}
    things = {t for s, p, o in event if p != TYPE for t in (s, o) if isinstance(t, str)} | {HOME}
    triples: set[tuple[Term, str, Term]] = set()
    for s, p, o in event:
        if p == TYPE:
            triples |= {(s, TYPE, c) for c in meaning.classes_above(str(o), False)}
        else:
            triples |= {(s, q, o) for q in meaning.above(p, meaning.properties)}
    triples |= {(t, TYPE, c) for t in things - typed for c in asked}
    store = ox.Store()
    for subject, p, o in triples:
        ends: list[Term] = [ASKED if t == HOME else t for t in (subject, o)]
        store.add(quad(ends[0], p, ends[1]))
    return store


def sparql(graph: ast.Graph, meaning: Meaning) -> str:
    def node(n: ast.Node) -> str:
        match n:
            case ast.Variable(name):
                return f"?{name}"
            case ast.Blank(label):
                return ASKED if label == "H" else f"?_{label}"
            case ast.Iri() | ast.Name():
                return meaning.iri(n)
        _, constant = meaning.vertex(n)
        return str(constant) if isinstance(constant, Literal) else f"?n{n.at}"

    lines = []
    for t in graph.triples:
        lines.append(f"{node(t.subject)} {meaning.iri(t.predicate)} {node(t.object)} .")
        if isinstance(t.object, (ast.Literal, ast.Term)):
            held = meaning.vertex(t.object)[1]
            if not isinstance(held, Literal):
                lines.append(f"FILTER (isNumeric(?n{t.object.at}) && ?n{t.object.at} = {held.value})")
    lines += [f"FILTER ({_condition(f)})" for f in graph.filters]
    return "SELECT * { " + "\n".join(lines) + " }"


def _condition(node: ast.Node) -> str:
    match node:
        case ast.And(items):
            return "(" + " && ".join(map(_condition, items)) + ")"
        case ast.Or(items):
            return "(" + " || ".join(map(_condition, items)) + ")"
        case ast.Not(operand):
            return f"!({_condition(operand)})"
        case ast.Compare(op, left, right):
            a, b = _condition(left), _condition(right)
            # SPARQL's = falls back to comparing terms where ours is a type error; so does pyoxigraph's <= for a term
            # and itself.
            told = f"({a} <= {b} && {a} >= {b})" if op in ("=", "<>") else f"({a} {op} {b})"
            guards = [_guard(n.name) for n in (left, right) if isinstance(n, ast.Variable)]
            return f"IF({' && '.join(guards) or 'true'}, {'!' if op == '<>' else ''}{told}, 1/0)"
        case ast.Between(operand, low, high):
            ends = _condition(ast.Compare(">=", operand, low)), _condition(ast.Compare("<=", operand, high))
            return f"({ends[0]} && {ends[1]})"
        case ast.In(operand, items):
            return "(" + " || ".join(_condition(ast.Compare("=", operand, i)) for i in items) + ")"
        case ast.Variable(name):
            return f"?{name}"
        case ast.Literal(value):
            return f"'{value}'" if isinstance(value, str) else str(value).lower()
    raise pytest.skip.Exception("no SPARQL for this condition")


def _guard(name: str) -> str:
    kinds = " || ".join(f"datatype(?{name}) = <{XSD}{kind}>" for kind in ("string", "boolean", "dateTime"))
    return f"(isLiteral(?{name}) && (isNumeric(?{name}) || {kinds}))"


def translatable(graph: ast.Graph) -> bool:
    """Without class tests on literals, and with filters whose meaning SPARQL shares."""
    shared = (ast.And, ast.Or, ast.Not, ast.Compare, ast.Between, ast.In, ast.Variable, ast.Literal)
    plain = all(isinstance(n, shared) for f in graph.filters for n in ast.walk(f))
    bare = any(isinstance(f, ast.Variable) for f in graph.filters)
    return graph.hom and plain and not bare


def hom_agrees(case: Case) -> None:
    # Text with a language is text to us and another type to SPARQL.
    events = tuple(tuple((s, p, _untagged(o)) for s, p, o in event) for event in case.events)
    case = Case(case.meaning, events, case.texts)
    graphs, named = compiled(case)
    found = answers(case, named, every=True)
    for e, event in enumerate(events):
        held = {o for _, _, o in event if isinstance(o, Literal)}
        for slot, graph in enumerate(graphs):
            if not translatable(graph) or _tests_literals(graph, case.meaning):
                continue
            store = materialised(event, case.meaning, [graph])
            names = sorted(n for n, _ in named[slot].variables)
            answer: Any = store.query(sparql(graph, case.meaning))
            rows = {tuple(str(row[n]) for n in names) for row in answer}
            ours = found.get((e, slot), [])
            assert bool(rows) == bool(ours), (graph, held)
            assert len({_by_value(row) for row in rows}) == len(ours)


def _untagged(term: Term) -> Term:
    return literal_of("tagged") if isinstance(term, Literal) and term.language else term


def _tests_literals(graph: ast.Graph, meaning: Meaning) -> bool:
    """A class test on a vertex without arcs of its own may meet a literal; SPARQL has no triple to find there."""
    subjects = {meaning.vertex(t.subject) for t in graph.triples if meaning.iri(t.predicate) != TYPE}
    tested = {meaning.vertex(t.subject) for t in graph.triples if meaning.iri(t.predicate) == TYPE}
    return bool(tested - subjects - {("home", "")})


def _by_value(row: tuple[str, ...]) -> tuple[object, ...]:
    made: list[object] = []
    for text in row:
        if text.startswith('"'):
            lexical, _, rest = text[1:].rpartition('"')
            datatype = rest[2:] or "<http://www.w3.org/2001/XMLSchema#string>"
            value = value_of(Literal(lexical, datatype))
            made.append(text if value is None else value if kind(value) == NUMBER else (kind(value), value))
        else:
            made.append(text)
    return tuple(made)


@given(cases())
@settings(PLAIN, max_examples=200)
def test_hom_agrees_with_sparql(case: Case) -> None:
    hom_agrees(case)


@pytest.mark.nightly
@given(cases())
@settings(LONG, max_examples=3_000)
def test_hom_agrees_with_sparql_at_night(case: Case) -> None:
    hom_agrees(case)


def test_the_comparison_with_sparql_compares_something() -> None:
    compared = 0
    for seed in range(100):
        case = make(Random(seed))
        graphs, _ = compiled(case)
        compared += sum(translatable(g) and not _tests_literals(g, case.meaning) for g in graphs)
    assert compared > 100
