"""From the stateless pass to the buckets: which events matter to which group, and where each goes.

An event goes to a group if it satisfies some static predicate of it, or if some step asks nothing static of its stream;
operators and GRAPH patterns are not asked here, only whether their cheap part leaves them open. Of what a group needs
only its columns travel, and one row carries all events of a batch for one group and bucket.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import xxhash
from numpy.typing import NDArray

from headgate.columns import Column, Columns
from headgate.language.ast import DUR
from headgate.results import Problem
from headgate.runtime.batches import EventBatch
from headgate.runtime.rows import shown
from headgate.runtime.stateful.group import GLOBAL, CompiledGroup, GroupedSequences
from headgate.runtime.stateful.packing import EVENTS, Packed, Sent, pack
from headgate.schema import Kind, Path, Type, format_path
from headgate.sequences.identities import mixed
from headgate.sequences.memory import Lists
from headgate.sequences.static import StaticIndex

log = logging.getLogger("headgate.runtime")
Mask = NDArray[np.bool_]
_NULL, _NAN = np.uint64(0x5851F42D4C957F2D), np.uint64(0x14057B7EF767814F)


@dataclass(frozen=True)
class Dated:
    """Events that have a time, and which of the rows they are."""

    columns: Columns
    t0: NDArray[np.int64]
    t1: NDArray[np.int64]
    rows: NDArray[np.int64]


@dataclass
class Tally:
    """What a task saw and sent, for the metrics."""

    events: int = 0
    sent: int = 0
    bytes_read: int = 0
    bytes_sent: int = 0
    latest: dict[str, int] = field(default_factory=dict)

    def said(self) -> dict[str, int]:
        return {name: value for name, value in vars(self).items() if name != "latest"}


def to_buckets(events: EventBatch, book: GroupedSequences, tally: Tally) -> Iterator[Sent]:
    schema = book.streams.get(events.stream)
    if schema is None or not schema.time:
        return
    decoded = events.decoded
    usable, problems = dated(decoded.columns, schema.time)
    events.problems.add(
        Problem(events.stream, int(decoded.rows[row]), "late", reason, shown(decoded.columns, row))
        for row, reason in problems
    )
    if not len(usable.t1):
        return
    latest = int(usable.t1.max())
    tally.latest[events.stream] = max(latest, tally.latest.get(events.stream, latest))
    ids = events.ids.take(decoded.rows[usable.rows])
    for parcel in parcels(book, usable, ids):
        tally.sent += parcel.events
        tally.bytes_sent += len(parcel.payload)
        yield parcel


def dated(columns: Columns, time: Sequence[Path]) -> tuple[Dated, list[tuple[int, str]]]:
    """The events that can be placed in time, and why the others cannot."""
    start, end = columns[time[0]], columns[time[-1]]
    t0, t1 = np.asarray(start.values, np.int64), np.asarray(end.values, np.int64)
    there = start.defined & end.defined
    backward = there & (t0 > t1)
    name = ", ".join(map(format_path, time))
    problems = [(int(r), f"it has no {name}, so a sequence cannot place it in time") for r in np.flatnonzero(~there)]
    problems += [(int(r), "it ends before it starts") for r in np.flatnonzero(backward)]
    good = np.flatnonzero(there & ~backward)
    if len(good) < len(t1):
        columns, t0, t1 = columns.take(good), t0[good], t1[good]
    return Dated(columns, t0, t1, good), problems


def parcels(book: GroupedSequences, events: Dated, ids: Any) -> Iterator[Sent]:
    """What is sent, and where to. `ids` are those of `events`."""
    told = np.zeros(len(events.t1), np.bool_)
    columns, asked = events.columns, with_length(events)
    for group in book.groups:
        if group == GLOBAL:
            for bucket in range(book.buckets):
                made = book.compiled(group, bucket)
                if made is not None:
                    mask, slots = _routed(made, asked)
                    yield from _parcel(book, made, bucket, events, ids, np.flatnonzero(mask), slots, told)
            continue
        made = book.compiled(group, 0)
        if made is None or columns.stream not in made.keys:
            continue
        mask, slots = _routed(made, asked)
        rows = np.flatnonzero(mask)
        where = buckets_of(columns[made.keys[columns.stream]].take(rows), book.buckets)
        order = np.argsort(where, kind="stable")
        bounds = np.searchsorted(where[order], np.arange(book.buckets + 1))
        for bucket in range(book.buckets):
            mine = rows[order[bounds[bucket] : bounds[bucket + 1]]]
            yield from _parcel(book, made, bucket, events, ids, mine, slots, told)


def with_length(events: Dated) -> Columns:
    """The columns with the length of each event, which a static predicate may ask."""
    columns = events.columns
    length = Column(Type(Kind.BIGINT), np.ones(len(events.t1), np.bool_), events.t1 - events.t0 + 1)
    own = {path: _own(column) for path, column in columns.columns.items()}
    return Columns(columns.stream, columns.rows, {**own, (DUR,): length}, columns.first)


def _own(column: Column) -> Column:
    """With arrays that can be written: the compiler of the kernels makes another version for those that cannot."""
    if column.offsets is not None or not isinstance(column.values, np.ndarray) or column.values.flags.writeable:
        return column
    return Column(column.type, np.array(column.defined), np.array(column.values))


def _parcel(
    book: GroupedSequences,
    made: CompiledGroup,
    bucket: int,
    events: Dated,
    ids: Any,
    rows: NDArray[np.int64],
    slots: Lists | None,
    told: Mask,
) -> Iterator[Sent]:
    if not len(rows):
        return
    tells = ~told[rows]
    told[rows] = True
    stream = events.columns.stream
    # What is global has the attributes of all buckets, so that it may be dealt out anew.
    paths = book.needs(stream, made.group)
    held = None if slots is None else slots.take(rows)
    packed = Packed(_only(events.columns, paths).take(rows), ids.take(rows), tells, held, made.fingerprint)
    yield Sent(EVENTS, stream, made.group, payload=pack(packed, paths), bucket=bucket, events=len(rows))


def _only(columns: Columns, paths: frozenset[Path]) -> Columns:
    return Columns(columns.stream, columns.rows, {p: columns[p] for p in paths if columns.get(p) is not None})


def _routed(made: CompiledGroup, columns: Columns) -> tuple[Mask, Lists | None]:
    """As `routed`. If the engine raises, the bucket gets all events: it finds the cause, and decides the others."""
    try:
        return routed(made, columns)
    except Exception:
        log.exception("static predicates failed on stream %s; its buckets decide them", columns.stream)
        return np.ones(columns.rows, np.bool_), None


def routed(made: CompiledGroup, columns: Columns) -> tuple[Mask, Lists | None]:
    """The events that could move some automaton of the group, and which static predicates of its first level hold for
    each; `columns` has their lengths. The bucket does not evaluate these predicates again."""
    relevant = np.zeros(columns.rows, np.bool_)
    slots: Lists | None = None
    for at, level in enumerate(made.index.levels):
        for union in level.unions:
            for side, test in zip(union.sides, level.sides[union.name], strict=True):
                if side.stream == columns.stream:
                    relevant |= _hit(test, columns)
        if columns.stream not in level.streams:
            continue
        number = level.streams.index(columns.stream)
        if number in level.statics:
            static, numbers = level.statics[number]
            if at == 0:
                found = static.hits(columns)
                counts = np.bincount(found.event, minlength=columns.rows)
                slots = Lists(np.concatenate([[0], np.cumsum(counts)]), numbers[found.slot])
                relevant |= counts > 0
                relevant[static.possible(columns).event] = True
            elif not relevant.all():
                relevant |= _hit(static, columns)
        if number in level.open_streams:
            relevant[:] = True
    return relevant, slots


def _hit(test: StaticIndex | None, columns: Columns) -> Mask:
    found = np.full(columns.rows, test is None)
    if test is not None:
        found[test.hits(columns).event] = True
        found[test.possible(columns).event] = True
    return found


def buckets_of(column: Column, buckets: int) -> NDArray[np.int64]:
    """The bucket of each value: equal values are in one bucket, also 1 and 1.0."""
    return bucket_of(hashes(column), buckets)


def bucket_of(keys: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    return (keys % np.uint64(buckets)).astype(np.int64)


def hashes(column: Column) -> NDArray[np.uint64]:
    values = column.values
    if not isinstance(values, np.ndarray):
        codes, distinct = column.dictionary()
        digests = [_digest(v) for v in distinct.to_pylist()]
        made = np.append(np.array(digests, np.uint64), _NULL)[codes]
    elif values.dtype == np.float64:
        bounded = np.abs(values) < 2.0**63
        whole = bounded & (values == np.floor(values))
        numbers = np.where(whole, values, 0.0).astype(np.int64).view(np.uint64)
        made = np.where(whole, mixed(numbers), mixed(values.view(np.uint64) ^ _NAN))
        made = np.where(np.isnan(values), _NAN, made)
    else:
        made = mixed(values.astype(np.int64).view(np.uint64))
    return np.where(column.defined, made, _NULL)


def _digest(value: Any) -> int:
    if value is None:
        return int(_NULL)
    return xxhash.xxh3_64_intdigest(value if isinstance(value, bytes) else value.encode())
