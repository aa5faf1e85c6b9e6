"""Events to columns, whatever they come as.

A source is a batch of events that can answer for one attribute at a time: its column, the rows that do not fit, and
why. `assemble` asks it for the attributes that are needed, takes the bad rows out, and keeps account: the rows of the
columns and the rejected ones always add up to the input.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow as pa

from headgate.columns import Column, Columns
from headgate.errors import UsageError
from headgate.events.any_values import of_objects
from headgate.events.objects import Objects
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits, Misfit, Needs, show
from headgate.events.tables import Rows
from headgate.results import Problem
from headgate.schema import Attribute, Path, Schema

if TYPE_CHECKING:
    from headgate.columns import Ints, Mask


Change = Callable[[Any], Any]
"""Makes the event that is decoded of what was read; may raise Misfit."""
Place = Callable[[int], str]
"""Where in the input a row stands, as a reason begins."""


class Source(Protocol):
    rows: int

    def text(self, row: int) -> str: ...
    def column(self, attribute: Attribute) -> tuple[Column, Mask | None]: ...
    def misfit(self, row: int, attribute: Attribute) -> Misfit: ...
    def typed(self, attribute: Attribute) -> bool:
        """Whether values of the attribute have its type already, so that none can fail to fit."""
        ...


def decode(
    events: Any, schema: Schema, needs: Needs = None, *, first: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Decoded:
    """Columns of the needed paths; `needs=None` is all of the schema.

    Attributes that are NOT NULL or TIME are decoded too, and all whose values may not fit their declared type: whether an
    event takes part must not depend on what others happen to read.

    `events` is an iterable of dicts, a `pyarrow.Table` or `RecordBatch`, a pandas frame, or anything with the Arrow
    stream interface; what is `Decoded` already stays as it is. In a pandas frame NaN is missing, as pandas means it; in
    a dict and in Arrow it is a value.
    Row numbers, in `Decoded.rows`
    and in `Problem.event`, count from `first`.
    """
    if isinstance(events, Decoded):
        return events
    if isinstance(events, Columns):
        return Decoded(_opened(events, schema), (), np.arange(events.first, events.first + events.rows))
    if isinstance(events, pa.Table | pa.RecordBatch):
        return assemble(Rows(events, limits), schema, needs, first)
    if type(events).__module__.startswith("pandas") and hasattr(events, "iloc"):
        return assemble(_Frame(events, limits), schema, needs, first)
    if hasattr(events, "__arrow_c_stream__"):
        return assemble(Rows(pa.table(events), limits), schema, needs, first)
    if isinstance(events, Mapping | str | bytes) or not isinstance(events, Iterable):
        raise UsageError(
            f"events cannot be a {type(events).__name__}",
            "pass a list of dicts, a pyarrow.Table or RecordBatch, or a pandas frame",
        )
    return decode_objects(events if isinstance(events, list) else list(events), schema, needs, first, limits)


def _opened(columns: Columns, schema: Schema) -> Columns:
    """Columns that were made elsewhere, with values of any kind where the schema says ANY."""

    def is_any(path: Path) -> bool:
        found = schema.get(path)
        return not schema.declared if found is None else found.type is None

    closed = {p: c for p, c in columns.columns.items() if c.any is None and is_any(p)}
    if not closed:
        return columns
    opened = {p: of_objects([c.value(row) for row in range(len(c))]) for p, c in closed.items()}
    return replace(columns, columns={**columns.columns, **opened})


def decode_objects(
    events: Sequence[Any],
    schema: Schema,
    needs: Needs,
    first: int,
    limits: Limits,
    change: Change | None = None,
    lines: Sequence[bytes] | None = None,
    place: Place = lambda row: "",
    rejected: Mapping[int, Misfit] | None = None,
) -> Decoded:
    """As `decode`. `change` makes what is decoded of each event; `rejected` has the rows that are known to be bad."""
    out = dict(rejected or {})
    if out or change is not None or not frozenset(map(type, events)) <= {dict}:
        usable: list[Mapping[Any, Any]] = []
        for row, event in enumerate(events):
            usable.append({})
            if row in out:
                continue
            try:
                usable[row] = _object(event if change is None else change(event))
            except Misfit as problem:
                problem.shown = show(event) if lines is None else None
                out[row] = problem
        events = usable
    return assemble(Objects(events, limits, lines, change), schema, needs, first, out, place)


def _object(event: Any) -> Mapping[Any, Any]:
    if isinstance(event, Mapping):
        return event
    raise Misfit(f"an event must be an object, not {show(event)}", "object")


def attributes_of(source: Source, schema: Schema, needs: Needs) -> list[Attribute]:
    """What must be decoded, in the order of the schema; a path that it lacks is asked for definedness only."""
    if needs is None:
        return list(schema)
    wanted = dict.fromkeys(needs)

    def may_reject(a: Attribute) -> bool:
        return a.not_null or a.path in schema.time or (schema.declared and a.type is not None and not source.typed(a))

    declared = [a for a in schema if a.path in wanted or may_reject(a)]
    return declared + [schema.get(p) or Attribute(p, None) for p in wanted if p not in schema.attributes]


def assemble(
    source: Source,
    schema: Schema,
    needs: Needs,
    first: int,
    rejected: Mapping[int, Misfit] | None = None,
    place: Place = lambda row: "",
    numbers: Ints | None = None,
) -> Decoded:
    """`rejected` is by row of the batch; `numbers` are the row numbers, if they do not simply count from `first`."""
    out: dict[int, Problem] = {}
    keep = np.ones(source.rows, np.bool_)
    number = np.arange(first, first + source.rows, dtype=np.int64) if numbers is None else numbers

    def reject(row: int, problem: Misfit, name: str = "") -> None:
        text = source.text(row) if problem.shown is None else problem.shown
        out[row] = Problem(schema.stream, int(number[row]), problem.code, f"{place(row)}{name}{problem.reason}", text)
        keep[row] = False

    for row, problem in (rejected or {}).items():
        reject(row, problem)
    columns: dict[Path, Column] = {}
    for attribute in attributes_of(source, schema, needs):
        column, bad = source.column(attribute)
        columns[attribute.path] = column
        name = f"{attribute.name}: "
        for row in np.flatnonzero(bad & keep).tolist() if bad is not None else ():
            reject(row, source.misfit(row, attribute), name)
        if attribute.not_null and not column.defined.all():
            for row in np.flatnonzero(~column.defined & keep).tolist():
                reject(row, Misfit("it is NOT NULL but missing", "not_null"), name)
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

    def typed(self, attribute: Attribute) -> bool:
        return self._source(attribute.path[0]).typed(attribute)

    def _source(self, name: str) -> Source:
        if name not in self._columns:
            self._columns[name] = self._column(name)
        return self._columns[name]

    def _column(self, name: str) -> Source:
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
