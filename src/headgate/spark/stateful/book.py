"""The sequences of a plan as the workers run them: by group, each compiled when first asked for.

A keyed group has one index, the same in every bucket; what is global is dealt out over the buckets by component, so that
each bucket has an index of its own. An index also holds the producers its subscriptions read from; where these belong to
another group they publish here, and their matches are told there.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import orjson
import xxhash
from numpy.typing import NDArray

from headgate.language.catalogue import Catalogue
from headgate.plan import Entry, Plan
from headgate.plan.compile_context import CompileContext
from headgate.plan.segment import collector_paused
from headgate.schema import Kind, Path
from headgate.sequences.engine import Index
from headgate.sequences.publish_levels import Subscription
from headgate.sequences.shapes import Shapes
from headgate.spark.gc_freeze import mark_long_lived
from headgate.spark.stateful.groups import GLOBAL, Keys, Placement, placements

_KEPT = 8
_books: OrderedDict[str, SequenceBook] = OrderedDict()
_lock = threading.Lock()


@dataclass(frozen=True, eq=False)
class Compiled:
    """The index of a group, in one bucket or in all. `emits` says whose matches are told here."""

    group: str
    keys: Keys
    index: Index
    emits: NDArray[np.bool_]
    fingerprint: str
    """The same for the same subscriptions over the same streams."""
    _since: dict[tuple[tuple[str, int], ...], Index] = field(default_factory=dict, repr=False)

    def needs(self, stream: str) -> frozenset[Path]:
        return self._needs.get(stream, frozenset())

    @cached_property
    def _needs(self) -> Mapping[str, frozenset[Path]]:
        """Without what a stream cannot have: a UNION asks each side for the columns of both."""
        known = self.index.streams
        return {
            stream: frozenset(p for p in paths if not known[stream].declared or known[stream].get(p) is not None)
            for stream, paths in self.index.needs().items()
        }

    def activated(self, since: Mapping[str, int]) -> Index:
        """The index in which some subscriptions see only what comes after a time."""
        mine = tuple(sorted((name, since[name]) for name in self.index.names if name in since))
        if not mine:
            return self.index
        if mine not in self._since:
            self._since[mine] = self.index.activated(dict(mine))
        return self._since[mine]


class SequenceBook:
    def __init__(
        self, entries: Mapping[str, Entry], catalogue: Catalogue, context: CompileContext, buckets: int
    ) -> None:
        self.entries = entries
        self.buckets = buckets
        self._catalogue = catalogue
        self._context = context
        shapes = {mode: Shapes(catalogue, mode) for mode in {e.missing for e in entries.values()}}
        self.subscriptions = [Subscription(n, shapes[e.missing].spine(e.text), e.missing) for n, e in entries.items()]
        self.placed: list[Placement] = placements(self.subscriptions)
        self.numbers = {s.name: i for i, s in enumerate(self.subscriptions)}
        self._compiled: dict[tuple[str, int], Compiled | None] = {}
        self._needed: dict[tuple[str, str | None], frozenset[Path]] = {}
        self._dealt: dict[tuple[str, int], list[int]] = {}
        for i, placement in enumerate(self.placed):
            bucket = bucket_of_text(placement.component, buckets) if placement.group == GLOBAL else -1
            self._dealt.setdefault((placement.group, bucket), []).append(i)
        self.streams = {n: s for n, s in catalogue.streams.items() if n not in catalogue.published}
        self._base = tuple(sorted(repr(s) for s in self.streams.values()))

    @classmethod
    def of(cls, plan: Plan, buckets: int) -> SequenceBook:
        found: dict[str, Entry] = {}
        for segment, dead in zip(plan.segments, plan.dead, strict=True):
            for slot in segment.sequence_slots.tolist():
                if dead is None or not dead[slot]:
                    found[segment.names[slot].as_py()] = segment.entry(slot)
        return cls(found, plan.catalogue, plan.context, buckets)

    @cached_property
    def identity(self) -> str:
        """The same for the same subscriptions in the same groups."""
        return xxhash.xxh3_128_hexdigest(repr([self.digest(name) for name in sorted(self.entries)]).encode())

    @property
    def groups(self) -> list[str]:
        return sorted({group for group, _ in self._dealt})

    def compiled(self, group: str, bucket: int) -> Compiled | None:
        """The index of a group in a bucket; None if the group has nothing there."""
        key = (group, bucket if group == GLOBAL else -1)
        if key not in self._compiled:
            with collector_paused():
                self._compiled[key] = self._compile(*key)
            mark_long_lived()
        return self._compiled[key]

    def _compile(self, group: str, bucket: int) -> Compiled | None:
        mine = self._dealt.get((group, bucket))
        if mine is None:
            return None
        numbers = sorted({m for i in mine for m in self.placed[i].members})
        told = set(mine)
        chosen = [self.subscriptions[n] for n in numbers]
        index = Index(chosen, static=self._context.static(self._catalogue), streams=self.streams)
        state = xxhash.xxh3_128(repr((group, bucket, self.buckets, self._base)).encode())
        for n in numbers:
            state.update(repr((self.digest(self.subscriptions[n].name), n in told)).encode())
        keys = self.placed[mine[0]].keys
        emits = np.array([n in told for n in numbers], np.bool_)
        return Compiled(group, keys, index, emits, state.hexdigest())

    def digest(self, name: str) -> str:
        """What makes a subscription the same one as before: its text, its mode and its group."""
        entry, group = self.entries[name], self.placed[self.numbers[name]].group
        return xxhash.xxh3_64_hexdigest(repr((name, entry.text, entry.missing, group)).encode())

    @cached_property
    def bases(self) -> frozenset[str]:
        """The streams that sequences read."""
        names = {stream for p in self.placed for stream in p.keys}
        for group, bucket in self._dealt:
            if group == GLOBAL and (made := self.compiled(group, bucket)) is not None:
                names |= made.index.plan.base.keys()
        return frozenset(names)

    @cached_property
    def timed(self) -> tuple[str, ...]:
        """Those of them that carry time."""
        return tuple(sorted(s for s in self.bases & self.streams.keys() if self.streams[s].time))

    @cached_property
    def clocks(self) -> bool:
        """Whether their time is that of clocks."""
        return all(self.streams[s].time_kind is Kind.TIMESTAMP for s in self.timed)

    def needs(self, stream: str, group: str | None = None) -> frozenset[Path]:
        """The attributes of a stream that a group reads, in any bucket; without one, that some group reads."""
        found = self._needed.get((stream, group))
        if found is None:
            chosen = [self.compiled(*key) for key in self._dealt if group in (None, key[0])]
            found = frozenset().union(*(made.needs(stream) for made in chosen if made is not None))
            self._needed[stream, group] = found
        return found

    def labels(self, name: str) -> str | None:
        labels = self.entries[name].labels
        return orjson.dumps(labels).decode() if labels else None

    def explain(self) -> dict[str, str]:
        """For each subscription how it is spread over the workers."""
        return {s.name: p.text for s, p in zip(self.subscriptions, self.placed, strict=True)}


def opened(key: str, make: Callable[[], Plan], buckets: int) -> SequenceBook:
    """The book of a plan, compiled once in this process."""
    with _lock:
        name = f"{key}/{buckets}"
        found = _books.get(name)
        if found is None:
            with collector_paused():
                found = _books[name] = SequenceBook.of(make(), buckets)
            while len(_books) > _KEPT:
                _books.popitem(last=False)
        _books.move_to_end(name)
        return found


def bucket_of_text(text: str, buckets: int) -> int:
    return xxhash.xxh3_64_intdigest(text.encode()) % buckets
