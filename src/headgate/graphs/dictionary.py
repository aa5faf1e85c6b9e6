"""Names to numbers: the classes, properties and constants in use, and events by them.

Only what some pattern mentions has a number. A class of an event stands for the classes in use above it; the ontology
is asked once for each set of classes and each property that events bring, and the answer kept as a row. A new
ontology is a new dictionary over the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np

from headgate.columns import offsets_of
from headgate.graphs.event import EventGraph
from headgate.graphs.kernels import Int32, Ints, Mask, Words
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import SELF, Constant, constant_of
from headgate.graphs.terms import Literal, Term, order_of, value_of
from headgate.predicates.ranks import Ranks

_KEPT = 200_000
"""Names remembered; past that the memory starts anew."""
_growing = Lock()
"""Rows are added and tables made by one thread at a time."""


@dataclass(frozen=True)
class Batch:
    """Events as arrays. Vertices and arcs of event e are `vertex_at[e]` to `vertex_at[e + 1]` and so on."""

    graphs: Sequence[EventGraph]
    vertex_at: Ints
    row: Int32
    constant: Int32
    rank: Ints
    term: Int32
    arc_at: Ints
    subject: Int32
    property: Int32
    object: Int32

    def orders(self, events: Iterable[int]) -> Int32:
        """For each vertex of the given events its place in the order of bindings; equal values have equal places."""
        places = np.zeros(len(self.row), np.int32)
        for e in events:
            keys = [order_of(t) for t in self.graphs[e].terms]
            rank = {key: i for i, key in enumerate(sorted(set(keys)))}
            places[self.vertex_at[e] : self.vertex_at[e + 1]] = [rank[key] for key in keys]
        return places


@dataclass
class Dictionary:
    """`classes` count from 1: 0 files what asks for no class. The rows grow as events bring new names."""

    ontology: Ontology
    classes: dict[str, int]
    properties: dict[str, int]
    constants: dict[Constant, int]
    ranks: Ranks
    _rows: dict[tuple[bool, tuple[str, ...]], int] = field(default_factory=dict)
    _row_classes: dict[tuple[bool, tuple[int, ...]], int] = field(default_factory=dict)
    """Rows by what they say: whether anything goes, and the classes in use. Names that nobody asks for add none."""
    _property_rows: dict[str, int] = field(default_factory=dict)
    _above: dict[tuple[int, ...], int] = field(default_factory=dict)
    _terms: dict[Term, tuple[int, int]] = field(default_factory=dict)
    _tables: tuple[Mask, Words, Ints, Int32, Ints, Int32] | None = None

    def with_ontology(self, ontology: Ontology) -> Dictionary:
        return Dictionary(ontology, self.classes, self.properties, self.constants, self.ranks)

    def _row(self, key: tuple[bool, tuple[str, ...]]) -> int:
        literal, stated = key
        above = {c for name in stated for c in self.ontology.classes_above(name, literal=literal)}
        said = (not stated, tuple(sorted(self.classes[c] for c in above if c in self.classes)))
        with _growing:
            if said not in self._row_classes:
                self._tables = None
            if len(self._rows) >= _KEPT:
                self._rows.clear()
            found = self._rows[key] = self._row_classes.setdefault(said, len(self._row_classes))
        return found

    def _property_row(self, name: str) -> int:
        above = self.ontology.properties_above(name) if name != SELF else (SELF,)
        said = tuple(sorted(self.properties[p] for p in above if p in self.properties))
        with _growing:
            if said not in self._above:
                self._tables = None
            if len(self._property_rows) >= _KEPT:
                self._property_rows.clear()
            found = self._property_rows[name] = self._above.setdefault(said, len(self._above))
        return found

    def _term(self, term: Term) -> tuple[int, int]:
        """The number of the constant that the term is, or -1; and its rank."""
        if isinstance(term, Literal):
            found = self.constants.get(constant_of(term), -1), self.ranks.rank(value_of(term))
        else:
            found = self.constants.get(term, -1), -1
        if len(self._terms) >= _KEPT:
            self._terms.clear()
        self._terms[term] = found
        return found

    def encode(self, graphs: Sequence[EventGraph]) -> Batch:
        rows, terms, property_rows = self._rows, self._terms, self._property_rows
        vertex_at, arc_at = [0], [0]
        row: list[int] = []
        constant: list[int] = []
        rank: list[int] = []
        same: list[int] = []
        subjects: list[int] = []
        properties: list[int] = []
        objects: list[int] = []
        home = property_rows.get(SELF)
        home = self._property_row(SELF) if home is None else home
        for graph in graphs:
            equal: dict[Term, int] = {}
            for term, stated in zip(graph.terms, graph.classes, strict=True):
                key = (isinstance(term, Literal), stated)
                found = rows.get(key)
                row.append(self._row(key) if found is None else found)
                known = terms.get(term)
                number, place = self._term(term) if known is None else known
                constant.append(number)
                rank.append(place)
                same.append(equal.setdefault(term, len(equal)))
            for s, name, o in graph.arcs:
                above = property_rows.get(name)
                subjects.append(s)
                properties.append(self._property_row(name) if above is None else above)
                objects.append(o)
            subjects.append(0)
            properties.append(home)
            objects.append(0)
            vertex_at.append(len(row))
            arc_at.append(len(subjects))
        return Batch(
            graphs,
            np.array(vertex_at, np.int64),
            np.array(row, np.int32),
            np.array(constant, np.int32),
            np.array(rank, np.int64),
            np.array(same, np.int32),
            np.array(arc_at, np.int64),
            np.array(subjects, np.int32),
            np.array(properties, np.int32),
            np.array(objects, np.int32),
        )

    def tables(self) -> tuple[Mask, Words, Ints, Int32, Ints, Int32]:
        """The rows as arrays: whether a row has any class, its classes as bits and as lists, the properties above."""
        with _growing:
            if self._tables is None:
                anything = np.array([any_ for any_, _ in self._row_classes], np.bool_)
                bits = np.zeros((len(self._row_classes), len(self.classes) // 64 + 1), np.uint64)
                for r, (_, classes) in enumerate(self._row_classes):
                    for c in classes:
                        bits[r, c >> 6] |= np.uint64(1 << (c & 63))
                self._tables = (anything, bits, *flat([c for _, c in self._row_classes]), *flat(list(self._above)))
            return self._tables


def flat(lists: Sequence[Sequence[int]]) -> tuple[Ints, Int32]:
    """Lists of numbers as one array, and where each begins."""
    at = offsets_of([len(x) for x in lists])
    return at, np.fromiter((i for x in lists for i in x), np.int32, int(at[-1]))
