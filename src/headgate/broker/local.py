"""`--engine local`: matching in the broker's own process, in a thread.

For small installations, for brokers that mostly pass events on to others, and for trying things out: no Java, no second
process, and milliseconds from publishing to delivery; but one core, and none of Spark's machines. What a batch finds,
how far matching has come and the state of sequences are written in one transaction, so that a crash repeats nothing and
loses nothing.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from headgate.broker.local_sequences import LocalSequences, taken
from headgate.errors import HeadgateError
from headgate.plan import Plan
from headgate.results import QUARANTINED, described
from headgate.runtime.batches import BODY, EVENT, BatchMatcher, EventBatch
from headgate.runtime.quarantine import culprits
from headgate.store import Store
from headgate.store.logs import LoggedEvent, staged
from headgate.store.outbox import Outbox
from headgate.store.shared import SEQUENCES, Shared
from headgate.store.state import StoredState

log = logging.getLogger("headgate.broker")
QUERY = "local"
_MOST = 10_000
_WAIT_S = 0.2
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0


class LocalEngine:
    """One on a store: two would do the same work twice. `ready` is set while matching goes well."""

    def __init__(self, url: str, told: Callable[[dict[str, Any]], None]) -> None:
        self._url = url
        self._told = told
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headgate-matching", daemon=True)
        self.ready = threading.Event()
        self.trouble: str | None = None
        """Why matching does not go on, if it does not."""

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        self._thread.join(30)

    def wake(self) -> None:
        """There are new events."""
        self._wake.set()

    def _run(self) -> None:
        matching: _Matching | None = None
        wait = _FIRST_WAIT_S
        while not self._stop.is_set():
            self._wake.clear()
            try:
                if matching is None:
                    matching = _Matching(self._url)
                done = matching.step()
                for said in done:
                    self._told(said)
            except BaseException as problem:  # noqa: BLE001 - whatever it was, those who wait for their matches need this thread
                matching = self._failed(matching, problem)
                self._stop.wait(wait)
                wait = min(2 * wait, _LONGEST_WAIT_S)
                continue
            wait, self.trouble = _FIRST_WAIT_S, None
            self.ready.set()
            if not done:
                self._wake.wait(_WAIT_S)
        if matching is not None:
            matching.close()

    def _failed(self, matching: _Matching | None, problem: BaseException) -> _Matching | None:
        """What may go on with what is in memory: nothing, unless it is only the store that does not answer."""
        self.ready.clear()
        self.trouble = problem.message if isinstance(problem, HeadgateError) else described(problem)
        if isinstance(problem, HeadgateError):
            log.warning("matching waits: %s", problem)
        else:
            log.error("matching failed, and is tried again", exc_info=problem)
        if matching is not None and not isinstance(problem, HeadgateError):
            matching.close()
            return None
        if matching is not None:
            matching.sequences.forget()
        return matching


class _Matching:
    """The book of a store, and its sequences, as the matching thread has them."""

    def __init__(self, url: str) -> None:
        self._store = Store(url)
        self._shared = Shared(self._store.database)
        self._state = StoredState(self._store.database)
        self._replica = self._store.replica()
        self.sequences = LocalSequences(self._state)
        self._told_of: set[str] = set()
        """Sequences that were set aside, and whose owners know."""
        self._plan()

    def close(self) -> None:
        self._store.close()

    def step(self) -> list[dict[str, Any]]:
        """Match what is new, and what time has decided; what to tell of it."""
        since = self._shared.progress() or 0
        until = self._store.logs.until(since, _MOST)
        now = round(1000 * time.time())
        if until <= since and not self.sequences.due(now):
            return []
        events = self._store.logs.events(since, until)
        # Looked up after the events: whoever subscribed before one of them was published is in this version.
        newest = self._store.version
        if self._store.follow(self._replica, newest) is None:
            self._replica = self._store.replica(newest)
        plan = self._plan()
        batches = [self._batch(stream, part, plan) for stream, part in _by_stream(events).items()]
        tables = [matcher.matches(batch) for matcher, batch in batches]
        began = self._shared.sequences()
        if began is not None:
            self.sequences.follow(plan)
            tables += self.sequences.advance([_after(batch, began) for _, batch in batches], now)
        tables += [batch.problem_rows() for _, batch in batches if len(batch.problems)]
        rows = [row for table in tables for row in table.to_pylist()]
        self._write(rows, until, sequences=began is not None)
        errors = sum(row.get("error") is not None for row in rows)
        told = {"events": len(events), "matches": len(rows) - errors, "errors": errors, "version": newest}
        said: list[dict[str, Any]] = [{"event": "batch", "last": until, **told}] if events or rows else []
        return [*said, *([{"event": "sequences", "watermark": self.sequences.open}] if self.sequences.open else [])]

    def _batch(self, stream: str, events: Sequence[LoggedEvent], plan: Plan) -> tuple[BatchMatcher, EventBatch]:
        matcher = BatchMatcher(stream, plan)
        ids = pa.array([e.id for e in events], pa.int64())
        return matcher, matcher.decode(pa.table({EVENT: ids, BODY: pa.array([e.body for e in events], pa.string())}))

    def _write(self, rows: Iterable[dict[str, Any]], until: int, *, sequences: bool) -> None:
        with self._shared.writing():
            self._store.logs.notify(map(staged, rows))
            self._state.flush()
            self._shared.advance(QUERY, until)
            if sequences:
                self._shared.advance(SEQUENCES, until)
            for name in self.sequences.aside.keys() - self._told_of:
                self._alarm(name, self.sequences.aside[name])
        self._state.forget()
        self._told_of = set(self.sequences.aside)

    def _plan(self) -> Plan:
        """The plan of the book. What cannot be compiled is left out, and its owner told."""
        try:
            plan = self._replica.book.compile()
        except Exception as error:  # noqa: BLE001 - one text must not stop the others
            names = [name for name in self._replica.book if not self._replica.book[name].paused]
            bad = culprits(len(names), lambda some: self._replica.book.part(names[some.start : some.stop]), error)
            for i, why in bad.items():
                self._replica.book.remove(names[i])
                self._alarm(names[i], f"it cannot be compiled: {described(why)}")
            plan = self._replica.book.compile()
        plan.context.engine.run_apart()
        return plan

    def _alarm(self, name: str, reason: str) -> None:
        log.error("subscription %s is left out: %s", name, reason)
        Outbox(self._store.database).alarm(name, QUARANTINED, reason)


def _by_stream(events: Sequence[LoggedEvent]) -> dict[str, list[LoggedEvent]]:
    streams: dict[str, list[LoggedEvent]] = {}
    for event in events:
        streams.setdefault(event.stream, []).append(event)
    return streams


def _after(batch: EventBatch, event: int) -> EventBatch:
    """The events of a batch after the one with this id: those before the first sequence came are not for it."""
    later = np.flatnonzero(batch.ids.to_numpy()[batch.decoded.rows] > event)
    return batch if len(later) == len(batch.decoded.rows) else taken(batch, later)
