"""Imprecise events: `plan.match(events, imprecise=True)`, where an attribute may be a `Range` instead of a value.

Such an event is a box. A subscription matches it *surely* if it covers the whole box, *possibly* if the two meet
(docs/semantics.md, section 6); the table of matches says which, in the column `certainty`. Events without a range go the usual
way, and match surely. What no box can express (operators, graphs, regular expressions) is possible at most. Events are
taken one by one and compared with every subscription of their stream, so this is for few of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from headgate.columns import Columns
from headgate.covering.boxes import Union
from headgate.covering.imprecise import Answer, Range, match
from headgate.covering.parse_boxes import union_or_none
from headgate.errors import EventError, UsageError
from headgate.events import Rejected, decode
from headgate.language.forms import cut_text
from headgate.plan.results import SCHEMA, Found, table
from headgate.plan.segment import Segment
from headgate.schema import Schema

if TYPE_CHECKING:
    from headgate.plan.compiled import Plan
    from headgate.plan.session import Session

_FIELDS: list[pa.Field[Any]] = [*SCHEMA, pa.field("certainty", pa.string(), nullable=False)]
IMPRECISE = pa.schema(_FIELDS)


class Imprecise:
    """The subscriptions of a plan as boxes, by stream; made when the first imprecise event comes."""

    def __init__(self, plan: Plan) -> None:
        if plan.sequences is not None:
            raise UsageError("sequences cannot be matched with imprecise events", "match them with a book of their own")
        self._plan = plan
        self._unions: dict[str, list[tuple[int, int, Union | None]]] = {}

    def matches(self, session: Session, events: Mapping[str, Sequence[Any]]) -> tuple[pa.Table, list[Rejected]]:
        """The table of matches, and the events that could not be used."""
        found: list[Found] = []
        rejected: list[Rejected] = []
        answers: dict[tuple[str, int, str], Answer] = {}
        for stream, given in events.items():
            schema = self._schema(stream)
            vague = [row for row, event in enumerate(given) if _has_range(event)]
            precise = np.setdiff1d(np.arange(len(given)), vague)
            part = decode([given[row] for row in precise.tolist()], schema)
            rows = precise[part.rows]
            rejected += [replace(r, row=int(precise[r.row])) for r in part.rejected]
            found += [replace(f, time=rows) for f in session.find(replace(part, rows=rows))]
            for row in vague:
                try:
                    found += self._one(stream, schema, row, given[row], answers)
                except EventError as problem:
                    rejected.append(Rejected(row, problem.message, problem.code, repr(given[row])[:500], stream))
        whole = table(found, None, self._plan.labels)
        keys = zip(*(whole.column(n).to_pylist() for n in ("stream", "event", "subscription")), strict=True)
        certainty = [answers.get(key, Answer.SURELY).value for key in keys]
        return whole.append_column(_FIELDS[-1], pa.array(certainty, pa.string())), rejected

    def _schema(self, stream: str) -> Schema:
        if stream not in self._plan.schemas:
            known = ", ".join(self._plan.schemas) or "none"
            raise UsageError(f"there is no stream {stream}", f"the book has: {known}")
        return self._plan.schemas[stream]

    def _one(
        self,
        stream: str,
        schema: Schema,
        row: int,
        event: Mapping[str, Any],
        answers: dict[tuple[str, int, str], Answer],
    ) -> Iterator[Found]:
        hits: dict[int, list[int]] = {}
        for number, slot, union in self._boxes(stream, schema):
            answer = Answer.POSSIBLY if union is None else match(union, event, schema)
            if answer is not Answer.NOT:
                hits.setdefault(number, []).append(slot)
                answers[stream, row, self._plan.segments[number].names[slot].as_py()] = answer
        at = np.array([row], np.int64)
        for number, slots in hits.items():
            events = np.zeros(len(slots), np.int64)
            yield Found(self._plan.segments[number], Columns(stream, 1, {}), at, at, events, np.array(slots, np.int64))

    def _boxes(self, stream: str, schema: Schema) -> list[tuple[int, int, Union | None]]:
        """(segment, slot, boxes) of every living subscription on the stream; None if they are too many to list."""
        known = self._unions.get(stream)
        if known is None:
            known = self._unions[stream] = [
                (number, slot, _union(segment, slot, schema))
                for number, (segment, dead) in enumerate(zip(self._plan.segments, self._plan.dead, strict=True))
                for slots in (segment.filter_slots.get(stream), segment.late_slots.get(stream))
                for slot in (() if slots is None else slots.tolist())
                if dead is None or not dead[slot]
            ]
        return known


def _union(segment: Segment, slot: int, schema: Schema) -> Union | None:
    entry = segment.entry(slot)
    return union_or_none(cut_text(entry.text).body(), entry.missing, schema)


def _has_range(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_range, value.values()))
    return isinstance(value, Range)


def given_events(plan: Plan, events: Any) -> dict[str, Sequence[Any]]:
    """Events by stream, as lists of dicts: nothing else can hold a range."""
    given = dict(events) if isinstance(events, Mapping) else None
    if given is None:
        if len(plan.streams) != 1:
            raise UsageError("the book has several streams", f"pass {{stream: events}} for {', '.join(plan.streams)}")
        given = {plan.streams[0]: events}
    for listed in given.values():
        if not isinstance(listed, list | tuple) or not all(isinstance(e, Mapping) for e in listed):
            raise UsageError("imprecise events must be lists of dicts", "put a hg.Range where a value is not certain")
    return given
