"""The stateful step as a Spark operator: `transformWithState` on a stream, `applyInArrow` on a batch, one core in both.

    frames -> the stateless pass, which sends to buckets -> one shuffle by bucket -> this step -> rows

A worker process remembers the buckets that it has worked on. The stamp in the head of the state tells whether what it
remembers is what was committed: after a failure, or when another process did the last batch, the pages are read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import StructType

from headgate.errors import UsageError
from headgate.results import row_schema
from headgate.runtime.batches import EVENT
from headgate.runtime.gc_freeze import freeze_long_lived
from headgate.runtime.stateful.buckets import Bucket
from headgate.runtime.stateful.packing import ROWS, Sent, from_bytes, to_bytes
from headgate.runtime.stateful.state_storage import HEAD, InMemory
from headgate.runtime.stateful.watermark import Timing
from headgate.spark.batch_report import tally_table
from headgate.spark.session import DEFAULTS
from headgate.spark.stateful.rebucketed_files import dealt
from headgate.spark.stateful.tasks import SENT_DDL, Routing, Source, Unpack, book_of, result, shipment_of

_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_REMEMBERED = 512
_remembered: OrderedDict[tuple[str, int], Bucket] = OrderedDict()


@dataclass(frozen=True)
class Stateful:
    """The settings of the step. `token` names this query among those of a worker process."""

    source: Source
    timing: Timing
    buckets: int
    token: str
    checkpoint: str = ""
    generation: int = 0
    """How often the state in the checkpoint was dealt out anew; what was dealt is read from there."""


def routed(frames: Mapping[str, DataFrame], step: Stateful) -> DataFrame:
    """The stateless pass of every stream; the frames have `EVENT` and the columns that are needed."""
    if len({frame.schema[EVENT].dataType for frame in frames.values()}) > 1:
        frames = {s: f.withColumn(EVENT, fn.col(EVENT).cast("string")) for s, f in frames.items()}
    parts = [f.mapInArrow(Routing(step.source, s, step.buckets), SENT_DDL) for s, f in frames.items()]
    return reduce(DataFrame.union, parts)


def on_stream(
    frames: Mapping[str, DataFrame], step: Stateful, schema: StructType, *, errors: bool, tally: bool
) -> DataFrame:
    """The frame of matches of a stream; `schema` is that of the result."""
    sent = routed(frames, step)
    require_rocksdb(sent)
    mode = "None" if step.timing.idle is None else "ProcessingTime"
    packed = sent.groupBy("bucket").transformWithState(Processor(step), "payload binary", "Append", mode)
    return packed.mapInArrow(Unpack(to_arrow_type(schema["event"].dataType), errors, tally), schema)


def on_batch(frames: Mapping[str, DataFrame], step: Stateful, schema: StructType, *, errors: bool) -> DataFrame:
    event = to_arrow_type(schema["event"].dataType)

    def one(table: pa.Table) -> pa.Table:
        return _whole(table, step, event, errors)

    return routed(frames, step).groupBy("bucket").applyInArrow(one, schema)


def require_rocksdb(df: DataFrame) -> None:
    found = df.sparkSession.conf.get(_PROVIDER, "") or ""
    if "RocksDB" not in found:
        raise UsageError(
            "sequences keep their state in RocksDB, and this session has another state store",
            f"set {_PROVIDER} to {DEFAULTS[_PROVIDER]}; headgate.spark.spark_session does",
        )


def _whole(table: pa.Table, step: Stateful, event: Any, errors: bool) -> pa.Table:
    """A bucket of a batch: all its events at once."""
    rows = table.drop_columns(["bucket"]).to_pylist()
    sent = [Sent(r["kind"], r["stream"], r["grp"], r["latest"], r["payload"]) for r in rows]
    done = [from_bytes(s.payload) for s in sent if s.kind == ROWS]
    book = book_of(shipment_of(step.source), step.buckets)
    bucket = Bucket(table.column("bucket")[0].as_py(), step.buckets)
    done += bucket.advance(book, (s for s in sent if s.kind != ROWS), step.timing, InMemory(), final=True).tables
    freeze_long_lived()
    empty = row_schema(event).empty_table()
    return result(pa.concat_tables([empty, *(t.cast(empty.schema) for t in done)]), errors, tally=False)


class Processor(StatefulProcessor):
    """Pickled into the tasks; its states are those of the bucket at hand."""

    def __init__(self, step: Stateful) -> None:
        self._step = step

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._kept = InState(handle)

    def handleInputRows(self, key: Any, rows: Any, timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - the names are Spark's
        sent = []
        for r in rows:
            if r.kind == ROWS:
                yield Row(payload=bytes(r.payload))
            else:
                sent.append(Sent(r.kind, r.stream, r.grp, r.latest, bytes(r.payload or b"")))
        if sent:
            yield from self._advance(int(key[0]), sent, timerValues.getCurrentProcessingTimeInMs())

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[Row]:  # noqa: N802, N803 - as above
        if int(key[0]) < self._step.buckets:
            yield from self._advance(int(key[0]), [], timerValues.getCurrentProcessingTimeInMs())

    def close(self) -> None:
        freeze_long_lived()

    def _advance(self, number: int, sent: list[Sent], now: int) -> Iterator[Row]:
        step = self._step
        book = book_of(shipment_of(step.source), step.buckets)
        bucket = self._bucket(number)
        timing = step.timing if book is None else step.timing.over(book.timed)
        outcome = bucket.advance(book, sent, timing, self._kept, now)
        self._alarm(bucket, now)
        bucket.write_head(self._kept)
        _remembered[step.token, number] = bucket
        while len(_remembered) > _REMEMBERED:
            _remembered.popitem(last=False)
        for table in outcome.tables:
            yield Row(payload=to_bytes(table))
        said = bucket.report(outcome, timing, now)
        if said:
            yield Row(payload=to_bytes(tally_table(said, pa.string())))

    def _bucket(self, number: int) -> Bucket:
        """What this process remembers if it is what was committed. It is forgotten until the batch is through."""
        step, head = self._step, orjson.loads(self._kept.get(HEAD) or b"{}")
        known = _remembered.pop((step.token, number), None)
        if known is not None and known.stamp == head.get("stamp"):
            return known
        if head.get("generation", 0) < step.generation:
            self._kept.replace(dealt(step.checkpoint, step.generation, number))
        return Bucket.load(number, step.buckets, self._kept, step.generation)

    def _alarm(self, bucket: Bucket, now: int) -> None:
        """Sees to it that this bucket is asked again when nothing comes."""
        idle = self._step.timing.idle
        if idle is not None and (bucket.alarm is None or bucket.alarm <= now):
            bucket.alarm = now + idle
            self._handle.registerTimer(bucket.alarm)


class InState:
    """The bytes of a bucket in Spark's state store."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._head = handle.getValueState("head", "data binary")
        names = {"page": "pages", "waiting": "waiting"}
        self._maps = {kind: handle.getMapState(name, "name string", "data binary") for kind, name in names.items()}

    def replace(self, other: InMemory) -> None:
        """Nothing of what is there stays."""
        self._head.clear()
        for state in self._maps.values():
            state.clear()
        for name, data in other.items():
            self.put(name, data)

    def get(self, name: str, /) -> bytes | None:
        kind, _, key = name.partition(" ")
        found = self._head.get() if name == HEAD else self._maps[kind].getValue((key,))
        return None if found is None else bytes(found[0])

    def put(self, name: str, data: bytes | None) -> None:
        kind, _, key = name.partition(" ")
        if name == HEAD:
            self._head.update((data,))
        elif data is None:
            self._maps[kind].removeKey((key,))
        else:
            self._maps[kind].updateValue((key,), (data,))
