"""Random atoms that the type check accepts, over a stream with an attribute of every type, and random batches of it.

Values come from small pools, so that they meet: the ends of int64, whole numbers a double cannot hold, NaN, both zeros,
texts whose lower case is longer than they are. A batch repeats a few drawn values over its rows in a shuffled order;
that finds what full rows find, in a hundredth of the time.
"""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

from hypothesis import strategies as st

from headgate.columns import Column, Columns
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates.normal import Lit
from headgate.schema import Kind, Path, Schema, Type

Nodes = st.SearchStrategy[Node]

_INTS = [0, 1, -1, 2, 3, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, 2**63 - 2, -(2**63), 3037000500, -3037000500]
_DOUBLES = [0.0, -0.0, 0.5, 1.0, -1.0, 2.5, 2.0**53, 2.0**53 + 2, 2.0**63, -(2.0**63), 1e308, 5e-324]
_DOUBLES += [float("nan"), float("inf"), float("-inf")]
_TEXTS = [
    "10.1.2.3",
    "2001:db8::1",
    "",
    "a",
    "b",
    "ab",
    "aB",
    "ba",
    "aba",
    "a%b",
    "é",
    "É",
    "İ",
    "ΑΣ",
    "ας",
    "ß",
    "😀",
    "a\nb",
    "\x00",
    "_",
]
_INSTANTS = ["1970-01-01", "2026-01-01T00:00:00Z", "1969-12-31T23:59:59.999999Z", "0001-01-01"]
_PATTERNS = ["%", "_", "%%", "a", "b", "B", "é", "\n", "!%", "!_", "!!", "İ", "😀"]
_REGEXES = ["a", "^a$", "b|é", "(?i)AB", "a.b", "(?s)a.b", r"\bab", "^$", "x*", r"\x00", "[^a]", "(ab)+$"]
LIKES = st.lists(st.sampled_from(_PATTERNS), max_size=5).map("".join)

POOLS: dict[Kind, st.SearchStrategy[Any]] = {
    Kind.BOOLEAN: st.booleans(),
    Kind.BIGINT: st.sampled_from(_INTS) | st.integers(-4, 4) | st.integers(-(2**63), 2**63 - 1),
    Kind.DOUBLE: st.sampled_from(_DOUBLES) | st.integers(-8, 8).map(lambda i: i / 2) | st.floats(),
    Kind.STRING: st.sampled_from(_TEXTS) | st.text(st.characters(codec="utf-8"), max_size=4),
    Kind.TIMESTAMP: st.sampled_from([*_INTS, 1767225600000000]),
    Kind.BINARY: st.sampled_from([b"", b"a", b"\x00", b"\xff\xfe"]),
}
SCALARS = {f"{kind.value}_{n}": Type(kind) for kind in POOLS for n in (1, 2)}
ARRAYS = {f"{kind.value}_array": Type(kind, array=True) for kind in POOLS}
TYPES = SCALARS | ARRAYS
_NETWORKS = ("10.0.0.0/8", "10.1.2.3/32", "0.0.0.0/0", "2001:db8::/32", "::/0")
_SIZES = (0, 1, 63, 64, 65)
_COMPARISONS = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
_EQUALITIES = st.sampled_from(["=", "<>"])


class _Draws:
    """Strategies for the operands of one atom, which may speak of one ARRAY attribute and quantify it one way."""

    def __init__(self, array: str | None, every: bool) -> None:
        leaf = ast.Attribute((array,)) if array else None
        self._array = ast.Every(leaf) if leaf and every else leaf
        self._kind = TYPES[array].kind if array else None
        self.number = st.deferred(lambda: self._number(2))
        self.text = self._text()
        self.time = self._time()
        self.span = self._span()

    def attribute(self, kind: Kind) -> Nodes:
        plain: list[Node] = [ast.Attribute((name,)) for name, t in SCALARS.items() if t.kind is kind]
        if self._kind is kind and self._array is not None:
            return st.sampled_from([self._array, self._array, *plain])
        return st.sampled_from(plain)

    def _number(self, depth: int) -> Nodes:
        literal: Nodes = (POOLS[Kind.BIGINT] | POOLS[Kind.DOUBLE]).map(ast.Literal) | st.just(ast.Literal(None))
        leaf = self.attribute(Kind.BIGINT) | self.attribute(Kind.DOUBLE) | literal
        if not depth:
            return leaf
        below = self._number(depth - 1)
        return st.one_of(
            leaf,
            leaf,
            st.builds(ast.Arithmetic, st.sampled_from("+-*/%"), below, below),
            st.builds(ast.Negate, below),
            st.builds(ast.Function, st.just("ABS"), st.tuples(below)),
            st.builds(ast.Function, st.just("LENGTH"), st.tuples(self._text())),
        )

    def _text(self) -> Nodes:
        attribute = self.attribute(Kind.STRING)
        literal = (POOLS[Kind.STRING] | st.none()).map(ast.Literal)
        return st.one_of(
            attribute,
            attribute,
            literal,
            st.builds(ast.Function, st.sampled_from(["LOWER", "UPPER"]), st.tuples(attribute)),
        )

    def _time(self) -> Nodes:
        leaf = st.one_of(self.attribute(Kind.TIMESTAMP), st.sampled_from(_INSTANTS).map(ast.Instant))
        return leaf | st.builds(ast.Arithmetic, st.sampled_from("+-"), leaf, _spans)

    def _span(self) -> Nodes:
        between = st.builds(
            ast.Arithmetic, st.just("-"), self.attribute(Kind.TIMESTAMP), self.attribute(Kind.TIMESTAMP)
        )
        return (
            between
            | _spans
            | st.builds(ast.Arithmetic, st.sampled_from("*/"), between, POOLS[Kind.DOUBLE].map(ast.Literal))
        )

    def atom(self) -> Nodes:
        beyond: Nodes = st.sampled_from([2**63, -(2**63) - 1, 2**64 + 1, 10**400, -(10**400)]).map(ast.Literal)
        number, text = self.number, self.text
        boolean = self.attribute(Kind.BOOLEAN) | st.booleans().map(ast.Literal) | st.just(ast.Literal(None))
        ordered = [
            (number, number | beyond),
            (number, number),
            (text, text),
            (self.time, self.time),
            (self.span, self.span),
        ]
        equated = [*ordered, (boolean, boolean), (self.attribute(Kind.BINARY), self.attribute(Kind.BINARY))]
        kinds = st.sampled_from(["CONTAINS", "STARTS WITH", "ENDS WITH"])
        likes = st.sampled_from(["LIKE", "ILIKE"])
        pattern = LIKES.map(ast.Literal)
        return st.one_of(
            *(st.builds(ast.Compare, _COMPARISONS, a, b) for a, b in ordered),
            *(st.builds(ast.Compare, _EQUALITIES, a, b) for a, b in equated),
            *(st.builds(ast.Between, a, b, b) for a, b in ordered),
            *(st.builds(ast.In, a, st.lists(b, min_size=1, max_size=4).map(tuple)) for a, b in equated),
            st.builds(ast.Test, kinds, st.tuples(text, text)),
            st.builds(ast.Test, likes, st.tuples(text, pattern)),
            st.builds(ast.Test, likes, st.tuples(text, pattern, st.just(ast.Literal("!")))),
            st.builds(ast.Test, st.just("MATCHES"), st.tuples(text, st.sampled_from(_REGEXES).map(ast.Literal))),
            st.builds(ast.Test, st.just("IN CIDR"), st.tuples(text, st.sampled_from(_NETWORKS).map(ast.Literal))),
            st.builds(ast.IsNull, number | text),
            st.sampled_from(sorted(TYPES)).map(lambda name: ast.IsNull(ast.Attribute((name,)))),
            self.attribute(Kind.BOOLEAN),
        )


_spans: Nodes = st.builds(ast.Span, st.integers(0, 10**6) | st.floats(0, 1e6), st.sampled_from(sorted(ast.UNITS)))


@cache
def _atoms_about(array: str | None, every: bool) -> Nodes:
    return _Draws(array, every).atom()


@st.composite
def atoms(draw: st.DrawFn) -> Node:
    array = draw(st.none() | st.sampled_from(sorted(ARRAYS)))
    atom = draw(_atoms_about(array, draw(st.booleans())))
    if isinstance(atom, ast.IsNull) and any(isinstance(n, ast.Every) for n in ast.walk(atom)):
        return ast.IsNull(ast.Attribute((array or "",)))
    return atom


def literals(atom: Nodes | None = None) -> st.SearchStrategy[Lit]:
    return st.builds(Lit, atoms() if atom is None else atom, st.booleans(), st.booleans())


def stored(of: Type) -> st.SearchStrategy[Any]:
    """A value of an attribute that is there."""
    return st.lists(st.none() | POOLS[of.kind], max_size=3) if of.array else POOLS[of.kind]


@st.composite
def batches(draw: st.DrawFn, lits: list[Lit]) -> tuple[Columns, Schema]:
    """A batch with the attributes of some literals, a few of them absent, and the stream with some DEFAULTs."""
    names = dict.fromkeys(n.path[0] for lit in lits for n in ast.walk(lit.atom) if isinstance(n, ast.Attribute))
    rows = draw(st.sampled_from(_SIZES))
    shuffle = Random(draw(st.integers(0, 2**32)))
    columns: dict[str | Path, Column | tuple[str | Type, Any]] = {"row": ("bigint", list(range(rows)))}
    defaults: dict[str, object] = {}
    for name in names:
        value = stored(TYPES[name])
        if draw(st.integers(0, 2)) == 0:
            defaults[name] = draw(value)
        if draw(st.integers(0, 9)):
            pool = [None, *draw(st.lists(value, min_size=1, max_size=6))]
            columns[name] = (TYPES[name], shuffle.choices(pool, k=rows))
    return Columns.of("s", columns), Schema.of("s", TYPES, defaults=defaults)
