"""The plan: segments, tombstones over them, and the schemas of the streams. Immutable; safe for any number of threads.

A change of the book makes a new plan that shares the segments of the old one. New subscriptions form a small delta
segment; removed ones get a tombstone. Small deltas are merged as they gather, as in a log-structured merge tree, so that
there are never more than a few.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakSet

import numpy as np
import xxhash
from numpy.typing import NDArray

from headgate.columns import Columns
from headgate.covering.gates import GatedIndex
from headgate.errors import EventError, PlanError, UnknownName, UsageError
from headgate.events import decode
from headgate.explain import Explanation
from headgate.explain.filters import explain_filter
from headgate.explain.late import explain_late
from headgate.explain.sequences import explain_sequence, streams_of
from headgate.filters.engine import nbytes
from headgate.language import ast
from headgate.language.ast import Path
from headgate.language.catalogue import Catalogue, nearest
from headgate.language.forms import cut_text
from headgate.match.residual import LateIndex
from headgate.plan import file
from headgate.plan.compile_context import CompileContext, Signatures
from headgate.plan.segment import Entry, Family, Segment, collector_paused, compile_segment
from headgate.plan.sequences import Living
from headgate.results import Problems
from headgate.runtime.book import CompiledSegment, Part
from headgate.runtime.imprecise import Imprecise
from headgate.runtime.session import Session, raise_first
from headgate.schema import Schema
from headgate.sequences.engine import Index
from headgate.sequences.saved import open_index, save_index

Dead = NDArray[np.bool_]
MOST_DELTAS = 8
_NONE = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Plan:
    catalogue: Catalogue
    segments: tuple[Segment, ...]
    dead: tuple[Dead | None, ...]
    """For each segment which of its slots are gone; None if none is."""
    context: CompileContext = field(default_factory=CompileContext, repr=False)
    sessions: WeakSet[Session] = field(default_factory=WeakSet, init=False, repr=False, compare=False)
    """Those under way, whose runs `stats` counts."""
    apart: dict[str, Sequence[Part]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """By fingerprint: the parts that stand for a segment in which an engine failed on some subscription."""

    @classmethod
    def of(
        cls,
        entries: Mapping[str, Entry],
        catalogue: Catalogue,
        context: CompileContext,
        previous: Plan | None,
        changed: list[str],
        samples: Mapping[str, Columns] | None = None,
        *,
        cover: bool = False,
    ) -> Plan:
        """The plan of a book: of all of it, or of what has changed since a previous plan laid over that one."""
        kept = catalogue.copy()
        schemas = kept.streams
        if previous is None:
            segment = compile_segment(entries, schemas, samples, cover=cover)
            return cls(kept, (segment,), (None,), context)._checked()
        segments, dead = list(previous.segments), [None if d is None else d.copy() for d in previous.dead]
        for name in changed:
            for i, segment in enumerate(segments):
                slot = segment.slot(name)
                if slot is not None:
                    mask = dead[i]
                    if mask is None:
                        mask = dead[i] = np.zeros(len(segment), np.bool_)
                    mask[slot] = True
        new = {name: entries[name] for name in changed if name in entries and not entries[name].paused}
        if len(segments) > MOST_DELTAS:
            alive = dict(_alive(segments[1:], dead[1:]))
            alive.update(new)
            segments, dead, new = segments[:1], dead[:1], alive
        if new:
            segments.append(compile_segment(new, schemas, cover=cover))
            dead.append(None)
        return cls(kept, tuple(segments), tuple(dead), context)._checked()

    def _checked(self) -> Plan:
        """What is built beside the arrays is built now, so that its errors are those of `compile`."""
        for segment in self.segments:
            self.context.late(segment, self.catalogue)
        self.sequences  # noqa: B018 - compiled here and kept
        return self

    @property
    def schemas(self) -> Mapping[str, Schema]:
        return self.catalogue.streams

    @cached_property
    def sequences(self) -> Index | None:
        """The compiled sequences of all segments."""
        living: list[Living] = []
        for segment, dead in zip(self.segments, self.dead, strict=True):
            slots = segment.sequence_slots
            slots = slots if dead is None else slots[~dead[slots]]
            if len(slots):
                living.append((segment, slots))
        return self.context.sequences.index(living, self.catalogue)

    def sequences_without(self, names: Collection[str]) -> Index:
        """The sequences without some of them, compiled apart."""
        found = {n: e for n, e in _alive(self.segments, self.dead) if e.family is Family.SEQUENCE}
        return self.context.sequences.without(names, found, self.catalogue)

    def __len__(self) -> int:
        return sum(len(s) - (0 if d is None else int(d.sum())) for s, d in zip(self.segments, self.dead, strict=True))

    def needs(self, stream: str) -> frozenset[Path]:
        """The attributes that matching on this stream reads."""
        found = [s.filters[stream].needs for s in self.segments if stream in s.filters]
        found += [late[stream].needs for _, _, late in self.parts() if stream in late]
        if self.sequences is not None:
            found.append(self.sequences.needs().get(stream, frozenset()))
        return frozenset().union(*found)

    @cached_property
    def total_streams(self) -> frozenset[str]:
        """The streams with a subscription that wants every attribute to be there."""
        found: set[str] = set()
        for segment, dead in zip(self.segments, self.dead, strict=True):
            modes: Any = segment.modes
            words = modes.dictionary.to_pylist()
            if "total" not in words:
                continue
            total = np.flatnonzero(modes.indices.to_numpy() == words.index("total"))
            alive = total if dead is None else total[~dead[total]]
            found.update(segment.streams[int(slot)].as_py() for slot in alive)
        return frozenset(found)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that some subscription reads."""
        found = dict.fromkeys(s for segment in self.segments for s in (*segment.filters, *segment.late_slots))
        if self.sequences is not None:
            found.update(dict.fromkeys(self.sequences.needs()))
        return tuple(found)

    @property
    def fingerprint(self) -> str:
        state = xxhash.xxh3_128()
        for segment, dead in zip(self.segments, self.dead, strict=True):
            state.update(segment.fingerprint.encode())
            if dead is not None:
                state.update(np.packbits(dead).tobytes())
        if self.catalogue.ontologies or self.catalogue.templates:
            state.update(repr(self.catalogue.meaning()).encode())
        return state.hexdigest()

    # -- matching

    def match(self, events: Any, *, output: str = "matches", errors: str = "raise", imprecise: bool = False) -> Any:
        """Match events: rows of dicts, Arrow or pandas, or {stream: events} for several streams.

        `output` is "matches" (a table, see `results.MATCHES`), "pairs", "counts" or "bitmaps". An event that cannot be
        used raises an EventError; with `errors="collect"` the result is (matches, table of errors).

        With `imprecise` an attribute of an event, which is then a dict, may be a `hg.Range`; the table has a further
        column `certainty`: "surely" if every event in that range matches, "possibly" if some may.
        """
        if imprecise:
            if output != "matches" or errors not in ("raise", "collect"):
                raise UsageError("imprecise events give a table of matches only", 'leave output as "matches"')
            return self.imprecise.match(events, errors)
        return Session(self).whole(events, output, errors)

    @cached_property
    def imprecise(self) -> Imprecise:
        """The plan as boxes, for events that are not exact."""
        return Imprecise(self)

    def session(self) -> Session:
        """Matching batch by batch; row numbers count on."""
        session = Session(self)
        self.sessions.add(session)
        return session

    # -- looking inside

    def explain(self, name: str, event: Any = None) -> Explanation:
        """Why this subscription matches this event, or what blocks it; without an event, the subscription itself.

        For a sequence, `event` is a list of events or {stream: events}, replayed from an empty state.
        """
        found = self.find(name)
        if found is None:
            raise UnknownName(f"there is no subscription {name} in this plan", nearest(name, self.names(), ""))
        segment, slot = found
        entry = segment.entry(slot)
        if slot in segment.sequence_slots:
            assert self.sequences is not None
            parts = None if event is None else self._replayed(streams_of(name, self.sequences), event)
            static = self.context.static(self.catalogue)
            return explain_sequence(name, entry.text, self.sequences, parts, static, self.sequences.streams)
        schema = self.schemas[entry.stream]
        body = cut_text(entry.text).body()
        paths = {p for node in ast.walk(body) if isinstance(node, ast.Attribute) for p in [node.path]}
        needs = paths | {a.path for a in schema} if entry.missing == "total" else paths
        plain = np.flatnonzero(segment.filter_slots.get(entry.stream, _NONE) == slot)
        if len(plain):
            row = None if event is None else _first(event, schema, needs).row(0)
            lane = segment.filters[entry.stream].lane(int(plain[0]))
            return explain_filter(name, entry.text, body, row, schema, entry.missing, lane)
        slots = segment.late_slots[entry.stream]
        late = self.context.late(segment, self.catalogue)[entry.stream]
        columns = None if event is None else _first(event, schema, needs | late.needs)
        at = int(np.flatnonzero(slots == slot)[0])
        return explain_late(
            name, entry.text, body, columns, schema, entry.missing, late, at,
            lambda i: str(segment.names[int(slots[i])].as_py()),
        )  # fmt: skip

    def _replayed(self, streams: list[str], events: Any) -> list[Columns]:
        """Events for a sequence over some streams: by stream, or of the only one."""
        given = events
        if isinstance(events, Mapping) and not (events and all(_holds_events(s, e) for s, e in events.items())):
            given = [events]
        if not isinstance(given, Mapping):
            if len(streams) > 1:
                hint = f"pass {{stream: events}} for {', '.join(streams)}"
                raise UsageError("which stream are these events of?", hint)
            given = {streams[0]: given}
        session = Session(self)
        parts = [session.decode(stream, rows) for stream, rows in given.items()]
        problems = Problems()
        problems.add(r for p in parts for r in p.rejected)
        raise_first(problems)
        return [p.columns for p in parts]

    def gates(self) -> dict[str, tuple[str, ...]]:
        """The living subscriptions that are tested only where a coverer matched, each with those that cover it together.

        A coverer may have left the book since: its condition is a gate as long as its segment lasts."""
        found: dict[str, tuple[str, ...]] = {}
        for segment, dead in zip(self.segments, self.dead, strict=True):
            for stream, index in segment.filters.items():
                if isinstance(index, GatedIndex):
                    names = [str(name) for name in segment.names.take(segment.filter_slots[stream]).to_pylist()]
                    for slot in index.passive.tolist():
                        if dead is None or not dead[segment.filter_slots[stream][slot]]:
                            found[names[slot]] = tuple(names[c] for c in index.coverers(slot) or ())
        return found

    def stats(self) -> dict[str, Any]:
        """What the plan is made of: per segment and stream the lanes, rows, nodes, conjuncts and bytes."""
        return {
            "subscriptions": len(self),
            "fingerprint": self.fingerprint,
            "segments": [
                {
                    "subscriptions": len(s),
                    "removed": 0 if d is None else int(d.sum()),
                    "bytes": nbytes(s),
                    "streams": {stream: index.stats() for stream, index in s.filters.items()},
                }
                for s, d in zip(self.segments, self.dead, strict=True)
            ],
            "sequences": self._sequence_stats(),
        }

    def _sequence_stats(self) -> dict[str, Any] | None:
        """Of the sequences: what was compiled, what takes the slower path, and the runs of the sessions under way."""
        if self.sequences is None:
            return None
        runs: Counter[str] = Counter()
        for session in list(self.sessions):
            runs.update(session.stats()["runs"])
        return {**self.sequences.stats(), "runs": dict(runs)}

    def names(self) -> Iterator[str]:
        """The living subscriptions."""
        return (name for name, _ in _alive(self.segments, self.dead))

    # -- files

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the plan to a file that any number of processes can open and share."""
        with collector_paused():
            sequences = None if self.sequences is None else save_index(self.sequences, file.encode)
            parts = {"segments": self.segments, "dead": self.dead, "sequences": sequences}
            file.write({**file.definitions(self.catalogue), **parts}, path)

    @classmethod
    def open(cls, path: str | os.PathLike[str], operators: Iterable[Any] = ()) -> Plan:
        """Map a saved plan; it is ready at once and takes memory only as it is used. Operators are code: bring them."""
        parts = dict(file.read(path))
        context = CompileContext(operators)
        segments, dead, saved = (parts.pop(name, None) for name in ("segments", "dead", "sequences"))
        try:
            catalogue = Catalogue(operators=Signatures(context.registry), **parts)
            if not all(isinstance(s, Segment) for s in segments) or len(segments) != len(dead):
                raise TypeError("segments")
            made = cls(catalogue, segments, dead, context)
            index = (
                None
                if saved is None
                else open_index(saved, file.decode, context.bind(catalogue), context.static(catalogue))
            )
        except (TypeError, ValueError, KeyError, IndexError, AttributeError) as problem:
            raise PlanError(f"{os.fspath(path)} is damaged: {problem}", file.AGAIN) from None
        made.__dict__["sequences"] = index
        return made

    def parts(self) -> Iterator[tuple[Segment, Dead | None, Mapping[str, LateIndex]]]:
        """Each segment with its tombstones and its late indexes."""
        for segment, dead in zip(self.segments, self.dead, strict=True):
            yield segment, dead, self.context.late(segment, self.catalogue)

    def portion(self, segment: CompiledSegment, slots: NDArray[np.int64]) -> Part:
        """Some subscriptions of a segment, compiled apart."""
        assert isinstance(segment, Segment)
        entries = {segment.names[slot].as_py(): segment.entry(slot) for slot in slots.tolist()}
        part = compile_segment(entries, self.schemas)
        return part, None, self.context.late(part, self.catalogue)

    def labels(self, name: str) -> str | None:
        """The labels of a subscription as JSON."""
        found = self.find(name)
        return None if found is None else found[0].labels[found[1]].as_py()

    def find(self, name: str) -> tuple[Segment, int] | None:
        """The segment and slot of a living subscription."""
        for segment, dead in zip(self.segments, self.dead, strict=True):
            slot = segment.slot(name)
            if slot is not None and (dead is None or not dead[slot]):
                return segment, slot
        return None


def _first(event: Any, schema: Schema, needs: Iterable[Path]) -> Columns:
    """The first of some events, decoded."""
    part = decode([event] if isinstance(event, Mapping) else event, schema, needs)
    if part.rejected:
        raise EventError(f"the event cannot be used: {part.rejected[0].reason}")
    if not part.columns.rows:
        raise UsageError("there is no event to explain", "give one event")
    return part.columns


def _holds_events(key: Any, value: Any) -> bool:
    """Whether an item of a mapping is a stream with its events, rather than an attribute with its value."""
    if isinstance(value, list | tuple):
        return all(isinstance(v, Mapping) for v in value)
    return isinstance(key, str) and hasattr(value, "columns")  # an Arrow table or a frame


def _alive(segments: Sequence[Segment], dead: Sequence[Dead | None]) -> Iterator[tuple[str, Entry]]:
    for segment, mask in zip(segments, dead, strict=True):
        for slot in range(len(segment)) if mask is None else np.flatnonzero(~mask):
            yield segment.names[int(slot)].as_py(), segment.entry(int(slot))
