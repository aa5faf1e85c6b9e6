"""One call of foreign code, made wherever it runs: in this thread, in another one, or in a process of its own.

Nothing escapes: what an operator does ends as answers, one for each event, or as an `OperatorFailure` of the whole call.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.operators.answer import Answer, WrongReturn, read
from headgate.operators.event import Event
from headgate.operators.registry import VAR, Operator
from headgate.results import described

FOREIGN = (Exception, SystemExit, GeneratorExit)
"""What foreign code may raise for itself. KeyboardInterrupt is the user's, who wants all of it to end."""


class OperatorFailure(HeadgateError):
    """A call that gave no answer. `code` says how it failed."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code

    def __reduce__(self) -> tuple[type[OperatorFailure], tuple[str, str, str]]:
        return OperatorFailure, (self.code, self.message, self.hint)


@dataclass(frozen=True, slots=True)
class Call:
    """One event with its arguments or, for the batch form, a table of events with the arguments of each."""

    events: Event | pa.Table
    arguments: Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Returned:
    answers: list[Answer] | OperatorFailure
    milliseconds: float = float("nan")
    """The time of the call itself; NaN where nobody knows."""


def make(operator: Operator, call: Call) -> Returned:
    start = time.perf_counter()
    answers: list[Answer] | OperatorFailure
    try:
        if isinstance(call.events, Event):
            answers = [_answer(operator, operator(call.events, *call.arguments[0]), call.arguments[0])]
        else:
            assert operator.batch is not None
            results = operator.batch(call.events, list(call.arguments))
            if len(results) != len(call.arguments):
                raise WrongReturn(f"the batch form returned {len(results)} results for {len(call.arguments)} calls")
            answers = [_answer(operator, r, a) for r, a in zip(results, call.arguments, strict=True)]
    except FOREIGN as problem:
        answers = failure(operator, problem)
    return Returned(answers, (time.perf_counter() - start) * 1e3)


def failure(operator: Operator, problem: BaseException) -> OperatorFailure:
    if isinstance(problem, OperatorFailure):
        return problem
    if isinstance(problem, WrongReturn):
        said = f"{operator.name} returned what it must not: {problem.message}"
        return OperatorFailure(problem.code, said, problem.hint)
    return OperatorFailure("operator.raised", f"{operator.name} raised {described(problem)}")


def _answer(operator: Operator, returned: Any, arguments: tuple[Any, ...]) -> Answer:
    """The answer for one event. Rows of a generator are made here, so that their time and their errors count."""
    try:
        return read(returned, sum(a is VAR for a in arguments), operator.rows)
    except FOREIGN as problem:
        return Answer.failed(failure(operator, problem))
