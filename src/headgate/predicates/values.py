"""What arithmetic and comparison mean on single values (docs/semantics.md, section 1).

None is a missing value here, and the result of what cannot be computed. BIGINT is int, DOUBLE float, TIMESTAMP int
microseconds. Where no schema tells the type of a value (variables of operators and graphs), the value itself does:
`kind` tells a text from a number, and `Instant` is a time that must not be taken for one. `oracle/values.py` is the plain
twin.
"""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from typing import Any

from headgate.predicates.times import instant_text

INT64 = range(-(2**63), 2**63)
FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`c op x` is `x FLIPPED[op] c`."""
NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""Where both operands are there, NOT `x op c` is `x NEGATED[op] c`: the order is total, NaN included."""


class Instant(int):
    """Microseconds since 1970 in UTC, where nothing but the value itself tells that it is a time."""

    __slots__ = ()


class Omega:
    """What a missing value without a DEFAULT becomes in `default` mode."""

    def __repr__(self) -> str:
        return "ω"


OMEGA = Omega()


class Opaque:
    """A value that is there but has no place in the language: an IRI, a literal of an unknown datatype."""

    def __repr__(self) -> str:
        return "opaque"


OPAQUE = Opaque()

BOOLEAN, NUMBER, TEXT, BYTES, INSTANT, ARRAY, OBJECT = range(7)
"""The kinds of values. Values of different kinds cannot be compared."""
_KINDS = {
    bool: BOOLEAN, int: NUMBER, float: NUMBER, str: TEXT, bytes: BYTES, Instant: INSTANT, list: ARRAY, tuple: ARRAY,
    dict: OBJECT,
}  # fmt: skip


def written(value: Any) -> Any:
    """A value as JSON can hold it: a time as ISO 8601 in UTC, bytes in hexadecimal."""
    if isinstance(value, Instant):
        return instant_text(value)
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return value.hex() if isinstance(value, bytes) else value


def kind(value: object) -> int | None:
    """The kind of a value; None for what cannot be compared with anything, not even with itself."""
    return _KINDS.get(type(value))


def same(a: Any, b: Any) -> bool:
    """`=` as joins use it: NULL never joins, numbers join by value, TRUE and 1 do not."""
    return a is not None and b is not None and kind(a) == kind(b) and compare("=", a, b)


def join_key(value: Any) -> tuple[int | None, Any]:
    """Two values join exactly if their keys are equal; for a value that is not NULL."""
    return kind(value), "nan" if value != value else value


def arithmetic(op: str, a: Any, b: Any) -> Any:
    """`/` divides as DOUBLE, `%` takes the sign of the dividend; by zero, and beyond BIGINT, is missing."""
    if a is None or b is None:
        return None
    if isinstance(a, Instant) or isinstance(b, Instant):
        return _moved(op, a, b)
    if op != "/" and isinstance(a, int) and isinstance(b, int):
        return _whole(op, a, b)
    try:
        a, b = float(a), float(b)
    except OverflowError:
        return None
    match op:
        case "+":
            return a + b
        case "-":
            return a - b
        case "*":
            return a * b
    if b == 0:
        return None
    if op == "/":
        return a / b
    return math.nan if math.isinf(a) or a != a or b != b else math.fmod(a, b)


def _whole(op: str, a: int, b: int) -> int | None:
    if op == "%":
        if b == 0:
            return None
        rest = abs(a) % abs(b)
        return -rest if a < 0 else rest
    result = a + b if op == "+" else a - b if op == "-" else a * b
    return result if result in INT64 else None


def _moved(op: str, a: Any, b: Any) -> Any:
    """A time moved by a length of time, or the length between two times, in microseconds."""
    both = isinstance(a, Instant) and isinstance(b, Instant)
    if both and op == "-":
        return _whole(op, a, b)
    if both or not isinstance(a, int) or not isinstance(b, int) or op not in ("+", "-"):
        return None
    if op == "-" and isinstance(b, Instant):
        return None
    moved = _whole(op, a, b)
    return None if moved is None else Instant(moved)


def negate(a: Any) -> Any:
    if a is None:
        return None
    return None if isinstance(a, int) and -a not in INT64 else -a


def absolute(a: Any) -> Any:
    return a if a >= 0 or a != a else negate(a)


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
