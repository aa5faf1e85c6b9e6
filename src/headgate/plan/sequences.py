"""The sequences of a book, compiled: what has changed since the last plan is laid over what was compiled before.

A hundred thousand patterns take long to compile, and one more must not. So the index of a plan is a base, with more
patterns in levels of their own, and without those that went; as for filters, all becomes one base again when what lies
beside it has grown. What PUBLISHes reaches into other patterns: if it changes, all are compiled anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import orjson
from numpy.typing import NDArray

from headgate.errors import PlanError
from headgate.language.catalogue import Catalogue
from headgate.plan.deltas import due
from headgate.plan.segment import Entry, Family, Segment, collector_paused
from headgate.sequences.automaton import QUOTA
from headgate.sequences.engine import Index
from headgate.sequences.publish_levels import Subscription
from headgate.sequences.shapes import Shapes
from headgate.sequences.spine_table import MODES, SpineTable, SubscriptionTable
from headgate.sequences.static import Static

Slots = NDArray[np.int32]
Living = tuple[Segment, Slots]
"""A segment and its slots that hold living sequences."""


@dataclass
class _Made:
    """What was compiled last: the catalogue it was checked against, the living slots by the segment's fingerprint, the
    base and the numbers of its subscriptions, and what lies beside it."""

    catalogue: Catalogue
    living: dict[str, Living]
    index: Index | None
    base: Index | None = None
    numbers: dict[str, int] = field(default_factory=dict)
    beside: dict[str, Entry] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)


class Sequences:
    """Keeps the index of the last plan of a book."""

    def __init__(self, static: Callable[[Catalogue], Static]) -> None:
        self._static = static
        self._made: _Made | None = None
        self._shapes: dict[str, Shapes] = {}
        self._resolved: tuple[object, ...] = ()
        """What names meant when these were made."""

    def index(self, living: Sequence[Living], catalogue: Catalogue) -> Index | None:
        """The index of these sequences; they share automata and may read what others PUBLISH."""
        last = self._made
        known = {segment.fingerprint: (segment, slots) for segment, slots in living}
        with collector_paused():
            if last is None or _speak_of(last.catalogue) != _speak_of(catalogue):
                self._made = self._anew(known, catalogue)
            elif not _same(last.living, known):
                self._made = self._laid_over(last, known, catalogue)
        assert self._made is not None
        return self._made.index

    def _anew(self, known: dict[str, Living], catalogue: Catalogue) -> _Made:
        entries = dict(_entries(known.values()))
        if not entries:
            return _Made(catalogue, known, None)
        index = self.compiled(self.subscriptions(entries, catalogue), catalogue)
        return _Made(catalogue, known, index, index, {name: i for i, name in enumerate(entries)})

    def _laid_over(self, last: _Made, known: dict[str, Living], catalogue: Catalogue) -> _Made:
        """The base with what has changed."""
        went, came = dict(_beyond(last.living, known)), dict(_beyond(known, last.living))
        for name in [n for n, e in came.items() if went.get(n) == e]:
            del went[name], came[name]
        beside = {n: e for n, e in last.beside.items() if n not in went} | came
        gone = last.gone | {n for n in went if n in last.numbers and n not in last.beside}
        base = last.base
        if base is None or due(len(last.numbers), len(beside) + len(gone)):
            return self._anew(known, catalogue)
        try:
            more = self.subscriptions(beside, catalogue)
            index = base.extended(more, [last.numbers[n] for n in gone], self._static(catalogue))
        except PlanError:
            return self._anew(known, catalogue)
        return _Made(last.catalogue, known, index, base, last.numbers, beside, gone)

    def compiled(self, subscriptions: Sequence[Subscription], catalogue: Catalogue) -> Index:
        """An index of its own, which shares nothing with others."""
        streams = {n: s for n, s in catalogue.streams.items() if n not in catalogue.published}
        return Index(subscriptions, self._static(catalogue), streams=streams)

    def without(self, names: Collection[str], entries: Mapping[str, Entry], catalogue: Catalogue) -> Index:
        """The index of some sequences without those named. What PUBLISHes stays, for others may read it."""
        resolved = self.subscriptions(entries, catalogue)
        kept = [s for s in resolved if s.name not in names or s.spine.publish is not None]
        return self.compiled(kept, catalogue)

    def subscriptions(self, entries: Mapping[str, Entry], catalogue: Catalogue) -> SubscriptionTable:
        """Entries resolved; what their shapes have in common is resolved once as long as names mean the same."""
        if self._resolved != (meaning := _speak_of(catalogue)):
            self._shapes, self._resolved = {}, meaning
        table = SpineTable()
        texts = [entry.text for entry in entries.values()]
        mode = np.array([MODES.index(entry.missing) for entry in entries.values()], np.int64)
        spine = np.empty(len(texts), np.int64)
        for number in np.unique(mode).tolist():
            shapes = self._shapes.setdefault(MODES[number], Shapes(catalogue, MODES[number]))
            mine = np.flatnonzero(mode == number)
            spine[mine] = shapes.enter([texts[i] for i in mine.tolist()], table)
        return SubscriptionTable(list(entries), spine, mode, np.full(len(texts), QUOTA), table)


def _speak_of(catalogue: Catalogue) -> tuple[object, ...]:
    """What the meaning of a text depends on; operators are those of the book."""
    return dict(catalogue.streams), catalogue.meaning()


def _same(one: Mapping[str, Living], other: Mapping[str, Living]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(slots, other[f][1]) for f, (_, slots) in one.items())


def _beyond(here: Mapping[str, Living], there: Mapping[str, Living]) -> Iterable[tuple[str, Entry]]:
    """What lives here and not there."""
    for fingerprint, (segment, slots) in here.items():
        other = there.get(fingerprint)
        yield from _entries([(segment, slots if other is None else np.setdiff1d(slots, other[1]))])


def _entries(living: Iterable[Living]) -> Iterable[tuple[str, Entry]]:
    for segment, slots in living:
        columns = (segment.names, segment.texts, segment.streams, segment.modes, segment.labels)
        for name, text, stream, mode, labels in zip(*(c.take(slots).to_pylist() for c in columns), strict=True):
            yield name, Entry(text, stream, mode, orjson.loads(labels) if labels else None, family=Family.SEQUENCE)
