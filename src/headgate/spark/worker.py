"""What runs in Spark's Python workers: batches of selected columns in, rows of matches out.

A `Matching` is pickled into the task: it names a plan and never holds one. Small batches are gathered before they are
matched, because the engine is the faster the more events it sees at once; the matches do not depend on the cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import EventError
from headgate.runtime.batches import NOWHERE, BatchMatcher, EventBatch
from headgate.runtime.gc_freeze import freeze_long_lived
from headgate.spark import learned
from headgate.spark.batch_report import tally_table
from headgate.spark.frame import EVERY, STREAM
from headgate.spark.ship import Shipment, obtain

BATCH_ROWS = 65_536
BATCH_BYTES = 64 << 20
_TEXT: Any = pa.string()
COUNTS = pa.schema([("stream", _TEXT), ("subscription", _TEXT), ("error", _TEXT), ("count", pa.int64())])
_MERGED_ROWS = 1_000_000


@dataclass(frozen=True)
class Matching:
    """The function for `mapInArrow`: one stream against the plan of a shipment."""

    shipment: Shipment
    stream: str
    counting: bool
    error_rows: bool
    """Whether problems become rows; if not, the first one fails the task."""
    tally: bool = False
    """Whether each task ends with a row that says the number of its events; then problems become rows too."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = obtain(self.shipment)
        matcher = cache(lambda stream: BatchMatcher(stream, plan))
        parts = ((matcher(s), t) for table in gathered(batches) for s, t in parts_of(table, self.stream))
        rows = _summed(self._counts(*part) for part in parts) if self.counting else self._rows(parts)
        for table in rows:
            yield from table.to_batches()
        learned.share(plan, self.shipment.operators, self.shipment.folder)
        freeze_long_lived()

    def _rows(self, parts: Iterator[tuple[BatchMatcher, pa.Table]]) -> Iterator[pa.Table]:
        events, kind = 0, None
        for matcher, table in parts:
            batch = matcher.decode(table)
            rows = matcher.rows(batch) if self.error_rows else matcher.matches(batch)
            self._check(batch)
            yield rows
            events, kind = events + len(table), batch.ids.type
        if self.tally and kind is not None:
            yield tally_table({"events": events}, kind)

    def _counts(self, matcher: BatchMatcher, table: pa.Table) -> pa.Table:
        batch = matcher.decode(table)
        found = matcher.counts(batch)
        counted = _counts(batch.stream, found.column("subscription"), None, found.column("count"))
        self._check(batch)
        codes = Counter(p.code for p in batch.problems.listed())
        errors = _counts(batch.stream, None, pa.array(list(codes), _TEXT), pa.array(list(codes.values()), pa.int64()))
        return pa.concat_tables([counted, errors])

    def _check(self, batch: EventBatch) -> None:
        if self.error_rows or not len(batch.problems):
            return
        first, *others = batch.problems.listed()
        more = f" (and {len(others)} more)" if others else ""
        raise EventError(
            f"event {batch.ids[first.event].as_py()!r} of stream {batch.stream}: {first.said}{more}",
            'errors="rows" matches the others',
        )


def parts_of(table: pa.Table, stream: str) -> Iterator[tuple[str, pa.Table]]:
    """The events of each stream, where a frame has those of all."""
    if stream != EVERY:
        yield stream, table
        return
    named = table.column(STREAM)
    for name in pc.unique(named).to_pylist():
        if name is not None:
            yield name, table.filter(pc.equal(named, name)).drop_columns([STREAM])
    nameless = table.filter(pc.is_null(named)).drop_columns([STREAM])
    if len(nameless):
        yield NOWHERE, nameless


def gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches joined to a size that the engine likes."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if held and (rows + batch.num_rows > BATCH_ROWS or size + batch.nbytes > BATCH_BYTES):
            yield pa.Table.from_batches(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows += batch.num_rows
        size += batch.nbytes
    if rows:
        yield pa.Table.from_batches(held)


def _counts(stream: str, subscription: Any, error: Any, count: Any) -> pa.Table:
    none = pa.nulls(len(count), _TEXT)
    names = pa.repeat(pa.scalar(stream, _TEXT), len(count))
    columns = [names, none if subscription is None else subscription, none if error is None else error, count]
    return pa.table(columns, schema=COUNTS)


def _summed(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The counts of a whole task: what goes on to Spark grows with the subscriptions and not with the events."""
    held: list[pa.Table] = []
    for table in tables:
        held.append(table)
        if sum(map(len, held)) > _MERGED_ROWS:
            held = [_sum(held)]
    if held:
        yield _sum(held)


def _sum(tables: Sequence[pa.Table]) -> pa.Table:
    keys = ["stream", "subscription", "error"]
    made = pa.concat_tables(tables).group_by(keys).aggregate([("count", "sum")])
    return made.rename_columns([*keys, "count"]).select(COUNTS.names)
