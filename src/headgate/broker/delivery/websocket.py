"""WebSocket: one message a notification. The ticket and the number to resume from come in the client's first message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.websockets import WebSocket, WebSocketDisconnect

from headgate.broker.delivery.form import to_json
from headgate.broker.hub import Connection
from headgate.broker.metrics import Numbers


async def send(socket: WebSocket, connection: Connection, numbers: Numbers, family: Callable[[str], str]) -> None:
    """Send until either side ends it."""
    watching = asyncio.create_task(_gone(socket, connection))
    try:
        async for page in connection.pages():
            for notice in page:
                await socket.send_text(to_json(notice).decode())
            numbers.delivered("websocket", page, family)
        await socket.close(1000, "the subscription has ended")
    except (WebSocketDisconnect, RuntimeError):
        # The client left while we were writing.
        return
    finally:
        watching.cancel()


async def _gone(socket: WebSocket, connection: Connection) -> None:
    """Clients say nothing after their first message; what comes is the end."""
    try:
        while True:
            await socket.receive_text()
    except (WebSocketDisconnect, RuntimeError, KeyError):
        connection.close()
