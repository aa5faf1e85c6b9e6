"""The pictures of an explanation: the decision diagram of a filter, and linked chains of operators.

The diagram asks one condition after the other, in the order of the text. A condition may be true, false or unknown;
where the last two lead to the same place, they are one edge, "else". It is reduced: equal parts are drawn once, and a
question whose answers make no difference is left out. Past a budget of nodes a diagram would explain nothing, and past
one of states it would take too long to find; then the formula is drawn as it was written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.printer import print_node
from headgate.pictures import Picture

MOST_NODES = 200
MOST_STATES = 2_000
"""Partly decided bodies that are looked at for a diagram."""


# ------------------------------------------------------------------ decision diagrams


@dataclass(frozen=True, slots=True)
class _Want:
    """An atom that should be TRUE, or FALSE."""

    atom: int
    wanted: bool


@dataclass(frozen=True, slots=True)
class _Joint:
    """AND or OR."""

    word: str
    parts: tuple[Wish, ...]


Wish = bool | _Want | _Joint
"""A body with its NOTs at the atoms, as far as it is open."""


def decision_diagram(title: str, body: Node, two_valued: bool = False) -> Picture:
    """The decision diagram of a body over its atoms; its AND and OR nodes where that would be too large."""
    atoms: dict[Node, int] = {}
    wish = _wish(body, True, atoms)
    if len(atoms) > MOST_NODES:
        return _drawn_as_written(title, wish, list(atoms))
    try:
        return _Diagram(title, list(atoms), two_valued).draw(wish)
    except _TooLarge:
        return _drawn_as_written(title, wish, list(atoms))


class _TooLarge(Exception):
    pass


def _wish(node: Node, wanted: bool, atoms: dict[Node, int]) -> Wish:
    match node:
        case ast.Not(operand):
            return _wish(operand, not wanted, atoms)
        case ast.And(items) | ast.Or(items):
            joint = "and" if isinstance(node, ast.And) == wanted else "or"
            return _joined(joint, [_wish(i, wanted, atoms) for i in items])
        case ast.Literal(bool() as value):
            return value == wanted
    return _Want(atoms.setdefault(node, len(atoms)), wanted)


def _joined(joint: str, parts: Iterable[Wish]) -> Wish:
    kept: list[Wish] = []
    for part in parts:
        if part is (joint == "or"):
            return part
        if not isinstance(part, bool) and part not in kept:
            kept.append(part)
    if not kept:
        return joint == "and"
    return kept[0] if len(kept) == 1 else _Joint(joint, tuple(kept))


def _given(wish: Wish, atom: int, truth: bool | None) -> Wish:
    """What is left to ask once the truth of an atom is known; unknown is neither TRUE nor FALSE."""
    match wish:
        case _Want(number, wanted):
            return wish if number != atom else truth is wanted
        case _Joint(word, parts):
            return _joined(word, [_given(p, atom, truth) for p in parts])
    return wish


class _Diagram:
    def __init__(self, title: str, atoms: Sequence[Node], two_valued: bool) -> None:
        self._picture = Picture(title)
        self._atoms = atoms
        self._truths = (True, False) if two_valued else (True, False, None)
        self._known: dict[tuple[int, Wish], int] = {}
        self._made: dict[tuple[int, ...], int] = {}
        self._ends: dict[bool, int] = {}

    def draw(self, wish: Wish) -> Picture:
        self._node(0, wish)
        return self._picture

    def _node(self, at: int, wish: Wish) -> int:
        if isinstance(wish, bool):
            if wish not in self._ends:
                self._ends[wish] = self._picture.node("match" if wish else "no match", "doublecircle")
            return self._ends[wish]
        known = self._known.get((at, wish))
        if known is not None:
            return known
        if len(self._known) >= MOST_STATES:
            raise _TooLarge
        parts = [_given(wish, at, truth) for truth in self._truths]
        if all(p == parts[0] for p in parts):
            found = self._node(at + 1, parts[0])
        else:
            found = self._question(at, tuple(self._node(at + 1, p) for p in parts))
        self._known[at, wish] = found
        return found

    def _question(self, at: int, below: tuple[int, ...]) -> int:
        if len(set(below)) == 1:
            return below[0]
        if (at, *below) not in self._made:
            if len(self._picture.nodes) >= MOST_NODES:
                raise _TooLarge
            node = self._made[at, *below] = self._picture.node(print_node(self._atoms[at]))
            names = ("true", "false", "unknown")
            by_target: dict[int, list[str]] = {}
            for target, name in zip(below, names, strict=False):
                by_target.setdefault(target, []).append(name)
            for target, truths in by_target.items():
                label = "else" if truths == ["false", "unknown"] else " or ".join(truths)
                self._picture.arrow(node, target, label, "solid" if "true" in truths else "dashed")
        return self._made[at, *below]


def _drawn_as_written(title: str, wish: Wish, atoms: Sequence[Node]) -> Picture:
    picture = Picture(title)

    def node(part: Wish) -> int:
        match part:
            case _Want(number, wanted):
                text = print_node(atoms[number])
                return picture.node(text if wanted else f"{text} is false")
            case _Joint(word, parts):
                made = picture.node(word.upper(), "circle")
                for inner in parts:
                    picture.arrow(made, node(inner))
                return made
        return picture.node("match" if part else "no match", "doublecircle")

    node(wish)
    return picture


# ------------------------------------------------------------------ linked chains


def linked_chains(title: str, chains: Sequence[tuple[str, Sequence[str]]]) -> Picture:
    """Subscriptions as chains of predicates, the most decisive for its cost first; dashed between equal predicates."""
    picture = Picture(title)
    last: dict[str, int] = {}
    for name, predicates in chains:
        above = picture.node(name, "plaintext")
        for predicate in predicates:
            node = picture.node(predicate)
            picture.arrow(above, node)
            if predicate in last:
                picture.arrow(last[predicate], node, "shared", "dashed")
            last[predicate] = above = node
    return picture
