"""The plans of a store's book, version by version: what a running query matches with.

A new version costs what changed (see `shards`). When so much has changed that the large plans must be compiled anew,
that happens in a thread of its own, while batches go on with what there is. A replayed batch asks for the version
that it used the first time; its book is made again from the store.
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass

from headgate.errors import HeadgateError
from headgate.spark.shards import SHARD_SIZE, Parts, Shards
from headgate.store import Store
from headgate.store.records import SUBSCRIPTION
from headgate.store.replica import Replica
from headgate.subscriptions import Subscriptions
from headgate.subscriptions.journal import ONTOLOGY

log = logging.getLogger("headgate.spark")


@dataclass
class _State:
    replica: Replica
    shards: Shards
    parts: Parts


class Follower:
    """For one thread; the rebuild runs beside it on its own copy."""

    def __init__(self, store: Store, shard: int = SHARD_SIZE, *, stateless: bool = True) -> None:
        self._store = store
        self._shard = shard
        self._stateless = stateless
        self._state: _State | None = None
        self._rebuilt: _State | None = None
        self._rebuilding: threading.Thread | None = None

    def at(self, version: int) -> Parts:
        """The plans of the book at a version."""
        if self._rebuilt is not None and self._rebuilt.replica.version <= version:
            self._state, self._rebuilt = self._rebuilt, None
        if self._state is None:
            self._state = self._load(version)
        if version < self._state.replica.version:
            return self._load(version).parts
        if version > self._state.replica.version:
            self._state = self._advance(self._state, version)
        return self._state.parts

    def book(self) -> Subscriptions | None:
        return self._state.replica.book if self._state else None

    def _load(self, version: int) -> _State:
        replica = self._store.replica(version)
        made = Shards(replica.book, self._shard, stateless=self._stateless)
        return _State(replica, made, made.parts())

    def _advance(self, state: _State, version: int) -> _State:
        changes = self._store.follow(state.replica, version)
        if changes is None or any(change.kind == ONTOLOGY for change in changes):
            # What the large plans were compiled with is gone, or means something else now.
            return self._load(version)
        state.shards.changed([change.name for change in changes if change.kind == SUBSCRIPTION])
        state.parts = state.shards.parts()
        if state.shards.grown and self._rebuilding is None:
            self._rebuilding = threading.Thread(target=self._rebuild, args=(version,), daemon=True)
            self._rebuilding.start()
        return state

    def _rebuild(self, version: int) -> None:
        try:
            self._rebuilt = self._load(version)
        except HeadgateError:
            log.exception("the plans of version %s cannot be compiled anew; the old ones stay", version)
        finally:
            self._store.close()
            self._rebuilding = None
