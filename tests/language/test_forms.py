from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.language.strategies import expressions

from headgate.errors import LanguageError
from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.forms import cut, cut_at_joints, cut_text
from headgate.language.parser import parse_body
from headgate.language.printer import print_node
from headgate.language.tokens import tokenise


def places(value: Any) -> list[int]:
    """The token numbers of a tree, in one order."""
    found = [value.at] if isinstance(value, Node) else []
    inner = value if isinstance(value, tuple) else [getattr(value, f.name) for f in fields(value) if f.name != "at"]
    return found + [at for v in inner if isinstance(v, Node | tuple) for at in places(v)]


def assert_cut_as_parsed(text: str) -> None:
    made, parsed = cut(tokenise(text)).body(), parse_body(text)
    assert made == parsed
    assert places(made) == places(parsed)
    assert cut_text(text) == cut(tokenise(text))


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions())
def test_a_filter_is_cut_into_the_tree_of_the_grammar_with_its_places(body: Node) -> None:
    assert_cut_as_parsed(print_node(body))


@pytest.mark.nightly
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(expressions())
def test_many_more_filters_are_cut_into_the_tree_of_the_grammar(body: Node) -> None:
    assert_cut_as_parsed(print_node(body))


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "((a))",
        "NOT NOT a",
        "NOT (a OR b) AND c",
        "a AND (b AND c) AND d",
        "a OR (b OR c) OR d",
        "((a AND b) OR c) AND (d OR e)",
        "(a) + 1 = 2",
        "(a + 1) * (b - 2) < (3)",
        "NOT (a) = b",
        "x BETWEEN 1 AND 2 AND y",
        "x NOT BETWEEN 1 AND 2 OR y",
        "x BETWEEN (1 + 2) AND 3 AND z BETWEEN 4 AND 5",
        "NOT x BETWEEN 1 AND 2 AND NOT y NOT IN (1, (2), -3)",
        "x IN (1, 2) AND (y IN (3))",
        "a IS NOT NULL AND NOT a IS NULL",
        "f(?x, 'a') AND ?x > 3",
        "GRAPH { _:H a :C } AND a",
        "NOT GRAPH { _:H :p ?x . FILTER(?x > 1 AND ?x < 3) }",
        "t NOT LIKE 'a!%' ESCAPE '!' AND t ILIKE 'b'",
        "`a b`.c = 1 AND `AND` = 2",
        "a = 'b AND c' AND ' OR ' = d",
        "a = 'it''s (' OR (b = ')' AND NOT c = '''')",
        "x between 1 and 2 and not y",
        "a.AND = 1 AND OR_ = 2",
        " a = 1 AND\n b = 2 ",
        "a = 1 AND ( ( b ) ) OR NOT ( NOT c )",
    ],
)
def test_brackets_and_words_are_cut_as_the_grammar_reads_them(text: str) -> None:
    assert_cut_as_parsed(text)


@pytest.mark.parametrize("text", ["a = (b AND c)", "(NOT b) = b", "f((b AND b))", "-(a OR b) < 1", "a IN ((b AND c))"])
def test_a_condition_among_the_operands_is_left_to_the_type_check(text: str) -> None:
    assert_cut_as_parsed(text)


LITERALS = [
    "1",
    "-1",
    "- 1",
    "--1\n-1",
    "-0",
    "-0.0",
    "0.0",
    "-(-1)",
    "-(1)",
    "- -1",
    "1e3",
    "-.5",
    "9223372036854775808",
]


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("text", ["x < {}", "{} >= x", "x IN (2, {})", "x BETWEEN {} AND 3", "x + {} = y"])
def test_a_literal_keeps_its_sign(text: str, literal: str) -> None:
    whole = text.format(literal)
    assert_cut_as_parsed(whole)
    made, parsed = cut(tokenise(whole)).body(), parse_body(whole)
    assert repr(made) == repr(parsed)  # repr, for -0.0 equals 0.0


NAMES = ["a", "b", "a.b", "`a`", "`a.b`", "time", "TIME", "lower"]
TEMPLATES = [
    "{} < 1",
    "{} <= 1",
    "{} < 1.0",
    "{} = 'x'",
    "LOWER({}) = 'x'",
    "UPPER({}) = 'x'",
    "{} < 3 DAYS",
    "{} < 3 HOURS",
]


def test_forms_tell_names_operators_and_meaning_apart() -> None:
    """All of them in one process, forwards and backwards, so that every form is in the cache when others ask for it."""
    texts = [t.format(n) for n in NAMES for t in TEMPLATES]
    for text in (*texts, *reversed(texts)):
        assert_cut_as_parsed(text)


def test_atoms_that_differ_in_their_literals_share_one_form() -> None:
    first, second = (cut(tokenise(t)).pieces[0] for t in ("price < 100", "price < 7"))
    assert first.form is second.form
    assert (first.literals, second.literals) == ((100,), (7,))
    assert cut(tokenise("price < 7.0")).pieces[0].form is not first.form


def test_a_name_is_part_of_the_form_as_it_was_typed() -> None:
    forms = {cut(tokenise(f"{name} < 1")).pieces[0].form.body for name in ("a", "A", "b")}
    assert forms == {ast.Compare("<", ast.Attribute((n,)), ast.Literal(ast.Hole(0))) for n in "aAb"}


broken = st.lists(
    st.sampled_from(
        ["a", "1", "'t'", "(", ")", "AND", "OR", "NOT", "=", "<", "-", "BETWEEN", "IN", ",", "IS NULL", "f("]
    ),
    min_size=1,
    max_size=9,
).map(" ".join)


def outcome(read: Any) -> object:
    try:
        return read()
    except LanguageError as e:
        return type(e), str(e), e.place


@settings(max_examples=400, deadline=None)
@given(broken)
def test_what_the_grammar_refuses_is_refused_with_its_words(text: str) -> None:
    assert outcome(lambda: cut(tokenise(text)).body()) == outcome(lambda: parse_body(text))


@pytest.mark.parametrize(
    "text",
    [
        "price <",
        "price < 1e999",
        "price < " + "9" * 401,
        "price < 3 MOONS",
        "DATE '2026' < t",
        "price < 1 AND",
        "(price < 1",
        "price < 1)",
        "a = 'open",
        "LOWER(a, b) = 'x'",
        "a ~ 3",
    ],
)
def test_an_error_of_a_cut_is_the_error_of_the_grammar(text: str) -> None:
    found = outcome(lambda: cut(tokenise(text)).body())
    assert isinstance(found, tuple)
    assert found == outcome(lambda: parse_body(text))


@pytest.mark.parametrize(
    ("text", "quick"),
    [
        ("(a = 1 AND NOT (b < 'x' OR c)) OR d", True),
        ("a = 'b AND c' AND d", False),
        ("a BETWEEN 1 AND 2", False),
        ("f(a) AND b", False),
        ("(" * 300 + "a" + ")" * 300, False),
    ],
)
def test_a_text_whose_fragments_are_all_atoms_is_cut_without_its_tokens(text: str, quick: bool) -> None:
    assert (cut_at_joints(text) is not None) == quick
