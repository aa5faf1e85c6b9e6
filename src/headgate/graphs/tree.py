"""The matching tree of OPS, section 5.4, as a picture of one pattern in one event.

Round nodes are partial solutions (a pattern vertex and the event vertex it is mapped to), square nodes are derived
statement patterns: an arc with its subject bound. A round node needs all its squares, a square any of its rounds. The
paper grows a square anew on every path that leads to it, which is exponential; here it is grown once for each (arc,
bound subject) and shared, so the tree is a graph, and its check (SBPV) a fixed point: what is left when squares
without a round and rounds with a lost square have been taken away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headgate.graphs.pattern import Pattern
from headgate.pictures import Picture

Square = tuple[int, int]
"""(arc, event vertex bound to its subject)."""
Round = tuple[int, int]
"""(pattern vertex, event vertex)."""
Rows = Sequence[Sequence[tuple[int, int]]]
"""For each arc the (subject, object) pairs of event vertices that fit it."""


@dataclass(frozen=True)
class MatchingTree:
    """`squares` has the rounds below each square, `rounds` the squares below each round. The root is (0, 0)."""

    rounds: Mapping[Round, tuple[Square, ...]]
    squares: Mapping[Square, tuple[Round, ...]]
    checked: frozenset[Round]

    @property
    def size(self) -> int:
        return len(self.rounds) + len(self.squares)

    @property
    def possible(self) -> bool:
        """Whether the root is checked: if not, the event does not match."""
        return (0, 0) in self.checked


def grow(pattern: Pattern, rows: Rows) -> MatchingTree:
    """The tree of a pattern. Nothing is missed by the order of an event's statements: all of them are replayed to every
    pattern that is derived."""
    arcs_of: list[list[int]] = [[] for _ in pattern.vertices]
    for i, arc in enumerate(pattern.arcs):
        arcs_of[arc.subject].append(i)
    by_subject: list[dict[int, list[int]]] = []
    for pairs in rows:
        index: dict[int, list[int]] = {}
        for s, o in pairs:
            index.setdefault(s, []).append(o)
        by_subject.append(index)
    rounds: dict[Round, tuple[Square, ...]] = {}
    squares: dict[Square, tuple[Round, ...]] = {}
    front: list[Round] = [(0, 0)]
    for vertex, bound in front:
        if (vertex, bound) in rounds:
            continue
        below = tuple((i, bound) for i in arcs_of[vertex])
        rounds[vertex, bound] = below
        for square in below:
            if square in squares:
                continue
            arc = pattern.arcs[square[0]]
            # Under ISO no other vertex is home.
            targets = [o for o in by_subject[square[0]].get(bound, ()) if pattern.hom or (o == 0) == (arc.object == 0)]
            squares[square] = tuple((arc.object, o) for o in targets)
            front += squares[square]
    return MatchingTree(rounds, squares, _check(rounds, squares))


def _check(rounds: Mapping[Round, tuple[Square, ...]], squares: Mapping[Square, tuple[Round, ...]]) -> frozenset[Round]:
    kept = set(rounds)
    changed = True
    while changed:
        lost = {square for square, below in squares.items() if not any(r in kept for r in below)}
        gone = {r for r in kept if any(square in lost for square in rounds[r])}
        kept -= gone
        changed = bool(gone)
    return frozenset(kept)


Namer = Callable[[int], str]


def picture(title: str, tree: MatchingTree, pattern_vertex: Namer, event_vertex: Namer, statement: Namer) -> Picture:
    """The tree as a picture: checked nodes are drawn solid, lost ones dashed."""
    drawn = Picture(title)
    rounds = {
        r: drawn.node(f"{pattern_vertex(r[0])} = {event_vertex(r[1])}", "ellipse", r not in tree.checked)
        for r in tree.rounds
    }
    squares = {
        s: drawn.node(f"{statement(s[0])} from {event_vertex(s[1])}", "box", not any(r in tree.checked for r in below))
        for s, below in tree.squares.items()
    }
    for r, needed in tree.rounds.items():
        for s in needed:
            drawn.arrow(rounds[r], squares[s])
    for s, below in tree.squares.items():
        for r in below:
            drawn.arrow(squares[s], rounds[r])
    return drawn
