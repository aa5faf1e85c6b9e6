"""A segment: a set of subscriptions compiled together. It never changes; a plan lays tombstones over it.

Everything in it is an array or an Arrow column, so that a segment can be mapped from a file and shared by processes.
Names are found by a sorted table of hashes rather than a dict, which a million subscriptions could not share.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, partial
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import xxhash
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.covering.gates import GatedIndex, compile_gated
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.identity import hashes
from headgate.language import codec
from headgate.language.forms import Cut, cut_text
from headgate.schema import Schema


class Family(IntEnum):
    """Which engines decide a subscription; admission tells, and nobody asks the text again."""

    FILTER = 0
    LATE = 1
    """It asks an operator or matches a GRAPH."""
    SEQUENCE = 2


@dataclass(frozen=True, slots=True)
class Entry:
    """One subscription of a book."""

    text: str
    stream: str
    missing: str = "null"
    labels: Mapping[str, str] | None = None
    paused: bool = False
    family: Family = Family.FILTER


@dataclass(frozen=True)
class Segment:
    names: pa.Array[Any]
    texts: pa.Array[Any]
    streams: pa.Array[Any]
    """Dictionary-encoded, as are the modes."""
    modes: pa.Array[Any]
    labels: pa.Array[Any]
    """A JSON object each, null where there are none."""
    filters: Mapping[str, FilterIndex | GatedIndex]
    """By stream; with gates if cover was asked for and there is any. An index numbers its own slots; `filter_slots`
    gives ours."""
    filter_slots: Mapping[str, NDArray[np.int32]]
    late_slots: Mapping[str, NDArray[np.int32]]
    """By stream: the subscriptions that wait for graphs or operators."""
    late_bodies: Mapping[str, pa.Array[Any]]
    """Of these, by stream: the tree of each as JSON."""
    sequence_slots: NDArray[np.int32]
    hashes: NDArray[np.uint64] = field(repr=False)
    """Two words a name: the subscription's half of a match id."""
    by_hash: NDArray[np.int32] = field(repr=False)
    """Slots in the order of the first word."""
    fingerprint: str
    """The same for the same subscriptions over the same streams."""

    def __post_init__(self) -> None:
        for stream, index in self.filters.items():
            index.bind(partial(self._filters, self.filter_slots[stream]))

    def _filters(self, slots: NDArray[np.int32], which: NDArray[np.int64]) -> Iterator[tuple[Cut, str]]:
        """Some of the filters of a stream, from their texts."""
        return ((cut_text(self.texts[s].as_py()), self.modes[s].as_py()) for s in slots[which].tolist())

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def _sorted(self) -> NDArray[np.uint64]:
        return np.ascontiguousarray(self.hashes[self.by_hash, 0])

    def slot(self, name: str) -> int | None:
        """The slot of a subscription, or None."""
        wanted = hashes([name])[0]
        at = int(np.searchsorted(self._sorted, wanted[0]))
        while at < len(self._sorted) and self._sorted[at] == wanted[0]:
            slot = int(self.by_hash[at])
            if self.names[slot].as_py() == name:
                return slot
            at += 1
        return None

    def entry(self, slot: int) -> Entry:
        labels = self.labels[slot].as_py()
        return Entry(
            self.texts[slot].as_py(),
            self.streams[slot].as_py(),
            self.modes[slot].as_py(),
            orjson.loads(labels) if labels else None,
            family=self._family(slot),
        )

    def _family(self, slot: int) -> Family:
        at = int(np.searchsorted(self.sequence_slots, slot))
        if at < len(self.sequence_slots) and self.sequence_slots[at] == slot:
            return Family.SEQUENCE
        return Family.LATE if slot in self._late else Family.FILTER

    @cached_property
    def _late(self) -> frozenset[int]:
        return frozenset(slot for slots in self.late_slots.values() for slot in slots.tolist())


@contextmanager
def collector_paused() -> Iterator[None]:
    """Bulk work makes millions of small objects without a cycle among them; the collector would walk them again and again."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def compile_segment(
    entries: Mapping[str, Entry],
    schemas: Mapping[str, Schema],
    samples: Mapping[str, Columns] | None = None,
    *,
    cover: bool = False,
) -> Segment:
    """Compile subscriptions together; paused ones are left out. With `cover`, covered filters are put behind gates."""
    live = {name: e for name, e in entries.items() if not e.paused}
    listed = list(live.values())
    filters: dict[str, FilterIndex | GatedIndex] = {}
    slots: dict[str, NDArray[np.int32]] = {}
    with collector_paused():
        for stream, plain in _slots(listed, Family.FILTER).items():
            items = ((cut_text(listed[slot].text), listed[slot].missing) for slot in plain.tolist())
            schema, sample = schemas.get(stream, Schema(stream, {})), (samples or {}).get(stream)
            index = compile_gated(list(items), schema, sample) if cover else compile_filters(items, schema, sample)
            filters[stream], slots[stream] = index, plain
    late = _slots(listed, Family.LATE)
    words = hashes(list(live))
    return Segment(
        pa.array(list(live), pa.string()),
        pa.array([e.text for e in listed], pa.string()),
        _codes([e.stream for e in listed]),
        _codes([e.missing for e in listed]),
        pa.array([orjson.dumps(e.labels).decode() if e.labels else None for e in listed], pa.string()),
        filters,
        slots,
        late,
        {s: _bodies([listed[slot] for slot in slots_.tolist()]) for s, slots_ in late.items()},
        np.array([slot for slot, e in enumerate(listed) if e.family is Family.SEQUENCE], np.int32),
        words,
        np.argsort(words[:, 0], kind="stable").astype(np.int32),
        _fingerprint(live, {e.stream: schemas.get(e.stream) for e in listed}, cover),
    )


def _slots(entries: Sequence[Entry], family: Family) -> dict[str, NDArray[np.int32]]:
    """The slots of a family, by stream."""
    found: dict[str, list[int]] = {}
    for slot, entry in enumerate(entries):
        if entry.family is family:
            found.setdefault(entry.stream, []).append(slot)
    return {stream: np.array(numbers, np.int32) for stream, numbers in found.items()}


def _bodies(entries: Sequence[Entry]) -> pa.Array[Any]:
    """The trees of subscriptions that wait for graphs or operators, as texts that are read without the parser."""
    return pa.array([orjson.dumps(codec.encode(cut_text(e.text).body())).decode() for e in entries], pa.string())


def _fingerprint(entries: Mapping[str, Entry], schemas: Mapping[str, Schema | None], cover: bool) -> str:
    state = xxhash.xxh3_128(repr(sorted(schemas.items())).encode() + b" covered" * cover)
    for name, e in entries.items():
        state.update(f"{len(name)} {name}{e.stream} {e.missing} {len(e.text)} {e.text}{e.labels}".encode())
    return state.hexdigest()


def _codes(values: Sequence[str]) -> pa.Array[Any]:
    return pa.array(values, pa.string()).dictionary_encode()
