"""One bucket: the state of the sequences there, and what a batch of events does to it. No Spark in here.

    state + what was sent + the rules of time  ->  matches, late events, new state

An event waits until its epoch is below the watermark; then all epochs that are, are fed together, so the matches do not
depend on how the input was cut or in which order it came. State is a head, pages of runs, and the events that wait; the
head has a stamp of its own each time it is written, by which a process knows whether what it remembers is still right.

A subscription that comes while the query runs sees the events after the latest one that any bucket was told of before
its first batch: all later ones were sent by a pass that knew it. Every bucket was told the same, so they agree.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from headgate.columns import Column, Columns
from headgate.errors import PlanError, UsageError
from headgate.results import Problem, Problems, id_texts, problem_rows, with_errors
from headgate.runtime.rows import SequenceMatches, shown
from headgate.runtime.sequences import Batch, feed
from headgate.runtime.stateful.group import CompiledGroup, GroupedSequences
from headgate.runtime.stateful.packing import EVENTS, TICK, Packed, Sent, pack, unpack
from headgate.runtime.stateful.pages import Choose, EventIds, Page, Pages, decode
from headgate.runtime.stateful.route import hashes
from headgate.runtime.stateful.state_storage import BOOK, HEAD, StateStorage, page_name, waiting_name
from headgate.runtime.stateful.watermark import Time, Timing, lateness
from headgate.schema import Kind, Type
from headgate.sequences.engine import Index, Session

FORMAT = 1
Times = Mapping[Kind, int]
"""For each kind of time a moment of it."""
_EVER = (np.iinfo(np.int64).min, np.iinfo(np.int64).max)
REBUCKET = "headgate run CONFIG --rebucket"


@dataclass
class Outcome:
    """What a bucket gives. `activated` has the newcomers, each with the time after which it sees events."""

    tables: list[pa.Table] = field(default_factory=list)
    activated: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    """Runs that no subscription waits for any more."""


@dataclass
class _Chunk:
    """Events that wait together; rows before `first` are done."""

    key: str
    first: int
    last: int
    kind: Kind | None = None
    """None of a state that was written when all streams had one time: their events tell."""
    events: Packed | None = None


@dataclass
class _Group:
    name: str
    fingerprint: str = ""
    rows: int = 0
    """Row numbers given so far."""
    chunks: list[_Chunk] = field(default_factory=list)
    serial: int = 0
    pages: Pages = field(default_factory=Pages)
    session: Session | None = None
    ids: EventIds = field(default_factory=EventIds)

    def saved(self) -> dict[str, Any]:
        return {
            "fingerprint": self.fingerprint,
            "rows": self.rows,
            "chunks": [[c.key, c.first, c.last, c.kind] for c in self.chunks],
            "serial": self.serial,
            "count": self.pages.count,
            "pages": [[page, str(digest)] for page, digest in self.pages.written.items()],
        }

    @classmethod
    def of(cls, name: str, saved: Mapping[str, Any]) -> _Group:
        written = {page: int(digest) for page, digest in saved["pages"]}
        chunks = [_Chunk(c[0], c[1], c[2], Kind(c[3]) if c[3:] else None) for c in saved["chunks"]]
        return cls(name, saved["fingerprint"], saved["rows"], chunks, saved["serial"], Pages(saved["count"], written))


class Bucket:
    def __init__(self, number: int, buckets: int, generation: int = 0) -> None:
        self.number = number
        self.buckets = buckets
        self.generation = generation
        """How often the checkpoint was dealt out anew."""
        self.time = Time()
        self.groups: dict[str, _Group] = {}
        self.book = ""
        self.since: dict[str, int] = {}
        self.known: dict[str, str] = {}
        """The subscriptions there were, each with its digest."""
        self.aside: dict[str, str] = {}
        """The subscriptions that were set aside because of a defect, each with the reason. Not part of the state: another
        process, or another book, tries them again."""
        self.stamp = ""
        self.alarm: int | None = None
        """When this bucket will be asked again, in processing time, should nothing come."""

    # -- state

    @classmethod
    def load(cls, number: int, buckets: int, kept: StateStorage, generation: int = 0) -> Bucket:
        made = cls(number, buckets, generation)
        data = kept.get(HEAD)
        if data is None:
            return made
        head = orjson.loads(data)
        if head["format"] != FORMAT:
            raise PlanError(
                f"the state of bucket {number} has format {head['format']}, this program reads {FORMAT}",
                "start it with the program that wrote it, or with a new checkpoint",
            )
        if head["buckets"] != buckets:
            raise UsageError(
                f"the checkpoint has {head['buckets']} buckets, and the query asks for {buckets}",
                f"ask for {head['buckets']}, or deal the checkpoint out anew: {REBUCKET}",
            )
        made.stamp, made.book, made.time = head["stamp"], head["book"], Time.of(head["time"])
        made.alarm, made.generation = head["alarm"], head["generation"]
        made.groups = {name: _Group.of(name, saved) for name, saved in head["groups"].items()}
        book = orjson.loads(kept.get(BOOK) or b"{}")
        made.known = {name: digest for name, (digest, _) in book.items()}
        made.since = {name: since for name, (_, since) in book.items() if since is not None}
        return made

    def write_head(self, kept: StateStorage) -> None:
        self.stamp = uuid.uuid4().hex
        head = {
            "format": FORMAT,
            "stamp": self.stamp,
            "buckets": self.buckets,
            "generation": self.generation,
            "book": self.book,
            "alarm": self.alarm,
            "time": self.time.saved(),
            "groups": {name: g.saved() for name, g in self.groups.items()},
        }
        kept.put(HEAD, orjson.dumps(head))

    # -- one batch

    def advance(
        self,
        book: GroupedSequences | None,
        sent: Iterable[Sent],
        timing: Timing,
        kept: StateStorage,
        now: int = -1,
        *,
        final: bool = False,
    ) -> Outcome:
        """Takes what was sent. Without a book nobody is left, but time goes on. With `final` nothing comes afterwards:
        all epochs are fed, and nothing is kept."""
        outcome = Outcome()
        before = dict(self.time.open)
        self._follow(book, timing, kept, outcome)
        arrived: dict[str, list[Packed]] = {}
        for row in sent:
            if row.kind == EVENTS:
                arrived.setdefault(row.group, []).append(unpack(row.payload))
            elif row.kind == TICK and row.latest is not None:
                self.time.tell(row.stream, row.latest, timing, now)
        now_open = self.time.advance(timing, now)
        if final:
            now_open = self.time.open = {kind: latest + 1 for kind, latest in self.time.latest(timing).items()}
        for name in sorted({*self.groups, *arrived}):
            made = None if book is None else book.compiled(name, self.number)
            if book is None or made is None:
                self._drop(name, kept)
                continue
            made = made.without(self.aside)
            group = self.groups.setdefault(name, _Group(name))
            events = self._timely(arrived.get(name, ()), made, before, timing, now, outcome)
            self._group(group, made, book, events, before, now_open, kept, outcome, final)
        return outcome

    def report(self, outcome: Outcome, timing: Timing, now: int) -> dict[str, Any]:
        """What the driver should know. What all buckets know alike, one of them tells."""
        said: dict[str, Any] = {"lost": outcome.lost} if outcome.lost else {}
        if self.number == 0:
            said["time"] = self.time.open.get(Kind.TIMESTAMP, self.time.open.get(Kind.BIGINT))
            if outcome.activated:
                said["activated"] = outcome.activated
            if idle := self.time.idle(timing, now):
                said["idle"] = idle
        return said

    def _follow(self, book: GroupedSequences | None, timing: Timing, kept: StateStorage, outcome: Outcome) -> None:
        """Takes up the book of this batch; newcomers begin after the latest event of their time so far."""
        identity, known = ("", {}) if book is None else (book.identity, book.digests)
        if identity == self.book:
            return
        fresh = [name for name, digest in known.items() if self.known.get(name) != digest]
        self.since = {n: s for n, s in self.since.items() if n in known and n not in fresh}
        if book is not None:
            latest = self.time.latest(timing)
            outcome.activated = {n: latest[kind] for n in fresh if (kind := book.times[n]) in latest}
            self.since.update(outcome.activated)
        self.known, self.book, self.aside = dict(known), identity, {}
        kept.put(BOOK, orjson.dumps({n: [d, self.since.get(n)] for n, d in known.items()}) if known else None)

    def _drop(self, name: str, kept: StateStorage) -> None:
        """Nobody is left in this group."""
        group = self.groups.pop(name, None)
        if group is not None:
            for page in group.pages.written:
                kept.put(page_name(name, page), None)
            for chunk in group.chunks:
                kept.put(waiting_name(chunk.key), None)

    def _timely(
        self,
        arrived: Sequence[Packed],
        made: CompiledGroup,
        before: Times,
        timing: Timing,
        now: int,
        outcome: Outcome,
    ) -> list[tuple[Packed, Any]]:
        """The events that are neither late nor far in the future, each with its time; the others are told."""
        timely = []
        for events in arrived:
            time, kind = _times(events, made), _kind(events, made)
            first = before.get(kind, _EVER[0])
            last = _EVER[1] if (limit := timing.limit(events.columns.stream, now)) is None else limit
            bad = (time < first) | (time > last)
            if bad.any():
                self._tell(events, np.flatnonzero(bad & events.tells), time, first, timing, outcome)
                events, time = events.take(np.flatnonzero(~bad)), time[~bad]
            if len(events):
                timely.append((events, time))
        return timely

    def _tell(self, events: Packed, rows: Any, time: Any, first: int, timing: Timing, outcome: Outcome) -> None:
        """An event that is not late has come too early."""
        if not len(rows):
            return
        stream = events.columns.stream
        clocks = timing.kind(stream) is Kind.TIMESTAMP
        late, early = "it is late by {}: its epoch is closed already", "its time is in the future: some clock is wrong"
        problems = [
            Problem(
                stream,
                row,
                "late",
                late.format(lateness(first - int(time[row]), clocks)) if time[row] < first else early,
                shown(events.columns, row),
            )
            for row in rows.tolist()
        ]
        outcome.tables.append(problem_rows(problems, events.ids))

    def _group(
        self,
        group: _Group,
        made: CompiledGroup,
        book: GroupedSequences,
        events: list[tuple[Packed, Any]],
        before: Times,
        now_open: Times,
        kept: StateStorage,
        outcome: Outcome,
        final: bool,
    ) -> None:
        due = list(self._waited(group, made, before, now_open, kept))
        for packed, time in events:
            kind = _kind(packed, made)
            later = time >= now_open.get(kind, _EVER[0])
            if later.any():
                self._wait(group, packed.take(np.flatnonzero(later)), time[later], kind, kept)
                packed = packed.take(np.flatnonzero(~later))
            if len(packed):
                due.append(packed)
        moved = now_open != before
        changed = group.fingerprint != made.fingerprint
        if not due and not changed and not (moved and any(level.watches_time for level in made.index.levels)):
            return
        session = self._session(group, made, before, kept, outcome)
        if now_open:
            outcome.tables += self._feed(group, made, book, due, before, now_open, kept, outcome)
        if final:
            return
        changed = changed or group.session is not session
        session = group.session or session
        for page, data in group.pages.changed(session, group.ids, everything=changed):
            kept.put(page_name(group.name, page), data)
        group.ids.forget(session)

    def _wait(self, group: _Group, events: Packed, time: Any, kind: Kind, kept: StateStorage) -> None:
        key = f"{group.name}/{group.serial}"
        group.serial += 1
        group.chunks.append(_Chunk(key, int(time.min()), int(time.max()), kind, events))
        kept.put(waiting_name(key), pack(events, events.columns.columns))

    def _waited(
        self, group: _Group, made: CompiledGroup, before: Times, now_open: Times, kept: StateStorage
    ) -> Iterable[Packed]:
        """The waiting events whose time has come."""
        rest = []
        for chunk in group.chunks:
            if chunk.kind is not None and chunk.first >= now_open.get(chunk.kind, _EVER[0]):
                rest.append(chunk)
                continue
            if chunk.events is None:
                data = kept.get(waiting_name(chunk.key))
                if data is None:
                    raise PlanError(f"bucket {self.number} lacks the waiting events {chunk.key}")
                chunk.events = unpack(data)
            time, chunk.kind = _times(chunk.events, made), _kind(chunk.events, made)
            end = now_open.get(chunk.kind, _EVER[0])
            due = (time < end) & (time >= before.get(chunk.kind, _EVER[0]))
            if due.any():
                yield chunk.events.take(np.flatnonzero(due))
            if chunk.last >= end:
                chunk.first = int(time[time >= end].min())
                rest.append(chunk)
            else:
                kept.put(waiting_name(chunk.key), None)
        group.chunks = rest

    # -- dealt out anew

    def take_up(self, made: CompiledGroup, pages: Sequence[tuple[Page, Choose]], rows: int, kept: StateStorage) -> None:
        """Begins a group with chosen runs of other buckets; row numbers go on from `rows`."""
        group = self.groups[made.group] = _Group(made.group, made.fingerprint, rows)
        group.session = made.activated(self.since).session()
        for page, choose in pages:
            decode(group.session, page, group.ids, choose)
        for number, data in group.pages.changed(group.session, group.ids, everything=True):
            kept.put(page_name(group.name, number), data)

    def put_off(self, made: CompiledGroup, events: Packed, kept: StateStorage) -> None:
        """Lets events of other buckets wait, as far as they are not done."""
        time = _times(events, made)
        kind = _kind(events, made)
        left = np.flatnonzero(time >= self.time.open.get(kind, _EVER[0]))
        if len(left):
            self._wait(self.groups[made.group], events.take(left), time[left], kind, kept)

    def _session(
        self, group: _Group, made: CompiledGroup, before: Times, kept: StateStorage, outcome: Outcome
    ) -> Session:
        """The session of a group: the one in memory, or one made from its pages."""
        if group.session is None or group.fingerprint != made.fingerprint:
            group.ids = EventIds()
            group.session = self._restored(made.activated(self.since), group, before, kept, outcome)
            group.fingerprint = made.fingerprint
            group.pages.clean(group.session)
        return group.session

    def _restored(self, index: Index, group: _Group, before: Times, kept: StateStorage, outcome: Outcome) -> Session:
        """A session with the runs that were written last."""
        session = index.session()
        session.clock.resume({kind: time - 1 for kind, time in before.items()})
        for page in sorted(group.pages.written):
            data = kept.get(page_name(group.name, page))
            if data is None:
                raise PlanError(f"bucket {self.number} lacks page {page} of {group.name}", "its state is damaged")
            there, found = decode(session, Page.of(data), group.ids)
            outcome.lost += there - found
        return session

    def _feed(
        self,
        group: _Group,
        made: CompiledGroup,
        book: GroupedSequences,
        due: list[Packed],
        before: Times,
        now_open: Times,
        kept: StateStorage,
        outcome: Outcome,
    ) -> list[pa.Table]:
        assert group.session is not None
        batches = []
        for events in due:
            columns = _filled(events.columns, made)
            rows = group.rows + np.arange(len(events), dtype=np.int64)
            group.rows += len(events)
            key = made.keys.get(columns.stream)
            keys = np.zeros(len(rows), np.uint64) if key is None else hashes(columns[key])
            group.ids.add(rows, events.ids, keys)
            # What waited while the book changed was decided by another index: it is decided again.
            decided = events.slots if events.decided_by == made.fingerprint else None
            batches.append(Batch(replace(columns, numbers=rows, identity=id_texts(events.ids)), decided))

        def without(names: Collection[str]) -> Index:
            return made.without(names).activated(self.since)

        def restored(index: Index) -> Session:
            return self._restored(index, group, before, kept, Outcome())

        fed = feed(group.session, batches, now_open, without, restored)
        if fed.aside:
            self.aside |= fed.aside
            made = made.without(fed.aside)
        group.session, group.fingerprint = fed.session, made.fingerprint
        table = self._matches(fed.found, made, book, group.ids)
        tables = [] if table is None else [table]
        if fed.problems:
            tables.append(self._problems(fed.problems, [b.columns for b in batches], group.ids))
        return tables

    def _problems(self, found: Sequence[Problem], batches: Sequence[Columns], ids: EventIds) -> pa.Table:
        """Events at which an operator failed or a quota dropped runs. Groups that share an event give its error one id."""
        wanted = [p.event for p in found]
        places = {
            (b.stream, int(b.row_numbers[row])): (b, int(row))
            for b in batches
            for row in np.flatnonzero(np.isin(b.row_numbers, wanted))
        }
        numbers = {row: i for i, row in enumerate(dict.fromkeys(wanted))}
        problems = Problems()
        for p in found:
            at = places.get((p.stream, p.event))
            problems.add([replace(p, event=numbers[p.event], text="" if at is None else shown(*at))])
        return problem_rows(problems.listed(), ids.take(np.array(list(numbers), np.int64)))

    def _matches(
        self, found: SequenceMatches, made: CompiledGroup, book: GroupedSequences, ids: EventIds
    ) -> pa.Table | None:
        told, table = np.flatnonzero(made.emits[found.matches.subscription]), found.table
        if not len(told) or table is None:
            return None
        if len(told) < len(table):
            table = table.take(told)
        events = ids.take(table.column("event").to_numpy())
        names = table.column("subscription").to_pylist()
        labels = {name: book.labels(str(name)) for name in set(names)}
        rows = table.append_column("labels", pa.array([labels[n] for n in names], pa.string()))
        return with_errors(rows.set_column(rows.schema.get_field_index("event"), "event", events))


def _filled(columns: Columns, made: CompiledGroup) -> Columns:
    """With what was not sent: events that wait were sent before some newcomer came, who does not see them anyway."""
    schema = made.index.streams[columns.stream]
    lacking = {p: schema.get(p) for p in made.needs(columns.stream) if columns.get(p) is None}
    if not lacking:
        return columns
    empty = {
        path: Column.missing((a.type if a is not None else None) or Type(Kind.STRING), columns.rows)
        for path, a in lacking.items()
    }
    return replace(columns, columns={**columns.columns, **empty})


def _times(events: Packed, made: CompiledGroup) -> Any:
    schema = made.index.streams[events.columns.stream]
    return np.asarray(events.columns[schema.time[-1]].values, np.int64)


def _kind(events: Packed, made: CompiledGroup) -> Kind:
    kind = made.index.streams[events.columns.stream].time_kind
    assert kind is not None, "what has no TIME is not sent"
    return kind
