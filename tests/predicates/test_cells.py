from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.filters.atoms_strategy import POOLS

from headgate.columns import Column
from headgate.predicates import values
from headgate.predicates.cells import ALWAYS, NEVER, Cells, canonical
from headgate.schema import Kind, Type

OPS = list(values.NEGATED)
numbers = POOLS[Kind.BIGINT] | POOLS[Kind.DOUBLE] | st.integers(-(2**1100), 2**1100)
near = st.sampled_from([2**53, 2**60, 2**63, 2**64, 10**308, 2**1024, 0]).flatmap(
    lambda n: st.integers(-3, 3).map(lambda i: n + i)
)
constants = numbers | near | near.map(lambda n: -n)


def holds(op: str, x: Any, constant: Any) -> bool:
    return op == ALWAYS if op in (ALWAYS, NEVER) else values.compare(op, x, constant)


def around(kind: Kind, constant: Any) -> list[Any]:
    """Values of a type next to a constant, where rounding would show."""
    if kind is Kind.DOUBLE:
        try:
            middle = float(constant)
        except OverflowError:
            middle = float("inf") if constant > 0 else float("-inf")
        return [middle, math.nextafter(middle, math.inf), math.nextafter(middle, -math.inf)]
    if constant != constant or constant in (float("inf"), float("-inf")):
        return [2**63 - 1, -(2**63)]
    middle = int(constant)
    return [x for x in (middle - 1, middle, middle + 1) if x in values.INT64] or [2**63 - 1, -(2**63)]


@settings(max_examples=500, deadline=None)
@given(st.sampled_from([Kind.BIGINT, Kind.TIMESTAMP, Kind.DOUBLE]), constants, st.data())
def test_a_comparison_is_the_same_with_a_constant_of_the_attributes_own_type(
    kind: Kind, constant: Any, data: st.DataObject
) -> None:
    pool = POOLS[Kind.DOUBLE if kind is Kind.DOUBLE else Kind.BIGINT]
    for x in (data.draw(pool), *around(kind, constant)):
        for op in OPS:
            exact, value = canonical(kind, op, constant)
            assert type(value) is (float if kind is Kind.DOUBLE else int)
            assert holds(exact, x, value) == values.compare(op, x, constant), (x, op, constant)


@settings(deadline=None)
@given(constants)
def test_a_constant_of_a_whole_number_fits_it(constant: Any) -> None:
    for op in OPS:
        assert canonical(Kind.BIGINT, op, constant)[1] in values.INT64


@given(st.integers(-(2**70), 2**70), st.integers(-3, 3))
def test_a_double_between_two_doubles_rounds_to_the_side_it_lies_on(whole: int, step: int) -> None:
    """Against fractions, which round nothing."""
    constant = whole + step
    x = float(whole)
    for op in ("<", "<=", ">", ">="):
        exact, value = canonical(Kind.DOUBLE, op, constant)
        assert holds(exact, Fraction(x), Fraction(value)) == values.compare(op, Fraction(x), Fraction(constant))


def test_a_text_and_a_truth_value_stay_what_they_are() -> None:
    assert canonical(Kind.STRING, "<", "a") == ("<", "a")
    assert canonical(Kind.BOOLEAN, "=", True) == ("=", 1)


def cell_of(cuts: list[Any], x: Any) -> int:
    if x is None:
        return -1
    below = sum(values.compare("<", c, x) for c in cuts)
    return 2 * below + any(values.compare("=", c, x) for c in cuts)


@settings(max_examples=200, deadline=None)
@given(st.sampled_from([Kind.BOOLEAN, Kind.BIGINT, Kind.DOUBLE, Kind.TIMESTAMP, Kind.STRING]), st.data())
def test_a_value_lies_in_the_cell_between_or_on_the_cuts(kind: Kind, data: st.DataObject) -> None:
    cuts = sorted(set(data.draw(st.lists(POOLS[kind].filter(lambda c: c == c), max_size=5))))
    seen = data.draw(st.lists(st.none() | POOLS[kind] | st.sampled_from([None, *cuts]), max_size=8))
    dtype: Any = np.float64 if kind is Kind.DOUBLE else np.int64
    stored: Any = pa.array(cuts, pa.string()) if kind is Kind.STRING else np.array(cuts, dtype)
    cells = Cells(("x",), kind, stored, True)
    found = cells.of(Column.of(Type(kind), seen))
    assert found.tolist() == [cell_of(cuts, x) for x in seen]
    assert found.dtype == np.int32
    assert cells.count == 2 * len(cuts) + 1


@pytest.mark.parametrize("top", [2**63 - 1, 2**63 - 2, -(2**63), 0])
def test_cuts_at_the_ends_of_int64_have_a_table_too(top: int) -> None:
    seen = [x for x in (top - 2, top - 1, top, top + 1, 0, -(2**63), 2**63 - 1) if x in values.INT64]
    cells = Cells(("x",), Kind.BIGINT, np.array([top]), True)
    assert cells.of(Column.of("bigint", seen)).tolist() == [cell_of([top], x) for x in seen]


def test_far_cuts_are_searched_and_close_ones_looked_up_with_one_result() -> None:
    seen = [-5, 0, 1, 2, 3, 2**40, None]
    close, far = (Cells(("x",), Kind.BIGINT, np.array(c), True) for c in ([0, 2], [0, 2, 2**50]))
    assert close.of(Column.of("bigint", seen)).tolist() == [0, 1, 2, 3, 4, 4, -1]
    assert far.of(Column.of("bigint", seen)).tolist() == [0, 1, 2, 3, 4, 4, -1]


def test_a_text_that_is_only_compared_for_equality_has_a_cell_of_its_own_or_any_even_one() -> None:
    cells = Cells(("x",), Kind.STRING, pa.array(["a", "b"]), False)
    found = cells.of(Column.of("string", ["b", "a", "zz", "", None])).tolist()
    assert [found[0], found[1], found[4]] == [3, 1, -1]
    assert [found[2] % 2, found[3] % 2] == [0, 0]


@pytest.mark.parametrize("type_", ["binary", "graph", "array<bigint>", "array<string>", "string", "bigint"])
def test_without_cuts_there_is_one_cell(type_: str) -> None:
    kind = Type.parse(type_).kind
    empty: Any = pa.array([], pa.string()) if kind is Kind.STRING else np.zeros(0, np.int64)
    seen: dict[str, Any] = {"binary": b"a", "graph": "g", "string": "s", "bigint": 1}
    value = seen.get(type_, [])
    assert Cells(("x",), kind, empty, False).of(Column.of(type_, [value, None])).tolist() == [0, -1]
