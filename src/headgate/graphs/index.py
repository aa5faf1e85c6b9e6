"""The index of many patterns: shared vertices, shared statement patterns, shared patterns.

A statement pattern (OPS, section 4) is a property between two pattern vertices. Equal ones of different subscriptions
are one, and are filed under the meta-statements in use only: by property and a class of the subject, or by property
and constant where the object is one. Never the product of all classes and properties.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.columns import offsets_of
from headgate.graphs.dictionary import Dictionary, flat
from headgate.graphs.kernels import Int32, Ints, Mask
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import Constant, Named, Pattern, Vertex
from headgate.graphs.terms import Literal
from headgate.language.ast import Node
from headgate.predicates import ranks


@dataclass(frozen=True, eq=False)
class Vertices:
    """What pattern vertices ask for, in columns. `slow` are the conditions that no rank decides."""

    home: Mask
    constant: Int32
    class_at: Ints
    classes: Int32
    ranked: Mask
    range_at: Ints
    low: Ints
    high: Ints
    slow: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, eq=False)
class Statements:
    """Statement patterns: `subject` and `object` are vertices of `Vertices`. Filed twice, each in one of the files."""

    subject: Int32
    object: Int32
    loop: Mask
    by_class: Ints
    by_class_m: Int32
    by_constant: Ints
    by_constant_m: Int32
    slow: Mask
    """Whether a vertex of it has a slow condition."""


@dataclass(frozen=True, eq=False)
class Patterns:
    """Patterns in columns, as the kernels read them. `rare_m` are the statement patterns of each, rarest first. A
    view is an order of a pattern's vertices: that of the variables of the subscriptions that see it so."""

    hom: Mask
    vertices_at: Ints
    group: Int32
    alike: Mask
    arcs_at: Ints
    arc_subject: Int32
    arc_object: Int32
    arc_m: Int32
    rare_at: Ints
    rare_m: Int32
    view_at: Ints
    view_vertex_at: Ints
    view_vertex: Int32


@dataclass(frozen=True, eq=False)
class Slots:
    """Which subscriptions see which view, and by which names."""

    named: tuple[Named, ...]
    names: tuple[tuple[str, ...], ...]
    view: Int32
    at: Ints
    of_view: Int32
    """The slots of each view."""
    every: frozenset[int]
    """Slots that need all their bindings, not only the least."""


@dataclass(frozen=True, eq=False)
class PatternIndex:
    patterns: tuple[Pattern, ...]
    dictionary: Dictionary
    vertices: Vertices
    statements: Statements
    columns: Patterns
    slots: Slots

    def with_ontology(self, ontology: Ontology) -> PatternIndex:
        """The same patterns under another ontology; nothing is compiled anew."""
        return replace(self, dictionary=self.dictionary.with_ontology(ontology))


def build(named: Sequence[Named], ontology: Ontology, every: Collection[int] = ()) -> PatternIndex:
    """Index the patterns of all subscriptions; the slot of a subscription is its place in `named`."""
    patterns: dict[Pattern, int] = {}
    views: dict[tuple[int, tuple[int, ...]], int] = {}
    seen: list[tuple[int, tuple[int, ...]]] = []
    for one in named:
        number = patterns.setdefault(one.pattern, len(patterns))
        seen.append((number, tuple(vertex for _, vertex in one.variables)))
    for view in sorted(set(seen)):
        views[view] = len(views)
    numbers: dict[Vertex, int] = {}
    properties: dict[str, int] = {}
    statements: dict[tuple[int, int, int, bool], int] = {}
    arc_m: list[list[int]] = []
    for pattern in patterns:
        own = [numbers.setdefault(v, len(numbers)) for v in pattern.vertices]
        arc_m.append([])
        for s, name, o in pattern.arcs:
            p = properties.setdefault(name, len(properties))
            arc_m[-1].append(statements.setdefault((own[s], p, own[o], s == o), len(statements)))
    vertices = list(numbers)
    classes = {c: i + 1 for i, c in enumerate(sorted({c for v in vertices for c in v.classes}))}
    constants: dict[Constant, int] = {}
    for v in vertices:
        if v.constant is not None:
            constants.setdefault(v.constant, len(constants))
    compared: list[Any] = []
    for v in vertices:
        for condition in v.conditions:
            if ranks.comparable(condition):
                compared += ranks.constants(condition)
    dictionary = Dictionary(ontology, classes, properties, constants, ranks.Ranks.of(compared))
    held = _vertices(vertices, dictionary)
    return PatternIndex(
        tuple(patterns),
        dictionary,
        held,
        _statements(list(statements), vertices, held, dictionary),
        _patterns(list(patterns), arc_m, list(views)),
        _slots(tuple(named), [views[s] for s in seen], len(views), every),
    )


def _vertices(vertices: list[Vertex], dictionary: Dictionary) -> Vertices:
    ranges: list[list[tuple[int, int]]] = []
    ranked = np.zeros(len(vertices), np.bool_)
    slow: list[tuple[Node, ...]] = []
    for i, v in enumerate(vertices):
        fast = [c for c in v.conditions if ranks.comparable(c)]
        slow.append(tuple(c for c in v.conditions if not ranks.comparable(c)))
        allowed = ranks.EVERYTHING
        for c in fast:
            allowed = ranks.intersection(allowed, dictionary.ranks.intervals(c))
        ranked[i] = bool(fast)
        ranges.append(allowed if fast else [])
    class_at, classes = flat([[dictionary.classes[c] for c in v.classes] for v in vertices])
    range_at = offsets_of([len(r) for r in ranges])
    return Vertices(
        np.array([v.home for v in vertices], np.bool_),
        np.array([-1 if v.constant is None else dictionary.constants[v.constant] for v in vertices], np.int32),
        class_at,
        classes,
        ranked,
        range_at,
        np.array([low for r in ranges for low, _ in r], np.int64),
        np.array([high for r in ranges for _, high in r], np.int64),
        tuple(slow),
    )


def _statements(
    statements: list[tuple[int, int, int, bool]], vertices: list[Vertex], held: Vertices, dictionary: Dictionary
) -> Statements:
    by_class: list[tuple[int, int]] = []
    by_constant: list[tuple[int, int]] = []
    for m, (s, p, o, _) in enumerate(statements):
        if held.constant[o] >= 0:
            by_constant.append((p * len(dictionary.constants) + int(held.constant[o]), m))
        else:
            first = dictionary.classes[vertices[s].classes[0]] if vertices[s].classes else 0
            by_class.append((p * (len(dictionary.classes) + 1) + first, m))
    by_class.sort()
    by_constant.sort()
    return Statements(
        np.array([s for s, _, _, _ in statements], np.int32),
        np.array([o for _, _, o, _ in statements], np.int32),
        np.array([loop for _, _, _, loop in statements], np.bool_),
        np.array([key for key, _ in by_class], np.int64),
        np.array([m for _, m in by_class], np.int32),
        np.array([key for key, _ in by_constant], np.int64),
        np.array([m for _, m in by_constant], np.int32),
        np.array([bool(held.slow[s] or held.slow[o]) for s, _, o, _ in statements], np.bool_),
    )


def _patterns(patterns: list[Pattern], arc_m: list[list[int]], views: list[tuple[int, tuple[int, ...]]]) -> Patterns:
    uses = Counter(m for arcs in arc_m for m in set(arcs))
    vertices_at, group = flat([p.group for p in patterns])
    arcs_at, arc_subject = flat([[a.subject for a in p.arcs] for p in patterns])
    rare_at, rare_m = flat([sorted(set(arcs), key=lambda m: (uses[m], m)) for arcs in arc_m])
    view_vertex_at, view_vertex = flat([order for _, order in views])
    view_at = offsets_of(np.bincount([p for p, _ in views], minlength=len(patterns)))
    return Patterns(
        np.array([p.hom for p in patterns], np.bool_),
        vertices_at,
        group,
        # A numeric constant may stand for terms that differ; every other vertex holds one term.
        np.array([isinstance(v.constant, str | Literal | None) for p in patterns for v in p.vertices], np.bool_),
        arcs_at,
        arc_subject,
        flat([[a.object for a in p.arcs] for p in patterns])[1],
        flat(arc_m)[1],
        rare_at,
        rare_m,
        view_at,
        view_vertex_at,
        view_vertex,
    )


def _slots(named: tuple[Named, ...], view: list[int], views: int, every: Collection[int]) -> Slots:
    seen_by: list[list[int]] = [[] for _ in range(views)]
    for slot, v in enumerate(view):
        seen_by[v].append(slot)
    at, of_view = flat(seen_by)
    names = tuple(tuple(name for name, _ in one.variables) for one in named)
    return Slots(named, names, np.array(view, np.int32), at, of_view, frozenset(every))


def asked_words(index: PatternIndex, event: NDArray[np.int64], slot: Int32, events: int) -> NDArray[np.uint64]:
    """The pairs asked for, as a row of event bits for each pattern."""
    words = np.zeros((len(index.patterns), (events + 63) // 64), np.uint64)
    pattern_of_view = np.repeat(np.arange(len(index.patterns)), np.diff(index.columns.view_at))
    pattern = pattern_of_view[index.slots.view[slot]]
    np.bitwise_or.at(words, (pattern, event >> 6), np.uint64(1) << (event & 63).astype(np.uint64))
    return words
