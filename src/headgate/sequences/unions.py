"""The events of a UNION: a set by identity, with columns by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from headgate.columns import Column
from headgate.events.any_values import of_objects
from headgate.schema import Kind, Type
from headgate.sequences.memory import Arrivals
from headgate.sequences.publish_levels import Joined


def renamed(a: Arrivals, union: Joined) -> Arrivals:
    """With the columns of the UNION: what is BIGINT here and DOUBLE on the other side is DOUBLE, what is ANY there is so
    here."""
    columns = dict(a.columns.columns)
    for attribute in union.schema:
        held = columns.get(attribute.path)
        if held is not None and attribute.type is None and held.any is None:
            columns[attribute.path] = of_objects([held.value(row) for row in range(len(held))])
        if held is not None and attribute.type == Type(Kind.DOUBLE) and held.type == Type(Kind.BIGINT):
            columns[attribute.path] = Column(attribute.type, held.defined, np.asarray(held.values, np.float64))
    return replace(a, stream=union.name, columns=replace(a.columns, columns=columns), decided=None)


def each_once(parts: Sequence[Arrivals]) -> Iterable[Arrivals]:
    """A UNION is a set: the same event from two sides is one."""
    seen: set[int] = set()
    for a in parts:
        fresh = [i for i, identity in enumerate(a.identity.tolist()) if identity not in seen]
        seen.update(a.identity[fresh].tolist())
        if fresh:
            yield a.take(np.array(fresh, np.int64))
