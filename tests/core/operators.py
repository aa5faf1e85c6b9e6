"""The operators that drawn texts call: quick, the same for the same arguments, and not all of them well behaved."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import headgate as hg


@hg.operator
def always(event: Any) -> bool:
    return True


@hg.operator
def same(event: Any, a: Any, b: Any) -> bool:
    return type(a) is type(b) and bool(a == b)


@hg.operator
def above(event: Any, a: Any) -> bool:
    """Whether a value, of whatever type, comes behind the letter or number that begins a scale."""
    return str(a) > "1"


@hg.operator
def near(event: Any, a: Any, b: Any) -> Iterator[tuple[Any, ...]]:
    """Values near the first; with a value for the second, whether it is one of them."""
    found = [a, a + 1 if type(a) in (int, float) else f"{a}b", None]
    if b is hg.VAR:
        yield from ((v,) for v in found if isinstance(v, bool | int | float | str | bytes | None))
    elif any(type(v) is type(b) and v == b for v in found):
        yield ()


@hg.operator
def pairs(event: Any, a: Any, b: Any) -> Iterator[tuple[Any, ...]]:
    rows = [(1, 2), (1, 1.0), (5, 5), ("a", "a"), (None, None), (True, 1), (2.5, "b"), (b"a", "a"), ("a", 1)]
    for row in rows:
        if all(given is hg.VAR or given == value for given, value in zip((a, b), row, strict=True)):
            yield tuple(v for given, v in zip((a, b), row, strict=True) if given is hg.VAR)


@hg.operator
def moments(event: Any, a: Any) -> Any:
    days = [datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)]
    return [(day,) for day in days] if a is hg.VAR else a in days


@hg.operator
def touchy(event: Any, a: Any) -> Any:
    """Fails on some arguments, in some of the ways in which an operator can fail."""
    if a in (1, "a"):
        raise ValueError("no picture")
    if a == 2:
        return "neither true nor false"
    return 3 if a in ("ab", b"a") else a is not False


@hg.operator
def odd(event: Any, a: Any, b: Any) -> Any:
    """Values that can be compared and joined, but not all be written down."""
    rows: list[Any] = [float("nan"), float("inf"), -0.0, 2**70, "\ud800", b"\xff", "", 10**400]
    if a == 5:
        rows.append([])
    chosen = rows[len(str(a)) % len(rows) :]
    return [(v,) for v in chosen] if b is hg.VAR else bool(b in chosen)


OPERATORS = [always, same, above, near, pairs, moments, touchy, odd]
