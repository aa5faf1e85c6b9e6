"""Literals and their values."""

from __future__ import annotations

import math

import pytest

from headgate.graphs.terms import (
    XSD,
    IllTyped,
    Literal,
    Term,
    literal_of,
    order_of,
    python_of,
    value_of,
)
from headgate.predicates import values
from headgate.predicates.values import BOOLEAN, INSTANT, NUMBER, TEXT


def typed(lexical: str, datatype: str) -> Literal:
    return Literal(lexical, f"<{XSD}{datatype}>")


@pytest.mark.parametrize(
    ("lexical", "datatype", "kind", "value"),
    [
        ("+007", "integer", NUMBER, 7),
        ("255", "unsignedByte", NUMBER, 255),
        ("5.00", "decimal", NUMBER, 5),
        (".5", "decimal", NUMBER, 0.5),
        ("-", "string", TEXT, "-"),
        ("1e3", "double", NUMBER, 1000.0),
        ("-INF", "double", NUMBER, -math.inf),
        (" 1 ", "boolean", BOOLEAN, True),
        ("false", "boolean", BOOLEAN, False),
        ("1970-01-02", "date", INSTANT, 86_400_000_000),
        ("1970-01-01T01:00:00.5+01:00", "dateTime", INSTANT, 500_000),
        ("1969-12-31T24:00:00Z", "dateTime", INSTANT, 0),
        ("word", "token", TEXT, "word"),
    ],
)
def test_a_literal_has_the_value_of_its_datatype(lexical: str, datatype: str, kind: int, value: object) -> None:
    found = value_of(typed(lexical, datatype))
    assert (values.kind(found), found) == (kind, value)


@pytest.mark.parametrize(
    ("lexical", "datatype"),
    [("x", "integer"), ("1.5", "integer"), ("1e3", "decimal"), ("yes", "boolean"), ("2026-13-01", "date"),
     ("2026-01-01", "dateTime"), ("2026-01-01T00:00:00+15:00", "dateTime"), ("", "double"), ("9" * 5000, "integer")],
)  # fmt: skip
def test_a_text_that_does_not_fit_its_datatype_is_refused(lexical: str, datatype: str) -> None:
    with pytest.raises(IllTyped, match=f"is no {datatype}"):
        value_of(typed(lexical, datatype))


def test_an_unknown_datatype_has_no_value_but_is_kept_as_text() -> None:
    odd = Literal("3 apples", "<http://example.org/fruit>")
    assert value_of(odd) is None
    assert python_of(odd) == "3 apples"


def test_python_values_come_back_from_their_literals() -> None:
    for value in (True, 5, -2.5, math.inf, "text", ""):
        assert python_of(literal_of(value)) == value
    assert math.isnan(python_of(literal_of(math.nan)))


def test_bindings_order_booleans_before_numbers_before_text_and_nan_behind_numbers() -> None:
    terms: list[Term] = [
        literal_of("a"),
        literal_of(math.nan),
        literal_of(10),
        literal_of(2.5),
        literal_of(True),
        "<http://x>",
    ]
    ordered = [python_of(t) for t in sorted(terms, key=order_of)]
    assert ordered[:3] == [True, 2.5, 10]
    assert math.isnan(ordered[3])
    assert ordered[4:] == ["<http://x>", "a"]


def test_a_literal_prints_as_in_n_triples() -> None:
    assert str(Literal('a "quoted"\nline', f"<{XSD}string>")) == '"a \\"quoted\\"\\nline"'
    assert str(literal_of(5)) == f'"5"^^<{XSD}integer>'
