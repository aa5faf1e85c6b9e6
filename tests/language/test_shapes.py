"""A parse from the cache of shapes equals a parse from scratch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.language import strategies

from headgate.errors import LanguageError
from headgate.language import parser
from headgate.language.ast import Node, walk
from headgate.language.parser import parse_body, template
from headgate.language.printer import print_node
from headgate.language.tokens import tokenise


def fresh(text: str) -> Node:
    return parser._reduce(tokenise(text), holes=False)


@settings(max_examples=300, deadline=None)
@given(strategies.bodies())
def test_a_cached_parse_equals_a_fresh_one(body: Node) -> None:
    text = print_node(body)
    assert parse_body(text) == parse_body(text) == fresh(text)


@settings(max_examples=200, deadline=None)
@given(strategies.bodies())
def test_a_cached_parse_counts_the_same_tokens(body: Node) -> None:
    text = print_node(body)
    assert [node.at for node in walk(parse_body(text))] == [node.at for node in walk(fresh(text))]


_pieces = st.sampled_from(
    [
        "a", "b", "`c`", "0", "1", "2.5", "'x'", "-", "-", "+", "*", "(", ")", "NOT", "AND", "OR", "=", "<", "IN", ",",
        "LIKE", "BETWEEN", "IS", "NULL", "TRUE", "LOWER(", "f(", "?x", "3", "DAYS", "TIMESTAMP", "DUR", "$1.a",
    ]
)  # fmt: skip


@settings(max_examples=1_000, deadline=None)
@given(st.lists(_pieces, min_size=1, max_size=12).map(" ".join))
def test_any_text_is_parsed_or_refused_alike_with_and_without_the_cache(text: str) -> None:
    outcomes: list[Node | str] = []
    for parse in (parse_body, fresh, parse_body):
        try:
            outcomes.append(parse(text))
        except LanguageError as problem:
            outcomes.append(str(problem))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_texts_of_one_shape_share_a_template() -> None:
    assert template(tokenise("a = 1 AND b = 'x'")) is template(tokenise("zz = 7 AND y.z = 'it''s'"))


def test_a_shape_too_deep_for_generated_code_is_filled_all_the_same() -> None:
    text = "a AND (b OR (" * 90 + "c = {}" + "))" * 90
    assert parse_body(text.format(1)) == fresh(text.format(1))
    assert parse_body(text.format(2)) == fresh(text.format(2))
    assert parse_body(text.format(1)) != parse_body(text.format(2))


def test_the_cache_starts_anew_when_it_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "_SHAPES", 3)
    monkeypatch.setattr(parser, "_templates", {})
    for n in range(1, 20):
        parse_body(" AND ".join(["a = 1"] * n))
    assert len(parser._templates) <= 3
