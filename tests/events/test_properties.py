"""One meaning, whatever the form: the fast paths agree with the rules of `values`, and nothing is ever lost."""

from __future__ import annotations

import datetime as dt
import io
import math
import string
from decimal import Decimal
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headgate.columns import Column
from headgate.events import Decoded, Limits, decode, from_cloudevents, from_xml, read_csv, read_json_lines, read_xml
from headgate.events.objects import object_column
from headgate.events.outcome import Misfit
from headgate.events.texts import fit_text, text_column
from headgate.events.values import fit
from headgate.events.vectors import by_value, convert
from headgate.schema import Kind, Schema, Type

LIMITS = Limits(field_bytes=12)
TYPES = [Type(kind, array) for kind in Kind for array in (False, True)]
EDGES = [2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 0, -0.0, 2.0**63, -(2.0**63), 5.5, 1e300]
INSTANTS = st.one_of(
    st.datetimes().map(dt.datetime.isoformat),
    st.datetimes(timezones=st.sampled_from([dt.UTC, dt.timezone(dt.timedelta(hours=-3, minutes=-30))])).map(str),
    st.dates().map(str),
    st.text("0123456789-+:.TZ ,", max_size=30),
    st.sampled_from(["0000-01-01", "0001-01-01", "0001-01-01T00:00+23:59", "9999-12-31T23:59:59.999999-23:59"]),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from(EDGES),
    st.floats(),
    st.text(max_size=6),
    st.text(st.characters(min_codepoint=0xD700, max_codepoint=0xE000), max_size=3),
    st.binary(max_size=14),
    INSTANTS,
    st.datetimes(),
    st.datetimes(timezones=st.just(dt.UTC)),
    st.dates(),
    st.decimals(),
    st.sampled_from([np.int8(1), np.float32(0.1), np.bool_(True), np.datetime64("2020-01-01"), Decimal("1e400")]),
)
MESSY = SCALARS | st.lists(SCALARS, max_size=3) | st.tuples(SCALARS) | st.dictionaries(st.text(max_size=2), SCALARS)


def values(column: Column) -> list[Any]:
    return [_plain(column.value(i)) for i in range(len(column))]


def _plain(value: Any) -> Any:
    """NaN equals itself here, and -0.0 is not 0.0."""
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return ("float", "nan" if math.isnan(value) else value, math.copysign(1, value) if value == 0 else 0)
    return (type(value).__name__, value)


def agree(fast: tuple[Column, Any], slow: tuple[Column, Any]) -> None:
    assert values(fast[0]) == values(slow[0])
    n = len(fast[0])
    masks = [np.zeros(n, bool) if bad is None else bad for _, bad in (fast, slow)]
    assert masks[0].tolist() == masks[1].tolist()
    if isinstance(fast[0].values, np.ndarray) and fast[0].offsets is None:
        assert not fast[0].values[~fast[0].defined].any()


# Columns of one Python type take the fast path, and so must occur; columns of anything must agree as well.
COLUMNS = st.one_of(
    st.lists(MESSY, max_size=6),
    st.lists(st.none() | st.integers() | st.sampled_from(EDGES[:7]), max_size=6),
    st.lists(st.none() | st.floats() | st.sampled_from(EDGES[7:]).map(float), max_size=6),
    st.lists(st.none() | st.text(max_size=14), max_size=6),
    st.lists(st.none() | INSTANTS, max_size=6),
    st.lists(st.none() | st.datetimes(), max_size=6),
    st.lists(st.none() | st.binary(max_size=14), max_size=6),
    st.lists(st.none() | st.lists(st.integers(), max_size=3) | st.tuples(), max_size=6),
)


@given(st.sampled_from(TYPES), COLUMNS)
@settings(max_examples=1500, deadline=None)
def test_a_column_of_objects_is_what_its_values_are_one_by_one(kind: Type, column: list[Any]) -> None:
    agree(object_column(column, kind, LIMITS), by_value(column, kind, lambda v: fit(v, kind, LIMITS)))


ARROW: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (pa.bool_(), st.booleans()),
    (pa.int8(), st.integers(-128, 127)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**53, 2**53 + 1, -(2**63)])),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats() | st.integers(-10, 10).map(float) | st.just(2.0**63)),
    (pa.decimal128(20, 2), st.decimals(-1000, 1000, places=2)),
    (pa.string(), st.text(max_size=14) | INSTANTS),
    (pa.large_string(), st.text(max_size=14)),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b", "a word too long"])),
    (pa.binary(), st.binary(max_size=14)),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("ms", "UTC"), st.datetimes(timezones=st.just(dt.UTC)).map(lambda t: t.replace(microsecond=5000))),
    (pa.date32(), st.dates()),
    (pa.list_(pa.int64()), st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=3)),
    (pa.list_(pa.string()), st.lists(st.none() | st.text(max_size=14), max_size=3)),
]


@given(st.sampled_from(TYPES), st.sampled_from(ARROW), st.data())
@settings(max_examples=1500, deadline=None)
def test_an_arrow_array_is_what_its_values_are_one_by_one(
    kind: Type, form: tuple[Any, st.SearchStrategy[Any]], data: st.DataObject
) -> None:
    array = pa.array(data.draw(st.lists(st.none() | form[1], max_size=6)), form[0])
    array = array.slice(data.draw(st.integers(0, len(array))))
    agree(convert(array, kind, LIMITS), by_value(array.to_pylist(), kind, lambda v: fit(v, kind, LIMITS)))


NUMERIC = st.text("0123456789+-.eE ", max_size=6) | st.integers().map(str) | st.floats().map(str)
WORDS = st.sampled_from(["", " ", "true", "FALSE", "1", "nan", "-Infinity", "0x1F", "1_0", "1e400", "9" * 5000, "-0"])
TEXTS = st.lists(st.none() | NUMERIC, max_size=6) | st.lists(st.none() | NUMERIC | INSTANTS | WORDS, max_size=6)


@given(st.sampled_from(TYPES), TEXTS | st.lists(st.integers().map(str), max_size=6) | st.lists(INSTANTS, max_size=6))
@settings(max_examples=1500, deadline=None)
def test_a_column_of_text_is_what_its_texts_are_one_by_one(kind: Type, texts: list[Any]) -> None:
    array = pa.array(texts, pa.string())
    agree(text_column(array, kind, LIMITS), by_value(texts, kind, lambda v: fit_text(v, kind, LIMITS)))


@given(st.sampled_from(TYPES), MESSY)
@settings(max_examples=500, deadline=None)
def test_a_value_fits_itself_once_it_is_decoded(kind: Type, value: Any) -> None:
    try:
        made = fit(value, kind, LIMITS)
    except Misfit:
        return
    assert _plain(fit(made, kind, LIMITS)) == _plain(made)


SCHEMA = Schema.of(
    "s",
    {
        "b": "boolean",
        "i": "bigint",
        "d": "double",
        "t": "string",
        "n.i": "bigint",
        "n.m.t": "string",
        "ai": "array<bigint>",
        "at": "array<string>",
    },
    time="when",
)
INT = st.none() | st.integers(-(2**63), 2**63 - 1)
TEXT = st.none() | st.text(max_size=5)
SOUND = st.fixed_dictionaries(
    {},
    optional={
        "b": st.none() | st.booleans(),
        "i": INT,
        "d": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "t": TEXT,
        "n": st.none()
        | st.fixed_dictionaries({"i": INT}, optional={"m": st.none() | st.fixed_dictionaries({"t": TEXT})}),
        "ai": st.none() | st.lists(INT, max_size=3),
        "at": st.none() | st.lists(TEXT, max_size=3),
        "when": INT,
    },
)
_TREE: list[tuple[str, Any]] = [
    ("b", pa.bool_()),
    ("i", pa.int64()),
    ("d", pa.float64()),
    ("t", pa.string()),
    ("n", pa.struct([("i", pa.int64()), ("m", pa.struct([("t", pa.string())]))])),
    ("ai", pa.list_(pa.int64())),
    ("at", pa.list_(pa.string())),
    ("when", pa.timestamp("us")),
]
TREE = pa.schema(_TREE)


def table_of(*batches: Decoded) -> list[dict[Any, Any]]:
    found = [{p: _plain(v) for p, v in b.columns.row(i).items()} for b in batches for i in range(b.columns.rows)]
    assert not any(b.rejected for b in batches)
    return found


@given(st.lists(SOUND, max_size=6))
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_dicts_arrow_and_json_give_the_same_columns(events: list[dict[str, Any]]) -> None:
    dicts = table_of(decode(events, SCHEMA))
    assert table_of(decode(pa.Table.from_pylist(events, TREE), SCHEMA)) == dicts
    lines = b"\n".join(map(orjson.dumps, events))
    assert table_of(*read_json_lines(io.BytesIO(lines), SCHEMA, limits=Limits(batch_rows=4))) == dicts
    assert table_of(*read_json_lines(io.BytesIO(orjson.dumps(events)), SCHEMA)) == dicts
    assert len(dicts) == len(events)


def adds_up(rows: int, *batches: Decoded) -> None:
    numbers = [n for b in batches for n in [*b.rows.tolist(), *(r.event for r in b.rejected)]]
    assert sorted(numbers) == list(range(rows))
    for batch in batches:
        assert batch.columns.rows == len(batch.rows)
        assert all(len(column) == batch.columns.rows for column in batch.columns.columns.values())
        assert all(r.reason and r.code and len(r.text) <= 500 for r in batch.rejected)


JSONISH = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["b", "i", "d", "t", "n", "m", "ai", "at", "when", "?"]), inner, max_size=6)
    ),
    max_leaves=12,
)


@given(st.lists(JSONISH, max_size=5))
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_objects_are_decoded_or_rejected(events: list[Any]) -> None:
    adds_up(len(events), decode(events, SCHEMA))
    adds_up(len(events), from_cloudevents(events, SCHEMA))


PIECES = [
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b'"i"',
    b'"n"',
    b"1",
    b"NaN",
    b'"\\ud800"',
    b"\xff",
    b" ",
    b"1e999",
    b"\r",
]
LINE = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join),
    st.binary(max_size=12).map(lambda b: b.replace(b"\n", b"")),
    SOUND.map(orjson.dumps),
    st.sampled_from([b'{"i": 99999999999999999999}', b'{"n": [[{}]]}', b"{" * 3000, b'{"t": "%s"}' % (b"x" * 3000)]),
)


@given(st.lists(LINE, max_size=6), st.sampled_from([1, 16, 1 << 20]))
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_lines_are_decoded_or_rejected(lines: list[bytes], chunk: int) -> None:
    lines = [b'{"i": 1}', *lines]  # so that the file is one of lines
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headgate.events.sources.CHUNK", chunk)
        source = io.BytesIO(b"\n".join(lines))
        batches = list(read_json_lines(source, SCHEMA, limits=Limits(event_bytes=2000, batch_rows=3)))
    adds_up(sum(bool(line.strip()) for line in lines), *batches)
    adds_up(len(lines), *read_json_lines(lines, SCHEMA))


@given(st.binary(max_size=60) | st.text(string.printable, max_size=60).map(str.encode))
@settings(max_examples=500, deadline=None)
def test_any_bytes_can_be_read_as_json_csv_or_xml(text: bytes) -> None:
    for batches in (
        list(read_json_lines(io.BytesIO(text), SCHEMA)),
        list(read_csv(io.BytesIO(b"i,t\n" + text), SCHEMA, limits=Limits(batch_rows=2))),
        list(read_xml(io.BytesIO(text), SCHEMA)),
    ):
        numbers = [n for b in batches for n in [*b.rows.tolist(), *(r.event for r in b.rejected)]]
        assert sorted(numbers) == list(range(len(numbers)))


FIELDS = st.lists(st.sampled_from([b"", b"1", b"x", b"\xff", b"\xc3\xa9", b"5.5"]), min_size=1, max_size=4)


@given(st.lists(FIELDS, max_size=8), st.integers(1, 4))
@settings(max_examples=300, deadline=None)
def test_any_csv_rows_are_decoded_or_rejected(table: list[list[bytes]], batch: int) -> None:
    table = [row for row in table if row != [b""]]  # a blank line is no row
    text = b"i,t\n" + b"".join(b",".join(row) + b"\n" for row in table)
    adds_up(len(table), *read_csv(io.BytesIO(text), SCHEMA, limits=Limits(batch_rows=batch)))


XMLISH = st.lists(
    st.sampled_from(["<m>", "</m>", "<i>", "</i>", "<n/>", "5", "x", "&amp;", "&b;", "<!DOCTYPE m>", "<!--", "-->"]),
    max_size=8,
).map("".join)


@given(st.lists(XMLISH | st.text(max_size=8), max_size=4))
@settings(max_examples=500, deadline=None)
def test_any_messages_are_decoded_or_rejected(messages: list[str]) -> None:
    adds_up(len(messages), from_xml(messages, SCHEMA))
