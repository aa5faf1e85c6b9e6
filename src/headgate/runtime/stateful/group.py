"""What the stateful step asks of compiled sequences: which groups there are, and the index of each.

A *keyed* group has one index, the same in every bucket, for the value of its key says where an event goes. What is
*global* is dealt out over the buckets, so that each has an index of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from headgate.schema import Kind, Path, Schema
from headgate.sequences.engine import Index

GLOBAL = "global"
Keys = Mapping[str, Path]
"""By stream: the attribute whose value says where an event goes."""


@dataclass(frozen=True, eq=False)
class CompiledGroup:
    """The index of a group, in one bucket or in all. `emits` says whose matches are told here."""

    group: str
    keys: Keys
    index: Index
    emits: NDArray[np.bool_]
    fingerprint: str
    """The same for the same subscriptions over the same streams."""
    compile: Callable[[Collection[str]], Index]
    """The index without some subscriptions, compiled apart. What PUBLISHes stays, for others may read it."""
    _since: dict[tuple[tuple[str, int], ...], Index] = field(default_factory=dict, repr=False)
    _reduced: dict[tuple[str, ...], CompiledGroup] = field(default_factory=dict, repr=False)
    """What was last asked for without some."""

    def needs(self, stream: str) -> frozenset[Path]:
        return self.index.needs().get(stream, frozenset())

    def activated(self, since: Mapping[str, int]) -> Index:
        """The index in which some subscriptions see only what comes after a time."""
        mine = tuple(sorted((name, since[name]) for name in self.index.names if name in since))
        if not mine:
            return self.index
        if mine not in self._since:
            self._since[mine] = self.index.activated(dict(mine))
        return self._since[mine]

    def without(self, names: Collection[str]) -> CompiledGroup:
        """The group without some of its subscriptions."""
        gone = tuple(sorted(set(self.index.names).intersection(names)))
        if not gone:
            return self
        if gone not in self._reduced:
            index = self.compile(gone)
            emitting = {self.index.names[i] for i in np.flatnonzero(self.emits)}
            emits = np.array([name in emitting for name in index.names], np.bool_)
            fingerprint = f"{self.fingerprint} without {xxhash.xxh3_64_hexdigest(repr(gone).encode())}"

            def compile(more: Collection[str]) -> Index:
                return self.compile({*gone, *more})

            self._reduced.clear()
            self._reduced[gone] = CompiledGroup(self.group, self.keys, index, emits, fingerprint, compile)
        return self._reduced[gone]


class GroupedSequences(Protocol):
    """The sequences of a book, by group. A `SequenceBook` of `plan` is one."""

    @property
    def buckets(self) -> int: ...

    @property
    def digests(self) -> Mapping[str, str]:
        """By name: what makes a subscription the same one as before."""
        ...

    @property
    def times(self) -> Mapping[str, Kind | None]:
        """By name: the kind of time that a subscription goes by."""
        ...

    @property
    def streams(self) -> Mapping[str, Schema]:
        """The streams that are fed."""
        ...

    @property
    def identity(self) -> str:
        """The same for the same subscriptions in the same groups."""
        ...

    @property
    def groups(self) -> list[str]: ...

    def compiled(self, group: str, bucket: int) -> CompiledGroup | None:
        """The index of a group in a bucket; None if the group has nothing there."""
        ...

    def needs(self, stream: str, group: str | None = None) -> frozenset[Path]:
        """The attributes of a stream that a group reads, in any bucket; without one, that some group reads."""
        ...

    def labels(self, name: str) -> str | None: ...
