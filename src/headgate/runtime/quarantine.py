"""What to do when an engine raises: find by halving what it raises on, set that aside, and go on with the rest.

First the batch is halved. If both halves fail, the fault is more likely with a subscription: then the subscriptions are
halved, each half compiled apart; if these fail both, it is several events after all. What is left, down to one event and
one subscription, is a problem with the code `quarantined`. A subscription that was found so is matched apart from then
on, so that the next batch need not search.

The search has a budget, because to compile half of a million subscriptions takes seconds; what it cannot divide further
is set aside as it is. It says less then, but it ends.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from headgate.events import Decoded
from headgate.results import QUARANTINED, Problem, described
from headgate.runtime.book import CompiledBook, CompiledSegment, Part
from headgate.runtime.rows import shown

log = logging.getLogger("headgate.runtime")
Slots = NDArray[np.int64]
T = TypeVar("T")
Attempt = Callable[[Decoded, Part], T]
ATTEMPTS = 1024
STREAK = 3
COMPILED = 50_000
"""So many subscriptions may be compiled again in one search, beside twice those of the segment."""
MOST_APART = 16


def survive(book: CompiledBook, events: Decoded, part: Part, attempt: Attempt[T], error: Exception) -> Survived[T]:
    """What can be matched of events on which a segment raised, and what had to be set aside."""
    stream = events.columns.stream
    log.warning("an engine failed on stream %s; looking for the cause", stream, exc_info=error)
    slots = _living(part, stream)
    search = _Search(book, attempt, part, {slots.tobytes(): part}, compiled=COMPILED + 2 * len(slots))
    search.divide(events, slots, error)
    problems = [p for e, s, why in search.aside for p in _problems(e, part[0], s, why)]
    culprits = np.unique(np.concatenate([s for _, s, _ in search.aside])) if search.aside else slots[:0]
    everyone = _living(part)
    if not 0 < len(culprits) <= MOST_APART or len(culprits) == len(everyone):
        return Survived(search.done, problems, [part])
    rest = search.part(np.setdiff1d(everyone, culprits))
    return Survived(search.done, problems, [rest, *(search.part(slot.reshape(1)) for slot in culprits)])


@dataclass(frozen=True)
class Survived(Generic[T]):
    done: list[tuple[Part, Decoded, T]]
    problems: list[Problem]
    parts: list[Part]
    """The segment from now on: those it failed on have been parted from the others."""


def _living(part: Part, stream: str | None = None) -> Slots:
    """The slots of a segment that are not gone, on one stream or on all."""
    segment, dead, _ = part
    lists = [
        slots for of in (segment.filter_slots, segment.late_slots) for s, slots in of.items() if stream in (None, s)
    ]
    slots = np.sort(np.concatenate([np.zeros(0, np.int64), *lists]).astype(np.int64))
    return slots if dead is None else slots[~dead[slots]]


@dataclass
class _Search(Generic[T]):
    book: CompiledBook
    attempt: Attempt[T]
    whole: Part
    parts: dict[bytes, Part]
    """By their slots: those that were compiled."""
    attempts: int = ATTEMPTS
    compiled: int = COMPILED
    done: list[tuple[Part, Decoded, T]] = field(default_factory=list)
    aside: list[tuple[Decoded, Slots, Exception]] = field(default_factory=list)

    def divide(self, events: Decoded, slots: Slots, error: Exception, streak: int = 0) -> None:
        """These subscriptions raise on these events. `streak` says how often all halves of one event, or of one
        subscription, have failed: then it fails as a whole, and the search ends."""
        if len(events.rows) == len(slots) == 1 or self.attempts <= 0 or streak == STREAK:
            self.aside.append((events, slots, error))
            return
        failed = self._tried([(half, slots) for half in _halves(events)])
        divided = len(events.rows) > 1
        if len(slots) > 1 and self.compiled > 0 and len(failed) == 2 * divided:
            # Both halves of the events fail, so it is more likely a subscription.
            others = self._tried([(events, half) for half in np.array_split(slots, 2)])
            if len(others) < 2 or not divided:
                failed, streak = others, streak + (len(others) == 2)
        elif not divided:
            self.aside.append((events, slots, error))
            return
        else:
            streak = streak + 1 if len(slots) == 1 and len(failed) == 2 else 0
        for one in failed:
            self.divide(*one, streak)

    def part(self, slots: Slots) -> Part:
        key = slots.tobytes()
        if key not in self.parts:
            self.compiled -= len(slots)
            self.parts[key] = self.book.portion(self.whole[0], slots)
        return self.parts[key]

    def _tried(self, areas: list[tuple[Decoded, Slots]]) -> list[tuple[Decoded, Slots, Exception]]:
        """Those that raise; the others are done."""
        failed = []
        for events, slots in areas:
            self.attempts -= 1
            try:
                part = self.part(slots)
                self.done.append((part, events, self.attempt(events, part)))
            except Exception as error:  # noqa: BLE001 - this is what is looked for
                failed.append((events, slots, error))
        return failed


def _halves(events: Decoded) -> list[Decoded]:
    if len(events.rows) < 2:
        return []
    rows = np.array_split(np.arange(len(events.rows)), 2)
    return [Decoded(events.columns.take(half), (), events.rows[half]) for half in rows]


def _problems(events: Decoded, segment: CompiledSegment, slots: Slots, error: Exception) -> list[Problem]:
    names = tuple(map(str, segment.names.take(slots).to_pylist()))
    reason = f"set aside, because matching failed: {described(error)}"
    stream = events.columns.stream
    return [
        Problem(stream, int(number), QUARANTINED, reason, shown(events.columns, row), names)
        for row, number in enumerate(events.rows)
    ]


def culprits(
    count: int, attempt: Callable[[range], object], error: Exception, attempts: float = math.inf
) -> dict[int, Exception]:
    """Which of some items, taken in ranges of them, make an attempt raise; it raised on all of them together. After so
    many attempts a range that raises is blamed as a whole."""
    if count == 1:
        return {0: error}
    found: dict[int, Exception] = {}
    waiting = [(0, count)]
    while waiting:
        first, last = waiting.pop()
        middle = (first + last) // 2
        for some in (range(first, middle), range(middle, last)):
            try:
                attempts -= 1
                attempt(some)
            except Exception as why:  # noqa: BLE001 - this is what is looked for
                if attempts < 0:
                    found |= dict.fromkeys(some, why)
                elif len(some) == 1:
                    found[some[0]] = why
                else:
                    waiting.append((some.start, some.stop))
    return found
