"""Arrow tables: every type that holds the same values gives the same columns."""

from __future__ import annotations

import decimal

import numpy as np
import pyarrow as pa
import pytest

from headgate.events import Decoded, Limits, decode
from headgate.schema import Schema

D = decimal.Decimal


def one(kind: str, array: pa.Array, **more: object) -> Decoded:  # type: ignore[type-arg]  # the stubs want a parameter that pyarrow does not take at run time
    return decode(pa.table({"x": array}), Schema.of("s", {"x": kind}), **more)  # type: ignore[arg-type]  # the stubs are narrower than the library


def values(decoded: Decoded) -> list[object]:
    return [decoded.columns[("x",)].value(i) for i in range(decoded.columns.rows)]


GOOD = [
    ("bigint", pa.array([1, None], pa.int8()), [1, None]),
    ("bigint", pa.array([1, None], pa.uint64()), [1, None]),
    ("bigint", pa.array([1.0, None]), [1, None]),
    ("bigint", pa.array([D("7"), None], pa.decimal128(10, 0)), [7, None]),
    ("double", pa.array([0.1, None], pa.float32()), [float(np.float32(0.1)), None]),
    ("double", pa.array([0.5], pa.float16()), [0.5]),
    ("double", pa.array([2**60]), [2.0**60]),
    ("double", pa.array([D("0.5")], pa.decimal128(3, 1)), [0.5]),
    ("string", pa.array(["a", None], pa.large_string()), ["a", None]),
    ("string", pa.array(["a", None], pa.string_view()), ["a", None]),
    ("string", pa.array(["a", None, "a"]).dictionary_encode(), ["a", None, "a"]),
    ("timestamp", pa.array([1, None], pa.timestamp("s")), [1_000_000, None]),
    ("timestamp", pa.array([-1, 1999], pa.timestamp("ns", "UTC")), [-1, 1]),
    ("timestamp", pa.array([1], pa.timestamp("us", "Europe/Vienna")), [1]),
    ("timestamp", pa.array([1], pa.date32()), [86_400_000_000]),
    ("timestamp", pa.array([86_400_000], pa.date64()), [86_400_000_000]),
    ("timestamp", pa.array([5], pa.int32()), [5]),
    ("timestamp", pa.array(["1970-01-01T00:00:01Z", "1970-01-01", None]), [1_000_000, 0, None]),
    ("binary", pa.array([b"a", None], pa.large_binary()), [b"a", None]),
    ("binary", pa.array([b"ab"], pa.binary(2)), [b"ab"]),
    ("array<bigint>", pa.array([[1, None], None, []], pa.large_list(pa.int16())), [[1, None], None, []]),
    ("array<bigint>", pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), [[1, 2], None]),
    ("array<string>", pa.array([["a"], None, ["b", "a"]]), [["a"], None, ["b", "a"]]),
    ("bigint", pa.nulls(2), [None, None]),
    ("bigint", pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), pa.array([5])), [5, 5]),
]


@pytest.mark.parametrize(("kind", "array", "expected"), GOOD, ids=lambda v: str(getattr(v, "type", ""))[:40])
def test_an_arrow_type_becomes_ours(kind: str, array: pa.Array, expected: list[object]) -> None:  # type: ignore[type-arg]  # the stubs want a parameter that pyarrow does not take at run time
    decoded = one(kind, array)
    assert decoded.rejected == () and values(decoded) == expected
    # A slice has an offset into the same buffers.
    assert values(one(kind, array.slice(1))) == expected[1:]


BAD = [
    ("bigint", pa.array([1.5, 2.0]), "1.5 is not a BIGINT: it is no whole number"),
    ("bigint", pa.array([2**63, 2], pa.uint64()), "9223372036854775808 is not a BIGINT: it needs more than 64 bits"),
    ("bigint", pa.array(["5", None]), "the text '5' is not a BIGINT"),
    ("bigint", pa.array([True, None]), "the boolean True is not a BIGINT"),
    ("double", pa.array([2**53 + 1, 2]), "9007199254740993 has no exact DOUBLE: declare the attribute BIGINT"),
    ("double", pa.array([D("0.1"), D("0.5")], pa.decimal128(3, 1)), "Decimal('0.1') has no exact DOUBLE"),
    ("string", pa.array([5, None]), "5 is not a STRING"),
    ("timestamp", pa.array([2**62, 0], pa.timestamp("s")), "a value of timestamp[s] is beyond 64 bits of microseconds"),
    ("timestamp", pa.array(["soon", "1970-01-01"]), "'soon' is not a TIMESTAMP"),
    ("array<bigint>", pa.array([[1.5], [1.0]]), "1.5 is not a BIGINT"),
    ("array<bigint>", pa.array([5, None]), "5 is not an ARRAY<BIGINT>"),
    ("bigint", pa.array([5, None], pa.duration("s")), "is not a BIGINT"),
]


@pytest.mark.parametrize(("kind", "array", "reason"), BAD, ids=lambda v: str(getattr(v, "type", ""))[:40])
def test_a_value_that_does_not_fit_costs_its_row_only(kind: str, array: pa.Array, reason: str) -> None:  # type: ignore[type-arg]  # the stubs want a parameter that pyarrow does not take at run time
    decoded = one(kind, array)
    assert [r.event for r in decoded.rejected] == [0] and reason in decoded.rejected[0].reason
    assert decoded.rows.tolist() == [1]


def test_text_that_is_not_utf8_is_rejected() -> None:
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32).tobytes())
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xffa")])
    decoded = one("string", broken)
    assert [r.reason for r in decoded.rejected] == ["x: the text is not UTF-8"]
    assert values(decoded) == ["a"]


def test_a_long_word_of_a_dictionary_rejects_the_rows_that_use_it() -> None:
    decoded = one("string", pa.array(["a", "xxxx", None, "xxxx"]).dictionary_encode(), limits=Limits(field_bytes=3))
    assert [r.event for r in decoded.rejected] == [1, 3] and values(decoded) == ["a", None]


def test_a_dictionary_with_a_word_twice_gives_each_word_once() -> None:
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", "a"]))
    assert one("string", twice).columns[("x",)].dictionary()[0].tolist() == [0, 0]


def test_a_column_that_the_table_lacks_is_missing() -> None:
    decoded = decode(pa.table({"y": [1]}), Schema.of("s", {"x": "bigint", "z.w": "string"}))
    assert decoded.columns.row(0) == {("x",): None, ("z", "w"): None}


def test_a_struct_is_a_path_and_a_null_struct_hides_its_fields() -> None:
    struct = pa.StructArray.from_arrays([pa.array([1, 2])], ["b"], mask=pa.array([False, True]))
    decoded = decode(pa.table({"a": struct}), Schema.of("s", {"a.b": "bigint", "a.c": "bigint"}))
    assert [decoded.columns.row(i)[("a", "b")] for i in range(2)] == [1, None]
    assert decoded.columns[("a", "c")].defined.tolist() == [False, False]


def test_the_last_value_of_a_key_in_a_map_counts() -> None:
    table = pa.table({"m": pa.array([[("k", 1), ("k", 2)], None, []], pa.map_(pa.string(), pa.int64()))})
    decoded = decode(table, Schema.from_arrow("s", table.schema), needs=[("m", "k")])
    assert [decoded.columns.row(i)[("m", "k")] for i in range(3)] == [2, None, None]


def test_a_path_through_a_number_is_rejected() -> None:
    decoded = decode(pa.table({"a": pa.array([1, None])}), Schema.of("s", {"a.b": "bigint"}))
    assert [r.reason for r in decoded.rejected] == ["a.b: a is int64, not an object, so it has no b"]


def test_chunks_of_a_table_are_one_column() -> None:
    table = pa.concat_tables(
        [pa.table({"x": pa.array(["a"]).dictionary_encode()}), pa.table({"x": pa.array(["b"]).dictionary_encode()})]
    )
    decoded = decode(table, Schema.of("s", {"x": "string"}))
    assert values(decoded) == ["a", "b"]
    assert decoded.columns[("x",)].dictionary()[0].tolist() == [0, 1]


def test_a_table_without_rows_gives_a_batch_without_rows() -> None:
    assert decode(pa.table({"x": pa.array([], pa.int64())}), Schema.of("s", {"x": "bigint"})).columns.rows == 0
