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
from headgate.store.book import SUBSCRIPTION, follow
from headgate.subscriptions import Subscriptions

log = logging.getLogger("headgate.spark")


@dataclass
class _State:
    version: int
    book: Subscriptions
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
        if self._rebuilt is not None and self._rebuilt.version <= version:
            self._state, self._rebuilt = self._rebuilt, None
        if self._state is None:
            self._state = self._load(version)
        if version < self._state.version:
            return self._load(version).parts
        if version > self._state.version:
            self._advance(self._state, version)
        return self._state.parts

    def book(self) -> Subscriptions | None:
        return self._state.book if self._state else None

    def _load(self, version: int) -> _State:
        book = self._store.book(version)
        made = Shards(book, self._shard, stateless=self._stateless)
        return _State(version, book, made, made.parts())

    def _advance(self, state: _State, version: int) -> None:
        changes = follow(self._store, state.book, state.version, version)
        state.shards.changed([change.name for change in changes if change.kind == SUBSCRIPTION])
        state.version, state.parts = version, state.shards.parts()
        if state.shards.grown and self._rebuilding is None:
            self._rebuilding = threading.Thread(target=self._rebuild, args=(version,), daemon=True)
            self._rebuilding.start()

    def _rebuild(self, version: int) -> None:
        try:
            self._rebuilt = self._load(version)
        except HeadgateError:
            log.exception("the plans of version %s cannot be compiled anew; the old ones stay", version)
        finally:
            self._store.close()
            self._rebuilding = None
