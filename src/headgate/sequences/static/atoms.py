"""The truth of single atoms for a whole batch of columns, as arrays of booleans.

Comparisons of a number, instant or boolean with a constant, and equality of texts, are vectors. Every other atom is
decided by `expressions` on one row at a time, on distinct texts where it speaks of one text only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Column, Columns
from headgate.language import ast
from headgate.language.ast import Node, Path
from headgate.predicates import values
from headgate.predicates.normal import Complete, Lit
from headgate.predicates.rows import Values, compile_truth
from headgate.schema import Kind, Schema

Mask = NDArray[np.bool_]
_NUMBERS = {Kind.BIGINT, Kind.DOUBLE, Kind.TIMESTAMP, Kind.BOOLEAN}


def constant_of(lit: object) -> tuple[Path, Any] | None:
    """The attribute and the constant of `a = c`, asked to be TRUE."""
    match lit:
        case Lit(ast.Compare("=", ast.Attribute(path), ast.Literal(value)), True, False) if value is not None:
            return path, value
    return None


def holds(lit: Lit | Complete, columns: Columns, schema: Schema) -> Mask:
    if isinstance(lit, Complete):
        complete = np.ones(len(columns), np.bool_)
        for a in schema:
            complete &= _defined(columns, a.path)
        return complete
    if lit.default:
        return _by_row(lit, columns, schema)
    match lit.atom:
        case ast.IsNull(ast.Attribute(path)):
            return _defined(columns, path) ^ lit.truth
        case ast.Attribute(path):
            column = columns.get(path)
            if column is not None and column.type.kind is Kind.BOOLEAN and not column.type.array:
                return _known(column.defined, np.asarray(column.values, np.bool_), lit.truth)
        case ast.Compare(op, ast.Attribute(path), ast.Literal(value)):
            column = columns.get(path)
            if column is None:
                return np.zeros(len(columns), np.bool_)
            found = _compare(op, column, value)
            if found is not None:
                return _known(column.defined, found, lit.truth)
    return _by_text(lit, columns) if _one_text(lit.atom, columns) else _by_row(lit, columns, schema)


def _known(defined: Mask, found: Mask, truth: bool) -> Mask:
    return defined & found if truth else defined & ~found


def _defined(columns: Columns, path: Path) -> Mask:
    column = columns.get(path)
    return np.zeros(len(columns), np.bool_) if column is None else column.defined


def _compare(op: str, column: Column, value: Any) -> Mask | None:
    if column.type.array or isinstance(value, ast.Hole):
        return None
    if isinstance(column.values, np.ndarray) and column.type.kind in _NUMBERS and not isinstance(value, str):
        return _order(op, column.values, value)
    if isinstance(value, str) and op in ("=", "<>") and column.type.kind is Kind.STRING:
        codes, distinct = column.dictionary()
        same = np.append(np.array([v == value for v in distinct.to_pylist()], np.bool_), False)[codes]
        return same if op == "=" else ~same
    return None


def _order(op: str, held: NDArray[Any], value: Any) -> Mask:
    """NaN equals NaN and is above everything; a BIGINT against a DOUBLE is compared exactly."""
    if held.dtype == np.int64 and isinstance(value, float):
        return _whole_against_real(op, held, value)
    if held.dtype == np.float64:
        if isinstance(value, int) and int(float(value)) != value:
            return np.fromiter((values.compare(op, v, value) for v in held.tolist()), np.bool_, len(held))
        missing = np.isnan(held)
        if value != value:
            less, same = ~missing, missing
        else:
            less, same = held < value, held == value
    else:
        less, same = held < value, held == value
    return _from_order(op, less, same)


def _whole_against_real(op: str, held: NDArray[Any], value: float) -> Mask:
    nothing = np.zeros(len(held), np.bool_)
    if value != value or value >= 2.0**63:
        return _from_order(op, ~nothing, nothing)
    if value < -(2.0**63):
        return _from_order(op, nothing, nothing)
    floor = int(np.floor(value))
    if floor == value:
        return _from_order(op, held < floor, held == floor)
    return _from_order(op, held <= floor, nothing)


def _from_order(op: str, less: Mask, same: Mask) -> Mask:
    match op:
        case "=":
            return same
        case "<>":
            return ~same
        case "<":
            return less
        case "<=":
            return less | same
        case ">":
            return ~(less | same)
    return ~less


def _one_text(atom: Node, columns: Columns) -> bool:
    paths = {n.path for n in ast.walk(atom) if isinstance(n, ast.Attribute)}
    column = columns.get(next(iter(paths))) if len(paths) == 1 else None
    return column is not None and column.type.kind is Kind.STRING and not column.type.array


def _by_text(lit: Lit, columns: Columns) -> Mask:
    path = next(n.path for n in ast.walk(lit.atom) if isinstance(n, ast.Attribute))
    codes, distinct = columns[path].dictionary()
    test = compile_truth(lit.atom)
    found = [test(Values({path: v}, {})) is lit.truth for v in (*distinct.to_pylist(), None)]
    return np.array(found, np.bool_)[codes]


def _by_row(lit: Lit, columns: Columns, schema: Schema) -> Mask:
    defaults = {a.path: a.default for a in schema if a.default is not None} if lit.default else None
    test = compile_truth(lit.atom, defaults)
    paths = {n.path for n in ast.walk(lit.atom) if isinstance(n, ast.Attribute)}
    held = {path: column for path in paths if (column := columns.get(path)) is not None}
    rows = (Values({path: column.value(i) for path, column in held.items()}, {}) for i in range(len(columns)))
    return np.fromiter(
        ((test(row) is True) == lit.truth if lit.default else test(row) is lit.truth for row in rows),
        np.bool_,
        len(columns),
    )
