"""Matches as a table: one row per match, the same columns for every kind of subscription."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.plan import identity
from headgate.plan.segment import Segment
from headgate.schema import Schema

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("stream", pa.string(), nullable=False),
        pa.field("event", pa.int64(), nullable=False),
        pa.field("subscription", pa.string(), nullable=False),
        pa.field("output", pa.string()),
        pa.field("labels", pa.string()),
    ]
)
"""`output` and `labels` are JSON objects in text, null where there are none."""
Longs = NDArray[np.int64]


@dataclass(frozen=True)
class Found:
    """The matches of one batch with one segment: rows of the batch, and slots of the segment."""

    segment: Segment
    columns: Columns
    rows: Longs
    """For each row of the batch its row number in the input of its stream."""
    time: Longs
    """For each row of the batch its place in the merged order."""
    event: Longs
    slot: Longs


def table(found: Sequence[Found]) -> pa.Table:
    """All matches, by merged time, stream, event, subscription and id."""
    found = [f for f in found if len(f.event)]
    if not found:
        return SCHEMA.empty_table()
    time = np.concatenate([f.time[f.event] for f in found])
    streams = np.array([f.columns.stream for f in found])
    stream = np.repeat(streams, [len(f.event) for f in found])
    event = np.concatenate([f.rows[f.event] for f in found])
    names = pa.concat_arrays([_taken(f.segment.names, f.slot) for f in found])
    labels = pa.concat_arrays([_taken(f.segment.labels, f.slot) for f in found])
    ids = np.concatenate([identity.combine(f.segment.hashes[f.slot], _events(f)[f.event]) for f in found])
    order = np.lexsort((ids[:, 1], ids[:, 0], _ranks(names), event, _ranks(pa.array(stream)), time))
    return pa.table(
        [
            identity.text(ids[order]),
            pa.array(stream[order]),
            pa.array(event[order]),
            names.take(pa.array(order)),
            pa.nulls(len(order), pa.string()),
            labels.take(pa.array(order)),
        ],
        schema=SCHEMA,
    )


def _taken(values: pa.Array[Any], slots: Longs) -> pa.Array[Any]:
    return values.take(pa.array(slots))


def _events(found: Found) -> identity.Words:
    """The identity of every event of the batch."""
    if found.columns.identity is None:
        return identity.row_hashes(found.columns.stream, found.rows)
    return identity.hashes(found.columns.identity.cast(pa.string()).to_pylist())


def _ranks(values: pa.Array[Any]) -> Longs:
    """The place of each text among the distinct ones, by code points."""
    encoded: Any = pc.dictionary_encode(values)
    ranks = np.empty(len(encoded.dictionary), np.int64)
    ranks[pc.sort_indices(encoded.dictionary).to_numpy()] = np.arange(len(ranks))
    placed: Longs = ranks[encoded.indices.to_numpy()]
    return placed


def times(columns: Columns, rows: Longs, schema: Schema | None) -> Longs:
    """The merged time of each event: its TIME, else its row number."""
    if schema is None or not schema.time or (column := columns.get(schema.time[-1])) is None:
        return rows
    return np.asarray(column.values, np.int64)


def counts_table(counts: Mapping[str, int]) -> pa.Table:
    names = sorted(name for name, n in counts.items() if n)
    return pa.table({"subscription": pa.array(names, pa.string()), "count": pa.array([counts[n] for n in names], pa.int64())})
