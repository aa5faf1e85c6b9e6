"""The Spark side of matching: a streaming query over the whole event log of a store.

    python -m headgate.broker.pipeline --store URL --checkpoint FOLDER [--master local[2]]

`headgate serve` runs it as a child and starts it again when it ends; it may as well run elsewhere. One query reads all
streams, also those that are declared while it runs: the log is one table, and a batch is parted by stream in the
workers. A batch costs one Spark job: the workers write what they find, the driver learns only how much it was. That is
what the time from publishing to delivery hangs on, and why this is no call of `headgate.spark.start`.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from headgate.broker.matching import STREAM, TALLY, Recording
from headgate.errors import HeadgateError
from headgate.spark.checkpoint import claim
from headgate.spark.follow import Follower
from headgate.spark.frame import BODY, EVENT
from headgate.spark.session import is_connect, spark_session
from headgate.spark.ship import ship
from headgate.spark.source import HeadgateSource
from headgate.store import Store
from headgate.store.shared import Shared

log = logging.getLogger("headgate.broker")
NAME = "headgate-broker"
ALL_STREAMS = ("*",)
CONF = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.pollingDelay": "10ms",
    "spark.sql.streaming.minBatchesToRetain": "20",
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}


@dataclass
class Batches:
    """What is done with each micro-batch. Over Connect it is pickled to the server, where it makes its state anew."""

    store: Store
    checkpoint: str
    plans: str | None = None
    _follower: Follower | None = field(default=None, repr=False)
    _query: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_follower": None, "_query": None}

    def __call__(self, df: DataFrame, batch: int) -> None:
        began = time.perf_counter()
        if self._follower is None:
            self._follower = Follower(self.store)
            self._query = claim(self.checkpoint, self.store.identity, ALL_STREAMS, first=batch == 0).query
        assert self._query is not None
        version = self.store.logs.version_of(self._query, batch, self.store.version)
        parts = self._follower.at(version)
        spark = df.sparkSession
        sent = ship(parts.plans, spark, gone=parts.gone, folder=self.plans, beside_driver=True, store=self.store)
        if not is_connect(spark):
            spark.sparkContext.setJobDescription(f"batch {batch}, version {version}")
        rows = df.mapInArrow(Recording(sent, self.store.url), TALLY).collect()
        last = max((int(r["last"]) for r in rows), default=0)
        Shared(self.store.database).advance(self._query, last)
        tally = {name: sum(int(r[name]) for r in rows) for name in ("events", "matches", "errors")}
        tell("batch", batch=batch, version=version, last=last, seconds=round(time.perf_counter() - began, 4), **tally)


def frame(spark: SparkSession, store: Store, most: int) -> DataFrame:
    """The event log as a stream, with the columns that matching wants."""
    spark.dataSource.register(HeadgateSource)
    options = {"store": store.url, "maxEventsPerTrigger": str(most), "eventsPerPartition": str(max(1, most // 2))}
    read = spark.readStream.format("headgate").options(**options).load()
    return read.select(fn.col("id").alias(EVENT), fn.col("stream").alias(STREAM), fn.col("body").alias(BODY))


def run(store_url: str, checkpoint: str, master: str | None, plans: str | None, most: int, trigger: str) -> None:
    """Run until the query ends, or whoever started this process is gone."""
    store = Store(store_url)
    spark = spark_session(master or "local[2]", NAME, CONF, ui=False)
    if not is_connect(spark):
        spark.sparkContext.setLogLevel("ERROR")
    batches = Batches(store, checkpoint, plans)
    writer = frame(spark, store, most).writeStream.queryName(NAME).option("checkpointLocation", checkpoint)
    query = writer.foreachBatch(batches).trigger(processingTime=trigger).start()
    tell("started", query=str(query.id))
    threading.Thread(target=_leave_with_parent, daemon=True).start()
    query.awaitTermination()


def _leave_with_parent() -> None:
    """The other end of stdin is held by the broker: when it is gone, however it went, there is nobody to match for."""
    while sys.stdin.buffer.read(65536):
        pass
    os._exit(0)


def tell(event: str, **facts: Any) -> None:
    """A line for whoever started this process."""
    sys.stdout.write(json.dumps({"event": event, "at": time.time(), **facts}) + "\n")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(prog="headgate.broker.pipeline")
    parser.add_argument("--store", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--master")
    parser.add_argument("--plans")
    parser.add_argument("--most", type=int, default=50_000, help="events in a micro-batch")
    parser.add_argument("--trigger", default="50 milliseconds")
    given = parser.parse_args()
    try:
        run(given.store, given.checkpoint, given.master, given.plans, given.most, given.trigger)
    except HeadgateError as problem:
        tell("failed", code=problem.code, reason=str(problem))
        sys.exit(1)


if __name__ == "__main__":
    main()
