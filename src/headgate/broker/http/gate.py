"""What every request passes before anything else looks at it: its host, its origin, and the size and pace of its body.

A browser sends requests for any site that its user looks at, to this machine too. Two checks keep such sites out: the
request must ask for a name that is the broker's own, or a name of the site's could be made to point here (DNS
rebinding); and if a page sends it, the page must be the broker's own.
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headgate.broker.problems import Refused, of_refusal
from headgate.broker.settings import Settings

_BODY = "headgate.body"


class Gate:
    def __init__(self, app: ASGIApp, settings: Settings, refused: Callable[[int], None]) -> None:
        """`refused` is told the status of each refusal."""
        self._app = app
        self._settings = settings
        self._refused = refused
        advertised = urlsplit(settings.advertise).hostname
        names = ("localhost", settings.host, advertised, *settings.allow_hosts)
        self._names = frozenset(name.lower() for name in names if name)
        self._held = Held()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        body = Body(scope, receive, send, self._settings, self._held)
        scope[_BODY] = body
        try:
            self._check_site(HTTPConnection(scope))
            if scope["type"] == "http":
                await self._app(scope, body.receive, body.send)
            else:
                await self._app(scope, receive, send)
        except Refused as problem:
            if body.answered:
                raise
            self._refused(problem.status_code)
            if scope["type"] == "websocket":
                # Before the handshake is answered this is a 403.
                await receive()
                await send({"type": "websocket.close", "code": 1008})
                return
            request: Any = None
            await of_refusal(request, problem)(scope, receive, send)
        finally:
            body.release()

    def _check_site(self, connection: HTTPConnection) -> None:
        host = connection.headers.get("host", "")
        name = _name(host)
        if not self._own(name):
            hint = f"use its address, or start it with --allow-host {name}"
            raise Refused(421, "host", f"this broker is not known as {name or host!r}", hint)
        for origin in connection.headers.getlist("origin"):
            if _without_port(origin.partition("://")[2]) != _without_port(host):
                raise Refused(403, "origin", f"a page of {origin} may not use this broker")

    def _own(self, name: str) -> bool:
        if name in self._names or "*" in self._names:
            return True
        try:
            # Nobody can make an address point elsewhere.
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _name(host: str) -> str:
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _without_port(host: str) -> str:
    """A host and its port, if it is neither that of HTTP nor that of HTTPS: a proxy may speak TLS for us."""
    return host.lower().removesuffix(":80").removesuffix(":443")


@dataclass
class Held:
    """Bytes of the bodies of all requests that are under way."""

    bytes: int = 0


class Body:
    """The body of a request as it comes: neither too large nor too slow, unless its reader says that it is a stream."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: Settings, held: Held) -> None:
        headers = dict(scope["headers"])
        announced = headers.get(b"content-length", b"")
        self._announced = int(announced) if announced.isdigit() else 0
        self._receive = receive
        self._send = send
        self._limits = limits
        self._held = held
        self._began = time.monotonic()
        self._taken = 0
        self._done = False
        self._endless = False
        self.answered = False

    async def send(self, message: Message) -> None:
        self.answered = self.answered or message["type"] == "http.response.start"
        await self._send(message)

    def stream(self) -> None:
        """It may be as large as it likes, and take its time, as long as something comes. Its reader keeps little of it."""
        self._endless = True

    def release(self) -> None:
        if not self._endless:
            self._held.bytes -= self._taken

    async def receive(self) -> Message:
        if self._done:
            # What comes after the body is the end of the connection; a stream of ours waits for it as long as it runs.
            return await self._receive()
        limits = self._limits
        if not self._endless and max(self._announced, self._taken) > limits.body_bytes:
            raise Refused(413, "size", f"a body may have {limits.body_bytes:,} bytes")
        try:
            message = await asyncio.wait_for(self._receive(), limits.idle_seconds)
        except TimeoutError:
            raise Refused(408, "slow", f"nothing came for {limits.idle_seconds:g} seconds") from None
        if message["type"] == "http.request":
            size = len(message.get("body", b""))
            self._taken += size
            if not self._endless:
                self._held.bytes += size
                if self._held.bytes > limits.bodies_bytes:
                    raise Refused(503, "busy", "too much is being published at once", "try again", wait=1.0)
            self._done = not message.get("more_body", False)
            spent = time.monotonic() - self._began
            if not self._endless and self._taken > limits.body_bytes:
                raise Refused(413, "size", f"a body may have {limits.body_bytes:,} bytes")
            if not self._done and spent > limits.idle_seconds and self._taken < limits.least_rate * spent:
                raise Refused(408, "slow", f"a body must come with {limits.least_rate:g} bytes a second")
            if not self._done and not self._endless and spent > limits.body_seconds:
                raise Refused(408, "slow", f"a body may take {limits.body_seconds:g} seconds")
        return message


def body_of(connection: HTTPConnection) -> Body:
    found: Body = connection.scope[_BODY]
    return found
