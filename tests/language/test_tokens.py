"""Tokens, their values, shapes, and the limits that protect everything behind them."""

from __future__ import annotations

import pytest

from headgate.errors import LimitExceeded, SyntaxProblem
from headgate.language import ast
from headgate.language.parser import parse_body, parse_script
from headgate.language.printer import print_node
from headgate.language.tokens import Limits, statements, tokenise


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7), ("7.", 7.0), (".5", 0.5), ("1e3", 1000.0), ("2.5E-1", 0.25),
        ("'it''s'", "it's"), ("''", ""), ("'a\nb'", "a\nb"), ("'--'", "--"), ("'\0'", "\0"),
    ],
)  # fmt: skip
def test_a_literal_stands_for_its_value(text: str, value: object) -> None:
    assert parse_body(f"a = {text}") == ast.Compare("=", ast.Attribute(("a",)), ast.Literal(value))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a.b.c", ("a", "b", "c")), ("`a.b`", ("a.b",)), ("a.`b c`.d", ("a", "b c", "d")), ("`x``y`", ("x`y",)),
        ("größe", ("größe",)), ("_1", ("_1",)), ("`select`", ("select",)), ("x.select", ("x", "select")),
    ],
)  # fmt: skip
def test_a_name_stands_for_a_path(text: str, path: ast.Path) -> None:
    assert parse_body(text) == ast.Attribute(path)


@pytest.mark.parametrize(
    ("text", "value"),
    [(r"a\tb\n\"\\", 'a\tb\n"\\'), (r"\u00e9", "é"), (r"\U0001F600", "😀"), ("it's", "it's")],
)
def test_a_double_quoted_text_in_a_graph_knows_escapes(text: str, value: str) -> None:
    graph = parse_body(f'GRAPH {{ _:H :p "{text}" }}')
    assert isinstance(graph, ast.Graph)
    assert graph.triples[0].object == ast.Literal(value)


def test_a_statement_ends_at_a_semicolon_but_not_inside_a_text_or_a_graph() -> None:
    script = "DROP STREAM a; CREATE SUBSCRIPTION s AS b = ';' ; CREATE SUBSCRIPTION g AS GRAPH { _:H a :X ; :p ?y } ;"
    assert len(list(statements(script))) == 3


def test_an_unclosed_graph_does_not_swallow_the_next_statement() -> None:
    first, second = statements("CREATE SUBSCRIPTION g AS GRAPH { _:H a :X ;\nDROP STREAM s;")
    assert second.raws == ["DROP", "STREAM", "s"]
    assert first.raws[-1] == ":X"


def test_texts_that_differ_in_names_and_literals_have_one_shape() -> None:
    assert tokenise("a = 1 AND b < 'x'").shape == tokenise("price = 99 and name <'yy'").shape


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("LOWER(a) = 'x'", "UPPER(a) = 'x'"),
        ("DUR < 3 DAYS", "DUR < 3 WEEKS"),
        ("a = 1", "a = 1.0"),
        ("a = 'x'", "a = b"),
    ],
)
def test_texts_that_mean_something_else_have_another_shape(one: str, other: str) -> None:
    assert tokenise(one).shape != tokenise(other).shape


# ------------------------------------------------------------------ limits

DEEP = {
    "parentheses": "(" * 10_000 + "a" + ")" * 10_000,
    "open parentheses": "(" * 10_000,
    "NOT": "NOT " * 10_000 + "a",
    "minus signs": "- " * 10_000 + "a = 1",
    "a sum": "a" + " + a" * 10_000 + " = 1",
    "a product": "a" + " * a" * 10_000 + " = 1",
    "a chain outside of every bracket": "(" * 100 + "a" + (" + a" * 100 + ")") * 100 + " = 1",
    "NOT before every bracket": ("NOT " * 100 + "a = (") * 100 + "a" + ")" * 100,
    "NOT before every BETWEEN": ("NOT " * 100 + "a BETWEEN 1 AND (") * 100 + "a" + ")" * 100,
    "comparisons": "a = (" * 10_000 + "a" + ")" * 10_000,
    "AND in OR": "a AND (b OR (" * 5_000 + "a" + "))" * 5_000,
    "calls": "f(" * 10_000 + ")" * 10_000,
    "steps": "SELECT * FROM s" + " NEXT s" * 10_000,
    "patterns": "SELECT * FROM (" * 10_000 + "SELECT * FROM s" + ")" * 10_000,
    "filters": "SELECT * FROM " + "FILTER {a} (" * 10_000 + "s" + ")" * 10_000,
}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_a_text_of_ten_thousand_levels_is_refused(text: str) -> None:
    with pytest.raises(LimitExceeded, match="nested more than 200 levels deep") as caught:
        parse_body(text)
    assert caught.value.hint == "name parts of it as subscriptions of their own"


NEARLY_DEEP = {
    "parentheses": "(" * 199 + "a" + ")" * 199,
    "NOT": "NOT " * 199 + "a",
    "a sum": "a" + " + a" * 198 + " = 1",
    "AND in OR": "a AND (b OR (" * 99 + "a" + "))" * 99,
    "IN": "a IN ((" * 60 + "a" + "))" * 60,
    "calls": "f(" * 195 + "a" + ")" * 195,
    "steps": "SELECT * FROM s" + " NEXT {a = 1} s" * 190,
    "patterns": "SELECT * FROM (" * 45 + "SELECT * FROM s" + ")" * 45,
}


@pytest.mark.parametrize("text", NEARLY_DEEP.values(), ids=NEARLY_DEEP)
def test_a_text_just_within_the_limit_can_be_parsed_printed_compared_and_hashed(text: str) -> None:
    tree = parse_body(text)
    assert parse_body(print_node(tree)) == tree
    assert tree == parse_body(text + " ")
    assert hash(tree) == hash(parse_body(text))


def test_a_wide_text_is_not_deep() -> None:
    tree = parse_body(" AND ".join(["(a + 1 = 2 OR NOT b BETWEEN 1 AND 2)"] * 2_000))
    assert isinstance(tree, ast.And)
    assert len(tree.items) == 2_000


def test_a_text_literal_may_be_long_but_not_endless() -> None:
    parse_body("a = '" + "x" * 99_990 + "'")
    with pytest.raises(LimitExceeded, match="a text literal is longer than 100,000 characters"):
        parse_body("a = '" + "x" * 100_001 + "'")


def test_a_text_has_at_most_so_many_words() -> None:
    with pytest.raises(LimitExceeded, match="the text has more than 100,000 words and signs") as caught:
        parse_body("a" + " AND a" * 60_000)
    assert caught.value.hint == "split it into several subscriptions"


def test_a_text_has_at_most_so_many_characters() -> None:
    with pytest.raises(LimitExceeded, match="the text is longer than 50 characters"):
        parse_body("a = 1" + " " * 50 + "AND b = 2", Limits(characters=50))


def test_limits_are_settings() -> None:
    text = "NOT " * 300 + "a"
    assert isinstance(parse_body(text, Limits(depth=400)), ast.Not)
    with pytest.raises(LimitExceeded, match="nested more than 10 levels deep"):
        parse_body(text, Limits(depth=10))


def test_the_limits_hold_for_each_statement_of_a_script() -> None:
    assert len(parse_script("CREATE SUBSCRIPTION s AS a = 1;" * 10_000)) == 10_000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1e999", "1e999 is beyond the range of DOUBLE"),
        ("a = " + "9" * 401, "a whole number may have at most 400 digits"),
    ],
)
def test_a_number_that_cannot_be_held_is_refused(text: str, message: str) -> None:
    with pytest.raises(LimitExceeded, match=message) as caught:
        parse_body(text)
    assert caught.value.place is not None
    assert caught.value.place.column == 5


def test_nul_has_no_meaning_outside_of_a_text() -> None:
    with pytest.raises(SyntaxProblem, match=r"the character '\\x00' has no meaning here"):
        parse_body("a = \0")


def test_half_a_character_is_refused_and_the_error_can_be_printed() -> None:
    with pytest.raises(SyntaxProblem, match=r"\\ud800 is half of a character") as caught:
        parse_body("a = 'x\ud800'")
    assert str(caught.value).encode()
