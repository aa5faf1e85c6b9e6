"""Fair shares of what is scarce: calls under way, names being looked up.

Whoever waits for a slot gets one before those of an owner who holds more; and no owner holds more than his share. So
many slow webhooks of one owner hold up that owner alone.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """For one event loop."""

    def __init__(self, total: int, each: int) -> None:
        self._free = total
        self._each = each
        self._held: Counter[str] = Counter()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def held(self, owner: str) -> AsyncIterator[None]:
        """Hold a slot, as soon as there is one."""
        granted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, deque()).append(granted)
        self._grant()
        try:
            await granted
            yield
        finally:
            if granted.done() and not granted.cancelled():
                self._free += 1
                self._held[owner] -= 1
                if not self._held[owner]:
                    del self._held[owner]
            self._grant()

    def _grant(self) -> None:
        while self._free:
            able = [owner for owner in self._waiting if self._held[owner] < self._each]
            if not able:
                return
            owner = min(able, key=lambda o: self._held[o])
            queue = self._waiting[owner]
            granted = queue.popleft()
            if not queue:
                del self._waiting[owner]
            if not granted.done():
                granted.set_result(None)
                self._free -= 1
                self._held[owner] += 1
