"""The check of filter bodies: every problem, its class, its message and its hint."""

from __future__ import annotations

import time

import pytest

from headgate.errors import BindingProblem, LanguageError, TypeProblem, UnknownName
from headgate.language.catalogue import Catalogue, Signature
from headgate.language.parser import parse_body
from headgate.predicates.check import check_filter
from headgate.schema import Schema

STOCK = Schema.of(
    "stock",
    {
        "name": "string", "price": "double", "vol": "bigint", "halted": "boolean", "at": "timestamp", "raw": "binary",
        "doc": "graph", "tags": "array<string>", "bids": "array<double>", "venue.city": "string",
    },
)  # fmt: skip
OPERATORS = [
    Signature("near", 1, 2),
    Signature("mob", 1, 1),
    Signature("score", 1),
    Signature("const", 1, 1, frozenset()),
]
CATALOGUE = Catalogue({"stock": STOCK}, {s.name: s for s in OPERATORS})


def problems(text: str, schema: Schema = STOCK) -> list[LanguageError]:
    return check_filter(parse_body(text), schema, CATALOGUE)


GOOD = [
    "name = 'IBM' AND price < 100", "vol > 2.5", "halted", "NOT halted", "halted = TRUE", "halted IS NULL", "NULL",
    "price = NULL", "at > TIMESTAMP '2026-01-01T00:00:00Z'", "at - TIMESTAMP '2026-01-01' < 3 DAYS", "at + 1 HOUR < at",
    "tags = 'x'", "ALL(tags) STARTS WITH 'x'", "bids BETWEEN 1 AND 2", "ABS(bids) > 1", "raw = raw",
    "venue.city = 'Rome'", "name LIKE 'a!%' ESCAPE '!'", "name MATCHES '^a+$'", "'a,b' CONTAINS name",
    "LENGTH(name) % 2 = 0", "doc IS NOT NULL", "near('x', price)", "mob(?n) AND ?n > 50", "mob(?n) AND ?n + price > 50",
    "NOT mob(?n)", "score(1, 2, 3, 4)", "(mob(?n) OR near(?n)) AND ?n > 1", "GRAPH { _:H rdf:value ?v } AND ?v < 5",
    "GRAPH doc { _:H a rdfs:Class }", "GRAPH { _:H rdf:value ?v . FILTER (?v < 5) }",
]  # fmt: skip


@pytest.mark.parametrize("text", GOOD)
def test_a_sensible_filter_has_no_problems(text: str) -> None:
    assert problems(text) == []


BAD: list[tuple[str, type[LanguageError], str, str]] = [
    ("prise < 1", UnknownName, "stream stock has no attribute prise", "did you mean price?"),
    ("zzz < 1", UnknownName, "stream stock has no attribute zzz", "it has name, price, vol, halted"),
    ("zzz + 1 < 1", UnknownName, "stream stock has no attribute zzz", "it has name, price"),
    ("venue = 'x'", TypeProblem, "venue is a struct, not a value", "write venue.city"),
    ("name < 1", TypeProblem, "BIGINT cannot be compared with STRING", "text stands in single quotes, numbers do not"),
    ("price IN (1, 'x')", TypeProblem, "STRING cannot be compared with DOUBLE", "text stands in single quotes"),
    ("at = '2026-01-01'", TypeProblem, "STRING cannot be compared with TIMESTAMP", "write TIMESTAMP '...' for a time"),
    ("at > TIMESTAMP 'soon'", TypeProblem, "'soon' is no time", "write TIMESTAMP '2026-01-31T12:00:00Z'"),
    ("price", TypeProblem, "this is DOUBLE, not a condition", "compare it with something"),
    ("name AND halted", TypeProblem, "this is STRING, not a condition", "compare it with something"),
    ("price + 1", TypeProblem, "this is DOUBLE, not a condition", "compare it with something"),
    ("halted < TRUE", TypeProblem, "BOOLEAN has no order", "use = or <>"),
    ("raw < raw", TypeProblem, "BINARY has no order", "use = or <>"),
    ("name + 1 = 2", TypeProblem, "+ needs numbers, this is STRING", ""),
    ("-name = 2", TypeProblem, "- needs numbers, this is STRING", ""),
    ("ABS(name) = 2", TypeProblem, "ABS needs numbers, this is STRING", ""),
    ("LOWER(price) = 'x'", TypeProblem, "LOWER works on text, this is DOUBLE", ""),
    ("price LIKE 'x'", TypeProblem, "LIKE works on text, this is DOUBLE", ""),
    ("name LIKE 5", TypeProblem, "LIKE works on text, this is BIGINT", ""),
    ("name LIKE name", TypeProblem, "the pattern of LIKE is a text literal", "use CONTAINS for a part that varies"),
    ("name LIKE 'x' ESCAPE '!!'", TypeProblem, "ESCAPE takes one character", ""),
    ("name LIKE 'x!y' ESCAPE '!'", TypeProblem, "the escape character escapes nothing here", "! stands before %"),
    ("price CONTAINS 'x'", TypeProblem, "CONTAINS works on text, this is DOUBLE", ""),
    ("name MATCHES '('", TypeProblem, "the regular expression is refused: missing )", "RE2 has no back references"),
    ("name MATCHES '(a)\\1'", TypeProblem, "refused: invalid escape", "RE2 has no back references"),
    ("vol + 99999999999999999999 > 1", TypeProblem, "99999999999999999999 is beyond BIGINT", "with a decimal point"),
    ("(price > 1) = TRUE", TypeProblem, "a condition cannot be compared", "join conditions with AND and OR"),
    ("doc = 'x'", TypeProblem, "a GRAPH cannot be compared", "write GRAPH { ... } to match it"),
    ("ALL(price) = 1", TypeProblem, "ALL needs an ARRAY, price is DOUBLE", "leave ALL away"),
    ("ALL(tags) IS NULL", TypeProblem, "ALL(...) IS NULL has no meaning", "ask whether the attribute IS NULL"),
    ("tags = name AND bids = bids + ALL(bids)", TypeProblem, "one comparison takes one ARRAY attribute", "one at"),
    ("$1.price < 1", TypeProblem, "$1 has a meaning only inside a sequence", "write the attribute alone"),
    ("DUR < 1 DAY", TypeProblem, "DUR has a meaning only inside a sequence", "write SELECT ... FROM ..."),
    ("nera('x')", UnknownName, "there is no operator nera", "did you mean near?"),
    ("zzz('x')", UnknownName, "there is no operator zzz", "register it with Subscriptions(operators=[...])"),
    ("near()", TypeProblem, "near takes 1 to 2 arguments, not 0", ""),
    ("mob(1, 2)", TypeProblem, "mob takes 1 argument, not 2", ""),
    ("score()", TypeProblem, "score takes 1 or more arguments, not 0", ""),
    ("near(price + 1)", TypeProblem, "an operator takes literals, attributes and ?variables", "in a value"),
    ("const(?x)", BindingProblem, "argument 1 of const may not be a variable", "give a value or an attribute"),
    ("?n > 50", BindingProblem, "nothing binds ?n here", "a positive call or GRAPH with ?n must stand in the same AND"),
    ("mob(?n) OR ?n > 1", BindingProblem, "nothing binds ?n here", "must stand in the same AND"),
    ("NOT mob(?n) AND near(?n)", BindingProblem, "?n is used elsewhere, so NOT cannot bind it", "rename one of them"),
    ("GRAPH name { _:H rdf:value 1 }", TypeProblem, "GRAPH needs a GRAPH column, this is STRING", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "kind", "message", "hint"), BAD, ids=[text for text, *_ in BAD])
def test_a_senseless_filter_is_refused(text: str, kind: type[LanguageError], message: str, hint: str) -> None:
    (problem,) = problems(text)
    assert type(problem) is kind
    assert message in problem.message
    assert hint in problem.hint
    assert problem.at >= 0


def test_every_problem_of_a_text_is_reported_in_order() -> None:
    found = problems("prise < 1 AND name > 5 AND zap(1) AND ?x = 1 AND DUR < 5")
    assert [p.code for p in found] == ["unknown", "type", "unknown", "binding", "type"]
    assert [p.at for p in found] == sorted(p.at for p in found)


def test_an_unknown_stream_is_refused() -> None:
    with pytest.raises(UnknownName, match=r"there is no stream stok\n  hint: did you mean stock\?"):
        CATALOGUE.stream("stok")


def test_a_long_sum_and_a_deep_comparison_are_checked_in_no_time() -> None:
    begun = time.perf_counter()
    assert problems("price" + " + price" * 150 + " > 1") == []
    assert problems("price = (1 + (" * 40 + "price" + "))" * 40) != []
    assert time.perf_counter() - begun < 5


# ------------------------------------------------------- undeclared streams


OPEN = Schema("s", {}, declared=False)


@pytest.mark.parametrize(
    "text",
    [
        "a < 5 AND a = 'x' AND a AND a > TIMESTAMP '2026-01-01'",
        "a = b",
        "a = b AND a = 'x' AND b > 5",
        "a IN (1, 'x', TRUE)",
        "a + b > LENGTH(a)",
        "ALL(a) = 'x' OR a.b = 1",
    ],
)
def test_an_attribute_of_an_undeclared_stream_may_be_used_as_any_kind(text: str) -> None:
    assert problems(text, OPEN) == []


def test_what_no_value_can_make_right_is_an_error_on_an_undeclared_stream_too() -> None:
    assert [p.message for p in problems("a BETWEEN 1 AND 'x'", OPEN)] == ["STRING cannot be compared with BIGINT"]
    assert [p.message for p in problems("a < TRUE", OPEN)] == ["BOOLEAN has no order"]
