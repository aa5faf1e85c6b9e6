"""At most one notification for a key and an interval, where a subscriber asks for it.

The key is a path into what the subscription gives out, or into the event; notifications without it count as one key.
The time of a notification is that at which it was matched, so that a delivery that is behind lets through what it would
have let through in time.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from headgate.store.logs import Notice

_MOST = 100_000


@dataclass(frozen=True, slots=True)
class Interval:
    """What a subscriber asks for: at most one notification for each value at a path in so many seconds."""

    path: str
    seconds: float

    @classmethod
    def of(cls, delivery: Mapping[str, Any]) -> Interval | None:
        seconds = delivery.get("interval")
        return None if seconds is None else cls(str(delivery.get("key") or ""), float(seconds))

    def key_of(self, notice: Notice) -> str:
        return value_of(notice, self.path)

    def passes(self, notice: Notice, last: float | None) -> bool:
        """Whether a notification passes after the `last` one of its key; one from before it says that the clock was set
        back, and passes."""
        return last is None or not 0 <= notice.at - last < self.seconds


class Throttle:
    """In memory, for a connection; deliveries that outlive the process keep their times in the store.

    `said` tells when the last notification of a key went out before this throttle was made.
    """

    def __init__(self, rule: Interval, said: Callable[[str], float | None] = lambda key: None) -> None:
        self._rule = rule
        self._said = said
        self.times: OrderedDict[str, float] = OrderedDict()

    @classmethod
    def of(cls, delivery: Mapping[str, Any]) -> Throttle | None:
        rule = Interval.of(delivery)
        return None if rule is None else cls(rule)

    def passes(self, notice: Notice) -> bool:
        key = self._rule.key_of(notice)
        last = self.times.get(key)
        if not self._rule.passes(notice, self._said(key) if last is None else last):
            return False
        self.times[key] = notice.at
        self.times.move_to_end(key)
        if len(self.times) > _MOST:
            self.times.popitem(last=False)
        return True


class MinuteCounts:
    """How many notifications each subscription has in the minute in which their events were published. By that and not
    by their arrival: what arrives at once after matching was away was not published at once."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}

    def add(self, notices: Sequence[Notice]) -> dict[str, int]:
        """The highest counts of those that these belong to."""
        highest: dict[str, int] = {}
        for notice in notices:
            name, minute = notice.subscription, int((notice.published or notice.at) // 60)
            began, count = self._counts.get(name, (minute, 0))
            count = count + 1 if began == minute else 1
            self._counts[name] = (minute, count)
            highest[name] = max(count, highest.get(name, 0))
        if len(self._counts) > _MOST:
            self._counts = dict.fromkeys(highest, (0, 0))
        return highest

    def forget(self, name: str) -> None:
        self._counts.pop(name, None)


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
