"""Events to columns, whatever they come as.

A source is a batch of events that can answer for one attribute at a time: its column, the rows that do not fit, and
why. `assemble` asks it for the attributes that are needed, takes the bad rows out, and keeps account: the rows of the
columns and the rejected ones always add up to the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow as pa

from headgate.columns import Column, Columns
from headgate.errors import UsageError
from headgate.events.objects import Objects
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits, Misfit, show, shown_text
from headgate.events.tables import Rows
from headgate.results import Problem
from headgate.schema import Attribute, Path, Schema

if TYPE_CHECKING:
    from headgate.columns import Ints, Mask


class Source(Protocol):
    rows: int

    def text(self, row: int) -> str: ...
    def column(self, attribute: Attribute) -> tuple[Column, Mask | None]: ...
    def misfit(self, row: int, attribute: Attribute) -> Misfit: ...


def decode(
    events: Any,
    schema: Schema,
    needs: Iterable[Path] | None = None,
    *,
    first: int = 0,
    limits: Limits = DEFAULT_LIMITS,
) -> Decoded:
    """Columns of the needed paths, plus NOT NULL and TIME attributes; `needs=None` is all of the schema.

    `events` is an iterable of dicts, a `pyarrow.Table` or `RecordBatch`, a pandas frame, or anything with the Arrow
    stream interface; what is `Decoded` already stays as it is. In a pandas frame NaN is missing, as pandas means it; in
    a dict and in Arrow it is a value.
    An attribute without a type gives a BOOLEAN column that is TRUE where it is defined. Row numbers, in `Decoded.rows`
    and in `Problem.event`, count from `first`.
    """
    if isinstance(events, Decoded):
        return events
    if isinstance(events, Columns):
        return Decoded(events, (), np.arange(events.first, events.first + events.rows))
    if isinstance(events, pa.Table | pa.RecordBatch):
        return assemble(Rows(events, limits), schema, needs, first, limits)
    if type(events).__module__.startswith("pandas") and hasattr(events, "iloc"):
        return assemble(_Frame(events, limits), schema, needs, first, limits)
    if hasattr(events, "__arrow_c_stream__"):
        return assemble(Rows(pa.table(events), limits), schema, needs, first, limits)
    if isinstance(events, Mapping | str | bytes) or not isinstance(events, Iterable):
        raise UsageError(
            f"events cannot be a {type(events).__name__}",
            "pass a list of dicts, a pyarrow.Table or RecordBatch, or a pandas frame",
        )
    listed = events if isinstance(events, list) else list(events)
    return decode_objects(listed, schema, needs, first, limits)


def decode_objects(
    events: Sequence[Any],
    schema: Schema,
    needs: Iterable[Path] | None,
    first: int,
    limits: Limits,
    lines: Sequence[bytes] | None = None,
    change: Callable[[Any], Any] | None = None,
    place: Callable[[int], str] | None = None,
    rejected: Mapping[int, Problem] | None = None,
) -> Decoded:
    """As `decode`. `rejected` has the rows that are known to be bad: their events are ignored."""
    out = dict(rejected or {})
    if out or not frozenset(map(type, events)) <= {dict}:
        for row, event in enumerate(events):
            if row not in out and not isinstance(event, Mapping):
                shown = show(event)
                reason = f"{place(row) if place else ''}an event must be an object, not {shown}"
                text = shown if lines is None else shown_text(lines[row])
                out[row] = Problem(schema.stream, first + row, "object", reason, text)
        events = [{} if row in out else event for row, event in enumerate(events)]
    return assemble(Objects(events, limits, lines, change), schema, needs, first, limits, out, place)


def attributes_of(schema: Schema, needs: Iterable[Path] | None) -> list[Attribute]:
    """What must be decoded, in the order of the schema; a path that it lacks is asked for definedness only."""
    if needs is None:
        return list(schema)
    wanted = dict.fromkeys(needs)
    found = [a for a in schema if a.path in wanted or a.not_null or a.path in schema.time]
    return found + [schema.get(p) or Attribute(p, None) for p in wanted if p not in schema.attributes]


def assemble(
    source: Source,
    schema: Schema,
    needs: Iterable[Path] | None,
    first: int,
    limits: Limits,
    rejected: Mapping[int, Problem] | None = None,
    place: Callable[[int], str] | None = None,
    numbers: Ints | None = None,
) -> Decoded:
    """`rejected` is by row of the batch; `numbers` are the row numbers, if they do not simply count from `first`."""
    out = dict(rejected or {})
    keep = np.ones(source.rows, np.bool_)
    keep[list(out)] = False
    number = np.arange(first, first + source.rows, dtype=np.int64) if numbers is None else numbers

    def reject(rows: Mask, why: Callable[[int], Misfit], name: str) -> None:
        for row in np.flatnonzero(rows & keep).tolist():
            problem = why(row)
            reason = f"{place(row) if place else ''}{name}: {problem.reason}"
            out[row] = Problem(schema.stream, int(number[row]), problem.code, reason, source.text(row))
            keep[row] = False

    columns: dict[Path, Column] = {}
    for attribute in attributes_of(schema, needs):
        column, bad = source.column(attribute)
        columns[attribute.path] = column
        if bad is not None:
            reject(bad, lambda row, a=attribute: source.misfit(row, a), attribute.name)  # type: ignore[misc]  # a default argument binds the loop variable
        if attribute.not_null and not column.defined.all():
            reject(~column.defined, lambda row: Misfit("it is NOT NULL but missing", "not_null"), attribute.name)
    batch = Columns(schema.stream, source.rows, columns, first)
    if out:
        batch, number = batch.take(np.flatnonzero(keep)), number[keep]
    return Decoded(batch, tuple(out[row] for row in sorted(out)), number)


class _Frame:
    """A pandas frame, column by column. A column that Arrow refuses, of mixed objects, goes value by value."""

    def __init__(self, frame: Any, limits: Limits) -> None:
        self.rows = len(frame)
        self._frame = frame
        self._limits = limits
        self._columns: dict[str, Source] = {}

    def text(self, row: int) -> str:
        return show({str(k): v for k, v in zip(self._frame.columns, self._frame.iloc[row].tolist(), strict=True)})

    def column(self, attribute: Attribute) -> tuple[Column, Mask | None]:
        return self._source(attribute.path[0]).column(attribute)

    def misfit(self, row: int, attribute: Attribute) -> Misfit:
        return self._source(attribute.path[0]).misfit(row, attribute)

    def _source(self, name: str) -> Source:
        if name not in self._columns:
            self._columns[name] = self._make(name)
        return self._columns[name]

    def _make(self, name: str) -> Source:
        if name not in self._frame.columns:
            return cast(Source, Rows(pa.table({"": pa.nulls(self.rows)}), self._limits))
        series = self._frame[name]
        if series.ndim > 1:
            raise UsageError(f"the frame has several columns named {name!r}", "rename or drop all but one")
        if series.dtype != object:
            try:
                array = pa.Array.from_pandas(series)
                return cast(Source, Rows(pa.table({name: array}), self._limits))
            except (pa.ArrowException, OverflowError, ValueError):
                pass
        values = [None if isinstance(v, float) and math.isnan(v) else v for v in series.tolist()]
        return Objects([{name: v} for v in values], self._limits)
