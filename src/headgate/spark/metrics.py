"""What a running query does, in numbers: for a person, for a log, and for Prometheus as text.

The counts come with the rows of a batch, and cost no pass of their own: a sink may write in a way that never reports what
it wrote. The lag comes from the progress that Spark reports to its listeners, which also has, under the name of the query,
how many events `observe` saw.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener

log = logging.getLogger("headgate.spark")

_HELP = {
    "events_total": ("counter", "Events read"),
    "matches_total": ("counter", "Matches found"),
    "errors_total": ("counter", "Events that could not be used"),
    "batches_total": ("counter", "Micro-batches completed"),
    "events_per_second": ("gauge", "Events per second in the last micro-batch"),
    "matches_per_second": ("gauge", "Matches per second in the last micro-batch"),
    "batch_seconds": ("gauge", "Duration of the last micro-batch"),
    "batch_id": ("gauge", "Number of the last micro-batch"),
    "version": ("gauge", "Version of the book that the last micro-batch used"),
    "subscriptions": ("gauge", "Subscriptions in the book of the last micro-batch"),
    "plan_bytes": ("gauge", "Size of the plans of the last micro-batch"),
    "sequence_events_total": ("counter", "Events sent on to sequences, once for each group that wants one"),
    "bytes_saved_total": ("counter", "Bytes of events that were read and not sent on to sequences"),
    "watermark": ("gauge", "Time up to which sequences are decided, in ticks"),
    "idle_streams": ("gauge", "Streams that time no longer waits for"),
    "lag": ("gauge", "Events that the source has and the query has not read, where the source says so"),
}


@dataclass(frozen=True)
class Numbers:
    """One moment of a query."""

    events_total: int = 0
    matches_total: int = 0
    errors_total: int = 0
    batches_total: int = 0
    events_per_second: float = 0.0
    matches_per_second: float = 0.0
    batch_seconds: float = 0.0
    batch_id: int = -1
    version: int = 0
    subscriptions: int = 0
    plan_bytes: int = 0
    sequence_events_total: int = 0
    bytes_saved_total: int = 0
    watermark: int = 0
    idle_streams: int = 0
    lag: float = 0.0


@dataclass
class Metrics:
    """The numbers of one query; written by its batches and its listener, read by anyone."""

    query: str
    file: Path | None = None
    """Where the Prometheus text is written after each batch, whole or not at all: for a textfile collector."""
    numbers: Numbers = field(default_factory=Numbers)
    activated: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The sequences that came while the query ran: their first batch, and the time after which they see events."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __reduce__(self) -> tuple[type[Metrics], tuple[str, Path | None, Numbers]]:
        return type(self), (self.query, self.file, self.numbers)

    def batch(self, batch: int, seconds: float, events: int, matches: int, errors: int, **facts: int) -> None:
        """One micro-batch is done."""
        with self._lock:
            now = self.numbers
            self.numbers = replace(
                now,
                events_total=now.events_total + events,
                matches_total=now.matches_total + matches,
                errors_total=now.errors_total + errors,
                batches_total=now.batches_total + 1,
                events_per_second=events / seconds if seconds else 0.0,
                matches_per_second=matches / seconds if seconds else 0.0,
                batch_seconds=seconds,
                batch_id=batch,
                **facts,
            )
        log.info("%s", self)
        self._write()

    def lag(self, events: float) -> None:
        with self._lock:
            self.numbers = replace(self.numbers, lag=events)
        self._write()

    def __str__(self) -> str:
        n = self.numbers
        return (
            f"{self.query}: batch {n.batch_id}, version {n.version}, {n.subscriptions:,} subscriptions, "
            f"{n.events_total:,} events ({n.events_per_second:,.0f}/s), {n.matches_total:,} matches "
            f"({n.matches_per_second:,.0f}/s), {n.errors_total:,} errors, lag {n.lag:,.0f}"
        )

    def text(self) -> str:
        """The numbers in the text format of Prometheus."""
        label = json.dumps(self.query)
        lines = []
        for name, (kind, said) in _HELP.items():
            value = getattr(self.numbers, name)
            lines += [
                f"# HELP headgate_{name} {said}",
                f"# TYPE headgate_{name} {kind}",
                f"headgate_{name}{{query={label}}} {value}",
            ]
        return "\n".join(lines) + "\n"

    def _write(self) -> None:
        if self.file is None:
            return
        fresh = self.file.with_name(f".{self.file.name}.{os.getpid()}")
        fresh.write_text(self.text(), "utf-8")
        fresh.replace(self.file)

    def serve(self, port: int, host: str = "127.0.0.1") -> ThreadingHTTPServer:
        """Offer the text at /metrics until the server is shut down; port 0 takes a free one."""
        metrics = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if self.path != "/metrics":
                    self.send_error(404)
                    return
                body = metrics.text().encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                log.debug(format, *args)

        server = ThreadingHTTPServer((host, port), Handler)
        threading.Thread(target=server.serve_forever, name="headgate-metrics", daemon=True).start()
        return server


class Listener(StreamingQueryListener):
    """Hears of the progress of one query and keeps its lag."""

    def __init__(self, name: str, metrics: Metrics) -> None:
        self._name = name
        self._metrics = metrics

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - the names are Spark's
        if event.name == self._name:
            log.info("query %s started", self._name)

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802 - as above
        if event.progress.name == self._name:
            self._metrics.lag(sum(_behind(source) for source in event.progress.sources))

    def onQueryIdle(self, _event: Any) -> None:  # noqa: N802 - as above
        return None

    def onQueryTerminated(self, _event: Any) -> None:  # noqa: N802 - as above
        return None


def _behind(source: Any) -> float:
    """How many events a source is ahead of what was read: the difference of its numbered offsets."""
    try:
        return max(0.0, _sum(json.loads(source.latestOffset)) - _sum(json.loads(source.endOffset)))
    except (TypeError, ValueError):
        return 0.0


def _sum(offset: Any) -> float:
    if isinstance(offset, dict):
        return sum(map(_sum, offset.values()))
    return float(offset)
