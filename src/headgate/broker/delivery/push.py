"""Deliveries that the broker makes of itself: to webhooks, topics and peers.

Each has a cursor in the store. What fails is tried again after a wait that doubles, with jitter; what fails too often
goes to the dead letters, and the next one is tried. One broker on a store does this work, by a lease. A channel's
notifications go out in order; channels do not wait for each other.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from headgate.broker.metrics import Numbers
from headgate.broker.settings import Settings
from headgate.errors import HeadgateError
from headgate.store.logs import Notice
from headgate.store.outbox import Cursor, Outbox

log = logging.getLogger("headgate.broker")
_AT_ONCE = 64
_RANDOM = random.SystemRandom()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How many of a page were taken, and why not the next one."""

    done: int
    failure: str | None = None
    final: bool = False
    """To try again makes no sense."""
    wait: float = 0.0
    """The other side asked for this many seconds."""


Send = Callable[[Sequence[Notice]], Awaitable[Outcome]]


@dataclass(frozen=True)
class Channel:
    """Something to deliver to. `read` gives a page of its notifications after a number."""

    name: str
    kind: str
    read: Callable[[int, int], Sequence[Notice]]
    send: Send
    page: int = 50
    patient: bool = False
    """Never give up: a peer must not miss anything."""


class Pusher:
    def __init__(self, outbox: Outbox, settings: Settings, numbers: Numbers, family: Callable[[str], str]) -> None:
        self._outbox = outbox
        self._settings = settings
        self._numbers = numbers
        self._family = family
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._closed = False

    def wake(self, channel: Channel) -> None:
        """There is, or may be, something for this channel. In the event loop."""
        if self._closed:
            return
        running = self._tasks.get(channel.name)
        if running is not None and not running.done():
            self._again.add(channel.name)
            return
        self._tasks[channel.name] = asyncio.create_task(self._run(channel))

    def stop(self, name: str) -> None:
        task = self._tasks.pop(name, None)
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        self._closed = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, channel: Channel) -> None:
        while not self._closed:
            self._again.discard(channel.name)
            try:
                rest = await self._round(channel)
            except HeadgateError as problem:
                log.warning("%s: %s", channel.name, problem)
                rest = 1.0
            if rest is not None:
                await asyncio.sleep(rest)
            elif channel.name not in self._again:
                return

    async def _round(self, channel: Channel) -> float | None:
        """Deliver one page; the seconds until the next try, or None if nothing is left."""
        cursor = await run_in_threadpool(self._outbox.cursor, channel.name)
        if cursor is None:
            return None
        if cursor.due > time.time():
            return min(cursor.due - time.time(), 60.0)
        page = await run_in_threadpool(channel.read, cursor.seq, channel.page)
        if not page:
            return None
        async with self._slots:
            outcome = await channel.send(page)
        self._numbers.delivered(channel.kind, page[: outcome.done], self._family)
        if outcome.failure is None:
            await run_in_threadpool(self._outbox.move, Cursor(channel.name, page[-1].seq))
            return 0.0
        self._numbers.count("delivery_failures_total", 1, channel.kind)
        attempts = cursor.attempts + 1 if not outcome.done else 1
        at = page[outcome.done - 1].seq if outcome.done else cursor.seq
        stopped = page[outcome.done]
        if not channel.patient and (outcome.final or attempts >= self._settings.attempts):
            buried = Cursor(channel.name, stopped.seq, attempts)
            await run_in_threadpool(self._outbox.bury, buried, stopped.id, outcome.failure)
            self._numbers.count("dead_letters_total")
            return 0.0
        wait = max(pause(attempts, self._settings), outcome.wait)
        waiting = Cursor(channel.name, at, attempts, time.time() + wait, outcome.failure)
        await run_in_threadpool(self._outbox.move, waiting)
        return wait


def pause(attempts: int, settings: Settings) -> float:
    """The wait before the next attempt: it doubles, and half of it is chance, so that failures do not march in step."""
    most = min(settings.longest_wait, settings.first_wait * 2.0 ** min(attempts - 1, 30))
    return most * _RANDOM.uniform(0.5, 1.0)
