"""Deliveries that the broker makes of itself: to webhooks, topics and peers.

Each has a cursor in the store. What fails is tried again after a wait that doubles, with jitter; what fails too often
goes to the dead letters, and the next one is tried. One broker on a store does this work, by a lease. A channel's
notifications go out in order; channels do not wait for each other.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from headgate.broker.metrics import Numbers
from headgate.broker.settings import Settings
from headgate.broker.threads import in_thread
from headgate.broker.watch import Watch
from headgate.errors import HeadgateError
from headgate.store.logs import Notice
from headgate.store.outbox import Cursor, Outbox

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
    def __init__(
        self, outbox: Outbox, settings: Settings, numbers: Numbers, family: Callable[[str], str], watch: Watch
    ) -> None:
        self._watch = watch
        self._outbox = outbox
        self._settings = settings
        self._numbers = numbers
        self._family = family
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._troubled: set[str] = set()
        """Channels whose last round raised."""
        self._closed = False

    def __len__(self) -> int:
        """How many channels are at work."""
        return sum(not task.done() for task in self._tasks.values())

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
        self._troubled.discard(name)
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
                self._troubled.discard(channel.name)
                if not self._troubled:
                    self._watch.mend("delivery")
            except Exception as problem:  # noqa: BLE001 - this channel is tried again; what waits in it is in the store
                self._troubled.add(channel.name)
                self._watch.failed("delivery", problem)
                rest = 1.0 if isinstance(problem, HeadgateError) else 10.0
            if rest is not None:
                await asyncio.sleep(rest)
            elif channel.name not in self._again:
                return

    async def _round(self, channel: Channel) -> float | None:
        """Deliver one page; the seconds until the next try, or None if nothing is left."""
        cursor = await in_thread(self._outbox.cursor, channel.name)
        if cursor is None:
            return None
        early = cursor.due - time.time()
        # No wait is longer than that, unless the clock was set back since.
        if 0 < early <= self._settings.longest_wait:
            return min(early, 60.0)
        page = await in_thread(channel.read, cursor.seq, channel.page)
        if not page:
            return None
        outcome = await channel.send(page)
        self._numbers.delivered(channel.kind, page[: outcome.done], self._family)
        if outcome.failure is None:
            await in_thread(self._outbox.move, Cursor(channel.name, page[-1].seq))
            return 0.0
        self._numbers.count("delivery_failures_total", 1, channel.kind)
        attempts = cursor.attempts + 1 if not outcome.done else 1
        at = page[outcome.done - 1].seq if outcome.done else cursor.seq
        stopped = page[outcome.done]
        if not channel.patient and (outcome.final or attempts >= self._settings.attempts):
            buried = Cursor(channel.name, stopped.seq, attempts)
            await in_thread(self._outbox.bury, buried, stopped.id, outcome.failure)
            self._numbers.count("dead_letters_total")
            return 0.0
        wait = max(pause(attempts, self._settings), outcome.wait)
        waiting = Cursor(channel.name, at, attempts, time.time() + wait, outcome.failure)
        await in_thread(self._outbox.move, waiting)
        return wait


def pause(attempts: int, settings: Settings) -> float:
    """The wait before the next attempt: it doubles, and half of it is chance, so that failures do not march in step."""
    most = min(settings.longest_wait, settings.first_wait * 2.0 ** min(attempts - 1, 30))
    return most * _RANDOM.uniform(0.5, 1.0)
