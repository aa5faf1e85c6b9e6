"""The batch as operators see it: values by row, events with what each operator needs, rows of Arrow tables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.columns import Column, Columns
from headgate.language import ast
from headgate.language.ast import DUR, RUN
from headgate.operators.caller import Request
from headgate.operators.event import Event, moment
from headgate.operators.index import OperatorIndex
from headgate.operators.predicate import Key
from headgate.operators.registry import Operator, Registry
from headgate.schema import Kind, Path, format_path


class View:
    """Reads one batch for one index."""

    def __init__(self, columns: Columns, registry: Registry, index: OperatorIndex) -> None:
        self._columns = columns
        self._registry = registry
        self._index = index
        self._sees: dict[str, frozenset[Path]] = {}
        self._instants: dict[int, frozenset[int]] = {}

    def reader(self, row: int) -> Callable[[Path], Any]:
        """Reads attributes of a row as constraints know them; each is fetched once."""
        kept: dict[Path, Any] = {}
        columns = self._columns

        def read(path: Path) -> Any:
            if path not in kept:
                column = columns.get(path)
                kept[path] = None if column is None else column.value(row)
            return kept[path]

        return read

    def request(self, row: int, predicate: int, values: tuple[Any, ...], key: Key) -> Request:
        operator = self._registry[self._index.predicates[predicate].name]
        instants = self._instants.get(predicate)
        if instants is None:
            instants = self._instants[predicate] = self._moments(predicate)
        if instants:
            values = tuple(_moment(v) if i in instants else v for i, v in enumerate(values))
        return Request(operator, self._event(operator, row), values, key, lambda: self._table(operator, row))

    def _event(self, operator: Operator, row: int) -> Event:
        columns = self._columns

        def read(path: Path) -> Any:
            column = columns.get(path)
            if column is None:
                return None
            value = column.value(row)
            return _moment(value) if column.type.kind is Kind.TIMESTAMP else value

        return Event(self._paths(operator), read)

    def _paths(self, operator: Operator) -> frozenset[Path]:
        """What the operator needs, or all that the batch holds; a struct stands for what is in it."""
        found = self._sees.get(operator.name)
        if found is None:
            # Sequences put the length of an event, and what a run holds, beside its attributes.
            have = frozenset(p for p in self._columns.columns if p[0] not in (DUR, RUN))
            if operator.needs is None:
                found = have
            else:
                inside = {p for p in have for n in operator.needs if p[: len(n)] == n}
                found = frozenset(inside | {n for n in operator.needs if not any(p[: len(n)] == n for p in inside)})
            self._sees[operator.name] = found
        return found

    def _table(self, operator: Operator, row: int) -> pa.Table:
        paths = sorted(self._paths(operator) & frozenset(self._columns.columns))
        rows = np.array([row])
        return pa.table({format_path(p): _arrow(self._columns[p].take(rows)) for p in paths})

    def _moments(self, number: int) -> frozenset[int]:
        """The argument positions that hold instants: operators get datetimes, constraints microseconds."""
        found = set()
        for i, argument in enumerate(self._index.predicates[number].arguments):
            if isinstance(argument, ast.Instant):
                found.add(i)
            elif isinstance(argument, ast.Attribute):
                column = self._columns.get(argument.path)
                if column is not None and column.type.kind is Kind.TIMESTAMP:
                    found.add(i)
        return frozenset(found)


def _moment(value: Any) -> Any:
    if isinstance(value, list):
        return [_moment(v) for v in value]
    return moment(value) if isinstance(value, int) else value


def _arrow(column: Column) -> pa.Array[Any]:
    values = [column.value(i) for i in range(len(column))]
    if column.any is not None:
        return pa.array(values)
    if column.type.kind is Kind.TIMESTAMP:
        inner: Any = pa.timestamp("us", "UTC")
    else:
        inner = {
            Kind.BOOLEAN: pa.bool_(),
            Kind.BIGINT: pa.int64(),
            Kind.DOUBLE: pa.float64(),
            Kind.BINARY: pa.binary(),
        }.get(column.type.kind, pa.string())
    return pa.array(values, pa.list_(inner) if column.type.array else inner)
