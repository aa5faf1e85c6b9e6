"""Why a GRAPH pattern matched an event, or what blocked it.

Statement by statement, from home on: which statements of the event fit, and where none does, why the nearest ones do
not. If every statement fits by itself, either no choice of them hangs together, or a FILTER over several variables
refuses all that do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.graphs import conditions, tree
from headgate.graphs.event import LIMITS, EventGraph, Limits
from headgate.graphs.index import build
from headgate.graphs.matching import Bindings, Matcher
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import ITSELF, SELF, Named, Prefixes, Vertex, constant_of
from headgate.graphs.terms import Literal, Term, value_of
from headgate.language import ast
from headgate.language.printer import print_node
from headgate.pictures import Picture

_SHOWN = 5


@dataclass(frozen=True)
class StatementReport:
    """One statement of the pattern: the event statements that fit it, and near misses with their reasons if none can be
    used. `at` is its token in the text."""

    text: str
    at: int
    fits: tuple[str, ...]
    usable: bool
    misses: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphExplanation:
    matched: bool
    statements: tuple[StatementReport, ...]
    blocking: str | None
    binding: dict[str, Any] | None
    picture: Callable[[str], Picture]
    """The matching tree, under a title."""

    def __str__(self) -> str:
        lines = ["matched" if self.matched else "not matched"]
        for s in self.statements:
            shown = "; ".join(s.fits[:_SHOWN]) + ("; ..." if len(s.fits) > _SHOWN else "")
            lines.append(f"  {'+' if s.usable else '-'} {s.text}: {shown or 'nothing fits'}")
            lines += [f"      {miss}" for miss in s.misses]
        if self.binding:
            lines.append("  with " + ", ".join(f"?{n} = {v!r}" for n, v in self.binding.items()))
        if self.blocking:
            lines.append(f"  blocked: {self.blocking}")
        return "\n".join(lines)


def explain(
    named: Named, event: EventGraph, ontology: Ontology, prefixes: Prefixes | None = None, limits: Limits = LIMITS
) -> GraphExplanation:
    """The explanation of one pattern on one event."""
    return _Explainer(named, event, ontology, prefixes or Prefixes(), limits).explanation()


class _Explainer:
    def __init__(self, named: Named, event: EventGraph, ontology: Ontology, prefixes: Prefixes, limits: Limits) -> None:
        self._named, self._pattern = named, named.pattern
        self._event, self._ontology, self._limits = event, ontology, limits
        self._prefixes = sorted(prefixes.known.items(), key=lambda p: -len(p[1]))
        names = {vertex: f"?{name}" for name, vertex in named.variables}
        by_group = {self._pattern.group[v]: n for v, n in names.items()}
        self._names = [
            by_group.get(group) or self._pattern_name(i, v)
            for i, (v, group) in enumerate(zip(self._pattern.vertices, self._pattern.group, strict=True))
        ]

    def explanation(self) -> GraphExplanation:
        arcs = [*self._event.arcs, (0, SELF, 0)]
        reasons = [[(a, self._reason(i, a)) for a in arcs] for i in range(len(self._pattern.arcs))]
        rows = [[(a[0], a[2]) for a, why in given if why is None] for given in reasons]
        grown = tree.grow(self._pattern, rows)
        reports = []
        for i in self._order():
            arc = self._pattern.arcs[i]
            bound = {v for x, v in grown.rounds if x == arc.subject}
            fits = tuple(self._statement(a) for a, why in reasons[i] if why is None and a[0] in bound)
            usable = bool(fits)
            near = [(a, why) for a, why in reasons[i] if why is not None and a[0] in bound and why[0]]
            misses = () if usable else tuple(f"{self._statement(a)}: {why[1]}" for a, why in near[:_SHOWN])
            reports.append(StatementReport(self._text(i), self._named.sources[i], fits, usable, misses))
        matcher = Matcher(build([self._named], self._ontology), self._limits)
        found = matcher.match([self._event])
        matched = len(found.event) > 0
        binding = Bindings(matcher.index, [self._event.terms], found)[0] if matched else None
        blocking = None if matched else self._blocking(reports, grown, [g.reason for g in found.given_up])

        def picture(title: str) -> Picture:
            event_vertex = lambda v: self._term(self._event.terms[v])  # noqa: E731 - it reads better here
            return tree.picture(title, grown, self._names.__getitem__, event_vertex, self._text)

        return GraphExplanation(matched, tuple(reports), blocking, binding, picture)

    def _blocking(self, reports: Sequence[StatementReport], grown: tree.MatchingTree, given_up: list[str]) -> str:
        if given_up:
            return given_up[0]
        for report in reports:
            if not report.usable:
                return f"{report.text}: no statement of the event fits" + (
                    f"; {report.misses[0]}" if report.misses else ""
                )
        if not grown.possible:
            return "every statement fits by itself, but no choice of them hangs together"
        if self._pattern.joint:
            return "the statements fit together, but no solution satisfies the FILTER over several variables"
        if not self._pattern.hom:
            return "the statements fit only if two vertices of the pattern share one vertex of the event; see GRAPH HOM"
        return "no choice of statements gives every variable one value"

    def _order(self) -> list[int]:
        """Arcs from home on."""
        order: list[int] = []
        seen = {0}
        while len(order) < len(self._pattern.arcs):
            fresh = [i for i, a in enumerate(self._pattern.arcs) if i not in order and a.subject in seen]
            order += fresh
            seen |= {self._pattern.arcs[i].object for i in fresh}
        return order

    def _reason(self, i: int, arc: tuple[int, str, int]) -> tuple[bool, str] | None:
        """None if the event's arc fits the pattern's arc i; else why not, and whether it was near: the same
        property."""
        s, name, o = arc
        wanted = self._pattern.arcs[i]
        above = self._ontology.properties_above(name) if name != SELF else frozenset((SELF,))
        if wanted.property not in above:
            return False, "another property"
        if wanted.subject == wanted.object and s != o:
            return True, "subject and object differ"
        for vertex, v in ((wanted.subject, s), (wanted.object, o)):
            why = self._unfit(self._pattern.vertices[vertex], v)
            if why:
                return True, why
        return None

    def _unfit(self, vertex: Vertex, v: int) -> str | None:
        term, stated = self._event.terms[v], self._event.classes[v]
        shown = self._term(term)
        if vertex.home and v != 0:
            return f"{shown} is not home"
        if vertex.constant is not None:
            held = constant_of(term) if isinstance(term, Literal) else term
            if held != vertex.constant:
                return f"{shown} is not {self._constant(vertex.constant)}"
        literal = isinstance(term, Literal)
        has = {c for name in stated for c in self._ontology.classes_above(name, literal=literal)}
        for wanted in vertex.classes:
            if stated and wanted not in has:
                return f"{shown} is {' and '.join(map(self._term, stated))}, not {self._term(wanted)}"
        given = {ITSELF: conditions.value(term)}
        for condition in vertex.conditions:
            truth = conditions.compiled(condition)(given)
            if truth is not True:
                what = "not true" if truth is False else "a type error"
                return f"{_expression(condition, shown)} is {what}"
        return None

    def _text(self, i: int) -> str:
        arc = self._pattern.arcs[i]
        said = []
        for x in (arc.subject, arc.object):
            classes = " and ".join(map(self._term, self._pattern.vertices[x].classes))
            said.append(f"{self._names[x]} (a {classes})" if classes else self._names[x])
        return said[0] if arc.property == SELF else f"{said[0]} {self._term(arc.property)} {said[1]}"

    def _statement(self, arc: tuple[int, str, int]) -> str:
        s, name, o = arc
        if name == SELF:
            return self._term(self._event.terms[0])
        return f"{self._term(self._event.terms[s])} {self._term(name)} {self._term(self._event.terms[o])}"

    def _pattern_name(self, i: int, vertex: Vertex) -> str:
        if vertex.home:
            return "_:H"
        return f"_:{i}" if vertex.constant is None else self._constant(vertex.constant)

    def _constant(self, constant: Any) -> str:
        return self._term(constant) if isinstance(constant, (str, Literal)) else str(constant)

    def _term(self, term: Term) -> str:
        if isinstance(term, Literal):
            value = value_of(term)
            return str(term) if value is None or isinstance(value, str) else term.lexical
        for prefix, base in self._prefixes:
            if term.startswith("<" + base):
                return f"{prefix}:{term[len(base) + 1 : -1]}"
        return term


def _expression(condition: ast.Node, it: str) -> str:
    """A condition as it was written, with the value in place of the variable."""

    def shown(node: ast.Node) -> ast.Node | None:
        return ast.Name(it) if isinstance(node, ast.Variable) else None

    return print_node(ast.rewrite(condition, shown))
