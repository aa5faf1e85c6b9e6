"""`--engine local`: matching in the broker's own process, in a thread.

For small installations, for brokers that mostly pass events on to others, and for trying things out: no Java, no second
process, and milliseconds from publishing to delivery; but one core, and none of Spark's machines. What a batch finds and
how far matching has come are written in one transaction, so that a crash repeats nothing and loses nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from headgate.errors import HeadgateError
from headgate.plan import Plan
from headgate.spark.frame import BODY, EVENT
from headgate.spark.source import staged
from headgate.spark.worker import ERROR, Events, Prepared
from headgate.store import Store
from headgate.store.book import apply
from headgate.store.logs import LoggedEvent, Logs
from headgate.store.shared import Shared
from headgate.subscriptions import Subscriptions

log = logging.getLogger("headgate.broker")
QUERY = "local"
_MOST = 10_000
_WAIT_S = 0.2


class LocalEngine:
    """One on a store: two would do the same work twice."""

    def __init__(self, url: str, told: Callable[[dict[str, Any]], None]) -> None:
        self._url = url
        self._told = told
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headgate-matching", daemon=True)
        self.ready = threading.Event()
        self._version = 0
        self._book = Subscriptions()

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
        store: Store | None = None
        while not self._stop.is_set():
            self._wake.clear()
            try:
                if store is None:
                    store = Store(self._url)
                    self._version = store.version
                    self._book = store.book(self._version)
                    self._book.compile()
                    self.ready.set()
                done = self._step(store)
            except HeadgateError as problem:
                log.warning("matching waits: %s", problem)
                done = 0
                self._stop.wait(0.5)
            if not done:
                self._wake.wait(_WAIT_S)
        if store is not None:
            store.close()

    def _step(self, store: Store) -> int:
        """Match what is new; how many events it was."""
        shared = Shared(store.database)
        since = shared.progress() or 0
        until = store.logs.until(since, _MOST)
        if until <= since:
            return 0
        events = store.logs.events(since, until)
        # Looked up after the events: whoever subscribed before one of them was published is in this version.
        self._follow(store, store.version)
        plan = self._book.compile()
        rows = [row for part in found(events, plan) for row in part.to_pylist()]
        self._write(store.logs, shared, until, rows)
        errors = sum(row["error"] is not None for row in rows)
        told = {"events": len(events), "matches": len(rows) - errors, "errors": errors, "version": self._version}
        self._told({"event": "batch", "last": until, **told})
        return len(events)

    def _write(self, logs: Logs, shared: Shared, until: int, rows: list[dict[str, Any]]) -> None:
        with shared.writing():
            if rows:
                logs.notify(map(staged, rows))
            shared.advance(QUERY, until)

    def _follow(self, store: Store, version: int) -> None:
        for change in store.changes(self._version, version):
            try:
                apply(self._book, change)
            except HeadgateError as problem:
                log.warning("subscription %s is left out: %s", change.name, problem)
        self._version = version


def found(events: Sequence[LoggedEvent], plan: Plan) -> Iterator[pa.Table]:
    """The matches and errors of events; a table for each stream, as a worker of Spark makes it."""
    streams: dict[str, list[LoggedEvent]] = {}
    for event in events:
        streams.setdefault(event.stream, []).append(event)
    for stream, part in streams.items():
        prepared = Prepared(stream, [plan], None)
        ids = pa.array([e.id for e in part], pa.int64())
        decoded = Events.of(pa.table({EVENT: ids, BODY: pa.array([e.body for e in part], pa.string())}), prepared)
        matches = prepared.matches(decoded)
        matches = matches.append_column("error", pa.nulls(len(matches), ERROR))
        yield matches
        if decoded.rejected:
            yield decoded.error_rows(matches.schema)
