"""Values that come as text, from CSV and XML, against a type.

Text says less than JSON: `5` may be any number, and an empty field of a number is a missing one. Numbers follow the
rules of `values`; whitespace around anything but a STRING is ignored; a CSV field of an ARRAY holds a JSON array.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from headgate.columns import Column
from headgate.events.instants import iso_column
from headgate.events.outcome import Limits, Misfit, show
from headgate.events.values import exact_double, fit, whole_decimal
from headgate.events.vectors import EXACT, by_value, convert
from headgate.schema import Kind, Type

if TYPE_CHECKING:
    from headgate.columns import Array, Mask

_WHOLE = r"[+-]?[0-9]{1,400}"
_NUMBER = r"[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]{1,9})?"
_PLAIN_WHOLE = r"^-?[0-9]{1,18}$"
_is_whole = re.compile(_WHOLE, re.ASCII).fullmatch
_is_number = re.compile(_NUMBER, re.ASCII).fullmatch
_WORDS = {"true": True, "false": False, "1": True, "0": False}
_INFINITE = {"nan": math.nan, "inf": math.inf, "infinity": math.inf, "-inf": -math.inf, "-infinity": -math.inf}


_JSON_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,300})([.][0-9]{1,300})?([eE][+-]?[0-9]{1,9})?", re.ASCII).fullmatch


def written(text: Any) -> Any:
    """A text that nobody declared, as the value that it would be in JSON: a number, TRUE, FALSE, else a text."""
    if not isinstance(text, str):
        return text
    if text in ("true", "false"):
        return text == "true"
    number = _JSON_NUMBER(text)
    if number is None:
        return text
    return float(text) if number[2] or number[3] else int(text)


def fit_text(text: Any, type: Type, limits: Limits) -> Any:
    """One text as a value of the type; None if empty, unless it is a STRING."""
    if text is None:
        return None
    if isinstance(text, list):
        if type.array:
            return [fit_text(one, type.element, limits) for one in text]
        raise Misfit(f"it occurs {len(text)} times but is not an ARRAY")
    if not isinstance(text, str):
        raise Misfit(f"it holds other elements but is a {type}")
    if type.kind in (Kind.STRING, Kind.GRAPH) and not type.array:
        return fit(text, type, limits)
    text = text.strip()
    if not text:
        return None
    if type.array:
        try:
            return fit(orjson.loads(text), type, limits)
        except orjson.JSONDecodeError:
            raise Misfit(f"the text {show(text)} is not an {type}: write it as a JSON array") from None
    if type.kind is Kind.BOOLEAN:
        if text.lower() not in _WORDS:
            raise Misfit(f"the text {show(text)} is not a BOOLEAN: write true or false")
        return _WORDS[text.lower()]
    if type.kind is Kind.BIGINT:
        return fit(_whole(text), type, limits)
    if type.kind is Kind.DOUBLE:
        return _double(text)
    if type.kind is Kind.TIMESTAMP and _is_whole(text):
        return fit(int(text), type, limits)
    return fit(text, type, limits)


def _whole(text: str) -> int:
    if _is_whole(text):
        return int(text)
    if not _is_number(text):
        raise Misfit(f"the text {show(text)} is not a BIGINT")
    return whole_decimal(Decimal(text))


def _double(text: str) -> float:
    if _is_whole(text):
        return exact_double(int(text)) if text.lstrip("+-0") else float(text)
    if text.lower() in _INFINITE:
        return _INFINITE[text.lower()]
    if not _is_number(text):
        raise Misfit(f"the text {show(text)} is not a DOUBLE")
    value = float(text)
    if math.isinf(value):
        raise Misfit(f"{show(text)} is beyond the range of DOUBLE", "range")
    return value


def text_column(array: Array, type: Type, limits: Limits) -> tuple[Column, Mask | None]:
    """A whole Arrow array of text. What is not in the plainest form goes value by value."""
    if type.kind in (Kind.STRING, Kind.GRAPH) and not type.array:
        return convert(array, type, limits)
    values = None if type.array else _plain(array, type.kind)
    if values is None:
        return by_value(array.to_pylist(), type, lambda text: fit_text(text, type, limits))
    return Column(type, array.is_valid().to_numpy(zero_copy_only=False), values), None


def _all(array: Array, pattern: str) -> bool:
    return bool(pc.all(pc.match_substring_regex(array, pattern)).as_py() is not False)


def _plain(array: Any, kind: Kind) -> Any:
    if kind is Kind.BIGINT or kind is Kind.TIMESTAMP:
        if _all(array, _PLAIN_WHOLE):
            return array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return iso_column(array) if kind is Kind.TIMESTAMP else None
    if kind is Kind.DOUBLE and _all(array, f"^{_NUMBER}$"):
        values = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
        # Beyond 2**53 a whole number may be rounded, and beyond the range Arrow says infinity.
        return values if not len(values) or np.abs(values).max() < EXACT else None
    if kind is Kind.BOOLEAN and _all(array, "^(?i:true|false)$"):
        return pc.equal(pc.utf8_lower(array), pa.scalar("true")).fill_null(False).to_numpy(zero_copy_only=False)
    return None
