"""Event graphs from plain columns, by a template that the stream declares.

    CREATE STREAM offers (sku STRING, kind STRING, price DOUBLE, seller.name STRING)
    AS GRAPH { _:H a :Offer ; :item _:i ; :price price ; :seller _:s .
               _:i a kind ; :sku sku . _:s a :Person ; :name seller.name }

Bare names are attributes. As the object of a property an attribute is a literal of its type, as the object of `a` the
name of a class, and where it is a subject too, the name of a thing. A name that is no IRI and has no known prefix
belongs to the empty prefix. A statement whose attribute is missing is left out, and so is a blank node of which every
attribute is missing, with the arcs to it: a null struct leaves no trace. An ARRAY gives one statement an element.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import numpy as np

from headgate.columns import Column, Columns
from headgate.errors import LanguageError, TypeProblem, UnknownName
from headgate.graphs.event import LIMITS, BadGraph, EventGraph, Limits
from headgate.graphs.pattern import Prefixes
from headgate.graphs.rdf import Triple
from headgate.graphs.terms import DATE_TIME, HOME, TYPE, XSD, IllTyped, Literal, Term, literal_of, value_of
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.predicates.times import instant_text
from headgate.schema import Kind

_IRI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?://|[^\s:]+:)\S+")
_SAFE = "/#?:@!$&'()*+,;=~%-._"
_PLACEHOLDER = "<urn:placeholder>"
_BASE64 = f"<{XSD}base64Binary>"


@dataclass(frozen=True, slots=True)
class Field:
    """An attribute of the event."""

    path: Path


Reference = Term | Field
"""A term that is the same for every event, or an attribute."""
Values = dict[Field, list[Literal]]


@dataclass(frozen=True, slots=True)
class Statement:
    subject: str | Field
    property: str
    object: Reference


@dataclass(frozen=True)
class Template:
    """The statements of a stream's template. `filled` gives for each blank node, home apart, the attributes and blank
    nodes of its own statements: if it has any and none is there, the node is not there."""

    statements: tuple[Statement, ...]
    names: frozenset[Field]
    """Attributes that stand for things, not for literals."""
    classes: frozenset[Field]
    """Attributes that stand for classes."""
    crowded: bool
    """Whether two attributes may make the same statement, which then counts once."""
    filled: dict[str, tuple[Reference, ...]] = field(hash=False)
    prefixes: Prefixes

    @classmethod
    def of(cls, graph: ast.Graph, prefixes: Prefixes | None = None) -> Template:
        known = prefixes or Prefixes()
        if graph.filters:
            raise LanguageError("a template has no FILTER", at=graph.filters[0].at)
        made = [
            Statement(_subject(t.subject, known), known.iri(t.predicate), _object(t.object, known))
            for t in graph.triples
        ]
        if all(s.subject != HOME for s in made):
            raise LanguageError("the template says nothing about the home vertex _:H", at=graph.at)
        things = frozenset(s.subject for s in made if isinstance(s.subject, Field))
        _check_connected(graph, made)
        for t, s in zip(graph.triples, made, strict=True):
            if isinstance(s.object, Field) and (s.property == TYPE or s.object in things) and "" not in known.known:
                hint = "write PREFIX : <http://...>; before it"
                raise UnknownName("the names in this attribute need an empty prefix", hint, at=t.object.at)
            if s.property == TYPE and not isinstance(t.object, (ast.Iri, ast.Name, ast.Attribute)):
                raise TypeProblem("a class must be named, by a name or by an attribute", at=t.object.at)
        filled: dict[str, tuple[Reference, ...]] = {}
        for s in made:
            if isinstance(s.subject, str) and _blank(s.subject) and (isinstance(s.object, Field) or _blank(s.object)):
                filled[s.subject] = (*filled.get(s.subject, ()), s.object)
        classes = frozenset(s.object for s in made if s.property == TYPE and isinstance(s.object, Field))
        said = [(s.subject, s.property) for s in made if s.property != TYPE]
        meant = {(s.subject, s.property) for s in made if isinstance(s.object, Field)}
        crowded = any(said.count(pair) > 1 for pair in meant) or any(
            s.object in classes for s in made if s.property != TYPE
        )
        return cls(tuple(made), things, classes, crowded, filled, known)

    def needs(self) -> frozenset[Path]:
        ends = [e for s in self.statements for e in (s.subject, s.object)]
        return frozenset(e.path for e in ends if isinstance(e, Field))

    def read(
        self, columns: Columns, rows: Iterable[int], limits: Limits = LIMITS
    ) -> list[EventGraph | BadGraph | None]:
        """The graphs of some events of a batch; None for one that has nothing to say.

        Events with the same attributes present have the same graph but for its literals, so it is made once for each
        such shape, around placeholders.
        """
        fields = [Field(path) for path in sorted(self.needs())]
        given = [_Values(columns.get(f.path)) for f in fields]
        shapes: dict[tuple[Any, ...], _Shape | BadGraph | None] = {}
        found: list[EventGraph | BadGraph | None] = []
        for row in rows:
            values = [v.at(row) for v in given]
            if self.names or self.crowded:
                found.append(self._graph(dict(zip(fields, values, strict=True)), limits))
                continue
            key = tuple(tuple(values[i]) if f in self.classes else len(values[i]) for i, f in enumerate(fields))
            if key not in shapes:
                shapes[key] = self._shape(fields, values, limits)
            shape = shapes[key]
            found.append(shape.filled(values) if isinstance(shape, _Shape) else shape)
        return found

    def _shape(self, fields: list[Field], values: list[list[Literal]], limits: Limits) -> _Shape | BadGraph | None:
        marked = {
            f: own if f in self.classes else [Literal(f"{i} {j}", _PLACEHOLDER) for j in range(len(own))]
            for i, (f, own) in enumerate(zip(fields, values, strict=True))
        }
        graph = self._graph(marked, limits)
        if not isinstance(graph, EventGraph):
            return graph
        places = []
        for vertex, term in enumerate(graph.terms):
            if isinstance(term, Literal) and term.datatype == _PLACEHOLDER:
                i, _, j = term.lexical.partition(" ")
                places.append((vertex, int(i), int(j)))
        return _Shape(graph, tuple(places))

    def _graph(self, values: Values, limits: Limits) -> EventGraph | BadGraph | None:
        triples: list[Triple] = []
        there: dict[str, bool] = {}
        for s in self.statements:
            for subject in self._ends(s.subject, values, there, name=True):
                named = s.property == TYPE or s.object in self.names
                for object_ in self._ends(s.object, values, there, name=named):
                    triples.append((str(subject), s.property, object_))  # noqa: PERF401 - a nested loop reads better
        # What hung on something that is missing is not there either.
        triples = _reachable(dict.fromkeys(triples))
        try:
            return EventGraph.of(triples, limits) if triples else None
        except BadGraph as problem:
            return problem

    def _ends(self, end: Reference, values: Values, there: dict[str, bool], *, name: bool) -> list[Term]:
        if isinstance(end, Literal):
            return [end]
        if isinstance(end, Field):
            return [self._name(v.lexical) for v in values[end]] if name else list(values[end])
        return [end] if not _blank(end) or self._there(end, values, there) else []

    def _there(self, node: str, values: Values, there: dict[str, bool]) -> bool:
        if node not in there:
            parts = self.filled.get(node, ())
            there[node] = not parts  # what a cycle of blank nodes sees of itself
            there[node] = not parts or any(
                bool(values[p]) if isinstance(p, Field) else self._there(str(p), values, there) for p in parts
            )
        return there[node]

    def _name(self, text: str) -> str:
        if _IRI.fullmatch(text):
            return f"<{text}>"
        prefix, colon, local = text.partition(":")
        if colon and prefix in self.prefixes.known:
            return self.prefixes.iri(ast.Name(f"{prefix}:{quote(local, _SAFE)}"))
        return self.prefixes.iri(ast.Name(":" + quote(text, _SAFE)))


def _check_connected(graph: ast.Graph, made: list[Statement]) -> None:
    seen: set[Any] = {HOME}
    while fresh := {s.object for s in made if s.subject in seen and s.property != TYPE} - seen:
        seen |= fresh
    for triple, s in zip(graph.triples, made, strict=True):
        if s.subject not in seen:
            hint = "connect it by a statement that leads to it from home"
            raise LanguageError("this subject cannot be reached from _:H", hint, at=triple.subject.at)


def _reachable(triples: Iterable[Triple]) -> list[Triple]:
    """The triples whose subject can be reached from home."""
    out: dict[str, list[Triple]] = {}
    for triple in triples:
        out.setdefault(triple[0], []).append(triple)
    seen, front, kept = {HOME}, [HOME], []
    for subject in front:
        for triple in out.get(subject, ()):
            kept.append(triple)
            object_ = triple[2]
            if triple[1] != TYPE and isinstance(object_, str) and object_ not in seen:
                seen.add(object_)
                front.append(object_)
    return kept


def _blank(end: Any) -> bool:
    return isinstance(end, str) and end.startswith("_:") and end != HOME


def _subject(node: Node, prefixes: Prefixes) -> str | Field:
    found = _object(node, prefixes)
    if isinstance(found, Literal):
        raise TypeProblem("a literal cannot be the subject of a statement", at=node.at)
    return found


def _object(node: Node, prefixes: Prefixes) -> Reference:
    match node:
        case ast.Attribute(path):
            return Field(path)
        case ast.Blank(label):
            return f"_:{label}"
        case ast.Iri() | ast.Name():
            return prefixes.iri(node)
        case ast.Literal() | ast.Term():
            literal = prefixes.literal(node)
            try:
                value_of(literal)
            except IllTyped as problem:
                raise TypeProblem(str(problem), at=node.at) from None
            return literal
    raise TypeProblem("a template has no variables", "write the name of an attribute without ?", at=node.at)


@dataclass(frozen=True, slots=True)
class _Shape:
    """A graph around placeholders: `places` has the vertex of each, its field and its number within an ARRAY."""

    graph: EventGraph
    places: tuple[tuple[int, int, int], ...]

    def filled(self, values: list[list[Literal]]) -> EventGraph:
        graph = self.graph
        terms, classes = graph.terms.copy(), graph.classes.copy()
        for vertex, at, number in self.places:
            literal = values[at][number]
            terms[vertex] = literal
            classes[vertex] = (literal.datatype,)
        return EventGraph(terms, classes, graph.arcs)


class _Values:
    """The literals of one attribute by row: none if it is missing, several of an ARRAY, equal ones once."""

    def __init__(self, column: Column | None) -> None:
        self._column = column
        self._plain: list[Any] | None = None
        if column is not None and column.offsets is None:
            values = column.values
            raw = values.tolist() if isinstance(values, np.ndarray) else values.to_pylist()
            self._plain = [v if there else None for v, there in zip(raw, column.defined.tolist(), strict=True)]

    def at(self, row: int) -> list[Literal]:
        if self._column is None:
            return []
        kind = self._column.type.kind
        if self._plain is not None:
            value = self._plain[row]
            return [] if value is None else [_literal(value, kind)]
        many = self._column.value(row)
        return list(dict.fromkeys(_literal(v, kind) for v in many if v is not None)) if isinstance(many, list) else []


def _literal(value: object, kind: Kind) -> Literal:
    if kind is Kind.TIMESTAMP and isinstance(value, int):
        return Literal(instant_text(value), DATE_TIME)
    if isinstance(value, bytes):
        return Literal(base64.b64encode(value).decode("ascii"), _BASE64)
    return literal_of(value)
