"""What an operator answered: a truth, and for variables the rows of values that satisfy it.

Operators are foreign code. What they return is checked here, once, before anything relies on it: a wrong return is an
error of the operator, never a wrong match. Values are made plain (NumPy scalars become Python's, a datetime becomes an
Instant), duplicates go, and the order of the rows is fixed so that "the least binding" means one thing everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from headgate.errors import HeadgateError
from headgate.events.instants import from_date
from headgate.events.outcome import show
from headgate.predicates.values import Instant

Row = tuple[Any, ...]

FALSE, TRUE, ERROR, UNKNOWN = 0, 1, 2, 3
"""The truth of a predicate on an event. ERROR: the call failed. UNKNOWN: an argument is missing, nothing was called."""


class WrongReturn(HeadgateError):
    """An operator returned something that is neither a bool nor rows of values."""

    code = "operator.return"


@dataclass(frozen=True, slots=True)
class Answer:
    """`rows` are distinct and in order; a predicate without variables has none. `error` says why a call failed."""

    truth: int
    rows: tuple[Row, ...] = ()
    error: HeadgateError | None = None

    @staticmethod
    def of(holds: bool) -> Answer:
        return HOLDS if holds else FAILS

    @staticmethod
    def failed(error: HeadgateError) -> Answer:
        return Answer(ERROR, (), error)


HOLDS = Answer(TRUE)
FAILS = Answer(FALSE)
MISSING = Answer(UNKNOWN)


def plain(value: Any) -> Any:
    """A value as constraints and joins know it; WrongReturn for what has no meaning in the language."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise WrongReturn(f"an integer of {value.bit_length()} bits cannot be bound to a variable", "BIGINT has 64")
        return int(value)
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise WrongReturn("a text that is not Unicode cannot be bound to a variable") from None
        return value
    if isinstance(value, float | bytes):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, datetime):
        return Instant(from_date(value))
    raise WrongReturn(
        f"a value of type {type(value).__name__} cannot be bound to a variable",
        "bind None, bool, int, float, str, bytes or datetime",
    )


def order(value: Any) -> tuple[int, Any]:
    """The key that orders values of any type: NULL, booleans, numbers with NaN last, text, bytes, instants."""
    if value is None:
        return (0, 0)
    if isinstance(value, bool):
        return (1, value)
    if isinstance(value, Instant):
        return (6, int(value))
    if isinstance(value, int | float):
        return (3, 0) if value != value else (2, value)
    return (4, value) if isinstance(value, str) else (5, value)


def row_order(row: Row) -> tuple[tuple[int, Any], ...]:
    return tuple(order(value) for value in row)


def read(returned: Any, variables: int, limit: int) -> Answer:
    """The answer in what an operator returned for a call with so many variable positions."""
    if isinstance(returned, bool | np.bool_):
        if returned and variables:
            raise WrongReturn(
                f"True does not say what the {variables} variable(s) are", "return an iterable of tuples, or False"
            )
        return Answer.of(bool(returned))
    if isinstance(returned, str | bytes) or not isinstance(returned, Iterable):
        raise WrongReturn(
            f"{show(returned)} is neither a bool nor an iterable of tuples",
            "return True or False, or one tuple for each way to bind the variables",
        )
    rows: dict[tuple[Any, ...], Row] = {}
    for item in returned:
        if not isinstance(item, tuple | list):
            raise WrongReturn(f"the row {show(item)} is not a tuple", f"yield tuples of {variables} value(s)")
        if len(item) != variables:
            raise WrongReturn(f"the row {show(item)} has {len(item)} value(s) for {variables} variable position(s)")
        row = tuple(map(plain, item))
        rows.setdefault(row_order(row), row)
        if len(rows) > limit:
            raise WrongReturn(f"more than {limit} rows", "raise the operator's rows= limit, or return fewer")
    return Answer(TRUE if rows else FALSE, tuple(rows[key] for key in sorted(rows)) if variables else ())
