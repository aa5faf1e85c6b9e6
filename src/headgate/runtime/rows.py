"""Matches as a table: one row per match, the same columns for every kind of subscription."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyroaring import BitMap64

from headgate import identity
from headgate.columns import Columns
from headgate.results import MATCHES
from headgate.runtime.book import CompiledSegment
from headgate.schema import Schema, format_path
from headgate.sequences.matches import Matches

Longs = NDArray[np.int64]


@dataclass(frozen=True)
class SegmentMatches:
    """The matches of one batch with one segment: rows of the batch, and slots of the segment."""

    segment: CompiledSegment
    columns: Columns
    rows: Longs
    """For each row of the batch its row number in the input of its stream."""
    time: Longs
    """For each row of the batch its place in the merged order."""
    event: Longs
    slot: Longs
    output: Sequence[str | None] | None = None

    def alive(self, dead: NDArray[np.bool_]) -> SegmentMatches:
        """Without the subscriptions that are gone."""
        kept = np.flatnonzero(~dead[self.slot])
        output = None if self.output is None else [self.output[i] for i in kept.tolist()]
        return replace(self, event=self.event[kept], slot=self.slot[kept], output=output)


@dataclass(frozen=True)
class SequenceMatches:
    """The matches of sequences in one batch, and a table of them, where their outputs are wanted."""

    matches: Matches
    table: pa.Table | None


def table(
    found: Sequence[SegmentMatches], moved: SequenceMatches | None, labels: Callable[[str], str | None]
) -> pa.Table:
    """All matches, by merged time, stream, event, subscription and id."""
    parts = [_stateless(f) for f in found if len(f.event)]
    if moved is not None and len(moved.matches):
        parts.append(_sequences(moved, labels))
    if not parts:
        return MATCHES.empty_table()
    whole = pa.concat_tables(p for p, _ in parts)
    time = np.concatenate([t for _, t in parts])
    keys = [_ranks(whole.column(name).combine_chunks()) for name in ("subscription", "stream")]
    event = whole.column("event").to_numpy()
    ids = _ranks(whole.column("id").combine_chunks()) if moved is not None else np.zeros(len(event), np.int64)
    order = np.lexsort((ids, keys[0], event, keys[1], time))
    return whole.take(order).combine_chunks()


def _stateless(f: SegmentMatches) -> tuple[pa.Table, Longs]:
    ids = identity.combine(f.segment.hashes[f.slot], _events(f)[f.event])
    made = pa.table(
        [
            identity.text(ids),
            pa.array([f.columns.stream]).take(np.zeros(len(ids), np.int64)),
            pa.array(f.rows[f.event]),
            _taken(f.segment.names, f.slot),
            pa.nulls(len(ids), pa.string()) if f.output is None else pa.array(f.output, pa.string()),
            _taken(f.segment.labels, f.slot),
        ],
        schema=MATCHES,
    )
    return made, f.time[f.event]


def _sequences(moved: SequenceMatches, labels: Callable[[str], str | None]) -> tuple[pa.Table, Longs]:
    made = moved.table
    assert made is not None
    known: dict[str, str | None] = {}
    names = [str(n) for n in made.column("subscription").to_pylist()]
    for name in names:
        if name not in known:
            known[name] = labels(name)
    column = pa.array([known[n] for n in names], pa.string())
    return made.append_column("labels", column).cast(MATCHES), np.asarray(moved.matches.t1, np.int64)


def pairs(found: Sequence[SegmentMatches], moved: SequenceMatches | None) -> pa.Table:
    """Event and subscription alone, in no order."""
    names = ["stream", "event", "subscription"]
    made = [
        pa.table(
            [
                pa.array([f.columns.stream] * len(f.event), pa.string()),
                pa.array(f.rows[f.event]),
                _taken(f.segment.names, f.slot),
            ],
            names=names,
        )
        for f in found
    ]
    if moved is not None and moved.table is not None:
        made.append(moved.table.select(names))
    return pa.concat_tables(made) if made else MATCHES.empty_table().select(names).cast(_PAIRS)


_PAIRS = pa.schema([pa.field(f.name, f.type) for f in MATCHES if f.name in ("stream", "event", "subscription")])


def bitmaps(found: Sequence[SegmentMatches], moved: SequenceMatches | None) -> dict[str, BitMap64]:
    """The events of each subscription as a roaring bitmap."""
    made: dict[str, BitMap64] = {}
    for f in found:
        order = np.argsort(f.slot, kind="stable")
        slots, events = f.slot[order], f.rows[f.event[order]]
        starts = np.flatnonzero(np.r_[True, slots[1:] != slots[:-1]]).tolist() if len(slots) else []
        for start, stop in zip(starts, [*starts[1:], len(slots)], strict=True):
            name = f.segment.names[int(slots[start])].as_py()
            made.setdefault(name, BitMap64()).update(events[start:stop].astype(np.uint64))
    if moved is not None:
        for i, event in enumerate(moved.matches.event.tolist()):
            made.setdefault(moved.matches.name(i), BitMap64()).add(event)
    return made


def shown(columns: Columns, row: int) -> str:
    """An event as a short text, for the error channel."""
    text = repr({format_path(path): value for path, value in columns.row(row).items() if value is not None})
    return text if len(text) <= 500 else text[:497] + "..."


def _taken(values: pa.Array[Any], slots: Longs) -> pa.Array[Any]:
    return values.take(slots)


def _events(found: SegmentMatches) -> identity.Words:
    """The identity of every event of the batch."""
    if found.columns.identity is None:
        return identity.row_hashes(found.columns.stream, found.rows)
    return identity.hashes([str(x) for x in found.columns.identity.cast(pa.string()).to_pylist()])


def _ranks(values: pa.Array[Any]) -> Longs:
    """The place of each text among the distinct ones, by code points."""
    encoded: Any = pc.dictionary_encode(values)
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    placed: Longs = ranks[encoded.indices.to_numpy()]
    return placed


def times(columns: Columns, rows: Longs, schema: Schema | None) -> Longs:
    """The merged time of each event: its TIME, else its row number. One that lacks its TIME stays behind the event
    before it; with none before, it comes first."""
    if schema is None or not schema.time or (column := columns.get(schema.time[-1])) is None:
        return rows
    found = np.asarray(column.values, np.int64)
    if column.defined.all():
        return found
    before = np.maximum.accumulate(np.where(column.defined, np.arange(len(found)), -1))
    return np.where(before >= 0, found[before], np.iinfo(np.int64).min)


def latest(columns: Columns, schema: Schema) -> int | None:
    """The latest TIME of some events, None if none has one."""
    column = columns.get(schema.time[-1]) if schema.time else None
    if column is None or not column.defined.any():
        return None
    return int(np.asarray(column.values, np.int64)[column.defined].max())


def counts_table(counts: Mapping[str, int]) -> pa.Table:
    names = sorted(name for name, n in counts.items() if n)
    return pa.table(
        {"subscription": pa.array(names, pa.string()), "count": pa.array([counts[n] for n in names], pa.int64())}
    )
