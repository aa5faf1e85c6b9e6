"""Texts of patterns are cut at their braces only where that cannot be wrong."""

from __future__ import annotations

import pytest

from headgate.errors import LanguageError
from headgate.language.catalogue import Catalogue
from headgate.schema import Schema
from headgate.sequences.shapes import Shapes
from headgate.sequences.wording import cut
from headgate.subscriptions import Subscriptions

S = Schema.of("s", {"n": "bigint", "x": "double", "name": "string"})
TEXT = " ".join(("SELECT a.n AS n", "FROM FILTER {%s} (s AS a)"))


def test_a_frame_says_of_which_kind_its_literals_are() -> None:
    frames = {cut(TEXT % f"n = {literal}").frames[0] for literal in ("1", "1.0", "'1'")}  # type: ignore[union-attr]  # they are cut
    assert len(frames) == 3


def test_literals_are_no_part_of_a_frame() -> None:
    one, other = cut(TEXT % "n = 1 AND name = 'it''s'"), cut(TEXT % "n = 22 AND name = 'b'")
    assert one is not None
    assert other is not None
    assert one.frames == other.frames
    assert one.literals == [["1", "'it''s'"]]


@pytest.mark.parametrize("predicate", ["name = '{'", "name = '}' AND n = 1", "name = 'a{ ' AND name = ' }'", "`n` = 1"])
def test_a_text_in_which_a_brace_or_quote_may_mean_something_else_is_not_cut(predicate: str) -> None:
    assert cut(TEXT % predicate) is None


@pytest.mark.parametrize(
    "predicate", ["n = 2", "x < 1.5", "name = 'b'", "n IN (1, 2)", "n = -3", "x > 1e3", "n = 5 OR x > 2"]
)
def test_a_text_whose_parts_are_known_means_what_it_means_alone(predicate: str) -> None:
    shapes = Shapes(Catalogue(streams={"s": S}))
    for known in ("n = 1", "x < 0.5", "name = 'a'", "n IN (3, 4)", "n = -1", "x > 1e9", "n = 6 OR x > 3"):
        shapes.spine(TEXT % known)
    assert str(shapes.spine(TEXT % predicate)) == str(Shapes(Catalogue(streams={"s": S})).spine(TEXT % predicate))


def test_a_known_frame_with_a_literal_of_another_kind_is_checked_again() -> None:
    book = Subscriptions().stream("s", S)
    book.add("right", TEXT % "n = 1")
    with pytest.raises(LanguageError):
        book.add("wrong", TEXT % "n = 'one'")
