"""At most one notification for a key and an interval, where a subscriber asks for it.

The key is a path into what the subscription gives out, or into the event; notifications without it count as one key.
The time of a notification is that at which it was matched, so that a delivery that is behind lets through what it would
have let through in time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import orjson

from headgate.store.logs import Notice

_MOST = 100_000


class Throttle:
    """In memory, for a connection; deliveries that outlive the process keep their times in the store."""

    def __init__(self, key: str, interval: float) -> None:
        self.key = key
        self.interval = interval
        self._said: OrderedDict[str, float] = OrderedDict()

    @classmethod
    def of(cls, delivery: Mapping[str, Any]) -> Throttle | None:
        interval = delivery.get("interval")
        return None if interval is None else cls(str(delivery.get("key") or ""), float(interval))

    def passes(self, notice: Notice) -> bool:
        key = value_of(notice, self.key)
        last = self._said.get(key)
        if last is not None and notice.at < last + self.interval:
            return False
        self._said[key] = notice.at
        self._said.move_to_end(key)
        if len(self._said) > _MOST:
            self._said.popitem(last=False)
        return True


def value_of(notice: Notice, path: str) -> str:
    """The value at a path of the output or the event, as text."""
    if not path:
        return ""
    for source in (notice.output, notice.body):
        found: Any = _parsed(source)
        for part in path.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        if found is not None:
            return orjson.dumps(found, default=str).decode()
    return ""


def _parsed(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return orjson.loads(text)
    except ValueError:
        return None
