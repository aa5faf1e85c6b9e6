"""A book that is brought along with the log of its store, and what of the log could not be put into it.

A definition that cannot be replayed (the package of its operator is gone, its text needs a newer Headgate) is set aside
alone, with its reason. It stays in the store, its name stays taken, and it can be removed, paused and replaced like any
other. What refers to it would mean something else without it, so that is set aside too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headgate.errors import DuplicateName, HeadgateError, UnknownName
from headgate.language.tokens import tokenise
from headgate.results import described
from headgate.store.records import KINDS, OPERATOR, SUBSCRIPTION, Body, Change
from headgate.subscriptions import Subscriptions
from headgate.subscriptions.journal import ONTOLOGY, STREAM

log = logging.getLogger("headgate.store")
Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A definition of the store that is not in its book, and why."""

    kind: str
    name: str
    version: int
    reason: str
    body: Body

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.reason}"


class Replica:
    """For one thread."""

    def __init__(self, operators: Sequence[Any] = ()) -> None:
        self.book = Subscriptions(operators)
        self.version = 0
        self.quarantined: dict[Key, Quarantined] = {}
        self.operators: set[str] = set()
        """The operators that the store knows of."""
        self.rewritten: dict[Key, Body | None] = {}
        """New bodies of what is set aside, for the store to write down."""

    def load(self, definitions: Iterable[Change], subscriptions: Iterable[Change], version: int) -> None:
        """Take in what there is at a version, each in the order in which the names came into the book."""
        ranks = {kind: rank for rank, kind in enumerate(KINDS)}
        for change in sorted(definitions, key=lambda c: ranks.get(c.kind, -1)):
            self.take(change)
        waiting: list[Change] = []
        names: list[str] = []
        for change in subscriptions:
            names.append(change.name)
            if not self.take(change):
                waiting.append(change)
        # A sequence may read what another one PUBLISHes that came into the book after it.
        moved = False
        while waiting and len(left := [change for change in waiting if not self.take(change)]) < len(waiting):
            waiting, moved = left, True
        if moved:
            self.book.order(name for name in names if name in self.book)
        self.version = version
        for found in self.quarantined.values():
            log.warning("set aside: %s", found)

    def take(self, change: Change) -> bool:
        """Take in one change; False if it is set aside."""
        key = (change.kind, change.name)
        try:
            self._restore(change)
        except Exception as problem:  # noqa: BLE001 - whatever it is, the others go on
            reason = problem.message if isinstance(problem, HeadgateError) else described(problem)
            assert change.body is not None, "what is taken away cannot fail to be built"
            self.quarantined[key] = Quarantined(change.kind, change.name, change.version, reason, change.body)
            if change.name in self.book and change.kind == SUBSCRIPTION:
                self.book.remove(change.name)
            return False
        self.quarantined.pop(key, None)
        return True

    def _restore(self, change: Change) -> None:
        kind = KINDS.get(change.kind)
        if kind is None and change.body is None:
            return
        if kind is None:
            raise HeadgateError(f"this Headgate knows no definition of the kind {change.kind}", "use a newer one")
        if change.kind == OPERATOR:
            self.operators.add(change.name)
        if change.kind == SUBSCRIPTION and change.body is not None:
            self.must_mean_the_same(change.body["text"], change.body["on"])
        kind.restore(self.book, change.name, change.body)

    def must_mean_the_same(self, text: str, on: str | None) -> None:
        """Without its stream a subscription might be taken for one on an open stream, without its ontology miss classes."""
        apart = [q for q in self.quarantined.values() if q.kind != SUBSCRIPTION]
        if not apart:
            return
        tokens = tokenise(text)
        for found in apart:
            named = found.kind in (STREAM, OPERATOR) and found.name in tokens.raws
            if (
                named
                or (found.kind, found.name) == (STREAM, on)
                or (found.kind == ONTOLOGY and "GRAPH" in tokens.kinds)
            ):
                raise HeadgateError(f"the {found.kind} {found.name} is set aside: {found.reason}")

    # -- changes, also of what is set aside

    def must_be_free(self, kind: str, name: str) -> None:
        found = self.quarantined.get((kind, name))
        if found is not None:
            message = f"there is a {kind} {name} already, set aside: {found.reason}"
            raise DuplicateName(message, "remove or replace it" if kind == SUBSCRIPTION else "choose another name")

    def add(self, name: str, text: str, **how: Any) -> None:
        self.must_be_free(SUBSCRIPTION, name)
        self.must_mean_the_same(text, how.get("on"))
        self.book.add(name, text, **how)

    def replace(self, name: str, text: str, **changes: Any) -> None:
        apart = self.quarantined.get((SUBSCRIPTION, name))
        if apart is None:
            self.book.replace(name, text, **changes)
            return
        given: dict[str, Any] = {key: apart.body.get(key) for key in ("on", "missing", "labels")} | changes
        self.must_mean_the_same(text, given["on"])
        self.book.add(name, text, **given)
        if apart.body.get("paused"):
            self.book.pause(name)
        del self.quarantined[SUBSCRIPTION, name]

    def remove(self, name: str) -> None:
        if (SUBSCRIPTION, name) in self.quarantined:
            self.discard(SUBSCRIPTION, name)
        else:
            self.book.remove(name)

    def discard(self, kind: str, name: str) -> None:
        """Take out what is set aside."""
        if self.quarantined.pop((kind, name), None) is None:
            raise UnknownName(f"no {kind} {name} is set aside", "`headgate doctor --store` lists them")
        self.rewritten[kind, name] = None

    def pause(self, name: str) -> None:
        if not self._mark(name, paused=True):
            self.book.pause(name)

    def resume(self, name: str) -> None:
        if not self._mark(name, paused=False):
            self.book.resume(name)

    def _mark(self, name: str, *, paused: bool) -> bool:
        apart = self.quarantined.get((SUBSCRIPTION, name))
        if apart is None:
            return False
        body = self.rewritten[SUBSCRIPTION, name] = {**apart.body, "paused": paused}
        self.quarantined[SUBSCRIPTION, name] = replace(apart, body=body)
        return True

    def __contains__(self, name: str) -> bool:
        return name in self.book or (SUBSCRIPTION, name) in self.quarantined
