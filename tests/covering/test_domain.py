from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.covering.portion import ALL, MISSING, PRESENT, Portion
from headgate.predicates.domain import (
    BIGINT,
    BOTTOM,
    DOUBLE,
    STRING,
    TIMESTAMP,
    TOP,
    Domain,
    double_key,
    double_of,
    prefixed,
)
from headgate.predicates.values import compare

OPERATORS = ["=", "<>", "<", "<=", ">", ">="]
NUMBERS = st.one_of(st.floats(), st.integers(-(2**64), 2**64), st.integers(-5, 5).map(float))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


def holds(domain: Domain, value: object, portion: Portion) -> bool:
    at = domain.at_least(value)
    return any(low <= at < high for low, high in portion.spans)


@pytest.mark.parametrize("op", OPERATORS)
@given(value=st.floats(), constant=NUMBERS)
def test_a_double_is_in_a_span_exactly_if_it_compares_so(op: str, value: float, constant: float) -> None:
    assert holds(DOUBLE, value, Portion(DOUBLE.compare(op, constant))) is compare(op, value, constant)


@pytest.mark.parametrize("op", OPERATORS)
@given(value=st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5)), constant=NUMBERS)
def test_an_integer_is_in_a_span_exactly_if_it_compares_so(op: str, value: int, constant: float) -> None:
    assert holds(BIGINT, value, Portion(BIGINT.compare(op, constant))) is compare(op, value, constant)


@pytest.mark.parametrize("op", OPERATORS)
@given(value=TEXTS, constant=TEXTS)
def test_a_text_is_in_a_span_exactly_if_it_compares_so(op: str, value: str, constant: str) -> None:
    assert holds(STRING, value, Portion(STRING.compare(op, constant))) is compare(op, value, constant)


@given(TEXTS, TEXTS)
def test_a_prefix_is_a_span(prefix: str, rest: str) -> None:
    portion = Portion(prefixed(prefix))
    assert holds(STRING, prefix + rest, portion)
    assert holds(STRING, rest, portion) is rest.startswith(prefix)


@pytest.mark.parametrize(("domain", "values"), [(DOUBLE, NUMBERS), (BIGINT, NUMBERS), (STRING, TEXTS)])
@given(data=st.data())
def test_what_is_picked_lies_between_the_cuts(
    domain: Domain, values: st.SearchStrategy[object], data: st.DataObject
) -> None:
    a, b = data.draw(values), data.draw(values)
    cuts = sorted([BOTTOM, TOP, domain.at_least(a), domain.above(a), domain.at_least(b), domain.above(b)])
    for low, high in pairwise(cuts):
        if low < high:
            assert holds(domain, domain.pick(low, high), Portion(((low, high),)))


def test_neighbouring_doubles_have_neighbouring_keys() -> None:
    for value in (0.0, 1.0, -1.0, 5e-324, -5e-324, 1e308):
        assert double_key(math.nextafter(value, math.inf)) == double_key(value) + 1
        assert double_of(double_key(value)) == value
    assert double_key(-0.0) == double_key(0.0)
    assert double_key(math.nan) == double_key(math.inf) + 1


def test_examples_are_plain() -> None:
    assert DOUBLE.pick(DOUBLE.above(850), DOUBLE.at_least(850.5)) == 850.1
    assert BIGINT.pick(BIGINT.above(830), BIGINT.at_least(870)) == 840
    assert BIGINT.pick(BOTTOM, TOP) == 0
    assert STRING.pick(STRING.above("ab"), TOP) == "aba"
    assert TIMESTAMP.pick(TIMESTAMP.at_least(0), TOP) == datetime(1970, 1, 1, tzinfo=UTC)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.booleans()), min_size=1, max_size=4))
def test_portions_are_sets(parts: list[tuple[int, int, bool]]) -> None:
    everything = {*range(10), None}
    made: list[tuple[Portion, set[int | None]]] = []
    for low, size, missing in parts:
        portion = Portion(BIGINT.compare(">=", low)) & Portion(BIGINT.compare("<", low + size))
        values: set[int | None] = {v for v in range(10) if low <= v < low + size}
        made.append((portion | MISSING, values | {None}) if missing else (portion, values))
    for a, x in made:
        assert members(~a) == everything - x
        assert (~~a).spans == a.spans
        for b, y in made:
            assert members(a & b) == x & y
            assert members(a | b) == x | y
    assert ALL.full(True)
    assert PRESENT.full(False)
    assert not PRESENT.full(True)


def members(portion: Portion) -> set[int | None]:
    found: set[int | None] = {v for v in range(10) if holds(BIGINT, v, portion)}
    return found | {None} if portion.missing else found
