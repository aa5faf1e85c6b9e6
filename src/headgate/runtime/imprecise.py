"""Imprecise events: `plan.match(events, imprecise=True)`, where an attribute may be a `Range` instead of a value.

Such an event is a box. A subscription matches it *surely* if it covers the whole box, *possibly* if the two meet
(docs/semantics.md, section 6); the table of matches says which, in the column `certainty`. Events without a range go the usual
way, and match surely. What no box can express (operators, graphs, regular expressions) is possible at most. Events are
taken one by one and compared with every subscription of their stream, so this is for few of either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.columns import Columns
from headgate.covering.boxes import Union
from headgate.covering.imprecise import Answer, Range, match
from headgate.covering.parse_boxes import union_or_none
from headgate.errors import EventError, UsageError
from headgate.events import decode
from headgate.language.forms import cut_text
from headgate.results import MATCHES, Problem, Problems, problem_table
from headgate.runtime import stateless
from headgate.runtime.book import CompiledBook, CompiledSegment
from headgate.runtime.rows import SegmentMatches, table
from headgate.runtime.session import only_stream, raise_first
from headgate.schema import Schema

_FIELDS: list[pa.Field[Any]] = [*MATCHES, pa.field("certainty", pa.string(), nullable=False)]
IMPRECISE = pa.schema(_FIELDS)


class Imprecise:
    """The subscriptions of a plan as boxes, by stream; made when the first imprecise event comes."""

    def __init__(self, book: CompiledBook) -> None:
        if book.sequences is not None:
            raise UsageError("sequences cannot be matched with imprecise events", "match them with a book of their own")
        self._book = book
        self._unions: dict[str, list[tuple[CompiledSegment, int, Union | None]]] = {}

    def match(self, events: Any, errors: str) -> Any:
        """What `Plan.match(imprecise=True)` does."""
        problems = Problems()
        result = self._matches(self._given(events), problems)
        if errors == "collect":
            return result, problem_table(problems.listed())
        raise_first(problems)
        return result

    def _matches(self, events: Mapping[str, Sequence[Any]], problems: Problems) -> pa.Table:
        found: list[SegmentMatches] = []
        answers: dict[tuple[str, int, str], Answer] = {}
        for stream, given in events.items():
            schema = self._schema(stream)
            vague = [row for row, event in enumerate(given) if _has_range(event)]
            precise = np.setdiff1d(np.arange(len(given)), vague)
            part = decode([given[row] for row in precise.tolist()], schema)
            rows = precise[part.rows]
            problems.add(replace(p, event=int(precise[p.event])) for p in part.rejected)
            found += [replace(f, time=f.rows) for f in stateless.find(self._book, replace(part, rows=rows), problems)]
            for row in vague:
                try:
                    found += self._one(stream, schema, row, given[row], answers)
                except EventError as problem:
                    problems.add([Problem(stream, row, problem.code, problem.message, repr(given[row])[:500])])
        whole = table(found, None, self._book.labels)
        keys = zip(*(whole.column(n).to_pylist() for n in ("stream", "event", "subscription")), strict=True)
        certainty = [answers.get(key, Answer.SURELY).value for key in keys]
        return whole.append_column(_FIELDS[-1], pa.array(certainty, pa.string()))

    def _schema(self, stream: str) -> Schema:
        if stream not in self._book.schemas:
            known = ", ".join(self._book.schemas) or "none"
            raise UsageError(f"there is no stream {stream}", f"the book has: {known}")
        return self._book.schemas[stream]

    def _one(
        self,
        stream: str,
        schema: Schema,
        row: int,
        event: Mapping[str, Any],
        answers: dict[tuple[str, int, str], Answer],
    ) -> Iterator[SegmentMatches]:
        at = np.array([row], np.int64)
        for segment, slot, union in self._boxes(stream, schema):
            answer = Answer.POSSIBLY if union is None else match(union, event, schema)
            if answer is not Answer.NOT:
                answers[stream, row, segment.names[slot].as_py()] = answer
                yield SegmentMatches(segment, Columns(stream, 1, {}), at, at, at[:1] * 0, np.array([slot], np.int64))

    def _boxes(self, stream: str, schema: Schema) -> list[tuple[CompiledSegment, int, Union | None]]:
        """(segment, slot, boxes) of every living subscription on the stream; None if they are too many to list."""
        known = self._unions.get(stream)
        if known is None:
            known = self._unions[stream] = [
                (segment, slot, _union(segment, slot, schema))
                for segment, dead, _ in self._book.parts()
                for slots in (segment.filter_slots.get(stream), segment.late_slots.get(stream))
                for slot in (() if slots is None else slots.tolist())
                if dead is None or not dead[slot]
            ]
        return known

    def _given(self, events: Any) -> dict[str, Sequence[Any]]:
        """Events by stream, as lists of dicts: nothing else can hold a range."""
        given = dict(events) if isinstance(events, Mapping) else {only_stream(self._book): events}
        for listed in given.values():
            if not isinstance(listed, list | tuple) or not all(isinstance(e, Mapping) for e in listed):
                raise UsageError(
                    "imprecise events must be lists of dicts", "put a hg.Range where a value is not certain"
                )
        return given


def _union(segment: CompiledSegment, slot: int, schema: Schema) -> Union | None:
    return union_or_none(cut_text(segment.texts[slot].as_py()).body(), segment.modes[slot].as_py(), schema)


def _has_range(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_range, value.values()))
    return isinstance(value, Range)
