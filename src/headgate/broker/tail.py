"""Following the notifications: one thread reads what matching has found and hands it out.

The log is read once for all who listen in this process. A connection that asks for what it missed, or that cannot keep
up, reads the store by itself until it is level again (see `hub`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence

from headgate.errors import HeadgateError
from headgate.store.database import Database
from headgate.store.logs import Logs, Notice

log = logging.getLogger("headgate.broker")
_PAGE = 5000
_QUIET_S, _BUSY_S = 0.05, 0.01


class Tail:
    """Calls `take` with pages of notifications, in their order, from those that come after the start on."""

    def __init__(self, database: Database, take: Callable[[Sequence[Notice]], None]) -> None:
        self._database = database
        self._logs = Logs(database)
        self._take = take
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="headgate-tail", daemon=True)
        self.seq = 0
        """The number of the last notification that was handed out."""

    def start(self) -> None:
        self.seq = self._logs.last_notification()
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._wake.set()
        self._thread.join(10)

    def wake(self) -> None:
        """There is something new; to look anyway costs little, to know saves the wait."""
        self._wake.set()

    def _follow(self) -> None:
        while not self._stop.is_set():
            self._wake.clear()
            try:
                page = self._logs.notices(self.seq, _PAGE)
                if page:
                    self._take(page)
                    self.seq = page[-1].seq
            except HeadgateError as problem:
                log.warning("notifications cannot be read now: %s", problem)
                page = []
                time.sleep(0.2)
            if len(page) < _PAGE:
                self._wake.wait(_BUSY_S if page else _QUIET_S)
        self._database.close()
