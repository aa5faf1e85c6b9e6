"""The plan of a store's book, version by version: what a running query matches with.

A new version costs what changed, and what was compiled before is merged in the background (see `plan.deltas`). A replayed
batch asks for the version that it used the first time; its book is made again from the store.
"""

from __future__ import annotations

from headgate.plan import Plan
from headgate.store import Store
from headgate.store.book import follow
from headgate.subscriptions import Subscriptions


class Follower:
    """For one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._version = -1
        self._book: Subscriptions | None = None
        self._plan: Plan | None = None

    def at(self, version: int) -> Plan:
        """The plan of the book at a version; its sequences are not compiled."""
        if self._book is None:
            self._book, self._version = self._store.book(version), version
        if version < self._version:
            return self._store.book(version).compile_stateless()
        if version > self._version:
            follow(self._store, self._book, self._version, version)
            self._version, self._plan = version, None
        if self._plan is None:
            self._plan = self._book.compile_stateless()
        return self._plan
