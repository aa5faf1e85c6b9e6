"""Formulas: subscriptions as AND and OR over leaves, and as disjunctions of conjunctions where those are small.

A formula is the number of a leaf, or a tuple ("and" | "or", parts). Composing one needs the pieces of the text and the
normal form of each piece's form, which is made once a form, so the loop over a million subscriptions stays short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headgate.filters.leaves import Leaves
from headgate.language import ast
from headgate.language.ast import Path
from headgate.language.forms import Cut, Form, Structure
from headgate.language.normal import All, AnyOf, Complete, Formula, Lit, normalise
from headgate.schema import Schema

Tree = int | tuple[str, tuple["Tree", ...]]
"""A leaf as template << 32 | number, or AND and OR of trees."""
ALWAYS: Tree = ("and", ())
NEVER: Tree = ("or", ())
SHIFT = 32


class Composer:
    """Composes the formula of one subscription after the other, filing their leaves."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self.leaves = Leaves(schema)
        self._normal: dict[tuple[Form, bool, bool], Formula] = {}
        self._paths: dict[Form, tuple[Path, ...]] = {}

    def compose(self, cut: Cut, missing: str) -> Tree:
        tree = self._structure(cut.structure, cut, True, missing == "default")
        if missing == "total":
            return join("and", [tree, self._leaf(Complete(), ())])
        return tree

    def attributes(self, cut: Cut) -> frozenset[Path]:
        """The attributes that occur in the text."""
        found: set[Path] = set()
        for piece in cut.pieces:
            paths = self._paths.get(piece.form)
            if paths is None:
                paths = self._paths[piece.form] = tuple(
                    n.path for n in ast.walk(piece.form.body) if isinstance(n, ast.Attribute)
                )
            found.update(paths)
        return frozenset(found)

    def present(self, path: Path) -> Tree:
        """The leaf that says that an attribute is there."""
        return self._leaf(Lit(ast.IsNull(ast.Attribute(path)), False), ())

    def _structure(self, part: Structure, cut: Cut, truth: bool, default: bool) -> Tree:
        if isinstance(part, int):
            piece = cut.pieces[part]
            return self._formula(self._normal_of(piece.form, truth, default, piece.literals), piece.literals)
        kind, inner = part
        if kind == "not":
            return self._structure(inner[0], cut, not truth, default)
        joint = "and" if (kind == "and") == truth else "or"
        return join(joint, [self._structure(p, cut, truth, default) for p in inner])

    def _normal_of(self, form: Form, truth: bool, default: bool, literals: tuple[Any, ...]) -> Formula:
        if form.particular:
            # Constants to compute: the form does not tell the normal form. Literals are in it already.
            body = form.fill(literals)
            return normalise(body if truth else ast.Not(body), "default" if default else "null", self._schema)
        key = (form, truth, default)
        found = self._normal.get(key)
        if found is None:
            body = form.body if truth else ast.Not(form.body)
            found = self._normal[key] = normalise(body, "default" if default else "null", self._schema)
        return found

    def _formula(self, formula: Formula, literals: tuple[Any, ...]) -> Tree:
        if isinstance(formula, All | AnyOf):
            joint = "and" if isinstance(formula, All) else "or"
            return join(joint, [self._formula(f, literals) for f in formula.items])
        return self._leaf(formula, literals)

    def _leaf(self, template: Lit | Complete, literals: tuple[Any, ...]) -> Tree:
        if isinstance(template, Lit) and template.default and isinstance(template.atom, ast.IsNull):
            operand = template.atom.operand
            found = self._schema.get(operand.path) if isinstance(operand, ast.Attribute) else None
            if found is not None and found.default is not None:
                return NEVER if template.truth else ALWAYS  # a DEFAULT takes the place of what is missing
        number, at = self.leaves.add(template, literals)
        return number << SHIFT | at


def join(joint: str, parts: list[Tree]) -> Tree:
    """Flat, and cut short by what always or never holds."""
    absorbing = NEVER if joint == "and" else ALWAYS
    flat: list[Tree] = []
    for part in parts:
        if part == absorbing:
            return absorbing
        if not isinstance(part, int) and part[0] == joint:
            flat.extend(part[1])
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else (joint, tuple(flat))


def conjuncts(tree: Tree, most: int) -> list[tuple[int, ...]] | None:
    """The disjunction of conjunctions of a tree, or None if it has more than `most`."""
    if isinstance(tree, int):
        return [(tree,)]
    joint, parts = tree
    if joint == "or":
        joined: list[tuple[int, ...]] = []
        for part in parts:
            inner = conjuncts(part, most)
            if inner is None or len(joined) + len(inner) > most:
                return None
            joined += inner
        return joined
    made: list[tuple[int, ...]] = [()]
    for part in parts:
        inner = conjuncts(part, most)
        if inner is None or len(made) * len(inner) > most:
            return None
        made = [tuple(dict.fromkeys(a + b)) for a in made for b in inner]
    return made


def best_key(tree: Tree, selectivity: Callable[[int], float]) -> float:
    """An upper bound on the share of events that the keys of all conjuncts together let through."""
    if isinstance(tree, int):
        return selectivity(tree)
    joint, parts = tree
    found = [best_key(p, selectivity) for p in parts]
    if joint == "and":
        return min(found, default=1.0)
    return min(1.0, sum(found))


def leaves_of(tree: Tree, into: list[int]) -> list[int]:
    if isinstance(tree, int):
        into.append(tree)
    else:
        for part in tree[1]:
            leaves_of(part, into)
    return into


def map_leaves(tree: Tree, f: Callable[[int], Tree]) -> Tree:
    """The tree with every leaf replaced."""
    if isinstance(tree, int):
        return f(tree)
    return join(tree[0], [map_leaves(p, f) for p in tree[1]])


def total_leaves(trees: Sequence[Tree]) -> int:
    return sum(len(leaves_of(t, [])) for t in trees)
