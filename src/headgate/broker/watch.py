"""The loops of a broker, watched: each says after every round how it went, and readiness tells of those that do not go on.

A loop that fails goes on with its next round; whatever it was, others wait for what the loop does.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from headgate.broker.metrics import Numbers
from headgate.errors import HeadgateError
from headgate.results import described

log = logging.getLogger("headgate.broker")
SILENT_S = 60.0
"""No round of a loop takes longer."""


class Watch:
    """Safe for threads."""

    def __init__(self, numbers: Numbers, now: Callable[[], float] = time.monotonic) -> None:
        self._numbers = numbers
        self._now = now
        self._lock = threading.Lock()
        self._heard: dict[str, float] = {}
        self._failing: dict[str, str] = {}

    def well(self, loop: str) -> None:
        with self._lock:
            self._heard[loop] = self._now()
            self._failing.pop(loop, None)

    def mend(self, loop: str) -> None:
        """It goes on. Unlike `well`, this promises no next round: a delivery that has nothing to do ends."""
        with self._lock:
            self._heard.pop(loop, None)
            self._failing.pop(loop, None)

    def failed(self, loop: str, problem: BaseException) -> None:
        known = isinstance(problem, HeadgateError)
        log.log(
            logging.WARNING if known else logging.ERROR, "%s: %s", loop, problem, exc_info=None if known else problem
        )
        self._numbers.count("loop_failures_total", 1, loop)
        with self._lock:
            self._heard[loop] = self._now()
            self._failing[loop] = described(problem)

    def trouble(self) -> dict[str, str]:
        """The loops that do not go on, and why."""
        with self._lock:
            now = self._now()
            silent = {
                name: f"nothing was heard of it for {now - at:.0f} s"
                for name, at in self._heard.items()
                if now - at > 2 * SILENT_S
            }
            return {**silent, **self._failing}
