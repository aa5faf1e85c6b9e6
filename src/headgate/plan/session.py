"""A session: batches fed one after the other. Row numbers, and later the state of sequences, carry on between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from headgate import match
from headgate.columns import Columns
from headgate.errors import EventError, UsageError
from headgate.events import Decoded, Rejected, decode
from headgate.plan.imprecise import given_events
from headgate.plan.results import Found, binding_text, bitmaps, counts_table, pairs, shown, table, times
from headgate.plan.segment import Segment
from headgate.schema import Schema
from headgate.sequences.engine import Session as SequenceSession
from headgate.sequences.matches import Matches

if TYPE_CHECKING:
    from headgate.plan.compiled import Plan

OUTPUTS = ("matches", "pairs", "counts", "bitmaps")
_ERROR_FIELDS: list[pa.Field[Any]] = [
    pa.field("stream", pa.string()),
    pa.field("event", pa.int64()),
    pa.field("code", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("text", pa.string()),
]
ERRORS = pa.schema(_ERROR_FIELDS)


class Session:
    """Not safe for several threads; a plan may have any number of sessions."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._rows: dict[str, int] = {}
        self._rejected: list[Rejected] = []
        self._before = 0
        """How many of them are of earlier batches."""
        self._sequences: SequenceSession | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def feed(self, events: Any, until: int | None = None) -> pa.Table:
        """The matches of one batch. Events that cannot be used are in `errors()`.

        Sequences take the epochs before `until`, by default all of the batch; what is later waits for the next call.
        """
        parts = self._decode(events)
        return table([f for part in parts for f in self.find(part)], self._move(parts, until), self._plan.labels)

    def stats(self) -> dict[str, Any]:
        """The state of the sequences: the last closed epoch, and the runs that wait, in all and for each subscription."""
        if self._sequences is None:
            return {"closed": None, "levels": [], "runs": {}}
        return {**self._sequences.stats(), "runs": self._sequences.runs()}

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
        if output == "counts":
            result: Any = self._counts(parts)
        else:
            found = [f for part in parts for f in self.find(part)]
            moved = self._move(parts)
            made = {"matches": lambda: table(found, moved, self._plan.labels), "pairs": lambda: pairs(found, moved)}
            result = made.get(output, lambda: bitmaps(found, moved))()
        if self._rejected and errors == "raise":
            raise unusable(self._rejected)
        return (result, self.errors()) if errors == "collect" else result

    def vague(self, events: Any, errors: str) -> Any:
        """Events whose attributes may be ranges: what `Plan.match(imprecise=True)` does."""
        result, rejected = self._plan.imprecise.matches(self, given_events(self._plan, events))
        self._rejected += rejected
        if self._rejected and errors == "raise":
            raise unusable(self._rejected)
        return (result, self.errors()) if errors == "collect" else result

    def _counts(self, parts: Sequence[Decoded]) -> pa.Table:
        """How often each subscription matched; those that did not are left out. Plain filters are counted, not listed."""
        counts: Counter[str] = Counter()
        for part in parts:
            for segment, dead, late in self._plan.parts():
                stream = part.columns.stream
                work = match.run(part.columns, segment.filters.get(stream), late.get(stream), listing=False)
                self._note(work, segment, part)
                for numbers, found in (
                    (segment.filter_slots.get(stream), work.counts),
                    (segment.late_slots.get(stream), np.bincount(work.late_hits.slot)),
                ):
                    hit = np.flatnonzero(found)
                    if numbers is None or not len(hit):
                        continue
                    for slot, n in zip(numbers[hit].tolist(), found[hit].tolist(), strict=True):
                        if dead is None or not dead[slot]:
                            counts[segment.names[slot].as_py()] += n
        moved = self._move(parts)
        if moved is not None:
            counts.update(moved.name(i) for i in range(len(moved)))
        return counts_table(counts)

    # -- matching

    def _decode(self, events: Any) -> list[Decoded]:
        """By stream, only the attributes that the plan reads."""
        self._before = len(self._rejected)
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
        if stream in self._plan.total_streams:
            needs |= set(schema.attributes)
        part = decode(events, schema, needs, first=self._rows.get(stream, 0))
        self._rows[stream] = self._rows.get(stream, 0) + len(part.rows) + len(part.rejected)
        self._rejected += part.rejected
        if stream in self._plan.total_streams:
            self._rejected += _incomplete(part, schema)
        return part

    def _only_stream(self) -> str:
        streams = self._plan.streams or tuple(self._plan.schemas)
        if len(streams) > 1:
            raise UsageError("the book has several streams", f"pass {{stream: events}} for {', '.join(streams)}")
        if not streams:
            raise UsageError("the book is empty", "add a subscription first")
        return streams[0]

    def find(self, part: Decoded) -> list[Found]:
        """The matches of everything but sequences."""
        columns: Columns = part.columns
        stream = columns.stream
        time = times(columns, part.rows, self._plan.schemas.get(stream))
        found = []
        for segment, dead, late in self._plan.parts():
            work = match.run(columns, segment.filters.get(stream), late.get(stream), listing=True)
            self._note(work, segment, part)
            for numbers, hits in (
                (segment.filter_slots.get(stream), work.hits),
                (segment.late_slots.get(stream), work.late_hits),
            ):
                if numbers is None or not len(hits):
                    continue
                slot = numbers[hits.slot].astype(np.int64)
                output = None if hits.binding is None else [binding_text(b) for b in hits.binding]
                made = Found(segment, columns, part.rows, time, hits.event, slot, output)
                found.append(made if dead is None else made.alive(dead))
        return found

    def _note(self, work: match.Work, segment: Segment, part: Decoded) -> None:
        """What operators and graphs could not decide is an error of its event, and of its subscription where it has one."""
        slots = segment.late_slots.get(part.columns.stream)
        # An event whose graph cannot be read is one error, whatever number of segments asked for it.
        known = {(r.stream, r.row, r.reason) for r in self._rejected[self._before :]} if work.failed else set()
        for f in work.failed:
            if f.slot is None and (part.columns.stream, int(part.rows[f.event]), f.reason) in known:
                continue
            whose = "" if f.slot is None or slots is None else f"subscription {segment.names[int(slots[f.slot])]}: "
            row = int(part.rows[f.event])
            self._rejected.append(
                Rejected(row, whose + f.reason, f.code, shown(part.columns, f.event), part.columns.stream)
            )

    def _move(self, parts: Sequence[Decoded], until: int | None = None) -> Matches | None:
        """Sequences: the epochs of all streams together."""
        index = self._plan.sequences
        if index is None:
            return None
        if self._sequences is None:
            self._sequences = index.session()
        moved = self._sequences.feed([p.columns for p in parts], until)
        for problem in self._sequences.errors:
            self._rejected.append(Rejected(problem.row, problem.reason, problem.code, "", problem.stream))
        self._sequences.errors.clear()
        return moved


def _incomplete(part: Decoded, schema: Schema) -> list[Rejected]:
    """Events that lack an attribute of their stream: `total` subscriptions do not see them, and are told so."""
    there = [(a.name, part.columns[a.path].defined) for a in schema]
    complete = np.logical_and.reduce([d for _, d in there]) if there else np.ones(len(part.rows), np.bool_)
    return [
        Rejected(
            int(part.rows[row]),
            f"{', '.join(name for name, d in there if not d[row])} missing: subscriptions in total mode do not see it",
            "total",
            shown(part.columns, int(row)),
            schema.stream,
        )
        for row in np.flatnonzero(~complete)
    ]


def unusable(rejected: Sequence[Rejected]) -> EventError:
    first = rejected[0]
    more = f" (and {len(rejected) - 1} more)" if len(rejected) > 1 else ""
    return EventError(
        f"event {first.row} of stream {first.stream}: {first.reason}{more}", 'errors="collect" matches the others'
    )
