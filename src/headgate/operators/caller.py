"""Calls operators and lets nothing of them escape: what fails becomes an answer that says so.

An exception, a timeout, a wrong return or an open circuit is an error of the subscriptions that asked, with the event
kept; other subscriptions never notice. An operator with `breaker=` has a circuit: it opens when calls have failed so often
in a row, and lets a single call through after a pause.

Operators may be called together: by their batch form, on threads, or in processes. A call that overruns its timeout is
given up: a process is ended, a thread cannot be and runs out on its own while a fresh pool serves the others.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as Overrun
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import Any

import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.operators import operator_pickling
from headgate.operators.answer import ERROR, Answer, WrongReturn, read
from headgate.operators.event import Event
from headgate.operators.predicate import Key
from headgate.operators.registry import VAR, Operator
from headgate.results import described

FOREIGN = (Exception, SystemExit, GeneratorExit)
"""What foreign code may raise for itself. KeyboardInterrupt is the user's, who wants all of it to end."""


class OperatorFailure(HeadgateError):
    """A call that gave no answer. `code` says how it failed."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.code = code


@dataclass(frozen=True, slots=True)
class Request:
    """One call to make. `table` gives the event as a row of an Arrow table, for batch operators."""

    operator: Operator
    event: Event
    arguments: tuple[Any, ...]
    key: Key
    table: Callable[[], pa.Table]

    @property
    def variables(self) -> int:
        return sum(a is VAR for a in self.arguments)


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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pause, self._clock = pause, clock
        self._circuits: dict[str, Circuit] = {}
        self._pools: dict[str, Executor] = {}
        self._cache: OrderedDict[Any, Answer] = OrderedDict()
        self._cached = cache

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
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        self._pools.clear()

    # -- ways to call

    def _together(self, requests: list[Request]) -> list[Reply]:
        operator = requests[0].operator
        if operator.batch is not None:
            return self._batched(requests)
        if operator.concurrency == "inline" and operator.timeout is None:
            return [self._inline(request) for request in requests]
        pool = self._pool(operator)
        start = time.perf_counter()
        futures = [self._submit(pool, request) for request in requests]
        replies = []
        for request, future in zip(requests, futures, strict=True):
            left = None if operator.timeout is None else max(0.0, operator.timeout - (time.perf_counter() - start))
            reply = self._awaited(request, future, left, start)
            replies.append(reply)
            if reply.answer.truth == ERROR and getattr(reply.answer.error, "code", "") == "operator.timeout":
                self._abandon(operator)
        return replies

    def _inline(self, request: Request) -> Reply:
        start = time.perf_counter()
        try:
            answer = read(request.operator(request.event, *request.arguments), request.variables, request.operator.rows)
        except FOREIGN as problem:
            answer = _failed(request.operator, problem)
        self._note(request.operator, answer)
        return Reply(answer, (time.perf_counter() - start) * 1e3)

    def _batched(self, requests: list[Request]) -> list[Reply]:
        operator = requests[0].operator
        assert operator.batch is not None
        start = time.perf_counter()
        try:
            table = pa.concat_tables([r.table() for r in requests])
            returned = operator.batch(table, [r.arguments for r in requests])
            if len(returned) != len(requests):
                raise WrongReturn(f"the batch form returned {len(returned)} results for {len(requests)} calls")
            answers = [_read(r, x) for r, x in zip(requests, returned, strict=True)]
        except FOREIGN as problem:
            answers = [_failed(operator, problem)] * len(requests)
        for answer in answers:
            self._note(operator, answer)
        each = (time.perf_counter() - start) * 1e3 / len(requests)
        return [Reply(answer, each) for answer in answers]

    def _submit(self, pool: Executor, request: Request) -> Future[Any] | Exception:
        try:
            if request.operator.concurrency == "processes":
                packed = operator_pickling.pack([request.operator])
                return pool.submit(_in_process, packed, request.event, request.arguments)
            return pool.submit(_in_thread, request.operator, request.event, request.arguments)
        except Exception as problem:  # noqa: BLE001 - an operator that cannot travel is its own subscriptions' error
            return problem

    def _awaited(self, request: Request, future: Future[Any] | Exception, left: float | None, start: float) -> Reply:
        operator = request.operator
        try:
            if isinstance(future, Exception):
                raise future
            answer = read(future.result(left), request.variables, operator.rows)
        except Overrun:
            future.cancel()  # type: ignore[union-attr]  # only a future overruns
            answer = Answer.failed(
                OperatorFailure("operator.timeout", f"{operator.name} took longer than {operator.timeout} s")
            )
        except BrokenProcessPool:
            self._abandon(operator)
            answer = Answer.failed(OperatorFailure("operator.died", f"the process of {operator.name} died"))
        except FOREIGN as problem:
            answer = _failed(operator, problem)
        self._note(operator, answer)
        return Reply(answer, (time.perf_counter() - start) * 1e3)

    # -- pools, circuits, kept answers

    def _pool(self, operator: Operator) -> Executor:
        pool = self._pools.get(operator.name)
        if pool is None:
            if operator.concurrency == "processes":
                pool = ProcessPoolExecutor(operator.workers, get_context("spawn"))
            else:
                pool = ThreadPoolExecutor(operator.workers, f"headgate-{operator.name}")
            self._pools[operator.name] = pool
        return pool

    def _abandon(self, operator: Operator) -> None:
        """A fresh pool from here on; what still runs in the old one must not hold up the next event."""
        pool = self._pools.pop(operator.name, None)
        if isinstance(pool, ProcessPoolExecutor):
            for process in list((pool._processes or {}).values()):
                process.terminate()
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)

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


def _read(request: Request, returned: Any) -> Answer:
    try:
        return read(returned, request.variables, request.operator.rows)
    except FOREIGN as problem:
        return _failed(request.operator, problem)


def _failed(operator: Operator, problem: BaseException) -> Answer:
    if isinstance(problem, WrongReturn):
        return Answer.failed(
            OperatorFailure(problem.code, f"{operator.name} returned what it must not: {problem.message}", problem.hint)
        )
    return Answer.failed(OperatorFailure("operator.raised", f"{operator.name} raised {described(problem)}"))


def undecidable(problem: Exception) -> HeadgateError:
    """Why a pair of an event and a subscription cannot be decided, if not because a call failed."""
    if isinstance(problem, HeadgateError):
        return problem
    return OperatorFailure("value", f"a value cannot be computed with: {described(problem)}")


def _hashable(value: Any) -> Any:
    return (type(value), tuple(map(_hashable, value)) if isinstance(value, list) else value)


def _in_thread(operator: Operator, event: Event, arguments: tuple[Any, ...]) -> Any:
    return _whole(operator(event, *arguments))


def _in_process(packed: bytes, event: Event, arguments: tuple[Any, ...]) -> Any:
    (operator,) = operator_pickling.unpack(packed)
    return _whole(operator(event, *arguments))


def _whole(returned: Any) -> Any:
    """A generator runs where the operator runs, so that its time counts and its errors are caught there."""
    return returned if isinstance(returned, bool | str | bytes) or not hasattr(returned, "__iter__") else list(returned)
