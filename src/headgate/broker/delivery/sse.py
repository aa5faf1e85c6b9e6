"""Server-sent events: the id of each is the number of the notification, so a client resumes with `Last-Event-ID`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from headgate.broker.delivery.form import to_json
from headgate.broker.hub import Connection
from headgate.broker.metrics import Numbers


async def lines(connection: Connection, numbers: Numbers, family: Callable[[str], str]) -> AsyncIterator[bytes]:
    """The body of the response, until the connection or the subscription ends."""
    yield b"retry: 1000\n\n"
    async for page in connection.pages():
        if not page:
            yield b": still here\n\n"
            continue
        # JSON of ours has no line breaks.
        parts = [
            b"id: %d\nevent: notification\ndata: %s\n\n" % (n.seq, to_json(n).replace(b"\n", b" ").replace(b"\r", b" "))
            for n in page
        ]
        yield b"".join(parts)
        numbers.delivered("sse", page, family)
    yield b"event: end\ndata: {}\n\n"
