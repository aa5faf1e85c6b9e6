"""Errors point at the right place: line, column and caret."""

from __future__ import annotations

import pytest

from headgate.errors import LanguageError, Place, SyntaxProblem, TypeProblem
from headgate.language.catalogue import Catalogue
from headgate.language.parser import parse_body, parse_script, parse_tokens
from headgate.language.tokens import tokenise
from headgate.predicates.check import check_filter
from headgate.schema import Schema


def place(text: str) -> Place:
    with pytest.raises(LanguageError) as caught:
        parse_script(text)
    assert caught.value.place is not None
    return caught.value.place


def test_a_place_counts_lines_and_columns_from_one() -> None:
    found = place("CREATE STREAM s (a STRING);\n\nCREATE SUBSCRIPTION x ON s\n  AS a == 'y';")
    assert (found.line, found.column) == (4, 9)
    assert found.caret() == "  AS a == 'y';\n        ^"


def test_the_caret_is_as_wide_as_the_token() -> None:
    assert place("DROP nothing;").caret() == "DROP nothing;\n     ^^^^^^^"


def test_a_tab_stays_a_tab_under_the_caret() -> None:
    assert place("DROP\t\tnothing;").caret() == "DROP\t\tnothing;\n    \t\t^^^^^^^"


def test_comments_and_windows_line_ends_do_not_shift_a_place() -> None:
    found = place("-- one\r\nDROP STREAM s; -- two ; three\r\n-- four\r\nDROP nothing;\r\n")
    assert (found.line, found.column, found.excerpt) == (4, 6, "DROP nothing;")


def test_a_text_over_two_lines_counts_as_lines() -> None:
    found = place("CREATE SUBSCRIPTION x AS a = 'one\ntwo' b")
    assert (found.line, found.column) == (2, 6)


def test_a_literal_over_two_lines_is_underlined_on_its_first() -> None:
    assert place("CREATE SUBSCRIPTION x AS a b 'one").caret().endswith("^")
    assert place("DROP 'one\ntwo'").caret() == "DROP 'one\n     ^^^^"


def test_a_text_that_ends_too_early_points_behind_its_last_token() -> None:
    assert place("DROP STREAM  -- and then?\n").caret() == "DROP STREAM  -- and then?\n           ^"


def test_a_long_line_is_cut_around_the_place() -> None:
    caret = place("CREATE SUBSCRIPTION x AS " + "a = 1 AND " * 100 + "b b" + " AND a = 1" * 100).caret()
    shown, below = caret.split("\n")
    assert len(shown) == 120
    assert shown[below.index("^")] == "b"


def test_an_error_is_drawn_with_message_caret_and_hint() -> None:
    with pytest.raises(SyntaxProblem) as caught:
        parse_body("price == 5")
    assert str(caught.value) == (
        "line 1, column 8: '=' does not fit here\n  price == 5\n         ^\n  hint: one = compares"
    )


def test_a_problem_of_the_check_is_placed_by_the_text_even_when_the_shape_was_known() -> None:
    schema = Schema.of("s", {"a": "double", "price": "double"})
    catalogue = Catalogue({"s": schema})
    for text, column in (("a > 1 AND a = 'x'", 15), ("a > 1 AND     price = 'xyz'", 23)):
        tokens = tokenise(text)
        (problem,) = check_filter(parse_tokens(tokens), schema, catalogue)
        assert isinstance(problem, TypeProblem)
        placed = tokens.error(problem).place
        assert placed is not None
        assert placed.column == column


def test_a_value_that_a_known_shape_refuses_is_placed() -> None:
    parse_body("a = 1e3 AND b = 2e3")
    with pytest.raises(LanguageError, match="beyond the range of DOUBLE") as caught:
        parse_body("a = 1e3 AND b = 2e999")
    assert caught.value.place is not None
    assert caught.value.place.column == 17
