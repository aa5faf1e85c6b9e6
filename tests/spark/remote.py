"""A driver of its own, for clusters and Connect servers: one process has one session. Prints one JSON object.

python -m tests.spark.remote match|start MASTER FOLDER [--plans FOLDER]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from tests.spark.ticks import SCHEMA, book, frame, ticks

from headgate.spark import match, spark_session, start
from headgate.store import Store

COUNT = 300
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.showConsoleProgress": "false",
    "spark.executor.memory": "512m",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}


def session(master: str) -> SparkSession:
    settings: Mapping[str, str] = {} if master.startswith("sc://") else SETTINGS
    return spark_session(master, "headgate remote test", settings, ui=False)


def matched(master: str, plans: str | None) -> list[list[str]]:
    """The matches of a frame with more partitions than workers, twice: the second time the plan is there."""
    spark = session(master)
    df = frame(spark, ticks(COUNT)).repartition(4)
    subs = book()
    rows = []
    for _ in range(2):
        result = match(df, subs, event_id="id", errors="raise", plans=plans)
        rows = [[r["id"], r["event"], r["subscription"]] for r in result.collect()]
    spark.stop()
    return rows


def started(master: str, folder: Path, plans: str | None) -> list[list[str]]:
    """The notifications of a stream of files, with a change of the book in between."""
    spark = session(master)
    store = Store(folder / "book.db")
    store.load(book())
    source = folder / "in"
    events = ticks(40)
    for number in range(2):
        source.mkdir(exist_ok=True)
        lines = "\n".join(json.dumps(e) for e in events[number * 20 :][:20])
        (source / f"{number}.json").write_text(lines, "utf-8")
        df = spark.readStream.schema(SCHEMA).json(str(source))
        running = start(
            df,
            store,
            "store",
            folder / "checkpoint",
            event_id="id",
            trigger="available",
            plans=plans,
            name=f"q{number}",
        )
        running.wait()
        store.remove("large") if number == 0 else None
    spark.stop()
    return [[n.id, n.event, n.subscription] for n in store.logs.notifications()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=["match", "start"])
    parser.add_argument("master")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plans")
    given = parser.parse_args()
    if given.what == "match":
        rows = matched(given.master, given.plans)
    else:
        rows = started(given.master, given.folder, given.plans)
    json.dump(rows, sys.stdout)


if __name__ == "__main__":
    main()
