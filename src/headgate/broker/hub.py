"""Who listens right now: connections that get their notifications as they come.

A connection has one queue that the tail fills in the order of the log, whatever it listens to. One that is new, or whose
queue ran over, has `lost` something: it reads the store from its last number on until nothing is left there, and then
goes on with its queue. So each connection gets every notification after its starting point, in order, and a slow one
holds up nobody. Queues and pages are bounded by their size as well as by their count.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from headgate.broker.threads import in_thread
from headgate.broker.throttle import Throttle
from headgate.store.logs import PAGE_SIZE, Notice

_QUEUE = 10_000
_QUEUE_SIZE = 4 * PAGE_SIZE
_PAGE = 1000
BEAT_S = 15.0
SUBSCRIPTION, OWNER = "subscription", "owner"
Topic = tuple[str, str]
"""What can be listened to: a subscription, or all of an owner."""


class Connection:
    """One listener. `read` gives a page of its notifications after a number."""

    def __init__(
        self,
        since: int,
        topics: Iterable[Topic],
        read: Callable[[int, int], Sequence[Notice]],
        throttle: Throttle | None = None,
    ) -> None:
        self.seq = since
        self.topics = frozenset(topics)
        self._read = read
        self._throttle = throttle
        self._lock = threading.Lock()
        self._queue: deque[Notice] = deque()
        self._size = 0
        self._lost = True
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()

    def put(self, notices: Sequence[Notice]) -> None:
        """From the tail's thread, in the order of the log."""
        size = sum(notice.size for notice in notices)
        with self._lock:
            if self._lost or len(self._queue) + len(notices) > _QUEUE or self._size + size > _QUEUE_SIZE:
                # Nothing is queued behind a gap.
                self._empty(lost=True)
            else:
                self._queue.extend(notices)
                self._size += size
        self._wake()

    @property
    def queued(self) -> int:
        """Characters of what waits in the queue."""
        return self._size

    def close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._ready.set)
        except RuntimeError:
            # The loop is gone, and this connection with it.
            return

    def _empty(self, *, lost: bool) -> None:
        self._lost = lost
        self._queue.clear()
        self._size = 0

    def _queued(self) -> list[Notice] | None:
        """A page of the queue, or None if something was lost."""
        page: list[Notice] = []
        taken = 0
        with self._lock:
            if self._lost:
                self._empty(lost=False)
                return None
            while self._queue and len(page) < _PAGE and (not page or taken + self._queue[0].size <= PAGE_SIZE):
                notice = self._queue.popleft()
                taken += notice.size
                # What the store gave already is passed over.
                if notice.seq > self.seq:
                    page.append(notice)
            self._size -= taken
        return page

    async def pages(self) -> AsyncIterator[list[Notice]]:
        """Pages of notifications; an empty one now and then, to show that the connection lives."""
        while not self._closed:
            self._ready.clear()
            queued = self._queued()
            if queued is None:
                while page := list(await in_thread(self._read, self.seq, _PAGE)):
                    self.seq = page[-1].seq
                    yield self._kept(page)
            elif queued:
                self.seq = queued[-1].seq
                yield self._kept(queued)
            else:
                try:
                    await asyncio.wait_for(self._ready.wait(), BEAT_S)
                except TimeoutError:
                    yield []

    def _kept(self, page: list[Notice]) -> list[Notice]:
        return page if self._throttle is None else [n for n in page if self._throttle.passes(n)]


class Hub:
    """The connections of this process, by what they listen to."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by: dict[Topic, set[Connection]] = {}
        self._left: dict[Connection, set[Topic]] = {}
        """What each connection still listens to."""

    def __len__(self) -> int:
        with self._lock:
            return len(self._left)

    def join(self, connection: Connection) -> None:
        with self._lock:
            self._left[connection] = set(connection.topics)
            for topic in connection.topics:
                self._by.setdefault(topic, set()).add(connection)

    def leave(self, connection: Connection) -> None:
        with self._lock:
            for topic in self._left.pop(connection, ()):
                self._drop(topic, connection)

    def _drop(self, topic: Topic, connection: Connection) -> None:
        listening = self._by[topic]
        listening.discard(connection)
        if not listening:
            del self._by[topic]

    def end(self, topic: Topic) -> None:
        """A subscription is gone; close the connections that listen to nothing else."""
        with self._lock:
            listening = list(self._by.get(topic, ()))
            for connection in listening:
                self._drop(topic, connection)
                self._left[connection].discard(topic)
            done = [connection for connection in listening if not self._left[connection]]
        for connection in done:
            connection.close()

    def close(self) -> None:
        with self._lock:
            listening = list(self._left)
        for connection in listening:
            connection.close()

    def hand(self, notices: Sequence[Notice], owner: Callable[[str], str | None]) -> None:
        """Give notifications, in the order of the log, to whoever listens to them."""
        with self._lock:
            if not self._left:
                return
            groups = {topic: tuple(listening) for topic, listening in self._by.items()}
        parts: dict[Connection, list[Notice]] = {}
        owners = any(kind == OWNER for kind, _ in groups)
        for notice in notices:
            listening = groups.get((SUBSCRIPTION, notice.subscription), ())
            if owners:
                whose = groups.get((OWNER, owner(notice.subscription) or ""), ())
                listening = tuple({*listening, *whose}) if whose else listening
            for connection in listening:
                parts.setdefault(connection, []).append(notice)
        for connection, part in parts.items():
            connection.put(part)
