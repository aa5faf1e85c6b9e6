"""`start`: a query that matches a stream with the book of a store, and follows the book as it changes.

Spark numbers the batches of a query. At the start of each batch the driver looks up the version of the book, writes
it down under the number of the batch unless one stands there already (the first one wins), makes the plans of that
version ready, and matches the batch with them. So a change takes effect with the first batch that begins after it, and
a batch that is done again after a crash uses the version that it used the first time: with the ids of matches made from
the stable ids of events, it gives the same rows again, and the sinks keep each once (see `sinks`).

Where the book has sequences the matching is part of the query itself, because state is: its tasks look the version up
(see `versions`), and what comes here are rows that are done.

A batch is matched once, however many sinks and actions follow: its rows are kept for them until they are done, because
an operator may cost much and a source may be slow.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StringType

from headgate.errors import UsageError
from headgate.plan.sequence_book import SequenceBook
from headgate.runtime.batches import BODY, EVENT
from headgate.runtime.stateful.buckets import REBUCKET
from headgate.runtime.stateful.watermark import Timing
from headgate.schema import Schema
from headgate.spark.batch import Shipped, matched, matches_schema, split
from headgate.spark.batch_report import account
from headgate.spark.checkpoint import Claim, claim, claimed, must_not_be_ahead
from headgate.spark.follow import Follower
from headgate.spark.frame import EVERY, STREAM, EventId, absent, event_column, routed, selected
from headgate.spark.metrics import Listener, Metrics
from headgate.spark.session import is_connect
from headgate.spark.ship import packed_operators, ship
from headgate.spark.sinks import Each, Notifications, Sink, sink_of
from headgate.spark.stateful.settings import BUCKETS, Delay, timing_of
from headgate.spark.stateful.step import Stateful, on_stream
from headgate.spark.versions import Following, Publisher
from headgate.store import Store

log = logging.getLogger("headgate.spark")

AVAILABLE = "available"
_PART = "__{}"
_PARTITIONS = "spark.sql.shuffle.partitions"
_UNITS = "millisecond|second|minute|hour|day"


@dataclass(frozen=True)
class Running:
    """A query that runs."""

    query: StreamingQuery
    metrics: Metrics
    _listener: Listener | None = field(default=None, repr=False)
    _publisher: Publisher | None = field(default=None, repr=False)

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

    @property
    def published(self) -> int | None:
        """The newest version of the book that the next batch can use, where batches look it up for themselves."""
        return None if self._publisher is None else self._publisher.version

    def _forget(self) -> None:
        if self._publisher is not None:
            self._publisher.stop()
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
    metrics: Metrics | None = None,
    watermark: Delay = 0,
    idle: str | float | None = None,
    buckets: int | None = None,
    ahead: str | int | None = None,
    sequences: bool | Literal["only"] | None = None,
) -> Running:
    """Match a streaming frame, or {stream: frame}, with the book of a store, from now on.

    `sink` and `errors` are sinks: one of `headgate.spark.sinks`, a function of a frame and a batch number, "console",
    "store", or the path of a folder. `checkpoint` is a folder of this query alone. `trigger` is an interval such as
    "5 seconds", or "available" to stop when all that is there has been read. The other arguments are those of `match`.

    A query reads the streams that it was started with. A stream that is declared later needs a query of its own, and this
    one says so in its log; only `on="*"`, over the whole event log of the store, takes up new streams as they come.

    Whether the query keeps state, for sequences, is settled when its checkpoint is new: by the book, or by `sequences`;
    with "only" it matches nothing else. `idle` is how long a stream may be silent before time goes on without it; if all
    are, time goes on with the clock. With `ahead` time never runs ahead of the clock, and events that do, by more than
    this, are errors.
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
    follower = Follower(book)
    plan = follower.at(book.version)
    sequences_now = SequenceBook.of(plan, buckets or BUCKETS)
    stateless = plan.stateless if sequences != "only" else plan.without_segments()
    for stream, frame in frames.items():
        if stream == EVERY:
            routed(frame, ids.get(stream), json)
            continue
        # What is wrong with the frames is said before the query starts.
        reads = stateless.needs(stream) | sequences_now.needs(stream)
        schema = plan.schemas.get(stream) or Schema(stream, {}, declared=False)
        selected(frame, schema, reads, ids.get(stream), json)
    numbers = metrics or Metrics(name)
    spark = next(iter(frames.values())).sparkSession
    streams = tuple(frames)
    stateful = _stateful(spark, str(checkpoint), sequences_now, None if sequences is None else bool(sequences), buckets)
    timing = None
    if stateful:
        if trigger == AVAILABLE and idle is not None:
            raise UsageError("idle= needs a query that goes on", "leave it out, or say another trigger")
        timing = timing_of(sequences_now, frames, watermark, idle, ahead)
    batches = Batches(
        book, sink_of(sink, book), sink_of(errors, book), str(checkpoint), streams, json, name, plans, numbers
    )
    batches.follower = follower
    listener = None
    if not is_connect(spark):
        must_not_be_ahead(str(checkpoint), batches.claimed(buckets=stateful), book.logs)
        listener = Listener(name, numbers)
        spark.streams.addListener(listener)
    if timing is not None:
        batches.publisher = Publisher(
            book, spark, str(checkpoint), plans, follower, stateful, stateless=sequences != "only"
        )
        operators = packed_operators(plan)
        query = batches.claimed().query
        following = Following(book.url, query, batches.checkpoint, operators, sequences != "only", stateful)
        whole = _sequenced(frames, ids, json, batches, timing, stateful, following)
        batches.publisher.publish()
    else:
        whole = _union({s: _identified(f, ids.get(s)) for s, f in frames.items()})
        # Spark's own progress tells how many events a batch has, to whoever listens.
        whole = whole.observe(name, fn.count(fn.lit(1)).alias("events"))
    writer = whole.writeStream.queryName(name).option("checkpointLocation", str(checkpoint)).foreachBatch(batches)
    if trigger is not None:
        writer = writer.trigger(availableNow=True) if trigger == AVAILABLE else writer.trigger(processingTime=trigger)
    with _partitions(spark, stateful):
        running = Running(writer.start(), numbers, listener, batches.publisher)
    if batches.publisher is not None:
        batches.publisher.follow()
    return running


@contextmanager
def _partitions(spark: SparkSession, buckets: int) -> Iterator[None]:
    """A query takes the settings that its session has when it starts, and keeps its partitions: not more than buckets."""
    wanted = spark.conf.get(_PARTITIONS) if buckets else None
    if wanted is None or int(wanted) <= buckets:
        yield
        return
    spark.conf.set(_PARTITIONS, str(buckets))
    try:
        yield
    finally:
        spark.conf.set(_PARTITIONS, wanted)


def _stateful(
    spark: SparkSession, checkpoint: str, book: SequenceBook, wanted: bool | None, buckets: int | None
) -> int:
    """The number of buckets of a query, 0 if it keeps no state: as its checkpoint says, else as it is asked for."""
    if is_connect(spark):
        if book.digests or wanted:
            raise UsageError("a query with sequences does not start over Spark Connect", "start it on the cluster")
        return 0
    known = claimed(checkpoint)
    if known is None:
        return (buckets or BUCKETS) if wanted or (wanted is None and book.digests) else 0
    if known.buckets and buckets not in (None, known.buckets):
        raise UsageError(
            f"the checkpoint {checkpoint} has {known.buckets} buckets, and the query asks for {buckets}",
            f"ask for {known.buckets}, or deal the checkpoint out anew: {REBUCKET}",
        )
    if not known.buckets and book.digests:
        log.warning(
            "the checkpoint %s was begun without state: %d sequences are left out; begin a new one for them",
            checkpoint,
            len(book.digests),
        )
    return known.buckets


def _sequenced(
    frames: Mapping[str, DataFrame],
    ids: Mapping[str, EventId],
    json: str | None,
    batches: Batches,
    timing: Timing,
    buckets: int,
    following: Following,
) -> DataFrame:
    """The query with its state: tasks look up the plans of their batch."""
    inputs = {}
    for stream, frame in frames.items():
        identity = event_column(frame, ids.get(stream)).alias(EVENT)
        if stream == EVERY:
            inputs[stream] = routed(frame, ids.get(stream), json)
        elif json is not None:
            inputs[stream] = frame.select(identity, fn.col(f"`{json}`").alias(BODY))
        else:
            inputs[stream] = frame.select(identity, *(f"`{c}`" for c in frame.columns if c != EVENT))
    kinds = {frame.schema[EVENT].dataType for frame in inputs.values()}
    schema = matches_schema(kinds.pop() if len(kinds) == 1 else StringType(), True)
    step = Stateful(following, timing, buckets, uuid.uuid4().hex, batches.checkpoint, batches.claimed().generation)
    return on_stream(inputs, step, schema, errors=True, tally=True)


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
    metrics: Metrics
    follower: Follower | None = None
    publisher: Publisher | None = None
    """Of a query that keeps state: its batches come matched."""
    _claim: Claim | None = None
    _said: set[str] = field(default_factory=set)
    _seen: dict[str, frozenset[tuple[str, ...]]] = field(default_factory=dict)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_claim": None, "follower": None, "publisher": None}

    def claimed(self, batch: int | None = None, buckets: int = 0) -> Claim:
        if self._claim is None:
            store = self.store.identity
            self._claim = claim(self.checkpoint, store, self.streams, first=batch == 0, buckets=buckets)
        return self._claim

    def __call__(self, df: DataFrame, batch: int) -> None:
        began = time.perf_counter()
        query = self.claimed(batch).query
        if self.publisher is not None:
            self._done(df, batch, began, self.publisher)
            return
        if self.follower is None:
            self.follower = Follower(self.store)
        version = self.store.logs.version_of(query, batch, self.store.version)
        plan = self.follower.at(version)
        sent = ship(plan, df.sparkSession, folder=self.plans, beside_driver=True, store=self.store)
        shipped = Shipped.of(sent, plan)
        self._missing(df, shipped)
        done = self._written(self._matched(df, shipped), query, batch, version)
        facts = {"version": version, "plan_bytes": sent.bytes, "subscriptions": len(plan)}
        self.metrics.batch(batch, time.perf_counter() - began, **done, **facts)

    def _done(self, df: DataFrame, batch: int, began: float, publisher: Publisher) -> None:
        """A batch that comes matched. Spark keeps its rows while this runs, for it has gone through state."""
        done, said = account(df)
        query = self.claimed().query
        version = self.store.logs.recorded(query, batch) or 0
        self._write(df.where("id IS NOT NULL"), query, batch, version, bad=done["errors"] > 0)
        for name, after in said.activated.items():
            log.info("%s: subscription %s counts from batch %d on, for events after %d", self.name, name, batch, after)
        self.metrics.activated.update({name: (batch, after) for name, after in said.activated.items()})
        if said.lost:
            log.info("%s: batch %d, %d runs have ended with their subscriptions", self.name, batch, said.lost)
        totals = {
            "sequence_events_total": self.metrics.numbers.sequence_events_total + said.sent,
            "bytes_saved_total": self.metrics.numbers.bytes_saved_total + said.bytes_saved,
        }
        facts = {"version": version, "plan_bytes": publisher.bytes, "idle_streams": len(said.idle)}
        if said.time is not None:
            facts["watermark"] = said.time
        if publisher.plan is not None:
            facts["subscriptions"] = len(publisher.plan)
        self.metrics.batch(batch, time.perf_counter() - began, **done, **facts, **totals)

    def _write(self, rows: DataFrame, query: str, batch: int, version: int, *, bad: bool) -> None:
        spark, about = rows.sparkSession, f"{self.name}: batch {batch}, version {version}"
        _describe(spark, f"{about}, matches to {self.sink.name}")
        if isinstance(self.sink, Notifications) and isinstance(self.errors, Notifications):
            self.sink.take(rows, query, batch)
            return
        matches, errors = split(rows)
        self.sink.write(matches, query, batch)
        if bad:
            _describe(spark, f"{about}, errors to {self.errors.name}")
            self.errors.write(errors, query, batch)

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
            done, _ = account(result)
            self._write(result.where("id IS NOT NULL"), query, batch, version, bad=done["errors"] > 0)
        finally:
            result.unpersist()
        return done

    def _matched(self, df: DataFrame, shipped: Shipped) -> DataFrame:
        frames = {s: _part(df, s, self.streams) for s in self.streams}
        ids = dict.fromkeys(frames, EVENT)
        return matched(frames, shipped, ids, json=self.json, lenient=True, tally=True)


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
