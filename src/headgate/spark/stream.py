"""`start`: a query that matches a stream with the book of a store, and follows the book as it changes.

Spark numbers the batches of a query. At the start of each batch the driver looks up the version of the book, writes
it down under the number of the batch unless one stands there already (the first one wins), makes the plans of that
version ready, and matches the batch with them. So a change takes effect with the first batch that begins after it, and
a batch that is done again after a crash uses the version that it used the first time: with the ids of matches made from
the stable ids of events, it gives the same rows again, and the sinks keep each once (see `sinks`).

A batch is matched once, however many sinks and actions follow: its rows are kept for them until they are done, because
an operator may cost much and a source may be slow.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery

from headgate.errors import UsageError
from headgate.schema import Schema
from headgate.spark.batch import Shipped, matched, split
from headgate.spark.checkpoint import Claim, claim
from headgate.spark.follow import Follower
from headgate.spark.frame import EVENT, EVERY, STREAM, EventId, absent, event_column, routed, selected
from headgate.spark.metrics import Listener, Metrics
from headgate.spark.session import is_connect
from headgate.spark.shards import SHARD_SIZE
from headgate.spark.ship import ship
from headgate.spark.sinks import Each, Notifications, Sink, sink_of
from headgate.store import Store

log = logging.getLogger("headgate.spark")

AVAILABLE = "available"
_PART = "__{}"
_UNITS = "millisecond|second|minute|hour|day"


@dataclass(frozen=True)
class Running:
    """A query that runs."""

    query: StreamingQuery
    metrics: Metrics
    _listener: Listener | None = field(default=None, repr=False)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end; whether it has ended. An error of the query is raised here."""
        try:
            done = self.query.awaitTermination(None if seconds is None else max(1, int(seconds)))
        except Exception:
            self._forget()
            raise
        return True if done is None else done

    def stop(self) -> None:
        self.query.stop()
        self._forget()

    def _forget(self) -> None:
        session = SparkSession.getActiveSession()
        if self._listener is not None and session is not None:
            session.streams.removeListener(self._listener)


def start(
    df: DataFrame | Mapping[str, DataFrame],
    store: Store | str | Path,
    sink: Sink | Each | str = "store",
    checkpoint: str | Path | None = None,
    *,
    on: str | None = None,
    event_id: EventId | Mapping[str, EventId] = None,
    json: str | None = None,
    errors: Sink | Each | str = "store",
    trigger: str | None = None,
    name: str = "headgate",
    plans: str | None = None,
    shard: int = SHARD_SIZE,
    metrics: Metrics | None = None,
) -> Running:
    """Match a streaming frame, or {stream: frame}, with the book of a store, from now on.

    `sink` and `errors` are sinks: one of `headgate.spark.sinks`, a function of a frame and a batch number, "console",
    "store", or the path of a folder. `checkpoint` is a folder of this query alone. `trigger` is an interval such as
    "5 seconds", or "available" to stop when all that is there has been read. The other arguments are those of `match`.

    A query reads the streams that it was started with. A stream that is declared later needs a query of its own, and this
    one says so in its log; only `on="*"`, over the whole event log of the store, takes up new streams as they come.
    """
    book = store if isinstance(store, Store) else Store(store)
    if checkpoint is None:
        raise UsageError("a query needs a checkpoint: a folder where it keeps how far it has come", "say checkpoint=")
    _interval(trigger)
    frames = _named(df, on, book)
    for stream, frame in frames.items():
        if not frame.isStreaming:
            raise UsageError(f"the frame of {stream} is not a stream", "use spark.readStream, or match for a batch")
    ids = event_id if isinstance(event_id, Mapping) else dict.fromkeys(frames, event_id)
    _declare(book, frames, json)
    follower = Follower(book, shard)
    plans_now = follower.at(book.version).plans
    for stream, frame in frames.items():
        if stream == EVERY:
            routed(frame, ids.get(stream), json)
            continue
        # What is wrong with the frames is said before the query starts.
        reads = frozenset().union(*(p.needs(stream) for p in plans_now))
        schema = plans_now[-1].schemas.get(stream) or Schema(stream, {}, declared=False)
        selected(frame, schema, reads, ids.get(stream), json)
    whole = _union({s: _identified(f, ids.get(s)) for s, f in frames.items()})
    # Spark's own progress tells how many events a batch has, to whoever listens.
    whole = whole.observe(name, fn.count(fn.lit(1)).alias("events"))
    numbers = metrics or Metrics(name)
    spark = whole.sparkSession
    streams = tuple(frames)
    batches = Batches(
        book, sink_of(sink, book), sink_of(errors, book), str(checkpoint), streams, json, name, plans, shard, numbers
    )
    batches.follower = follower
    listener = None
    if not is_connect(spark):
        batches.claimed()
        listener = Listener(name, numbers)
        spark.streams.addListener(listener)
    writer = whole.writeStream.queryName(name).option("checkpointLocation", str(checkpoint)).foreachBatch(batches)
    if trigger is not None:
        writer = writer.trigger(availableNow=True) if trigger == AVAILABLE else writer.trigger(processingTime=trigger)
    return Running(writer.start(), numbers, listener)


def _interval(trigger: str | None) -> None:
    """Spark finds a wrong interval late, and names a class of its own."""
    if trigger not in (None, AVAILABLE) and not re.fullmatch(rf"\s*\d+\s*({_UNITS})s?\s*", trigger or "", re.I):
        raise UsageError(f"trigger = {trigger!r} is no interval", 'say "5 seconds", "100 milliseconds", or "available"')


@dataclass
class Batches:
    """What is done with each micro-batch. Over Connect it is pickled to the server, where it makes its state anew."""

    store: Store
    sink: Sink
    errors: Sink
    checkpoint: str
    streams: tuple[str, ...]
    json: str | None
    name: str
    plans: str | None
    shard: int
    metrics: Metrics
    follower: Follower | None = None
    _claim: Claim | None = None
    _said: set[str] = field(default_factory=set)
    _seen: dict[str, frozenset[tuple[str, ...]]] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_claim": None, "follower": None}

    def claimed(self, batch: int | None = None) -> Claim:
        if self._claim is None:
            self._claim = claim(self.checkpoint, self.store.identity, self.streams, first=batch == 0)
        return self._claim

    def __call__(self, df: DataFrame, batch: int) -> None:
        began = time.perf_counter()
        query = self.claimed(batch).query
        if self.follower is None:
            self.follower = Follower(self.store, self.shard)
        version = self.store.logs.version_of(query, batch, self.store.version)
        parts = self.follower.at(version)
        spark = df.sparkSession
        sent = ship(parts.plans, spark, gone=parts.gone, folder=self.plans, beside_driver=True, store=self.store)
        shipped = Shipped.of(sent, parts.plans)
        self._missing(df, shipped)
        done = self._written(self._matched(df, shipped), query, batch, version)
        facts = {"version": version, "plan_bytes": sent.bytes}
        facts["subscriptions"] = sum(map(len, parts.plans)) - len(parts.gone)
        self.metrics.batch(batch, time.perf_counter() - began, **done, **facts)

    def _missing(self, df: DataFrame, shipped: Shipped) -> None:
        """Say once what subscriptions need and this query does not have: it was not so when the query started."""
        if EVERY in self.streams:
            return
        for stream in [s for s, paths in shipped.needs.items() if paths and s not in self.streams]:
            self._warn(f"query {self.name} does not read stream {stream}: start a query with a frame for it")
        for stream in self.streams if self.json is None else ():
            needs = shipped.reads(stream) - self._seen.get(stream, frozenset())
            if needs:
                self._seen[stream] = shipped.reads(stream)
                for path in absent(_part(df, stream, self.streams), needs):
                    self._warn(
                        f"query {self.name}: the frame of {stream} has no column {path}, which subscriptions need now: "
                        "it counts as missing in every event"
                    )

    def _warn(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            log.warning("%s", text)

    def _written(self, result: DataFrame, query: str, batch: int, version: int) -> dict[str, int]:
        """Matches and errors to their sinks; how many there were, and events. This is what makes Spark do the work."""
        spark, about = result.sparkSession, f"{self.name}: batch {batch}, version {version}"
        if isinstance(self.sink, Notifications) and isinstance(self.errors, Notifications):
            # One job: each costs more than the matching of a small batch.
            _describe(spark, f"{about}, matches and errors to {self.sink.name}")
            return self.sink.take(result, query, batch)
        _describe(spark, f"{about}, matching")
        result = result.persist()
        try:
            done = _account(result)
            matches, bad = split(result.where("id IS NOT NULL"))
            _describe(spark, f"{about}, matches to {self.sink.name}")
            self.sink.write(matches, query, batch)
            if done["errors"]:
                _describe(spark, f"{about}, errors to {self.errors.name}")
                self.errors.write(bad, query, batch)
        finally:
            result.unpersist()
        return done

    def _matched(self, df: DataFrame, shipped: Shipped) -> DataFrame:
        frames = {s: _part(df, s, self.streams) for s in self.streams}
        ids = dict.fromkeys(frames, EVENT)
        return matched(frames, shipped, ids, json=self.json, lenient=True, tally=True)


def _account(result: DataFrame) -> dict[str, int]:
    """How many events, matches and errors a batch has. This is what makes Spark do the matching."""
    tally, bad = fn.col("id").isNull(), fn.col("error").isNotNull()
    counts = {
        "events": fn.when(tally, fn.col("output").cast("bigint")),
        "matches": fn.when(~tally & ~bad, 1),
        "errors": fn.when(bad, 1),
    }
    (row,) = result.agg(*(fn.coalesce(fn.sum(c), fn.lit(0)).alias(n) for n, c in counts.items())).collect()
    return {name: int(row[name]) for name in counts}


def _named(df: DataFrame | Mapping[str, DataFrame], on: str | None, store: Store) -> dict[str, DataFrame]:
    if isinstance(df, Mapping):
        if on is not None or not df:
            raise UsageError("pass {stream: frame}, and no `on` with it", "the keys name the streams")
        if EVERY in df and len(df) > 1:
            raise UsageError('"*" reads every stream, and stands alone', "start a query for each of the two")
        return dict(df)
    if on is not None:
        return {on: df}
    book = store.book()
    known = [s.stream for s in book.streams.values() if s.declared] or list({book[n].stream for n in book})
    if len(known) != 1:
        raise UsageError("which stream is this?", f"say on= one of {', '.join(known)}" if known else "say on=")
    return {known[0]: df}


def _declare(store: Store, frames: Mapping[str, DataFrame], json: str | None) -> None:
    """A stream that nobody has declared or used has the columns of its frame: later mistakes are found when made."""
    book = store.book()
    for stream, frame in frames.items():
        used = any(book[name].stream == stream for name in book)
        if json is None and stream not in book.streams and not used and stream != EVERY:
            store.stream(stream, Schema.from_spark(stream, frame.schema))


def _identified(df: DataFrame, event_id: EventId) -> DataFrame:
    return df.select(event_column(df, event_id).alias(EVENT), "*")


def _union(frames: Mapping[str, DataFrame]) -> DataFrame:
    """Several streams in one frame: each row has the columns of its stream in a struct, and the others null."""
    if len(frames) == 1:
        return next(iter(frames.values()))
    parts = []
    for stream, frame in frames.items():
        columns = [fn.struct(*(f"`{c}`" for c in frame.columns if c != EVENT)).alias(_PART.format(stream))]
        parts.append(frame.select(fn.lit(stream).alias(STREAM), fn.col(EVENT).cast("string").alias(EVENT), *columns))
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), parts)


def _part(df: DataFrame, stream: str, streams: tuple[str, ...]) -> DataFrame:
    if len(streams) == 1:
        return df
    return df.where(fn.col(STREAM) == stream).select(EVENT, f"`{_PART.format(stream)}`.*")


def _describe(spark: SparkSession, text: str) -> None:
    """What the Spark UI shows beside the jobs that follow."""
    if not is_connect(spark):
        spark.sparkContext.setJobDescription(text)
