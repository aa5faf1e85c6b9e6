"""What runs in Spark's Python workers: batches of selected columns in, rows of matches out.

A `Matching` is pickled into the task: it names plans and never holds one. Small batches are gathered before they are
matched, because the engine is the faster the more events it sees at once; the matches do not depend on the cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import EventError
from headgate.events import DEFAULT_LIMITS, Decoded, Rejected, decode, read_json_lines
from headgate.plan import Plan, identity
from headgate.schema import Path, Schema
from headgate.spark import learned
from headgate.spark.frame import BODY, EVENT, EVERY, STREAM
from headgate.spark.gc_freeze import freeze_long_lived
from headgate.spark.ship import Shipment, obtain

if TYPE_CHECKING:
    from headgate.columns import Array

BATCH_ROWS = 65_536
BATCH_BYTES = 64 << 20
ERROR = pa.struct([("code", pa.string()), ("reason", pa.string()), ("event", pa.string())])
_TEXT: Any = pa.string()
COUNTS = pa.schema([("stream", _TEXT), ("subscription", _TEXT), ("error", _TEXT), ("count", pa.int64())])
_MERGED_ROWS = 1_000_000
NOWHERE = ""
"""The stream of events that name none: each is an error."""


@dataclass(frozen=True)
class Matching:
    """The function for `mapInArrow`: one stream against the plans of a shipment."""

    shipment: Shipment
    stream: str
    counting: bool
    error_rows: bool
    """Whether events that cannot be used become rows; if not, the first one fails the task."""
    tally: bool = False
    """Whether each task ends with a row that has no id, and in `output` the number of its events."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plans, gone = obtain(self.shipment)
        prepared = cache(lambda stream: Prepared(stream, plans, gone))
        parts = ((prepared(s), t) for table in gathered(batches) for s, t in parts_of(table, self.stream))
        for found in _summed(self._one(*part) for part in parts) if self.counting else self._rows(parts):
            yield from found.to_batches()
        learned.share(plans, self.shipment.operators, self.shipment.folder)
        freeze_long_lived()

    def _rows(self, parts: Iterator[tuple[Prepared, pa.Table]]) -> Iterator[pa.Table]:
        events, schema = 0, None
        for prepared, table in parts:
            found = self._one(prepared, table)
            events, schema = events + len(table), found.schema
            yield found
        if self.tally and schema is not None:
            row = {**dict.fromkeys(schema.names), "stream": self.stream, "output": str(events)}
            yield pa.Table.from_pylist([row], schema)

    def _one(self, prepared: Prepared, table: pa.Table) -> pa.Table:
        events = Events.of(table, prepared)
        found = prepared.counts(events) if self.counting else prepared.matches(events)
        if events.rejected and not self.error_rows:
            first = events.rejected[0]
            more = f" (and {len(events.rejected) - 1} more)" if len(events.rejected) > 1 else ""
            shown = events.ids[first.row].as_py()
            raise EventError(
                f"event {shown!r} of stream {prepared.stream}: {first.reason}{more}", 'errors="rows" matches the others'
            )
        if self.counting:
            return pa.concat_tables([found, events.error_counts()])
        if not self.error_rows:
            return found
        found = found.append_column("error", pa.nulls(len(found), ERROR))
        return pa.concat_tables([found, events.error_rows(found.schema)]) if events.rejected else found


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


class Prepared:
    """The plans of a task, and what must be decoded for all of them together."""

    def __init__(
        self, stream: str, plans: Sequence[Plan], gone: Array | None, more: frozenset[Path] = frozenset()
    ) -> None:
        """`more` is what somebody else needs of the events."""
        self.stream = stream
        self._plans = plans
        self._gone = gone
        self.schema: Schema = plans[-1].schemas.get(stream) or Schema(stream, {}, declared=False)
        self.needs: frozenset[Path] = frozenset().union(*(p.needs(stream) for p in plans), self.schema.time, more)

    def _found(self, events: Events, output: str) -> Iterator[pa.Table]:
        """The last plan is the newest: what is gone from the others may live in it."""
        if not events.decoded.columns.rows:
            return
        for number, plan in enumerate(self._plans):
            if self.stream not in plan.schemas:
                continue
            table, failed = plan.match({self.stream: events.decoded.columns}, output=output, errors="collect")
            events.failed(failed)
            if self._gone is not None and number < len(self._plans) - 1:
                table = table.filter(pc.invert(pc.is_in(table.column("subscription"), self._gone)))
            yield table

    def matches(self, events: Events) -> pa.Table:
        fields = [
            pa.field("id", pa.string()),
            pa.field("stream", pa.string()),
            pa.field("event", events.ids.type),
            pa.field("subscription", pa.string()),
            pa.field("output", pa.string()),
            pa.field("labels", pa.string()),
        ]
        tables = []
        for table in self._found(events, "matches"):
            rows = events.decoded.rows[table.column("event").to_numpy()]
            at = table.schema.get_field_index("event")
            tables.append(table.set_column(at, "event", pa.chunked_array([events.ids.take(rows)])))
        schema = pa.schema(fields)
        return pa.concat_tables([t.cast(schema) for t in tables]) if tables else schema.empty_table()

    def counts(self, events: Events) -> pa.Table:
        tables = [
            pa.table(
                [
                    pa.repeat(pa.scalar(self.stream, pa.string()), len(table)),
                    table.column("subscription"),
                    pa.nulls(len(table), pa.string()),
                    table.column("count"),
                ],
                schema=COUNTS,
            )
            for table in self._found(events, "counts")
        ]
        return pa.concat_tables(tables) if tables else COUNTS.empty_table()


@dataclass(frozen=True)
class Events:
    """A batch decoded, with the ids of its events beside it."""

    stream: str
    ids: Array
    decoded: Decoded
    rejected: list[Rejected]

    @classmethod
    def of(cls, table: pa.Table, prepared: Prepared) -> Events:
        ids = _whole(table.column(EVENT))
        decoded = (
            _json(table, prepared) if BODY in table.column_names else decode(table, prepared.schema, prepared.needs)
        )
        nameless = pc.is_null(ids).to_numpy(zero_copy_only=False)
        rejected = [r for r in decoded.rejected if not nameless[r.row]]
        if prepared.stream == NOWHERE:
            rejected = [_lost(int(row), table) for row in np.flatnonzero(~nameless)]
        if nameless.any():
            rejected += [_nameless(int(row), prepared.stream, table) for row in np.flatnonzero(nameless)]
            keep = ~nameless[decoded.rows]
            decoded = Decoded(decoded.columns.take(np.flatnonzero(keep)), (), decoded.rows[keep])
        named = replace(decoded.columns, first=0, identity=texts(ids.take(decoded.rows)))
        return cls(prepared.stream, ids, replace(decoded, columns=named), rejected)

    def failed(self, errors: pa.Table) -> None:
        """What an operator or a graph could not decide; the rows of these errors are those of `decoded`. An error that
        several plans found in one event is one."""
        known = {(r.row, r.code, r.reason) for r in self.rejected} if len(errors) else set()
        for e in errors.to_pylist():
            row = int(self.decoded.rows[e["event"]])
            if (row, e["code"], e["reason"]) not in known:
                self.rejected.append(Rejected(row, e["reason"], e["code"], e["text"], self.stream))

    def error_rows(self, schema: pa.Schema) -> pa.Table:
        """One row for each event that cannot be used; its id is as lasting as that of a match."""
        rows = pa.array([r.row for r in self.rejected], pa.int64())
        ids = self.ids.take(rows)
        # An event without an id is told from the others by its text; one event may have several errors.
        named = [t if t is not None else r.event for t, r in zip(texts(ids).to_pylist(), self.rejected, strict=True)]
        seeds = [f"{name}\0{r.code}\0{r.reason}" for name, r in zip(named, self.rejected, strict=True)]
        words = identity.hashes(seeds)
        sender = np.repeat(identity.hashes([f"error of {self.stream}"]), len(words), axis=0)
        errors = [{"code": r.code, "reason": r.reason, "event": r.event} for r in self.rejected]
        none = pa.nulls(len(rows), pa.string())
        stream = pa.repeat(pa.scalar(self.stream, pa.string()), len(rows))
        columns = [
            identity.text(identity.combine(sender, words)),
            stream,
            ids,
            none,
            none,
            none,
            pa.array(errors, ERROR),
        ]
        return pa.table(columns, schema=schema)

    def error_counts(self) -> pa.Table:
        if not self.rejected:
            return COUNTS.empty_table()
        codes = [r.code for r in self.rejected]
        ones = pa.array(np.ones(len(codes), np.int64))
        stream = pa.repeat(pa.scalar(self.stream, pa.string()), len(codes))
        return pa.table([stream, pa.nulls(len(codes), pa.string()), pa.array(codes, pa.string()), ones], schema=COUNTS)


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


def texts(ids: Array) -> Array:
    """Event ids of any type as texts, the same text for the same id everywhere."""
    kind = ids.type
    if pa.types.is_string(kind):
        return ids
    if pa.types.is_timestamp(kind):
        return ids.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).cast(pa.string())
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        made = [None if value is None else _text(value) for value in ids.to_pylist()]
        return pa.array(made, pa.string())
    return ids.cast(pa.string())


def _text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    return orjson.dumps(value, default=lambda v: v.hex() if isinstance(v, bytes) else str(v)).decode()


def _json(table: pa.Table, prepared: Prepared) -> Decoded:
    """Events that are JSON texts: a text that is none is kept whole in its error."""
    bodies = _whole(table.column(BODY)).to_pylist()
    raws = [b"null" if b is None else b.encode() if isinstance(b, str) else b for b in bodies]
    # The batch has its size already: one part, so that rows keep their numbers.
    limits = replace(DEFAULT_LIMITS, batch_rows=len(raws) + 1, batch_bytes=1 << 62)
    (part,) = read_json_lines(raws, prepared.schema, prepared.needs, limits=limits)
    rejected = (
        replace(r, reason=_unnumbered(r.reason), event=raws[r.row].decode("utf-8", "replace")) for r in part.rejected
    )
    return replace(part, rejected=tuple(rejected))


def _unnumbered(reason: str) -> str:
    """Without `event 12: `, which is a place in the batch and means nothing outside it."""
    head, colon, rest = reason.partition(": ")
    return rest if colon and head.startswith("event ") and head[6:].isdigit() else reason


def _nameless(row: int, stream: str, table: pa.Table) -> Rejected:
    return Rejected(row, "the event has no id: its id column is null", "event_id", _shown(row, table), stream)


def _shown(row: int, table: pa.Table) -> str:
    return orjson.dumps(table.slice(row, 1).drop_columns([EVENT]).to_pylist()[0], default=str).decode()


def _lost(row: int, table: pa.Table) -> Rejected:
    return Rejected(row, "the event names no stream", "stream", _shown(row, table), NOWHERE)


def _whole(column: Any) -> Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)


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
