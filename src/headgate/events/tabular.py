"""Parquet and Arrow IPC files: only the columns that are needed are read.

Files come from strangers. What Arrow reads is validated before anything else looks at it: offsets that point outside an
array would end the process. A record batch or a row group that is not sound is one problem, and the others are read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from headgate.errors import EventError
from headgate.events.decoder import assemble, attributes_of, decode
from headgate.events.outcome import DEFAULT_LIMITS, Decoded, Limits, Needs
from headgate.events.sources import Bytes, name_of, opened
from headgate.events.tables import Rows
from headgate.results import Problem, described
from headgate.schema import Attribute, Schema


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """A part of a file that is not sound: one event stands for those in it, unless it is known how many they are."""

    reason: str
    events: int = 1


Part = pa.RecordBatch | _Unreadable


def read_parquet(
    source: Bytes, schema: Schema, needs: Needs = None, *, first: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Decoded]:
    """Batches of events of a Parquet file. Of a struct only the needed fields are read."""
    needs = None if needs is None else list(needs)

    def opened_parts(file: Any) -> Iterator[Part]:
        parquet = pq.ParquetFile(file)
        attributes = attributes_of(Rows(parquet.schema_arrow.empty_table(), limits), schema, needs)
        return _row_groups(parquet, _columns(parquet.schema_arrow, attributes), limits.batch_rows)

    return _decoded(source, "Parquet", opened_parts, schema, needs, first, limits)


def read_arrow(
    source: Bytes, schema: Schema, needs: Needs = None, *, first: int = 0, limits: Limits = DEFAULT_LIMITS
) -> Iterator[Decoded]:
    """Batches of events of an Arrow IPC file (Feather) or stream."""

    def opened_parts(file: Any) -> Iterator[Part]:
        magic = file.read(6)
        file.seek(-len(magic), 1)
        if magic == b"ARROW1":
            return _record_batches(pa.ipc.open_file(file))
        return _stream(pa.ipc.open_stream(file))

    return _decoded(source, "Arrow", opened_parts, schema, None if needs is None else list(needs), first, limits)


def _decoded(
    source: Bytes,
    format: str,
    opened_parts: Callable[[Any], Iterator[Part]],
    schema: Schema,
    needs: Needs,
    first: int,
    limits: Limits,
) -> Iterator[Decoded]:
    with opened(source) as file:
        try:
            seekable = hasattr(file, "seekable") and file.seekable()
            parts = opened_parts(file if seekable else pa.BufferReader(file.read()))
        except Exception as problem:  # noqa: BLE001 - whatever a library makes of a stranger's bytes
            raise EventError(f"{name_of(source)} is not a sound {format} file: {described(problem)}") from None
        for part in parts:
            if isinstance(part, _Unreadable):
                yield replace(decode([], schema), rejected=(Problem(schema.stream, first, "file", part.reason),))
                first += part.events
                continue
            for start in range(0, part.num_rows, limits.batch_rows):
                rows = part.slice(start, limits.batch_rows)
                yield assemble(Rows(rows, limits), schema, needs, first)
                first += rows.num_rows


def _row_groups(parquet: Any, columns: list[str], batch_rows: int) -> Iterator[Part]:
    for group in range(parquet.num_row_groups):
        events = parquet.metadata.row_group(group).num_rows
        try:
            for batch in parquet.iter_batches(batch_size=batch_rows, row_groups=[group], columns=columns):
                batch.validate(full=True)
                yield batch
                events -= batch.num_rows
        except Exception as problem:  # noqa: BLE001 - whatever a library makes of a stranger's bytes
            said = f"{events} events of row group {group + 1} of the Parquet file cannot be read: {described(problem)}"
            yield _Unreadable(said, min(max(1, events), 1 << 32))  # the file may say anything


def _record_batches(reader: Any) -> Iterator[Part]:
    for number in range(reader.num_record_batches):
        yield _sound(number, lambda: reader.get_batch(number))  # noqa: B023 - called at once


def _stream(reader: Any) -> Iterator[Part]:
    """What follows a broken batch in a stream cannot be found."""
    number, going = 0, True
    while going:
        try:
            part = _sound(number, reader.read_next_batch)
        except StopIteration:
            return
        yield part
        number, going = number + 1, not isinstance(part, _Unreadable)


def _sound(number: int, read: Callable[[], pa.RecordBatch]) -> Part:
    try:
        batch = read()
        batch.validate(full=True)
    except StopIteration:
        raise
    except Exception as problem:  # noqa: BLE001 - whatever a library makes of a stranger's bytes
        return _Unreadable(f"record batch {number + 1} of the Arrow file cannot be read: {described(problem)}")
    return batch


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
