"""What the stateless pass does where there are sequences: it matches, and sends to the buckets what they must know.

Each row is for one bucket: events for a group, the latest time of a stream, or matches and errors that are done. These
last ride along, packed, because a query has one output; they cost their bytes and nothing per row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from pyspark import TaskContext

from headgate.errors import EventError, PlanError
from headgate.plan.sequence_book import SequenceBook
from headgate.results import row_schema
from headgate.runtime.batches import BatchMatcher
from headgate.runtime.gc_freeze import freeze_long_lived
from headgate.runtime.stateful.packing import ROWS, TICK, Sent, from_bytes, to_bytes
from headgate.runtime.stateful.route import Tally, to_buckets
from headgate.spark.batch_report import tally_table
from headgate.spark.learned import share
from headgate.spark.ship import Shipment, obtain, obtain_sequences
from headgate.spark.versions import Following
from headgate.spark.worker import gathered, parts_of

Source = Shipment | Following
"""A plan: the same for ever, or that of the batch."""
_FIELDS: list[tuple[str, Any]] = [
    ("bucket", pa.int32()),
    ("kind", pa.string()),
    ("stream", pa.string()),
    ("grp", pa.string()),
    ("latest", pa.int64()),
    ("payload", pa.binary()),
]
SENT = pa.schema(_FIELDS)
SENT_DDL = "bucket int, kind string, stream string, grp string, latest bigint, payload binary"


def shipment_of(source: Source) -> Shipment:
    return source.now() if isinstance(source, Following) else source


def book_of(shipment: Shipment, buckets: int) -> SequenceBook | None:
    """The sequences of a shipment, opened once in this process; None where it has none."""
    if shipment.sequences is None:
        return None
    book = obtain_sequences(shipment)
    if book.buckets != buckets:
        raise PlanError(f"the plan is for {book.buckets} buckets, and the query has {buckets}")
    return book


@dataclass(frozen=True)
class Routing:
    """The function for `mapInArrow`: one stream through the filters, and on to the buckets."""

    source: Source
    stream: str
    buckets: int

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shipment = shipment_of(self.source)
        plan = obtain(shipment)
        book = book_of(shipment, self.buckets)

        @cache
        def matcher(stream: str) -> BatchMatcher:
            return BatchMatcher(stream, plan, frozenset() if book is None else book.needs(stream))

        tally = Tally()
        context = TaskContext.get()
        home = (context.partitionId() if context is not None else 0) % self.buckets
        kind: Any = pa.string()
        for stream, given in (part for table in gathered(batches) for part in parts_of(table, self.stream)):
            events = matcher(stream).decode(given)
            kind = events.ids.type
            tally.events += len(given)
            tally.bytes_read += given.nbytes
            rows = list(to_buckets(events, book, tally)) if book is not None else []
            found = matcher(stream).rows(events)
            if len(found):
                rows.append(Sent(ROWS, payload=to_bytes(found), bucket=home))
            yield _rows(rows)
        if tally.events:
            rows = [Sent(ROWS, payload=to_bytes(tally_table(tally.said(), kind)), bucket=home)]
            for stream, latest in tally.latest.items():
                rows += [Sent(TICK, stream, latest=latest, bucket=bucket) for bucket in range(self.buckets)]
            yield _rows(rows)
        share(plan, shipment.operators, shipment.folder)
        freeze_long_lived()


def _rows(rows: list[Sent]) -> pa.RecordBatch:
    made = [
        {
            "bucket": s.bucket,
            "kind": s.kind,
            "stream": s.stream,
            "grp": s.group,
            "latest": s.latest,
            "payload": s.payload,
        }
        for s in rows
    ]
    return pa.RecordBatch.from_pylist(made, SENT)


@dataclass(frozen=True)
class Unpack:
    """The function for `mapInArrow` behind the step: packed tables to rows."""

    event: Any
    """The Arrow type of event ids."""
    error_rows: bool
    tally: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = row_schema(self.event)
        for batch in batches:
            packed: list[Any] = batch.column(0).to_pylist()
            for data in packed:
                yield from result(from_bytes(data).cast(schema), self.error_rows, self.tally).to_batches()


def result(table: pa.Table, error_rows: bool, tally: bool) -> pa.Table:
    """The rows as the user wants them."""
    if not tally:
        table = table.filter(table.column("id").is_valid())
    if error_rows:
        return table
    bad = table.filter(table.column("error").is_valid()).slice(0, 1).to_pylist()
    if bad:
        raise EventError(
            f"event {bad[0]['event']!r} of stream {bad[0]['stream']}: {bad[0]['error']['reason']}",
            'errors="rows" matches the others',
        )
    return table.drop_columns(["error"])
