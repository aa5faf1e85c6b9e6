"""Sequences fed so that a defect costs what raises it. An exception that leaves their engine ends nobody's session.

A feed that raised has left its session in pieces, so everything is done again from the state before it, which `Restore`
gives. First the batch is searched for the event that makes the difference, by halving it in the order of time; then the
subscriptions, by halving them too. If some raise on that event and others do not, those that do are set aside from then
on, with their runs. If all do, the event is. This is repeated until the rest goes through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from headgate.columns import Columns
from headgate.results import QUARANTINED, Problem, described
from headgate.runtime.quarantine import culprits
from headgate.runtime.rows import SequenceMatches, shown
from headgate.runtime.stateful.pages import EventIds, Page, Pages, decode
from headgate.sequences.arrivals import Until
from headgate.sequences.engine import Index, Session
from headgate.sequences.memory import Lists
from headgate.sequences.tables import ALIVE, Ints

log = logging.getLogger("headgate.runtime")
Without = Callable[[Collection[str]], Index]
"""An index without some of its subscriptions, compiled apart. What PUBLISHes stays, for others may read it."""
Restore = Callable[[Index], Session]
"""A session of an index, in the state from before the batch."""
ROUNDS = 64
ATTEMPTS = 64
"""So many parts of the book are tried for one event."""
SLACK = 1024
MOST_BATCHES = 4096


@dataclass(frozen=True)
class Batch:
    """Events of one stream. `decided` has the static predicates that hold, where these were evaluated before."""

    columns: Columns
    decided: Lists | None = None

    def take(self, rows: Ints) -> Batch:
        return Batch(self.columns.take(rows), None if self.decided is None else self.decided.take(rows))


@dataclass(frozen=True)
class Fed:
    """What a feed gave, and the session that goes on; where something was set aside it is another one."""

    session: Session
    found: SequenceMatches
    problems: Sequence[Problem]
    aside: dict[str, str] = field(default_factory=dict)
    """Subscriptions that were set aside, each with the reason."""


def feed(
    session: Session,
    batches: Sequence[Batch],
    until: Until | None,
    without: Without,
    restore: Restore,
    *,
    listing: bool = True,
) -> Fed:
    """Feeds a session. With `listing` the outputs of the matches are made too."""
    try:
        return _feed(session, batches, until, listing)
    except Exception as error:
        log.warning("sequences failed; looking for the cause", exc_info=error)
        return _Search(session.index, batches, until, without, restore, listing).fed()


def _feed(session: Session, batches: Iterable[Batch], until: Until | None, listing: bool) -> Fed:
    given = list(batches)
    matches = session.feed([b.columns for b in given], until, [b.decided for b in given])
    table = matches.to_arrow() if listing else None
    problems, session.errors = session.errors, []
    return Fed(session, SequenceMatches(matches, table), problems)


class _Search:
    def __init__(
        self,
        index: Index,
        batches: Sequence[Batch],
        until: Until | None,
        without: Without,
        restore: Restore,
        listing: bool,
    ) -> None:
        self._whole = index
        self._batches = batches
        self._until = until
        self._without = without
        self._restore = restore
        self._listing = listing
        self._places = _in_order(batches, index)
        self._left = list(range(len(self._places)))
        self._aside: dict[str, str] = {}
        self._problems: list[Problem] = []
        self._base = restore(index)

    def fed(self) -> Fed:
        for _ in range(ROUNDS):
            try:
                return self._done(self._attempt(self._base, self._left))
            except Exception as error:  # noqa: BLE001 - this is what is looked for
                last = error
                if not self._divide(error):
                    break
        for place in self._left:
            self._blame(place, last)
        log.error("sequences fail on more than can be set aside one by one: all runs end", exc_info=last)
        fresh = _moved(self._base, self._base.index.session())
        fresh.waiting = []
        return self._done(_feed(fresh, [], self._until, self._listing))

    def _done(self, fed: Fed) -> Fed:
        return replace(fed, problems=[*self._problems, *fed.problems], aside=self._aside)

    def _divide(self, error: Exception) -> bool:
        """Sets something aside: an event, or subscriptions. False if neither helps."""
        good, bad = -1, len(self._left)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                self._attempt(self._base, self._left[:middle])
                good = middle
            except Exception as why:  # noqa: BLE001 - as above
                bad, error = middle, why
        part = self._left[:bad]
        index = self._base.index
        names = [
            name
            for i, name in enumerate(index.names)
            if index.alive[i] and index.subscriptions[i].spine.publish is None
        ]

        def attempt(some: range) -> None:
            others = {*names[: some.start], *names[some.stop :], *self._aside}
            self._attempt(self._restore(self._without(others)), part)

        guilty = culprits(len(names), attempt, error, ATTEMPTS) if len(names) > 1 else {}
        if 0 < len(guilty) < len(names):
            fresh = {names[i]: f"set aside, because matching failed: {described(why)}" for i, why in guilty.items()}
            self._aside |= fresh
            self._base = self._restore(self._without(set(self._aside)))
            if part:
                self._problems += [self._problem(part[-1], reason, (name,)) for name, reason in fresh.items()]
            return True
        if part:
            self._blame(part[-1], error)
            self._left.remove(part[-1])
        return bool(part)

    def _blame(self, place: int, error: Exception) -> None:
        reason = f"set aside by sequences, because matching failed: {described(error)}"
        self._problems.append(self._problem(place, reason))

    def _problem(self, place: int, reason: str, names: tuple[str, ...] = ()) -> Problem:
        number, row = self._places[place]
        columns = self._batches[number].columns
        event = int(columns.row_numbers[row])
        return Problem(columns.stream, event, QUARANTINED, reason, shown(columns, row), names)

    def _attempt(self, base: Session, places: Iterable[int]) -> Fed:
        """These events alone, on a copy of a session."""
        rows: list[list[int]] = [[] for _ in self._batches]
        for place in places:
            number, row = self._places[place]
            rows[number].append(row)
        chosen = [b.take(np.array(sorted(r), np.int64)) for b, r in zip(self._batches, rows, strict=True)]
        if base.index is not self._whole:
            chosen = [Batch(b.columns) for b in chosen]
        return _feed(copied(base), chosen, self._until, self._listing)


def _in_order(batches: Sequence[Batch], index: Index) -> list[tuple[int, int]]:
    """The batch and the row of every event, in the order of time."""
    found = []
    for number, batch in enumerate(batches):
        schema = index.fed.get(batch.columns.stream)
        column = batch.columns.get(schema.time[-1]) if schema is not None and schema.time else None
        times = [0] * len(batch.columns) if column is None else np.asarray(column.values, np.int64).tolist()
        found += [(time, number, row) for row, time in enumerate(times)]
    return [(number, row) for _, number, row in sorted(found)]


def copied(session: Session) -> Session:
    """A session in the same state, apart from the first."""
    made = _moved(session, copy(session))
    made.tables = [table.copy() for table in session.tables]
    made.errors = list(session.errors)
    return made


def _moved(session: Session, to: Session) -> Session:
    """Gives a session the time of another, and what waits there."""
    to.clock = copy(to.clock)
    to.clock.closed, to.clock.tick = dict(session.clock.closed), session.clock.tick
    known = to.index.streams
    to.waiting = [
        replace(a, source=np.full(len(a), to.clock.sources.index(a.stream), np.int64), decided=None)
        for a in session.waiting
        if a.stream in known
    ]
    return to


def carried_over(session: Session, index: Index) -> Session:
    """The state of a session in one of another index: its time, and the runs that have a state there."""
    made = _moved(session, index.session())
    ids = EventIds()
    rows = np.unique(np.concatenate([table.memory.row[: table.memory.size] for table in session.tables]))
    ids.add(rows, pa.array(rows), np.zeros(len(rows), np.uint64))
    for _, data in Pages().changed(session, ids, everything=True):
        if data is not None:
            decode(made, Page.of(data), EventIds())
    return made


class Sequences:
    """The sequences of a session in this process. To be able to go back to before a feed, it has a copy of an earlier
    state and what was fed since; a copy is made when that has grown beyond the state itself, so it costs little."""

    def __init__(self, index: Index, without: Without) -> None:
        self._without = without
        self.session = index.session()
        self._earlier: Session | None = None
        """None: nothing had been fed."""
        self._since: list[tuple[list[Batch], Until | None]] = []
        self._events = 0
        self._aside: set[str] = set()

    def feed(self, batches: Sequence[Columns], until: Until | None, *, listing: bool) -> Fed:
        tables = self.session.tables
        size = sum(table.memory.size + int(table.runs.scalars[ALIVE]) for table in tables)
        if self._events > SLACK + size or len(self._since) >= MOST_BATCHES:
            self._keep()
        given = list(map(Batch, batches))
        fed = feed(self.session, given, until, self._reduced, self._restored, listing=listing)
        if fed.session is self.session:
            self._since.append((given, until))
            self._events += sum(len(b.columns) for b in given)
        else:
            self.session = fed.session
            self._aside |= fed.aside.keys()
            self._keep()
        return fed

    def _keep(self) -> None:
        self._earlier, self._since, self._events = copied(self.session), [], 0

    def _reduced(self, names: Collection[str]) -> Index:
        return self._without(self._aside.union(names))

    def _restored(self, index: Index) -> Session:
        if self._earlier is None:
            made = index.session()
        else:
            same = self._earlier.index is index
            made = copied(self._earlier) if same else carried_over(self._earlier, index)
        for batches, until in self._since:
            _feed(made, batches, until, False)
        return made
