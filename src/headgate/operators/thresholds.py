"""Thresholds on one call: `count(?n) AND ?n > 50` of many subscriptions, decided together.

The rows of the call have a greatest and a least number. Of thresholds in order those that it passes are the first ones,
so one search decides all of them, where a look at each would bind the rows anew.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from math import isnan

import numpy as np
from numpy.typing import NDArray

from headgate.language import ast
from headgate.operators.answer import ERROR, TRUE, Answer
from headgate.operators.bindings import Ask
from headgate.operators.body import Join
from headgate.operators.kernels import FALSE, PENDING
from headgate.operators.predicate import Predicate
from headgate.predicates import values

OTHER = -2
"""Found for a join that is no threshold."""
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_Group = tuple[Predicate, int, str]
"""The predicate, the place of the variable in its rows, and the comparison."""


class Thresholds:
    """The joins of an index that compare one variable of one call with a number."""

    def __init__(self, joins: Sequence[Join]) -> None:
        members: dict[_Group, list[tuple[int | float, int]]] = {}
        for number, join in enumerate(joins):
            found = _threshold(join)
            if found is not None:
                members.setdefault(found[0], []).append((found[1], number))
        self._groups = list(members)
        self._limits: list[list[int | float]] = []
        self._group = np.full(len(joins), -1, np.int32)
        self._rank = np.zeros(len(joins), np.int64)
        for at, ((_, _, op), pairs) in enumerate(members.items()):
            pairs.sort(reverse=op in ("<", "<="))
            self._limits.append([limit for limit, _ in pairs])
            numbers = [number for _, number in pairs]
            self._group[numbers] = at
            self._rank[numbers] = np.arange(len(pairs))

    def decide(self, joins: NDArray[np.int32], ask: Ask) -> NDArray[np.int8]:
        """What each join comes to: TRUE, FALSE, ERROR, PENDING where nobody has asked, OTHER for other joins."""
        group = self._group[joins]
        found = np.full(len(joins), OTHER, np.int8)
        for at in np.unique(group[group >= 0]).tolist():
            inside = group == at
            predicate, place, op = self._groups[at]
            answer = ask(predicate)
            if answer is None or answer.truth == ERROR:
                found[inside] = PENDING if answer is None else ERROR
            else:
                passed = self._rank[joins[inside]] < _passed(answer, place, op, self._limits[at])
                found[inside] = np.where(passed, TRUE, FALSE)
        return found


def _passed(answer: Answer, place: int, op: str, limits: list[int | float]) -> int:
    """How many of the limits, in order, some row passes."""
    numbers = [v for row in answer.rows if isinstance(v := row[place], int | float) and not isinstance(v, bool)]
    if not numbers:
        return 0
    best = (min if op in ("<", "<=") else max)(numbers, key=lambda v: (isnan(v), v))
    return bisect_left(limits, True, key=lambda limit: not values.compare(op, best, limit))


def _threshold(join: Join) -> tuple[_Group, int | float] | None:
    if len(join.calls) != 1 or len(join.constraints) != 1:
        return None
    match join.constraints[0]:
        case ast.Compare(op, ast.Variable(name), ast.Literal(limit)) if op in _FLIPPED:
            pass
        case ast.Compare(turned, ast.Literal(limit), ast.Variable(name)) if turned in _FLIPPED:
            op = _FLIPPED[turned]
        case _:
            return None
    if isinstance(limit, bool) or not isinstance(limit, int | float):
        return None
    call = join.calls[0]
    return (call.predicate, call.names.index(name), op), limit
