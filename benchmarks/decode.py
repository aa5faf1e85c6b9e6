"""How fast events become columns, one core, five attributes: rows a second by the form they come in."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from benchmarks import measure
from headgate.events import decode, read_csv, read_json_lines, read_parquet
from headgate.schema import Schema

ROWS = {"small": 30_000, "paper": 300_000}
SCHEMA = Schema.of("stock", {"name": "string", "price": "double", "vol": "bigint", "halted": "boolean"}, time="at")


def rows_per_second(rows: int, run: Callable[[], int]) -> float:
    """The best of five, after one run to warm up."""
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        assert run() == rows
        best = min(best, time.perf_counter() - start)
    return rows / best


def run(scale: str, _out: Path) -> Iterator[measure.Row]:
    rows = ROWS[scale]
    events = [
        {"name": f"S{i % 500}", "price": i / 4, "vol": i, "halted": i % 7 == 0, "at": 1_700_000_000_000_000 + i}
        for i in range(rows)
    ]
    iso = [{**event, "at": f"2024-05-17T08:30:{i % 60:02}.{i % 1000:03}Z"} for i, event in enumerate(events)]
    messy = [{**event, "vol": "many"} if i % 100 == 0 else event for i, event in enumerate(events)]
    lines, iso_lines, messy_lines = (b"\n".join(map(orjson.dumps, form)) for form in (events, iso, messy))
    table = pa.Table.from_pylist(events)
    parquet, csv = io.BytesIO(), io.BytesIO()
    pa.parquet.write_table(table, parquet)
    pa.csv.write_csv(table, csv)

    def json(text: bytes) -> int:
        return sum(b.columns.rows + len(b.rejected) for b in read_json_lines(io.BytesIO(text), SCHEMA))

    runs: dict[str, Callable[[], int]] = {
        "dicts": lambda: decode(events, SCHEMA).columns.rows,
        "json lines": lambda: json(lines),
        "json lines, ISO time": lambda: json(iso_lines),
        "json lines, 1% bad": lambda: json(messy_lines),
        "arrow table": lambda: decode(table, SCHEMA).columns.rows,
        "parquet": lambda: sum(b.columns.rows for b in read_parquet(io.BytesIO(parquet.getvalue()), SCHEMA)),
        "csv": lambda: sum(b.columns.rows for b in read_csv(io.BytesIO(csv.getvalue()), SCHEMA)),
    }
    for name, way in runs.items():
        yield {"form": name, "rows": rows, "rows_per_second": int(rows_per_second(rows, way))}


if __name__ == "__main__":
    measure.main(run)
