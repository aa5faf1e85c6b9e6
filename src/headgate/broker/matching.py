"""Matching the event log: the same step in Spark's workers and in the broker's own process.

A batch of the log holds events of several streams. Each stream is matched with the plans of one version of the book,
and the rows go straight into the notifications of the store: their ids are made of the event and the subscription, so
that a batch that is done again, with the version that it used the first time, adds nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headgate.plan import Plan
from headgate.spark.frame import BODY, EVENT
from headgate.spark.ship import Shipment, obtain
from headgate.spark.source import staged
from headgate.spark.worker import ERROR, Events, Prepared, gathered
from headgate.store.database import Database
from headgate.store.logs import Logs

STREAM = "stream"
TALLY = "events bigint, matches bigint, errors bigint, last bigint"
_ROWS = 20_000
"""Rows written in one transaction: other writers wait no longer than that."""


def found(table: pa.Table, plans: Sequence[Plan], gone: Any) -> Iterator[pa.Table]:
    """The matches and errors of events with the columns of `FRAME`; a table for each stream."""
    for stream in map(str, pc.unique(table.column(STREAM)).to_pylist()):
        part = table.filter(pc.equal(table.column(STREAM), pa.scalar(stream))).drop_columns([STREAM])
        prepared = Prepared(stream, plans, gone)
        events = Events.of(part, prepared)
        matches = prepared.matches(events)
        matches = matches.append_column("error", pa.nulls(len(matches), ERROR))
        yield matches
        if events.rejected:
            yield events.error_rows(matches.schema)


def record(logs: Logs, table: pa.Table, plans: Sequence[Plan], gone: Any) -> dict[str, int]:
    """Match events, write what was found, and count it."""
    counts = {"events": len(table), "matches": 0, "errors": 0, "last": 0}
    if len(table):
        counts["last"] = int(pc.max(table.column(EVENT)).as_py())
    for rows in found(table, plans, gone):
        bad = len(rows) - rows.column("error").null_count
        counts["errors"] += bad
        counts["matches"] += len(rows) - bad
        for start in range(0, len(rows), _ROWS):
            logs.notify(map(staged, rows.slice(start, _ROWS).to_pylist()))
    return counts


@dataclass(frozen=True)
class Recording:
    """In a worker of Spark: `mapInArrow` over the log; one row of counts for a task."""

    shipment: Shipment
    store: str

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plans, gone = obtain(self.shipment)
        logs = Logs(_database(self.store))
        for table in gathered(batches):
            counts = record(logs, table, plans, gone)
            yield pa.record_batch({name: pa.array([value], pa.int64()) for name, value in counts.items()})


@cache
def _database(url: str) -> Database:
    """One for each worker process, which lives on for the next batch."""
    return Database(url)


FRAME = (EVENT, STREAM, BODY)
