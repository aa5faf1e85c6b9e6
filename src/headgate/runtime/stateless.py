"""Matching without state: a batch against the segments of a compiled book.

Of each segment the filters come first, then what waits for graphs and operators. What these cannot decide is a problem of
the event and of the subscriptions that asked. An exception that leaves an engine is a defect; it costs the pairs that
raise it, and nobody else (see `quarantine`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.covering.gates import GatedIndex
from headgate.engine import BatchIndex, Hits, PairProblem
from headgate.events import Decoded
from headgate.filters.engine import FilterIndex
from headgate.results import Problem, Problems, binding_text
from headgate.runtime.book import CompiledBook, CompiledSegment, Part
from headgate.runtime.quarantine import survive
from headgate.runtime.rows import SegmentMatches, shown, times


@dataclass(frozen=True)
class Decided:
    """What the indexes of a segment say of a batch; slots are those of the two indexes."""

    filters: Hits
    counts: NDArray[np.int64]
    """Of the filters, where their pairs are not wanted."""
    late: Hits


_NONE = Hits.none()
_NOTHING = np.zeros(0, np.int64)


def run(
    columns: Columns, filters: FilterIndex | GatedIndex | None, late: BatchIndex | None, *, listing: bool
) -> Decided:
    """A batch of one stream against the indexes of a segment: filters, then graphs and operators for what these leave
    open. If not `listing`, the pairs of the filters are only counted."""
    return Decided(
        filters.evaluate(columns) if filters is not None and listing else _NONE,
        filters.count(columns) if filters is not None and not listing else _NOTHING,
        late.evaluate(columns) if late is not None else _NONE,
    )


def find(book: CompiledBook, events: Decoded, problems: Problems) -> list[SegmentMatches]:
    """The matches of everything but sequences."""
    if not events.columns.rows:
        return []
    time = times(events.columns, events.rows, book.schemas.get(events.columns.stream))
    made: list[SegmentMatches] = []
    for part, some, work in _evaluated(book, events, problems, listing=True):
        own = time if some is events else time[np.searchsorted(events.rows, some.rows)]
        made += _matches(part, some, own, work)
    return made


def count(book: CompiledBook, events: Decoded, problems: Problems) -> Counter[str]:
    """How often each subscription matched; those that did not are left out. Plain filters are counted, not listed."""
    counts: Counter[str] = Counter()
    stream = events.columns.stream
    for (segment, dead, _), _, work in _evaluated(book, events, problems, listing=False):
        for numbers, hits in (
            (segment.filter_slots.get(stream), work.counts),
            (segment.late_slots.get(stream), np.bincount(work.late.slot)),
        ):
            hit = np.flatnonzero(hits)
            if numbers is None or not len(hit):
                continue
            for slot, n in zip(numbers[hit].tolist(), hits[hit].tolist(), strict=True):
                if dead is None or not dead[slot]:
                    counts[segment.names[slot].as_py()] += n
    return counts


def _evaluated(
    book: CompiledBook, events: Decoded, problems: Problems, *, listing: bool
) -> Iterator[tuple[Part, Decoded, Decided]]:
    """The work of each segment; of some of the events, and some of its subscriptions, where others had to be set aside."""
    stream = events.columns.stream

    def attempt(some: Decoded, part: Part) -> Decided:
        segment, _, late = part
        return run(some.columns, segment.filters.get(stream), late.get(stream), listing=listing)

    for whole in book.parts():
        key = whole[0].fingerprint
        for at, part in enumerate(parts := book.apart.get(key, (whole,))):
            try:
                done: Iterable[tuple[Part, Decoded, Decided]] = [(part, events, attempt(events, part))]
            except Exception as error:  # noqa: BLE001 - a defect of an engine must not stop the others
                survived = survive(book, events, part, attempt, error)
                problems.add(survived.problems)
                book.apart[key] = (*parts[:at], *survived.parts, *parts[at + 1 :])
                done = survived.done
            for used, some, work in done:
                if work.late.problems:
                    problems.add(_problems(work.late.problems, used[0], some))
                yield used, some, work


def _matches(part: Part, events: Decoded, time: NDArray[np.int64], work: Decided) -> Iterator[SegmentMatches]:
    segment, dead, _ = part
    stream = events.columns.stream
    for numbers, hits in (
        (segment.filter_slots.get(stream), work.filters),
        (segment.late_slots.get(stream), work.late),
    ):
        if numbers is None or not len(hits):
            continue
        slot = numbers[hits.slot].astype(np.int64)
        output = None if hits.binding is None else list(map(binding_text, hits.binding))
        made = SegmentMatches(segment, events.columns, events.rows, time, hits.event, slot, output)
        yield made if dead is None else made.alive(dead)


def _problems(pairs: Iterable[PairProblem], segment: CompiledSegment, events: Decoded) -> Iterator[Problem]:
    """What operators and graphs could not decide: one problem for a cause, with all the subscriptions that asked."""
    stream = events.columns.stream
    slots = segment.late_slots.get(stream)
    causes: dict[tuple[int, str, str], list[int]] = {}
    for p in pairs:
        asked = causes.setdefault((p.event, p.code, p.reason), [])
        if p.slot is not None and slots is not None:
            asked.append(int(slots[p.slot]))
    for (row, code, reason), asked in causes.items():
        names = tuple(map(str, segment.names.take(np.array(asked, np.int64)).to_pylist()))
        yield Problem(stream, int(events.rows[row]), code, reason, shown(events.columns, row), names)
