"""Dicts: which values fit which type, and what is said of those that do not."""

from __future__ import annotations

import decimal
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from headgate.errors import SchemaError, UsageError
from headgate.events import Decoded, Limits, decode
from headgate.schema import Instant, Schema

DAY = 86_400_000_000
NAN = float("nan")


def one(kind: str | None, value: object, **more: object) -> Decoded:
    return decode([{"x": value}], Schema.of("s", {"x": kind}), **more)  # type: ignore[arg-type]  # the stubs are narrower than the library


GOOD = [
    ("bigint", 5, 5),
    ("bigint", 5.0, 5),
    ("bigint", -(2**63), -(2**63)),
    ("bigint", 2.0**60, 2**60),
    ("bigint", decimal.Decimal("5.00"), 5),
    ("bigint", np.int8(3), 3),
    ("double", 5, 5.0),
    ("double", 2**60, 2.0**60),
    ("double", float("inf"), float("inf")),
    ("double", decimal.Decimal("0.5"), 0.5),
    ("double", np.float32(0.1), float(np.float32(0.1))),
    ("string", "", ""),
    ("boolean", False, False),
    ("timestamp", "1970-01-02", DAY),
    ("timestamp", "1970-01-01T00:00:01.0000019Z", 1_000_001),
    ("timestamp", "1970-01-01 02:00+02", 0),
    ("timestamp", "1970-01-01t00:00:00z", 0),
    ("timestamp", 7, 7),
    ("timestamp", date(1970, 1, 2), DAY),
    ("timestamp", datetime(1970, 1, 2), DAY),  # noqa: DTZ001 - a time without a zone is the case
    ("timestamp", datetime(1970, 1, 1, 2, tzinfo=timezone(timedelta(hours=2))), 0),
    ("timestamp", pd.Timestamp("1970-01-01T00:00:00.000001999"), 1),
    ("timestamp", np.datetime64("1969-12-31T23:59:59.999999999"), -1),
    ("timestamp", "0001-01-01T00:00:00+01:00", -62135600400000000),
    ("binary", b"\x00\xff", b"\x00\xff"),
    ("binary", "AP8=", b"\x00\xff"),
    ("graph", "_:H a :X .", "_:H a :X ."),
    ("array<bigint>", [1, None, 2.0], [1, None, 2]),
    ("array<bigint>", (), []),
    ("array<double>", np.array([1.5, 2.0]), [1.5, 2.0]),
    (None, {"any": "thing"}, {"any": "thing"}),
    ("bigint", None, None),
    ("double", pd.NA, None),
    ("timestamp", pd.NaT, None),
    (None, pd.NaT, None),
]


@pytest.mark.parametrize(("kind", "value", "expected"), GOOD, ids=lambda v: str(v)[:30])
def test_a_value_that_fits_is_decoded(kind: str | None, value: object, expected: object) -> None:
    decoded = one(kind, value)
    assert decoded.rejected == ()
    found = decoded.columns.row(0)[("x",)]
    wanted = Instant(expected) if kind == "timestamp" and isinstance(expected, int) else expected
    assert found == wanted and type(found) is type(wanted)


BAD = [
    ("bigint", 5.5, "type", "5.5 is not a BIGINT: it is no whole number"),
    ("bigint", NAN, "type", "nan is not a BIGINT: it is no whole number"),
    ("bigint", True, "type", "the boolean True is not a BIGINT"),
    ("bigint", "5", "type", "the text '5' is not a BIGINT"),
    ("bigint", 2**63, "range", "9223372036854775808 is not a BIGINT: it needs more than 64 bits"),
    ("bigint", 2.0**63, "range", "9223372036854775808 is not a BIGINT: it needs more than 64 bits"),
    ("bigint", 10**9999, "range", "<an integer of 33216 bits> is not a BIGINT"),
    ("bigint", decimal.Decimal("1e999999"), "range", "it needs more than 64 bits"),
    ("bigint", decimal.Decimal("1e-999999"), "type", "it is no whole number"),
    ("double", 2**53 + 1, "range", "9007199254740993 has no exact DOUBLE: declare the attribute BIGINT"),
    ("double", 10**400, "range", "has no exact DOUBLE"),
    ("double", decimal.Decimal("0.1"), "range", "Decimal('0.1') has no exact DOUBLE"),
    ("double", True, "type", "the boolean True is not a DOUBLE"),
    ("double", "1.5", "type", "the text '1.5' is not a DOUBLE"),
    ("string", 5, "type", "5 is not a STRING"),
    ("string", b"x", "type", "the bytes b'x' is not a STRING"),
    ("string", "a\ud800", "encoding", "the text 'a\\ud800' holds half of a surrogate pair"),
    ("boolean", 1, "type", "1 is not a BOOLEAN"),
    ("timestamp", "2016-12-31T23:59:60Z", "type", "leap seconds are not supported"),
    ("timestamp", "2023-02-29", "type", "day is out of range for month"),
    ("timestamp", "tomorrow", "type", "'tomorrow' is not a TIMESTAMP: write it like 2024-05-17T08:30:00Z"),
    ("timestamp", "0000-01-01", "type", "year 0 is out of range"),
    ("timestamp", "2020-01-01T00:00:00+24:00", "type", "its zone offset is out of range"),
    ("timestamp", 2**63, "range", "beyond 64 bits of microseconds"),
    ("timestamp", np.datetime64(2**62, "s"), "range", "beyond 64 bits of microseconds"),
    ("timestamp", 1.0, "type", "1.0 is not a TIMESTAMP"),
    ("binary", "not base64", "type", "as text it must be base64"),
    ("binary", "é", "type", "as text it must be base64"),
    ("graph", 5, "type", "5 is not a GRAPH: it must be RDF text"),
    ("array<string>", "ab", "type", "the text 'ab' is not an ARRAY<STRING>"),
    ("array<string>", {"a"}, "type", "is not an ARRAY<STRING>"),
    ("array<bigint>", [1, True], "type", "the boolean True is not a BIGINT"),
    ("array<bigint>", [[1]], "type", "the array [1] is not a BIGINT"),
]


@pytest.mark.parametrize(("kind", "value", "code", "reason"), BAD, ids=lambda v: str(v)[:30] if type(v) is str else "")
def test_a_value_that_does_not_fit_is_rejected_with_its_reason(
    kind: str, value: object, code: str, reason: str
) -> None:
    decoded = one(kind, value, first=40)
    assert decoded.columns.rows == 0 and len(decoded.rejected) == 1
    rejected = decoded.rejected[0]
    assert reason in rejected.reason and rejected.reason.startswith("x: ")
    assert (rejected.code, rejected.event, rejected.stream) == (code, 40, "s")
    assert len(rejected.text) <= 500


def test_a_bad_row_leaves_the_others_where_they_were() -> None:
    decoded = decode([{"x": 1}, {"x": "no"}, {"x": 3}], Schema.of("s", {"x": "bigint"}), first=7)
    assert decoded.rows.tolist() == [7, 9]
    assert [decoded.columns[("x",)].value(i) for i in range(2)] == [1, 3]


NESTED = Schema.of("s", {"a.b.c": "bigint"})


@pytest.mark.parametrize("event", [{}, {"a": None}, {"a": {}}, {"a": {"b": None}}, {"a": {"b": {"c": None}}}])
def test_a_path_through_nothing_is_missing(event: dict[str, object]) -> None:
    assert decode([event], NESTED).columns.row(0) == {("a", "b", "c"): None}


def test_a_path_through_a_value_that_is_no_object_is_rejected() -> None:
    decoded = decode([{"a": 5}, {"a": {"b": [1]}}, {"a": {"b": {"c": 1}}}], NESTED)
    assert [r.reason for r in decoded.rejected] == [
        "a.b.c: a is 5, not an object, so it has no b.c",
        "a.b.c: a.b is [1], not an object, so it has no c",
    ]
    assert decoded.rows.tolist() == [2]


def test_of_a_typed_table_only_needed_paths_are_decoded_plus_not_null_and_time() -> None:
    schema = Schema.of("s", {"a": "bigint", "b": "bigint", "c": "bigint"}, time="at", not_null=["b"])
    decoded = decode(pa.table({"a": [1], "b": [1], "c": [2]}), schema, needs=[("c",)])
    assert set(decoded.columns.columns) == {("b",), ("c",), ("at",)}
    assert decoded.rejected == ()


def test_a_declared_attribute_must_fit_whether_or_not_it_is_needed() -> None:
    schema = Schema.of("s", {"a": "bigint", "c": "bigint"})
    assert [r.event for r in decode([{"a": "bad", "c": 2}, {"c": 3}], schema, needs=[("c",)]).rejected] == [0]
    opened = Schema.of("s", {"a": "bigint", "c": "bigint"}, declared=False)
    assert decode([{"a": "bad", "c": 2}], opened, needs=[("c",)]).rejected == ()


def test_a_not_null_attribute_that_is_missing_rejects_the_event() -> None:
    decoded = decode([{"b": 1}, {}], Schema.of("s", {"b": "bigint"}, not_null=["b"]), needs=[])
    assert [(r.event, r.code, r.reason) for r in decoded.rejected] == [(1, "not_null", "b: it is NOT NULL but missing")]


def test_a_path_that_the_schema_lacks_is_asked_for_definedness_only() -> None:
    decoded = decode([{"z": {"any": 1}}, {}], Schema.of("s", {}, declared=False), needs=[("z",)])
    assert decoded.columns[("z",)].defined.tolist() == [True, False]


def test_an_event_that_is_no_object_is_rejected() -> None:
    decoded = decode([{"x": 1}, 5, None], Schema.of("s", {"x": "bigint"}))
    assert [r.reason for r in decoded.rejected] == [
        "an event must be an object, not 5",
        "an event must be an object, not None",
    ]


def test_a_field_beyond_the_limit_is_rejected_not_cut() -> None:
    for value in ("x" * 11, "é" * 6):
        decoded = one("string", value, limits=Limits(field_bytes=10))
        assert decoded.rejected[0].code == "size"
        assert "above the limit of 10 (field_bytes)" in decoded.rejected[0].reason


def test_an_event_whose_repr_raises_can_still_be_rejected() -> None:
    class Rude:
        def __repr__(self) -> str:
            raise RuntimeError

    assert "is not a BIGINT" in one("bigint", Rude()).rejected[0].reason


def test_one_dict_is_not_a_list_of_events() -> None:
    with pytest.raises(UsageError, match="events cannot be a dict"):
        decode({"x": 1}, Schema.of("s", {"x": "bigint"}))


def test_an_iterator_of_dicts_is_read() -> None:
    assert decode(iter([{"x": 1}]), Schema.of("s", {"x": "bigint"})).columns.rows == 1


PANDAS = Schema.of("s", {"f": "double", "i": "bigint", "t": "timestamp", "o": "string", "tags": "array<bigint>"})


def test_nan_in_a_pandas_frame_is_missing() -> None:
    frame = pd.DataFrame(
        {
            "f": [1.5, NAN],
            "i": [1.0, NAN],
            "t": [pd.Timestamp("1970-01-02", tz=UTC), pd.NaT],
            "o": ["a", NAN],
            "tags": [[1], None],
        }
    )
    decoded = decode(frame, PANDAS)
    assert decoded.columns.row(0) == dict(zip(decoded.columns.columns, (1.5, 1, DAY, "a", [1]), strict=True))
    assert set(decoded.columns.row(1).values()) == {None}


def test_a_pandas_column_of_mixed_objects_costs_only_its_bad_rows() -> None:
    decoded = decode(pd.DataFrame({"o": ["a", 5, None]}), PANDAS)
    assert [r.reason for r in decoded.rejected] == ["o: 5 is not a STRING"]
    assert decoded.rows.tolist() == [0, 2]


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(SchemaError, match="2 columns named 'o'"):
        decode(pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["o", "o"]), PANDAS)
