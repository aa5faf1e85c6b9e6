"""Arithmetic over whole columns (docs/semantics.md, section 1).

`predicates.values` defines them on single values. What has no result, an overflow or a division by zero, is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headgate.predicates import values
from headgate.predicates.operands import ByRows, Constant, Mixed, Numbers, Operand, Typed, Words, of_values
from headgate.schema import Instant, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LEAST = -(2**63)
_EXACT = 2.0**53


def calculated(op: str, a: Operand, b: Operand) -> Typed:
    """`a op b`."""
    if isinstance(a, Mixed) or isinstance(b, Mixed):
        return _of_mixed(op, a, b)
    if isinstance(a, Constant) and isinstance(b, Constant):
        return Constant(values.arithmetic(op, a.value, b.value))
    constants = [o.value for o in (a, b) if isinstance(o, Constant)]
    if None in constants:
        return Constant(None)
    if any(isinstance(c, int) and c not in values.INT64 for c in constants):
        return of_values([values.arithmetic(op, p, q) for p, q in zip(_listed(a, b), _listed(b, a), strict=True)])
    x, y = (np.asarray(o.value if isinstance(o, Constant) else o.data) for o in (a, b) if not isinstance(o, Words))
    known = a.known & b.known
    with np.errstate(all="ignore"):
        if op != "/" and x.dtype.kind != "f" and y.dtype.kind != "f":
            data, fits = _whole(op, x, y)
        else:
            data, fits = _double(op, x.astype(np.float64), y.astype(np.float64))
    return Numbers(data, known & fits, _is_time(a) != _is_time(b))


def _of_mixed(op: str, a: Operand, b: Operand) -> Typed:
    """Where an attribute of the type ANY takes part, whole numbers and doubles may stand in one column: the doubles tell
    the result of both as long as it is small. What may be a time is computed row by row."""
    if any(o.has(Kind.TIMESTAMP) if isinstance(o, Mixed) else _is_time(o) for o in (a, b)):
        raise ByRows
    one, other = (o.of_kind(Kind.DOUBLE) if isinstance(o, Mixed) else o for o in (a, b))
    if any(isinstance(o, Numbers) and o.exact for o in (one, other)):
        raise ByRows
    found = calculated(op, one, other)
    if isinstance(found, Numbers) and np.any(~(np.abs(found.data) <= _EXACT) & found.known):
        raise ByRows
    return found


def _is_time(operand: Typed) -> bool:
    return (
        operand.instant
        if isinstance(operand, Numbers)
        else isinstance(operand, Constant) and isinstance(operand.value, Instant)
    )


def _listed(a: Typed, other: Typed) -> list[Any]:
    if isinstance(a, Constant):
        return [a.value] * np.size(other.known)
    assert isinstance(a, Numbers)
    return [v if known else None for v, known in zip(a.data.tolist(), a.known.tolist(), strict=True)]


def _whole(op: str, x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    """The result and where it is one: numpy wraps around, so overflow shows in the signs."""
    match op:
        case "+":
            total = x + y
            return total, ((x ^ total) & (y ^ total)) >= 0
        case "-":
            total = x - y
            return total, ((x ^ y) & (x ^ total)) >= 0
        case "*":
            total = x * y
            return total, _product_fits(x, y, total)
    # x % -1 is 0 like x % 1, but the least int64 by -1 traps on some machines.
    return np.fmod(x, np.where((y == 0) | (y == -1), 1, y)), y != 0


def _product_fits(x: NDArray[Any], y: NDArray[Any], total: NDArray[Any]) -> NDArray[np.bool_]:
    """A product of doubles below 2**62 tells that the whole product fits; the few others are divided back."""
    fits = np.abs(x.astype(np.float64) * y.astype(np.float64)) < 2.0**62
    unsure = np.flatnonzero(~fits)
    if len(unsure):
        p, q, r = (np.broadcast_to(v, total.shape)[unsure] for v in (x, y, total))
        turned = (p == -1) & (q == _LEAST)
        safe = np.where(turned, 1, p)
        fits[unsure] = ~turned & (r // safe == q) & (r % safe == 0)
    return fits


def _double(op: str, x: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[Any], Any]:
    match op:
        case "+":
            return x + y, np.True_
        case "-":
            return x - y, np.True_
        case "*":
            return x * y, np.True_
        case "/":
            return x / y, y != 0
    return np.fmod(x, y), y != 0


def negated(a: Operand) -> Typed:
    if isinstance(a, Mixed):
        a = a.of_kind(Kind.DOUBLE)
        if isinstance(a, Numbers) and (a.exact or np.any(a.data == _LEAST)):
            raise ByRows  # the least BIGINT has no opposite, while a double of its size has one
    if not isinstance(a, Numbers):
        assert isinstance(a, Constant)
        return Constant(values.negate(a.value))
    return Numbers(-a.data, a.known if a.data.dtype.kind == "f" else a.known & (a.data != _LEAST))
