"""The stateful step without Spark: the same routing and the same buckets, in one process, cut as a test says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from tests.sequences.book import Row, columns_of

import headgate as hg
from headgate.plan.sequence_book import SequenceBook
from headgate.runtime.stateful.buckets import Bucket
from headgate.runtime.stateful.packing import TICK, Sent
from headgate.runtime.stateful.rebucket import redealt
from headgate.runtime.stateful.route import dated, parcels
from headgate.runtime.stateful.state_storage import InMemory
from headgate.runtime.stateful.watermark import Timing
from headgate.schema import Schema

Batch = Mapping[str, Sequence[tuple[str, Row]]]
"""By stream: events with their ids."""
Match = tuple[str, str, str, str]


def book_of(
    texts: Mapping[str, str], schemas: Sequence[Schema], missing: str = "null", operators: Sequence[Any] = ()
) -> hg.Subscriptions:
    subs = hg.Subscriptions(operators)
    for schema in schemas:
        subs.stream(schema.stream, schema)
    for name, text in texts.items():
        subs.add(name, text, missing=missing)
    return subs


def in_process(subs: hg.Subscriptions, events: Batch, until: int) -> set[Match]:
    """What a session in this process finds below a time, with the same ids of events."""
    index = subs.compile().sequences
    assert index is not None
    ids = {s: [i for i, _ in rows] for s, rows in events.items()}
    batches = []
    for stream, rows in events.items():
        made = columns_of(subs.streams[stream], [r for _, r in rows])
        batches.append(type(made)(stream, made.rows, made.columns, identity=pa.array(ids[stream], pa.string())))
    table = index.session().feed(batches, until).to_arrow()
    return {(r["id"], r["subscription"], ids[r["stream"]][r["event"]], r["output"]) for r in table.to_pylist()}


@dataclass
class Pipeline:
    subs: hg.Subscriptions
    timing: Timing
    buckets: int = 3
    kept: list[InMemory] = field(default_factory=list)
    found: list[Match] = field(default_factory=list)
    errors: list[tuple[str, str]] = field(default_factory=list)
    activated: dict[str, int] = field(default_factory=dict)
    sent: int = 0
    _live: list[Bucket] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.kept = self.kept or [InMemory() for _ in range(self.buckets)]
        self.forget()

    def forget(self) -> None:
        """As a process that has just started: all is read from the state."""
        self._live = [Bucket.load(n, self.buckets, kept) for n, kept in enumerate(self.kept)]

    def rebucket(self, buckets: int) -> None:
        """Deals the state out anew, as the tool does."""
        book = SequenceBook.of(self.subs.compile(), buckets)
        made = redealt(dict(enumerate(self.kept)), book, self.buckets, 1)
        self.buckets, self.kept = buckets, [made[n] for n in range(buckets)]
        self.forget()

    def batch(self, events: Batch, now: int = -1, *, final: bool = False) -> None:
        book = SequenceBook.of(self.subs.compile(), self.buckets)
        rows: list[list[Sent]] = [[] for _ in range(self.buckets)]
        for stream, given in events.items():
            if not given:
                continue
            schema = self.subs.streams[stream]
            usable, problems = dated(columns_of(schema, [r for _, r in given]), schema.time)
            ids = pa.array([given[int(i)][0] for i in usable.rows], pa.string())
            self.errors += [(given[row][0], reason) for row, reason in problems]
            for parcel in parcels(book, usable, ids):
                rows[parcel.bucket].append(parcel)
                self.sent += parcel.events
            if len(usable.t1):
                for one in rows:
                    one.append(Sent(TICK, stream, latest=int(usable.t1.max())))
        for bucket, kept, sent in zip(self._live, self.kept, rows, strict=True):
            outcome = bucket.advance(book, sent, self.timing, kept, now, final=final)
            bucket.write_head(kept)
            self.activated.update(outcome.activated)
            for table in outcome.tables:
                for r in table.to_pylist():
                    if r["error"] is not None:
                        self.errors.append((r["event"], r["error"]["reason"]))
                    else:
                        self.found.append((r["id"], r["subscription"], r["event"], r["output"]))

    @property
    def matches(self) -> set[Match]:
        assert len(set(self.found)) == len(self.found), "a match came twice"
        return set(self.found)
