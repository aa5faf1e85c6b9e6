"""Taking events in: publications of many requests are written together, and publishers wait while matching is behind.

A transaction costs a write to disk, whatever its size. One thread writes; what arrives while it does is written next,
all at once. So single events reach thousands a second, and a publisher is answered when its events are safe.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from headgate.broker.problems import Refused
from headgate.errors import HeadgateError
from headgate.results import described
from headgate.store.database import Database, StoreUnavailable
from headgate.store.logs import Logs
from headgate.store.publications import Publication, Publications, Published
from headgate.store.shared import Shared

_TOGETHER = 20_000
"""Events in one transaction."""
_LOOK_S = 0.1


@dataclass
class _Waiting:
    publication: Publication
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Published]

    def tell(self, result: Published | Exception) -> None:
        def settle() -> None:
            if self.answer.done():
                return
            if isinstance(result, Exception):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)

        self.loop.call_soon_threadsafe(settle)


class Publisher:
    """`publish` from the event loop; the writing is done by a thread of its own."""

    def __init__(self, database: Database, publications: Publications, backlog: int) -> None:
        self._database = database
        self._publications = publications
        self._logs = Logs(database)
        self._shared = Shared(database)
        self._backlog = backlog
        self._queue: queue.Queue[_Waiting | None] = queue.Queue()
        self._thread = threading.Thread(target=self._work, name="headgate-log", daemon=True)
        self._looked = 0.0
        self._pending = 0
        self._done = 0
        self._moved = time.monotonic()
        """When matching was seen to have come further, or to have nothing to do."""
        self.last = 0
        """The id of the newest event."""
        self.written: Callable[[], None] = lambda: None
        """Called after each transaction: the local engine need not look for new events then."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join(30)

    @property
    def pending(self) -> int:
        """Events that wait to be matched, as of a moment ago."""
        return self._pending

    @property
    def stuck(self) -> float:
        """For how many seconds events have waited without any being matched."""
        return time.monotonic() - self._moved if self._pending else 0.0

    async def publish(self, publication: Publication) -> Published:
        if self._pending + len(publication.bodies) > self._backlog:
            raise Refused(
                429, "backlog", f"{self._pending:,} events wait to be matched", "publish again later", wait=1.0
            )
        loop = asyncio.get_running_loop()
        waiting = _Waiting(publication, loop, loop.create_future())
        self._pending += len(publication.bodies)
        self._queue.put(waiting)
        return await waiting.answer

    def look(self, *, now: bool = False) -> None:
        """Learn how far matching has come; called from threads, often."""
        moment = time.monotonic()
        if not now and moment - self._looked < _LOOK_S:
            return
        self._looked = moment
        self.last = self._logs.last()
        done = self._shared.progress()
        if done is None:
            done = max(0, self._logs.first() - 1)  # an empty log has no first event
        if done != self._done or self.last <= done:
            self._done, self._moved = done, moment
        self._pending = max(0, self.last - done)

    def _work(self) -> None:
        while (first := self._queue.get()) is not None:
            group, size = [first], len(first.publication.bodies)
            while size < _TOGETHER:
                try:
                    more = self._queue.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    self._queue.put(None)
                    break
                group.append(more)
                size += len(more.publication.bodies)
            self._write(group)
        self._database.close()

    def _write(self, group: list[_Waiting]) -> None:
        try:
            answers: list[Published] = self._publications.publish([w.publication for w in group])
        except HeadgateError as problem:
            if len(group) > 1 and not isinstance(problem, StoreUnavailable):
                for waiting in group:  # what is wrong with one is not the others' fault
                    self._write([waiting])
                return
            for waiting in group:
                waiting.tell(problem)
            return
        except BaseException as problem:  # noqa: BLE001 - whoever waits must be answered, and this thread goes on
            for waiting in group:
                waiting.tell(StoreUnavailable(f"the events could not be written: {described(problem)}"))
            return
        for waiting, answer in zip(group, answers, strict=True):
            waiting.tell(answer)
        self.written()
        with suppress(HeadgateError):  # they are written; the house looks again
            self.look()
