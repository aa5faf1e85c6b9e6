"""The batch: events as columns, with a mask of what each event defines.

Every engine reads events in this form only. Numbers, instants and booleans are NumPy arrays, so that kernels take them
as they are; text stays in Arrow, because an engine looks at distinct values (`Column.dictionary`) and not at rows.
Where an attribute is missing, `defined` is False and the value is 0, or null in Arrow, and means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.errors import SchemaError
from headgate.schema import Instant, Kind, Path, Type, format_path, parse_path

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = pa.Array[Any]
    Mask = NDArray[np.bool_]
    Ints = NDArray[np.int64]

DTYPES: dict[Kind, Any] = {
    Kind.BOOLEAN: np.bool_,
    Kind.BIGINT: np.int64,
    Kind.TIMESTAMP: np.int64,
    Kind.DOUBLE: np.float64,
}
ARROW: dict[Kind, Any] = {Kind.STRING: pa.string(), Kind.GRAPH: pa.string(), Kind.BINARY: pa.binary()}


class AnyValues(Protocol):
    """The values of an attribute of the type ANY, each of a kind of its own. Kinds are asked for by the type that holds
    their values: DOUBLE stands for numbers."""

    def value(self, row: int) -> object: ...
    def view(self, kind: Kind) -> Column:
        """The scalars of one kind; `other` says where there is another value."""
        ...

    def has(self, kind: Kind) -> bool:
        """Whether there may be a scalar of a kind."""
        ...

    def lists(self) -> Mask | None:
        """The rows that hold an array; None if none does."""
        ...

    def elements(self) -> tuple[Ints, Column]:
        """The elements of each row, as offsets and a column of the type ANY; a scalar is its own element."""
        ...

    def take(self, rows: NDArray[Any]) -> AnyValues: ...
    def slice(self, start: int, stop: int) -> AnyValues: ...


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class Column:
    """One attribute of a batch. For an ARRAY, row i has the elements `offsets[i]` to `offsets[i + 1]` of `elements`.

    An attribute of the type ANY is a BOOLEAN that is TRUE where it is defined, and has its values in `any`. A view of
    the values of one kind has `other`: where there is a value of another kind. In a view of numbers `exact` has those
    that no double holds, by row.
    """

    type: Type
    defined: Mask
    values: NDArray[Any] | Array
    offsets: Ints | None = None
    elements: Column | None = None
    any: AnyValues | None = None
    other: Mask | None = None
    exact: Mapping[int, Any] = field(default_factory=dict)
    _cache: list[tuple[NDArray[np.int32], Array]] = field(default_factory=list, repr=False)

    def __len__(self) -> int:
        return len(self.defined)

    def value(self, row: int) -> object:
        """The Python value, None where missing; an instant as an `Instant`. For oracles and explanations, not hot."""
        if not self.defined[row]:
            return None
        if self.offsets is not None and self.elements is not None:
            return [self.elements.value(i) for i in range(int(self.offsets[row]), int(self.offsets[row + 1]))]
        if self.any is not None:
            return self.any.value(row)
        if isinstance(self.values, np.ndarray):
            found = self.values[row].item()
            return cast(object, Instant(found) if self.type.kind is Kind.TIMESTAMP else found)
        return cast(object, self.values[row].as_py())

    def dictionary(self) -> tuple[NDArray[np.int32], Array]:
        """Codes into the distinct values, -1 where missing. Computed once per column; for ARRAY ask `elements`."""
        if isinstance(self.values, np.ndarray) or self.offsets is not None:
            raise SchemaError(f"a column of {self.type} has no dictionary", "only text and binary columns have one")
        if not self._cache:
            encoded: Any = self.values
            if not pa.types.is_dictionary(encoded.type):
                encoded = pc.dictionary_encode(encoded)
            codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32, copy=False)
            self._cache.append((codes, encoded.dictionary))
        return self._cache[0]

    def take(self, rows: NDArray[Any]) -> Column:
        if self.offsets is not None and self.elements is not None:
            starts, lengths = self.offsets[rows], np.diff(self.offsets)[rows]
            offsets = offsets_of(lengths)
            inside = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
            return array_column(self.type, self.defined[rows], offsets, self.elements.take(inside))
        if isinstance(self.values, np.ndarray):
            own = None if self.any is None else self.any.take(rows)
            return Column(self.type, self.defined[rows], self.values[rows], any=own)
        return Column(self.type, self.defined[rows], self.values.take(rows))

    def slice(self, start: int, stop: int) -> Column:
        if self.offsets is not None and self.elements is not None:
            offsets = self.offsets[start : stop + 1]
            inside = self.elements.slice(int(offsets[0]), int(offsets[-1]))
            return array_column(self.type, self.defined[start:stop], offsets - offsets[0], inside)
        own = None if self.any is None else self.any.slice(start, stop)
        return Column(self.type, self.defined[start:stop], self.values[start:stop], any=own)

    @classmethod
    def of(cls, type: Type | str, values: Sequence[Any]) -> Column:
        """From Python values that fit the type already (an instant as microseconds); None is missing."""
        type = Type.parse(type) if isinstance(type, str) else type
        defined = np.fromiter((v is not None for v in values), np.bool_, len(values))
        if type.array:
            lengths = np.fromiter((len(v) if v is not None else 0 for v in values), np.int64, len(values))
            flat = [x for v in values if v is not None for x in v]
            return array_column(type, defined, offsets_of(lengths), cls.of(type.element, flat))
        if type.kind in ARROW:
            return cls(type, defined, pa.array(values, ARROW[type.kind]))
        dtype = DTYPES[type.kind]
        return cls(type, defined, np.array([v if v is not None else 0 for v in values], dtype))

    @classmethod
    def missing(cls, type: Type, rows: int) -> Column:
        """A column that no event defines."""
        none = np.zeros(rows, np.bool_)
        if type.array:
            return array_column(type, none, np.zeros(rows + 1, np.int64), cls.missing(type.element, 0))
        if type.kind in ARROW:
            return cls(type, none, pa.nulls(rows, ARROW[type.kind]))
        return cls(type, none, np.zeros(rows, DTYPES[type.kind]))


def any_column(defined: Mask, values: AnyValues) -> Column:
    """The column of an attribute of the type ANY."""
    return Column(Type(Kind.BOOLEAN), defined, defined, any=values)


def array_column(type: Type, defined: Mask, offsets: Ints, elements: Column) -> Column:
    return Column(type, defined, elements.values, offsets, elements)


def offsets_of(lengths: NDArray[Any] | Sequence[int]) -> Ints:
    """Where each of some parts begins, and the end of the last."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@dataclass(frozen=True, eq=False)
class Columns:
    """A batch of events of one stream. `first` is the row number of row 0 in the input of its stream."""

    stream: str
    rows: int
    columns: Mapping[Path, Column]
    first: int = 0
    identity: Array | None = None
    numbers: Ints | None = None
    """The row number of each row, where some rows of the input are not here; else they count from `first`."""

    @property
    def row_numbers(self) -> Ints:
        return self.first + np.arange(self.rows, dtype=np.int64) if self.numbers is None else self.numbers

    def __getitem__(self, path: Path) -> Column:
        try:
            return self.columns[path]
        except KeyError:
            have = ", ".join(map(format_path, self.columns)) or "none"
            raise SchemaError(
                f"the batch of stream {self.stream} has no column {format_path(path)}", f"it was decoded with: {have}"
            ) from None

    def __len__(self) -> int:
        return self.rows

    def get(self, path: Path) -> Column | None:
        return self.columns.get(path)

    def take(self, rows: NDArray[Any]) -> Columns:
        """The given rows, in that order, with the row numbers they had."""
        rows = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        identity = self.identity.take(rows) if self.identity is not None else None
        taken = {path: column.take(rows) for path, column in self.columns.items()}
        return Columns(self.stream, len(rows), taken, self.first, identity, self.row_numbers[rows])

    def slice(self, start: int, stop: int) -> Columns:
        start, stop, _ = slice(start, stop).indices(self.rows)
        stop = max(start, stop)
        identity = self.identity[start:stop] if self.identity is not None else None
        cut = {path: column.slice(start, stop) for path, column in self.columns.items()}
        numbers = None if self.numbers is None else self.numbers[start:stop]
        return Columns(self.stream, stop - start, cut, self.first + start, identity, numbers)

    def row(self, i: int) -> dict[Path, object]:
        """One event as a dict of path to Python value; missing attributes are None."""
        return {path: column.value(i) for path, column in self.columns.items()}

    @classmethod
    def of(
        cls,
        stream: str,
        columns: Mapping[str | Path, Column | tuple[str | Type, Sequence[Any]]],
        *,
        first: int = 0,
        identity: Sequence[str] | Array | None = None,
    ) -> Columns:
        """`Columns.of("stock", {"price": ("double", [1.0, None])})`, or from columns that are made already."""
        made = {
            parse_path(name) if isinstance(name, str) else name: c if isinstance(c, Column) else Column.of(*c)
            for name, c in columns.items()
        }
        lengths = {len(column) for column in made.values()}
        if len(lengths) > 1:
            raise SchemaError(f"the columns of a batch differ in length: {sorted(lengths)}")
        ids = identity if identity is None or isinstance(identity, pa.Array) else pa.array(identity)
        return cls(stream, lengths.pop() if lengths else 0, made, first, ids)
