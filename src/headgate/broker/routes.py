"""What this broker tells its neighbours: the routing tables of `covering`, kept level with the book.

The book says all there is to know: a subscription that came from a neighbour has that neighbour as its owner. So the
tables are made anew from it after a crash, and neighbours are told the whole. What is no filter, or too wide for boxes,
is told and covers nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headgate.covering.boxes import Union
from headgate.covering.parse_boxes import read_union
from headgate.covering.routing import LOCAL, Router
from headgate.errors import HeadgateError
from headgate.schema import Schema
from headgate.store import Store
from headgate.store.records import SUBSCRIPTION
from headgate.store.replica import Replica
from headgate.subscriptions import Subscriptions


@dataclass(frozen=True, slots=True)
class Told:
    """A subscription as a neighbour hears of it."""

    name: str
    """Unique in the network: the broker where it was made, and its id there."""
    stream: str
    text: str
    missing: str


class Routes:
    """For one thread. `source` gives the neighbour that a subscription came from, or LOCAL."""

    def __init__(self, me: str, source: Callable[[str], str]) -> None:
        self._me = me
        self._source = source
        self._replica = Replica()
        self._router = Router()
        self._known: set[str] = set()

    def connect(self, peer: str) -> None:
        if peer not in self._router.neighbours:
            self._router.connect(peer)

    def follow(self, store: Store) -> bool:
        """Take in what has changed in the book; whether anything has."""
        version = store.version
        if version == self._replica.version:
            return False
        changes = store.follow(self._replica, version) if self._replica.version else None
        if changes is None:
            self._replica = store.replica(version)
            names = list(dict.fromkeys([*self._known, *self._replica.book]))
        else:
            names = [change.name for change in changes if change.kind == SUBSCRIPTION]
        for name in names:
            self._one(name)
        return True

    @property
    def _book(self) -> Subscriptions:
        return self._replica.book

    def told(self, peer: str) -> dict[str, Told]:
        """What a neighbour must know."""
        found = {}
        for id in map(str, self._router.told(peer)):
            entry, name = self._book[id], self.network_name(id)
            found[name] = Told(name, entry.stream, entry.text, entry.missing)
        return found

    def schema(self, stream: str) -> Schema | None:
        found = self._book.streams.get(stream)
        return found if found is not None and found.declared else None

    def network_name(self, id: str) -> str:
        return id if "/" in id else f"{self._me}/{id}"

    def _one(self, id: str) -> None:
        if id not in self._book or self._book[id].paused:
            if id in self._known:
                self._known.discard(id)
                self._router.unsubscribe(id)
            return
        source = self._source(id)
        if source != LOCAL:
            self.connect(source)
        self._known.add(id)
        self._router.subscribe(id, self._union(id), source, stream=self._book[id].stream)

    def _union(self, id: str) -> Union | None:
        entry = self._book[id]
        schema = self._book.streams.get(entry.stream)
        try:
            return None if schema is None else read_union(entry.text, entry.missing, schema)
        except HeadgateError:
            return None
