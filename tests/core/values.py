"""What attributes hold: literals as a text writes them, values that fit a type, and values that no publisher should send.

Literals and values come from the same small pools, so that comparisons hold about as often as they fail.
"""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from random import Random
from typing import Any

from headgate.schema import Kind

TYPES: dict[str, tuple[Kind, bool]] = {
    "flag": (Kind.BOOLEAN, False),
    "n": (Kind.BIGINT, False),
    "m": (Kind.BIGINT, False),
    "x": (Kind.DOUBLE, False),
    "name": (Kind.STRING, False),
    "place.city": (Kind.STRING, False),
    "place.lat": (Kind.DOUBLE, False),
    "seen": (Kind.TIMESTAMP, False),
    "raw": (Kind.BINARY, False),
    "bids": (Kind.BIGINT, True),
    "asks": (Kind.DOUBLE, True),
    "tags": (Kind.STRING, True),
    "flags": (Kind.BOOLEAN, True),
    "days": (Kind.TIMESTAMP, True),
    "doc": (Kind.GRAPH, False),
}
"""The attributes of every stream, declared or not: name, kind, whether it is an ARRAY."""

_WHOLE = [0, 1, 1, 1, 2, 2, 2, 3, 3, 5, 5, -1, 2**53 + 1, 2**63 - 1, -(2**63)]
_REAL = [0.0, -0.0, 0.5, 0.5, 1.0, 1.0, 2.0, 2.0, 2.5, -1.0, 1e308, 5e-324, 2.0**53]
_TEXTS = ["", "a", "a", "a", "a", "ab", "ab", "b", "aB", "a%b", "é", "ΑΣ", "😀", "a'b", "a\nb", "\x00"]
_DATES = ["2026-01-01", "2026-01-01T00:00:00Z", "2026-01-02T03:04:05.000006Z", "1969-12-31T23:59:59Z"]
_PATTERNS = ["%", "a%", "_", "%b", "a!%b", "A%", "%%", "é"]
_REGEXES = ["a", "^a$", "b|é", "(?i)AB", "^$", "[^a]", "(ab)+$", "x*"]


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def literal(random: Random, kind: Kind) -> str:
    """A constant of a kind, as a text has it; now and then NULL, or a number beyond the type."""
    if random.randrange(25) == 0:
        return "NULL"
    match kind:
        case Kind.BOOLEAN:
            return random.choice(["TRUE", "FALSE"])
        case Kind.BIGINT:
            return str(random.choice([*_WHOLE, *_WHOLE, 2**63, 10**30]))
        case Kind.DOUBLE:
            return repr(random.choice(_REAL))
        case Kind.TIMESTAMP:
            return f"TIMESTAMP '{random.choice(_DATES)}'"
    return quoted(random.choice(_TEXTS))


def pattern(random: Random) -> str:
    return quoted(random.choice(_PATTERNS))


def regex(random: Random) -> str:
    return quoted(random.choice(_REGEXES))


def span(random: Random) -> str:
    return f"{random.choice([0, 1, 5, 0.5, 10**6])} {random.choice(['SECONDS', 'MINUTES', 'HOURS', 'DAYS', 'WEEKS'])}"


def fitting(random: Random, kind: Kind, array: bool) -> Any:
    """A value of a type."""
    if array:
        return [None if random.randrange(6) == 0 else fitting(random, kind, False) for _ in range(random.randrange(4))]
    match kind:
        case Kind.BOOLEAN:
            return random.choice([True, False])
        case Kind.BIGINT:
            return random.choice(_WHOLE)
        case Kind.DOUBLE:
            return random.choice([*_REAL, float("nan"), float("inf"), float("-inf"), 1, 2])
        case Kind.TIMESTAMP:
            return random.choice([*_DATES, datetime(2026, 1, 1, tzinfo=UTC), 0, 1767225600000000])
        case Kind.BINARY:
            return random.choice([b"", b"a", b"\xff"])
        case Kind.GRAPH:
            return document(random)
    return random.choice(_TEXTS)


def of_any_kind(random: Random) -> Any:
    """A value of some kind: of a type, an object, or an array of values of several kinds."""
    choice = random.randrange(8)
    if choice == 0:
        return {random.choice(["city", "lat", "x"]): of_any_kind(random) for _ in range(random.randrange(3))}
    if choice == 1:
        return [of_any_kind(random) for _ in range(random.randrange(3))]
    if choice == 2:
        return random.choice([2**53 + 1, 2**63, 10**30, Decimal("0.1"), -(2**64)])
    kind, array = random.choice(list(TYPES.values()))
    return fitting(random, kind, array)


_NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - publishers send such


def hostile(random: Random) -> Any:
    """A value that fits nothing, or fits by accident."""
    return random.choice(
        [
            None, True, 7, 2**63, -(2**63) - 1, 2**63 - 1, -(2**63), 10**400, 1.5, float("nan"), float("inf"), -0.0,
            "abc", "\ud800", "a\udfff", "\x00", "9" * 400, "NaN", "true", "0001-01-01", "9999-12-31T23:59:59.999999Z",
            b"\xff\xfe", b"", [], [[]], [[1], [2]], [None], [None, "a", 1], [float("nan"), 2**64], ["\ud800"], {},
            {"city": 5}, {"city": {"city": {}}}, {1: 2}, {"lat": []}, {"": None}, (), (1, 2), frozenset({1}),
            _NAIVE, _NAIVE.replace(year=9999), _NAIVE.replace(year=1), _NAIVE.date(), Decimal("1.5"), Decimal("NaN"), 1j,
        ]
    )  # fmt: skip


# -- RDF documents

_HEAD = "@prefix : <http://example.org/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
_OBJECTS = [
    "5", "5", "7", "5.0", "5.5", "2e0", '"a"', '"a"', '"ab"', '"a"@en', "true", ":i0", ":i1", "_:n", "_:H",
    '"2026-01-01T00:00:00Z"^^xsd:dateTime', '"x"^^:odd', '"NaN"^^xsd:double', f'"{10**30}"^^xsd:integer',
]  # fmt: skip
_BROKEN = [
    _HEAD + '_:H :p0 "abc"^^xsd:integer .', "", " ", "not turtle at all",
    "_:x :p0 5 .", "_:H", "_:H a _:H .", "[] a [] .", "<a> <b> <c> .", "\ud800", "\x00",
    "@prefix : <http://example.org/> . _:H :p0 ( 1 2 ) .", "@prefix : <http://example.org/> . _:H :p0 [ :p1 _:H ] .",
    '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "b">]><x/>', '{"@id": "_:H"}', "_:H <http://example.org/p0> 5 .",
    "_:H <http://example.org/p0> <http://example.org/i0> .\n" * 50, "_:H <p 0> 5 .", "_:H <http://example.org/p0> _:H .",
]  # fmt: skip


def document(random: Random) -> str:
    """An RDF text with a home, of few names, so that patterns meet it; now and then one that is none."""
    if random.randrange(8) == 0:
        return random.choice(_BROKEN)
    reached = ["_:H", "_:H"]
    lines = []
    for _ in range(random.randrange(1, 5)):
        if random.randrange(4) == 0:
            lines.append(f"{random.choice(reached)} a :C{random.randrange(3)} .")
            continue
        object_ = random.choice(_OBJECTS)
        lines.append(f"{random.choice(reached)} :p{random.randrange(3)} {object_} .")
        if object_[0] in ":_":
            reached.append(object_)
    return _HEAD + " ".join(["_:H a :C0 ." if random.randrange(3) else "_:H :p0 5 .", *lines])
