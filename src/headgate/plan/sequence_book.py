"""The sequences of a plan as the workers run them: by group, compiled on the driver, opened from a file by workers.

A keyed group has one index, the same in every bucket; what is global is dealt out over the buckets by component, so that
each bucket has an index of its own. An index also holds the producers its subscriptions read from; where these belong to
another group they publish here, and their matches are told there.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from headgate.errors import PlanError
from headgate.language.catalogue import Catalogue
from headgate.plan import Entry, Plan, file
from headgate.plan.compile_context import CompileContext, Signatures
from headgate.plan.placement import Placement, placements
from headgate.plan.segment import collector_paused
from headgate.runtime.gc_freeze import mark_long_lived
from headgate.runtime.stateful.group import GLOBAL, CompiledGroup, Keys
from headgate.schema import Kind, Path, Schema
from headgate.sequences.engine import Index
from headgate.sequences.saved import SavedIndex, open_index, save_index
from headgate.sequences.spine import reads

_MOST_GROUPS = 256
_groups: OrderedDict[tuple[CompileContext, str], CompiledGroup] = OrderedDict()
"""What was compiled last, by fingerprint: a change of the book concerns few groups."""


@file.know
@dataclass(frozen=True)
class SavedGroup:
    group: str
    bucket: int
    keys: Keys
    emits: NDArray[np.bool_]
    fingerprint: str
    index: SavedIndex


@file.know
@dataclass(frozen=True)
class SavedBook:
    buckets: int
    names: Any
    """Arrow, as is all that follows for each of them."""
    texts: Any
    """With the modes, for whoever must compile some of them again."""
    modes: Any
    digests: Any
    times: Any
    labels: Any
    groups: tuple[SavedGroup, ...]


Groups = Mapping[tuple[str, int], Callable[[], CompiledGroup]]
"""By group and bucket; the bucket is -1 where all have the same index."""


class SequenceBook:
    def __init__(
        self,
        buckets: int,
        catalogue: Catalogue,
        entries: Mapping[str, Entry],
        digests: Mapping[str, str],
        times: Mapping[str, Kind | None],
        labels: Mapping[str, str],
        groups: Groups,
        placed: Mapping[str, Placement] | None = None,
    ) -> None:
        self.buckets = buckets
        self.placed = placed or {}
        """Of a book that was compiled here: where each subscription runs, and why."""
        self.digests = digests
        """By name: what makes a subscription the same one as before, its text, its mode and its group."""
        self.times = times
        """By name: the kind of time that a subscription goes by."""
        self.streams = {n: s for n, s in catalogue.streams.items() if n not in catalogue.published}
        self._catalogue = catalogue
        self._entries = entries
        self._labels = labels
        self._groups = groups
        self._compiled: dict[tuple[str, int], CompiledGroup] = {}
        self._needed: dict[tuple[str, str | None], frozenset[Path]] = {}

    @classmethod
    def of(cls, plan: Plan, buckets: int) -> SequenceBook:
        """The sequences of a plan. It is made once as long as they stay the same."""
        key, known = _identity(plan), plan.context.books.get(buckets)
        if known is None or known[0] != key:
            with collector_paused():
                known = plan.context.books[buckets] = key, _compile(plan, buckets)
        book = known[1]
        assert isinstance(book, cls)
        return book

    def save(self, path: os.PathLike[str]) -> None:
        """Write all of it to a file, for the workers."""
        groups = []
        for group, bucket in self._groups:
            made = self.compiled(group, bucket)
            assert made is not None
            index = save_index(made.index, file.encode)
            groups.append(SavedGroup(group, bucket, made.keys, made.emits, made.fingerprint, index))
        names = list(self.digests)
        book = SavedBook(
            self.buckets,
            pa.array(names, pa.string()),
            pa.array([self._entries[n].text for n in names], pa.string()),
            pa.array([self._entries[n].missing for n in names], pa.string()),
            pa.array([self.digests[n] for n in names], pa.string()),
            pa.array([self.times[n] for n in names], pa.string()),
            pa.array([self._labels.get(n) for n in names], pa.string()),
            tuple(groups),
        )
        file.write({**file.definitions(self._catalogue), "book": book}, path)

    @classmethod
    def open(cls, path: os.PathLike[str], operators: Iterable[Any] = ()) -> SequenceBook:
        parts = dict(file.read(path))
        book = parts.pop("book", None)
        if not isinstance(book, SavedBook):
            raise PlanError(f"{os.fspath(path)} has no sequences for Spark", "it was written by something else")
        context = CompileContext(operators)
        context.engine.run_apart()
        catalogue = Catalogue(operators=Signatures(context.registry), **parts)
        bind, static = context.bind(catalogue), context.static(catalogue)
        names, texts, modes = (column.to_pylist() for column in (book.names, book.texts, book.modes))
        entries = {n: Entry(t, "", m) for n, t, m in zip(names, texts, modes, strict=True)}

        def opened(saved: SavedGroup) -> CompiledGroup:
            index = open_index(saved.index, file.decode, bind, static)

            def without(gone: Collection[str]) -> Index:
                return context.sequences.without(gone, {n: entries[n] for n in index.names}, catalogue)

            return CompiledGroup(saved.group, saved.keys, index, saved.emits, saved.fingerprint, without)

        labels = dict(zip(names, book.labels.to_pylist(), strict=True))
        return cls(
            book.buckets,
            catalogue,
            entries,
            dict(zip(names, book.digests.to_pylist(), strict=True)),
            {n: None if kind is None else Kind(kind) for n, kind in zip(names, book.times.to_pylist(), strict=True)},
            {name: text for name, text in labels.items() if text is not None},
            {(g.group, g.bucket): partial(opened, g) for g in book.groups},
        )

    @cached_property
    def identity(self) -> str:
        """The same for the same subscriptions in the same groups."""
        return xxhash.xxh3_128_hexdigest(repr([self.digests[name] for name in sorted(self.digests)]).encode())

    @property
    def groups(self) -> list[str]:
        return sorted({group for group, _ in self._groups})

    def compiled(self, group: str, bucket: int) -> CompiledGroup | None:
        """The index of a group in a bucket; None if the group has nothing there."""
        key = (group, bucket if group == GLOBAL else -1)
        if key not in self._groups:
            return None
        if key not in self._compiled:
            with collector_paused():
                self._compiled[key] = self._groups[key]()
            mark_long_lived()
        return self._compiled[key]

    @cached_property
    def bases(self) -> frozenset[str]:
        """The streams that sequences read."""
        made = (self.compiled(*key) for key in self._groups)
        read = ((name, schema) for one in made if one is not None for name, schema in one.index.plan.base.items())
        return frozenset(name for name, schema in read if not schema.derived)

    @cached_property
    def timed(self) -> Mapping[str, Schema]:
        """Those of them that carry time."""
        return {s: self.streams[s] for s in sorted(self.bases & self.streams.keys()) if self.streams[s].time}

    def needs(self, stream: str, group: str | None = None) -> frozenset[Path]:
        """The attributes of a stream that a group reads, in any bucket; without one, that some group reads."""
        found = self._needed.get((stream, group))
        if found is None:
            chosen = [self.compiled(*key) for key in self._groups if group in (None, key[0])]
            found = frozenset().union(*(made.needs(stream) for made in chosen if made is not None))
            self._needed[stream, group] = found
        return found

    def labels(self, name: str) -> str | None:
        return self._labels.get(name)

    def explain(self) -> dict[str, str]:
        """For each subscription how it is spread over the workers."""
        return {name: placement.text for name, placement in self.placed.items()}


def _identity(plan: Plan) -> str:
    """The same for the same sequences over the same definitions."""
    state = xxhash.xxh3_128(repr((sorted(plan.schemas.items()), plan.catalogue.meaning())).encode())
    for segment, slots in plan.living_sequences():
        state.update(segment.fingerprint.encode() + slots.tobytes())
    return state.hexdigest()


def _compile(plan: Plan, buckets: int) -> SequenceBook:
    entries = {s.names[slot].as_py(): s.entry(slot) for s, slots in plan.living_sequences() for slot in slots.tolist()}
    catalogue, context = plan.catalogue, plan.context
    placed = context.sequences.subscriptions(entries, catalogue)
    homes = placements(placed)
    dealt: dict[tuple[str, int], list[int]] = {}
    for i, home in enumerate(homes):
        bucket = bucket_of_text(home.component, buckets) if home.group == GLOBAL else -1
        dealt.setdefault((home.group, bucket), []).append(i)
    digests = {
        s.name: xxhash.xxh3_64_hexdigest(repr((s.name, entries[s.name].text, s.missing, home.group)).encode())
        for s, home in zip(placed, homes, strict=True)
    }
    streams = {n: s for n, s in catalogue.streams.items() if n not in catalogue.published}
    base = tuple(sorted(repr(s) for s in streams.values()))

    def compiled(key: tuple[str, int]) -> CompiledGroup:
        mine = dealt[key]
        numbers = sorted({m for i in mine for m in homes[i].members})
        told = set(mine)
        state = xxhash.xxh3_128(repr((*key, buckets, base, catalogue.meaning())).encode())
        for n in numbers:
            state.update(repr((digests[placed[n].name], n in told)).encode())
        fingerprint = state.hexdigest()
        known = _groups.get((context, fingerprint))
        if known is None:
            mine_and_read = {placed[n].name: entries[placed[n].name] for n in numbers}

            def without(gone: Collection[str]) -> Index:
                return context.sequences.without(gone, mine_and_read, catalogue)

            index = context.sequences.compiled([placed[n] for n in numbers], catalogue)
            emits = np.array([n in told for n in numbers], np.bool_)
            known = CompiledGroup(key[0], homes[mine[0]].keys, index, emits, fingerprint, without)
            _groups[context, fingerprint] = known
            while len(_groups) > _MOST_GROUPS:
                _groups.popitem(last=False)
        return known

    times = {
        s.name: next((streams[b].time_kind for m in home.members for b in reads(placed[m].spine) if b in streams), None)
        for s, home in zip(placed, homes, strict=True)
    }
    labels = {n: orjson.dumps(e.labels).decode() for n, e in entries.items() if e.labels}
    groups = {key: partial(compiled, key) for key in dealt}
    at = {s.name: home for s, home in zip(placed, homes, strict=True)}
    return SequenceBook(buckets, catalogue, entries, digests, times, labels, groups, at)


def bucket_of_text(text: str, buckets: int) -> int:
    return xxhash.xxh3_64_intdigest(text.encode()) % buckets
