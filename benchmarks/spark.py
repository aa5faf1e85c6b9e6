"""Matching on Spark: how much of the engine's speed is left, what users do without Headgate, and what is moved.

Three tables, one JSON object a row:

* `throughput`: the filter paper's workload, matches counted, on `local[2]`, beside twice the rate of one core in process;
* `without`: a cross join with an `expr` predicate, and a chain of `when` columns, at the sizes where they run at all;
* `moved`: the bytes that reach the host for a large plan in a job of many tasks.

python -m benchmarks.spark [small|paper]
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import headgate as hg
from benchmarks.workloads.filters import MILLION_SCHEMA, PAPER_SCHEMA, million_texts, paper_messages, paper_queries
from headgate.columns import Columns
from headgate.schema import Schema

SHARE = 0.7
"""At least this share of twice the rate of one core."""
BATCH = 65_536
SCALES = {
    "small": {"subscriptions": 10_000, "events": 400_000, "without": (10, 100), "large": 50_000},
    "paper": {"subscriptions": 100_000, "events": 3_000_000, "without": (10, 100, 1000), "large": 1_000_000},
}
PATIENCE_S = 120.0
"""A baseline that has taken this long is not asked for more subscriptions."""


def book(texts: Iterator[str] | list[str], schema: Schema) -> hg.Subscriptions:
    subs = hg.Subscriptions().stream(schema.stream, schema)
    listed = list(texts)
    table = pa.table({"id": [f"q{i}" for i in range(len(listed))], "text": listed})
    return subs.add_table(table, on=schema.stream)


def write_events(columns: Columns, path: Path) -> None:
    """Events as a Parquet file with an id, in groups that several tasks can read."""
    made: dict[str, Any] = {"id": np.arange(columns.rows)}
    for (name,), column in columns.columns.items():
        made[name] = (
            pa.array(column.values, mask=~column.defined) if isinstance(column.values, np.ndarray) else column.values
        )
    pq.write_table(pa.table(made), path, row_group_size=BATCH)


def best(run: Callable[[], Any], rounds: int = 3) -> float:
    """Seconds of the best of some rounds, after one to warm up."""
    run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def throughput(spark: Any, folder: Path, subscriptions: int, events: int) -> Iterator[dict[str, Any]]:
    from headgate.spark import match

    file = folder / "events.parquet"
    write_events(paper_messages(events), file)
    subs = book(paper_queries(subscriptions), PAPER_SCHEMA)
    plan = subs.compile()
    sample = min(events, 4 * BATCH)

    def in_process() -> int:
        total = seen = 0
        for batch in pq.ParquetFile(file).iter_batches(BATCH):
            total += plan.match({"paper": batch}, output="counts").num_rows
            seen += batch.num_rows
            if seen >= sample:
                break
        return total

    alone = sample / best(in_process)
    yield {
        "table": "throughput",
        "system": "one core in process",
        "subscriptions": subscriptions,
        "events_per_second": alone,
    }
    frame = spark.read.parquet(str(file))
    seconds = best(lambda: match(frame, plan, event_id="id", output="counts", errors="raise").collect())
    rate = events / seconds
    share = rate / (2 * alone)
    row = {"system": "Spark local[2]", "subscriptions": subscriptions, "events": events, "events_per_second": rate}
    yield {"table": "throughput", **row, "share_of_twice_one_core": share, "must": share >= SHARE}


def without(spark: Any, folder: Path, sizes: tuple[int, ...], events: int) -> Iterator[dict[str, Any]]:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as fn

    from headgate.spark import match

    frame = spark.read.parquet(str(folder / "events.parquet"))
    slow: set[str] = set()
    for size in sizes:
        texts = paper_queries(size)
        predicates = [to_sql(text) for text in texts]
        subs = book(texts, PAPER_SCHEMA)

        def joined(predicates: list[str] = predicates, size: int = size) -> Any:
            cases = " ".join(f"WHEN {i} THEN {p}" for i, p in enumerate(predicates))
            pairs = frame.crossJoin(fn.broadcast(spark.range(size).withColumnRenamed("id", "q")))
            return pairs.where(fn.expr(f"CASE q {cases} END")).groupBy("q").count().collect()

        def chained(predicates: list[str] = predicates) -> Any:
            return frame.agg(
                *(fn.count(fn.when(fn.expr(p), 1)).alias(f"q{i}") for i, p in enumerate(predicates))
            ).collect()

        def headgate(subs: hg.Subscriptions = subs) -> Any:
            return match(frame, subs, event_id="id", output="counts", errors="raise").collect()

        for system, run in (("cross join with expr", joined), ("chain of when", chained), ("Headgate", headgate)):
            row = {"table": "without", "system": system, "subscriptions": size, "events": events}
            if system in slow:
                yield {**row, "events_per_second": None, "why": "too slow at the size before"}
                continue
            start = time.perf_counter()
            try:
                run()
            except PySparkException as problem:
                slow.add(system)
                yield {**row, "events_per_second": None, "why": str(problem).splitlines()[0][:200]}
                continue
            seconds = time.perf_counter() - start
            if seconds > PATIENCE_S:
                slow.add(system)
            yield {**row, "events_per_second": events / seconds}


def to_sql(text: str) -> str:
    """A subscription of the paper's workload in Spark's SQL."""
    return re.sub(r"(\w+|'\w+') CONTAINS (\w+|'\w+')", r"contains(\1, \2)", text)


def moved(spark: Any, folder: Path, size: int) -> Iterator[dict[str, Any]]:
    from headgate.spark import match
    from headgate.spark.cache import moved as ledger

    subs = book(million_texts(size), MILLION_SCHEMA)
    columns = ", ".join(f"id % 100 AS a{n}" if n < 10 else f"cast(id % 100 AS double) AS a{n}" for n in range(20))
    frame = spark.range(0, 64_000, 1, 64).selectExpr("id", "id % 10000 AS key", *columns.split(", "))
    before = len(ledger())
    plans = folder / "plans"
    match(frame, subs, event_id="id", output="counts", errors="raise", plans=str(plans)).collect()
    moves = ledger()[before:]
    files = {f.stem: f.stat().st_size for f in plans.glob("*.plan")}
    yield {
        "table": "moved",
        "subscriptions": size,
        "plan_bytes": sum(files.values()),
        "files": len(files),
        "tasks": 64,
        "fetches": len(moves),
        "bytes_moved": sum(files[m.digest] for m in moves),
        "must": sorted(m.digest for m in moves) == sorted(files),
    }


def run(scale: str, out: Path) -> Iterator[dict[str, Any]]:
    from headgate.spark import spark_session

    sizes: dict[str, Any] = SCALES[scale]
    with tempfile.TemporaryDirectory(dir=out) as name:
        folder = Path(name)
        os.environ["HEADGATE_CACHE"] = str(folder / "cache")
        conf = {
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "3g",
            "spark.ui.showConsoleProgress": "false",
        }
        spark = spark_session("local[2]", "headgate bench", conf, ui=False)
        spark.sparkContext.setLogLevel("ERROR")
        try:
            yield from throughput(spark, folder, sizes["subscriptions"], sizes["events"])
            yield from without(spark, folder, sizes["without"], sizes["events"])
            yield from moved(spark, folder, sizes["large"])
        finally:
            spark.stop()


if __name__ == "__main__":
    for row in run(sys.argv[1] if len(sys.argv) > 1 else "small", Path(tempfile.gettempdir())):
        print(json.dumps(row), flush=True)
