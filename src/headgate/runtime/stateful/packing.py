"""Events on their way to a bucket, and while they wait in its state: columns as an Arrow stream, and back.

They were decoded and checked before they were sent, so they come back as columns without a second look.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray

from headgate.columns import ARROW, DTYPES, Column, Columns
from headgate.schema import Path, Type, format_path, parse_path
from headgate.sequences.memory import Lists

if TYPE_CHECKING:
    from headgate.columns import Array

EVENTS, TICK, ROWS = "events", "tick", "rows"
_EVENT, _TELLS, _SLOTS = "__event", "__tells", "__slots"


@dataclass(frozen=True)
class Sent:
    """A row from the stateless pass: events for a group, the latest time of a stream, or rows that are done."""

    kind: str
    stream: str = ""
    group: str = ""
    latest: int | None = None
    payload: bytes = b""
    bucket: int = 0
    events: int = 0


@dataclass(frozen=True)
class Packed:
    """Events of one stream. `tells` is set where this bucket reports the event, should it be late: only one does."""

    columns: Columns
    ids: Array
    tells: NDArray[np.bool_]
    slots: Lists | None = None
    """The static predicates of the first level that hold for each event, as numbered by the index `decided_by`."""
    decided_by: str = ""

    def __len__(self) -> int:
        return self.columns.rows

    def take(self, rows: NDArray[Any]) -> Packed:
        slots = None if self.slots is None else self.slots.take(rows)
        return Packed(self.columns.take(rows), self.ids.take(rows), self.tells[rows], slots, self.decided_by)


def pack(events: Packed, paths: Iterable[Path]) -> bytes:
    columns = events.columns
    held = {path: columns[path] for path in sorted(paths) if columns.get(path) is not None}
    described = {format_path(path): str(column.type) for path, column in held.items()}
    arrays = [events.ids, pa.array(events.tells), *map(_arrow, held.values())]
    names = [_EVENT, _TELLS, *map(format_path, held)]
    about = {"stream": columns.stream, "types": described, "decided_by": events.decided_by}
    if events.slots is not None:
        offsets: Any = pa.array(events.slots.offsets)
        lists: Any = pa.LargeListArray.from_arrays(offsets, pa.array(events.slots.values))
        arrays.append(lists)
        names.append(_SLOTS)
    batch = pa.record_batch(arrays, names=names).replace_schema_metadata({"headgate": orjson.dumps(about)})
    return to_bytes(pa.Table.from_batches([batch]))


def unpack(data: bytes) -> Packed:
    table = from_bytes(data)
    about = orjson.loads((table.schema.metadata or {})[b"headgate"])
    columns = {
        parse_path(name): _column(Type.parse(kind), whole(table.column(name))) for name, kind in about["types"].items()
    }
    made = Columns(about["stream"], table.num_rows, columns)
    tells = whole(table.column(_TELLS)).to_numpy(zero_copy_only=False)
    slots = None
    if _SLOTS in table.column_names:
        lists: Any = whole(table.column(_SLOTS))
        slots = Lists(lists.offsets.to_numpy(), lists.values.to_numpy())
    return Packed(made, whole(table.column(_EVENT)), tells, slots, about["decided_by"])


def to_bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def from_bytes(data: bytes) -> pa.Table:
    with pa.ipc.open_stream(pa.py_buffer(data)) as reader:
        return reader.read_all()


def whole(column: Any) -> Array:
    """A column in one piece."""
    made: Array = column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)
    return made


def _arrow(column: Column) -> Any:
    if column.offsets is not None and column.elements is not None:
        offsets = column.offsets - column.offsets[0]
        inside = column.elements.slice(int(column.offsets[0]), int(column.offsets[-1]))
        mask: Any = pa.array(~column.defined)
        return pa.LargeListArray.from_arrays(pa.array(offsets), _arrow(inside), mask=mask)
    if isinstance(column.values, np.ndarray):
        return pa.array(column.values, mask=~column.defined)
    values: Any = column.values
    return values.dictionary_decode() if pa.types.is_dictionary(values.type) else values


def _column(kind: Type, array: Any) -> Column:
    defined = array.is_valid().to_numpy(zero_copy_only=False)
    if kind.array:
        lengths = np.where(defined, np.diff(array.offsets.to_numpy()), 0)
        offsets = np.zeros(len(array) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        elements = _column(kind.element, array.flatten())
        return Column(kind, defined, elements.values, offsets, elements)
    if kind.kind in ARROW:
        return Column(kind, defined, array.cast(ARROW[kind.kind]))
    values = array.fill_null(False if kind.kind.value == "boolean" else 0).to_numpy(zero_copy_only=False)
    # Arrays of their own: the compiler of the kernels makes another version for arrays that cannot be written.
    return Column(kind, np.array(defined), np.array(values, DTYPES[kind.kind]))
