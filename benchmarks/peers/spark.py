"""Filters on Spark without Headgate: a cross join with an `expr` predicate, and a chain of `when` columns.

The filter paper's queries and messages on `local[2]`, matches counted. The counts are compared, query by query. Here the
clock is on the wall, because the work is done in other processes; two cores.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import measure
from benchmarks.measure import Differ, Row
from benchmarks.spark import book, to_sql, write_events
from benchmarks.workloads.filters import PAPER_SCHEMA, paper_messages, paper_queries

SIZES = {"small": (10, 100), "paper": (10, 100, 1_000)}
EVENTS = {"small": 100_000, "paper": 400_000}
ROUNDS = 3
PATIENCE_S = 60.0
"""A way that took this long is not asked at larger sizes, nor twice."""


def run(scale: str, out: Path) -> Iterator[Row]:
    from headgate.spark import spark_session

    with tempfile.TemporaryDirectory(dir=out) as name:
        folder = Path(name)
        os.environ["HEADGATE_CACHE"] = str(folder / "cache")
        write_events(paper_messages(EVENTS[scale]), folder / "events.parquet")
        conf = {
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "3g",
            "spark.ui.showConsoleProgress": "false",
        }
        spark = spark_session("local[2]", "headgate bench", conf, ui=False)
        spark.sparkContext.setLogLevel("ERROR")
        try:
            slow: set[str] = set()
            frame = spark.read.parquet(str(folder / "events.parquet"))
            for size in SIZES[scale]:
                yield from _compared(spark, frame, size, EVENTS[scale], slow)
        finally:
            spark.stop()


def ways_of(spark: Any, frame: Any, texts: list[str]) -> dict[str, Callable[[], dict[int, int]]]:
    """Each way counts the matches of each query that has any."""
    from pyspark.sql import functions as fn

    from headgate.spark import match

    predicates = [to_sql(text) for text in texts]
    subs = book(texts, PAPER_SCHEMA)

    def headgate() -> dict[int, int]:
        rows = match(frame, subs, event_id="id", output="counts", errors="raise").collect()
        return {int(r["subscription"][1:]): r["count"] for r in rows}

    def joined() -> dict[int, int]:
        cases = " ".join(f"WHEN {i} THEN {p}" for i, p in enumerate(predicates))
        pairs = frame.crossJoin(fn.broadcast(spark.range(len(texts)).withColumnRenamed("id", "q")))
        return {r["q"]: r["count"] for r in pairs.where(fn.expr(f"CASE q {cases} END")).groupBy("q").count().collect()}

    def chained() -> dict[int, int]:
        counted = [fn.count(fn.when(fn.expr(p), 1)).alias(str(i)) for i, p in enumerate(predicates)]
        return {i: n for i, n in enumerate(frame.agg(*counted).collect()[0]) if n}

    return {"headgate": headgate, "cross join with expr": joined, "chain of when": chained}


def _compared(spark: Any, frame: Any, size: int, events: int, slow: set[str]) -> Iterator[Row]:
    ways = ways_of(spark, frame, paper_queries(size))
    rows: dict[str, Row] = {name: {"table": "spark", "x": size, "system": name, "events": events} for name in ways}
    taken: dict[str, list[float]] = {name: [] for name in ways if name not in slow}
    expected: dict[int, int] | None = None
    # The first turn warms up and is compared; it does not count.
    for turn in range(1 + ROUNDS):
        for name in taken:
            if turn and name in slow:
                continue
            start = time.perf_counter()
            found = ways[name]()
            seconds = time.perf_counter() - start
            expected = found if expected is None else expected
            if found != expected:
                raise Differ(f"{name} counts other matches than Headgate at {size} queries")
            if turn or seconds > PATIENCE_S:
                taken[name].append(seconds)
            if seconds > PATIENCE_S:
                slow.add(name)
    for name, row in rows.items():
        times = taken.get(name)
        if not times:
            yield {**row, "why": "not asked: too slow at the size before"}
            continue
        rates = [events / t for t in times]
        middle = {"events_a_second": round(statistics.median(rates)), "least": round(min(rates))}
        yield {
            **row,
            **middle,
            "most": round(max(rates)),
            "rounds": len(times),
            "matches": sum((expected or {}).values()),
        }


if __name__ == "__main__":
    measure.main(run)
