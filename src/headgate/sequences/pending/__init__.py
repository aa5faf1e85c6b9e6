"""Predicates inside sequences that wait for operators: asked only if some run or start could use the answer.

The static pass decides what is cheap. What is left open on an event is *pending*. What starts a run is always of use, so
it is asked for the whole batch at once, and an operator that likes batches gets one. The rest waits until time has come
to the event's epoch: only then is it known which runs there are. `kernels.useful` says what they would ask next; an
answer may make another predicate useful, so it is asked again until nothing is. A call is made once an event, however
many predicates ask for it; what nobody could use is never asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from headgate.engine import Hits, PairProblem
from headgate.sequences.automaton import Edge
from headgate.sequences.kernels import advance
from headgate.sequences.memory import Arrivals
from headgate.sequences.pending.kernels import SETTLED, WANTED, useful
from headgate.sequences.static import Answers, Waiting
from headgate.sequences.tables import Batch, Ints, Runs, Tables


@dataclass(frozen=True, eq=False)
class Trouble:
    """A predicate that an operator could not decide on an event. It is about a slot, or about the edges that a run may
    take; None if the event itself is at fault."""

    arrivals: Arrivals
    row: int
    about: int | tuple[Edge, ...] | None
    reason: str
    code: str


@dataclass(frozen=True, eq=False)
class _Part:
    """The events of one stream, and the slots that the numbers of its predicates stand for."""

    waiting: Waiting
    arrivals: Arrivals
    slots: Ints


class Pending:
    """The pending predicates of one batch of a level. Events are named by their places in the merged order."""

    def __init__(self) -> None:
        self.troubles: list[Trouble] = []
        self._home: dict[int, tuple[_Part, int]] = {}
        self._open: dict[int, dict[int, int]] = {}
        """By event: the open slots, each with its number among the predicates of its stream."""
        self._held: dict[int, list[int]] = {}

    def add(self, waiting: Waiting, arrivals: Arrivals, places: Ints, slots: Ints) -> None:
        """What is open of one part: `places` are those of its events, `slots` those of its predicates."""
        part = _Part(waiting, arrivals, slots)
        pairs = waiting.pairs
        for row, number in zip(pairs.event.tolist(), pairs.slot.tolist(), strict=True):
            place = int(places[row])
            self._home[place] = part, row
            self._open.setdefault(place, {})[int(slots[number])] = number
        self._note(part, pairs.problems)

    def __bool__(self) -> bool:
        return bool(self._open)

    def places(self) -> list[int]:
        """The events on which something is open, in order."""
        return sorted(self._open)

    def open(self, place: int) -> Collection[int]:
        return self._open.get(place, ())

    def held(self, place: int) -> list[int]:
        """The slots that were asked on an event, and hold."""
        return self._held.get(place, [])

    def ask(self, wanted: Iterable[tuple[int, Sequence[int]]]) -> None:
        """Decide these open slots of these events, and forget that they were open."""
        parts: dict[int, tuple[_Part, list[tuple[int, int]]]] = {}
        places: dict[tuple[int, int], int] = {}
        for place, slots in wanted:
            part, row = self._home[place]
            open_ = self._open[place]
            found = parts.setdefault(id(part), (part, []))[1]
            found += [(row, open_.pop(slot)) for slot in slots]
            places[id(part), row] = place
            if not open_:
                del self._open[place]
        for key, (part, pairs) in parts.items():
            asked = np.array(sorted(pairs), np.int64).reshape(-1, 2)
            hits = part.waiting.ask(Hits(asked[:, 0], asked[:, 1].astype(np.int32)))
            for row, number in zip(hits.event.tolist(), hits.slot.tolist(), strict=True):
                self._held.setdefault(places[key, row], []).append(int(part.slots[number]))
            self._note(part, hits.problems)

    def _note(self, part: _Part, problems: Iterable[PairProblem]) -> None:
        for p in problems:
            slot = None if p.slot is None else int(part.slots[p.slot])
            self.troubles.append(Trouble(part.arrivals, p.event, slot, p.reason, p.code))

    def answered(self, place: int) -> Answers:
        """The answers of the calls that are made about an event, by key; it fills as more are made."""
        if place not in self._home:
            return {}
        part, row = self._home[place]
        return part.waiting.answered(row)

    def shown(self, place: int, known: frozenset[int]) -> Collection[int]:
        """The slots of an event for the stepper: what is open is decided when it is looked for."""
        if place not in self._home:
            return known
        return _Shown(self, place, known.union(self.held(place)))


class _Shown(Collection[int]):
    """What holds and what may hold; to look for a slot is to ask."""

    def __init__(self, pending: Pending, place: int, known: frozenset[int]) -> None:
        self._pending, self._place, self._known = pending, place, known

    def __iter__(self) -> Iterator[int]:
        return iter([*self._known, *self._pending.open(self._place)])

    def __len__(self) -> int:
        return len(self._known) + len(self._pending.open(self._place))

    def __contains__(self, slot: object) -> bool:
        if slot in self._known:
            return True
        if isinstance(slot, int) and slot in self._pending.open(self._place):
            self._pending.ask([(self._place, [slot])])
        return slot in self._pending.held(self._place)


def ask_starts(pending: Pending, starting: frozenset[int]) -> None:
    """Ask what starts a run, on all events."""
    wanted = [(place, [s for s in pending.open(place) if s in starting]) for place in pending.places()]
    pending.ask([(place, slots) for place, slots in wanted if slots])


def advance_asking(p: Tables, b: Batch, runs: Runs, pending: Pending) -> tuple[Runs, Ints]:
    """One batch through the kernel, which stops before each epoch that has something open; the accepted runs."""
    accepted: list[Ints] = []
    at = b.first
    state = np.zeros(len(p.slots), np.int64)
    epochs: dict[int, list[int]] = {}
    for place in pending.places():
        begin = int(np.searchsorted(b.t1[b.first :], b.t1[b.first + place])) + b.first
        epochs.setdefault(begin, []).append(place)
    stamp = 0
    for begin, places in epochs.items():
        runs, found = _segment(p, b, runs, at, begin, int(b.t1[begin]) - 1, pending)
        accepted.append(found)
        at = begin
        for place in places:
            known = b.hits[b.hit_from[place] : b.hit_from[place + 1]]
            while pending.open(place):
                stamp += 1
                holding = np.concatenate([known, np.array(pending.held(place), np.int64)])
                waiting = np.array(list(pending.open(place)), np.int64)
                useful(p, b, runs, b.first + place, holding, waiting, state, stamp)
                asked = waiting[state[waiting] == WANTED].tolist()
                state[waiting] = SETTLED
                if not asked:
                    break
                pending.ask([(place, asked)])
    runs, found = _segment(p, b, runs, at, len(b.t1), b.closed, pending)
    return runs, np.concatenate([*accepted, found])


def _segment(p: Tables, b: Batch, runs: Runs, start: int, end: int, closed: int, pending: Pending) -> tuple[Runs, Ints]:
    """The events from `start` to `end`, with what was answered about them."""
    first, count = start - b.first, end - start
    offsets = b.hit_from[first : first + count + 1]
    hits = b.hits
    more = [(i, slot) for i in range(count) for slot in pending.held(first + i)]
    if more:
        known = np.repeat(np.arange(count), np.diff(offsets))
        event, slot = np.array(more, np.int64).T
        event = np.concatenate([known, event])
        hits = np.concatenate([b.hits[offsets[0] : offsets[-1]], slot])[np.argsort(event, kind="stable")]
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(event, minlength=count), out=offsets[1:])
    part = b._replace(t0=b.t0[:end], t1=b.t1[:end], hit_from=offsets, hits=hits, first=start, closed=closed)
    out = np.zeros((64, p.width), np.int64)
    runs, out, accepted = advance(p, part, runs, out)
    return runs, out[:accepted]
