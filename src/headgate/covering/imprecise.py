"""Imprecise events: an attribute may be a range of values instead of one.

Such an event is a box itself. It matches *surely* if the subscription covers the whole box, *possibly* if the two meet,
and else not (the paper's publications as convex polyhedra; docs/semantics.md, section 6).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import numpy as np

from headgate.covering.boxes import Union
from headgate.covering.decision import Procedure, decide
from headgate.covering.grid import Grid, Rows
from headgate.covering.portion import MISSING, NONE, PRESENT, Portion
from headgate.covering.space import Box, Dimension, meet, of_attribute
from headgate.errors import EventError
from headgate.events.instants import from_date
from headgate.schema import Attribute, Path, Schema, format_path


@dataclass(frozen=True, slots=True)
class Range:
    """Some value from `low` to `high`, both included; None for no bound. With `missing` there may also be none."""

    low: Any = None
    high: Any = None
    missing: bool = False


class Answer(StrEnum):
    SURELY = "surely"
    POSSIBLY = "possibly"
    NOT = "not"


EXACT = Procedure()


def match(union: Union, event: Mapping[str, Any], schema: Schema, procedure: Procedure = EXACT) -> Answer:
    """How a subscription's boxes match an event; what could not be proven in time is possible."""
    box = event_box(event, schema, [d for b in union for d in b])
    concrete = [{d: p for d, p in b.items() if d.path is not None} for b in union]
    if not any(meet(box, b) is not None for b in concrete):
        return Answer.NOT
    rows = Rows(Grid(), union)
    decision = decide(rows, np.arange(rows.count), [box], procedure)
    return Answer.SURELY if decision.covered else Answer.POSSIBLY


def event_box(event: Mapping[str, Any], schema: Schema, dimensions: list[Dimension]) -> Box:
    """The box of an event over the attributes among the dimensions."""
    box: dict[Dimension, Portion] = {}
    for dimension in dimensions:
        if dimension.path is not None and dimension not in box:
            attribute = schema.get(dimension.path) or Attribute(dimension.path, None)
            box[dimension] = _portion(of_attribute(attribute), _read(event, dimension.path))
    return box


def _read(event: Mapping[str, Any], path: Path) -> Any:
    value: Any = event
    for part in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(part)
    return value


def _portion(dimension: Dimension, value: Any) -> Portion:
    name = format_path(dimension.path or ())
    if value is None:
        if not dimension.nullable:
            raise EventError(f"attribute {name} is NOT NULL, and the event lacks it")
        return MISSING
    if not isinstance(value, Range):
        return _checked(name, value, Portion(dimension.domain.compare("=", _plain(value, dimension, name))))
    found = PRESENT
    if value.low is not None:
        found &= Portion(dimension.domain.compare(">=", _plain(value.low, dimension, name)))
    if value.high is not None:
        found &= Portion(dimension.domain.compare("<=", _plain(value.high, dimension, name)))
    return _checked(name, value, found) | (MISSING if value.missing and dimension.nullable else NONE)


def _checked(name: str, value: Any, portion: Portion) -> Portion:
    if not portion:
        raise EventError(f"attribute {name}: no value of its type is {value!r}", "a range goes from low to high")
    return portion


_TYPES: dict[str, tuple[type, ...]] = {
    "BOOLEAN": (bool,),
    "BIGINT": (int,),
    "DOUBLE": (int, float),
    "STRING": (str,),
    "TIMESTAMP": (int, datetime),
    "BINARY": (bytes,),
}


def _plain(value: Any, dimension: Dimension, name: str) -> Any:
    """Times as the microseconds that TIMESTAMP cuts are made of."""
    kind = dimension.domain.name
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "BOOLEAN"):
        raise EventError(f"attribute {name}: {value!r} is no {kind}", "a range has bounds of its attribute's type")
    return from_date(value) if isinstance(value, datetime) else value
