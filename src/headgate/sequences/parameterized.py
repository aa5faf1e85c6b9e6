"""Predicates as a skeleton and the constants of one text.

A hundred thousand subscriptions are a few shapes with different constants. What depends on the shape alone (resolution,
rewrites, the split into static and dynamic parts, the normal form) is done once, on the skeleton, whose literals are
holes. A `Parameterized` predicate stands for the whole tree, compares and hashes in no time, and builds the tree when asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headgate.language import ast
from headgate.language.ast import Hole, Node, rewrite

_skeletons: dict[Node, Node] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Parameterized(Node):
    """`skeleton` is interned; its hole number i stands for `values[i]`. The kind of a constant is part of the hole, so
    that 1 and 1.0 are never taken for one another."""

    skeleton: Node
    values: tuple[Any, ...]

    def __hash__(self) -> int:
        return hash((id(self.skeleton), self.values))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Parameterized) and self.skeleton is other.skeleton and self.values == other.values

    def __repr__(self) -> str:
        pieces = _shown_skeleton(self.skeleton)
        if pieces is None:
            return repr(self.node())
        return "".join([p if isinstance(p, str) else repr(self.values[p]) for p in pieces])

    def node(self) -> Node:
        return put_in(self.skeleton, self.values)


_HOLE = re.compile(r"Hole\(token=(\d+), form='\w*'\)")
_shown: dict[int, list[str | int] | None] = {}


def _shown_skeleton(skeleton: Node) -> list[str | int] | None:
    """The text of a skeleton, cut at its holes, whose numbers stand between; None if a text in it looks like a hole."""
    if id(skeleton) not in _shown:
        texts = [n.value for n in ast.walk(skeleton) if isinstance(n, ast.Literal) and isinstance(n.value, str)]
        cut = _HOLE.split(repr(skeleton))
        pieces: list[str | int] = [int(p) if i % 2 else p for i, p in enumerate(cut)]
        _shown[id(skeleton)] = None if any("Hole(" in t for t in texts) else pieces
    return _shown[id(skeleton)]


def plain(node: Node) -> Node:
    """The tree itself."""
    return node.node() if isinstance(node, Parameterized) else node


def put_in(skeleton: Node, values: tuple[Any, ...]) -> Node:
    def change(n: Node) -> Node | None:
        if isinstance(n, ast.Literal) and isinstance(n.value, Hole):
            return ast.Literal(values[n.value.token], at=n.at)
        return None

    return rewrite(skeleton, change)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a predicate with holes: the interned skeleton, with holes numbered from 0, and which of the values of
    the whole these are."""

    skeleton: Node
    tokens: tuple[int, ...]

    def fill(self, values: Callable[[int], Any]) -> Node:
        if not self.tokens:
            return self.skeleton
        return Parameterized(self.skeleton, tuple(values(t) for t in self.tokens))


def part(node: Node) -> Part:
    tokens: dict[int, int] = {}

    def change(n: Node) -> Node | None:
        if isinstance(n, ast.Literal) and isinstance(n.value, Hole):
            return ast.Literal(Hole(tokens.setdefault(n.value.token, len(tokens)), n.value.form), at=n.at)
        return None

    return Part(intern(rewrite(node, change)), tuple(tokens))


def intern(skeleton: Node) -> Node:
    """The one tree that stands for all that are equal to it."""
    return _skeletons.setdefault(skeleton, skeleton)
