"""Random streams and random patterns, for property tests.

Every primary, base or nested, has the attributes `a` (BIGINT), `x` (DOUBLE), `k` (STRING), `l` (an ARRAY) and `doc` (a
GRAPH), so that predicates can be written without knowing what they will stand on. Values are few, so that equalities,
ties and overlaps are common. The operators are those of `book.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from hypothesis import strategies as st
from tests.sequences.book import select

from headgate.schema import Schema

COLUMNS = {
    "a": "bigint", "x": "double", "k": "string", "s": "bigint", "e": "bigint", "l": "array<bigint>", "doc": "graph",
}  # fmt: skip
S = Schema.of("S", COLUMNS, ("s", "e"), defaults={"a": 1, "k": "p"})
T = Schema.of("T", COLUMNS, ("s", "e"), defaults={"x": 0.5})
SCHEMAS = (S, T)

_numbers = st.one_of(st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 2.5, 2.0]))
_texts = st.sampled_from(["p", "q", "pq"])
P = "<http://example.org/p>"
_documents = st.sampled_from([f"_:H {P} {objects} ." for objects in ("0", "1", "1, 2", "'p'")])
_order = st.sampled_from(["=", "<>", "<", "<=", ">", ">="])
_equal = st.sampled_from(["=", "<>"])
Draw = Any


@st.composite
def events(draw: Draw, most: int = 14) -> list[tuple[Any, ...]]:
    """Rows of a stream, by end time: with ties, durations, and missing values."""
    rows = []
    for _ in range(draw(st.integers(0, most))):
        end = draw(st.integers(0, 9))
        length = draw(st.sampled_from([0, 0, 0, 1, 3]))
        a = draw(st.one_of(st.none(), st.integers(0, 2)))
        x = draw(st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 2.0, float("nan"), -0.0])))
        k = draw(st.one_of(st.none(), _texts))
        elements = draw(st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=2)))
        rows.append((a, x, k, end - length, end, elements, draw(_documents)))
    return sorted(rows, key=lambda row: row[4])


@dataclass(frozen=True)
class World:
    """What patterns are made of."""

    streams: tuple[str, ...]
    late: bool

    def scope(self, prefixes: list[str], numbers: list[str] | None = None, arrays: list[str] | None = None) -> Scope:
        return replace(_scope(prefixes, numbers, arrays), late=self.late)


@dataclass
class Scope:
    """What an expression may mention at its place."""

    numbers: list[str]
    texts: list[str]
    arrays: list[str]
    documents: list[str]
    late: bool = False
    """May operators and graphs be asked?"""
    binding: bool = True
    """May they bind variables for other atoms? Not under NOT."""


def _scope(prefixes: list[str], numbers: list[str] | None = None, arrays: list[str] | None = None) -> Scope:
    made = [f"{p}{n}" for p in prefixes for n in ("a", "x")]
    return Scope(
        made + (numbers or []),
        [f"{p}k" for p in prefixes],
        [f"{p}l" for p in prefixes] + (arrays or []),
        [f"{p}doc" for p in prefixes if not p.startswith("$")],
    )


@st.composite
def number(draw: Draw, scope: Scope, depth: int = 1) -> str:
    kind = draw(st.integers(0, 5 if depth else 3))
    if kind < 3 and scope.numbers:
        return str(draw(st.sampled_from(scope.numbers)))
    if kind < 4 or not depth:
        return str(draw(_numbers))
    if kind == 4:
        return f"ABS({draw(number(scope, 0))})"
    op = draw(st.sampled_from(["+", "-", "*", "/", "%"]))
    return f"({draw(number(scope, 0))} {op} {draw(number(scope, 0))})"


@st.composite
def atom(draw: Draw, scope: Scope) -> str:
    kind = draw(st.integers(0, 14))
    if kind == 12:
        array = draw(st.sampled_from(scope.arrays))
        shown = draw(st.sampled_from([array, f"ALL({array})", f"{array} + 1", f"-{array}", f"ABS({array})"]))
        return f"{shown} {draw(_order)} {draw(number(scope))}"
    if kind > 12 and scope.late:
        return str(draw(asking(scope)))
    if kind < 5:
        return f"{draw(number(scope))} {draw(_order)} {draw(number(scope))}"
    if kind < 7 and scope.texts:
        other = draw(st.one_of(st.sampled_from(scope.texts), _texts.map(lambda t: f"'{t}'")))
        return f"{draw(st.sampled_from(scope.texts))} {draw(_equal)} {other}"
    if kind == 7 and scope.texts:
        return f"{draw(st.sampled_from(scope.texts))} CONTAINS {draw(st.sampled_from(scope.texts))}"
    if kind == 8:
        return f"{draw(st.sampled_from(scope.numbers + scope.texts))} IS NULL"
    if kind == 9:
        return f"DUR {draw(_order)} {draw(st.integers(0, 6))}"
    if kind == 10:
        return f"{draw(number(scope))} BETWEEN {draw(number(scope, 0))} AND {draw(number(scope, 0))}"
    return f"{draw(st.sampled_from(scope.numbers))} IN ({draw(_numbers)}, {draw(_numbers)})"


@st.composite
def asking(draw: Draw, scope: Scope) -> str:
    """An operator, or a GRAPH, over whatever is in sight; its arguments are attributes and literals."""
    value = st.sampled_from([*scope.numbers, "1", "0.5"])
    binding = ["steps", "graph join", "two graphs"] if scope.binding else []
    match draw(st.sampled_from(["high", "near", "owned", "fragile", "graph", *binding])):
        case "near":
            return f"near({draw(value)}, {draw(value)})"
        case "graph":
            return f"GRAPH {draw(st.sampled_from(scope.documents))} {{_:H {P} {draw(st.integers(0, 2))}}}"
        case "steps":
            return f"(steps({draw(value)}, ?v) AND ?v {draw(_order)} {draw(value)})"
        case "graph join":
            document = draw(st.sampled_from(scope.documents))
            return f"(GRAPH {document} {{_:H {P} ?v}} AND ?v {draw(_order)} {draw(value)})"
        case "two graphs":
            one, other = draw(st.sampled_from(scope.documents)), draw(st.sampled_from(scope.documents))
            return f"(GRAPH {one} {{_:H {P} ?v}} AND GRAPH {other} {{_:H {P} ?w}} AND ?v {draw(_order)} ?w)"
        case name:
            return f"{name}({draw(value)})"


@st.composite
def predicate(draw: Draw, scope: Scope, depth: int = 1) -> str:
    kind = draw(st.integers(0, 9))
    if kind < 2:
        return "TRUE"
    if kind < 7 or not depth:
        return str(draw(atom(scope)))
    if kind == 9:
        return f"NOT ({draw(predicate(replace(scope, binding=False), depth - 1))})"
    parts = [draw(predicate(scope, depth - 1)) for _ in range(2)]
    return "(" + (" AND " if kind == 7 else " OR ").join(parts) + ")"


@st.composite
def primary(draw: Draw, depth: int, world: World) -> str:
    kind = draw(st.integers(0, 9))
    if kind < 5 or depth <= 0:
        return str(draw(st.sampled_from(world.streams)))
    if kind < 8:
        return f"FILTER {{{draw(predicate(world.scope([''])))}}} ({draw(primary(depth - 1, world))})"
    if kind == 8:
        return f"({draw(primary(depth - 1, world))} UNION {draw(primary(depth - 1, world))})"
    return f"({draw(pattern(depth - 1, world))})"


@dataclass
class Sequence:
    text: str
    places: list[str]
    """Aliases of what is bound and can be named, from the left."""
    numbers: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    """What COLLECT has gathered: numbers and texts."""
    count: int = 1

    def after(self, world: World) -> Scope:
        return world.scope(["", *(f"{p}." for p in self.places)], self.numbers, self.arrays)


@st.composite
def sequence(draw: Draw, depth: int, world: World) -> Sequence:
    made = Sequence(draw(primary(depth - 1, world)), ["e1"])
    for _ in range(draw(st.integers(0, max(0, depth)))):
        right = draw(primary(depth - 2, world))
        alias = f"e{made.count + 1}"
        run = ["$1.", "$2.", "", *(f"{p}." for p in made.places)]
        kind = draw(st.integers(0, 6))
        if kind < 3:
            theta = draw(predicate(world.scope(run)))
            made.text = f"{made.text} NEXT {{{theta}}} {right}"
            made.places.append(alias)
        elif kind < 6:
            made.text = draw(fold(made, run, right, world))
            made.places.append(alias)
        else:
            theta = draw(predicate(world.scope(run)))
            made.text = f"{made.text} ABSENT {{{theta}}} {right} WITHIN {draw(st.integers(0, 4))}"
        made.count += 1
        if draw(st.booleans()):
            # Nothing comes in when ABSENT is over, so nobody can be asked about it.
            scope = replace(made.after(world), late=world.late and kind < 6)
            made.text = f"FILTER {{{draw(predicate(scope))}}} ({made.text})"
    return made


@st.composite
def fold(draw: Draw, left: Sequence, run: list[str], right: str, world: World) -> str:
    names = [f"n{left.count}{i}" for i in range(draw(st.integers(0, 2)))]
    aggregates, old = [], []
    for name in names:
        function = draw(
            st.sampled_from(["COUNT(*)", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST", "STDDEV", "COUNT", ""])
        )
        if function == "COUNT(*)":
            aggregates.append(f"COUNT(*) AS {name}")
        elif function:
            aggregates.append(f"{function}({draw(st.sampled_from(['a', 'x', '$2.a + 1']))}) AS {name}")
        else:
            aggregates.append(f"$.{name} + {draw(st.sampled_from(['a', '1', 'x']))} AS {name} INIT 0")
        old.append(f"$.{name}")
    if draw(st.integers(0, 3)) == 0:
        operand = draw(st.sampled_from(["a", "x", "k"]))
        gathered = left.texts if operand == "k" else left.arrays
        gathered.append(f"l{operand}{left.count}")
        aggregates.append(f"COLLECT({operand}) AS {gathered[-1]}")
    scope = world.scope([*run, "$."], old, [f"$.{n}" for n in left.arrays if n.endswith(str(left.count))])
    theta, keep = draw(predicate(scope)), draw(predicate(scope))
    left.numbers += names
    return f"{left.text} FOLD {{{', '.join([theta, keep, *aggregates])}}} {right}"


@st.composite
def pattern(draw: Draw, depth: int, world: World, publish: str = "") -> str:
    made = draw(sequence(depth, world))
    scope = made.after(world)
    items = [
        f"{draw(number(scope))} AS a0",
        f"{draw(st.sampled_from(made.places))}.a AS a",
        f"{draw(st.sampled_from(made.places))}.x AS x",
        f"{draw(st.sampled_from(scope.texts))} AS k",
        f"{draw(st.sampled_from(made.places))}.l AS l",
        f"{draw(st.sampled_from(made.places))}.doc AS doc",
        *(f"{n} AS z{n}" for n in (*made.numbers, *made.arrays, *made.texts)),
    ]
    text = select(", ".join(items), made.text)
    return f"{text} PUBLISH {publish}" if publish else text


@st.composite
def books(draw: Draw, depth: int = 3, *, late: bool = True) -> dict[str, str]:
    """A few subscriptions; the later ones may read what earlier ones PUBLISH. `late`: they may ask operators and graphs."""
    texts: dict[str, str] = {}
    world = World(("S", "T"), late)
    for i in range(draw(st.integers(1, 3))):
        publish = f"P{i}" if draw(st.integers(0, 3)) == 0 else ""
        texts[f"s{i}"] = draw(pattern(draw(st.integers(1, depth)), world, publish))
        if publish:
            world = replace(world, streams=(*world.streams, publish))
    return texts
