"""The broker's numbers: counters, gauges and delays, as Prometheus text, and the last minutes for the page's plots."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from headgate.store.logs import Notice

BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
"""Seconds."""
_HISTORY = 600
_HELP = {
    "published_events_total": "Events taken into the log.",
    "matched_events_total": "Events that matching is done with, as it told.",
    "event_errors_total": "Events, or what operators made of them, that matching could not use, by code.",
    "notifications_total": "Notifications that this broker has seen come out of matching.",
    "delivered_total": "Notifications given to subscribers, by the kind of delivery.",
    "delivery_failures_total": "Attempts to deliver that failed, by the kind of delivery.",
    "dead_letters_total": "Notifications that were given up.",
    "capped_total": "Subscriptions that were paused because they matched too much.",
    "refused_total": "Requests that were refused, by status.",
    "loop_failures_total": "Rounds of the broker's own loops that failed, by loop.",
    "matching_restarts_total": "Times that the matching process ended and was started again.",
    "forwarded_total": "Events sent to other brokers.",
}


@dataclass
class Delays:
    """A histogram, and the largest values of the current second for the page."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BOUNDS) + 1))
    total: float = 0.0

    def add(self, seconds: float) -> None:
        for i, bound in enumerate(BOUNDS):
            if seconds <= bound:
                self.counts[i] += 1
                break
        else:
            self.counts[-1] += 1
        self.total += seconds

    def quantile(self, q: float) -> float | None:
        """An upper bound of a quantile, by the buckets."""
        n = sum(self.counts)
        seen = 0
        for i, count in enumerate(self.counts):
            seen += count
            if n and seen >= q * n:
                return BOUNDS[i] if i < len(BOUNDS) else float("inf")
        return None


class Numbers:
    """Safe for threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: Counter[tuple[str, str]] = Counter()
        self._delays: dict[tuple[str, str], Delays] = {}
        self._second: list[float] = []
        self._history: deque[dict[str, float]] = deque(maxlen=_HISTORY)
        self._before: dict[str, int] = {}
        self.gauges: dict[str, float] = {}

    def count(self, name: str, amount: int = 1, label: str = "") -> None:
        with self._lock:
            self._counts[name, label] += amount

    def value(self, name: str) -> int:
        with self._lock:
            return sum(v for (n, _), v in self._counts.items() if n == name)

    def delay(self, kind: str, family: str, seconds: float) -> None:
        """The time from publishing to delivery, by the kind of delivery; sequences wait for their watermark besides."""
        with self._lock:
            self._delays.setdefault((kind, family), Delays()).add(seconds)
            if family == "stateless":
                self._second.append(seconds)

    def delivered(self, kind: str, notices: Sequence[Notice], family: Callable[[str], str]) -> None:
        """Notifications that have just been delivered; `family` is that of a subscription."""
        now = time.time()
        self.count("delivered_total", len(notices), kind)
        for notice in notices:
            if notice.published is not None:
                self.delay(kind, family(notice.subscription), now - notice.published)

    def tick(self) -> None:
        """Once a second: one point of the plots."""
        with self._lock:
            now = {n: sum(v for (m, _), v in self._counts.items() if m == n) for n in _PLOTTED}
            delays, self._second = sorted(self._second), []
            point = {name: float(now[name] - self._before.get(name, 0)) for name in _PLOTTED}
            self._before = now
            point["at"] = round(time.time(), 3)
            if delays:
                point["p50"] = delays[len(delays) // 2]
                point["p99"] = delays[min(len(delays) - 1, int(len(delays) * 0.99))]
            self._history.append(point)

    def history(self) -> list[dict[str, float]]:
        with self._lock:
            return list(self._history)

    def summary(self) -> dict[str, dict[str, float | None]]:
        with self._lock:
            return {
                f"{kind} {family}": {"count": sum(d.counts), "p50": d.quantile(0.5), "p99": d.quantile(0.99)}
                for (kind, family), d in self._delays.items()
            }

    def text(self, gauges: Mapping[str, float]) -> str:
        """The numbers in the text format of Prometheus."""
        lines = []
        with self._lock:
            for name, said in _HELP.items():
                lines += [f"# HELP headgate_broker_{name} {said}", f"# TYPE headgate_broker_{name} counter"]
                found = {label: v for (n, label), v in self._counts.items() if n == name} or {"": 0}
                for label, value in sorted(found.items()):
                    shown = f'{{kind="{label}"}}' if label else ""
                    lines.append(f"headgate_broker_{name}{shown} {value}")
            for name, level in {**self.gauges, **gauges}.items():
                lines += [f"# TYPE headgate_broker_{name} gauge", f"headgate_broker_{name} {level}"]
            name = "headgate_broker_delay_seconds"
            lines += [f"# HELP {name} From publishing to delivery.", f"# TYPE {name} histogram"]
            for (kind, family), delays in sorted(self._delays.items()):
                label, seen = f'delivery="{kind}",family="{family}"', 0
                for bound, count in zip((*BOUNDS, "+Inf"), delays.counts, strict=True):
                    seen += count
                    lines.append(f'{name}_bucket{{{label},le="{bound}"}} {seen}')
                lines += [f"{name}_sum{{{label}}} {delays.total}", f"{name}_count{{{label}}} {seen}"]
        return "\n".join(lines) + "\n"


_PLOTTED = ("published_events_total", "notifications_total", "delivered_total")
