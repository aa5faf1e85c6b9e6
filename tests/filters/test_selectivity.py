from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.columns import Columns
from headgate.filters.rows import SETS, Family, Reach, pack
from headgate.filters.selectivity import Selectivity
from headgate.predicates.cells import Cells
from headgate.schema import Kind


def cells(*cuts: int) -> Cells:
    return Cells(("x",), Kind.BIGINT, np.array(cuts, np.int64), True)


def keys(*rows: tuple[int, int] | tuple[int, int, int], family: int = Family.CELL) -> Any:
    return np.array([pack(family, 0, *row) for row in rows], np.int64)


def test_without_a_sample_cells_are_equally_likely_and_a_tenth_of_the_events_lack_the_attribute() -> None:
    estimate = Selectivity({0: cells(10, 20)}, [])
    shares = estimate.of_keys(keys((Reach.MEMBER, 1), (Reach.UPTO, 4), (Reach.UPTO, 1), (Reach.FROM, 3)))
    assert shares == pytest.approx([0.18, 0.9, 0.36, 0.36])


def test_a_sample_tells_the_share_of_a_cell() -> None:
    sample = Columns.of("s", {"x": ("bigint", [10] * 60 + [15] * 30 + [None] * 10)})
    estimate = Selectivity({0: cells(10, 20)}, [], sample)
    found = estimate.of_keys(keys((Reach.MEMBER, 1), (Reach.MEMBER, 2), (Reach.MEMBER, 3), (Reach.UPTO, 4)))
    assert found == pytest.approx([0.6, 0.3, 0.002, 0.9], abs=0.01)
    assert found[2] > 0  # what a sample did not show may still come


def test_a_sample_without_the_attribute_tells_nothing() -> None:
    for sample in (Columns.of("s", {"y": ("bigint", [1])}), Columns.of("s", {"x": ("bigint", [])})):
        assert Selectivity({0: cells(10)}, [], sample).of_keys(keys((Reach.UPTO, 2))) == pytest.approx([0.9])


def test_a_set_lets_through_the_sum_of_its_cells_and_its_complement_the_rest() -> None:
    estimate = Selectivity({0: cells(10, 20)}, [np.array([1, 3], np.int32)])
    assert estimate.of_keys(keys((Reach.MEMBER, SETS), (Reach.OUTSIDE, SETS))) == pytest.approx([0.36, 0.64])


def test_that_an_attribute_is_missing_holds_for_a_tenth() -> None:
    assert Selectivity({0: cells(10)}, []).of_keys(keys((Reach.MEMBER, -1, 1))) == pytest.approx([0.1])


def test_of_a_text_test_or_a_vector_nothing_is_known() -> None:
    estimate = Selectivity({0: Cells(("x",), Kind.STRING, pa.array(["a"]), False)}, [])
    assert estimate.of_keys(keys((Reach.MEMBER, 0), family=Family.TEXT)).tolist() == [0.5]
    assert Selectivity({}, []).of_keys(keys((0, 0), family=Family.VECTOR)).tolist() == [0.5]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True), st.lists(st.none() | st.integers(0, 9)))
def test_the_shares_of_all_cells_are_the_share_of_events_that_have_the_attribute(
    cuts: list[int], seen: list[int | None]
) -> None:
    made = cells(*sorted(cuts))
    for sample in (None, Columns.of("s", {"x": ("bigint", seen)})):
        estimate = Selectivity({0: made}, [], sample)
        every = np.arange(made.count)
        single = estimate.of_range(np.zeros(made.count, np.int32), every, every)
        whole = estimate.of_range(np.zeros(1, np.int32), np.array([0]), np.array([made.count - 1]))
        assert (single > 0).all()
        assert single.sum() == pytest.approx(whole[0])
        assert whole[0] <= 1 + 1e-9
