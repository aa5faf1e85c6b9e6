"""CSV, Parquet, Arrow, and the choice by suffix."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from headgate.errors import EventError, SchemaError, UsageError
from headgate.events import Decoded, Limits, read, read_arrow, read_csv, read_parquet
from headgate.schema import Schema

SCHEMA = Schema.of(
    "s", {"t": "string", "d": "double", "x": "bigint", "b": "boolean", "a.c": "string", "l": "array<bigint>"}, time="at"
)


def csv(text: bytes, **more: object) -> list[Decoded]:
    return list(read_csv(io.BytesIO(text), SCHEMA, **more))  # type: ignore[arg-type]  # the stubs are narrower than the library


def rows(batches: list[Decoded]) -> list[dict[str, object]]:
    return [
        {".".join(path): v for path, v in batch.columns.row(i).items() if v is not None}
        for batch in batches
        for i in range(batch.columns.rows)
    ]


def test_csv_is_typed_by_the_schema() -> None:
    text = b't,d,x,b,a.c,l,at,other\nIBM,1.5,3,TRUE,Rome,"[1,2]",1970-01-01T00:00:01Z,?\n'
    made = {"t": "IBM", "d": 1.5, "x": 3, "b": True, "a.c": "Rome", "l": [1, 2], "at": 1_000_000}
    assert rows(csv(text)) == [made]


def test_an_empty_csv_field_is_missing_and_a_quoted_one_is_empty_text() -> None:
    assert rows(csv(b't,d,a.c\n"",,\n')) == [{"t": ""}]


@pytest.mark.parametrize(
    ("text", "value"),
    [(b"5", 5), (b" +5 ", 5), (b"5.0", 5), (b"1e3", 1000), (b"-9223372036854775808", -(2**63)), (b"0005", 5)],
)
def test_a_whole_number_may_be_written_in_several_ways(text: bytes, value: int) -> None:
    assert rows(csv(b"x,t\n" + text + b",\n"))[0]["x"] == value


@pytest.mark.parametrize(
    ("field", "text", "reason"),
    [
        (b"x", b"0x1F", "x: the text '0x1F' is not a BIGINT"),
        (b"x", b"1_000", "x: the text '1_000' is not a BIGINT"),
        (b"x", b"5.5", "is not a BIGINT: it is no whole number"),
        (b"x", b"1e99999999", "it needs more than 64 bits"),
        (b"x", b"9223372036854775808", "it needs more than 64 bits"),
        (b"d", b"9007199254740993", "d: 9007199254740993 has no exact DOUBLE"),
        (b"d", b"1e400", "d: '1e400' is beyond the range of DOUBLE"),
        (b"d", b"one", "d: the text 'one' is not a DOUBLE"),
        (b"b", b"yes", "b: the text 'yes' is not a BOOLEAN: write true or false"),
        (b"at", b"soon", "at: 'soon' is not a TIMESTAMP"),
        (b"l", b"1;2", "l: the text '1;2' is not an ARRAY<BIGINT>: write it as a JSON array"),
        (b"t", b"\xff", "t: the text is not UTF-8"),
    ],
)
def test_a_csv_field_that_does_not_convert_costs_its_row(field: bytes, text: bytes, reason: str) -> None:
    batches = csv(field + b",other\n,1\n" + text + b",2\n,3\n", first=10)
    assert [r.event for r in batches[0].rejected] == [11] and reason in batches[0].rejected[0].reason
    assert batches[0].rows.tolist() == [10, 12]


def test_a_csv_row_of_another_width_is_rejected_in_its_place() -> None:
    batches = csv(b"x,t\n1,a\n2\n3,c\n4,d,e\n\n5,f\n6\n", limits=Limits(batch_rows=2))
    rejected = sorted((r.event, r.reason) for b in batches for r in b.rejected)
    assert [n for b in batches for n in b.rows.tolist()] == [0, 2, 4]
    assert rejected == [
        (1, "the row has 1 fields, the header has 2"),
        (3, "the row has 3 fields, the header has 2"),
        (5, "the row has 1 fields, the header has 2"),
    ]


def test_a_csv_quote_that_is_never_closed_is_reported() -> None:
    batches = csv(b'x,t\n1,a\n2,"b\n3,c\n')
    assert rows(batches) == [{"x": 1, "t": "a"}]
    assert "a quote is opened and never closed" in batches[-1].rejected[0].reason


@pytest.mark.parametrize("megabytes", [1.5, 3, 5, 20])
@pytest.mark.parametrize("field", [b"x", b'"', b"\n"], ids=["letters", "quotes", "lines"])
def test_a_csv_row_of_megabytes_is_read_as_any_other(field: bytes, megabytes: float) -> None:
    text = field * (int(megabytes * 2**20) // 2 * 2)
    shown = b'"' + text.replace(b'"', b'""') + b'"'
    batches = csv(b"x,t\n1,a\n2," + shown + b"\n3,c\n", limits=Limits(field_bytes=32 << 20))
    assert [r["x"] for r in rows(batches)] == [1, 2, 3]
    assert rows(batches)[1]["t"] == text.decode()


def test_a_csv_row_of_five_million_fields_is_rejected_alone() -> None:
    batches = csv(b"x,t\n1,a\n2" + b"," * (5 << 20) + b"\n3,c\n")
    assert [r["x"] for r in rows(batches)] == [1, 3]
    assert [(p.event, p.reason) for b in batches for p in b.rejected] == [
        (1, f"the row has {(5 << 20) + 1} fields, the header has 2")
    ]


@pytest.mark.parametrize("size", [3000, 5 << 20])
@pytest.mark.parametrize("quoted", [True, False])
def test_a_csv_row_beyond_the_limit_costs_itself(size: int, quoted: bool) -> None:
    field = b'"' + b"y\n" * (size // 2) + b'"' if quoted else b"y" * size
    batches = csv(b"x,t\n" + b"1,a\n" * 10 + b"2," + field + b"\n3,c\n", limits=Limits(event_bytes=1000))
    assert [r["x"] for r in rows(batches)] == [1] * 10 + [3]
    ((number, code, reason),) = [(p.event, p.code, p.reason) for b in batches for p in b.rejected]
    assert (number, code) == (10, "size")
    assert "is above the limit of 1,000" in reason


def test_a_csv_row_of_another_width_that_is_not_utf8_is_not_lost() -> None:
    (batch,) = csv(b"x,t\n1,a\n\xff\n3,\xef\xbf\xbd\n4,d\n")
    assert [(r.event, r.reason) for r in batch.rejected] == [
        (1, "the row has 1 fields, the header has 2"),
        (2, "t: the text is not UTF-8"),
    ]
    assert batch.rows.tolist() == [0, 3]


def test_a_replacement_character_in_a_clean_csv_file_is_text() -> None:
    assert rows(csv("t\n\ufffd\n".encode())) == [{"t": "\ufffd"}]


def test_csv_fields_may_hold_lines_and_delimiters_may_differ() -> None:
    assert rows(csv(b't;x\n"a\nb";1\n', delimiter=";")) == [{"t": "a\nb", "x": 1}]


def test_an_empty_csv_file_has_no_events() -> None:
    assert rows(csv(b"")) == rows(csv(b"x,t\n")) == []


def test_a_csv_header_with_a_name_twice_is_refused() -> None:
    with pytest.raises(SchemaError, match="the CSV header names a column twice: x, x"):
        csv(b"x,x\n1,2\n")


TABLE = pa.table({"x": [1, 2, 3], "a": [{"c": "p", "q": 1}, None, {"c": "r", "q": 2}], "other": ["?"] * 3})


def test_parquet_is_read_in_batches_with_the_needed_columns_only(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "e.parquet")
    batches = list(read_parquet(tmp_path / "e.parquet", SCHEMA, [("a", "c")], limits=Limits(batch_rows=2)))
    assert rows(batches) == [{"a.c": "p"}, {}, {"a.c": "r"}]
    assert [b.columns.first for b in batches] == [0, 2]


def test_parquet_without_a_needed_column_has_it_missing(tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "e.parquet")
    assert rows(list(read_parquet(tmp_path / "e.parquet", SCHEMA, [("d",)]))) == [{}, {}, {}]


def test_a_pruned_column_that_does_not_fit_is_still_noticed(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": [5]}), tmp_path / "e.parquet")
    (batch,) = read_parquet(tmp_path / "e.parquet", SCHEMA, [("a", "c")])
    assert batch.rejected[0].reason == "a.c: a is int64, not an object, so it has no c"


@pytest.mark.parametrize("reader", [read_parquet, read_arrow])
def test_a_file_of_another_format_is_an_error_that_names_it(tmp_path: Path, reader: object) -> None:
    (tmp_path / "e.bin").write_bytes(b"not that")
    with pytest.raises(EventError, match=r"e\.bin is not a sound (Parquet|Arrow) file"):
        list(reader(tmp_path / "e.bin", SCHEMA))  # type: ignore[operator]  # the stubs do not know this operand


@pytest.mark.parametrize("form", ["file", "stream"])
def test_arrow_files_and_streams_are_read(form: str) -> None:
    sink = io.BytesIO()
    make = pa.ipc.new_file if form == "file" else pa.ipc.new_stream
    with make(sink, TABLE.schema) as writer:
        writer.write_table(TABLE)
    sink.seek(0)
    batches = list(read_arrow(sink, SCHEMA, [("x",)], limits=Limits(batch_rows=2)))
    assert rows(batches) == [{"x": 1}, {"x": 2}, {"x": 3}]
    assert [b.rows.tolist() for b in batches] == [[0, 1], [2]]


def test_read_chooses_by_the_suffix(tmp_path: Path) -> None:
    flat = TABLE.select(["x"])
    pq.write_table(flat, tmp_path / "e.parquet")
    pyarrow.feather.write_feather(flat, tmp_path / "e.feather")
    (tmp_path / "e.CSV").write_text("x\n1\n2\n3\n")
    (tmp_path / "e.jsonl").write_text('{"x":1}\n{"x":2}\n{"x":3}')
    (tmp_path / "e.json").write_text('[{"x":1},{"x":2},{"x":3}]')
    (tmp_path / "e.xml").write_text("".join(f"<message><x>{i}</x><y/></message>" for i in (1, 2, 3)))
    for name in ("e.parquet", "e.feather", "e.CSV", "e.jsonl", "e.json", "e.xml"):
        assert rows(list(read(tmp_path / name, SCHEMA))) == [{"x": 1}, {"x": 2}, {"x": 3}], name


def test_read_takes_a_dash_for_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"x": 1}\n')))
    assert rows(list(read("-", SCHEMA))) == [{"x": 1}]


def test_read_names_the_suffixes_it_knows() -> None:
    with pytest.raises(UsageError, match=r"by its suffix '\.xls'\n  hint: supported are \.jsonl, \.ndjson"):
        read("events.xls", SCHEMA)


def test_a_field_that_nobody_declared_is_what_it_would_be_in_json() -> None:
    text = io.BytesIO(b"price,code,open\n5.5,007,true\n1e3,x,false\n")
    (part,) = read_csv(text, Schema.of("s", {}, declared=False), [("price",), ("code",), ("open",)])
    found = [[part.columns[name,].value(row) for name in ("price", "code", "open")] for row in range(2)]
    assert found == [[5.5, "007", True], [1000.0, "x", False]]
