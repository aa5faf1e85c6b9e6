"""Texts of patterns to spines, with the work of a shape done once.

The texts of a shape differ in names and literals. Names decide what a pattern means, so they are part of the key; so is
every literal that the engine looks at when it compiles: lengths of time, patterns of LIKE, operands of aggregates. What
is left are the constants of comparisons in predicates. They stay holes through resolution and rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from headgate.errors import LanguageError, LanguageErrors, SyntaxProblem
from headgate.language import ast
from headgate.language.ast import Hole, Node
from headgate.language.build import FORMS, value_of
from headgate.language.catalogue import Catalogue
from headgate.language.forms import fill
from headgate.language.parser import template
from headgate.language.tokens import Tokens, tokenise
from headgate.sequences.algebra import simplify
from headgate.sequences.parameterized import Part, part
from headgate.sequences.scopes import check_pattern
from headgate.sequences.spine import Spine

_LOOSE = ast.Compare | ast.Between | ast.In
_FIXED = ast.Duration | ast.Span | ast.Instant | ast.Call | ast.Variable | ast.Graph | ast.Function


@dataclass(frozen=True)
class _Form:
    """Of one shape: the tokens whose constants stay holes, with what is done to their values, and all others."""

    loose: dict[int, str]
    fixed: tuple[int, ...]


@dataclass(frozen=True)
class _Skeleton:
    spine: Spine
    start: Part
    steps: tuple[tuple[Part, Part, Part], ...]


class Keys:
    """What of a text decides whether it is right: its shape, and every name and literal but loose constants."""

    def __init__(self) -> None:
        self._forms: dict[str, _Form] = {}

    def key(self, tokens: Tokens) -> tuple[str, tuple[str, ...]]:
        """The same for texts that differ in loose constants alone. A literal that cannot be one is raised."""
        tokens.check()
        shape = tokens.shape
        form = self._forms.get(shape)
        if form is None:
            form = self._forms[shape] = _form_of(tokens)
        for token in form.loose:
            value_of(tokens, token)
        raws = tokens.raws
        return shape, tuple([raws[i] for i in form.fixed])


class Shapes:
    """Resolves texts against one catalogue; keep it as long as the catalogue does not change."""

    def __init__(self, catalogue: Catalogue, missing: str = "null") -> None:
        self._catalogue = catalogue
        self._missing = missing
        self._forms: dict[str, _Form] = {}
        self._skeletons: dict[tuple[str, tuple[str, ...]], _Skeleton] = {}

    def spine(self, text: str) -> Spine:
        """The rewritten spine of a text; its problems are raised."""
        tokens = tokenise(text)
        form = self._forms.get(tokens.shape)
        if form is None:
            form = self._forms[tokens.shape] = _form_of(tokens)
        raws = tokens.raws
        key = (tokens.shape, tuple(raws[i] for i in form.fixed))
        skeleton = self._skeletons.get(key)
        if skeleton is None:
            skeleton = self._skeletons[key] = self._skeleton(tokens, form)
        return _filled(skeleton, lambda token: FORMS[form.loose[token]](value_of(tokens, token)))

    def _skeleton(self, tokens: Tokens, form: _Form) -> _Skeleton:
        tree = template(tokens)

        def leaf(hole: Hole) -> Any:
            if hole.token in form.loose:
                return Hole(hole.token, tokens.kinds[hole.token])
            return FORMS[hole.form](value_of(tokens, hole.token))

        try:
            checked = self._check(fill(tree.tree, leaf), tokens)
        except LanguageErrors:
            # Loose constants make no text wrong, but a problem is told with the constants of the text.
            checked = self._check(tree.fill(tokens), tokens)
        spine = simplify(checked, self._missing)
        steps = tuple((part(s.theta), part(s.keep), part(s.after)) for s in spine.steps)
        return _Skeleton(spine, part(spine.start.where), steps)

    def _check(self, body: Node, tokens: Tokens) -> Spine:
        if not isinstance(body, ast.Pattern):
            raise tokens.error(SyntaxProblem("this is not a pattern", "write SELECT ... FROM ...", at=0))
        scoped = check_pattern(body, self._catalogue)
        if scoped.spine is None:
            problems: list[LanguageError] = [tokens.error(p) for p in scoped.problems]
            raise LanguageErrors(problems)
        return scoped.spine


def _form_of(tokens: Tokens) -> _Form:
    tree = template(tokens)
    loose: dict[int, str] = {}
    for predicate in _predicates(tree.tree):
        for atom in ast.walk(predicate):
            if isinstance(atom, _LOOSE) and not any(isinstance(n, _FIXED) for n in ast.walk(atom)):
                for n in ast.walk(atom):
                    if isinstance(n, ast.Literal) and isinstance(n.value, Hole):
                        loose[n.value.token] = n.value.form
    return _Form(loose, tuple(t for t in tree.holes if t not in loose))


def _predicates(tree: Node) -> Iterator[Node]:
    """The predicates of a pattern, but not those of what is nested in it: a nested pattern is compiled by itself."""
    node = tree.source if isinstance(tree, ast.Pattern) else tree
    match node:
        case ast.Filter(predicate, source):
            yield predicate
            yield from _predicates(source)
        case ast.Next(left, theta, right) | ast.Absent(left, theta, right):
            yield theta
            yield from _predicates(left)
            yield from _right(right)
        case ast.Fold(left, theta, keep, _, right):
            yield theta
            yield keep
            yield from _predicates(left)
            yield from _right(right)


def _right(node: Node) -> Iterator[Node]:
    """A right operand that is one filtered stream; anything else is a pattern of its own."""
    inner = node
    while isinstance(inner, ast.Filter):
        inner = inner.source
    if isinstance(inner, ast.Stream):
        yield from _predicates(node)


def _filled(skeleton: _Skeleton, value: Callable[[int], Any]) -> Spine:
    spine = skeleton.spine
    steps = tuple(
        replace(step, theta=theta.fill(value), keep=keep.fill(value), after=after.fill(value))
        for step, (theta, keep, after) in zip(spine.steps, skeleton.steps, strict=True)
    )
    return replace(spine, start=replace(spine.start, where=skeleton.start.fill(value)), steps=steps)
