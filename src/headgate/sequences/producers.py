"""The patterns that run in a level, as columns: what many have in common is a kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headgate.sequences.memory import Lists
from headgate.sequences.publish_levels import Producer
from headgate.sequences.spine_table import Spines
from headgate.sequences.tables import Ints


@dataclass(frozen=True, slots=True)
class ProducerKind:
    """The streams that producers read by place, their mode and quota, and the stream that their rows form, if any."""

    streams: tuple[str, ...]
    missing: str
    quota: int
    gives: str | None


@dataclass(frozen=True, eq=False)
class Producers(Sequence[Producer]):
    kinds: tuple[ProducerKind, ...]
    kind: Ints
    spine: Ints
    subscription: Ints
    """The number of the subscription; -1 for what is nested in others."""
    _spines: Spines | None = field(default=None, repr=False)
    _names: Sequence[str] = field(default=(), repr=False)

    @property
    def spines(self) -> Spines:
        assert self._spines is not None
        return self._spines

    def __len__(self) -> int:
        return len(self.kind)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return [self[i] for i in range(*at.indices(len(self)))]
        kind, mine = self.kinds[int(self.kind[at])], int(self.subscription[at])
        return Producer(
            self.spines[int(self.spine[at])],
            kind.streams,
            kind.missing,
            kind.quota,
            () if mine < 0 else (mine,),
            kind.gives,
            "" if mine < 0 else self._names[mine],
        )

    @property
    def subscribers(self) -> Lists:
        """The subscriptions of each producer."""
        offsets = np.zeros(len(self) + 1, np.int64)
        np.cumsum(self.subscription >= 0, out=offsets[1:])
        return Lists(offsets, self.subscription[self.subscription >= 0])

    @property
    def givers(self) -> frozenset[int]:
        """The producers whose rows are events of a stream."""
        giving = np.array([kind.gives is not None for kind in self.kinds], np.bool_)
        return frozenset(np.flatnonzero(giving[self.kind]).tolist() if len(self) else [])
