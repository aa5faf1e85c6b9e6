"""Limits on those who send: how fast they may publish, and how slow a connection may be."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

_MOST_BUCKETS = 10_000


class Buckets:
    """Token buckets by name: a second's worth may come at once. For the event loop alone."""

    def __init__(self) -> None:
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, name: str, rate: float, amount: int) -> float:
        """Take `amount`; 0 if it was there, else the seconds until it will be."""
        now = time.monotonic()
        size = max(rate, 1.0)
        level, then = self._levels.pop(name, (size, now))
        level = min(size, level + (now - then) * rate)
        # A batch larger than the bucket passes when the bucket is full, and leaves a debt.
        enough = level >= min(amount, size)
        self._levels[name] = (level - amount if enough else level, now)
        if len(self._levels) > _MOST_BUCKETS:
            self._levels.popitem(last=False)
        return 0.0 if enough else (min(amount, size) - level) / rate


def protocol(seconds: float, stalled: float) -> type[H11Protocol]:
    """Uvicorn's protocol with a deadline for whatever a connection sends while no request is being answered, and one for
    a client that takes nothing of what is sent to it.

    What comes then is the head of a request, the first or a later one, and the rest of a body that was answered before
    it had come. Uvicorn itself closes only connections on which nothing comes at all.
    """

    class Deadlined(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None
        _stall: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._arm()

        def data_received(self, data: bytes) -> None:
            # Before uvicorn looks at it: what comes may be a whole request, which disarms the deadline.
            self._arm()
            super().data_received(data)

        def handle_events(self) -> None:
            super().handle_events()
            if self._answering():
                self._disarm()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.conn.their_state is h11.SEND_BODY:
                self._arm()

        def handle_websocket_upgrade(self, event: h11.Request) -> None:
            self._disarm()
            super().handle_websocket_upgrade(event)

        def pause_writing(self) -> None:
            self._stall = self.loop.call_later(stalled, self.transport.abort)
            super().pause_writing()

        def resume_writing(self) -> None:
            self._moves_again()
            super().resume_writing()

        def _moves_again(self) -> None:
            if self._stall is not None:
                self._stall.cancel()
                self._stall = None

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            self._moves_again()
            super().connection_lost(exc)

        def _answering(self) -> bool:
            cycle: RequestResponseCycle | None = self.cycle
            return cycle is not None and not cycle.response_complete

        def _arm(self) -> None:
            if self._deadline is None and not self._answering():
                self._deadline = self.loop.call_later(seconds, self.transport.close)

        def _disarm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

    return Deadlined
