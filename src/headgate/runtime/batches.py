"""Batches of events that have ids of their own, as Spark and the log of a store bring them, one stream at a time."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headgate.events import Decoded
from headgate.results import Problem, Problems, id_texts, match_schema, problem_rows, with_errors
from headgate.runtime import stateless
from headgate.runtime.book import CompiledBook
from headgate.runtime.decoding import decode_events, decode_json, incomplete, reads
from headgate.runtime.rows import counts_table, table
from headgate.schema import Path, Schema

if TYPE_CHECKING:
    from headgate.columns import Array

EVENT = "__event"
BODY = "__body"
NOWHERE = ""
"""The stream of events that name none: each is a problem."""


@dataclass(frozen=True)
class EventBatch:
    """A batch decoded, with the ids of its events beside it. The problems of events say their rows in `ids`."""

    stream: str
    ids: Array
    decoded: Decoded
    problems: Problems = field(default_factory=Problems)

    def problem_rows(self) -> pa.Table:
        return problem_rows(self.problems.listed(), self.ids)


class BatchMatcher:
    """A book for the events of one stream."""

    def __init__(self, stream: str, book: CompiledBook, more: frozenset[Path] = frozenset()) -> None:
        """`more` is what somebody else needs of the events."""
        self.stream = stream
        self._book = book
        self._schema: Schema = book.schemas.get(stream) or Schema(stream, {}, declared=False)
        self._needs = reads(book, stream).union(self._schema.time, more)

    def decode(self, events: pa.Table) -> EventBatch:
        """`EVENT` has the ids; the attributes are columns, or JSON texts in `BODY`."""
        ids = _joined(events.column(EVENT))
        if BODY in events.column_names:
            decoded = decode_json(_joined(events.column(BODY)).to_pylist(), self._schema, self._needs)
        else:
            decoded = decode_events(events, self._schema, self._needs)
        nameless = pc.is_null(ids).to_numpy(zero_copy_only=False)
        problems = [p for p in decoded.rejected if not nameless[p.event]]
        if self.stream == NOWHERE:
            problems = [
                self._lost(events, row, "stream", "the event names no stream") for row in np.flatnonzero(~nameless)
            ]
        if nameless.any():
            reason = "the event has no id: its id column is null"
            problems += [self._lost(events, row, "event_id", reason) for row in np.flatnonzero(nameless)]
            keep = ~nameless[decoded.rows]
            decoded = Decoded(decoded.columns.take(np.flatnonzero(keep)), (), decoded.rows[keep])
        named = replace(decoded.columns, first=0, identity=id_texts(ids.take(decoded.rows)))
        batch = EventBatch(self.stream, ids, replace(decoded, columns=named))
        batch.problems.add(problems)
        if self.stream in self._book.total_streams:
            batch.problems.add(incomplete(batch.decoded, self._schema))
        return batch

    def _lost(self, events: pa.Table, row: Any, code: str, reason: str) -> Problem:
        event = events.slice(int(row), 1).drop_columns([EVENT]).to_pylist()[0]
        return Problem(self.stream, int(row), code, reason, orjson.dumps(event, default=str).decode())

    def matches(self, batch: EventBatch) -> pa.Table:
        """The matches of everything but sequences, with the events' own ids."""
        schema = match_schema(batch.ids.type)
        if self.stream not in self._book.schemas:
            return schema.empty_table()
        found = table(stateless.find(self._book, batch.decoded, batch.problems), None, self._book.labels)
        ids = batch.ids.take(found.column("event").to_numpy())
        return found.set_column(found.schema.get_field_index("event"), "event", ids).cast(schema)

    def rows(self, batch: EventBatch) -> pa.Table:
        """Matches and problems."""
        matches = with_errors(self.matches(batch))
        return pa.concat_tables([matches, batch.problem_rows()]) if len(batch.problems) else matches

    def counts(self, batch: EventBatch) -> pa.Table:
        """How often each subscription matched."""
        return counts_table(stateless.count(self._book, batch.decoded, batch.problems))


def _joined(column: Any) -> Array:
    joined = column.combine_chunks()
    return joined if isinstance(joined, pa.Array) else pa.concat_arrays(joined.chunks)
