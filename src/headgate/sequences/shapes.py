"""Texts of patterns to spines, with the work of a shape done once.

A hundred thousand texts are a few outlines (streams, aliases, steps, SELECT) with predicates put in, and few predicates
that differ in more than constants. So an outline is resolved once with TRUE for every predicate, each predicate once in
its place in an outline, and a text is put together from what is known. Names decide what a predicate means, so they are
part of its key; so is every literal that the engine looks at when it compiles: lengths of time, patterns of LIKE. What
is left are the constants of comparisons. They stay holes through resolution and rewrites.

This needs predicates whose meaning does not depend on each other: rewrites move conjuncts one by one, in every mode. It
does not hold where a stream is undeclared, whose types one predicate teaches and another uses, nor for operators and
graphs, which may share variables. Such a text is resolved as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from headgate.errors import LanguageError, LanguageErrors, SyntaxProblem
from headgate.language import ast
from headgate.language.ast import TRUE, Hole, Node
from headgate.language.build import FORMS, value_of
from headgate.language.catalogue import Catalogue
from headgate.language.forms import fill
from headgate.language.parser import template
from headgate.language.tokens import Tokens, tokenise
from headgate.sequences.algebra import simplify
from headgate.sequences.distinct import distinct, positions
from headgate.sequences.parameterized import Part, part
from headgate.sequences.scopes import check_pattern
from headgate.sequences.spine import Merged, Source, Spine, conjunction, conjuncts
from headgate.sequences.spine_table import SpineTable, Starts, filled, predicates_of
from headgate.sequences.tables import Ints
from headgate.sequences.wording import PIECE, Piece, Worded, Wording, Wordings, numbers_of

_LOOSE = ast.Compare | ast.Between | ast.In
_FIXED = ast.Duration | ast.Span | ast.Instant | ast.Call | ast.Variable | ast.Graph | ast.Function
_LATE = ast.Call | ast.Variable | ast.Graph
Key = tuple[object, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class _Form:
    """Of one shape: the tokens whose constants stay holes, with what is done to their values; the other tokens of the
    outline, and those of each predicate."""

    loose: dict[int, str]
    outline: tuple[int, ...]
    predicates: tuple[tuple[int, ...], ...]
    divisible: bool

    def worded(self, text: str, tokens: Tokens, wordings: Wordings) -> Worded | None:
        return wordings.learn(text, tokens, self.loose, self.outline, list(_predicates(template(tokens).tree)))

    def whole(self, tokens: Tokens) -> Key:
        raws = tokens.raws
        fixed = (*self.outline, *(i for inner in self.predicates for i in inner))
        return (tokens.shape, *[raws[i] for i in fixed])


class Forms:
    """The forms of shapes."""

    def __init__(self) -> None:
        self._known: dict[str, _Form] = {}

    def of(self, tokens: Tokens) -> _Form:
        form = self._known.get(tokens.shape)
        if form is None:
            form = self._known[tokens.shape] = _form_of(tokens)
        return form


class Known:
    """Keys under which parts of a text are the same as those of another."""

    def __init__(self) -> None:
        self._forms = Forms()
        self._wordings = Wordings()

    def keys(self, text: str, mark: object) -> list[Key] | None:
        """If texts with each of these keys are right, so is this one; None if some part of it is new."""
        worded = self._wordings.of(text)
        return None if worded is None else _keys(worded, mark)

    def learn(self, text: str, tokens: Tokens, mark: object) -> list[Key]:
        """The keys of any text. A literal that cannot be one is raised."""
        tokens.check()
        form = self._forms.of(tokens)
        for token in form.loose:
            value_of(tokens, token)
        worded = form.worded(text, tokens, self._wordings) if form.divisible else None
        return [(mark, *form.whole(tokens))] if worded is None else _keys(worded, mark)


def _keys(worded: Worded, mark: object) -> list[Key]:
    variant = worded.variant
    outline = (mark, worded.wording, variant) if any(variant) else (mark, worded.wording)
    return [outline, *[(outline, j, worded.key(j)) for j, p in enumerate(worded.pieces) if p.pure]]


@dataclass(frozen=True, eq=False)
class _Added:
    """What a predicate adds to an outline: conjuncts, holes and all, to some of the spine's predicates (by the order of
    `predicates_of`), and for each step that it makes read `$`, where that starts."""

    conjuncts: dict[int, Node]
    starts: dict[int, Starts]


@dataclass(frozen=True)
class _Outline:
    """The spine of a pattern in which every predicate is TRUE, and by place the number of what each known one adds."""

    tree: Node
    spine: Spine
    own: list[Node]
    known: list[dict[object, int]]
    added: list[_Added] = field(default_factory=list)


@dataclass(eq=False)
class _Group:
    """Texts of one outline: which they are, what each of their predicates adds, and their literals."""

    outline: _Outline
    texts: list[int] = field(default_factory=list)
    added: list[list[int]] = field(default_factory=list)
    pieces: list[list[Piece]] = field(default_factory=list)
    literals: list[list[list[str]]] = field(default_factory=list)


class _Codes(dict[str, int]):
    """The codes of literals of one kind, by how they are written."""

    def __init__(self, convert: Callable[[str], Any], table: SpineTable) -> None:
        super().__init__()
        self._convert, self._code = convert, table.predicates.code

    def __missing__(self, raw: str) -> int:
        code = self[raw] = self._code(self._convert(raw))
        return code


class Shapes:
    """Resolves texts against one catalogue; keep it as long as the catalogue does not change."""

    def __init__(self, catalogue: Catalogue, missing: str = "null") -> None:
        self._catalogue = catalogue
        self._missing = missing
        self._forms = Forms()
        self._wordings = Wordings()
        self._outlines: dict[tuple[Wording, tuple[object, ...]], _Outline | None] = {}
        self._whole: dict[Key, tuple[Spine, list[Part]]] = {}
        self._joined: dict[tuple[int, ...], tuple[list[Node], Part]] = {}

    def spine(self, text: str) -> Spine:
        """The rewritten spine of a text; its problems are raised."""
        table = SpineTable()
        return table.objects(self.enter([text], table))[0]

    def enter(self, texts: Sequence[str], table: SpineTable) -> Ints:
        """The numbers that the spines of texts have in a table."""
        numbers = np.empty(len(texts), np.int64)
        groups: dict[int, _Group] = {}
        for number, text in enumerate(texts):
            worded, outline = self._worded(text)
            if worded is None or outline is None:
                numbers[number] = table.add(self._resolved(tokenise(text)))
                continue
            group = groups.get(id(outline))
            if group is None:
                group = groups[id(outline)] = _Group(outline)
            group.texts.append(number)
            group.added.append(
                [
                    self._learned(outline, j, worded, text) if (at := known.get(worded.key(j))) is None else at
                    for j, known in enumerate(outline.known)
                ]
            )
            group.pieces.append(worded.pieces)
            group.literals.append(worded.literals)
        for group in groups.values():
            numbers[group.texts] = self._filled(group, table)
        return numbers

    def _worded(self, text: str) -> tuple[Worded | None, _Outline | None]:
        """A text by its parts, and its outline; None where its predicates cannot be resolved one by one."""
        worded = self._wordings.of(text)
        if worded is None:
            tokens = tokenise(text)
            form = self._forms.of(tokens)
            worded = form.worded(text, tokens, self._wordings) if form.divisible else None
            if worded is None:
                return None, None
        key = (worded.wording, worded.variant)
        if key not in self._outlines:
            tokens = tokenise(text)
            self._outlines[key] = self._outline(tokens, self._forms.of(tokens))
        return worded, self._outlines[key]

    def _filled(self, group: _Group, table: SpineTable) -> Ints:
        """The spines of texts that share an outline."""
        outline, predicates = group.outline, table.predicates
        added = np.array(group.added, np.int64).reshape(len(group.texts), len(outline.known))
        codes = self._codes(group, added, table)
        nodes = np.empty((len(added), len(outline.own)), np.int64)
        for at, own in enumerate(outline.own):
            for which, parts in self._combined(added, [a.conjuncts.get(at) for a in outline.added]):
                made = self._join([own, *parts])
                if made.tokens:
                    nodes[which, at] = predicates.rows(
                        made.skeleton, np.stack([codes[t][which] for t in made.tokens], 1)
                    )
                else:
                    nodes[which, at] = predicates.add(made.skeleton)
        starts = np.empty((len(added), len(outline.spine.steps)), np.int64)
        for at, step in enumerate(outline.spine.steps):
            for which, more in self._combined(added, [a.starts.get(at) for a in outline.added]):
                begin = {path: start for known in (step.starts, *more) for path, start in known.items()}
                starts[which, at] = table.add_starts(begin)
        return table.extend(table.add_outline(outline.spine), nodes, starts)

    def _combined(self, added: Ints, given: Sequence[T | None]) -> Iterator[tuple[Ints, list[T]]]:
        """The texts that have the same of what is given, and what they have, in the order of their predicates."""
        has = np.array([g is not None for g in given], np.bool_)
        rows = np.where(has[added], added, -1) if len(given) else added
        known = [j for j in range(rows.shape[1]) if (rows[:, j] >= 0).any()]
        nothing = np.zeros(len(rows), np.int64)
        number, first = distinct(nothing, *(rows[:, j] for j in known))
        for at, which in zip(first.tolist(), positions(number, len(first)), strict=True):
            yield which, [found for j in known if (n := rows[at, j]) >= 0 and (found := given[n]) is not None]

    def _codes(self, group: _Group, added: Ints, table: SpineTable) -> dict[int, Ints]:
        """By the number of a literal: the code of its value in each text that has it."""
        found: dict[int, Ints] = {}
        memory: dict[Callable[[str], Any], _Codes] = {}
        for j in range(added.shape[1]):
            for rows in positions(added[:, j], int(added[:, j].max()) + 1):
                if not len(rows):
                    continue
                which = rows.tolist()
                for i, convert in group.pieces[which[0]][j].loose:
                    codes = memory.setdefault(convert, _Codes(convert, table))
                    column = found.setdefault(j << PIECE | i, np.zeros(len(added), np.int64))
                    column[rows] = [codes[group.literals[r][j][i]] for r in which]
        return found

    def _resolved(self, tokens: Tokens) -> Spine:
        """The spine of a text whose predicates cannot be resolved one by one."""
        form = self._forms.of(tokens)
        whole = form.whole(tokens)
        if whole not in self._whole:
            spine = self._fixed(tokens, form)
            self._whole[whole] = spine, [part(node) for node in predicates_of(spine)]
        spine, parts = self._whole[whole]

        def value(token: int) -> Any:
            return FORMS[form.loose[token]](value_of(tokens, token))

        return filled(spine, [p.fill(value) for p in parts], [step.starts for step in spine.steps])

    def _join(self, nodes: list[Node]) -> Part:
        """The conjunction of nodes that live as long as their outline does."""
        key = tuple(map(id, nodes))
        known = self._joined.get(key)
        if known is None:
            known = self._joined[key] = nodes, part(conjunction(nodes))
        return known[1]

    def _outline(self, tokens: Tokens, form: _Form) -> _Outline | None:
        """None where predicates cannot be resolved one by one."""
        tree = _with_predicates(template(tokens).tree, lambda _, __: TRUE)
        body = fill(tree, _leaf(tokens, form))
        scoped = check_pattern(body, self._catalogue) if isinstance(body, ast.Pattern) else None
        if scoped is None or scoped.spine is None or not _declared(scoped.spine):
            return None
        spine = simplify(scoped.spine, self._missing)
        return _Outline(body, spine, predicates_of(spine), [{} for _ in range(tokens.kinds.count("LBRACE"))])

    def _learned(self, outline: _Outline, j: int, worded: Worded, text: str) -> int:
        """The number of what the predicates of one pair of braces add to the outline."""
        tokens = tokenise(text)
        form, numbers = self._forms.of(tokens), worded.pieces[j].predicates
        predicates = list(_predicates(template(tokens).tree))
        leaf = _leaf(tokens, form, numbers_of(tokens))
        given = {k: fill(predicates[k], leaf) for k in numbers}
        body = _with_predicates(outline.tree, lambda i, node: given.get(i, node))
        assert isinstance(body, ast.Pattern)
        scoped = check_pattern(body, self._catalogue)
        if scoped.spine is None:
            # Loose constants make no text wrong, but a problem is told with the constants of the text.
            self._check(template(tokens).fill(tokens), tokens)
            raise AssertionError(f"the predicates {numbers} of {tokens.source!r} are wrong by themselves alone")
        spine = simplify(scoped.spine, self._missing)
        added = {}
        for at, (before, after) in enumerate(zip(outline.own, predicates_of(spine), strict=True)):
            known = set(conjuncts(before))
            fresh = [c for c in conjuncts(after) if c not in known]
            if fresh:
                added[at] = conjunction(fresh)
        steps = zip(outline.spine.steps, spine.steps, strict=True)
        starts = {at: new.starts for at, (old, new) in enumerate(steps) if new.starts != old.starts}
        outline.added.append(_Added(added, starts))
        number = outline.known[j][worded.key(j)] = len(outline.added) - 1
        return number

    def _fixed(self, tokens: Tokens, form: _Form) -> Spine:
        tree = template(tokens)
        try:
            checked = self._check(fill(tree.tree, _leaf(tokens, form)), tokens)
        except LanguageErrors:
            checked = self._check(tree.fill(tokens), tokens)
        return simplify(checked, self._missing)

    def _check(self, body: Node, tokens: Tokens) -> Spine:
        if not isinstance(body, ast.Pattern):
            raise tokens.error(SyntaxProblem("this is not a pattern", "write SELECT ... FROM ...", at=0))
        scoped = check_pattern(body, self._catalogue)
        if scoped.spine is None:
            problems: list[LanguageError] = [tokens.error(p) for p in scoped.problems]
            raise LanguageErrors(problems)
        return scoped.spine


def _leaf(tokens: Tokens, form: _Form, numbers: Mapping[int, int] | None = None) -> Callable[[Hole], Any]:
    """What holes are filled with; those of loose constants stay, by other numbers where these are given."""

    def leaf(hole: Hole) -> Any:
        if hole.token in form.loose:
            return Hole(hole.token if numbers is None else numbers[hole.token], tokens.kinds[hole.token])
        return FORMS[hole.form](value_of(tokens, hole.token))

    return leaf


def _form_of(tokens: Tokens) -> _Form:
    tree = template(tokens)
    loose: dict[int, str] = {}
    predicates = list(_predicates(tree.tree))
    for predicate in predicates:
        for atom in ast.walk(predicate):
            if isinstance(atom, _LOOSE) and not any(isinstance(n, _FIXED) for n in ast.walk(atom)):
                for n in ast.walk(atom):
                    if isinstance(n, ast.Literal) and isinstance(n.value, Hole):
                        loose[n.value.token] = n.value.form
    inside = [[t for t in dict.fromkeys(_holes(p)) if t not in loose] for p in predicates]
    apart = {t for inner in inside for t in inner}
    return _Form(
        loose,
        tuple(t for t in tree.holes if t not in loose and t not in apart),
        tuple(map(tuple, inside)),
        not any(isinstance(n, _LATE) for p in predicates for n in ast.walk(p)),
    )


def _holes(value: Any) -> Iterator[int]:
    if isinstance(value, Hole):
        yield value.token
    elif isinstance(value, tuple):
        for v in value:
            yield from _holes(v)
    elif isinstance(value, Node):
        for name in ast.names_of(type(value)):
            yield from _holes(getattr(value, name))


def _predicates(tree: Node) -> Iterator[Node]:
    """The predicates of a pattern, but not those of what is nested in it: a nested pattern is compiled by itself."""
    found: list[Node] = []

    def note(_: int, node: Node) -> Node:
        found.append(node)
        return node

    _with_predicates(tree, note)
    return iter(found)


def _with_predicates(tree: Node, change: Callable[[int, Node], Node]) -> Node:
    """The pattern with other predicates; they are numbered in the order in which this goes through them."""
    count = 0

    def changed(node: Node) -> Node:
        nonlocal count
        count += 1
        return change(count - 1, node)

    def visit(node: Node) -> Node:
        match node:
            case ast.Pattern(source=source):
                return replace(node, source=visit(source))
            case ast.Filter(predicate, source):
                return replace(node, predicate=changed(predicate), source=visit(source))
            case ast.Next(left, theta, right) | ast.Absent(left, theta, right):
                return replace(node, theta=changed(theta), left=visit(left), right=visit_right(right))
            case ast.Fold(left, theta, keep, _, right):
                return replace(
                    node, theta=changed(theta), keep=changed(keep), left=visit(left), right=visit_right(right)
                )
        return node

    def visit_right(node: Node) -> Node:
        """A right operand that is one filtered stream; anything else is a pattern of its own."""
        inner = node
        while isinstance(inner, ast.Filter):
            inner = inner.source
        return visit(node) if isinstance(inner, ast.Stream) else node

    return visit(tree)


def _declared(spine: Spine) -> bool:
    """Whether no part of a text can teach something of the streams that other parts read."""

    def known(source: Source) -> bool:
        match source.origin:
            case Spine():
                return _declared(source.origin)
            case Merged(left, right):
                return _declared(left) and _declared(right)
        return source.schema.declared and all(a.type is not None for a in source.schema)

    return all(known(source) for source in (spine.start, *(step.source for step in spine.steps)))
