"""Whether a GRAPH pattern matches an event, and with which bindings: brute force, straight from docs/semantics.md, section 4.

The event is a list of triples with `_:H` among its nodes, the hierarchies are plain sets of (below, above) pairs. For
every statement of the pattern every triple of the event is tried.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.graphs.rdf import Triple
from headgate.graphs.terms import (
    DATATYPE_PARENTS,
    HOME,
    LITERAL_CLASS,
    RESOURCE_CLASSES,
    STANDARD_PREFIXES,
    STRING,
    THING_CLASSES,
    TYPE,
    Literal,
    Term,
    literal_of,
    order_of,
    python_of,
    value_of,
)
from headgate.language import ast
from headgate.language.ast import Node
from headgate.oracle import values
from headgate.oracle.filters import conjunction, disjunction
from headgate.predicates.times import instant
from headgate.predicates.values import INSTANT, NUMBER, TEXT, Instant, kind

Pairs = Iterable[tuple[str, str]]
Vertex = tuple[str, Any]
"""A node of a pattern: ('variable', name), ('blank', label), ('home', ''), ('iri', text) or ('literal', term)."""


@dataclass(frozen=True)
class Meaning:
    """An ontology as it was stated: pairs (below, above), not closed."""

    classes: frozenset[tuple[str, str]] = frozenset()
    properties: frozenset[tuple[str, str]] = frozenset()
    prefixes: Mapping[str, str] = field(default_factory=dict)

    def above(self, name: str, pairs: Pairs) -> set[str]:
        found = {name}
        while more := {b for a, b in pairs if a in found} - found:
            found |= more
        return found

    def classes_above(self, name: str, literal: bool) -> set[str]:
        pairs = {*self.classes, *DATATYPE_PARENTS.items()}
        tops = (*RESOURCE_CLASSES, *([LITERAL_CLASS] if literal else THING_CLASSES))
        return set().union(*(self.above(n, pairs) for n in (name, *tops)))

    def iri(self, node: Node) -> str:
        if isinstance(node, ast.Iri):
            return f"<{node.text}>"
        assert isinstance(node, ast.Name)
        prefix, _, local = node.text.partition(":")
        return f"<{({**STANDARD_PREFIXES, **self.prefixes})[prefix]}{local}>"

    def vertex(self, node: Node) -> Vertex:
        match node:
            case ast.Variable(name):
                return ("variable", name)
            case ast.Blank(label):
                return ("home", "") if label == "H" else ("blank", label)
            case ast.Iri() | ast.Name():
                return ("iri", self.iri(node))
            case ast.Literal(value):
                return ("literal", _constant(literal_of(value)))
            case ast.Term(text, datatype, language):
                kind = STRING if datatype is None else self.iri(datatype)
                tag = None if language is None else language.lower()
                return ("literal", _constant(Literal(text, _LANG if tag else kind, tag)))
        raise AssertionError(f"{type(node).__name__} in a pattern")


_LANG = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>"


def _constant(term: Literal) -> Any:
    """Numeric constants are the same if their values are (NaN is NaN), others if they are the same term."""
    value = value_of(term)
    if value is None or kind(value) != NUMBER:
        return term
    return value if value == value else "NaN"


def matches(graph: ast.Graph, event: Sequence[Triple], meaning: Meaning) -> bool:
    return next(solutions(graph, event, meaning), None) is not None


def bindings(graph: ast.Graph, event: Sequence[Triple], meaning: Meaning) -> list[dict[str, Any]]:
    """The distinct bindings of the variables, least first: by the values of the variables in the order of their
    names."""
    found: dict[Any, dict[str, Any]] = {}
    for solution in solutions(graph, event, meaning):
        names = sorted(solution)
        found[tuple(order_of(solution[n]) for n in names)] = {n: python_of(solution[n]) for n in names}
    return [found[key] for key in sorted(found)]


def solutions(graph: ast.Graph, event: Sequence[Triple], meaning: Meaning) -> Iterator[dict[str, Term]]:
    """Every way to map the pattern; a variable may come with the same term more than once."""
    tests: list[tuple[Vertex, str]] = []
    arcs: list[tuple[Vertex, str, Vertex]] = []
    for triple in graph.triples:
        if meaning.iri(triple.predicate) == TYPE:
            tests.append((meaning.vertex(triple.subject), meaning.iri(triple.object)))
        else:
            subject, object_ = meaning.vertex(triple.subject), meaning.vertex(triple.object)
            arcs.append((subject, meaning.iri(triple.predicate), object_))
    types = {s: [o for s2, p, o in event if s2 == s and p == TYPE] for s, _, _ in event}
    statements = [(i, s, p, o) for i, (s, p, o) in enumerate(event) if p != TYPE]

    def has(term: Term, wanted: str) -> bool:
        if isinstance(term, Literal):
            return wanted in meaning.classes_above(term.datatype, True)
        named = types.get(term, [])
        return not named or any(wanted in meaning.classes_above(str(c), False) for c in named)

    def fits(vertex: Vertex, term: Term) -> bool:
        kind, wanted = vertex
        if kind == "home":
            same = term == HOME
        elif kind == "iri":
            same = term == wanted
        elif kind == "literal":
            same = isinstance(term, Literal) and _constant(term) == wanted
        else:
            same = True
        return same and all(has(term, c) for v, c in tests if v == vertex)

    def place(index: int, term: Term) -> Any:
        # A triple with a literal object is a vertex of its own.
        return (index, "literal") if isinstance(term, Literal) else term

    def extend(n: int, at: dict[Vertex, set[Any]], terms: dict[Vertex, Term]) -> Iterator[dict[str, Term]]:
        if n == len(arcs):
            named = {v[1]: t for v, t in terms.items() if v[0] == "variable"}
            if all(_truth(f, named) is True for f in graph.filters):
                yield named
            return
        subject, wanted, object_ = arcs[n]
        for index, s, p, o in statements:
            if wanted not in meaning.above(p, meaning.properties):
                continue
            at2 = {v: set(places) for v, places in at.items()}
            terms2 = dict(terms)
            good = True
            for vertex, term, where in ((subject, s, s), (object_, o, place(index, o))):
                good = good and fits(vertex, term)
                if vertex in terms2 and vertex[0] != "literal":
                    good = good and terms2[vertex] == term
                terms2[vertex] = term
                at2.setdefault(vertex, set()).add(where)
            if good and not graph.hom:
                good = all(not at2[a] & at2[b] for a in at2 for b in at2 if a != b)
            if good:
                yield from extend(n + 1, at2, terms2)

    home: Vertex = ("home", "")
    if fits(home, HOME):
        yield from extend(0, {home: {HOME}}, {home: HOME})


# -- FILTER: three values; a type error is UNKNOWN


def _truth(node: Node, terms: Mapping[str, Term]) -> bool | None:
    match node:
        case ast.And(items):
            return conjunction([_truth(i, terms) for i in items])
        case ast.Or(items):
            return disjunction([_truth(i, terms) for i in items])
        case ast.Not(operand):
            inner = _truth(operand, terms)
            return None if inner is None else not inner
        case ast.Compare(op, left, right):
            a, b = _value(left, terms), _value(right, terms)
            return values.compare(op, a, b) if None not in (a, b) and kind(a) == kind(b) else None
        case ast.Between(operand, low, high):
            ends = [ast.Compare(">=", operand, low), ast.Compare("<=", operand, high)]
            return conjunction([_truth(e, terms) for e in ends])
        case ast.In(operand, items):
            return disjunction([_truth(ast.Compare("=", operand, i), terms) for i in items])
        case ast.IsNull(operand):
            return not isinstance(operand, ast.Variable) and _value(operand, terms) is None
        case ast.Test(name, operands):
            texts = _texts(terms, *operands)
            return None if texts is None else values.holds(name, *texts)
    value = _value(node, terms)
    return value if isinstance(value, bool) else None


def _texts(terms: Mapping[str, Term], *nodes: Node) -> list[str] | None:
    found = [_value(n, terms) for n in nodes]
    return found if all(isinstance(v, str) for v in found) else None


def _value(node: Node, terms: Mapping[str, Term]) -> Any:
    match node:
        case ast.Variable(name):
            term = terms[name]
            return value_of(term) if isinstance(term, Literal) else None
        case ast.Literal(value):
            return value
        case ast.Instant(text):
            return Instant(instant(text))
        case ast.Span(amount, unit):
            return round(amount * ast.UNITS[unit])
    operands = [_value(child, terms) for child in node.children()]
    if any(v is None for v in operands):
        return None
    kinds = [kind(v) for v in operands]
    match node:
        case ast.Arithmetic(op) if set(kinds) <= {NUMBER, INSTANT}:
            return values.arithmetic(op, *operands)
        case ast.Negate() if kinds == [NUMBER]:
            return values.negate(*operands)
        case ast.Function("ABS") if kinds == [NUMBER]:
            return values.function("ABS", *operands)
        case ast.Function(name) if kinds == [TEXT] and name in ("LOWER", "UPPER", "LENGTH"):
            return values.function(name, *operands)
    return None
