"""Parquet and Arrow IPC files: only the columns that are needed are read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import EventError
from headgate.events.decoder import assemble, attributes_of
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits, Needs
from headgate.events.sources import Bytes, name_of, opened
from headgate.events.tables import Rows
from headgate.schema import Attribute, Schema


def read_parquet(
    source: Bytes, schema: Schema, needs: Needs = None, *, first: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Decoded]:
    """Batches of events of a Parquet file. Of a struct only the needed fields are read."""
    needs = None if needs is None else list(needs)

    def batches(file: Any) -> Iterator[pa.RecordBatch]:
        parquet = pq.ParquetFile(file)
        attributes = attributes_of(Rows(parquet.schema_arrow.empty_table(), limits), schema, needs)
        wanted = _columns(parquet.schema_arrow, attributes)
        return parquet.iter_batches(batch_size=limits.batch_rows, columns=wanted)

    return _decoded(source, "Parquet", batches, schema, needs, first, limits)


def read_arrow(
    source: Bytes, schema: Schema, needs: Needs = None, *, first: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Decoded]:
    """Batches of events of an Arrow IPC file (Feather) or stream."""

    def batches(file: Any) -> Iterator[pa.RecordBatch]:
        for batch in _ipc(file):
            for start in range(0, batch.num_rows, limits.batch_rows):
                yield batch.slice(start, limits.batch_rows)

    return _decoded(source, "Arrow", batches, schema, None if needs is None else list(needs), first, limits)


def _decoded(
    source: Bytes,
    format: str,
    batches: Callable[[Any], Iterator[pa.RecordBatch]],
    schema: Schema,
    needs: Needs,
    first: int,
    limits: Limits,
) -> Iterator[Decoded]:
    with opened(source) as file:
        try:
            seekable = hasattr(file, "seekable") and file.seekable()
            for batch in batches(file if seekable else pa.BufferReader(file.read())):
                yield assemble(Rows(batch, limits), schema, needs, first)
                first += batch.num_rows
        except (pa.ArrowException, OSError) as problem:
            raise EventError(f"{name_of(source)} is not a sound {format} file: {problem}") from None


def _ipc(file: Any) -> Iterator[pa.RecordBatch]:
    magic = file.read(6)
    file.seek(-len(magic), 1)
    if magic == b"ARROW1":
        reader = pa.ipc.open_file(file)
        for i in range(reader.num_record_batches):
            yield reader.get_batch(i)
    else:
        yield from pa.ipc.open_stream(file)


def _columns(have: pa.Schema, attributes: Sequence[Attribute]) -> list[str]:
    """Parquet's names of the columns of attributes: a dotted path inside structs, else the whole top-level column."""
    wanted: dict[str, None] = {}
    for attribute in attributes:
        if have.get_field_index(attribute.path[0]) < 0:
            continue
        parts = [attribute.path[0]]
        kind = have.field(parts[0]).type
        for part in attribute.path[1:]:
            if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
                break
            parts.append(part)
            kind = kind.field(part).type
        # A path that ends early is read as far as it goes: a number where an object is needed must be noticed.
        wanted[".".join(parts)] = None
    return list(wanted)
