"""`match`: a frame of events to a frame of matches, on a batch or a stream, in one pass of `mapInArrow`.

The result has the columns of `plan.match`, with the event's own id in place of a row number:

    id, stream, event, subscription, output, labels, error

`error` is null in a match. In a problem (see `results`) it is a struct of `subscriptions` and `concerned` (null and 0
where the event itself is at fault), `code`, `reason` and `text` (of the event): problems travel in the same frame,
because a Spark query has one output and must not lose them. `split` parts the two. With `errors="raise"` the first
problem fails the query and there is no such column.

Sequences run in a stateful step behind the pass (see `stateful`). On a stream `watermark` says how late an event may be.

`output="counts"` gives stream, subscription, error and count; bad events are counted by the code of their error. On a
stream these are running totals: write them in update or complete mode.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from headgate import Plan, Subscriptions, UsageError
from headgate.language.catalogue import nearest
from headgate.plan.sequence_book import SequenceBook
from headgate.results import row_schema
from headgate.runtime.batches import EVENT
from headgate.schema import Path, Schema
from headgate.spark.frame import EVERY, EventId, routed, selected
from headgate.spark.ship import Shipment, ship
from headgate.spark.stateful.settings import BUCKETS, Delay, timing_of
from headgate.spark.stateful.step import Stateful, on_batch, on_stream
from headgate.spark.worker import Matching

OUTPUTS = ("matches", "counts")
ERRORS = ("rows", "raise")
Book = Subscriptions | Plan


@dataclass(frozen=True)
class Shipped:
    """A plan that is with the workers, and what the driver must know of it to ask for matches."""

    shipment: Shipment
    schemas: Mapping[str, Schema]
    needs: Mapping[str, frozenset[Path]]

    @property
    def streams(self) -> tuple[str, ...]:
        return tuple(stream for stream, paths in self.needs.items() if paths) or tuple(self.schemas)

    def schema(self, stream: str) -> Schema:
        """The schema of a stream; an open one where the book does not know it."""
        return self.schemas.get(stream) or Schema(stream, {}, declared=False)

    def reads(self, stream: str) -> frozenset[Path]:
        return self.needs.get(stream, frozenset())

    @classmethod
    def of(cls, shipment: Shipment, plan: Plan, sequences: SequenceBook | None = None) -> Shipped:
        schemas = dict(plan.schemas)
        readers: list[Plan | SequenceBook] = [plan.stateless, *([] if sequences is None else [sequences])]
        return cls(shipment, schemas, {s: frozenset().union(*(r.needs(s) for r in readers)) for s in schemas})


def match(
    df: DataFrame | Mapping[str, DataFrame],
    subs: Book,
    on: str | None = None,
    event_id: EventId | Mapping[str, EventId] = None,
    *,
    output: str = "matches",
    errors: str = "rows",
    json: str | None = None,
    plans: str | None = None,
    watermark: Delay = 0,
    buckets: int = BUCKETS,
) -> DataFrame:
    """The matches of the events of a frame, or of {stream: frame} for several streams.

    `event_id` names what identifies an event for ever: a column, several, or an expression; of any type. A frame read
    from Kafka has its own. With `json` the events are texts in that column, decoded by Headgate, so that a broken one
    is an error row; `on="*"` then takes events of every stream, each with its stream in the column `stream`. `plans` is
    a folder that all hosts see; without it the plan travels through the session.

    `watermark` is how late an event of a stream may come for sequences, as a text such as "5 minutes" or in ticks, or
    {stream: delay}; what comes later is an error row. `buckets` is how many parts the state of sequences has.
    """
    if output not in OUTPUTS:
        raise UsageError(f"output = {output!r} is unknown", f"choose one of {', '.join(OUTPUTS)}")
    if errors not in ERRORS:
        raise UsageError(f"errors = {errors!r} is unknown", f"choose one of {', '.join(ERRORS)}")
    frames = _frames(df, on)
    session = next(iter(frames.values())).sparkSession
    plan = subs.compile_stateless() if isinstance(subs, Subscriptions) else subs
    if not isinstance(plan, Plan):
        raise UsageError(f"cannot match with a {type(subs).__name__}", "pass a book of Subscriptions, or a Plan")
    book = SequenceBook.of(plan, buckets) if plan.living_sequences() else None
    shipped = Shipped.of(ship(plan, session, folder=plans, sequences=book), plan, book)
    named = {_stream(s, shipped): frame for s, frame in frames.items()}
    ids = event_id if isinstance(event_id, Mapping) else dict.fromkeys(named, event_id)
    if book is None:
        return matched(named, shipped, ids, output=output, errors=errors, json=json)
    timing = timing_of(book, named, watermark)
    step = Stateful(shipped.shipment, timing, buckets, uuid.uuid4().hex)
    return sequenced(named, shipped, ids, step, output=output, errors=errors, json=json)


def sequenced(
    frames: Mapping[str, DataFrame],
    shipped: Shipped,
    event_ids: Mapping[str, EventId],
    step: Stateful,
    *,
    output: str,
    errors: str,
    json: str | None,
) -> DataFrame:
    """As `matched`, for a book with sequences."""
    inputs, kinds = _inputs(frames, shipped, event_ids, json)
    schema = matches_schema(kinds.pop() if len(kinds) == 1 else StringType(), errors == "rows")
    if any(frame.isStreaming for frame in inputs.values()):
        if output == "counts":
            raise UsageError("sequences on a stream are not counted", "count the matches where they are written")
        return on_stream(inputs, step, schema, errors=errors == "rows", tally=False)
    whole = on_batch(inputs, step, schema, errors=errors == "rows")
    if output != "counts":
        return whole
    code = fn.col("error.code") if errors == "rows" else fn.lit(None).cast("string")
    summed = whole.groupBy("stream", "subscription", code.alias("error")).agg(fn.count("*").alias("count"))
    return summed if errors == "rows" else summed.drop("error")


def matched(
    frames: Mapping[str, DataFrame],
    shipped: Shipped,
    event_ids: Mapping[str, EventId],
    *,
    output: str = "matches",
    errors: str = "rows",
    json: str | None = None,
    lenient: bool = False,
    tally: bool = False,
) -> DataFrame:
    """As `match`, for a plan that is with the workers; if `lenient`, a column that a frame lacks is null everywhere."""
    inputs, kinds = _inputs(frames, shipped, event_ids, json, lenient)
    counting = output == "counts"
    results = []
    for stream, frame in inputs.items():
        kind = frame.schema[EVENT].dataType
        task = Matching(shipped.shipment, stream, counting, errors == "rows", tally)
        result = frame.mapInArrow(task, counts_schema() if counting else matches_schema(kind, errors == "rows"))
        if len(kinds) > 1 and not counting:
            # Streams with ids of different types meet in text.
            result = result.withColumn("event", fn.col("event").cast("string"))
        results.append(result)
    whole = reduce(DataFrame.unionByName, results)
    if not counting:
        return whole
    summed = whole.groupBy("stream", "subscription", "error").agg(fn.sum("count").alias("count"))
    return summed if errors == "rows" else summed.drop("error")


def _inputs(
    frames: Mapping[str, DataFrame],
    shipped: Shipped,
    event_ids: Mapping[str, EventId],
    json: str | None,
    lenient: bool = False,
) -> tuple[dict[str, DataFrame], set[DataType]]:
    """The columns of each frame that are needed, and the types of their event ids."""
    inputs = {
        stream: routed(frame, event_ids.get(stream), json)
        if stream == EVERY
        else selected(frame, shipped.schema(stream), shipped.reads(stream), event_ids.get(stream), json, lenient)
        for stream, frame in frames.items()
    }
    return inputs, {frame.schema[EVENT].dataType for frame in inputs.values()}


def split(df: DataFrame) -> tuple[DataFrame, DataFrame]:
    """The matches, and the problems: id, stream, event, subscriptions, concerned, code, reason, text."""
    matches = df.where("error IS NULL").drop("error")
    errors = df.where("error IS NOT NULL").select("id", "stream", "event", "error.*")
    return matches, errors


def deduplicated(df: DataFrame) -> DataFrame:
    """Each match once: for readers of a sink that may repeat, such as Kafka. A stream forgets by its watermark."""
    return df.dropDuplicatesWithinWatermark(["id"]) if df.isStreaming else df.dropDuplicates(["id"])


def matches_schema(event: DataType, error_rows: bool) -> StructType:
    kinds = {f.name: from_arrow_type(f.type) for f in row_schema(pa.string())} | {"event": event}
    return StructType([StructField(n, kind) for n, kind in kinds.items() if error_rows or n != "error"])


def counts_schema() -> StructType:
    fields = [StructField(n, StringType()) for n in ("stream", "subscription", "error")]
    return StructType([*fields, StructField("count", LongType())])


def _frames(df: DataFrame | Mapping[str, DataFrame], on: str | None) -> Mapping[str | None, DataFrame]:
    if not isinstance(df, Mapping):
        return {on: df}
    if on is not None:
        raise UsageError("`on` names the stream of one frame", "the keys of the dict name the streams already")
    if not df:
        raise UsageError("there is no frame to match", "pass {stream: frame}")
    frames: dict[str | None, DataFrame] = {}
    frames.update(df.items())
    return frames


def _stream(name: str | None, shipped: Shipped) -> str:
    if name is not None:
        if name not in shipped.schemas and name != EVERY:
            known = ", ".join(shipped.schemas) or "none"
            raise UsageError(f"there is no stream {name}", nearest(name, shipped.schemas, f"the book has: {known}"))
        return name
    if len(shipped.streams) != 1:
        hint = f"say on= one of {', '.join(shipped.streams)}" if shipped.streams else "add a subscription first"
        raise UsageError("which stream is this?" if shipped.streams else "the book is empty", hint)
    return shipped.streams[0]
