"""The sequences of `--engine local`: one bucket of the stateful step, with its state in the store.

Time goes by the rules of the broker's query on Spark. A sequence that comes while others run sees the events after the
latest one so far. If a step raises, it is tried anew from the state in the store, without the subscriptions that raise
by themselves; if all do, without the events that make them. What is left out is told.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.broker.settings import AHEAD, IDLE, WATERMARK
from headgate.events import Decoded
from headgate.language.tokens import tokenise
from headgate.plan import Entry, Plan
from headgate.plan.segment import compile_segment
from headgate.plan.sequence_book import SequenceBook
from headgate.results import QUARANTINED, Problem, described
from headgate.runtime.batches import EventBatch
from headgate.runtime.quarantine import culprits
from headgate.runtime.rows import shown
from headgate.runtime.stateful.buckets import Bucket
from headgate.runtime.stateful.packing import TICK, Sent
from headgate.runtime.stateful.route import Tally, to_buckets
from headgate.runtime.stateful.watermark import Timing, milliseconds, ticks
from headgate.store.state import StoredState

log = logging.getLogger("headgate.broker")
TIMING = Timing({}, milliseconds(IDLE, "idle"), True, ticks(AHEAD, True, "ahead"), ticks(WATERMARK, True, "watermark"))
_LOOK_MS = 1000


class LocalSequences:
    def __init__(self, state: StoredState) -> None:
        self._state = state
        self._plan: Plan | None = None
        self._book: SequenceBook | None = None
        self._bucket: Bucket | None = None
        self._next: float = 0
        """When to look again although nothing came, in milliseconds."""
        self.aside: dict[str, str] = {}
        """Subscriptions that are left out, and why."""

    @property
    def open(self) -> int:
        """The first moment that is not decided yet, in microseconds."""
        return (self._bucket.time.open or 0) if self._bucket is not None else 0

    def follow(self, plan: Plan) -> None:
        """Take up the sequences of a plan."""
        if self._plan is not None and plan.sequences is self._plan.sequences:
            return
        self._plan = plan
        entries = _sequences(plan)
        self.aside = {name: why for name, why in self.aside.items() if name in entries}
        self._book = _book(plan, {name: entry for name, entry in entries.items() if name not in self.aside})

    def due(self, now: int) -> bool:
        """Whether time alone may have decided something."""
        return now >= self._next

    def forget(self) -> None:
        """What is in memory may be ahead of the store."""
        self._state.forget()
        self._bucket, self._next = None, 0

    def advance(self, batches: Sequence[EventBatch], now: int) -> list[pa.Table]:
        """What the sequences make of these events, or of time alone. The state is written by `flush` of the state."""
        try:
            return self._step(batches, self._book, now)
        except Exception as error:
            log.warning("sequences failed; looking for the cause", exc_info=error)
            rest = self._without_culprits(batches, now, error)
            self.forget()
            return self._step(rest, self._book, now)

    def _step(self, batches: Sequence[EventBatch], book: SequenceBook | None, now: int) -> list[pa.Table]:
        if self._bucket is None:
            if book is None and self._state.head() is None:
                self._next = math.inf
                return []
            self._bucket = Bucket.load(0, 1, self._state)
        bucket = self._bucket
        if book is None:
            bucket.pause([], TIMING, self._state, now)
            tables: list[pa.Table] = []
        else:
            timing = TIMING.over(book.timed, book.clocks)
            tables = bucket.advance(book, list(_sent(batches, book)), timing, self._state, now).tables
        bucket.write_head(self._state)
        self._next = now + _LOOK_MS if bucket.groups else math.inf
        return tables

    def _without_culprits(self, batches: Sequence[EventBatch], now: int, error: Exception) -> Sequence[EventBatch]:
        """Leaves out the subscriptions, or else the events, that make a step raise; gives the events that are left."""
        plan, book = self._plan, self._book
        assert plan is not None and book is not None, "only a book makes a step raise"
        entries = {name: entry for name, entry in _sequences(plan).items() if name not in self.aside}
        names = list(entries)

        def attempt(batches: Sequence[EventBatch], book: SequenceBook | None) -> None:
            self.forget()
            self._step(batches, book, now)

        def some_of(some: range) -> SequenceBook | None:
            """Some subscriptions, and whatever others may read."""
            chosen = {names[i] for i in some}
            return _book(plan, {n: e for n, e in entries.items() if n in chosen or "PUBLISH" in tokenise(e.text).kinds})

        bad = culprits(len(names), lambda some: attempt(batches, some_of(some)), error)
        places = [(b, row) for b in batches for row in range(len(b.decoded.rows))]
        if len(bad) < len(names) or not places:
            self.aside |= {names[i]: f"set aside, because matching failed: {described(why)}" for i, why in bad.items()}
            self._book = _book(plan, {n: e for n, e in entries.items() if n not in self.aside})
            return batches
        bad = culprits(len(places), lambda some: attempt(_chosen(places, some), book), error)
        for i, why in bad.items():
            batch, row = places[i]
            reason = f"set aside, because matching failed: {described(why)}"
            text = shown(batch.decoded.columns, row)
            batch.problems.add(
                [Problem(batch.stream, int(batch.decoded.rows[row]), QUARANTINED, reason, text, tuple(names))]
            )
        return _chosen(places, [i for i in range(len(places)) if i not in bad])


def _sent(batches: Sequence[EventBatch], book: SequenceBook) -> Iterator[Sent]:
    tally = Tally()
    for batch in batches:
        yield from (sent for _, sent in to_buckets(batch, book, tally))
    for stream, latest in tally.latest.items():
        yield Sent(TICK, stream, latest=latest)


def _chosen(places: Sequence[tuple[EventBatch, int]], some: Collection[int]) -> list[EventBatch]:
    """Some of the events."""
    rows: dict[int, list[int]] = {}
    batches: dict[int, EventBatch] = {}
    for i in some:
        batch, row = places[i]
        batches[id(batch)] = batch
        rows.setdefault(id(batch), []).append(row)
    return [taken(batch, np.array(rows[key], np.int64)) for key, batch in batches.items()]


def taken(batch: EventBatch, rows: Any) -> EventBatch:
    """Some events of a batch, whose problems are those of the batch."""
    decoded = batch.decoded
    return replace(batch, decoded=Decoded(decoded.columns.take(rows), (), decoded.rows[rows]))


def _sequences(plan: Plan) -> dict[str, Entry]:
    return {
        segment.names[slot].as_py(): segment.entry(slot)
        for segment, dead, _ in plan.parts()
        for slot in segment.sequence_slots.tolist()
        if dead is None or not dead[slot]
    }


def _book(plan: Plan, entries: Mapping[str, Entry]) -> SequenceBook | None:
    """Some of the sequences of a plan, or all of them, compiled for one bucket."""
    if not entries:
        return None
    if entries.keys() == _sequences(plan).keys():
        return SequenceBook.of(plan, 1)
    segment = compile_segment(entries, plan.catalogue.streams)
    return SequenceBook.of(Plan(plan.catalogue, (segment,), (None,), plan.context), 1)
