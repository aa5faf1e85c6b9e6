"""Server-sent events: the id of each is the number of the notification, so a client resumes with `Last-Event-ID`.

The first block has the number that the connection begins after and nothing else: a client whose connection breaks before
the first notification resumes there.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from headgate.broker.delivery.form import to_json
from headgate.broker.hub import Connection
from headgate.broker.metrics import Numbers


async def lines(connection: Connection, numbers: Numbers, family: Callable[[str], str]) -> AsyncIterator[bytes]:
    """The body of the response, until the connection or the subscription ends."""
    yield b"retry: 1000\nid: %d\n\n" % connection.seq
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
