"""What arithmetic and comparison mean on single values (docs/semantics.md, section 1).

None is a missing value here, and the result of what cannot be computed. BIGINT is int, DOUBLE float, TIMESTAMP an
`Instant`. A value has a kind, and values of different kinds are different and have no order (section 8). Where no type
says what a value is (attributes of the type ANY, variables of operators and graphs), `plain` brings it into one of these
forms and `kind` tells its kind. `oracle/values.py` is the plain twin.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from headgate.predicates.times import instant_text
from headgate.schema import Instant as Instant
from headgate.schema import Kind


class _Int64:
    """The whole numbers of 64 bits. A `range` would try one after the other where a number is of a subclass of int."""

    least = -(2**63)

    def __contains__(self, number: int) -> bool:
        return self.least <= number < -self.least


INT64 = _Int64()
FLIPPED = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""`c op x` is `x FLIPPED[op] c`."""
NEGATED = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
"""Where both operands are there, NOT `x op c` is `x NEGATED[op] c`: the order is total, NaN included."""


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
    bool: BOOLEAN, int: NUMBER, float: NUMBER, Decimal: NUMBER, str: TEXT, bytes: BYTES, Instant: INSTANT, list: ARRAY,
    tuple: ARRAY, dict: OBJECT,
}  # fmt: skip
ORDERED = (NUMBER, TEXT, INSTANT)
"""The kinds that have an order."""
VIEWS: dict[int, Kind] = {
    BOOLEAN: Kind.BOOLEAN, NUMBER: Kind.DOUBLE, TEXT: Kind.STRING, INSTANT: Kind.TIMESTAMP, BYTES: Kind.BINARY
}  # fmt: skip
"""The kinds that a column can hold, each with the type of the column."""
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - all arithmetic here is in UTC, without zones
_DAY = 86_400_000_000
_MICROSECOND = timedelta(microseconds=1)


def is_missing(value: object) -> bool:
    """None, and what pandas and NumPy put in its place. A float NaN is a value."""
    if value is None:
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NaTType", "NAType") and type(value).__module__.startswith("pandas")


def plain(value: Any) -> Any:
    """A value as conditions know it, whatever Python type it came in; OPAQUE if it has no kind."""
    kind = type(value)
    if value is None or value is OMEGA or kind in (int, float, bool, bytes, Instant, dict, list):
        return value
    if kind is str:
        return value if _is_unicode(value) else OPAQUE
    if is_missing(value):
        return None
    if isinstance(value, np.datetime64):
        moment = numpy_instant(value)
        return Instant(moment) if moment in INT64 else OPAQUE
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray | tuple):
        return list(value)
    if isinstance(value, date):
        return _instant(value)
    if isinstance(value, Decimal):
        return value if value.is_finite() else float("nan" if value.is_nan() else value)
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    for base, exact in _EXACTLY:
        if isinstance(value, base):
            return plain(exact(value))
    return dict(value) if isinstance(value, Mapping) else OPAQUE


_EXACTLY: tuple[tuple[type, Any], ...] = (
    (str, str.__str__), (int, int.__int__), (float, float.__float__), (bytes, bytes.__bytes__), (list, list.copy)
)  # fmt: skip
"""How a value of a subclass becomes one of the class; the methods of the subclass are not asked."""


def _is_unicode(text: str) -> bool:
    try:
        return text.isascii() or bool(text.encode())
    except UnicodeEncodeError:
        return False


def numpy_instant(value: np.datetime64) -> int:
    """Microseconds since 1970, which may be more than 64 bits hold."""
    unit, count = np.datetime_data(value.dtype)
    nanoseconds = {"s": 10**9, "ms": 10**6, "us": 1000, "ns": 1}.get(unit)
    if nanoseconds is None:
        return int(value.astype("datetime64[us]").astype(np.int64))
    return int(value.astype(np.int64)) * count * nanoseconds // 1000


def _instant(value: date) -> Instant:
    """A date is its midnight; a datetime without a zone is UTC. A pandas Timestamp is a datetime."""
    if not isinstance(value, datetime):
        return Instant((value.toordinal() - _EPOCH.toordinal()) * _DAY)
    moment = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)  # noqa: DTZ001 - in UTC
    return Instant((moment - _EPOCH) // _MICROSECOND - (value.utcoffset() or timedelta(0)) // _MICROSECOND)


def within(value: Any, key: Any) -> Any:
    """What a path finds one step further: in an array, the array of what it finds in each element that has it."""
    if isinstance(value, Mapping):
        return value.get(key)
    if isinstance(value, list | tuple | np.ndarray):
        return [e[key] for e in flat(value) if isinstance(e, Mapping) and key in e]
    return None


def flat(elements: Any) -> list[Any]:
    """The elements of an array; those of an array inside it stand in its place."""
    found: list[Any] = []
    stack = [iter(elements)]
    while stack:
        for element in stack[-1]:
            inner = plain(element)
            if isinstance(inner, list):
                stack.append(iter(inner))
                break
            found.append(inner)
        else:
            stack.pop()
    return found


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


def view_of(value: object) -> Kind | None:
    """The type of a column that holds values of the value's kind; None for arrays, objects and what has no kind."""
    found = kind(value)
    return None if found is None else VIEWS.get(found)


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


def _alike(a: Any, b: Any) -> bool:
    """Whether two values are the same through and through: objects by their keys, arrays by their elements in order."""
    a, b = plain(a), plain(b)
    if kind(a) != kind(b) or a is OPAQUE:
        return a is None and b is None
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_alike(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_alike, a, b))
    return a is None or compare("=", a, b)


def compare(op: str, a: Any, b: Any) -> bool:
    """Both are there and of one kind. NaN equals NaN and is above everything; BIGINT against DOUBLE is exact, as Python does
    it."""
    if isinstance(a, dict):
        return _alike(a, b) == (op == "=")
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
