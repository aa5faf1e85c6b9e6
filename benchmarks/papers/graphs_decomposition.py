"""The algorithm that the OPS paper compares with in figure 8b: decomposition (Messmer and Bunke, its reference 19).

Every pattern is cut in two, and each part again, down to single vertices; equal parts of different patterns are one. An
event is matched with the smallest parts first, and what was found of two parts is put together into what is found of
their union: all of it is kept. The algorithm tries all pairs of what it joins; with `led` the arcs of the event lead from
one part to the other, so that few are tried, which the paper's peer did not do.

A pattern is cut where its parts are connected and of about the same size. Names must be equal, vertices injective.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import permutations

from benchmarks.papers.graphs_workload import Drawn

Arc = tuple[int, int, int]
Instance = tuple[int, ...]
"""The event's vertex for each vertex of a part, in the order of the part."""
_SHARED = 4
"""Parts of so many vertices are told to be equal whatever the order of their vertices; larger ones only if it is the same."""


@dataclass(frozen=True)
class Part:
    """A subgraph of a pattern: the classes of its vertices (home is its own class), its arcs, and what it is joined of.

    `left` and `right` are numbers of parts, `places` the vertices of both here, `across` the arcs between them.
    """

    classes: tuple[int, ...]
    arcs: tuple[Arc, ...]
    left: int = -1
    right: int = -1
    places: tuple[int, ...] = ()
    across: tuple[Arc, ...] = ()


class Decomposition:
    """The parts of many patterns, smaller ones first."""

    def __init__(self, patterns: Sequence[Drawn], *, led: bool) -> None:
        self._led = led
        self.parts: list[Part] = []
        self._known: dict[tuple[object, ...], int] = {}
        self.roots = [self._add(tuple(range(len(p.classes))), p)[0] for p in patterns]

    def match(self, event: Drawn) -> set[int]:
        """The patterns that the event matches."""
        out: dict[tuple[int, int], list[int]] = {}
        for s, p, o in event.arcs:
            out.setdefault((s, p), []).append(o)
        arcs = set(event.arcs)
        found: list[list[Instance]] = []
        for part in self.parts:
            found.append(
                _vertices(part, event) if part.left < 0 else _joined(part, found, out if self._led else None, arcs)
            )
        return {i for i, root in enumerate(self.roots) if found[root]}

    def _add(self, vertices: tuple[int, ...], pattern: Drawn) -> tuple[int, tuple[int, ...]]:
        """The number of the part with these vertices of a pattern, and the vertices in the order of the part."""
        order = _canonical(vertices, pattern)
        classes, arcs = _described(order, pattern)
        known = self._known.get((classes, arcs))
        if known is not None:
            return known, order
        if len(order) == 1:
            part = Part(classes, arcs)
        else:
            first, second = _halves(order, pattern)
            left, left_order = self._add(first, pattern)
            right, right_order = self._add(second, pattern)
            at = {v: i for i, v in enumerate((*left_order, *right_order))}
            across = tuple(
                (at[s], p, at[o])
                for s, p, o in pattern.arcs
                if s in at and o in at and (at[s] < len(left_order)) != (at[o] < len(left_order))
            )
            places = tuple(at[v] for v in order)
            part = Part(classes, arcs, left, right, places, across)
        self.parts.append(part)
        self._known[classes, arcs] = len(self.parts) - 1
        return len(self.parts) - 1, order


def _vertices(part: Part, event: Drawn) -> list[Instance]:
    own = part.classes[0]
    loops = [p for _, p, _ in part.arcs]
    held = set(event.arcs)
    return [
        (v,)
        for v, kind in enumerate(event.classes)
        if (own == -1 - kind if v == 0 else own == kind) and all((v, p, v) in held for p in loops)
    ]


def _joined(
    part: Part, found: Sequence[list[Instance]], out: dict[tuple[int, int], list[int]] | None, arcs: set[Arc]
) -> list[Instance]:
    left, right = found[part.left], found[part.right]
    if not left or not right:
        return []
    width = len(left[0])
    made = []
    forward = next(((s, p, o) for s, p, o in part.across if s < width), None)
    backward = next(((s, p, o) for s, p, o in part.across if s >= width), None)
    by: dict[int, list[Instance]] = {}
    pairs: Iterable[tuple[Instance, Instance]]
    if out is None or (forward is None and backward is None):
        pairs = ((a, b) for a in left for b in right)
    elif forward is not None:
        for instance in right:
            by.setdefault(instance[forward[2] - width], []).append(instance)
        pairs = ((a, b) for a in left for o in out.get((a[forward[0]], forward[1]), ()) for b in by.get(o, ()))
    else:
        assert backward is not None
        for instance in left:
            by.setdefault(instance[backward[2]], []).append(instance)
        pairs = (
            (a, b) for b in right for o in out.get((b[backward[0] - width], backward[1]), ()) for a in by.get(o, ())
        )
    for a, b in pairs:
        if not set(a) & set(b):
            both = a + b
            if all((both[s], p, both[o]) in arcs for s, p, o in part.across):
                made.append(tuple(both[i] for i in part.places))
    return made


def _described(order: Sequence[int], pattern: Drawn) -> tuple[tuple[int, ...], tuple[Arc, ...]]:
    at = {v: i for i, v in enumerate(order)}
    classes = tuple(-1 - pattern.classes[v] if v == 0 else pattern.classes[v] for v in order)
    return classes, tuple(sorted((at[s], p, at[o]) for s, p, o in pattern.arcs if s in at and o in at))


def _canonical(vertices: tuple[int, ...], pattern: Drawn) -> tuple[int, ...]:
    if len(vertices) > _SHARED:
        return vertices
    return min(permutations(vertices), key=lambda order: _described(order, pattern))


def _halves(vertices: tuple[int, ...], pattern: Drawn) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two connected parts of about the same size: what hangs below one arc of a spanning tree, and the rest. Vertices that
    do not hang together are cut anywhere."""
    inside = set(vertices)
    near: dict[int, list[int]] = {v: [] for v in vertices}
    for s, _, o in pattern.arcs:
        if s in inside and o in inside and s != o:
            near[s].append(o)
            near[o].append(s)
    order, parent = [vertices[0]], {vertices[0]: vertices[0]}
    for v in order:
        for w in near[v]:
            if w not in parent:
                parent[w] = v
                order.append(w)
    if len(order) < len(vertices):
        return tuple(sorted(order)), tuple(v for v in vertices if v not in parent)
    below: dict[int, set[int]] = {v: {v} for v in order}
    for v in reversed(order[1:]):
        below[parent[v]] |= below[v]
    cut = min(order[1:], key=lambda v: (abs(2 * len(below[v]) - len(vertices)), v))
    return tuple(v for v in vertices if v not in below[cut]), tuple(sorted(below[cut]))
