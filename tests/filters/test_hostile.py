"""Subscriptions and events made to hurt: no crash, no wrong answer, no hang."""

from __future__ import annotations

from time import process_time
from typing import Any

import pyarrow as pa
import pytest

from headgate.columns import Columns
from headgate.errors import EventError, LanguageError, LimitExceeded, PlanError
from headgate.filters import leaves
from headgate.filters.compile import Options
from headgate.filters.engine import compile_filters
from headgate.language.forms import cut
from headgate.language.tokens import tokenise
from headgate.schema import Schema
from headgate.subscriptions import Subscriptions

STREAM = Schema.of("s", {"i": "bigint", "j": "bigint", "d": "double", "t": "string", "b": "boolean"})
LANES = ["auto", "dense", "sparse"]
SECONDS = 20
"""Of the processor, so that a busy machine does not matter: far above what any of this takes, far below a hang."""


@pytest.fixture(autouse=True)
def _in_time() -> Any:
    start = process_time()
    yield
    assert process_time() - start < SECONDS


def events_of(
    text: str, lanes: str = "auto", missing: str = "null", schema: Schema = STREAM, **columns: Any
) -> list[int]:
    """The rows that match."""
    named = {c: (schema.attributes[c,].type, v) for c, v in columns.items()}
    index = compile_filters([(cut(tokenise(text)), missing)], schema, None, Options(lanes=lanes))
    batch = Columns.of("s", named)  # type: ignore[arg-type]  # every attribute has a type
    found: list[int] = index.evaluate(batch).event.tolist()
    assert index.count(batch).tolist() == [len(found)]
    return found


@pytest.mark.parametrize("lanes", LANES)
def test_a_list_of_ten_thousand_values(lanes: str) -> None:
    listed = ", ".join(map(str, range(0, 20_000, 2)))
    seen = [0, 1, 2, 19_998, 19_999, -2, 2**63 - 1, None]
    assert events_of(f"i IN ({listed})", lanes, i=seen) == [0, 2, 3]
    assert events_of(f"i NOT IN ({listed})", lanes, i=seen) == [1, 4, 5, 6]


@pytest.mark.parametrize("lanes", LANES)
def test_a_list_of_ten_thousand_texts(lanes: str) -> None:
    listed = ", ".join(f"'{n:x}'" for n in range(10_000))
    assert events_of(f"t IN ({listed})", lanes, t=["0", "270f", "2710", "", None]) == [0, 1]


@pytest.mark.parametrize("lanes", LANES)
def test_a_disjunction_of_five_thousand_literals(lanes: str) -> None:
    text = " OR ".join(f"i = {n} AND j > {n}" for n in range(2_500))
    assert events_of(text, lanes, i=[7, 7, 2_499, 2_500], j=[8, 7, 2**62, 2**62]) == [0, 2]


def test_a_conjunction_of_disjunctions_that_would_multiply_out_to_millions() -> None:
    text = " AND ".join(f"(i = {n} OR j = {n} OR d < {n})" for n in range(1, 40))
    assert events_of(text, "sparse", i=[1, 1], j=[0, 0], d=[0.0, 2.0]) == [0]


@pytest.mark.parametrize("missing", ["null", "strict", "default", "total"])
def test_three_hundred_attributes(missing: str) -> None:
    names = [f"a{n}" for n in range(300)]
    schema = Schema.of("s", dict.fromkeys(names, "bigint"))
    texts = [f"a{n} = {n} AND NOT a{(n + 1) % 300} = {n}" for n in range(300)]
    batch = Columns.of("s", {name: ("bigint", [n, n + 1]) for n, name in enumerate(names)})
    for lanes in LANES:
        index = compile_filters([(cut(tokenise(t)), missing) for t in texts], schema, None, Options(lanes=lanes))
        assert index.count(batch).tolist() == [1] * 300


def test_more_attributes_than_a_key_can_tell_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaves, "ATTRIBUTES", 3)
    schema = Schema.of("s", dict.fromkeys("abcd", "bigint"))
    with pytest.raises(PlanError, match="the subscriptions of one stream speak of more than 3 attributes"):
        compile_filters([(cut(tokenise(f"{name} = 1")), "null") for name in "abcd"], schema)


def test_a_text_literal_of_a_million_characters_is_refused() -> None:
    with pytest.raises(LimitExceeded, match="a text literal is longer than 100,000 characters"):
        Subscriptions().add("s", f"t = '{'x' * 1_000_000}'")


def test_a_text_literal_at_the_limit_is_found() -> None:
    long = "x" * 99_997
    for lanes in LANES:
        assert events_of(f"t = '{long}' OR t CONTAINS '{long}y'", lanes, t=[long, long + "y", "x"]) == [0, 1]


@pytest.mark.parametrize("bomb", ["((a{100}){100}){100}", "(a{1000}){1000}", "(((((a{30}){30}){30}){30}){30})"])
def test_a_regular_expression_that_needs_too_much_memory_is_refused(bomb: str) -> None:
    with pytest.raises(LanguageError, match="the regular expression is refused"):
        Subscriptions().add("s", f"t MATCHES '{bomb}'")


def test_regular_expressions_that_blow_up_elsewhere_are_linear() -> None:
    for pattern in ("(a+)+$", "(a|aa)+$", "(.*a){12}b", "(x+x+)+y"):
        assert events_of(f"t MATCHES '{pattern}'", t=["a" * 20_000 + "!", "x" * 20_000]) == []


def test_many_large_regular_expressions_together() -> None:
    texts = [f"t MATCHES '({n}|[a-z]{{60}}){{8}}$'" for n in range(60)]
    index = compile_filters([(cut(tokenise(t)), "null") for t in texts], STREAM)
    assert index.count(Columns.of("s", {"t": ("string", ["a" * 480, "7" * 8, "a"])})).tolist() == [
        2 if n == 7 else 1 for n in range(60)
    ]


MANY = "%a" * 30 + "%b"


@pytest.mark.parametrize("lanes", LANES)
def test_a_like_pattern_of_many_percents_on_a_long_text(lanes: str) -> None:
    seen = ["a" * 20_000, "a" * 20_000 + "b"]
    for pattern, found in ((MANY, [1]), ("%a_" * 30 + "%b", [1]), ("%" * 1_000 + "b", [1])):
        assert events_of(f"t LIKE '{pattern}'", lanes, t=seen) == found
        assert events_of(f"LOWER(t) LIKE '{pattern}'", lanes, t=seen) == found
        assert events_of(f"t ILIKE '{pattern}' AND i = 1", lanes, t=seen, i=[1, 1]) == found


@pytest.mark.parametrize("pattern", [MANY, "%a_" * 30 + "%b"])
def test_a_like_pattern_of_many_percents_on_a_long_constant(pattern: str) -> None:
    """What an equality says of a pattern is found at compile time, and so is what a DEFAULT says."""
    long = "a" * 20_000
    assert events_of(f"t = '{long}' OR t LIKE '{pattern}'", "dense", t=[long, "b"]) == [0]
    schema = Schema.of("s", {"t": "string"}, defaults={"t": long})
    assert events_of(f"t LIKE '{pattern}'", "dense", "default", schema, t=[None, "a" * 60 + "b"]) == [1]


def test_nesting_at_the_limit_is_compiled_and_beyond_it_refused() -> None:
    def nested(depth: int) -> str:
        return "".join(f"(i = {n} {'AND' if n % 2 else 'OR'} " for n in range(depth)) + "b" + ")" * depth

    for lanes in LANES:
        assert events_of(nested(95), lanes, i=[0, 1, 2], b=[True, True, None]) == [0]
        assert events_of("NOT " * 150 + "b", lanes, b=[True, False, None]) == [0]
        assert events_of("(" * 150 + "b" + ")" * 150, lanes, b=[True, False, None]) == [0]
    with pytest.raises(LimitExceeded, match="nested more than 200 levels deep"):
        events_of(nested(500), b=[True])


@pytest.mark.parametrize("name", ["ünï", "名前", "`a b`", "`AND`", "a.b.c", "`a.b`", "`x``y`", "`😀`.`%`", "time"])
def test_odd_names(name: str) -> None:
    schema = Schema.of("s", {name: "bigint", "other": "bigint"})
    for lanes in LANES:
        for missing in ("null", "strict"):
            index = compile_filters([(cut(tokenise(f"{name} = 1")), missing)], schema, None, Options(lanes=lanes))
            batch = Columns.of("s", {name: ("bigint", [1, 2, None]), "other": ("bigint", [2, 1, 1])})
            assert index.evaluate(batch).event.tolist() == [0]


def test_a_dot_in_backticks_is_another_attribute_than_a_path() -> None:
    schema = Schema.of("s", {"a.b": "bigint", "`a.b`": "bigint"})
    index = compile_filters([(cut(tokenise(t)), "null") for t in ("a.b = 1", "`a.b` = 1")], schema)
    hits = index.evaluate(Columns.of("s", {"a.b": ("bigint", [1, 2]), "`a.b`": ("bigint", [2, 1])}))
    assert list(zip(hits.event.tolist(), hits.slot.tolist(), strict=True)) == [(0, 0), (1, 1)]


@pytest.mark.parametrize("lanes", LANES)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("i >= 9223372036854775807", [0]),
        ("i > 9223372036854775806", [0]),
        ("i = 9223372036854775806", [1]),
        ("i > 9223372036854775807", []),
        ("i <= -9223372036854775808", [3]),
        ("i < -9223372036854775808", []),
        ("i < 9223372036854775808", [0, 1, 2, 3]),
        ("i <> 9223372036854775808", [0, 1, 2, 3]),
        ("i < 9223372036854775807.0", [0, 1, 2, 3]),
        ("i >= -9223372036854775808.0", [0, 1, 2, 3]),
        ("-i IS NULL", [3, 4]),
        ("i + 1 > i", [1, 2, 3]),
        ("i IN (9223372036854775807, 9223372036854775808, -9223372036854775808)", [0, 3]),
        ("i BETWEEN 9223372036854775806 AND 1" + "0" * 300, [0, 1]),
    ],
)
def test_the_ends_of_bigint(text: str, expected: list[int], lanes: str) -> None:
    assert events_of(text, lanes, i=[2**63 - 1, 2**63 - 2, 0, -(2**63), None]) == expected


def test_a_column_of_the_wrong_type_is_an_error_of_its_events() -> None:
    book = Subscriptions().stream("s", {"i": "bigint", "t": "string"})
    book.add("one", "i = 1").add("two", "t LIKE 'a%'")
    plan = book.compile()
    with pytest.raises(EventError):
        plan.match(pa.table({"i": ["one", "two"], "t": ["a", "b"]}))
    with pytest.raises(EventError):
        plan.match(pa.table({"i": [1.5, 2.0], "t": ["a", "b"]}))
    assert plan.match(pa.table({"i": [1.0, 2.0], "t": ["ab", "b"]}), output="counts")


def test_a_condition_where_a_value_belongs_is_refused_with_its_place() -> None:
    for text in ("i = (b AND b)", "(NOT b) = b", "i IN ((b OR b))", "-(b AND b) < 1", "i BETWEEN (b AND b) AND 2"):
        with pytest.raises(LanguageError, match="line 1, column"):
            Subscriptions().stream("s", STREAM).add("s", text)
