"""Conditions on one row: the same truths as the oracle's, and values whose kinds are known at run time only."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.filters.atoms_strategy import batches, literals

from headgate.language.ast import Path
from headgate.language.parser import parse_body
from headgate.oracle.filters import truth as oracle_truth
from headgate.predicates import modes
from headgate.predicates.modes import MODES
from headgate.predicates.normal import Lit
from headgate.predicates.rows import Values, compile_truth, compile_value
from headgate.predicates.values import OPAQUE, Instant
from headgate.schema import Schema


@settings(deadline=None, max_examples=500)
@given(st.lists(literals(), min_size=1, max_size=4), st.sampled_from(MODES), st.data())
def test_a_condition_has_the_truth_that_the_oracle_gives_it(lits: list[Lit], mode: str, data: st.DataObject) -> None:
    columns, schema = data.draw(batches(lits))
    for lit in lits:
        for i in range(columns.rows):
            row = columns.row(i)
            assert modes.truth(lit.atom, row, schema, mode) is oracle_truth(lit.atom, row, schema, mode)


def truth(text: str, variables: dict[str, Any], attributes: dict[str, Any] | None = None, **how: Any) -> bool | None:
    given: dict[Path, Any] = {(name,): value for name, value in (attributes or {}).items()}
    return compile_truth(parse_body(text), **how)(Values(given, variables))


NOON = Instant(43_200_000_000)


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("?x > 5", 6, True),
        ("?x > 5", "6", None),
        ("?x = 1", True, None),
        ("?x = TRUE", True, True),
        ("?x", True, True),
        ("?x", 1, None),
        ("?x LIKE 'a%'", "ab", True),
        ("?x LIKE 'a%'", 5, None),
        ("?x NOT LIKE 'a%'", 5, None),
        ("ABS(?x) = 2", -2, True),
        ("ABS(?x) = 2", "-2", None),
        ("?x + 1 = 3", 2, True),
        ("?x * 0.5 > 1", 10**400, None),
        ("?x = ?x", math.nan, True),
        ("?x IS NULL", None, True),
        ("?x IS NULL", OPAQUE, False),
        ("?x = ?x", OPAQUE, None),
        ("?x = TIMESTAMP '1970-01-01T12:00:00Z'", NOON, True),
        ("?x < TIMESTAMP '1970-01-01T12:00:01Z'", NOON, True),
        ("?x + 1 HOUR > TIMESTAMP '1970-01-01T12:30:00Z'", NOON, True),
        ("?x - TIMESTAMP '1970-01-01T11:00:00Z' = 1 HOUR", NOON, True),
        ("?x > 5", NOON, None),
        ("?x * 2 > TIMESTAMP '1970-01-01T00:00:00Z'", NOON, None),
    ],
)
def test_a_variable_is_compared_by_its_kind(text: str, value: Any, expected: bool | None) -> None:
    assert truth(text, {"x": value}) is expected


def test_an_attribute_that_is_a_time_meets_a_variable_as_a_time() -> None:
    assert truth("?x <= at", {"x": NOON}, {"at": NOON}) is True
    assert truth("?x <= at", {"x": 5}, {"at": NOON}) is None


def test_a_variable_meets_the_default_of_a_missing_attribute() -> None:
    assert truth("?x < b", {"x": 1}, {}, defaults={("b",): 3}) is True
    assert truth("?x < b", {"x": 1}, {}, defaults={}) is False
    assert truth("?x <> b", {"x": 1}, {}, defaults={}) is True


def test_a_value_that_cannot_be_computed_is_missing() -> None:
    row = Values({("a",): 2**63 - 1, ("b",): 0}, {})
    assert compile_value(parse_body("a + 1"))(row) is None
    assert compile_value(parse_body("a / b"))(row) is None


def test_strict_and_total_leave_unknown_what_an_event_lacks() -> None:
    schema = Schema.of("s", {"a": "bigint", "b": "bigint"})
    body = parse_body("a > 1 OR b > 1")
    row: dict[Path, Any] = {("a",): 2}
    assert [modes.truth(body, row, schema, mode) for mode in MODES] == [True, None, True, None]
