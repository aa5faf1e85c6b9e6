"""Aggregates of a FOLD on single values: initialise, accumulate, finalise, as the paper's section 2.2 has them.

A state is a plain tuple that holds all one needs to go on, so that two runs with equal states have the same future: AVG
keeps a sum and a count, not a mean. A missing operand leaves a state as it is. SUM of BIGINT that overflows is
missing, and stays so. STDDEV is that of a sample, by Welford's recurrence; it is missing below two values.
"""

from __future__ import annotations

import math
from typing import Any

from headgate.predicates import values

State = tuple[Any, ...]
WIDTH = {"COUNT": 1, "SUM": 2, "AVG": 2, "MIN": 1, "MAX": 1, "FIRST": 1, "LAST": 1, "STDDEV": 3, "COLLECT": 1, "": 1}
"""How many values a state holds; '' is the general recurrence."""
_NUMERIC = ("SUM", "AVG", "STDDEV")
"""To these, what is no number is missing: an attribute that nobody has typed may be anything."""


def begin(function: str, value: Any, *, star: bool = False) -> State:
    """The state at S1. `value` is the operand there; for COUNT(*) and a recurrence see `accumulate`."""
    if star:
        return (1,)
    match function:
        case "COUNT":
            empty: State = (0,)
        case "SUM" | "AVG":
            empty = (0, 0)
        case "STDDEV":
            empty = (0, 0.0, 0.0)
        case "COLLECT":
            empty = ((),)
        case "":
            return (value,)
        case _:
            empty = (None,)
    return accumulate(function, empty, value)


def accumulate(function: str, state: State, value: Any, *, star: bool = False) -> State:
    if function == "":
        return (value,)
    if star:
        return (state[0] + 1,)
    if value is None or (function in _NUMERIC and values.kind(value) != values.NUMBER):
        return state
    match function:
        case "COUNT":
            return (state[0] + 1,)
        case "SUM" | "AVG":
            total, count = state
            return values.arithmetic("+", total, value), count + 1
        case "MIN":
            return (value,) if state[0] is None or _ordered("<", value, state[0]) else state
        case "MAX":
            return (value,) if state[0] is None or _ordered(">", value, state[0]) else state
        case "FIRST":
            return (value,) if state[0] is None else state
        case "LAST":
            return (value,)
        case "STDDEV":
            count, mean, spread = state
            count += 1
            delta = float(value) - mean
            mean = mean + delta / count
            return count, mean, spread + delta * (float(value) - mean)
        case "COLLECT":
            return ((*state[0], value),)
    raise AssertionError(function)


def finish(function: str, state: State) -> Any:
    match function:
        case "SUM":
            return state[0] if state[1] else None
        case "AVG":
            return values.arithmetic("/", state[0], state[1]) if state[1] else None
        case "STDDEV":
            count, _, spread = state
            return math.sqrt(spread / (count - 1)) if count > 1 else None
        case "COLLECT":
            return list(state[0])
    return state[0]


def _ordered(op: str, a: Any, b: Any) -> bool:
    """Whether two values stand in this order; those of an undeclared stream may be of different kinds, and have none."""
    for kinds in ((bool,), (int, float), (str,), (bytes,)):
        if isinstance(a, kinds):
            return isinstance(b, kinds) and isinstance(a, bool) == isinstance(b, bool) and values.compare(op, a, b)
    return False
