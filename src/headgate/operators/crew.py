"""Workers of one operator: threads or processes that make calls, each call with its own time.

A timeout is the time of the call itself, so a call's clock starts when a worker begins it. A call that overruns, or
whose worker dies, loses that worker and no other: its worker is replaced, and calls that waited behind it go to others. A
process is killed; a thread cannot be, so it is left alone, as a daemon that the interpreter does not wait for.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from queue import Empty, SimpleQueue
from typing import Generic, Protocol, TypeVar

from headgate.operators.calls import Call, OperatorFailure, Returned, make
from headgate.operators.registry import Operator


class Worker(Protocol):
    pending: deque[int]
    """The numbers of the calls it was given and has not finished, the running one first."""
    since: float | None
    """When it began the call that runs, by `time.monotonic`; None while nothing runs."""

    def begin(self, numbers: Sequence[int], calls: Sequence[Call]) -> None: ...
    def take(self) -> Returned | None:
        """The outcome of the first pending call, if it is there; raises OperatorFailure if the worker is lost."""

    def stop(self) -> None: ...


W = TypeVar("W", bound=Worker)


class Crew(Generic[W]):
    """Runs calls on up to `size` workers. Not shared between threads."""

    share = 1
    """How many calls a worker is given at once."""

    def __init__(self, operator: Operator, size: int) -> None:
        self.operator, self.size = operator, size
        self._idle: list[W] = []
        self._busy: list[W] = []

    def run(self, calls: Sequence[Call]) -> list[Returned]:
        returned: dict[int, Returned] = {}
        waiting = deque(range(len(calls)))
        try:
            while len(returned) < len(calls):
                self._deal(waiting, calls, returned)
                self._wait(self._busy, self._until())
                for worker in list(self._busy):
                    self._collect(worker, waiting, returned)
        except BaseException:
            self.close()  # what still runs belongs to calls that nobody waits for
            raise
        return [returned[i] for i in range(len(calls))]

    def close(self) -> None:
        for worker in self._idle + self._busy:
            worker.stop()
        self._idle.clear()
        self._busy.clear()

    def _deal(self, waiting: deque[int], calls: Sequence[Call], returned: dict[int, Returned]) -> None:
        while waiting and len(self._busy) < self.size:
            try:
                worker = self._idle.pop() if self._idle else self._hire()
            except OperatorFailure as nobody:
                if not self._busy:
                    returned |= dict.fromkeys(waiting, Returned(nobody))
                    waiting.clear()
                return
            numbers = [waiting.popleft() for _ in range(min(self.share, len(waiting)))]
            self._busy.append(worker)
            worker.begin(numbers, [calls[i] for i in numbers])

    def _collect(self, worker: W, waiting: deque[int], returned: dict[int, Returned]) -> None:
        timeout = self.operator.timeout
        overdue = timeout is not None and worker.since is not None and time.monotonic() - worker.since > timeout
        try:
            while worker.pending and (outcome := worker.take()) is not None:
                overdue = False
                late = timeout is not None and outcome.milliseconds > timeout * 1e3
                returned[worker.pending.popleft()] = Returned(self._late()) if late else outcome
            if overdue:
                raise self._late()
        except OperatorFailure as lost:
            self._busy.remove(worker)
            returned[worker.pending.popleft()] = Returned(lost)
            waiting.extendleft(reversed(worker.pending))
            worker.pending.clear()
            self._dismiss(worker)
            return
        if not worker.pending:
            self._busy.remove(worker)
            self._idle.append(worker)

    def _until(self) -> float | None:
        """Seconds until a running call may be late."""
        begun = [w.since for w in self._busy if w.since is not None]
        if self.operator.timeout is None:
            return None
        if len(begun) < len(self._busy):
            return min(self.operator.timeout, 0.05)  # a worker is about to begin
        return max(0.0, min(begun, default=0.0) + self.operator.timeout - time.monotonic()) + 0.001

    def _late(self) -> OperatorFailure:
        said = f"{self.operator.name} took longer than {self.operator.timeout} s"
        return OperatorFailure("operator.timeout", said)

    def _hire(self) -> W:
        """A fresh worker; raises OperatorFailure where there can be none."""
        raise NotImplementedError

    def _dismiss(self, worker: W) -> None:
        worker.stop()

    def _wait(self, workers: Sequence[W], seconds: float | None) -> None:
        """Until a worker has something to take, at most so long."""
        raise NotImplementedError


class ThreadWorker:
    def __init__(self, operator: Operator, bell: SimpleQueue[None]) -> None:
        self.pending: deque[int] = deque()
        self.since: float | None = None
        self._operator, self._bell = operator, bell
        self._calls: SimpleQueue[Call | None] = SimpleQueue()
        self._outcomes: deque[Returned] = deque()
        self.thread = threading.Thread(target=self._serve, name=f"headgate-{operator.name}", daemon=True)
        self.thread.start()

    def begin(self, numbers: Sequence[int], calls: Sequence[Call]) -> None:
        self.pending.extend(numbers)
        for call in calls:
            self._calls.put(call)

    def take(self) -> Returned | None:
        return self._outcomes.popleft() if self._outcomes else None

    def stop(self) -> None:
        self._calls.put(None)

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            self.since = time.monotonic()
            try:
                outcome = make(self._operator, call)
            except BaseException as problem:  # noqa: BLE001 - a KeyboardInterrupt of foreign code: the user's goes to the main thread
                outcome = Returned(OperatorFailure("operator.raised", f"{self._operator.name} raised {problem!r}"))
            self.since = None  # before anybody can hand over the next call
            self._outcomes.append(outcome)
            self._bell.put(None)


class ThreadCrew(Crew[ThreadWorker]):
    def __init__(self, operator: Operator, size: int, stuck: int) -> None:
        super().__init__(operator, size)
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._hanging: list[ThreadWorker] = []
        self._most_hanging = stuck

    def _hire(self) -> ThreadWorker:
        self._hanging = [w for w in self._hanging if w.thread.is_alive()]
        if len(self._hanging) >= self._most_hanging:
            raise OperatorFailure(
                "operator.stuck",
                f"{len(self._hanging)} earlier calls of {self.operator.name} still hang, so it is not called again",
                'calls of an operator with concurrency="processes" can be ended',
            )
        return ThreadWorker(self.operator, self._bell)

    def _dismiss(self, worker: ThreadWorker) -> None:
        worker.stop()
        self._hanging.append(worker)

    def _wait(self, workers: Sequence[ThreadWorker], seconds: float | None) -> None:
        if workers:
            try:
                self._bell.get(timeout=seconds)
            except Empty:
                return
