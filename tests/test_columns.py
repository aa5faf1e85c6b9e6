from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.columns import Column, Columns
from headgate.errors import SchemaError
from headgate.schema import Kind, Type

VALUES = {
    "boolean": st.booleans(),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
    "string": st.text(max_size=5),
    "timestamp": st.integers(-(2**63), 2**63 - 1),
    "binary": st.binary(max_size=5),
}


@st.composite
def typed(draw: st.DrawFn) -> tuple[str, list[object]]:
    kind = draw(st.sampled_from(sorted(VALUES)))
    value = st.none() | VALUES[kind]
    if draw(st.booleans()):
        return f"array<{kind}>", draw(st.lists(st.none() | st.lists(value, max_size=4), max_size=8))
    return kind, draw(st.lists(value, max_size=8))


def values(column: Column) -> list[object]:
    return [column.value(i) for i in range(len(column))]


@given(typed())
def test_a_column_gives_back_the_values_it_was_made_of(made: tuple[str, list[object]]) -> None:
    assert values(Column.of(*made)) == made[1]


@given(typed(), st.data())
def test_take_and_slice_are_those_of_a_list(made: tuple[str, list[object]], data: st.DataObject) -> None:
    column = Column.of(*made)
    n = len(column)
    rows = data.draw(st.lists(st.integers(0, n - 1), max_size=10)) if n else []
    start = data.draw(st.integers(0, n))
    stop = data.draw(st.integers(start, n))
    assert values(column.take(np.array(rows, np.int64))) == [made[1][i] for i in rows]
    assert values(column.slice(start, stop)) == made[1][start:stop]
    assert values(column.slice(start, stop).take(np.arange(stop - start))) == made[1][start:stop]


@given(st.lists(st.none() | st.sampled_from(["a", "b", "c"]), max_size=20))
def test_a_dictionary_has_each_text_once_and_minus_one_where_missing(texts: list[str | None]) -> None:
    codes, words = Column.of("string", texts).dictionary()
    assert codes.dtype == np.int32
    assert [words[c].as_py() if c >= 0 else None for c in codes] == texts
    assert len(set(words.to_pylist())) == len(words)


def test_a_dictionary_is_computed_once() -> None:
    column = Column.of("string", ["a", "b"])
    assert column.dictionary()[1] is column.dictionary()[1]


def test_text_that_is_a_dictionary_already_keeps_its_codes() -> None:
    words = pa.array(["a", None, "a"]).dictionary_encode()
    column = Column(Type(Kind.STRING), np.array([True, False, True]), words)
    assert column.dictionary()[0].tolist() == [0, -1, 0]
    assert column.value(2) == "a"


def test_a_number_has_no_dictionary() -> None:
    with pytest.raises(SchemaError, match="a column of BIGINT has no dictionary"):
        Column.of("bigint", [1]).dictionary()


def test_what_is_missing_is_zero_underneath() -> None:
    column = Column.of("double", [None, 2.5])
    assert column.defined.tolist() == [False, True]
    assert isinstance(column.values, np.ndarray) and column.values.tolist() == [0.0, 2.5]


@pytest.mark.parametrize("kind", ["bigint", "string", "array<double>", "array<binary>"])
def test_a_column_that_no_event_defines_is_missing_everywhere(kind: str) -> None:
    assert values(Column.missing(Type.parse(kind), 2)) == [None, None]


BATCH = Columns.of("s", {"a": ("bigint", [1, None, 3]), "b.c": ("string", ["x", "y", None])}, first=10, identity="pqr")


def test_a_batch_gives_rows_by_path() -> None:
    assert BATCH.row(1) == {("a",): None, ("b", "c"): "y"}


def test_a_batch_without_the_column_names_those_it_has() -> None:
    with pytest.raises(SchemaError, match=r"stream s has no column z\n  hint: it was decoded with: a, b\.c"):
        BATCH[("z",)]
    assert BATCH.get(("z",)) is None


def test_a_slice_counts_on_in_the_input() -> None:
    part = BATCH.slice(1, 3)
    assert (part.rows, part.first, part.row(0)) == (2, 11, BATCH.row(1))
    assert part.identity is not None and part.identity.to_pylist() == ["q", "r"]


def test_rows_are_taken_by_number_or_by_mask() -> None:
    assert BATCH.take(np.array([2, 0])).row(0) == BATCH.row(2)
    assert BATCH.take(np.array([False, True, False])).row(0) == BATCH.row(1)


def test_columns_of_a_batch_have_one_length() -> None:
    with pytest.raises(SchemaError, match=r"differ in length: \[1, 2\]"):
        Columns.of("s", {"a": ("bigint", [1]), "b": ("bigint", [1, 2])})
