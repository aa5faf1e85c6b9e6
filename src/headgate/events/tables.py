"""Arrow tables to columns: structs and maps by path, without leaving Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headgate.columns import Column
from headgate.errors import SchemaError
from headgate.events.any_values import of_arrow
from headgate.events.outcome import Limits, Misfit, show
from headgate.events.values import fit
from headgate.events.vectors import convert, plain
from headgate.predicates.values import flat, within
from headgate.schema import Attribute, Kind, Path, Type, arrow_type, format_path, is_list, is_text

if TYPE_CHECKING:
    from headgate.columns import Array, Mask


class Rows:
    """A batch of events as an Arrow table. A column that the table lacks is missing in every row."""

    def __init__(self, table: pa.Table | pa.RecordBatch, limits: Limits) -> None:
        self.rows = table.num_rows
        self._table = table
        self._limits = limits
        self._found: dict[Path, tuple[Array | None, Mask | None]] = {}

    def text(self, row: int) -> str:
        try:
            return show(self._table.slice(row, 1).to_pylist()[0])
        except (ValueError, OverflowError, pa.ArrowException):  # text that is not UTF-8, years beyond Python's
            return f"<row {row} of the table>"

    def column(self, attribute: Attribute) -> tuple[Column, Mask | None]:
        array, blocked = self._at(attribute.path)
        kind = attribute.type
        if kind is None:
            return of_arrow(pa.nulls(self.rows) if array is None else array), None
        if array is None:
            return Column.missing(kind, self.rows), blocked
        column, bad = convert(array, kind, self._limits)
        return column, bad if blocked is None else blocked if bad is None else bad | blocked

    def misfit(self, row: int, attribute: Attribute) -> Misfit:
        array, blocked = self._at(attribute.path)
        if blocked is not None and blocked[row]:
            return self._no_object(row, attribute.path)
        assert array is not None and attribute.type is not None
        array = plain(array)
        try:
            fit(array[row].as_py(), attribute.type, self._limits)
        except Misfit as problem:
            return problem
        except UnicodeDecodeError:
            return Misfit("the text is not UTF-8", "encoding")
        except (ValueError, OverflowError):
            pass
        if attribute.type.kind is Kind.TIMESTAMP and pa.types.is_temporal(array.type):
            return Misfit(f"a value of {array.type} is beyond 64 bits of microseconds", "range")
        return Misfit(f"a value of the Arrow type {array.type} is not a {attribute.type}")

    def typed(self, attribute: Attribute) -> bool:
        array, blocked = self._at(attribute.path)
        if array is None or blocked is not None:
            return blocked is None
        try:
            return always_fits(arrow_type(array.type, attribute.name), attribute.type)
        except SchemaError:
            return False

    def _no_object(self, row: int, path: Path) -> Misfit:
        for depth in range(1, len(path)):
            array, _ = self._at(path[:depth])
            if array is not None and array[row].is_valid and not _holds(array.type):
                rest = format_path(path[depth:])
                return Misfit(f"{format_path(path[:depth])} is {array.type}, not an object, so it has no {rest}")
        return Misfit(f"{format_path(path)} is not inside an object")

    def _at(self, path: Path) -> tuple[Any, Mask | None]:
        if path not in self._found:
            self._found[path] = self._walk(path)
        return self._found[path]

    def _walk(self, path: Path) -> tuple[Any, Mask | None]:
        name = path[-1]
        if len(path) == 1:
            at = self._table.schema.get_all_field_indices(name)
            if len(at) > 1:
                raise SchemaError(f"the table has {len(at)} columns named {name!r}", "rename or drop all but one")
            return (plain(self._table.column(at[0]), keep_dictionary=True) if at else None), None
        parent, blocked = self._at(path[:-1])
        if parent is None or pa.types.is_null(parent.type):
            return None, blocked
        kind = parent.type
        if pa.types.is_struct(kind):
            fields = kind.get_all_field_indices(name)
            if len(fields) > 1:
                raise SchemaError(f"{format_path(path[:-1])} has {len(fields)} fields named {name!r}")
            return (plain(pc.struct_field(parent, fields), keep_dictionary=True) if fields else None), blocked
        if pa.types.is_map(kind) and is_text(kind.key_type):
            return pc.map_lookup(parent, pa.scalar(name, kind.key_type), "last"), blocked
        found = None
        if is_list(kind) and pa.types.is_struct(inner := _innermost(kind)) and inner.get_field_index(name) >= 0:
            listed = pa.list_(_innermost(inner.field(name).type))
            found = pa.array(
                [within(v, name) if v is None else flat(within(v, name)) for v in parent.to_pylist()], listed
            )
        valid: Mask = parent.is_valid().to_numpy(zero_copy_only=False)
        blocked = valid if blocked is None else valid | blocked
        return found, blocked if np.any(blocked) else None


def _innermost(kind: Any) -> Any:
    """The type of the elements of arrays in arrays."""
    while is_list(kind):
        kind = kind.value_type
    return kind


def always_fits(found: Type | None, declared: Type | None) -> bool:
    """Whether every value of a column fits an attribute; a graph is a text until it is parsed."""
    if found is None or declared is None:
        return True
    return found == declared or (found == Type(Kind.STRING, declared.array) and declared.kind is Kind.GRAPH)


def _holds(kind: Any) -> bool:
    return bool(pa.types.is_struct(kind) or (pa.types.is_map(kind) and is_text(kind.key_type)))
