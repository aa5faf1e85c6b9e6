"""Texts of conditions: comparisons of every kind, calls with variables, GRAPH patterns, value constraints, AND, OR, NOT.

A `Scope` says what a condition may name where it stands. Most of what is drawn is sensible, for a text that is refused
tests one thing only; but every choice is now and then made without regard to types.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from tests.core.values import TYPES, literal, pattern, quoted, regex, span

from headgate.schema import Kind

NUMBERS = (Kind.BIGINT, Kind.DOUBLE)
_ORDER = ["=", "<>", "<", "<=", ">", ">=", "=", "="]


@dataclass(frozen=True)
class Name:
    """Something that a condition may mention. A variable has no kind: it holds what an operator or a graph gave."""

    text: str
    kind: Kind | None
    array: bool = False


@dataclass(frozen=True)
class Scope:
    names: tuple[Name, ...]
    duration: bool = False
    late: bool = True
    """Whether calls and GRAPH patterns may stand here."""
    bound: tuple[str, ...] = field(default=())
    graph_columns: tuple[str, ...] = ("",)
    open: bool = False
    """Whether nobody declared the stream: then an attribute is taken for one thing here and for another there."""

    def of(self, *kinds: Kind, arrays: bool | None = False) -> list[Name]:
        return [n for n in self.names if n.kind in kinds and (arrays is None or n.array == arrays)]


def attributes(prefixes: Sequence[str] = ("",)) -> tuple[Name, ...]:
    return tuple(Name(prefix + name, kind, array) for prefix in prefixes for name, (kind, array) in TYPES.items())


def _operand(random: Random, scope: Scope, kinds: Sequence[Kind]) -> str:
    """An attribute or a variable of some kinds, or by mistake any."""
    if scope.bound and random.randrange(3) == 0:
        return random.choice(scope.bound)
    pool = list(scope.names) if random.randrange(2 if scope.open else 40) == 0 else scope.of(*kinds)
    if not pool:
        return literal(random, kinds[0])
    return random.choice(pool).text


def number(random: Random, scope: Scope, depth: int = 1) -> str:
    choice = random.randrange(10)
    if choice < 5:
        return _operand(random, scope, NUMBERS)
    if choice < 7 or depth == 0:
        return literal(random, random.choice(NUMBERS))
    if choice == 7:
        return f"ABS({number(random, scope, depth - 1)})"
    if choice == 8:
        return f"LENGTH({text(random, scope)})" if random.randrange(2) else f"-({number(random, scope, depth - 1)})"
    op = random.choice("+-*/%")
    return f"({number(random, scope, depth - 1)} {op} {number(random, scope, depth - 1)})"


def text(random: Random, scope: Scope) -> str:
    choice = random.randrange(8)
    if choice < 5:
        return _operand(random, scope, (Kind.STRING,))
    if choice < 7:
        return literal(random, Kind.STRING)
    return f"{random.choice(['LOWER', 'UPPER'])}({_operand(random, scope, (Kind.STRING,))})"


def moment(random: Random, scope: Scope) -> str:
    leaf = _operand(random, scope, (Kind.TIMESTAMP,)) if random.randrange(3) else literal(random, Kind.TIMESTAMP)
    return f"{leaf} {random.choice('+-')} {span(random)}" if random.randrange(4) == 0 else leaf


def _array(random: Random, scope: Scope) -> str:
    """A condition on an ARRAY: ANY or ALL of its elements."""
    arrays = [n for n in scope.names if n.array]
    if not arrays:
        return "TRUE"
    name = random.choice(arrays)
    assert name.kind is not None
    shown = f"ALL({name.text})" if random.randrange(3) == 0 else name.text
    if name.kind in NUMBERS and random.randrange(3) == 0:
        shown = random.choice(
            [f"({shown} + 1)", f"ABS({shown})", f"-{shown}", f"({number(random, scope, 0)} - {shown})"]
        )
    first, second = literal(random, name.kind), literal(random, name.kind)
    plain = scope.of(name.kind)
    if plain and random.randrange(3) == 0:
        second = random.choice(plain).text
    choice = random.randrange(6)
    if choice == 0 and name.kind is not Kind.BOOLEAN:
        return f"{shown} BETWEEN {first} AND {second}"
    if choice == 1:
        return f"{shown} IN ({first}, {second})"
    if choice == 2:
        return f"{name.text} IS NULL"
    if choice == 3 and name.kind is Kind.STRING:
        return f"{shown} {random.choice(['CONTAINS', 'STARTS WITH', 'ENDS WITH'])} {second}"
    op = random.choice(["=", "<>"] if name.kind is Kind.BOOLEAN else _ORDER)
    return f"{shown} {op} {second}"


def atom(random: Random, scope: Scope) -> str:
    choice = random.randrange(16)
    if choice < 5:
        return f"{number(random, scope)} {random.choice(_ORDER)} {number(random, scope)}"
    if choice < 7:
        return f"{text(random, scope)} {random.choice(_ORDER)} {text(random, scope)}"
    if choice == 7:
        return f"{moment(random, scope)} {random.choice(_ORDER)} {moment(random, scope)}"
    if choice == 8:
        no = random.choice(["", "NOT "])
        return f"{number(random, scope)} {no}BETWEEN {number(random, scope, 0)} AND {number(random, scope, 0)}"
    if choice == 9:
        no = random.choice(["", "NOT "])
        kind = random.choice([Kind.BIGINT, Kind.DOUBLE, Kind.STRING])
        items = [literal(random, kind) for _ in range(random.randrange(1, 4))]
        return f"{_operand(random, scope, (kind,))} {no}IN ({', '.join(items)})"
    if choice == 10:
        test = random.choice(["CONTAINS", "STARTS WITH", "ENDS WITH", "NOT CONTAINS"])
        return f"{text(random, scope)} {test} {text(random, scope)}"
    if choice == 11:
        how = random.choice(["LIKE", "ILIKE", "NOT LIKE", "NOT ILIKE"])
        escape = random.choice(["", "", " ESCAPE '!'"])
        return f"{text(random, scope)} {how} {pattern(random)}{escape}"
    if choice == 12:
        no = random.choice(["", "NOT "])
        return f"{text(random, scope)} {no}MATCHES {regex(random)}"
    if choice == 13:
        known = [n.text for n in scope.names] + list(scope.bound)
        asked = random.choice(known) if random.randrange(4) else number(random, scope)
        return f"{asked} IS {random.choice(['', 'NOT '])}NULL"
    if choice == 14:
        if scope.duration:
            length = span(random) if random.randrange(4) == 0 else str(random.randrange(8))
            return f"DUR {random.choice(_ORDER)} {length}"
        flag = _operand(random, scope, (Kind.BOOLEAN,))
        return random.choice([flag, f"{flag} = TRUE", f"{flag} <> {_operand(random, scope, (Kind.BOOLEAN,))}", "NULL"])
    return _array(random, scope)


def predicate(random: Random, scope: Scope, depth: int = 2) -> str:
    """AND, OR and NOT over conditions. What a conjunction binds, its constraints may use."""
    choice = random.randrange(12)
    if depth == 0 or choice < 4:
        return "TRUE" if random.randrange(20) == 0 else leaf(random, scope)
    if choice < 6:
        return f"NOT ({predicate(random, replace(scope, bound=()), depth - 1)})"
    if choice < 9 and scope.late and random.randrange(2):
        return _joined(random, scope, depth)
    parts = [predicate(random, scope, depth - 1) for _ in range(random.randrange(2, 4))]
    return "(" + random.choice([" AND ", " OR "]).join(parts) + ")"


def leaf(random: Random, scope: Scope) -> str:
    if scope.late and random.randrange(5) == 0:
        return call(random, scope)[0] if random.randrange(2) else graph(random, scope)[0]
    return atom(random, scope)


def _joined(random: Random, scope: Scope, depth: int) -> str:
    """Calls and GRAPHs that bind variables, with constraints on them; some share a variable and so are joined."""
    binders = [
        call(random, scope) if random.randrange(3) else graph(random, scope) for _ in range(random.randrange(1, 3))
    ]
    names = tuple(dict.fromkeys(v for _, bound in binders for v in bound))
    inner = replace(scope, bound=(*scope.bound, *names), late=False)
    parts = [shown for shown, _ in binders]
    if len(binders) == 2 and random.randrange(5) == 0:
        parts = [f"({' OR '.join(parts)})"]
    parts += [predicate(random, inner, 0) for _ in range(random.randrange(3))]
    if depth > 1 and random.randrange(3) == 0:
        parts.append(predicate(random, replace(scope, bound=()), depth - 2))
    random.shuffle(parts)
    return "(" + " AND ".join(parts) + ")"


# -- operators and graphs

CALLS = {"always": 0, "same": 2, "above": 1, "near": 2, "pairs": 2, "moments": 1, "touchy": 1, "odd": 2}
"""The operators of `tests.core.operators` with the number of arguments they take."""
_VARIABLES = ["?v", "?w", "?v", "?u"]


def call(random: Random, scope: Scope) -> tuple[str, list[str]]:
    """A call, and the variables it binds."""
    name = random.choice(sorted(CALLS))
    bound: list[str] = []
    arguments: list[str] = []
    for place in range(CALLS[name] + (random.randrange(30) == 0)):
        if (name, place) in _RETURNED and random.randrange(6):
            bound.append(random.choice(_VARIABLES))
            arguments.append(bound[-1])
        else:
            arguments.append(_argument(random, scope))
    return f"{name}({', '.join(arguments)})", bound


_RETURNED = {("near", 1), ("pairs", 0), ("pairs", 1), ("moments", 0), ("odd", 1)}
"""The places in which an operator binds a variable."""


def _argument(random: Random, scope: Scope) -> str:
    choice = random.randrange(10)
    if choice < 5 and scope.names:
        return random.choice(scope.names).text
    if choice == 5:
        return span(random)
    return literal(
        random, random.choice([Kind.BOOLEAN, Kind.BIGINT, Kind.BIGINT, Kind.DOUBLE, Kind.STRING, Kind.TIMESTAMP])
    )


_CONSTANTS = ["5", "5.0", "7", "'a'", '"a"', '"a"@en', '"5"^^xsd:integer', '"abc"^^xsd:integer', "TRUE", ":i0", ":i1"]
_FILTERS = [
    "{0} < 6", "{0} >= 5", "{0} <> 5", "{0} IN (5, 'a')", "{0} BETWEEN 5 AND 6", "NOT ({0} = 'a')", "{0} LIKE 'a%'",
    "{0} MATCHES '^a'", "{0} + 1 > 6", "LENGTH({0}) = 1", "{0} IS NULL", "{0} = {1}", "{0} < TIMESTAMP '2026-06-01'",
    "{0}", "{0} CONTAINS 'a' OR {0} = 5",
]  # fmt: skip


def graph(random: Random, scope: Scope) -> tuple[str, list[str]]:
    """A GRAPH pattern, most often one that hangs together from home, and the variables it binds."""
    reached = ["_:H"]
    statements: list[str] = []
    bound: list[str] = []
    for _ in range(random.randrange(1, 4)):
        subject = (
            random.choice(reached) if random.randrange(12) else random.choice(["?y", ":a", '"x"', "_:z", "<urn:x>"])
        )
        choice = random.randrange(8)
        if choice < 2:
            wanted = random.choice([":C0", ":C0", ":C1", ":C2", "xsd:integer", "rdfs:Literal", "owl:Thing"])
            statements.append(f"{subject} a {wanted if random.randrange(25) else '?c'}")
            continue
        if choice < 6:
            object_ = random.choice(["?v", "?w", "?v", "_:b"])
        else:
            object_ = random.choice(_CONSTANTS)
        if object_[0] == "?":
            bound.append(object_)
        if object_[0] in "?_:":
            reached.append(object_)
        statements.append(f"{subject} :p{random.randrange(3)} {object_}")
    if bound and random.randrange(3) == 0:
        both = (random.choice(bound), random.choice(bound))
        statements.append(f"FILTER ({random.choice(_FILTERS).format(*both)})")
    column = random.choice(scope.graph_columns)
    if random.randrange(40) == 0:
        column = random.choice(["doc2", "name", quoted("doc")])
    return f"GRAPH {random.choice(['', '', 'HOM '])}{column} {{ {' . '.join(statements)} }}", bound
