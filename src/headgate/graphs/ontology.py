"""The ontology: class and property hierarchies closed once, as bitsets.

RDFS and the part of OWL that orders names: subClassOf, subPropertyOf, equivalentClass, equivalentProperty, and
intersectionOf and unionOf as far as they imply a subclass. Equivalent names share one component; a cycle of the
hierarchy is an equivalence too, and is reported in `warnings`. Domains and ranges infer nothing (docs/semantics.md, section 4);
with the classes they give the meta-statements of OPS, section 3.2, for those who ask.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from headgate.graphs import rdf
from headgate.graphs.rdf import Triple
from headgate.graphs.terms import (
    DATATYPE_PARENTS,
    LITERAL_CLASS,
    OWL,
    RDF,
    RDFS,
    RESOURCE_CLASSES,
    THING_CLASSES,
    TYPE,
)

SUB_CLASS = f"<{RDFS}subClassOf>"
SUB_PROPERTY = f"<{RDFS}subPropertyOf>"
SAME_CLASS = f"<{OWL}equivalentClass>"
SAME_PROPERTY = f"<{OWL}equivalentProperty>"
DOMAIN = f"<{RDFS}domain>"
RANGE = f"<{RDFS}range>"
_INTERSECTION = f"<{OWL}intersectionOf>"
_UNION = f"<{OWL}unionOf>"
_FIRST, _REST, _NIL = f"<{RDF}first>", f"<{RDF}rest>", f"<{RDF}nil>"
_CLASSES = frozenset({f"<{RDFS}Class>", f"<{OWL}Class>", f"<{RDFS}Datatype>"})
_PROPERTIES = frozenset(
    {f"<{RDF}Property>", f"<{OWL}ObjectProperty>", f"<{OWL}DatatypeProperty>", f"<{OWL}AnnotationProperty>"}
)

Edge = tuple[str, str]


@dataclass(frozen=True)
class Hierarchy:
    """Names with several parents each, closed: row i of `above` has a bit for each component above component i, itself
    included. A name that is not listed is above and below itself only."""

    component: dict[str, int]
    members: tuple[tuple[str, ...], ...]
    above: NDArray[np.uint64]

    def ancestors(self, name: str) -> frozenset[str]:
        """All names above, the name itself and its equivalents included."""
        row = self.component.get(name)
        if row is None:
            return frozenset((name,))
        bits = np.unpackbits(self.above[row].view(np.uint8), bitorder="little")
        return frozenset(m for i in np.flatnonzero(bits).tolist() for m in self.members[i])

    def descendants(self, name: str) -> frozenset[str]:
        row = self.component.get(name)
        if row is None:
            return frozenset((name,))
        column = (self.above[:, row >> 6] >> np.uint64(row & 63)) & np.uint64(1)
        return frozenset(m for i in np.flatnonzero(column).tolist() for m in self.members[i])

    def below(self, name: str, other: str) -> bool:
        """Whether `name` is `other`, equivalent to it, or below it."""
        low, high = self.component.get(name), self.component.get(other)
        if low is None or high is None:
            return name == other
        return bool(int(self.above[low, high >> 6]) >> (high & 63) & 1)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self.component)


def close(edges: Iterable[Edge], equal: Iterable[Edge] = (), names: Iterable[str] = ()) -> tuple[Hierarchy, list[str]]:
    """The hierarchy of (below, above) edges, and a warning for each cycle that no equivalence explains."""
    edges, equal = list(edges), list(equal)
    stated = components([*equal, *((b, a) for a, b in equal)], names)
    parents: dict[str, set[str]] = {name: set() for name in names}
    for low, high in [*edges, *equal, *((b, a) for a, b in equal)]:
        parents.setdefault(low, set()).add(high)
        parents.setdefault(high, set())
    warnings = []
    component: dict[str, int] = {}
    members = components([(low, high) for low, highs in parents.items() for high in sorted(highs)], parents)
    group = {name: i for i, names_ in enumerate(stated) for name in names_}
    for i, names_ in enumerate(members):
        component.update(dict.fromkeys(names_, i))
        if len({group.get(n, n) for n in names_}) > 1:
            shown = ", ".join(names_[:5]) + (", ..." if len(names_) > 5 else "")
            warnings.append(f"a cycle in the hierarchy makes these equivalent: {shown}")
    words = (len(members) + 63) // 64
    above = np.zeros((len(members), max(1, words)), np.uint64)
    # Components come parents first, so every row that is needed is complete.
    for i, names_ in enumerate(members):
        above[i, i >> 6] |= np.uint64(1 << (i & 63))
        for parent in {component[p] for n in names_ for p in parents[n]} - {i}:
            above[i] |= above[parent]
    return Hierarchy(component, tuple(members), above), warnings


def components(edges: Iterable[Edge], names: Iterable[str] = ()) -> list[tuple[str, ...]]:
    """Strongly connected components (Tarjan, without recursion), each sorted; those that an edge leads to come
    first."""
    targets: dict[str, list[str]] = {name: [] for name in names}
    for low, high in edges:
        targets.setdefault(low, []).append(high)
        targets.setdefault(high, [])
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: dict[str, None] = {}
    found: list[tuple[str, ...]] = []
    for root in targets:
        if root in number:
            continue
        number[root] = lowest[root] = len(number)
        open_[root] = None
        work = [(root, iter(targets[root]))]
        while work:
            node, rest = work[-1]
            for target in rest:
                if target not in number:
                    number[target] = lowest[target] = len(number)
                    open_[target] = None
                    work.append((target, iter(targets[target])))
                    break
                if target in open_:
                    lowest[node] = min(lowest[node], number[target])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    part = []
                    while True:
                        top, _ = open_.popitem()
                        part.append(top)
                        if top == node:
                            break
                    found.append(tuple(sorted(part)))
    return found


@dataclass(frozen=True)
class Ontology:
    """What names mean. Frozen: to reload one, read it again and compile with the new one."""

    classes: Hierarchy
    properties: Hierarchy
    domains: dict[str, frozenset[str]]
    ranges: dict[str, frozenset[str]]
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, triples: Iterable[Triple]) -> Ontology:
        by: dict[str, list[Edge]] = {}
        for s, p, o in triples:
            if isinstance(o, str):
                by.setdefault(p, []).append((s, o))
        lists = dict(by.get(_FIRST, ())), dict(by.get(_REST, ()))
        below = [*DATATYPE_PARENTS.items(), *_named(by.get(SUB_CLASS, ()))]
        # The expression behind a named class: `A equivalentClass [ intersectionOf (B C) ]`, or directly on A.
        stands_for = [(e, c) for c, e in (*by.get(SAME_CLASS, ()), *by.get(SUB_CLASS, ())) if e.startswith("_:")]
        exact = {(e, c) for c, e in by.get(SAME_CLASS, ()) if e.startswith("_:")}
        for node, head in by.get(_INTERSECTION, ()):
            owners = [c for e, c in stands_for if e == node] if node.startswith("_:") else [node]
            below += _named((owner, item) for owner in owners for item in _items(head, *lists))
        for node, head in by.get(_UNION, ()):
            owners = [c for e, c in exact if e == node] if node.startswith("_:") else [node]
            below += _named((item, owner) for owner in owners for item in _items(head, *lists))
        types = by.get(TYPE, ())
        classes, cycles = close(
            below, _named(by.get(SAME_CLASS, ())), [s for s, o in types if o in _CLASSES and not s.startswith("_:")]
        )
        properties, more = close(
            _named(by.get(SUB_PROPERTY, ())),
            _named(by.get(SAME_PROPERTY, ())),
            [s for s, o in types if o in _PROPERTIES and not s.startswith("_:")],
        )
        return cls(classes, properties, _sets(by.get(DOMAIN, ())), _sets(by.get(RANGE, ())), (*cycles, *more))

    @classmethod
    def empty(cls) -> Ontology:
        return cls.of(())

    @classmethod
    def parse(cls, text: str, format: str | None = None) -> Ontology:
        return cls.of(rdf.read(text, format))

    @classmethod
    def load(cls, *paths: str | Path) -> Ontology:
        """One ontology of all the files: Turtle, RDF/XML, N-Triples or JSON-LD by their suffix."""
        return cls.merged(map(rdf.read_file, paths))

    @classmethod
    def merged(cls, documents: Iterable[Sequence[Triple]]) -> Ontology:
        """One ontology of several documents, whose blank nodes are different nodes."""

        def own(term: str, document: int) -> str:
            return f"_:f{document}_{term[2:]}" if term.startswith("_:") else term

        return cls.of(
            (own(s, i), p, own(o, i) if isinstance(o, str) else o)
            for i, triples in enumerate(documents)
            for s, p, o in triples
        )

    def classes_above(self, name: str, *, literal: bool = False) -> frozenset[str]:
        """All classes that an individual of class `name` belongs to; the datatype of a literal is its class."""
        tops = (LITERAL_CLASS,) if literal else THING_CLASSES
        found = set(self.classes.ancestors(name))
        for top in (*tops, *RESOURCE_CLASSES):
            found |= self.classes.ancestors(top)
        return frozenset(found)

    def properties_above(self, name: str) -> frozenset[str]:
        return self.properties.ancestors(name)

    def meta_statements(self) -> list[tuple[str, str, str]]:
        """(subject class, property, object class) for every property with a domain and a range."""
        return sorted((d, p, r) for p, ds in self.domains.items() for d in ds for r in self.ranges.get(p, ()))


def _named(edges: Iterable[Edge]) -> list[Edge]:
    return [(a, b) for a, b in edges if a[0] == "<" and b[0] == "<"]


def _sets(edges: Sequence[Edge]) -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for name, other in _named(edges):
        found.setdefault(name, set()).add(other)
    return {name: frozenset(others) for name, others in found.items()}


def _items(head: str, first: dict[str, str], rest: dict[str, str]) -> list[str]:
    items: list[str] = []
    seen: set[str] = set()
    while head != _NIL and head in first and head not in seen:
        seen.add(head)
        items.append(first[head])
        head = rest.get(head, _NIL)
    return items
