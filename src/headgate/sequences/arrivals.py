"""Events on their way in: their times, what is late or has none, several streams in one order, and derived streams.

An event has the interval [t0, t1] that its stream's TIME says; one without TIME is an epoch of its own, in the order of
input. An event at or before the last closed epoch is late: sequences cannot use it any more, and it is reported.
BIGINT, TIMESTAMP and the order of input are three times: each has a last closed epoch of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.results import Problem
from headgate.schema import Kind, Schema, format_path
from headgate.sequences.identities import identities
from headgate.sequences.match_rows import Rows
from headgate.sequences.memory import Arrivals, Lists, column_of
from headgate.sequences.tables import Ints

if TYPE_CHECKING:
    from headgate.sequences.engine import Index
    from headgate.sequences.level_index import LevelIndex


Until = int | Mapping[Kind, int]
"""Where epochs end that are wanted: of all times that the streams have, or of each."""


class Clock:
    """Gives events their times; knows the last closed epoch of each kind of time."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self.sources = sorted(schemas)
        self.closed: dict[Kind | None, int] = {}
        self.tick = 0
        times = {schema.time_kind for schema in schemas.values()}
        self._told = times - {None} or times
        """The times that a caller speaks of who says how far time has come: rows, only if nothing else has a time."""

    def resume(self, closed: Until | None) -> None:
        """Time goes on after epochs that were closed elsewhere."""
        self.closed = {} if closed is None else self._ends(closed)

    def later(self, a: Arrivals, until: Until) -> NDArray[np.bool_]:
        """The events that have to wait where only the epochs before `until` are wanted."""
        time = self._schemas[a.stream].time_kind
        return a.t1 >= self._ends(until)[time] if time in self._told else np.zeros(len(a), np.bool_)

    def _ends(self, until: Until) -> dict[Kind | None, int]:
        if isinstance(until, Mapping):
            return {time: until[time] for time in self._told if time is not None and time in until}
        return dict.fromkeys(self._told, until)

    def close(self, events: Sequence[Arrivals], until: Until | None) -> dict[Kind | None, int]:
        """The epochs of these events are over, and all before `until`: the times that moved, with their last epochs."""
        ends = [(self._schemas[a.stream].time_kind, int(a.t1.max())) for a in events if len(a)]
        ends += [] if until is None else [(time, end - 1) for time, end in self._ends(until).items()]
        for time, end in ends:
            self.closed[time] = max(end, self.closed.get(time, end))
        return {time: self.closed[time] for time, _ in ends}

    def arrivals(self, columns: Columns, errors: list[Problem], decided: Lists | None = None) -> Arrivals | None:
        """The usable events of a batch; the others are entered into `errors`. None if no sequence reads the stream."""
        schema = self._schemas.get(columns.stream)
        if schema is None:
            return None
        rows = columns.row_numbers
        if not schema.time:
            t0 = t1 = self.tick + np.arange(len(columns), dtype=np.int64)
            self.tick += len(columns)
        else:
            start, end = columns[schema.time[0]], columns[schema.time[-1]]
            t0, t1 = np.asarray(start.values, np.int64), np.asarray(end.values, np.int64)
            there = start.defined & end.defined
            closed = self.closed.get(schema.time_kind)
            late = there & (t1 <= closed) if closed is not None else np.zeros(len(columns), np.bool_)
            backward = there & ~late & (t0 > t1)
            name = ", ".join(map(format_path, schema.time))
            for mask, reason in (
                (~there, f"it has no {name}, so a sequence cannot place it in time"),
                (late, "it is late: its epoch is closed already"),
                (backward, "it ends before it starts"),
            ):
                errors += [Problem(columns.stream, int(row), "late", reason) for row in rows[mask]]
            good = there & ~late & ~backward
            if not good.all():
                kept = np.flatnonzero(good)
                columns, t0, t1, rows = columns.take(kept), t0[kept], t1[kept], rows[kept]
                decided = None if decided is None else decided.take(kept)
        source = np.full(len(rows), self.sources.index(columns.stream), np.int64)
        return Arrivals(columns.stream, columns, t0, t1, identities(columns, rows), rows, source, decided)


def merged_order(parts: Sequence[Arrivals]) -> tuple[Ints, list[Ints]]:
    """All events by t1, stably; and for each part the places of its events in that order."""
    if not parts:
        return np.zeros(0, np.int64), []
    times = np.concatenate([a.t1 for a in parts])
    order = np.argsort(times, kind="stable")
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
    return order, np.split(places, np.cumsum([len(a) for a in parts])[:-1])


def derived(index: Index, level: LevelIndex, rows: Rows) -> Iterator[tuple[str, Arrivals]]:
    """The rows that patterns of a level give to streams, as events."""
    by_producer: dict[int, list[int]] = {}
    if not level.givers:
        return
    for i in range(len(rows)):
        for number in level.givers.intersection(rows.accepting(i)):
            by_producer.setdefault(number, []).append(i)
    t0, t1 = rows.times()
    first, last = rows.first_and_last()
    for number, which in by_producer.items():
        producer = level.producers[number]
        since = max((s for n in producer.subscriptions if (s := index.since.get(n)) is not None), default=None)
        if since is not None:
            which = [i for i in which if starts_after(index, level, rows, int(first[i]), since)]
        output = level.output(number)
        made = list(output.rows(rows, which))
        identity = [
            xxhash.xxh3_64_intdigest(rows.key(i) + (producer.publisher or repr(sorted(row.items()))).encode())
            for i, row in zip(which, made, strict=True)
        ]
        assert producer.gives is not None
        at = np.array(which, np.int64)
        columns = _columns(producer.gives, producer.spine.schema, made)
        yield (
            producer.gives,
            Arrivals(
                producer.gives,
                columns,
                t0[at],
                t1[at],
                np.array(identity, np.uint64),
                rows.memory.row[last[at]],
                rows.memory.source[last[at]],
            ),
        )


def starts_after(index: Index, level: LevelIndex, rows: Rows, first: int, since: int) -> bool:
    """Did the run with this first event begin after a subscription came? What is nested began with its own start."""
    stream = level.streams[int(rows.memory.stream[first])]
    time = rows.memory.t0 if stream in index.plan.anonymous else rows.memory.t1
    return bool(time[first] > since)


def _columns(stream: str, schema: Schema, rows: Sequence[dict[str, Any]]) -> Columns:
    made = {a.path: column_of(a.type, [row[".".join(a.path)] for row in rows]) for a in schema}
    return Columns(stream, len(rows), made)
