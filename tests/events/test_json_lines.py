from __future__ import annotations

import io
from pathlib import Path

import orjson
import pytest

from headgate.errors import UsageError
from headgate.events import Decoded, Limits, read_json_lines
from headgate.schema import Schema

SCHEMA = Schema.of("s", {"x": "bigint", "d": "double", "t": "string", "a": "array<double>"})


def read(text: bytes, **more: object) -> list[Decoded]:
    return list(read_json_lines(io.BytesIO(text), SCHEMA, **more))  # type: ignore[arg-type]  # the stubs are narrower than the library


def xs(batches: list[Decoded]) -> list[object]:
    return [b.columns[("x",)].value(i) for b in batches for i in range(b.columns.rows)]


BAD = [
    (b'{"x": NaN}', "json", "line 2: NaN and Infinity are not JSON (at character 7): write null, or leave it out"),
    (b'{"d": -Infinity}', "json", "NaN and Infinity are not JSON"),
    (b'{"t": "\\ud800"}', "encoding", "line 2: a text holds half of a surrogate pair"),
    (b'{"t": "\xff"}', "encoding", "line 2: the event is not UTF-8 (at byte 8)"),
    (b"[" * 10_000, "depth", "line 2: the JSON is nested too deeply (more than 1024 levels)"),
    (b'{"x":' * 10_000 + b"1" + b"}" * 10_000, "depth", "nested too deeply"),
    (b"[1, 2]", "object", "line 2: an event must be an object, not [1, 2]"),
    (b"null", "object", "line 2: an event must be an object, not None"),
    (b'{"x": 1', "json", "line 2: not JSON: unexpected end of data"),
    (b'{"x": 1} {"x": 2}', "json", "line 2: not JSON: "),
    (b'{"x": 9223372036854775808}', "range", "line 2: x: 9223372036854775808 is not a BIGINT"),
    (b'{"x": -9223372036854775809}', "range", "x: -9223372036854775809 is not a BIGINT: it needs more than 64 bits"),
    (b'{"x": 5.5}', "type", "line 2: x: 5.5 is not a BIGINT: it is no whole number"),
    (b'{"x": "5"}', "type", "line 2: x: the text '5' is not a BIGINT"),
    (b'{"d": 9007199254740993}', "range", "d: 9007199254740993 has no exact DOUBLE: declare the attribute BIGINT"),
    (b'{"d": 18446744073709551617}', "range", "d: 18446744073709551617 has no exact DOUBLE"),
    (b'{"a": [1, 18446744073709551617]}', "range", "a: 18446744073709551617 has no exact DOUBLE"),
    (b'{"d": 1e400}', "range", "line 2: a number is beyond the range of DOUBLE"),
    (b'{"d": 1' + b"0" * 5000 + b"}", "range", ""),
    (b"\x00", "json", "line 2: not JSON"),
]


@pytest.mark.parametrize(("line", "code", "reason"), BAD, ids=lambda v: repr(v)[:30])
def test_a_bad_line_is_rejected_and_the_others_are_read(line: bytes, code: str, reason: str) -> None:
    batches = read(b'{"x": 1}\n' + line + b'\n{"x": 3}\n', first=100)
    assert xs(batches) == [1, 3]
    (rejected,) = batches[0].rejected
    assert (rejected.event, rejected.code, rejected.stream) == (101, code, "s") and reason in rejected.reason
    assert len(rejected.text) <= 500 and rejected.text[:5] == line[:5].decode("utf-8", "replace")


@pytest.mark.parametrize(
    ("line", "x"),
    [(b'{"x": 5.0}', 5), (b'{"x": 1, "x": 2}', 2), (b'{"x": -9223372036854775808}', -(2**63)), (b'{"x": -0}', 0)],
)
def test_a_good_line_is_read(line: bytes, x: int) -> None:
    assert xs(read(line)) == [x]


def test_a_large_number_written_as_a_float_is_a_double() -> None:
    assert read(b'{"d": 1e300}')[0].columns[("d",)].value(0) == 1e300
    assert read(b'{"d": 18446744073709551616}')[0].columns[("d",)].value(0) == 2.0**64


def test_blank_lines_are_skipped_but_counted_as_lines() -> None:
    batches = read(b'\n \r\n{"x": 1}\r\n\n{"x": "b"}')
    assert xs(batches) == [1]
    assert [(r.event, r.reason[:7]) for r in batches[0].rejected] == [(1, "line 5:")]


def test_a_byte_order_mark_is_ignored() -> None:
    assert xs(read(b'\xef\xbb\xbf{"x": 1}')) == [1]


@pytest.mark.parametrize("text", [b"", b"\n\n", b"[]"])
def test_nothing_gives_no_batches(text: bytes) -> None:
    assert read(text) == []


def test_a_file_that_is_one_array_is_a_list_of_events() -> None:
    batches = read(b'[\n {"x": 1},\n {"x": 2}, 7, {"d": 18446744073709551617}\n]\n', limits=Limits(batch_rows=2))
    assert xs(batches) == [1, 2]
    assert [r.reason for r in batches[1].rejected] == [
        "an event must be an object, not 7",
        "d: 18446744073709551617 has no exact DOUBLE: declare the attribute BIGINT",
    ]


def test_a_file_that_is_one_event_over_several_lines_is_read() -> None:
    assert xs(read(b'{\n  "x": 1\n}\n')) == [1]


def test_lines_that_only_begin_like_an_array_are_lines() -> None:
    batches = read(b'[log] begin\n{"x": 1}\n')
    assert xs(batches) == [1] and "line 1: not JSON" in batches[0].rejected[0].reason


def test_an_array_beyond_the_document_limit_is_taken_for_lines() -> None:
    batches = read(b'[{"x": 1}]\n{"x": 2}', limits=Limits(document_bytes=4))
    assert xs(batches) == [2] and batches[0].rejected[0].code == "object"


@pytest.mark.parametrize("chunk", [1, 7, 64, 1 << 20])
def test_a_line_beyond_the_limit_is_rejected_without_being_kept(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.events.sources.CHUNK", chunk)
    long = b'{"t": "' + b"y" * 300 + b'"}'
    batches = read(b'{"x": 1}\n' + long + b'\n{"x": 3}\n' + long, limits=Limits(event_bytes=100))
    rejected = [r for b in batches for r in b.rejected]
    assert xs(batches) == [1, 3]
    assert [(r.event, r.code) for r in rejected] == [(1, "size"), (3, "size")]
    assert rejected[0].reason == "line 2: an event of 309 bytes is above the limit of 100 (event_bytes)"


def test_batches_are_bounded_by_rows_and_by_bytes() -> None:
    text = b"\n".join(orjson.dumps({"x": i}) for i in range(10))
    by_rows = read(text, limits=Limits(batch_rows=4))
    assert [b.columns.rows for b in by_rows] == [4, 4, 2]
    assert [b.columns.first for b in by_rows] == [0, 4, 8]
    assert xs(by_rows) == list(range(10))
    assert [b.columns.rows for b in read_json_lines([b'{"x": 1}'] * 3, SCHEMA, limits=Limits(batch_bytes=9))] == [2, 1]


def test_an_iterable_has_one_event_an_item() -> None:
    batches = list(read_json_lines([b'{"x":\n 1}', b"", '{"t": "\ud800"}'], SCHEMA))
    assert xs(batches) == [1]
    assert [r.reason[:8] for r in batches[0].rejected] == ["event 2:", "event 3:"]


def test_a_path_is_opened_and_one_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "e.jsonl").write_bytes(b'{"x": 1}')
    assert xs(list(read_json_lines(tmp_path / "e.jsonl", SCHEMA))) == [1]
    with pytest.raises(UsageError, match=r"cannot read .*none\.jsonl: No such file or directory"):
        list(read_json_lines(tmp_path / "none.jsonl", SCHEMA))
