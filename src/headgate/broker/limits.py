"""Limits on those who send: how fast they may publish, and how large and how slow a body may be."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from typing import Any

import h11
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from headgate.broker.problems import Refused, of_refusal
from headgate.broker.settings import Settings

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


class BodyGuard:
    """Cuts off bodies that are too large or too slow, before anybody has read them."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limits = self._settings
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        lines = "ndjson" in headers.get("content-type", "") or "jsonl" in headers.get("content-type", "")
        began, taken, done, started = time.monotonic(), 0, False, False

        async def guarded() -> Message:
            nonlocal taken, done
            if done:
                # What comes after the body is the end of the connection; a stream of ours waits for it as long as it runs.
                return await receive()
            try:
                message = await asyncio.wait_for(receive(), limits.idle_seconds)
            except TimeoutError:
                raise Refused(408, "slow", f"nothing came for {limits.idle_seconds:g} seconds") from None
            if message["type"] == "http.request":
                taken += len(message.get("body", b""))
                done = not message.get("more_body", False)
                spent = time.monotonic() - began
                if not lines and taken > limits.body_bytes:
                    raise Refused(413, "size", f"a body may have {limits.body_bytes:,} bytes")
                if not done and spent > limits.idle_seconds and taken < limits.least_rate * spent:
                    raise Refused(408, "slow", f"a body must come with {limits.least_rate:g} bytes a second")
                if not done and not lines and spent > limits.body_seconds:
                    raise Refused(408, "slow", f"a body may take {limits.body_seconds:g} seconds")
            return message

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        said = headers.get("content-length", "")
        try:
            if not lines and said.isdecimal() and int(said) > limits.body_bytes:
                raise Refused(413, "size", f"a body may have {limits.body_bytes:,} bytes")
            await self._app(scope, guarded, watched)
        except Refused as problem:
            if started:
                raise
            request: Any = None
            await of_refusal(request, problem)(scope, receive, send)


def protocol(seconds: float) -> type[H11Protocol]:
    """Uvicorn's protocol with a deadline for whatever a connection sends while no request is being answered.

    That is the head of a request, the first or a later one, and the rest of a body that was answered before it had
    come. Uvicorn itself closes only connections on which nothing comes at all.
    """

    class Deadlined(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

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

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
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
