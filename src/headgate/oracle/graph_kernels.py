"""The plain twins of `headgate.graphs.kernels`: the same answers, by looking at everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from headgate.graphs import conditions
from headgate.graphs.event import EventGraph
from headgate.graphs.index import PatternIndex
from headgate.graphs.pattern import ITSELF, SELF, Pattern, Vertex, constant_of
from headgate.graphs.terms import Literal
from headgate.predicates import ranks

Row = tuple[int, int, int]
"""(statement pattern, subject, object)."""


def statements(index: PatternIndex, event: EventGraph) -> set[Row]:
    """Every statement pattern against every arc. Conditions that no rank decides are not asked here."""
    found = set()
    columns, ontology = index.columns, index.dictionary.ontology
    for p, pattern in enumerate(index.patterns):
        for arc, m in zip(
            pattern.arcs, columns.arc_m[columns.arcs_at[p] : columns.arcs_at[p + 1]].tolist(), strict=True
        ):
            for s, name, o in [*event.arcs, (0, SELF, 0)]:
                below = arc.property == name or (name != SELF and arc.property in ontology.properties_above(name))
                if not below or (arc.subject == arc.object and s != o):
                    continue
                ends = ((pattern.vertices[arc.subject], s), (pattern.vertices[arc.object], o))
                if all(fits(vertex, event, v, index) for vertex, v in ends):
                    found.add((m, s, o))
    return found


def fits(vertex: Vertex, event: EventGraph, v: int, index: PatternIndex) -> bool:
    term, stated = event.terms[v], event.classes[v]
    literal = isinstance(term, Literal)
    if vertex.home and v != 0:
        return False
    held = constant_of(term) if isinstance(term, Literal) else term
    if vertex.constant is not None and held != vertex.constant:
        return False
    above = {c for name in stated for c in index.dictionary.ontology.classes_above(name, literal=literal)}
    if stated and not above.issuperset(vertex.classes):
        return False
    given = {ITSELF: conditions.value(term)}
    return all(conditions.compiled(c)(given) is True for c in vertex.conditions if ranks.comparable(c))


def candidates(index: PatternIndex, rows: Sequence[set[Row]]) -> set[tuple[int, int]]:
    """The (event, pattern) pairs all of whose statement patterns have a row."""
    columns = index.columns
    needed = [
        set(columns.arc_m[columns.arcs_at[p] : columns.arcs_at[p + 1]].tolist()) for p in range(len(index.patterns))
    ]
    return {(e, p) for e, own in enumerate(rows) for p, ms in enumerate(needed) if ms <= {m for m, _, _ in own}}


def solutions(
    pattern: Pattern, arc_m: Sequence[int], event: EventGraph, rows: Iterable[Row]
) -> Iterator[tuple[int, ...]]:
    """Every mapping of the pattern's vertices: one row an arc, in all combinations."""
    rows = sorted(rows)
    choices = [[(s, o) for m, s, o in rows if m == wanted] for wanted in arc_m]
    for chosen in product(*choices):
        value: dict[int, int] = {0: 0}
        pairs = [
            (x, v)
            for arc, (s, o) in zip(pattern.arcs, chosen, strict=True)
            for x, v in ((arc.subject, s), (arc.object, o))
        ]
        if all(value.setdefault(x, v) == v for x, v in pairs) and _allowed(pattern, event, value):
            yield tuple(value[x] for x in range(len(pattern.vertices)))


def _allowed(pattern: Pattern, event: EventGraph, value: dict[int, int]) -> bool:
    for x, v in value.items():
        for y, w in value.items():
            if pattern.group[x] == pattern.group[y]:
                by_value = not isinstance(pattern.vertices[x].constant, (str, Literal, type(None)))
                if not by_value and event.terms[v] != event.terms[w]:
                    return False
            elif not pattern.hom and v == w:
                return False
    return True
