"""Files of strangers: each bad part is a problem with its place, the rest is read, and nothing hangs or ends the process."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headgate.errors import EventError, UsageError
from headgate.events import Decoded, read_arrow, read_json_lines, read_parquet, read_xml
from headgate.schema import Schema

SCHEMA = Schema.of("s", {"x": "bigint", "t": "string", "l": "array<bigint>"})
SECONDS = 20.0
"""Generous: these took for ever."""


def xs(batches: list[Decoded]) -> list[Any]:
    return [b.columns["x",].value(i) for b in batches for i in range(b.columns.rows)]


@pytest.mark.parametrize(
    "text",
    [
        b"<!-- -->" * 40,
        b"<?a?>" * 40,
        b"<a>" + b"<!-- -->" * 40,
        b"<!-- -->" * 40 + b"<message><x>1</x></message>",
        b"<a" * 500_000,
        b"<" + b"a" * 1_000_000,
        b"<a " + b"b" * 1_000_000,
        b"<!--" * 200_000,
        b"<a>" * 200_000,
        b"<m><x>1</x></m>" + b"</m" * 200_000,
        b"<m>" + b"<x>" * 100_000 + b"</x>" * 100_000 + b"</m>",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_no_xml_holds_the_reader_up(text: bytes) -> None:
    start = time.monotonic()
    list(read_xml(io.BytesIO(text), SCHEMA))
    assert time.monotonic() - start < SECONDS


def test_comments_before_xml_messages_are_skipped() -> None:
    text = b"<?xml version='1.0'?> <!-- a --> <!-- b --> <m><x>1</x></m> <!-- > --> <m><x>2</x></m>"
    assert xs(list(read_xml(io.BytesIO(text), SCHEMA))) == [1, 2]


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_a_line_of_json_ends_at_a_newline_only(sign: str) -> None:
    shown = sign if sign > "\x1f" else f"\\u{ord(sign):04x}"
    text = f'{{"x": 1, "t": "a{shown}b"}}\n{{"x": 2}}\n'
    assert xs(list(read_json_lines(io.BytesIO(text.encode()), SCHEMA))) == [1, 2]


TABLE = pa.table({"x": range(60), "t": [f"t{n}" for n in range(60)], "l": [[n, n] for n in range(60)]})


def ipc(*, stream: bool = False) -> bytearray:
    made = io.BytesIO()
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(made, TABLE.schema) as writer:
        writer.write_table(TABLE, 20)
    return bytearray(made.getvalue())


def parquet() -> bytearray:
    made = io.BytesIO()
    pq.write_table(TABLE, made, row_group_size=20, compression="none", use_dictionary=False)
    return bytearray(made.getvalue())


def spoil(data: bytearray, what: bytes) -> bytes:
    """The file with other bytes where these stand first."""
    at = data.index(what)
    data[at : at + len(what)] = b"\xff" * len(what)
    return bytes(data)


OFFSETS = b"".join(n.to_bytes(4, "little") for n in range(4, 20, 2))
"""Of the lists; the same in each batch, so that the first one is spoilt."""


def test_a_record_batch_that_is_not_sound_is_a_problem_and_the_others_are_read() -> None:
    batches = list(read_arrow(io.BytesIO(spoil(ipc(), OFFSETS)), SCHEMA))
    assert xs(batches) == list(range(20, 60))
    ((problem,),) = [b.rejected for b in batches if b.rejected]
    assert problem.event == 0
    assert problem.reason.startswith("record batch 1 of the Arrow file cannot be read: ")


def test_a_stream_ends_where_it_is_not_sound() -> None:
    batches = list(read_arrow(io.BytesIO(spoil(ipc(stream=True), b"t30t31t32")), SCHEMA))
    assert xs(batches) == list(range(20))
    assert batches[-1].rejected[0].event == 20
    assert batches[-1].rejected[0].reason.startswith("record batch 2 of the Arrow file cannot be read: ")


def test_a_row_group_that_is_not_sound_is_a_problem_and_the_others_are_read() -> None:
    text = b"".join(len(t).to_bytes(4, "little") + t for t in (b"t25", b"t26"))
    batches = list(read_parquet(io.BytesIO(spoil(parquet(), text)), SCHEMA))
    assert xs(batches) == [*range(20), *range(40, 60)]
    assert [(p.event, p.reason[:39]) for b in batches for p in b.rejected] == [
        (20, "20 events of row group 2 of the Parquet")
    ]
    assert batches[-1].rows.tolist() == list(range(40, 60))


def test_a_parquet_file_whose_names_are_not_utf8_is_not_sound() -> None:
    data = bytes(parquet()).replace(b"\x01t", b"\x01\xff").replace(b"\x01x", b"\x01\xfe")
    with pytest.raises(EventError, match="is not a sound Parquet file"):
        list(read_parquet(io.BytesIO(data), SCHEMA))


CHILD = """
import io, random, sys
from tests.events import test_hostile as files
from headgate.errors import HeadgateError
sound = {"file": files.ipc(), "stream": files.ipc(stream=True), "parquet": files.parquet()}
for seed in range(int(sys.argv[1])):
    for kind, data in sound.items():
        draw = random.Random(f"{seed} {kind}")
        data = bytearray(data)
        for _ in range(draw.choice([1, 1, 2, 5, 20])):
            at = draw.randrange(len(data))
            data[at] = draw.randrange(256)
            if draw.random() < 0.2:
                data[at : at + 4] = draw.choice([b"\\xff\\xff\\xff\\x7f", b"\\xff\\xff\\xff\\xff", b"\\0\\0\\0\\x80"])
        print(seed, kind, file=sys.stderr)
        try:
            reader = files.read_parquet if kind == "parquet" else files.read_arrow
            for batch in reader(io.BytesIO(data), files.SCHEMA):
                for column in batch.columns.columns.values():
                    [column.value(i) for i in range(len(column))]
        except HeadgateError:
            pass
"""


def test_no_damage_to_arrow_or_parquet_files_ends_the_process() -> None:
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, "-c", CHILD, "400"], cwd=root, capture_output=True, text=True, timeout=300, check=False
    )
    assert ended.returncode == 0, ended.stderr[-2000:]


def test_a_path_with_a_nul_names_no_file() -> None:
    with pytest.raises(UsageError, match="embedded null byte"):
        list(read_json_lines("a\0b.jsonl", SCHEMA))
