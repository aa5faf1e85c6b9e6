"""Following the notifications: one thread reads what matching has found and hands it out.

The log is read once for all who listen in this process. A connection that asks for what it missed, or that cannot keep
up, reads the store by itself until it is level again (see `hub`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from headgate.broker.watch import Watch
from headgate.store.database import Database
from headgate.store.logs import Logs, Notice

_PAGE = 5000
_QUIET_S, _BUSY_S = 0.05, 0.01


class Tail:
    """Calls `take` with pages of notifications, in their order, from those that come after the start on."""

    def __init__(self, database: Database, take: Callable[[Sequence[Notice]], None], watch: Watch) -> None:
        self._database = database
        self._logs = Logs(database)
        self._take = take
        self._watch = watch
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
                self._watch.well("notifications")
            except BaseException as problem:  # noqa: BLE001 - whoever listens needs this thread
                self._watch.failed("notifications", problem)
                page = []
                self._stop.wait(0.2)
            if len(page) < _PAGE:
                self._wake.wait(_BUSY_S if page else _QUIET_S)
        self._database.close()
