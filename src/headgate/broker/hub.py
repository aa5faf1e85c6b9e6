"""Who listens right now: connections that get their notifications as they come.

A connection has a queue that the tail fills. One that is new, or whose queue ran over, has `lost` something: it reads the
store from its last number on until nothing is left there, and then goes on with its queue. So each connection gets
every notification after its starting point, in order, and a slow one holds up nobody.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from starlette.concurrency import run_in_threadpool

from headgate.broker.throttle import Throttle
from headgate.store.logs import Notice

_QUEUE = 10_000
_PAGE = 1000
BEAT_S = 15.0


class Connection:
    """One listener. `read` gives a page of its notifications after a number."""

    def __init__(self, since: int, read: Callable[[int, int], Sequence[Notice]], throttle: Throttle | None) -> None:
        self.seq = since
        self._read = read
        self._throttle = throttle
        self._queue: deque[Notice] = deque()
        self._lost = True
        self._closed = False
        self._loop = asyncio.get_running_loop()
        self._ready = asyncio.Event()

    def put(self, notices: Sequence[Notice]) -> None:
        """From the tail's thread."""
        if len(self._queue) + len(notices) > _QUEUE:
            self._lost = True
        else:
            self._queue.extend(notices)
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        try:
            self._loop.call_soon_threadsafe(self._ready.set)
        except RuntimeError:
            # The loop is gone, and this connection with it.
            return

    async def pages(self) -> AsyncIterator[list[Notice]]:
        """Pages of notifications; an empty one now and then, to show that the connection lives."""
        while not self._closed:
            self._ready.clear()
            if self._lost:
                self._lost = False
                self._queue.clear()
                while page := list(await run_in_threadpool(self._read, self.seq, _PAGE)):
                    self.seq = page[-1].seq
                    yield self._kept(page)
                continue
            page = []
            while self._queue and len(page) < _PAGE:
                notice = self._queue.popleft()
                if notice.seq > self.seq:
                    page.append(notice)
            if page:
                self.seq = page[-1].seq
                yield self._kept(page)
            elif not self._queue:
                try:
                    await asyncio.wait_for(self._ready.wait(), BEAT_S)
                except TimeoutError:
                    yield []

    def _kept(self, page: list[Notice]) -> list[Notice]:
        return page if self._throttle is None else [n for n in page if self._throttle.passes(n)]


class Hub:
    """Connections by what they listen to: a subscription, or all of an owner."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._by: dict[tuple[str, str], set[Connection]] = {}

    def __len__(self) -> int:
        with self._lock:
            return sum(map(len, self._by.values()))

    def join(self, kind: str, name: str, connection: Connection) -> None:
        with self._lock:
            self._by.setdefault((kind, name), set()).add(connection)

    def leave(self, kind: str, name: str, connection: Connection) -> None:
        with self._lock:
            found = self._by.get((kind, name), set())
            found.discard(connection)
            if not found:
                self._by.pop((kind, name), None)

    def end(self, kind: str, name: str) -> None:
        """Close the connections of a subscription that is gone."""
        with self._lock:
            found = list(self._by.get((kind, name), ()))
        for connection in found:
            connection.close()

    def close(self) -> None:
        with self._lock:
            found = [c for group in self._by.values() for c in group]
        for connection in found:
            connection.close()

    def hand(self, notices: Sequence[Notice], owner: Callable[[str], Any]) -> None:
        """Give notifications to whoever listens to them."""
        with self._lock:
            if not self._by:
                return
            groups = {key: list(found) for key, found in self._by.items()}
        parts: dict[tuple[str, str], list[Notice]] = {}
        owners = any(kind == "owner" for kind, _ in groups)
        for notice in notices:
            key = ("subscription", notice.subscription)
            if key in groups:
                parts.setdefault(key, []).append(notice)
            if owners:
                whose = ("owner", str(owner(notice.subscription)))
                if whose in groups:
                    parts.setdefault(whose, []).append(notice)
        for key, part in parts.items():
            for connection in groups[key]:
                connection.put(part)
