"""The sequences of `--engine local`: one bucket of the stateful step, with its state in the store.

Time goes by the rules of the broker's query on Spark. A sequence that comes while others run sees the events after the
latest one so far. What the bucket had to set aside because of a defect is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from headgate.broker.settings import AHEAD, IDLE, WATERMARK
from headgate.events import Decoded
from headgate.plan import Plan
from headgate.plan.sequence_book import SequenceBook
from headgate.runtime.batches import EventBatch
from headgate.runtime.stateful.buckets import Bucket
from headgate.runtime.stateful.packing import TICK, Sent
from headgate.runtime.stateful.route import Tally, to_buckets
from headgate.runtime.stateful.state_storage import HEAD
from headgate.runtime.stateful.watermark import Timing, milliseconds, ticks
from headgate.schema import Kind
from headgate.store.state import StoredState

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

    @property
    def open(self) -> int:
        """The first moment that is not decided yet, in microseconds."""
        return self._bucket.time.open.get(Kind.TIMESTAMP, 0) if self._bucket is not None else 0

    @property
    def aside(self) -> Mapping[str, str]:
        """Subscriptions that are left out, and why."""
        return self._bucket.aside if self._bucket is not None else {}

    def follow(self, plan: Plan) -> None:
        """Take up the sequences of a plan."""
        if self._plan is None or plan.sequences is not self._plan.sequences:
            self._plan = plan
            self._book = None if plan.sequences is None else SequenceBook.of(plan, 1)

    def due(self, now: int) -> bool:
        """Whether time alone may have decided something."""
        return now >= self._next

    def forget(self) -> None:
        """What is in memory may be ahead of the store."""
        self._state.forget()
        self._bucket, self._next = None, 0

    def advance(self, batches: Sequence[EventBatch], now: int) -> list[pa.Table]:
        """What the sequences make of these events, or of time alone. The state is written by `flush` of the state."""
        book = self._book
        if self._bucket is None:
            if book is None and self._state.get(HEAD) is None:
                self._next = math.inf
                return []
            self._bucket = Bucket.load(0, 1, self._state)
        bucket = self._bucket
        timing = TIMING if book is None else TIMING.over(book.timed)
        tables = bucket.advance(book, _sent(batches, book), timing, self._state, now).tables
        bucket.write_head(self._state)
        self._next = now + _LOOK_MS if bucket.groups else math.inf
        return tables


def _sent(batches: Sequence[EventBatch], book: SequenceBook | None) -> Iterator[Sent]:
    if book is None:
        return
    tally = Tally()
    for batch in batches:
        yield from to_buckets(batch, book, tally)
    for stream, latest in tally.latest.items():
        yield Sent(TICK, stream, latest=latest)


def taken(batch: EventBatch, rows: Any) -> EventBatch:
    """Some events of a batch, whose problems are those of the batch."""
    decoded = batch.decoded
    return replace(batch, decoded=Decoded(decoded.columns.take(rows), (), decoded.rows[rows]))
