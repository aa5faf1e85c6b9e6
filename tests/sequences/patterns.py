"""Random streams and random patterns, for property tests.

Every primary, base or nested, has the attributes `a` (BIGINT), `x` (DOUBLE) and `k` (STRING), so that predicates can be
written without knowing what they will stand on. Values are few, so that equalities, ties and overlaps are common.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from tests.sequences.book import select

from headgate.schema import Schema

COLUMNS = {"a": "bigint", "x": "double", "k": "string", "s": "bigint", "e": "bigint"}
S = Schema.of("S", COLUMNS, ("s", "e"), defaults={"a": 1, "k": "p"})
T = Schema.of("T", COLUMNS, ("s", "e"), defaults={"x": 0.5})
SCHEMAS = (S, T)

_numbers = st.one_of(st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 2.5, 2.0]))
_texts = st.sampled_from(["p", "q", "pq"])
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
        rows.append((a, x, k, end - length, end))
    return sorted(rows, key=lambda row: row[4])


@dataclass
class Scope:
    """What an expression may mention at its place."""

    numbers: list[str]
    texts: list[str]
    duration: bool = True
    late: list[str] = field(default_factory=list)


def _scope(prefixes: list[str], numbers: list[str] | None = None, *, duration: bool = True) -> Scope:
    made = [f"{p}{n}" for p in prefixes for n in ("a", "x")]
    return Scope(made + (numbers or []), [f"{p}k" for p in prefixes], duration)


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
    kind = draw(st.integers(0, 11))
    if kind < 5:
        return f"{draw(number(scope))} {draw(_order)} {draw(number(scope))}"
    if kind < 7 and scope.texts:
        other = draw(st.one_of(st.sampled_from(scope.texts), _texts.map(lambda t: f"'{t}'")))
        return f"{draw(st.sampled_from(scope.texts))} {draw(_equal)} {other}"
    if kind == 7 and scope.texts:
        return f"{draw(st.sampled_from(scope.texts))} CONTAINS {draw(st.sampled_from(scope.texts))}"
    if kind == 8:
        return f"{draw(st.sampled_from(scope.numbers + scope.texts))} IS NULL"
    if kind == 9 and scope.duration:
        return f"DUR {draw(_order)} {draw(st.integers(0, 6))}"
    if kind == 10:
        return f"{draw(number(scope))} BETWEEN {draw(number(scope, 0))} AND {draw(number(scope, 0))}"
    return f"{draw(st.sampled_from(scope.numbers))} IN ({draw(_numbers)}, {draw(_numbers)})"


@st.composite
def predicate(draw: Draw, scope: Scope, depth: int = 1) -> str:
    kind = draw(st.integers(0, 9))
    if kind < 2:
        return "TRUE"
    if kind < 7 or not depth:
        return str(draw(atom(scope)))
    parts = [draw(predicate(scope, depth - 1)) for _ in range(2)]
    if kind == 9:
        return f"NOT ({parts[0]})"
    return "(" + (" AND " if kind == 7 else " OR ").join(parts) + ")"


@st.composite
def primary(draw: Draw, depth: int, streams: list[str]) -> str:
    kind = draw(st.integers(0, 9))
    if kind < 5 or depth <= 0:
        return str(draw(st.sampled_from(streams)))
    if kind < 8:
        return f"FILTER {{{draw(predicate(_scope([''])))}}} ({draw(primary(depth - 1, streams))})"
    if kind == 8:
        return f"({draw(primary(depth - 1, streams))} UNION {draw(primary(depth - 1, streams))})"
    return f"({draw(pattern(depth - 1, streams))})"


@dataclass
class Sequence:
    text: str
    places: list[str]
    """Aliases of what is bound and can be named, from the left."""
    numbers: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    count: int = 1

    def after(self) -> Scope:
        return _scope(["", *(f"{p}." for p in self.places)], self.numbers)


@st.composite
def sequence(draw: Draw, depth: int, streams: list[str]) -> Sequence:
    made = Sequence(draw(primary(depth - 1, streams)), ["e1"])
    for _ in range(draw(st.integers(0, max(0, depth)))):
        right = draw(primary(depth - 2, streams))
        alias = f"e{made.count + 1}"
        run = ["$1.", "$2.", "", *(f"{p}." for p in made.places)]
        kind = draw(st.integers(0, 6))
        if kind < 3:
            theta = draw(predicate(_scope(run)))
            made.text = f"{made.text} NEXT {{{theta}}} {right}"
            made.places.append(alias)
        elif kind < 6:
            made.text = draw(fold(made, run, right))
            made.places.append(alias)
        else:
            theta = draw(predicate(_scope(run)))
            made.text = f"{made.text} ABSENT {{{theta}}} {right} WITHIN {draw(st.integers(0, 4))}"
        made.count += 1
        if draw(st.booleans()):
            made.text = f"FILTER {{{draw(predicate(made.after()))}}} ({made.text})"
    return made


@st.composite
def fold(draw: Draw, left: Sequence, run: list[str], right: str) -> str:
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
        left.lists.append(f"l{left.count}")
        aggregates.append(f"COLLECT({draw(st.sampled_from(['a', 'x', 'k']))}) AS {left.lists[-1]}")
    scope = _scope([*run, "$."], old)
    theta, keep = draw(predicate(scope)), draw(predicate(scope))
    left.numbers += names
    return f"{left.text} FOLD {{{', '.join([theta, keep, *aggregates])}}} {right}"


@st.composite
def pattern(draw: Draw, depth: int, streams: list[str], publish: str = "") -> str:
    made = draw(sequence(depth, streams))
    scope = made.after()
    items = [
        f"{draw(number(scope))} AS a0",
        f"{draw(st.sampled_from(made.places))}.a AS a",
        f"{draw(st.sampled_from(made.places))}.x AS x",
        f"{draw(st.sampled_from(scope.texts))} AS k",
        *(f"{n} AS z{n}" for n in (*made.numbers, *made.lists)),
    ]
    text = select(", ".join(items), made.text)
    return f"{text} PUBLISH {publish}" if publish else text


@st.composite
def books(draw: Draw, depth: int = 3) -> dict[str, str]:
    """A few subscriptions; the later ones may read what earlier ones PUBLISH."""
    texts: dict[str, str] = {}
    streams = ["S", "T"]
    for i in range(draw(st.integers(1, 3))):
        publish = f"P{i}" if draw(st.integers(0, 3)) == 0 else ""
        texts[f"s{i}"] = draw(pattern(draw(st.integers(1, depth)), streams, publish))
        if publish:
            streams = [*streams, publish]
    return texts
