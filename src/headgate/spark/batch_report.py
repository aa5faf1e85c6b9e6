"""What the tasks of a batch say of it, in rows without an id: JSON in `output`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from headgate.results import row_schema


@dataclass
class BatchReport:
    """`time` is the first epoch that is still open; `activated` has the newcomers and when they begin."""

    events: int = 0
    sent: int = 0
    bytes_saved: int = 0
    lost: int = 0
    time: int | None = None
    activated: dict[str, int] = field(default_factory=dict)
    idle: list[str] = field(default_factory=list)


def tally_table(said: Mapping[str, Any], event: pa.DataType) -> pa.Table:
    """A row without an id: what was done."""
    schema = row_schema(event)
    row = {**dict.fromkeys(schema.names), "output": orjson.dumps(said).decode()}
    return pa.Table.from_pylist([row], schema)


def account(rows: DataFrame) -> tuple[dict[str, int], BatchReport]:
    """How many events, matches and errors a batch has, and what its tasks said. This makes Spark do the work."""
    tally, bad = fn.col("id").isNull(), fn.col("error").isNotNull()
    (found,) = rows.agg(
        fn.coalesce(fn.sum(fn.when(~tally & ~bad, 1)), fn.lit(0)).alias("matches"),
        fn.coalesce(fn.sum(fn.when(bad, 1)), fn.lit(0)).alias("errors"),
        fn.collect_list(fn.when(tally, fn.col("output"))).alias("said"),
    ).collect()
    said = BatchReport()
    for text in found["said"]:
        one = orjson.loads(text)
        said.events += one.get("events", 0)
        said.sent += one.get("sent", 0)
        said.bytes_saved += max(0, one.get("bytes_read", 0) - one.get("bytes_sent", 0))
        said.lost += one.get("lost", 0)
        said.time = one.get("time", said.time)
        said.activated.update(one.get("activated", {}))
        said.idle = one.get("idle", said.idle)
    return {"events": said.events, "matches": int(found["matches"]), "errors": int(found["errors"])}, said
