"""One value against one type: the rules, spelled out.

This is the reference. The columns that are converted at once (`vectors`, `objects`) must agree with it, and the tests
compare them; it also words the reason whenever a value does not fit.
"""

from __future__ import annotations

import base64
import binascii
import math
import operator
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np

from headgate.events.instants import from_date, from_iso
from headgate.events.outcome import Limits, Misfit, show
from headgate.predicates.values import is_missing, numpy_instant
from headgate.schema import Kind, Type

LOW, HIGH = -(2**63), 2**63 - 1


def fit(value: Any, type: Type, limits: Limits) -> Any:
    """The value as `Column.value` would give it, None if missing; Misfit if it does not fit."""
    if is_missing(value):
        return None
    if type.array:
        if isinstance(value, np.ndarray) and value.ndim == 1:
            value = list(value)
        if not isinstance(value, list | tuple):
            raise Misfit(f"{_what(value)} is not an {type}")
        return [fit(element, type.element, limits) for element in value]
    if isinstance(value, np.generic) and not isinstance(value, np.datetime64):
        value = value.item()
    return _FITS[type.kind](value, limits)


def _what(value: object) -> str:
    for kinds, name in _WORDS:
        if isinstance(value, kinds):
            return f"{name}{show(value)}"
    return f"{show(value)} ({type(value).__name__})"


_WORDS: tuple[tuple[Any, str], ...] = (
    (bool, "the boolean "),
    ((int, float, Decimal), ""),
    (str, "the text "),
    (bytes, "the bytes "),
    (dict, "the object "),
    ((list, tuple), "the array "),
)


def _boolean(value: Any, limits: Limits) -> bool:
    if isinstance(value, bool):
        return value
    raise Misfit(f"{_what(value)} is not a BOOLEAN")


def _bigint(value: Any, limits: Limits) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        value = operator.index(value)
    elif isinstance(value, float):
        if not value.is_integer():
            raise Misfit(f"{show(value)} is not a BIGINT: it is no whole number")
        value = int(value)
    elif isinstance(value, Decimal):
        value = whole_decimal(value)
    else:
        raise Misfit(f"{_what(value)} is not a BIGINT")
    if not LOW <= value <= HIGH:
        raise Misfit(f"{show(value)} is not a BIGINT: it needs more than 64 bits", "range")
    return int(value)


def whole_decimal(value: Decimal) -> int:
    """A decimal as an integer, without ever writing out 1e1000000."""
    if not value.is_finite():
        raise Misfit(f"{value} is not a BIGINT: it is no whole number")
    if value and value.adjusted() > 20:
        raise Misfit(f"{show(value)} is not a BIGINT: it needs more than 64 bits", "range")
    if (value and value.adjusted() < 0) or value != value.to_integral_value():
        raise Misfit(f"{show(value)} is not a BIGINT: it is no whole number")
    return int(value)


def _double(value: Any, limits: Limits) -> float:
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return exact_double(operator.index(value))
    if isinstance(value, Decimal):
        if value.is_nan():
            return math.nan
        near = float(value)
        if value.is_finite() and (not math.isfinite(near) or Decimal(near) != value):
            raise Misfit(f"{show(value)} has no exact DOUBLE: cast it to double first", "range")
        return near
    raise Misfit(f"{_what(value)} is not a DOUBLE")


def exact_double(value: int) -> float:
    try:
        near = float(value)
    except OverflowError:
        near = math.inf
    if near == math.inf or int(near) != value:
        raise Misfit(f"{show(value)} has no exact DOUBLE: declare the attribute BIGINT", "range")
    return near


def _text(value: Any, limits: Limits) -> str:
    if not isinstance(value, str):
        raise Misfit(f"{_what(value)} is not a STRING")
    text = str.__str__(value)
    try:
        size = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        raise Misfit(f"the text {text[:60]!a} holds half of a surrogate pair", "encoding") from None
    check_size(size, limits)
    return text


def _graph(value: Any, limits: Limits) -> str:
    if not isinstance(value, str):
        raise Misfit(f"{_what(value)} is not a GRAPH: it must be RDF text")
    return _text(value, limits)


def check_size(size: int, limits: Limits) -> None:
    if size > limits.field_bytes:
        raise Misfit(f"a field of {size:,} bytes is above the limit of {limits.field_bytes:,} (field_bytes)", "size")


def _timestamp(value: Any, limits: Limits) -> int:
    if isinstance(value, str):
        return from_iso(value)
    if isinstance(value, date):
        return from_date(value)
    if isinstance(value, np.datetime64):
        value = numpy_instant(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not LOW <= value <= HIGH:
            raise Misfit(f"{show(value)} is not a TIMESTAMP: beyond 64 bits of microseconds", "range")
        return operator.index(value)
    raise Misfit(f"{_what(value)} is not a TIMESTAMP")


def _binary(value: Any, limits: Limits) -> bytes:
    if isinstance(value, str):
        try:
            value = base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise Misfit(f"{_what(value)} is not a BINARY: as text it must be base64") from None
    if not isinstance(value, bytes | bytearray | memoryview):
        raise Misfit(f"{_what(value)} is not a BINARY")
    check_size(len(value), limits)
    return bytes(value)


_FITS: dict[Kind, Callable[[Any, Limits], Any]] = {
    Kind.BOOLEAN: _boolean,
    Kind.BIGINT: _bigint,
    Kind.DOUBLE: _double,
    Kind.STRING: _text,
    Kind.TIMESTAMP: _timestamp,
    Kind.BINARY: _binary,
    Kind.GRAPH: _graph,
}
