"""The plan of a store's book, version by version: what a running query matches with.

A new version costs what changed, and what was compiled before is merged in the background (see `plan.deltas`). A replayed
batch asks for the version that it used the first time; its book is made again from the store.
"""

from __future__ import annotations

from headgate.plan import Plan
from headgate.store import Store
from headgate.store.replica import Replica
from headgate.subscriptions.journal import ONTOLOGY


class Follower:
    """For one thread."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._replica: Replica | None = None
        self._plan: Plan | None = None

    def at(self, version: int) -> Plan:
        """The plan of the book at a version; its sequences are not compiled."""
        if self._replica is None:
            self._replica = self._store.replica(version)
        if version < self._replica.version:
            return self._store.replica(version).book.compile_stateless()
        if version > self._replica.version:
            changes = self._store.follow(self._replica, version)
            if changes is None or any(change.kind == ONTOLOGY for change in changes):
                # What the plan was compiled with is gone, or means something else now.
                self._replica = self._store.replica(version)
            self._plan = None
        if self._plan is None:
            self._plan = self._replica.book.compile_stateless()
        return self._plan
