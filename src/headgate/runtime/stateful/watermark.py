"""How far time has come, as every bucket knows it.

Spark's own watermark needs a timestamp column, moves one batch late and drops what is behind it without a word. Here
each task of the stateless pass tells every bucket the latest time of each stream that it saw: after a batch all buckets
know the same, whatever the batch was made of, and a replayed batch gives the same again. Time is the least of what the
streams have reached, each less the delay it is allowed. TIMESTAMP and BIGINT are two times, which never meet in a
sequence: each has a least of its own, and streams of one do not hold up or make late those of the other.

A stream that is silent for longer than `idle` of processing time is left out of the least. Where all are silent, and
time is that of clocks (TIMESTAMP), it moves on with processing time, so that ABSENT is noticed when nothing comes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.errors import UsageError
from headgate.schema import Kind, Schema

_SECOND = 10**6
_UNITS = {
    "microsecond": 1,
    "millisecond": 1000,
    "second": _SECOND,
    "minute": 60 * _SECOND,
    "hour": 3600 * _SECOND,
    "day": 86400 * _SECOND,
}
_TEXT = re.compile(r"\s*(\d+)\s*([a-z]+?)s?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Timing:
    """The rules of a query. `delays` has every stream that carries time, with its delay in ticks."""

    delays: Mapping[str, int]
    idle: int | None = None
    """Milliseconds of processing time."""
    clocks: bool = False
    """Whether a tick is a microsecond, of all streams but those in `ticks`."""
    ahead: int | None = None
    """With it time never runs ahead of the clock, and an event that is further ahead than this, in ticks, is refused: a
    wrong clock makes no event of others late."""
    every: int | None = None
    """The delay of any stream, where the book of each batch says which ones carry time."""
    every_ticks: int = 0
    """The same for those whose ticks have no length."""
    ticks: frozenset[str] = frozenset()

    def kind(self, stream: str) -> Kind:
        return Kind.TIMESTAMP if self.clocks and stream not in self.ticks else Kind.BIGINT

    def limit(self, stream: str, now: int) -> int | None:
        """The latest time that an event may have."""
        return None if self.ahead is None or self.kind(stream) is Kind.BIGINT else 1000 * now + self.ahead

    def over(self, streams: Mapping[str, Schema]) -> Timing:
        """The rules of a batch whose sequences read these streams."""
        if self.every is None:
            return self
        ticks = frozenset(s for s, schema in streams.items() if schema.time_kind is Kind.BIGINT)
        delays = {s: self.every_ticks if s in ticks else self.every for s in streams}
        return replace(self, delays=delays, ticks=ticks)


@dataclass
class Time:
    """What a bucket knows of time: for each stream the latest that was seen and when (processing time) that was."""

    reached: dict[str, int] = field(default_factory=dict)
    heard: dict[str, int] = field(default_factory=dict)
    open: dict[Kind, int] = field(default_factory=dict)
    """Of each kind of time the first epoch that is not processed yet."""

    def latest(self, timing: Timing) -> dict[Kind, int]:
        """Of each kind the latest time of any event that this bucket was told of."""
        found: dict[Kind, int] = {}
        for stream, time in self.reached.items():
            kind = timing.kind(stream)
            found[kind] = max(time, found.get(kind, time))
        return found

    def tell(self, stream: str, latest: int, timing: Timing, now: int) -> None:
        limit = timing.limit(stream, now)
        latest = latest if limit is None else min(latest, limit)
        self.reached[stream] = max(latest, self.reached.get(stream, latest))
        self.heard[stream] = now

    def advance(self, timing: Timing, now: int) -> dict[Kind, int]:
        """Moves `open` on as far as it may go; gives it."""
        for stream in timing.delays:
            self.heard.setdefault(stream, now)
        for kind in {timing.kind(stream) for stream in timing.delays}:
            at = self._least([s for s in timing.delays if timing.kind(s) is kind], timing, now)
            if at is not None:
                self.open[kind] = max(at, self.open.get(kind, at))
        return dict(self.open)

    def _least(self, streams: Sequence[str], timing: Timing, now: int) -> int | None:
        """The least of the streams of one kind."""
        idle = [s for s in streams if timing.idle is not None and now - self.heard[s] >= timing.idle]
        awake = [s for s in streams if s not in idle]
        if any(s not in self.reached for s in awake):
            return None
        if awake:
            return min(self._by_clock(s, timing, now) - timing.delays[s] for s in awake)
        # Each stream is taken to have gone on with the clock since it was last heard of.
        known = [(s, 1000 * (now - self.heard[s])) for s in idle if s in self.reached]
        ends = [self._by_clock(s, timing, now, moved) - timing.delays[s] for s, moved in known]
        return max(ends, default=None)

    def _by_clock(self, stream: str, timing: Timing, now: int, moved: int = 0) -> int:
        if timing.kind(stream) is Kind.BIGINT:
            return self.reached[stream]
        at = self.reached[stream] + moved
        return at if timing.limit(stream, now) is None else min(at, 1000 * now)

    def idle(self, timing: Timing, now: int) -> list[str]:
        """The streams that are waited for no longer."""
        if timing.idle is None:
            return []
        return [s for s in timing.delays if now - self.heard.get(s, now) >= timing.idle]

    def saved(self) -> dict[str, Any]:
        return {"reached": self.reached, "heard": self.heard, "open": {k.value: at for k, at in self.open.items()}}

    @classmethod
    def of(cls, saved: Mapping[str, Any]) -> Time:
        found = saved["open"]
        if not isinstance(found, Mapping):
            # Written when all streams had one time.
            found = {} if found is None else dict.fromkeys((Kind.BIGINT.value, Kind.TIMESTAMP.value), found)
        return cls(dict(saved["reached"]), dict(saved["heard"]), {Kind(kind): at for kind, at in found.items()})


def ticks(given: str | int, clocks: bool, what: str) -> int:
    """A delay as ticks: a whole number, or a text such as "5 minutes" where a tick is a microsecond."""
    if isinstance(given, int) and not isinstance(given, bool):
        if given < 0:
            raise UsageError(f"{what} = {given} is negative")
        return given
    found = _TEXT.fullmatch(given) if isinstance(given, str) else None
    unit = None if found is None else _UNITS.get(found[2].lower())
    if found is None or unit is None:
        raise UsageError(f"{what} = {given!r} is no length of time", 'say "5 minutes", or a number of ticks')
    if not clocks:
        raise UsageError(
            f"{what} = {given!r}, but the TIME of these streams is BIGINT, whose ticks have no length",
            "say a number of ticks",
        )
    return int(found[1]) * unit


def milliseconds(given: str | float | None, what: str) -> int | None:
    """A length of processing time: a text, or seconds."""
    if given is None:
        return None
    if isinstance(given, int | float) and not isinstance(given, bool):
        made = round(1000 * given)
    else:
        made = ticks(given, True, what) // 1000
    if made <= 0:
        raise UsageError(f"{what} = {given!r}: it must be longer than that")
    return made


def lateness(by: int, clocks: bool) -> str:
    return f"{by / 10**6:g} s" if clocks else f"{by} tick{'s' * (by != 1)}"
