"""`format("headgate")`: the logs of a store as a Spark data source.

    spark.readStream.format("headgate").option("store", url).option("stream", "stock").load()    # the event log
    spark.read.format("headgate").option("store", url).option("table", "notifications").load()
    matches.writeStream.format("headgate").option("store", url)                                  # notifications

Reading a stream follows the event log by its ids: `id` is the event's lasting id, `body` its JSON text. Options:
`store` (required), `table` (events, notifications or errors), `stream`, `maxEventsPerTrigger`, `startingOffsets`
(earliest, latest, or the id of the event to begin after), `eventsPerPartition`. Writing takes the frame of `match`: tasks
stage their rows in the store, and one transaction makes a whole micro-batch visible; a match that is there already
stays, so that each is there once.
"""

# ruff: noqa: N802, N803 - Spark calls these methods and names them and their arguments
from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headgate.errors import EnvironmentProblem, SchemaError, UsageError
from headgate.language.catalogue import nearest
from headgate.store.database import Database
from headgate.store.logs import Logs, staged

EVENTS = "id bigint, stream string, body string, at timestamp"
_NOTICE = "seq bigint, id string, stream string, event string"
TABLES = {
    "events": EVENTS,
    "notifications": f"{_NOTICE}, subscription string, output string, labels string, at timestamp",
    "errors": f"{_NOTICE}, subscriptions array<string>, concerned bigint, code string, reason string, text string, "
    "at timestamp",
}
OPTIONS = ("store", "table", "stream", "maxEventsPerTrigger", "startingOffsets", "eventsPerPartition")
_FIRST, _PAGE = "id", 10_000


class HeadgateSource(DataSource):
    """The data source; Spark gives it its options."""

    @classmethod
    def name(cls) -> str:
        return "headgate"

    def _logs(self) -> Logs:
        for given in self.options:
            # Spark adds what the frame was loaded from; options are compared without case.
            if given.lower() not in {o.lower() for o in OPTIONS} and given.lower() not in (
                "path",
                "checkpointlocation",
            ):
                raise UsageError(f'format("headgate") has no option {given}', nearest(given, OPTIONS, ""))
        if not self.options.get("store"):
            raise UsageError('format("headgate") needs the option store', "a path, or postgresql://...")
        return Logs(Database(str(self.options["store"])))

    def _table(self) -> str:
        table = str(self.options.get("table", "events"))
        if table not in TABLES:
            raise UsageError(f"the store has no table {table}", f"it has {', '.join(TABLES)}")
        return table

    def _number(self, option: str, default: int) -> int:
        text = str(self.options.get(option, default))
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"{option} = {text!r} must be a number from 1 on")
        return int(text)

    def schema(self) -> str:
        return TABLES[self._table()]

    def reader(self, schema: StructType) -> DataSourceReader:
        return TableReader(self._logs(), self._table(), self.options.get("stream"))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        if self._table() != "events":
            raise UsageError(f"the table {self._table()} cannot be read as a stream", "read it as a batch")
        starting = str(self.options.get("startingOffsets", "earliest"))
        if starting not in ("earliest", "latest") and not starting.isdecimal():
            raise UsageError(
                f"startingOffsets = {starting!r} is unknown", "choose earliest, latest, or the id of an event"
            )
        most = self._number("maxEventsPerTrigger", 0) if "maxEventsPerTrigger" in self.options else None
        share = self._number("eventsPerPartition", 100_000)
        first = None if starting == "latest" else int(starting) if starting.isdecimal() else 0
        return EventReader(self._logs(), self.options.get("stream"), most, first, share)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        if overwrite:
            raise UsageError("notifications are added, never overwritten", 'write with mode("append")')
        return BatchWriter(self._logs(), schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:
        return StreamWriter(self._logs(), schema)


@dataclass
class Range(InputPartition):
    """The events after `since`, up to and with `until`."""

    since: int
    until: int


class EventReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The event log as a stream. An offset is the id of the last event that is in."""

    def __init__(self, logs: Logs, stream: str | None, most: int | None, first: int | None, share: int) -> None:
        self._logs = logs
        self._stream = stream
        self._most = most
        self._begin = first
        self._share = share
        self._target: int | None = None

    def initialOffset(self) -> dict[str, int]:
        return {_FIRST: self._logs.last() if self._begin is None else self._begin}

    def getDefaultReadLimit(self) -> ReadLimit:
        return ReadAllAvailable() if self._most is None else ReadMaxRows(self._most)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._logs.last()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:
        since = start[_FIRST]
        last = self._logs.until(since, limit.max_rows) if isinstance(limit, ReadMaxRows) else self._logs.last()
        if last <= since and since > (end := self._logs.last()):
            raise EnvironmentProblem(
                f"this query has read event {since}, and the log of its store ends with {end}: it was restored from a backup",
                "restore the checkpoint of the same moment, or begin with a new one",
            )
        if self._target is not None:
            last = min(last, self._target)
        return {_FIRST: max(since, last)}

    def reportLatestOffset(self) -> dict[str, int]:
        return {_FIRST: self._logs.last()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        edges = [*range(start[_FIRST], end[_FIRST], self._share), end[_FIRST]]
        return [Range(a, b) for a, b in pairwise(edges)]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        assert isinstance(partition, Range)
        since = partition.since
        while since < partition.until:
            until = min(since + _PAGE, partition.until)
            for event in self._logs.events(since, until, self._stream):
                yield event.id, event.stream, event.body, _instant(event.at)
            since = until


class TableReader(DataSourceReader):
    """A table of the store as it is now."""

    def __init__(self, logs: Logs, table: str, stream: str | None) -> None:
        self._logs = logs
        self._table = table
        self._stream = stream

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        for row in self._rows():
            *values, at = (getattr(row, name) for name in type(row).__slots__)
            if self._stream is None or row.stream == self._stream:
                yield *values, _instant(at)

    def _rows(self) -> Iterator[Any]:
        logs, since = self._logs, 0
        if self._table == "events":
            last = logs.last()
            while since < last:
                yield from logs.events(since, since + _PAGE)
                since += _PAGE
            return
        ask: Any = logs.notifications if self._table == "notifications" else logs.errors
        while page := ask(since, _PAGE):
            yield from page
            since = page[-1].seq


@dataclass
class Staged(WriterCommitMessage):
    job: str


class Staging:
    """What both writers do: tasks stage their rows, the driver commits. A writer is pickled into its tasks."""

    def __init__(self, logs: Logs, schema: StructType) -> None:
        lost = [name for name in ("id", "stream", "event") if name not in schema.names]
        if lost:
            raise SchemaError(f"the frame has no column {lost[0]}", "write the result of headgate.spark.match")
        self._logs = logs
        self._job = uuid.uuid4().hex

    def stage(self, batches: Iterator[pa.RecordBatch]) -> Staged:
        for batch in batches:
            self._logs.stage(self._job, map(staged, batch.to_pylist()))
        return Staged(self._job)

    def commit(self) -> None:
        self._logs.commit([self._job])

    def abort(self) -> None:
        self._logs.abort([self._job])


class BatchWriter(DataSourceArrowWriter):
    def __init__(self, logs: Logs, schema: StructType) -> None:
        self._staging = Staging(logs, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # as Spark's own Arrow writer differs from its base
        return self._staging.stage(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._staging.commit()

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        self._staging.abort()


class StreamWriter(DataSourceStreamArrowWriter):
    """One writer for a whole query: what its tasks staged since the last commit is the micro-batch."""

    def __init__(self, logs: Logs, schema: StructType) -> None:
        self._staging = Staging(logs, schema)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # as above
        return self._staging.stage(iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._staging.commit()

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        self._staging.abort()


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
