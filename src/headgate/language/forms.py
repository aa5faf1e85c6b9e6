"""A filter as its boolean structure over atoms, and atoms as forms with literals.

Random filters hardly ever share a whole shape, but their atoms do: `price < 100` and `price < 7` are one *form*, the
atom with its literals forgotten. So a filter is cut into a structure (AND, OR, NOT over atom numbers) and pieces (a
form and its literals). Forms are few; what depends on a form alone, its parse, type check and normal form, is done once,
and the literals of a million subscriptions lie in columns behind some hundred forms.

The cut is made on tokens, without the grammar; where it fails, the grammar is asked and says what is wrong. Tests hold
the two equal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

from headgate.errors import LanguageError, SyntaxProblem
from headgate.language import ast
from headgate.language.ast import Hole, Node
from headgate.language.build import FORMS, value_of
from headgate.language.parser import parse_tokens, reduce_holes
from headgate.language.structures import AND, LPAR, NOT, OR, RPAR, NotPlain, Structure, structure_of
from headgate.language.tokens import CODES, HOLES, LIMITS, SOFT, VALUES, Tokens, tokenise

T = TypeVar("T")
_LITERALS = frozenset(CODES[kind] for kind in ("INT", "FLOAT", "STRING"))
_NAMES = frozenset(CODES[kind] for kind in (*HOLES, *SOFT)) - _LITERALS
_JOINS = frozenset({"AND", "OR"})
_ENDS = frozenset({"AND", "OR", "RPAR"})


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """One atom with `Hole(i)` where a text brings its literal number i. Compared by identity: forms are interned."""

    body: Node
    particular: bool
    """Some literal must be looked at in every text: a regular expression, a time, an escape, a constant to compute."""
    late: bool
    """It calls an operator, matches a GRAPH, or constrains their variables."""
    settled: bool = False
    """No literal can make it wrong: if it is right in one text, it is right in all."""

    def fill(self, literals: tuple[Any, ...], shift: int = 0) -> Node:
        """The atom of one text. `shift` moves its token numbers to where it stands."""
        return fill(self.body, lambda hole: FORMS[hole.form](literals[hole.token]), shift)


class Piece(NamedTuple):
    """An atom of one text. A tuple, because a million texts have several million."""

    form: Form
    literals: tuple[Any, ...]
    at: int
    """The token it begins with."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A filter, cut into its structure and its atoms."""

    structure: Structure
    pieces: list[Piece]

    def body(self) -> Node:
        """The whole tree, as the grammar gives it."""
        atoms = [p.form.fill(p.literals, p.at) for p in self.pieces]

        def build(part: Structure) -> Node:
            if isinstance(part, int):
                return atoms[part]
            kind, inner = part
            made = tuple(map(build, inner))
            if kind == "not":
                return ast.Not(made[0], at=made[0].at)
            return (ast.And if kind == "and" else ast.Or)(made, at=made[0].at)

        return build(self.structure)


@dataclass(frozen=True, slots=True, eq=False)
class CutSkeleton:
    """A tree with holes that was made rather than typed: its structure, and for each atom its form and the numbers of
    the values that are its literals."""

    structure: Structure
    atoms: list[tuple[Form, tuple[int, ...]]]


@dataclass(frozen=True, slots=True)
class FilledCuts:
    """Filters that share a skeleton: the values of each are a row. What is made of the skeleton once serves them all."""

    skeleton: CutSkeleton
    rows: Sequence[tuple[Any, ...]]

    def each(self) -> Iterator[Cut]:
        structure, atoms = self.skeleton.structure, self.skeleton.atoms
        for values in self.rows:
            yield Cut(structure, [Piece(form, tuple([values[t] for t in tokens]), 0) for form, tokens in atoms])


def cut_node(body: Node) -> Cut:
    """A tree that was made rather than typed, cut likewise; its atoms are particular, for their literals are in place."""
    pieces: list[Piece] = []
    structure = _structured(body, lambda node: pieces.append(Piece(Form(node, particular=True, late=False), (), 0)))
    return Cut(structure, pieces)


def _structured(body: Node, enter: Callable[[Node], None]) -> Structure:
    """The boolean structure of a tree; its atoms are entered in the order of their numbers."""
    count = 0

    def structure(node: Node) -> Structure:
        nonlocal count
        match node:
            case ast.And(items) | ast.Or(items):
                return ("and" if isinstance(node, ast.And) else "or", tuple(map(structure, items)))
            case ast.Not(operand):
                return ("not", (structure(operand),))
        enter(node)
        count += 1
        return count - 1

    return structure(body)


def cut_skeleton(body: Node) -> CutSkeleton:
    atoms: list[tuple[Form, tuple[int, ...]]] = []
    structure = _structured(body, lambda node: atoms.append(_holed(node)))
    return CutSkeleton(structure, atoms)


def _holed(atom: Node) -> tuple[Form, tuple[int, ...]]:
    numbers: dict[int, int] = {}
    body = fill(atom, lambda hole: Hole(numbers.setdefault(hole.token, len(numbers))))
    return Form(body, is_particular(body), late=False), tuple(numbers)


def cut(tokens: Tokens) -> Cut:
    """Cut a filter. Raises a LanguageError with its place if the text is none."""
    tokens.check()
    if tokens.kinds[0] != "SELECT":
        try:
            return _plain(tokens) or _Cutter(tokens).cut()
        except (NotPlain, LanguageError):
            pass
    if isinstance(parse_tokens(tokens), ast.Pattern):
        raise tokens.error(SyntaxProblem("this is a sequence, not a filter", "write a predicate", at=0))
    raise tokens.error(SyntaxProblem("this is a statement, not the body of a subscription", _NO_STATEMENT, at=0))


_NO_STATEMENT = "write a predicate, or SELECT ... FROM ...; extend() runs statements"


_BETWEEN, _IN, _IS = CODES["BETWEEN"], CODES["IN"], CODES["IS"]
_INFIX = "".join(CODES[k] for k in ("BETWEEN", "IN", "LIKE", "ILIKE", "CONTAINS", "STARTS", "ENDS", "MATCHES"))
_INSIDE = f"[^{AND}{OR}{NOT}{LPAR}{RPAR}{_BETWEEN}{CODES['LBRACE']}{CODES['RBRACE']}]"
_ATOMS = re.compile(
    f"((?:{_INSIDE}|(?<={_IN}){LPAR}{_INSIDE}*{RPAR}|(?<={_IS}){NOT}|(?<={_INSIDE}){NOT}(?=[{_INFIX}])"
    f"|{_BETWEEN}{_INSIDE}+{AND}(?={_INSIDE}))+)"
)
"""Atoms without parentheses of their own, but for those of IN, in the codes of a text's tokens."""
_known: dict[tuple[str, ...], tuple[Form, tuple[Any, ...]]] = {}


def _plain(tokens: Tokens) -> Cut | None:
    """Cut at what stands between the atoms, in one search; None if some atom is not so simple.

    What is left when the atoms are taken out, the skeleton, decides the structure, and texts share skeletons. Atoms are
    known by their tokens: a book says many things many times.
    """
    parts = _ATOMS.split(tokens.codes)
    between = parts[::2]
    structure = structure_of("a".join(between))
    if structure is None:
        return None
    pieces: list[Piece] = []
    raws, stop = tokens.raws, 0
    made = tuple.__new__  # of the millions of pieces this is done for, past the checks of a NamedTuple
    for gap, code in zip(between, parts[1::2], strict=False):
        start = stop + len(gap)
        stop = start + len(code)
        key = tuple(raws[start:stop])
        known = _known.get(key)
        if known is None:
            known = _piece(tokens, start, stop)[:2]
            if sum(map(len, key)) <= _LONGEST:
                if len(_known) >= _MOST:
                    _known.clear()
                _known[key] = known
        pieces.append(made(Piece, (known[0], known[1], start)))
    return Cut(structure, pieces)


def cut_text(text: str) -> Cut:
    """Cut the text of a filter that was checked, if possible without its tokens."""
    return cut_at_joints(text) or cut(tokenise(text))


_JOINTS = re.compile(r"([()]|\b(?:AND|OR|NOT)\b)\s*")
_SIGNS = {"": "", "(": LPAR, ")": RPAR, "AND": AND, "OR": OR, "NOT": NOT}


class _Fragments(dict[str, "tuple[Form, tuple[Any, ...], int] | None"]):
    """What stands between joints: a form, its literals and how many tokens it has; None if it is no atom."""

    def __missing__(self, text: str) -> tuple[Form, tuple[Any, ...], int] | None:
        try:
            tokens = tokenise(text)
            tokens.check()
            found = None
            if _ATOMS.fullmatch(tokens.codes):
                found = (*_piece(tokens, 0, len(tokens))[:2], len(tokens))
        except (NotPlain, LanguageError):
            found = None
        if len(text) <= _LONGEST:
            if len(self) >= _MOST:
                self.clear()
            self[text] = found
        return found


_fragments = _Fragments()


def cut_at_joints(text: str) -> Cut | None:
    """Cut a text at its parentheses, AND, OR and NOT, with its atoms known by what stands between them; None if that
    does not do, and its tokens must be looked at.

    It does if every fragment is an atom by itself. One that ends within a text literal or a quoted name is none, so no
    joint was found in there.
    """
    text = text.strip()
    if ";" in text or "--" in text or text[:6].upper() == "SELECT":
        return None
    parts = _JOINTS.split(text)
    if len(parts) > LIMITS.depth:
        return None
    structure = structure_of("".join([_SIGNS.get(p, "a") for p in parts]))
    if structure is None:
        return None
    pieces: list[Piece] = []
    made = tuple.__new__
    at = 0
    for part in parts:
        sign = _SIGNS.get(part)
        if sign is None:
            known = _fragments[part]
            if known is None:
                return None
            pieces.append(made(Piece, (known[0], known[1], at)))
            at += known[2]
        elif sign:
            at += 1
    return Cut(structure, pieces)


class _Cutter:
    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._kinds = tokens.kinds
        self._end = len(tokens.kinds)
        self._at = 0
        self._pieces: list[Piece] = []

    def cut(self) -> Cut:
        structure = self._joined("OR")
        if self._at < self._end:
            raise NotPlain
        return Cut(structure, self._pieces)

    def _joined(self, joint: str) -> Structure:
        """Parts joined by OR, each of parts joined by AND; flat, as the grammar builds them."""
        name = joint.lower()
        parts: list[Structure] = []
        while True:
            part = self._joined("AND") if joint == "OR" else self._part()
            if not isinstance(part, int) and part[0] == name:
                parts.extend(part[1])
            else:
                parts.append(part)
            if self._at >= self._end or self._kinds[self._at] != joint:
                return parts[0] if len(parts) == 1 else (name, tuple(parts))
            self._at += 1

    def _part(self) -> Structure:
        if self._at >= self._end:
            raise NotPlain
        kind = self._kinds[self._at]
        if kind == "NOT":
            self._at += 1
            return ("not", (self._part(),))
        if kind == "LPAR":
            after = self._matching(self._at) + 1
            if after >= self._end or self._kinds[after] in _ENDS:
                self._at += 1
                inner = self._joined("OR")
                if self._at + 1 != after:
                    raise NotPlain
                self._at = after
                return inner
        return self._atom()

    def _matching(self, at: int) -> int:
        depth = 0
        for i in range(at, self._end):
            kind = self._kinds[i]
            if kind == "LPAR":
                depth += 1
            elif kind == "RPAR":
                depth -= 1
                if depth == 0:
                    return i
        raise NotPlain

    def _atom(self) -> int:
        """Up to the AND, OR or closing parenthesis that ends it; the AND of a BETWEEN does not."""
        start = i = self._at
        depth = between = 0
        kinds = self._kinds
        while i < self._end:
            kind = kinds[i]
            if kind in ("LPAR", "LBRACE"):
                depth += 1
            elif depth:
                depth -= kind in ("RPAR", "RBRACE")
            elif kind == "BETWEEN":
                between += 1
            elif kind == "AND" and between:
                between -= 1
            elif kind in _ENDS:
                break
            i += 1
        if i == start:
            raise NotPlain
        self._at = i
        self._pieces.append(_piece(self._tokens, start, i))
        return len(self._pieces) - 1


_layouts: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {}
_forms: dict[tuple[str, ...], Form] = {}
_MOST = 200_000
_LONGEST = 256
"""What is longer is not remembered: the caches are bounded in their entries."""


def _piece(tokens: Tokens, start: int, stop: int) -> Piece:
    code = tokens.codes[start:stop]
    layout = _layouts.get(code)
    if layout is None:
        if len(_layouts) >= _MOST:
            _layouts.clear()
        names = tuple(i for i, c in enumerate(code) if c in _NAMES)
        layout = _layouts[code] = names, tuple(i for i, c in enumerate(code) if c in _LITERALS)
    raws = tokens.raws
    key = (code, *[raws[start + i] for i in layout[0]])
    form = _forms.get(key)
    if form is None:
        if len(_forms) >= _MOST:
            _forms.clear()
        form = _forms[key] = _form(tokens, start, stop, layout[1])
    kinds = tokens.kinds
    try:
        return Piece(form, tuple([VALUES[kinds[start + i]](raws[start + i]) for i in layout[1]]), start)
    except LanguageError:
        # Again, one by one: the problem is given the place of its token.
        return Piece(form, tuple([value_of(tokens, start + i) for i in layout[1]]), start)


def _form(tokens: Tokens, start: int, stop: int, literals: tuple[int, ...]) -> Form:
    part = tokens.part(start, stop)
    numbers = {token: i for i, token in enumerate(literals)}

    def name_or_hole(hole: Hole) -> Any:
        if hole.token in numbers:
            return Hole(numbers[hole.token], hole.form)
        return FORMS[hole.form](value_of(part, hole.token))

    reduced = reduce_holes(part)
    if isinstance(reduced, ast.Statement | ast.Pattern):
        raise NotPlain
    body = fill(reduced, name_or_hole)
    below = list(ast.walk(body))  # a condition among the operands stays there: the type check refuses it
    return Form(
        body,
        is_particular(body),
        any(isinstance(n, ast.Call | ast.Graph | ast.Variable) for n in below),
        not any(map(_judged_by_literals, below)),
    )


def _judged_by_literals(node: Node) -> bool:
    """Whether a literal in it can be wrong by itself: too large to compute with, no time, no regular expression."""
    if isinstance(node, ast.Arithmetic | ast.Negate | ast.Function):
        return any(isinstance(operand, ast.Literal) for operand in node.children())
    if isinstance(node, ast.Test):
        plain = node.name in _LIKES and len(node.operands) == _WITHOUT_ESCAPE
        return not plain and node.name not in _ANY_TEXT
    if isinstance(node, ast.Term):
        return node.datatype is not None
    return isinstance(node, ast.Instant | ast.Span)


def is_particular(body: Node) -> bool:
    for n in ast.walk(body):
        match n:
            case ast.Test(name) if name not in _ANY_TEXT:
                return True
            case ast.In(_, items) if len(items) > _LONG:
                return True
        if isinstance(n, _PARTICULAR):
            return True
    return False


_LONG = 16
"""A longer IN is one look-up in a set rather than an equality for each item."""
_PARTICULAR = (ast.Instant, ast.Span, ast.Arithmetic, ast.Negate)
_ANY_TEXT = ("CONTAINS", "STARTS WITH", "ENDS WITH")
"""Tests whose constants may be any text; those of others are patterns, which may be wrong."""
_LIKES, _WITHOUT_ESCAPE = ("LIKE", "ILIKE"), 2
"""Any text is a pattern of LIKE; only an ESCAPE can make one wrong."""


def fill(value: T, leaf: Callable[[Hole], Any], shift: int = 0) -> T:
    """`value` with every hole replaced, and its token numbers moved by `shift`."""
    if isinstance(value, Hole):
        return leaf(value)  # type: ignore[no-any-return]  # a hole stands for a value of any type
    if isinstance(value, tuple):
        return tuple(fill(v, leaf, shift) for v in value)  # type: ignore[return-value]  # a tuple for a tuple
    if isinstance(value, Node):
        parts = {name: fill(getattr(value, name), leaf, shift) for name in ast.names_of(type(value))}
        return replace(value, **parts, at=value.at + shift if value.at >= 0 else value.at)
    return value
