"""A GRAPH pattern, checked and in canonical form.

Vertex 0 is home. A vertex carries everything that can be told of one event vertex alone: its constant, its classes,
the FILTERs on its value. An arc with its two vertices is OPS's statement pattern. A vertex without arcs of its own
may stand for literals, and every triple with a literal object is a vertex of the event; so such a vertex is split
into one copy for each arc that leads to it. The copies form a *group*: they must hold equal terms (a numeric
constant: equal values) and may coincide, while under ISO vertices of different groups may not.

Names of variables are left out and vertices are numbered from home on, so that the same pattern written by different
subscribers is one pattern in most cases; where symmetric parts hide that two are the same, only sharing is lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

from headgate.errors import BindingProblem, LanguageError, TypeProblem, UnknownName
from headgate.graphs import conditions
from headgate.graphs.terms import (
    LANG_STRING,
    STANDARD_PREFIXES,
    STRING,
    TYPE,
    IllTyped,
    Literal,
    literal_of,
    value_of,
)
from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.catalogue import nearest
from headgate.predicates.values import NUMBER, kind

SELF = ""
"""The property of the arc from home to itself that a pattern without arcs gets, so that every pattern has one."""
ITSELF = "it"
"""How a condition on one vertex names it."""

NUMBER_CLASS = "number"
"""The datatype of the constant that stands for NaN, whatever datatype it was written in."""
Constant = str | Literal | int | float
"""An IRI, a literal by term, or the value of a numeric literal."""


@dataclass(frozen=True)
class Vertex:
    """What an event vertex must be, without regard to its neighbours."""

    home: bool = False
    constant: Constant | None = None
    classes: tuple[str, ...] = ()
    conditions: tuple[Node, ...] = ()


class Arc(NamedTuple):
    subject: int
    property: str
    object: int


@dataclass(frozen=True)
class Pattern:
    """`group` numbers, for each vertex, the written vertex that it is a copy of. `joint` are the FILTERs on several
    variables, which they name by the vertex number."""

    hom: bool
    vertices: tuple[Vertex, ...]
    arcs: tuple[Arc, ...]
    group: tuple[int, ...]
    joint: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Named:
    """A pattern as one subscription writes it: `variables` are sorted names with the vertex of each; `sources` gives
    for each arc the place of its statement in the text."""

    pattern: Pattern
    variables: tuple[tuple[str, int], ...]
    sources: tuple[int, ...] = ()


class Prefixes:
    """Prefixes in use; the usual four are always there. Those that say the same are equal."""

    def __init__(self, given: Mapping[str, str] | None = None) -> None:
        self.known = {**STANDARD_PREFIXES, **(given or {})}
        self._items = frozenset(self.known.items())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Prefixes) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def iri(self, node: Node) -> str:
        if isinstance(node, ast.Iri):
            return f"<{node.text}>"
        assert isinstance(node, ast.Name)
        prefix, _, local = node.text.partition(":")
        if prefix not in self.known:
            hint = nearest(prefix, self.known, f"declare it: PREFIX {prefix}: <http://...>")
            raise UnknownName(f"there is no prefix {prefix}:", hint, at=node.at)
        return f"<{self.known[prefix]}{local}>"

    def literal(self, node: ast.Literal | ast.Term) -> Literal:
        if isinstance(node, ast.Literal):
            return literal_of(node.value)
        if node.language is not None:
            return Literal(node.text, LANG_STRING, node.language.lower())
        return Literal(node.text, STRING if node.datatype is None else self.iri(node.datatype))


def constant_of(literal: Literal) -> Constant:
    """Numeric constants are known by their value (NaN is NaN), others by their term."""
    value = value_of(literal)
    if value is None or kind(value) != NUMBER:
        return literal
    assert isinstance(value, int | float)
    return value if value == value else Literal("NaN", NUMBER_CLASS)


Key = tuple[str, Any]


class _Reader:
    """The statements of one GRAPH, by written vertex."""

    def __init__(self, prefixes: Prefixes) -> None:
        self.prefixes = prefixes
        self.arcs: dict[tuple[Key, str, Key], int] = {}
        self.classes: dict[Key, list[str]] = {}
        self.at: dict[Key, int] = {}
        self.home: Key = ("home", "")

    def key(self, node: Node) -> Key:
        match node:
            case ast.Variable(name):
                key: Key = ("variable", name)
            case ast.Blank(label):
                key = self.home if label == "H" else ("blank", label)
            case ast.Iri() | ast.Name():
                key = ("constant", self.prefixes.iri(node))
            case ast.Literal() | ast.Term():
                try:
                    key = ("constant", constant_of(self.prefixes.literal(node)))
                except IllTyped as problem:
                    raise TypeProblem(str(problem), at=node.at) from None
            case _:
                raise TypeProblem(
                    "an attribute has no place in a GRAPH pattern",
                    "bind a ?variable and compare it outside: GRAPH { ... } AND ?v = name",
                    at=node.at,
                )
        self.at.setdefault(key, node.at)
        return key

    def statement(self, triple: ast.Triple) -> None:
        subject = self.key(triple.subject)
        if subject[0] == "constant" and not isinstance(subject[1], str):
            raise TypeProblem("a literal cannot be the subject of a statement", at=triple.subject.at)
        if not isinstance(triple.predicate, (ast.Iri, ast.Name)):
            raise TypeProblem("a property must be named", "variables for properties are not supported", at=triple.at)
        predicate = self.prefixes.iri(triple.predicate)
        if predicate != TYPE:
            self.arcs.setdefault((subject, predicate, self.key(triple.object)), triple.at)
            return
        if not isinstance(triple.object, (ast.Iri, ast.Name)):
            hint = "`a` tests the class; write a :Class"
            raise TypeProblem("a class must be named", hint, at=triple.object.at)
        self.classes.setdefault(subject, []).append(self.prefixes.iri(triple.object))

    def check_reachable(self) -> None:
        reached, front = {self.home}, [self.home]
        targets: dict[Key, list[Key]] = {}
        for subject, _, object_ in self.arcs:
            targets.setdefault(subject, []).append(object_)
        while front:
            fresh = [o for s in front for o in targets.get(s, ()) if o not in reached]
            reached.update(fresh)
            front = list(dict.fromkeys(fresh))
        for key, at in self.at.items():
            if key not in reached:
                if self.home not in self.at:
                    hint = "begin with a statement about it: _:H a :Class"
                    raise LanguageError("the pattern does not mention the home vertex _:H", hint, at=at)
                hint = "every statement hangs together with _:H, from subject to object"
                raise LanguageError(f"{_shown(key)} cannot be reached from _:H", hint, at=at)


def _shown(key: Key) -> str:
    kind, name = key
    return {"variable": f"?{name}", "blank": f"_:{name}", "home": "_:H"}.get(kind, str(name))


def compile_pattern(graph: ast.Graph, prefixes: Prefixes | None = None) -> Named:
    """Check a GRAPH and bring it to canonical form; every problem is a LanguageError that points at its token."""
    reader = _Reader(prefixes or Prefixes())
    for triple in graph.triples:
        reader.statement(triple)
    reader.check_reachable()
    single: dict[Key, list[Node]] = {}
    joint: list[Node] = []
    for condition in _conjuncts(graph.filters):
        conditions.check(condition)
        used = conditions.variables(condition)
        for name in used:
            if ("variable", name) not in reader.at:
                node = next(n for n in ast.walk(condition) if isinstance(n, ast.Variable) and n.name == name)
                message = f"?{name} does not occur in the statements of this GRAPH"
                raise BindingProblem(message, "FILTER uses variables of its own GRAPH", at=node.at)
        if len(used) == 1:
            (name,) = used
            single.setdefault(("variable", name), []).append(rename(condition, {name: ITSELF}))
        else:
            joint.append(condition)
    return _canonical(reader, graph.hom, single, joint)


def _conjuncts(filters: tuple[Node, ...]) -> list[Node]:
    return [c for f in filters for c in (_conjuncts(f.items) if isinstance(f, ast.And) else [f])]


def rename(node: Any, names: Mapping[str, str]) -> Any:
    """The same expression with other variables."""
    if isinstance(node, ast.Variable):
        return replace(node, name=names[node.name])
    if isinstance(node, tuple):
        return tuple(rename(n, names) for n in node)
    if not isinstance(node, Node):
        return node
    return replace(node, **{f.name: rename(getattr(node, f.name), names) for f in fields(node) if f.name != "at"})


def _canonical(reader: _Reader, hom: bool, single: dict[Key, list[Node]], joint: list[Node]) -> Named:
    written = {key: _vertex(key, reader, single) for key in reader.at}
    leads: dict[Key, list[tuple[Any, str, Key, int]]] = {key: [] for key in written}
    for (subject, prop, object_), at in reader.arcs.items():
        leads[subject].append((None, prop, object_, at))
    # One look ahead tells most vertices apart; `repr` orders what has no order of its own.
    colour = {key: repr(v) for key, v in written.items()}
    ahead = {key: (colour[key], sorted((p, colour[o]) for _, p, o, _ in out)) for key, out in leads.items()}
    number: dict[Key, int] = {reader.home: 0}
    vertices, group = [written[reader.home]], [0]
    arcs: list[tuple[Arc, int]] = []
    queue = [reader.home]
    groups = {reader.home: 0}
    for subject in queue:
        for _, prop, object_, at in sorted(leads[subject], key=lambda arc: (arc[1], ahead[arc[2]])):
            shared = object_ == reader.home or bool(leads[object_])
            if object_ not in number or not shared:
                if shared:
                    queue.append(object_)
                groups.setdefault(object_, len(groups))
                number.setdefault(object_, len(vertices))
                target = len(vertices)
                vertices.append(written[object_])
                group.append(groups[object_])
            else:
                target = number[object_]
            arcs.append((Arc(number[subject], prop, target), at))
    if not arcs:
        arcs.append((Arc(0, SELF, 0), reader.at[reader.home]))
    arcs.sort()
    named = tuple(sorted((key[1], number[key]) for key in number if key[0] == "variable"))
    numbered = {name: str(vertex) for name, vertex in named}
    pattern = Pattern(
        hom, tuple(vertices), tuple(a for a, _ in arcs), tuple(group), tuple(rename(c, numbered) for c in joint)
    )
    return Named(pattern, named, tuple(at for _, at in arcs))


def _vertex(key: Key, reader: _Reader, single: dict[Key, list[Node]]) -> Vertex:
    return Vertex(
        key == reader.home,
        key[1] if key[0] == "constant" else None,
        tuple(sorted(set(reader.classes.get(key, ())))),
        tuple(sorted(set(single.get(key, ())), key=repr)),
    )
