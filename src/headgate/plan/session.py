"""A session: batches fed one after the other. Row numbers, and later the state of sequences, carry on between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from headgate import match
from headgate.columns import Columns
from headgate.errors import EventError, UsageError
from headgate.events import Decoded, Rejected, decode
from headgate.plan.results import SCHEMA, Found, Longs, counts_table, table, times
from headgate.schema import Schema

if TYPE_CHECKING:
    from headgate.plan.compiled import Plan

OUTPUTS = ("matches", "pairs", "counts", "bitmaps")
ERRORS = pa.schema(
    [("stream", pa.string()), ("event", pa.int64()), ("code", pa.string()), ("reason", pa.string()), ("text", pa.string())]
)


class Session:
    """Not safe for several threads; a plan may have any number of sessions."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rows: dict[str, int] = {}
        self._rejected: list[Rejected] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        return None

    def feed(self, events: Any) -> pa.Table:
        """The matches of one batch. Events that cannot be used are in `errors()`."""
        return table([f for part in self._decode(events) for f in self._find(part)])

    def errors(self) -> pa.Table:
        """Every event so far that could not be used, with its reason."""
        columns = zip(*((r.stream, r.row, r.code, r.reason, r.event) for r in self._rejected), strict=True)
        return pa.table([pa.array(list(c)) for c in columns], schema=ERRORS) if self._rejected else ERRORS.empty_table()

    def whole(self, events: Any, output: str, errors: str) -> Any:
        """All of one input at once: what `Plan.match` does."""
        if output not in OUTPUTS:
            raise UsageError(f"output = {output!r} is unknown", f"choose one of {', '.join(OUTPUTS)}")
        if errors not in ("raise", "collect"):
            raise UsageError(f"errors = {errors!r} is unknown", "choose raise or collect")
        parts = self._decode(events)
        if self._rejected and errors == "raise":
            raise unusable(self._rejected)
        result = {"matches": self._matches, "pairs": self._pairs, "counts": self._counts, "bitmaps": self._bitmaps}[output](
            parts
        )
        return (result, self.errors()) if errors == "collect" else result

    # -- outputs

    def _matches(self, parts: Sequence[Decoded]) -> pa.Table:
        return table([f for part in parts for f in self._find(part)])

    def _pairs(self, parts: Sequence[Decoded]) -> pa.Table:
        """Event and subscription alone, in no order."""
        found = [f for part in parts for f in self._find(part)]
        names = ["stream", "event", "subscription"]
        columns = [
            pa.table(
                [
                    pa.array([f.columns.stream] * len(f.event), pa.string()),
                    pa.array(f.rows[f.event]),
                    f.segment.names.take(pa.array(f.slot)),
                ],
                names=names,
            )
            for f in found
        ]
        return pa.concat_tables(columns) if columns else SCHEMA.empty_table().select(names)

    def _counts(self, parts: Sequence[Decoded]) -> pa.Table:
        """How often each subscription matched; those that did not are left out."""
        counts: dict[str, int] = {}
        for part in parts:
            for segment, dead in zip(self._plan.segments, self._plan.dead, strict=True):
                work = match.run(part.columns, segment.filters, listing=False)
                slots = segment.filter_slots.get(part.columns.stream)
                hit = np.flatnonzero(work.counts)
                if slots is None or not len(hit):
                    continue
                for slot, n in zip(slots[hit].tolist(), work.counts[hit].tolist(), strict=True):
                    if dead is None or not dead[slot]:
                        name = segment.names[slot].as_py()
                        counts[name] = counts.get(name, 0) + n
        return counts_table(counts)

    def _bitmaps(self, parts: Sequence[Decoded]) -> dict[str, BitMap]:
        """The events of each subscription as a roaring bitmap."""
        made: dict[str, BitMap] = {}
        for f in (f for part in parts for f in self._find(part)):
            order = np.argsort(f.slot, kind="stable")
            slots, events = f.slot[order], f.rows[f.event[order]]
            starts = np.flatnonzero(np.r_[True, slots[1:] != slots[:-1]]) if len(slots) else []
            for start, stop in zip(starts, [*starts[1:], len(slots)], strict=True):
                name = f.segment.names[int(slots[start])].as_py()
                made.setdefault(name, BitMap()).update(events[start:stop].astype(np.uint32))
        return made

    # -- matching

    def _decode(self, events: Any) -> list[Decoded]:
        """By stream, only the attributes that the plan reads."""
        if isinstance(events, Mapping) and not hasattr(events, "column_names"):
            given = dict(events)
        else:
            given = {self._only_stream(): events}
        parts = []
        for stream, rows in given.items():
            part = self.decode(stream, rows)
            parts.append(part)
        return parts

    def decode(self, stream: str, events: Any) -> Decoded:
        if stream not in self._plan.schemas:
            known = ", ".join(self._plan.schemas) or "none"
            raise UsageError(f"there is no stream {stream}", f"the book has: {known}")
        schema = self._plan.schemas[stream]
        needs = set(self._plan.needs(stream)) | set(schema.time)
        part = decode(events, schema, needs, first=self._rows.get(stream, 0))
        self._rows[stream] = self._rows.get(stream, 0) + len(part.rows) + len(part.rejected)
        self._rejected += part.rejected
        return part

    def _only_stream(self) -> str:
        streams = self._plan.streams or tuple(self._plan.schemas)
        if len(streams) > 1:
            raise UsageError("the book has several streams", f"pass {{stream: events}} for {', '.join(streams)}")
        if not streams:
            raise UsageError("the book is empty", "add a subscription first")
        return streams[0]

    def _find(self, part: Decoded) -> list[Found]:
        columns: Columns = part.columns
        schema: Schema | None = self._plan.schemas.get(columns.stream)
        found = []
        for segment, dead in zip(self._plan.segments, self._plan.dead, strict=True):
            slots = segment.filter_slots.get(columns.stream)
            if slots is None:
                continue
            hits = match.run(columns, segment.filters, listing=True).hits
            event: Longs = hits.event
            slot = slots[hits.slot].astype(np.int64)
            if dead is not None:
                alive = ~dead[slot]
                event, slot = event[alive], slot[alive]
            found.append(Found(segment, columns, part.rows, times(columns, part.rows, schema), event, slot))
        return found


def unusable(rejected: Sequence[Rejected]) -> EventError:
    first = rejected[0]
    more = f" (and {len(rejected) - 1} more)" if len(rejected) > 1 else ""
    return EventError(
        f"event {first.row} of stream {first.stream}: {first.reason}{more}", 'errors="collect" matches the others'
    )
