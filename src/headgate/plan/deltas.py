"""Base, deltas, tombstones, merge: how whatever was compiled of a book follows its changes. All families go by these rules.

What was compiled stays as it is. New subscriptions form a small delta beside it; removed ones get a tombstone. When there
are many deltas they become one, as in a log-structured merge tree; when what lies beside the base has grown, everything
becomes one base again, in the background where it takes long (see `merge`). A plan is this, in memory; on Spark its
segments are files, so that a change moves a small one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from headgate.plan.segment import Entry, Segment

Dead = NDArray[np.bool_]
"""Which slots of a segment are gone."""
MOST_DELTAS = 8
LEAST = 1000
"""Below so many subscriptions beside the base, in deltas and under tombstones, a merge is not worth its while."""
SHARE = 0.25
"""Nor below this share of the base."""


def due(base: int, beside: int) -> bool:
    """Whether so much lies beside the base that merging pays."""
    return beside >= max(LEAST, SHARE * base)


def beside(segments: Sequence[Segment], dead: Sequence[Dead | None]) -> int:
    """How many subscriptions lie in deltas and under tombstones."""
    return sum(map(len, segments[1:])) + sum(int(d.sum()) for d in dead if d is not None)


def laid_over(
    segments: Sequence[Segment],
    dead: Sequence[Dead | None],
    entries: Mapping[str, Entry],
    changed: Collection[str],
    compiled: Callable[[Mapping[str, Entry]], Segment],
) -> tuple[tuple[Segment, ...], tuple[Dead | None, ...]]:
    """Segments and tombstones after some entries of the book were added, altered or removed."""
    kept, gone = list(segments), [None if d is None else d.copy() for d in dead]
    for name in changed:
        for i, segment in enumerate(kept):
            slot = segment.slot(name)
            if slot is not None:
                mask = gone[i]
                if mask is None:
                    mask = gone[i] = np.zeros(len(segment), np.bool_)
                mask[slot] = True
    new = {name: entries[name] for name in changed if name in entries and not entries[name].paused}
    if len(kept) > MOST_DELTAS:
        new = {**dict(alive(kept[1:], gone[1:])), **new}
        kept, gone = kept[:1], gone[:1]
    if new:
        kept.append(compiled(new))
        gone.append(None)
    return tuple(kept), tuple(gone)


def alive(segments: Iterable[Segment], dead: Iterable[Dead | None]) -> Iterator[tuple[str, Entry]]:
    """The subscriptions that are not gone."""
    for segment, mask in zip(segments, dead, strict=True):
        for slot in range(len(segment)) if mask is None else np.flatnonzero(~mask):
            yield segment.names[int(slot)].as_py(), segment.entry(int(slot))
