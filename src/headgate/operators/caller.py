"""Calls operators and lets nothing of them escape: what fails becomes an answer that says so.

An exception, a timeout, a wrong return or an open circuit is an error of the subscriptions that asked, with the event
kept; other subscriptions never notice. An operator with `breaker=` has a circuit: it opens when calls have failed so often
in a row, and lets a single call through after a pause.

An operator is called in this thread, on threads (`crew`) or in processes (`apart`); a timeout needs a thread at least.
"""

from __future__ import annotations

import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.operators.answer import ERROR, Answer
from headgate.operators.apart import ProcessCrew
from headgate.operators.calls import FOREIGN, Call, OperatorFailure, Returned, failure, make
from headgate.operators.crew import ThreadCrew
from headgate.operators.event import Event
from headgate.operators.predicate import Key
from headgate.operators.registry import Concurrency, Operator
from headgate.results import described

STUCK = 64
"""How many threads of one operator may hang before it is called no more."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call to make. `table` gives the event as a row of an Arrow table, for batch operators."""

    operator: Operator
    event: Event
    arguments: tuple[Any, ...]
    key: Key
    table: Callable[[], pa.Table]


@dataclass(frozen=True, slots=True)
class Reply:
    answer: Answer
    milliseconds: float
    """NaN where nothing was called."""


@dataclass
class Circuit:
    """Opens after `failures` in a row, never if that is None; after `pause` seconds one call may try."""

    failures: int | None
    pause: float
    row: int = 0
    until: float = field(default=0.0)

    def open(self, now: float) -> bool:
        return self.failures is not None and self.row >= self.failures and now < self.until

    def note(self, failed: bool, now: float) -> None:
        self.row = self.row + 1 if failed else 0
        if self.failures is not None and self.row >= self.failures:
            self.until = now + self.pause


class Caller:
    """Makes calls for one engine. Not shared between threads; `close` ends what it started."""

    def __init__(
        self,
        *,
        pause: float = 30.0,
        cache: int = 10_000,
        stuck: int = STUCK,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pause, self._stuck, self._clock = pause, stuck, clock
        self.apart = False
        """Whether operators that do not say how they are called run in a process of their own."""
        self._circuits: dict[str, Circuit] = {}
        self._crews: dict[str, ThreadCrew | ProcessCrew] = {}
        self._cache: OrderedDict[Any, Answer] = OrderedDict()
        self._cached = cache
        weakref.finalize(self, _close, self._crews)  # few plans are closed by hand

    def concurrency(self, operator: Operator) -> Concurrency:
        return operator.concurrency or ("processes" if self.apart else "inline")

    def ask(self, requests: Sequence[Request]) -> list[Reply]:
        """Answer all requests, those that can go together at once; never raises for what an operator does."""
        replies: list[Reply | None] = [None] * len(requests)
        groups: dict[str, list[int]] = {}
        for i, request in enumerate(requests):
            circuit = self._circuit(request.operator)
            if circuit.open(self._clock()):
                failure = OperatorFailure(
                    "operator.circuit",
                    f"{request.operator.name} failed {circuit.row} times in a row and is not called for now",
                    "see the earlier errors of this operator",
                )
                replies[i] = Reply(Answer.failed(failure), float("nan"))
            elif (kept := self._kept(request)) is not None:
                replies[i] = Reply(kept, float("nan"))
            else:
                groups.setdefault(request.operator.name, []).append(i)
        for members in groups.values():
            asked = [requests[i] for i in members]
            for i, reply in zip(members, self._together(asked), strict=True):
                replies[i] = reply
                self._keep(requests[i], reply.answer)
        return [r for r in replies if r is not None]

    def close(self) -> None:
        _close(self._crews)

    def _together(self, requests: list[Request]) -> list[Reply]:
        if requests[0].operator.batch is not None:
            replies = self._batched(requests)
        else:
            calls = [Call(r.event, [r.arguments]) for r in requests]
            replies = [r for made in self._make(requests[0].operator, calls) for r in _replies(made, 1)]
        for reply in replies:
            self._note(requests[0].operator, reply.answer)
        return replies

    def _make(self, operator: Operator, calls: Sequence[Call]) -> list[Returned]:
        concurrency = self.concurrency(operator)
        if concurrency == "inline" and operator.timeout is None:
            return [make(operator, call) for call in calls]
        crew = self._crews.get(operator.name)
        if crew is None:
            size = operator.workers if operator.concurrency in ("threads", "processes") else 1
            if concurrency == "processes":
                crew = ProcessCrew(operator, size)
            else:
                crew = ThreadCrew(operator, size, self._stuck)
            self._crews[operator.name] = crew
        return crew.run(calls)

    def _batched(self, requests: list[Request]) -> list[Reply]:
        """One call of the batch form. If it raises, is late or dies, each half is a call of its own, so that the answer for
        an event does not depend on the events beside it."""
        operator = requests[0].operator
        try:
            table = pa.concat_tables([r.table() for r in requests], promote_options="default")
            (made,) = self._make(operator, [Call(table, [r.arguments for r in requests])])
        except FOREIGN as problem:
            made = Returned(failure(operator, problem))
        if len(requests) > 1 and isinstance(made.answers, OperatorFailure) and made.answers.code in _ONE_EVENTS_FAULT:
            half = len(requests) // 2
            return self._batched(requests[:half]) + self._batched(requests[half:])
        return _replies(made, len(requests))

    # -- circuits, kept answers

    def _circuit(self, operator: Operator) -> Circuit:
        return self._circuits.setdefault(operator.name, Circuit(operator.breaker, self._pause))

    def _note(self, operator: Operator, answer: Answer) -> None:
        self._circuit(operator).note(answer.truth == ERROR, self._clock())

    def _content(self, request: Request) -> Any:
        """What the answer of a pure operator depends on; None if it is not kept."""
        if not request.operator.pure or not self._cached:
            return None
        event = request.event
        try:
            return (request.key, tuple((name, _hashable(event[name])) for name in event))
        except OverflowError:  # an instant that no datetime can hold: the operator will meet it too
            return None

    def _kept(self, request: Request) -> Answer | None:
        content = self._content(request)
        found = self._cache.get(content)
        if found is not None:
            self._cache.move_to_end(content)
        return found

    def _keep(self, request: Request, answer: Answer) -> None:
        content = None if answer.truth == ERROR else self._content(request)
        if content is not None:
            self._cache[content] = answer
            while len(self._cache) > self._cached:
                self._cache.popitem(last=False)


_ONE_EVENTS_FAULT = frozenset({"operator.raised", "operator.timeout", "operator.died"})


def _replies(made: Returned, count: int) -> list[Reply]:
    answers = made.answers
    if isinstance(answers, OperatorFailure):
        answers = [Answer.failed(answers)] * count
    return [Reply(answer, made.milliseconds / count) for answer in answers]


def _close(crews: dict[str, ThreadCrew | ProcessCrew]) -> None:
    for crew in crews.values():
        crew.close()
    crews.clear()


def undecidable(problem: Exception) -> HeadgateError:
    """Why a pair of an event and a subscription cannot be decided, if not because a call failed."""
    if isinstance(problem, HeadgateError):
        return problem
    return OperatorFailure("value", f"a value cannot be computed with: {described(problem)}")


def _hashable(value: Any) -> Any:
    return (type(value), tuple(map(_hashable, value)) if isinstance(value, list) else value)
