"""The Spark side of matching: a streaming query over the whole event log of a store.

    python -m headgate.broker.pipeline --store URL --checkpoint FOLDER [--master local[2]]

`headgate serve` runs it as a child and starts it again when it ends; it may as well run elsewhere. It is a call of
`headgate.spark.start` on every stream, also those that are declared while it runs, with the notifications of the store as
its sink: a micro-batch is one Spark job then, which is what the time from publishing to delivery hangs on. The query
starts a batch as soon as there are events. What it has done is told on stdout and written down in the store, so that
publishers can be asked to wait while it is behind.

Sequences have a query of their own beside it, which starts with the first of them: state costs time in every batch, and
those who only filter should not wait for it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
import time
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from headgate.broker.settings import AHEAD, IDLE, STORE, WATERMARK
from headgate.errors import HeadgateError
from headgate.spark.batch import match
from headgate.spark.session import spark_session
from headgate.spark.source import HeadgateSource
from headgate.spark.stream import Running, start
from headgate.store import Store
from headgate.store.shared import SEQUENCES, Shared
from headgate.subscriptions import Subscriptions

NAME = "headgate-broker"
CONF = {
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.pollingDelay": "50ms",
    # A micro-batch is small and its plan always the same. What Java would spend on the last bit of speed, and Spark on
    # planning anew, costs more than it brings: measured at 500 events/s, 0.36 s of processor time a batch for 0.90.
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "spark.sql.adaptive.enabled": "false",
}
ALONE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""Without a cluster nobody else need reach the driver."""
_LOOK_S = 0.5
SEQUENCES_TRIGGER = "1 second"
"""State that waits for the clock is looked at in every batch, also in empty ones."""


@dataclass
class Queries:
    """What runs over the log of a store."""

    spark: SparkSession
    store: Store
    checkpoint: str
    plans: str | None = None
    most: int = 50_000
    """Events in a micro-batch."""

    def stateless(self, trigger: str) -> Running:
        # A checkpoint knows where it is; a new one goes on where another query of this store has left off.
        since = Shared(self.store.database).progress() or 0
        return self._started(since, self.checkpoint, sequences=False, trigger=trigger, name=NAME)

    def sequences(self, since: int) -> Running:
        """Those of all owners, with one time: that of clocks."""
        how = {"watermark": WATERMARK, "idle": IDLE, "ahead": AHEAD, "trigger": SEQUENCES_TRIGGER, "name": SEQUENCES}
        return self._started(since, f"{self.checkpoint}-sequences", sequences="only", **how)

    def _started(self, since: int, checkpoint: str, **how: Any) -> Running:
        options = {"maxEventsPerTrigger": str(self.most), "eventsPerPartition": str(max(1, self.most // 4))}
        options |= {"store": self.store.url, "startingOffsets": str(since)}
        log = self.spark.readStream.format("headgate").options(**options).load()
        what: Any = {"on": "*", "event_id": "id", "json": "body", "plans": self.plans, **how}
        return start(log, self.store, "store", checkpoint, **what)


def session(master: str | None) -> SparkSession:
    where = master or "local[2]"
    far = where.startswith("sc://")
    spark = spark_session(where, NAME, None if far else CONF | (ALONE if where.startswith("local") else {}), ui=False)
    if not far:
        spark.sparkContext.setLogLevel("ERROR")
    warm(spark)
    if not far:
        # A small batch is soon done: what it costs is its tasks.
        spark.conf.set("spark.sql.shuffle.partitions", str(spark.sparkContext.defaultParallelism))
    spark.dataSource.register(HeadgateSource)
    return spark


def warm(spark: SparkSession) -> None:
    """Let the workers load the engine before the first events come, which would wait for it."""
    book = Subscriptions().stream("warm", {"name": "string", "price": "double", "vol": "bigint"})
    for number, text in enumerate(("name = 'a' AND price < 1", "vol > 1 OR price > 2", "name LIKE 'a%'", "vol = 3")):
        book.add(str(number), text, on="warm")
    rows = [(n, "warm", '{"name": "a", "price": 0.5, "vol": 3}') for n in range(4)]
    df = spark.createDataFrame(rows, "id bigint, stream string, body string").repartition(2)
    match(df, book, on="*", event_id="id", json="body").collect()


def follow(queries: Queries, running: Running) -> None:
    """Tell what the queries do, until one of them ends."""
    store = queries.store
    shared = Shared(store.database)
    seen = shared.progress() or 0
    stateful: Running | None = None
    watermark = 0
    while _runs(running) and (stateful is None or _runs(stateful)):
        since = shared.sequences()
        if stateful is None and since is not None:
            stateful = queries.sequences(since)
        elif stateful is not None and since is not None:
            if (last := reached(stateful)) > since:
                shared.advance(SEQUENCES, last)
            if (now := stateful.metrics.numbers.watermark) != watermark:
                watermark = now
                tell("sequences", watermark=watermark)
        if (last := reached(running)) > seen:
            shared.advance(NAME, last)
            tell("batch", last=last, events=last - seen, version=store.version)
            seen = last
        time.sleep(_LOOK_S)
    for one in (running, stateful):
        if one is not None and not _runs(one):
            one.wait()


def _runs(running: Running) -> bool:
    return bool(running.query.isActive) and not running.query.exception()


def reached(running: Running) -> int:
    """The last event of the log that a query has done. An idle query tells of itself too."""
    said: Any = running.query.lastProgress
    end = said["sources"][0]["endOffset"] if said is not None else None
    return int((json.loads(end) if isinstance(end, str) else end)["id"]) if end else 0


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
    parser.add_argument("--store", default=os.environ.get(STORE), help=f"or {STORE} in the environment")
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--master")
    parser.add_argument("--plans")
    parser.add_argument("--most", type=int, default=50_000, help="events in a micro-batch")
    parser.add_argument("--trigger", default="50 milliseconds")
    parser.add_argument("--child", action="store_true", help="end when stdin does")
    given = parser.parse_args()
    if not given.store:
        parser.error(f"give --store, or set {STORE}")
    if given.child:
        threading.Thread(target=_leave_with_parent, daemon=True).start()
    try:
        store = Store(given.store)
        queries = Queries(session(given.master), store, given.checkpoint, given.plans, given.most)
        running = queries.stateless(given.trigger)
        tell("started", query=str(running.query.id))
        follow(queries, running)
    except HeadgateError as problem:
        tell("failed", code=problem.code, reason=str(problem))
        sys.exit(1)


if __name__ == "__main__":
    main()
