"""Formulas: subscriptions as AND and OR over leaves, and as disjunctions of conjunctions where those are small.

A formula is the number of a leaf, or a tuple ("and" | "or", parts). Composing one needs the pieces of the text and the
normal form of each piece's form, which is made once a form, so the loop over a million subscriptions stays short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headgate.filters.leaves import SHIFT, Leaves
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.language.forms import Cut, CutSkeleton, FilledCuts, Form, Piece
from headgate.language.structures import Structure
from headgate.predicates.normal import All, AnyOf, Complete, Formula, Lit, normalise
from headgate.schema import Schema

Tree = int | tuple[str, tuple["Tree", ...]]
"""A leaf as template << 32 | number, or AND and OR of trees."""
_Atom = tuple[tuple[int, ...], list[tuple[int, dict[tuple[Any, ...], int]]]]
"""Which values are the literals of an atom, and the templates of its leaves: their first number, and what is filed."""
ALWAYS: Tree = ("and", ())
NEVER: Tree = ("or", ())
LEAF = (1 << SHIFT) - 1
"""The number of a leaf within its template."""


class Composer:
    """Composes the formula of one subscription after the other, filing their leaves."""

    def __init__(self, schema: Schema, *, lists: bool = False) -> None:
        self._schema = schema
        self._lists = lists
        self.leaves = Leaves(schema, lists=lists)
        self._skeletons: dict[tuple[Form, bool, bool], Tree] = {}
        """The normal form of a form's atom, with the number of a template for each leaf."""
        self._conjunctions: dict[tuple[CutSkeleton, bool], list[_Atom] | None] = {}
        self._present: dict[Path, int] = {}
        self._paths: dict[Form, tuple[Path, ...]] = {}

    def compose(self, cut: Cut, missing: str) -> Tree:
        return self._structure(cut.structure, cut.pieces, True, missing == "default")

    def conjoined(self, cuts: FilledCuts, missing: str) -> list[list[int]] | None:
        """Filters that are conjunctions of leaves by these: the first of each, the second, and so on. None if they are
        none, or not for all values."""
        default = missing == "default"
        key = (cuts.skeleton, default)
        if key not in self._conjunctions:
            self._conjunctions[key] = self._conjunction(cuts.skeleton, default)
        atoms = self._conjunctions[key]
        if atoms is None or missing in ("strict", "total"):
            return None
        columns = list(zip(*cuts.rows, strict=True))
        found = []
        for numbers, templates in atoms:
            literals = list(zip(*[columns[i] for i in numbers], strict=True)) if numbers else [()] * len(cuts.rows)
            for first, filed in templates:
                for row in dict.fromkeys(literals):
                    filed.setdefault(row, len(filed))
                found.append([first | filed[row] for row in literals])
        return found

    def _conjunction(self, skeleton: CutSkeleton, default: bool) -> list[_Atom] | None:
        """The templates of a conjunction of leaves by atom; None if it is none for all values."""
        atoms: list[_Atom] = []
        if not isinstance(skeleton.structure, int):
            kind, inner = skeleton.structure
            if kind != "and" or not all(isinstance(p, int) for p in inner):
                return None
        for form, numbers in skeleton.atoms:
            if form.particular:
                return None
            tree = self._normal(form, True, default)
            parts: tuple[Tree, ...] = (tree,) if isinstance(tree, int) else tree[1] if tree[0] == "and" else ()
            templates = [(p << SHIFT, self.leaves.filed(p)) for p in parts if isinstance(p, int)]
            if not templates or len(templates) < len(parts):
                return None
            atoms.append((numbers, templates))
        return atoms

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
        number = self._present.get(path)
        if number is None:
            number = self._present[path] = self.leaves.template(Lit(ast.IsNull(ast.Attribute(path)), False))
        return self.leaves.add(number, ())

    def complete(self) -> Tree:
        """The leaf that says that the event has all attributes of its stream."""
        return self.leaves.add(self.leaves.template(Complete()), ())

    def _structure(self, part: Structure, pieces: list[Piece], truth: bool, default: bool) -> Tree:
        if isinstance(part, int):
            return self._atom(pieces[part], truth, default)
        kind, inner = part
        if kind == "not":
            return self._structure(inner[0], pieces, not truth, default)
        joint = "and" if (kind == "and") == truth else "or"
        return join(
            joint,
            [
                self._atom(pieces[p], truth, default)
                if isinstance(p, int)
                else self._structure(p, pieces, truth, default)
                for p in inner
            ],
        )

    def _atom(self, piece: Piece, truth: bool, default: bool) -> Tree:
        form, literals = piece.form, piece.literals
        if form.particular:
            # Constants to compute: the form does not tell the normal form. Its literals are in it already.
            return self._filled(self._skeleton(form.fill(literals), truth, default), ())
        found = self._normal(form, truth, default)
        return self.leaves.add(found, literals) if isinstance(found, int) else self._filled(found, literals)

    def _normal(self, form: Form, truth: bool, default: bool) -> Tree:
        key = (form, truth, default)
        found = self._skeletons.get(key)
        if found is None:
            found = self._skeletons[key] = self._skeleton(form.body, truth, default)
        return found

    def _skeleton(self, body: Node, truth: bool, default: bool) -> Tree:
        wanted = body if truth else ast.Not(body)
        return self._numbered(normalise(wanted, "default" if default else "null", self._schema, lists=self._lists))

    def _numbered(self, formula: Formula) -> Tree:
        if isinstance(formula, All | AnyOf):
            return join("and" if isinstance(formula, All) else "or", [self._numbered(f) for f in formula.items])
        if isinstance(formula, Lit) and formula.default and isinstance(formula.atom, ast.IsNull):
            operand = formula.atom.operand
            found = self._schema.get(operand.path) if isinstance(operand, ast.Attribute) else None
            if found is not None and found.default is not None:
                return NEVER if formula.truth else ALWAYS  # a DEFAULT takes the place of what is missing
        return self.leaves.template(formula)

    def _filled(self, tree: Tree, literals: tuple[Any, ...]) -> Tree:
        if isinstance(tree, int):
            return self.leaves.add(tree, literals)
        return tree[0], tuple(self._filled(t, literals) for t in tree[1])


def join(joint: str, parts: list[Tree]) -> Tree:
    """Flat, and cut short by what always or never holds."""
    flat: list[Tree] = []
    for part in parts:
        if isinstance(part, int):
            flat.append(part)
        elif part[0] == joint:
            flat.extend(part[1])
        elif part[1]:
            flat.append(part)
        else:
            return part  # an empty OR in an AND, or an empty AND in an OR
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
        return into
    for part in tree[1]:
        if isinstance(part, int):
            into.append(part)
        else:
            leaves_of(part, into)
    return into


def map_leaves(tree: Tree, f: Callable[[int], Tree]) -> Tree:
    """The tree with every leaf replaced."""
    if isinstance(tree, int):
        return f(tree)
    return join(tree[0], [f(p) if isinstance(p, int) else map_leaves(p, f) for p in tree[1]])
