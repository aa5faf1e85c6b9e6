"""What changed in a book since a moment: what a store must write down, and how to take it back.

A change of a book may fail half-way, or the database that should keep it may refuse. The book is then brought back to
what it was, which is far cheaper than to build it again from the store.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from headgate.language.catalogue import Catalogue
from headgate.plan.segment import Entry

STREAM, PREFIX, ONTOLOGY = "stream", "prefix", "ontology"


@dataclass(frozen=True, slots=True)
class Touched:
    """What changed: definitions by kind and name, and subscriptions."""

    definitions: tuple[tuple[str, str], ...]
    subscriptions: dict[str, bool]
    """With whether they were there before."""


class Journal:
    """Of one book, from the moment it is made on. The book tells of each subscription before it changes it."""

    def __init__(self, catalogue: Catalogue) -> None:
        self.catalogue = catalogue.copy()
        """As it was in the beginning."""
        self.entries: dict[str, Entry | None] = {}
        """The subscriptions that changed, as they were in the beginning."""
        self._seen = self.catalogue
        self._fresh: dict[str, bool] = {}

    def note(self, name: str, before: Entry | None) -> None:
        self.entries.setdefault(name, before)
        if before is None:
            self._fresh[name] = False
        else:
            self._fresh.setdefault(name, True)

    def take(self, catalogue: Catalogue) -> Touched:
        """What changed since this was asked last."""
        found = Touched(tuple(differences(self._seen, catalogue)), self._fresh)
        self._seen = catalogue.copy()
        self._fresh = {}
        return found


def differences(before: Catalogue, now: Catalogue) -> Iterator[tuple[str, str]]:
    """The definitions that are not the same in two catalogues, by kind and name."""
    for name in _unequal(before.prefixes, now.prefixes):
        yield PREFIX, name
    for name in _unequal(before.ontologies, now.ontologies):
        yield ONTOLOGY, name
    streams = dict.fromkeys(_unequal(before.streams, now.streams))
    streams.update(dict.fromkeys(_unequal(before.templates, now.templates)))
    streams.update(dict.fromkeys(_unequal(before.published, now.published)))
    for name in streams:
        yield STREAM, name


def _unequal(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[str]:
    for name, value in now.items():
        known = before.get(name)
        if known is not value and known != value:
            yield name
    if len(before) > len(now) or before.keys() - now.keys():
        yield from (name for name in before if name not in now)
