"""What arithmetic, comparison, functions and tests mean on single values, written as plainly as they can be.

None is a missing value, and the result of what cannot be computed. Nothing here is shared with `predicates` but the class
of instants. `natural` and `kind` say what section 8 says of values of the type ANY.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from ipaddress import ip_address
from typing import Any

import re2

from headgate.predicates.values import Instant

INT64 = range(-(2**63), 2**63)
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - in UTC


def natural(value: Any) -> Any:
    """A value of an event as the language has it; None if it is missing."""
    if hasattr(value, "dtype") and hasattr(value, "item"):
        if value.dtype.kind == "M":
            return None if value != value else Instant(int(value.astype("datetime64[us]").astype("int64")))
        return natural(value.tolist() if getattr(value, "ndim", 0) else value.item())
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, datetime):
        ahead = value.utcoffset() or timedelta(0)
        return Instant(
            (value.replace(tzinfo=None) - _EPOCH) // timedelta(microseconds=1) - ahead // timedelta(microseconds=1)
        )
    if isinstance(value, date):
        return Instant((value - _EPOCH.date()).days * 86_400_000_000)
    if isinstance(value, Decimal) and not value.is_finite():
        return math.nan if value.is_nan() else float(value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    return list(value) if isinstance(value, tuple) else value


def kind(value: Any) -> str | None:
    """The kind of a value; None for what has none and so differs from everything: a set, half of a character."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return None
        return "text"
    for types, name in (
        (bool, "boolean"),
        (Instant, "instant"),
        ((int, float, Decimal), "number"),
        (bytes, "bytes"),
        (list, "array"),
        (Mapping, "object"),
    ):
        if isinstance(value, types):
            return name
    return None


def elements(array: list[Any]) -> list[Any]:
    """The elements of an array, and those of the arrays in it."""
    found: list[Any] = []
    for element in map(natural, array):
        found += elements(element) if isinstance(element, list) else [element]
    return found


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """`/` divides as DOUBLE, `%` takes the sign of the dividend; by zero, and beyond BIGINT, is missing."""
    if a is None or b is None:
        return None
    if isinstance(a, Instant) or isinstance(b, Instant):
        return _time(op, a, b)
    if op != "/" and isinstance(a, int) and isinstance(b, int):
        return _whole(op, a, b)
    try:
        a, b = float(a), float(b)
    except OverflowError:
        return None
    if op == "/":
        return None if b == 0 else a / b
    if op == "%":
        return None if b == 0 else _remainder(a, b)
    return {"+": a + b, "-": a - b, "*": a * b}[op]


def _time(op: str, a: Any, b: Any) -> Any:
    """A time less a time is a number; a time and a whole number give a time."""
    times = (isinstance(a, Instant), isinstance(b, Instant))
    if op == "-" and all(times):
        return _whole("-", int(a), int(b))
    if not isinstance(a, int) or not isinstance(b, int) or all(times) or op not in "+-" or (op == "-" and times[1]):
        return None
    moved = _whole(op, int(a), int(b))
    return None if moved is None else Instant(moved)


def _whole(op: str, a: int, b: int) -> int | None:
    if op == "%":
        if b == 0:
            return None
        rest = abs(a) % abs(b)
        return -rest if a < 0 else rest
    result = {"+": a + b, "-": a - b, "*": a * b}[op]
    return result if result in INT64 else None


def _remainder(a: float, b: float) -> float:
    return math.nan if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)


def negate(a: Any) -> Any:
    if a is None:
        return None
    return None if isinstance(a, int) and -a not in INT64 else -a


def function(name: str, *operands: Any) -> Any:
    if None in operands:
        return None
    (a,) = operands
    match name:
        case "LOWER":
            return a.lower()
        case "UPPER":
            return a.upper()
        case "LENGTH":
            return len(a)
        case "ABS":
            return a if a >= 0 or a != a else negate(a)
    raise AssertionError(name)


def compare(op: str, a: Any, b: Any) -> bool:
    """Both are there. NaN equals NaN and is above everything; BIGINT against DOUBLE is exact, as Python does it."""
    a_nan, b_nan = a != a, b != b
    if a_nan or b_nan:
        a, b = int(a_nan), int(b_nan)
    match op:
        case "=":
            return bool(a == b)
        case "<>":
            return bool(a != b)
        case "<":
            return bool(a < b)
        case "<=":
            return bool(a <= b)
        case ">":
            return bool(a > b)
        case ">=":
            return bool(a >= b)
    raise AssertionError(op)


def holds(name: str, text: str, other: str, escape: str | None = None) -> bool:
    """A test in words, of texts that are there."""
    match name:
        case "CONTAINS":
            return other in text
        case "STARTS WITH":
            return text.startswith(other)
        case "ENDS WITH":
            return text.endswith(other)
        case "LIKE" | "ILIKE":
            return like(text, other, escape, name == "ILIKE")
        case "MATCHES":
            return matches(text, other)
        case "IN CIDR":
            return _in_network(text, other)
    raise AssertionError(name)


def _in_network(text: str, network: str) -> bool:
    """The bits of the address begin with those of the network's prefix."""
    try:
        address, base = ip_address(text), ip_address(network.partition("/")[0])
    except ValueError:
        return False
    whole = address.max_prefixlen
    length = int(network.partition("/")[2] or base.max_prefixlen)
    bits, wanted = f"{int(address):0{whole}b}", f"{int(base):0{base.max_prefixlen}b}"
    return address.version == base.version and bits[:length] == wanted[:length]


def like(value: str, pattern: str, escape: str | None, fold: bool) -> bool:
    """ILIKE is LIKE between code points without their case; an escape is that code point and no other."""
    if fold:
        value = "".join(map(_simple_fold, value))
    return like_regex(pattern, escape, fold).fullmatch(value) is not None


def _simple_fold(c: str) -> str:
    """Unicode's simple case folding, as far as Python knows it."""
    return c.casefold() if len(c.casefold()) == 1 else c.lower() if len(c.lower()) == 1 else c


@lru_cache(maxsize=10_000)
def like_regex(pattern: str, escape: str | None, fold: bool) -> re.Pattern[str]:
    """A LIKE pattern as a regular expression. Runs of % are one, so that it cannot blow up more than linearly each."""
    parts: list[str] = []
    at = 0
    while at < len(pattern):
        c = pattern[at]
        if c == escape and at + 1 < len(pattern):
            at += 1
            parts.append(re.escape(_simple_fold(pattern[at]) if fold else pattern[at]))
        elif c == "%":
            if not parts or parts[-1] != ".*":
                parts.append(".*")
        else:
            parts.append("." if c == "_" else re.escape(_simple_fold(c) if fold else c))
        at += 1
    return re.compile("".join(parts), re.DOTALL)


@lru_cache(maxsize=10_000)
def regex(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(pattern, options=options)


def matches(value: str, pattern: str) -> bool:
    return regex(pattern).search(value) is not None
