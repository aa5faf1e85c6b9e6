"""A notification as subscribers get it: one JSON object, the same on every way.

`seq` is its number, to resume from; `id` is the same for the same match always, to tell repetitions. `data` is the event.
"""

from __future__ import annotations

import orjson

from headgate.store.logs import Notice


def to_json(notice: Notice) -> bytes:
    head = orjson.dumps(
        {
            "seq": notice.seq,
            "id": notice.id,
            "subscription": notice.subscription,
            "stream": notice.stream,
            "event": notice.event,
            "published": notice.published,
            "matched": notice.at,
        }
    )
    # Output and event are JSON already: they are not parsed to be written again.
    output, body = (notice.output or "null").encode(), (notice.body or "null").encode()
    return head[:-1] + b',"output":' + output + b',"data":' + body + b"}"
