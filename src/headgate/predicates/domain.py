"""The values an attribute can have, in order, and the places where that order can be cut.

A subscription cuts each domain at its constants; between two neighbouring cuts lies a *cell*, whose values no
subscription tells apart. Covering is decided on cells, so it is exact as soon as cuts are: `x > 4` and `x >= 5` are
one cut for BIGINT and two for DOUBLE, where the next value after 4.0 is one step of the last bit away. Text is
discrete too: what follows `'ab'` in code-point order is `'ab'` with a NUL character behind it.

A cut stands *before* a value. `BOTTOM` is the cut before the least value and `TOP` the one after the greatest, so
clipping at the ends of a type (an integer of 64 bits) needs no special case. Values follow section 1 of the
semantics: NaN is one value above infinity, -0.0 is 0.0, integers and doubles compare exactly.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

Cut = tuple[Any, ...]
"""BOTTOM, (1, key) or TOP: tuples compare as the cuts do."""
BOTTOM: Cut = (0,)
TOP: Cut = (2,)
Span = tuple[Cut, Cut]
"""The values from the first cut up to the second; never empty."""

_INFINITY = 0x7FF0000000000000
_NAN = _INFINITY + 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LAST_CHARACTER = "\U0010ffff"
_SURROGATES = (0xD800, 0xE000)


@dataclass(frozen=True, slots=True)
class Domain:
    """A totally ordered type.

    `at_least(v)` is the cut before the least value that is not below v, `above(v)` the cut before the least value above
    v. `pick` gives one value between two cuts: the plainest, for people read it.
    """

    name: str
    at_least: Callable[[Any], Cut]
    above: Callable[[Any], Cut]
    pick: Callable[[Cut, Cut], Any]

    def compare(self, op: str, value: Any) -> tuple[Span, ...]:
        """The values v with `v op value`."""
        at, past = self.at_least(value), self.above(value)
        match op:
            case "=":
                return _spans((at, past))
            case "<>":
                return _spans((BOTTOM, at), (past, TOP))
            case "<":
                return _spans((BOTTOM, at))
            case "<=":
                return _spans((BOTTOM, past))
            case ">":
                return _spans((past, TOP))
            case _:
                return _spans((at, TOP))


def _spans(*pairs: Span) -> tuple[Span, ...]:
    kept = [p for p in pairs if p[0] < p[1]]
    if len(kept) == 2 and kept[0][1] == kept[1][0]:
        return ((kept[0][0], kept[1][1]),)
    return tuple(kept)


# ---------------------------------------------------------------- whole numbers


def _whole(low: int, high: int) -> tuple[Callable[[Any], Cut], Callable[[Any], Cut]]:
    def cut(key: int) -> Cut:
        return BOTTOM if key <= low else TOP if key > high else (1, key)

    def at_least(value: Any) -> Cut:
        if isinstance(value, float) and not math.isfinite(value):
            return BOTTOM if value < 0 else TOP
        return cut(math.ceil(value))

    def above(value: Any) -> Cut:
        if isinstance(value, float) and not math.isfinite(value):
            return BOTTOM if value < 0 else TOP
        return cut(math.floor(value) + 1)

    return at_least, above


def _plain_whole(low: int, high: int) -> int:
    """A round whole number in [low, high], not far from zero: 900 of [831, 1000], 840 of [831, 870]."""
    if low <= 0 <= high:
        return 0
    if high < 0:
        return -_plain_whole(-high, -low)
    step: int = 10 ** (len(str(low)) - 1)
    while step > 1:
        candidate: int = -(-low // step) * step
        if candidate <= high:
            return candidate
        step //= 10
    return low


def _pick_whole(low: int, high: int) -> Callable[[Cut, Cut], int]:
    def pick(start: Cut, end: Cut) -> int:
        return _plain_whole(low if start == BOTTOM else start[1], high if end == TOP else end[1] - 1)

    return pick


_LOW, _HIGH = -(2**63), 2**63 - 1
_whole_64 = _whole(_LOW, _HIGH)
_pick_64 = _pick_whole(_LOW, _HIGH)
BIGINT = Domain("BIGINT", *_whole_64, _pick_64)


def _pick_instant(start: Cut, end: Cut) -> Any:
    micros = _pick_64(start, end)
    try:
        return _EPOCH + timedelta(microseconds=micros)
    except OverflowError:
        return np.datetime64(micros, "us")


TIMESTAMP = Domain("TIMESTAMP", *_whole_64, _pick_instant)
"""Values are microseconds since 1970; `pick` gives a datetime in UTC where Python has one."""
_pick_bit = _pick_whole(0, 1)
BOOLEAN = Domain("BOOLEAN", *_whole(0, 1), lambda start, end: bool(_pick_bit(start, end)))


def choice(count: int) -> Domain:
    """A domain of `count` values without further meaning, 0 and up."""
    return Domain(f"CHOICE({count})", *_whole(0, count - 1), _pick_whole(0, count - 1))


# --------------------------------------------------------------------- doubles


def double_key(value: float) -> int:
    """A whole number for every double, in their order; neighbours get neighbours."""
    if math.isnan(value):
        return _NAN
    bits: int = struct.unpack("<q", struct.pack("<d", value))[0]
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def double_of(key: int) -> float:
    """The double with that key."""
    if key == _NAN:
        return math.nan
    value: float = struct.unpack("<d", struct.pack("<q", abs(key)))[0]
    return -value if key < 0 else value


def _double_cut(key: int) -> Cut:
    return BOTTOM if key <= -_INFINITY else TOP if key > _NAN else (1, key)


def _least_double(value: Any) -> int:
    """The key of the least double that is not below a number."""
    if isinstance(value, float):
        return double_key(value)
    try:
        near = float(value)
    except OverflowError:
        return _INFINITY if value > 0 else double_key(-1.7976931348623157e308)
    return double_key(near) + (1 if near < value else 0)


def _above_double(value: Any) -> Cut:
    key = _least_double(value)
    return _double_cut(key + 1 if key == _NAN or double_of(key) == value else key)


def _pick_double(start: Cut, end: Cut) -> float:
    low = -_INFINITY if start == BOTTOM else start[1]
    high = _NAN if end == TOP else end[1] - 1
    if low == high:
        return double_of(low)
    # NaN and the infinities are picked only if nothing else is left.
    low, high = max(low, 1 - _INFINITY), min(high, _INFINITY - 1)
    if low > high:
        return double_of(low)
    if low <= 0 <= high:
        return 0.0
    if low > 0:
        return _plain_double(double_of(low), double_of(high))
    return -_plain_double(double_of(-high), double_of(-low))


def _plain_double(least: float, most: float) -> float:
    """A double in [least, most], both positive, with as few decimals as will do."""
    for scale in (10**digits for digits in range(17) if most * 10**digits < 2**53 or digits == 0):
        first, last = math.ceil(least * scale), math.floor(most * scale)
        if first <= last:
            candidate: float = _plain_whole(first, last) / scale
            if least <= candidate <= most:
                return candidate
    return least


DOUBLE = Domain("DOUBLE", lambda value: _double_cut(_least_double(value)), _above_double, _pick_double)


# ------------------------------------------------------------------------ text


def _text_cut(text: str) -> Cut:
    return (1, text) if text else BOTTOM


def _pick_text(start: Cut, end: Cut) -> str:
    least: str = "" if start == BOTTOM else start[1]
    if not least.endswith("\0"):
        return least
    # `'ab\0'` is what follows 'ab' at once; something printable is a better example, if it fits.
    candidate = least[:-1] + "a"
    return candidate if end == TOP or candidate < end[1] else least


STRING = Domain("STRING", _text_cut, lambda text: (1, text + "\0"), _pick_text)


def prefixed(text: str) -> tuple[Span, ...]:
    """The texts that start with `text`: from it up to the next text of its length."""
    stem = text.rstrip(_LAST_CHARACTER)
    if not stem:
        return ((_text_cut(text), TOP),)
    code = ord(stem[-1]) + 1
    code = _SURROGATES[1] if code == _SURROGATES[0] else code
    return ((_text_cut(text), (1, stem[:-1] + chr(code))),)


# ----------------------------------------------------------------- other terms


def _no_value(_start: Cut, _end: Cut) -> Any:
    raise ValueError("the value of a term is not chosen, it follows from attributes")


TERM = Domain("TERM", lambda v: (1, (v, 0)), lambda v: (1, (v, 1)), _no_value)
"""Numbers of which nothing is known but their order: a cut before and one after each constant, whole or not."""

BINARY = Domain("BINARY", *_whole(0, 0), lambda _start, _end: b"")
"""Bytes are compared with other attributes only, never with a constant, so one value stands for all."""
