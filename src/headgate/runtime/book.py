"""What the loop asks of a compiled book. A `Plan` is one."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import NDArray

from headgate.covering.gates import GatedIndex
from headgate.engine import BatchIndex
from headgate.filters.engine import FilterIndex
from headgate.schema import Path, Schema
from headgate.sequences.engine import Index

if TYPE_CHECKING:
    from headgate.columns import Array

Dead = NDArray[np.bool_]


class CompiledSegment(Protocol):
    """Subscriptions that were compiled together. They are numbered; the indexes of a stream number their own slots, and
    `filter_slots` and `late_slots` give ours."""

    @property
    def names(self) -> Array: ...
    @property
    def labels(self) -> Array: ...
    @property
    def hashes(self) -> NDArray[np.uint64]: ...
    @property
    def filters(self) -> Mapping[str, FilterIndex | GatedIndex]: ...
    @property
    def filter_slots(self) -> Mapping[str, NDArray[np.int32]]: ...
    @property
    def late_slots(self) -> Mapping[str, NDArray[np.int32]]: ...
    @property
    def texts(self) -> Array: ...
    @property
    def modes(self) -> Array: ...
    @property
    def fingerprint(self) -> str: ...


Part = tuple[CompiledSegment, Dead | None, Mapping[str, BatchIndex]]
"""A segment, which of its subscriptions are gone, and by stream its index of what asks operators and graphs."""


class CompiledBook(Protocol):
    @property
    def schemas(self) -> Mapping[str, Schema]: ...

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that some subscription reads."""
        ...

    @property
    def total_streams(self) -> Collection[str]:
        """The streams with a subscription that wants every attribute to be there."""
        ...

    @property
    def sequences(self) -> Index | None: ...
    def needs(self, stream: str) -> frozenset[Path]: ...

    def parts(self) -> Iterator[Part]: ...

    @property
    def apart(self) -> MutableMapping[str, Sequence[Part]]:
        """By fingerprint: the parts that stand for a segment in which an engine failed on some subscription."""
        ...

    def portion(self, segment: CompiledSegment, slots: NDArray[np.int64]) -> Part:
        """Some subscriptions of a segment, compiled apart: to find out which of them an engine fails on."""
        ...

    def labels(self, name: str) -> str | None: ...
