"""Matching on Spark: how much of the engine's speed is left, what users do without Headgate, and what is moved.

Three tables, one JSON object a row:

* `throughput`: the filter paper's workload, matches counted, on `local[2]`, beside twice the rate of one core in process,
  and beside two plain processes that share nothing, which is what the machine itself leaves of twice one core;
* `without`: a cross join with an `expr` predicate, and a chain of `when` columns, at the sizes where they run at all. Each
  point is a process of its own that is ended after `PATIENCE_S`; a system that was ended is not asked for larger sizes;
* `moved`: the bytes that reach the host for a large plan in a job of many tasks, and the bytes of a task.

python -m benchmarks.spark [small|paper] [--only throughput without moved]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
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
TASK_BYTES = 10_000
"""A task names its plan and must not carry it."""
SCALES: dict[str, dict[str, Any]] = {
    "small": {"subscriptions": 10_000, "events": 400_000, "without": {10: 200_000, 100: 20_000}, "large": 50_000},
    "paper": {
        "subscriptions": 100_000,
        "events": 1_000_000,
        "without": {10: 1_000_000, 100: 200_000, 1000: 20_000},
        "large": 1_000_000,
    },
}
"""`without`: how many events at how many subscriptions."""
TABLES = ("throughput", "without", "moved")
SYSTEMS = ("cross join with expr", "chain of when", "Headgate")
PATIENCE_S = 120.0


def session() -> Any:
    from headgate.spark import spark_session

    conf = {
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "3g",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    made = spark_session("local[2]", "headgate bench", conf, ui=False)
    made.sparkContext.setLogLevel("ERROR")
    return made


def book(texts: Iterator[str] | list[str], schema: Schema) -> hg.Subscriptions:
    subs = hg.Subscriptions().stream(schema.stream, schema)
    listed = list(texts)
    table = pa.table({"id": [f"q{i}" for i in range(len(listed))], "text": listed})
    return subs.add_table(table, on=schema.stream)


def write_events(columns: Columns, folder: Path) -> None:
    """Events with an id as two Parquet files: of one small file Spark would give its two tasks unequal shares."""
    made: dict[str, Any] = {"id": np.arange(columns.rows)}
    for (name,), column in columns.columns.items():
        made[name] = (
            pa.array(column.values, mask=~column.defined) if isinstance(column.values, np.ndarray) else column.values
        )
    table = pa.table(made)
    folder.mkdir()
    half = -(-len(table) // 2)
    for n in range(2):
        pq.write_table(table.slice(n * half, half), folder / f"{n}.parquet", row_group_size=BATCH)


def best(run: Callable[[], Any], rounds: int = 3) -> float:
    """Seconds of the best of some rounds, after one to warm up."""
    run()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def throughput(folder: Path, subscriptions: int, events: int) -> Iterator[dict[str, Any]]:
    from headgate.spark import match

    file = folder / "events"
    write_events(paper_messages(events), file)
    plan = book(paper_queries(subscriptions), PAPER_SCHEMA).compile()
    saved = folder / "plan"
    plan.save(saved)
    sample = min(events, 4 * BATCH)
    shared = {"table": "throughput", "subscriptions": subscriptions}
    alone = sample / best(lambda: counted(plan, file, sample))
    yield {**shared, "system": "one core in process", "events": sample, "events_per_second": alone}
    pair = 2 * sample / two_processes(saved, file, sample)
    yield {
        **shared,
        "system": "two processes",
        "events": 2 * sample,
        "events_per_second": pair,
        "share": pair / (2 * alone),
    }
    spark = session()
    try:
        frame = spark.read.parquet(str(file))
        rate = events / best(lambda: match(frame, plan, event_id="id", output="counts", errors="raise").collect(), 2)
    finally:
        spark.stop()
    share = rate / (2 * alone)
    yield {**shared, "system": "Spark local[2]", "events": events, "events_per_second": rate, "share": share}
    yield {
        "must": "share of twice the rate of one core",
        "value": round(share, 3),
        "at_least": SHARE,
        "holds": share >= SHARE,
    }


def counted(plan: hg.Plan, file: Path, sample: int) -> int:
    """The matches of the first events of a folder, counted in this process."""
    total = seen = 0
    for batch in (b for part in sorted(file.iterdir()) for b in pq.ParquetFile(part).iter_batches(BATCH)):
        total += plan.match({"paper": batch}, output="counts").num_rows
        seen += batch.num_rows
        if seen >= sample:
            break
    return total


def two_processes(saved: Path, file: Path, sample: int) -> float:
    """Seconds that two processes take for the sample each, once both are warm."""
    command = [sys.executable, "-m", "benchmarks.spark", "--count", str(saved), str(file), str(sample)]
    running = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]  # noqa: S603 - this interpreter, this module
    try:
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        start = time.perf_counter()
        for process in running:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in running:
            assert process.stdout is not None
            process.stdout.readline()
        return time.perf_counter() - start
    finally:
        for process in running:
            process.communicate()


def one_process(saved: str, file: str, sample: str) -> None:
    """The other side of `two_processes`."""
    plan = hg.Plan.open(saved)
    counted(plan, Path(file), int(sample))
    print("warm", flush=True)
    sys.stdin.readline()
    counted(plan, Path(file), int(sample))
    print("done", flush=True)


def without(folder: Path, sizes: dict[int, int]) -> Iterator[dict[str, Any]]:
    ended: set[str] = set()
    for size, events in sizes.items():
        file = folder / f"without{size}"
        write_events(paper_messages(events), file)
        for system in SYSTEMS:
            row = {"table": "without", "system": system, "subscriptions": size, "events": events}
            if system in ended:
                yield {**row, "why": "ended at the size before"}
                continue
            seconds, why = point(system, size, file)
            if seconds is None:
                ended.add(system)
                yield {**row, "why": why}
            else:
                yield {**row, "events_per_second": events / seconds}


def point(system: str, size: int, file: Path) -> tuple[float | None, str]:
    """Seconds of one system at one size, or why there are none."""
    command = [sys.executable, "-m", "benchmarks.spark", "--point", system, str(size), str(file)]
    running = subprocess.Popen(  # noqa: S603 - this interpreter, this module
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        said, problem = running.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        return None, f"not done after {PATIENCE_S:.0f} s, and ended"
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)
            running.communicate()
    if running.returncode:
        return None, (problem.strip().splitlines() or ["it failed"])[-1][:200]
    return float(said.split()[-1]), ""


def one_point(system: str, size: str, file: str) -> None:
    """The other side of `point`: the better of two rounds, without the time that Spark takes to start."""
    from pyspark.sql import functions as fn

    from headgate.spark import match

    spark = session()
    frame = spark.read.parquet(file)
    frame.count()
    texts = list(paper_queries(int(size)))
    predicates = [to_sql(text) for text in texts]
    subs = book(texts, PAPER_SCHEMA).compile()

    def joined() -> Any:
        cases = " ".join(f"WHEN {i} THEN {p}" for i, p in enumerate(predicates))
        pairs = frame.crossJoin(fn.broadcast(spark.range(int(size)).withColumnRenamed("id", "q")))
        return pairs.where(fn.expr(f"CASE q {cases} END")).groupBy("q").count().collect()

    def chained() -> Any:
        return frame.agg(*(fn.count(fn.when(fn.expr(p), 1)).alias(f"q{i}") for i, p in enumerate(predicates))).collect()

    def headgate() -> Any:
        return match(frame, subs, event_id="id", output="counts", errors="raise").collect()

    run = dict(zip(SYSTEMS, (joined, chained, headgate), strict=True))[system]
    times = []
    for _ in range(2):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    print(min(times))
    spark.stop()


def to_sql(text: str) -> str:
    """A subscription of the paper's workload in Spark's SQL."""
    return re.sub(r"(\w+|'\w+') CONTAINS (\w+|'\w+')", r"contains(\1, \2)", text)


def moved(folder: Path, size: int) -> Iterator[dict[str, Any]]:
    from pyspark.serializers import CloudPickleSerializer

    from headgate.spark import match
    from headgate.spark.cache import moved as ledger
    from headgate.spark.ship import ship
    from headgate.spark.worker import Matching

    plan = book(million_texts(size), MILLION_SCHEMA).compile()
    columns = [f"id % 100 AS a{n}" if n < 10 else f"cast(id % 100 AS double) AS a{n}" for n in range(20)]
    plans = folder / "plans"
    spark = session()
    try:
        frame = spark.range(0, 64_000, 1, 64).selectExpr("id", "id % 10000 AS key", *columns)
        shipment = ship([plan], spark, folder=str(plans))
        task = len(CloudPickleSerializer().dumps(Matching(shipment, MILLION_SCHEMA.stream, True, False)))
        before = len(ledger())
        match(frame, plan, event_id="id", output="counts", errors="raise", plans=str(plans)).collect()
    finally:
        spark.stop()
    moves = ledger()[before:]
    files = {f.stem: f.stat().st_size for f in plans.glob("*.plan")}
    came = sum(files[m.digest] for m in moves)
    yield {
        "table": "moved",
        "subscriptions": size,
        "files": len(files),
        "plan_bytes": sum(files.values()),
        "tasks": 64,
        "fetches": len(moves),
        "bytes_to_host": came,
        "bytes_a_task": task,
    }
    once = sorted(m.digest for m in moves) == sorted(files)
    yield {
        "must": "times that the plan reaches the host in a job of 64 tasks",
        "value": round(came / sum(files.values()), 3),
        "less_than": 1.001,
        "holds": once and task < TASK_BYTES,
    }


def run(scale: str, out: Path, only: Sequence[str] = TABLES) -> Iterator[dict[str, Any]]:
    sizes = SCALES[scale]
    with tempfile.TemporaryDirectory(dir=out) as name:
        folder = Path(name).absolute()
        os.environ["HEADGATE_CACHE"] = str(folder / "cache")
        if "throughput" in only:
            yield from throughput(folder, sizes["subscriptions"], sizes["events"])
        if "without" in only:
            yield from without(folder, sizes["without"])
        if "moved" in only:
            yield from moved(folder, sizes["large"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scale", nargs="?", choices=list(SCALES), default="small")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--count", nargs=3)
    parser.add_argument("--point", nargs=3)
    given = parser.parse_args()
    if given.count:
        one_process(*given.count)
    elif given.point:
        one_point(*given.point)
    else:
        for row in run(given.scale, Path(tempfile.gettempdir()), given.only):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
