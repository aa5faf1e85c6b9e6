"""The plan: segments, tombstones over them, and the schemas of the streams. Immutable; safe for any number of threads.

A change of the book makes a new plan that shares the segments of the old one (see `deltas`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from headgate.plan.deltas import Dead, alive, laid_over
from headgate.plan.segment import Entry, Segment, collector_paused, compile_segment
from headgate.plan.sequences import Living
from headgate.results import Problems
from headgate.runtime.book import CompiledSegment, Part
from headgate.runtime.imprecise import Imprecise
from headgate.runtime.session import Session, raise_first
from headgate.schema import Schema
from headgate.sequences.engine import Index
from headgate.sequences.saved import open_index, save_index

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
        sequences: bool = True,
    ) -> Plan:
        """The plan of a book: of all of it, or of what has changed since a previous plan laid over that one. Its sequences
        are compiled now, or when they are first asked for."""
        kept = catalogue.copy()
        layers: tuple[tuple[Segment, ...], tuple[Dead | None, ...]]
        if previous is None:
            layers = (compile_segment(entries, kept.streams, samples, cover=cover),), (None,)
        else:

            def delta(new: Mapping[str, Entry]) -> Segment:
                return compile_segment(new, kept.streams, cover=cover)

            layers = laid_over(previous.segments, previous.dead, entries, changed, delta)
        made = cls(kept, *layers, context)
        # What is built beside the arrays is built now, so that its errors are those of `compile`.
        for segment in made.segments:
            context.late(segment, kept)
        if sequences:
            made.sequences  # noqa: B018 - compiled here and kept
        return made

    @property
    def schemas(self) -> Mapping[str, Schema]:
        return self.catalogue.streams

    @cached_property
    def sequences(self) -> Index | None:
        """The compiled sequences of all segments."""
        return self.context.sequences.index(self.living_sequences(), self.catalogue)

    def living_sequences(self) -> list[Living]:
        """The sequences of each segment that has some; this compiles none."""
        found: list[Living] = []
        for segment, dead in zip(self.segments, self.dead, strict=True):
            slots = segment.sequence_slots
            slots = slots if dead is None else slots[~dead[slots]]
            if len(slots):
                found.append((segment, slots))
        return found

    @cached_property
    def stateless(self) -> Plan:
        """The same plan without its sequences, for those who leave them to somebody else."""
        made = Plan(self.catalogue, self.segments, self.dead, self.context)
        made.__dict__["sequences"] = None
        return made

    def without_segments(self) -> Plan:
        """The definitions alone: a plan that matches nothing."""
        return Plan(self.catalogue, (), (), self.context)

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
        return (name for name, _ in alive(self.segments, self.dead))

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

    def save_head(self, path: str | os.PathLike[str]) -> None:
        """What the plan has besides its segments, where these are files of their own; sequences are left out."""
        tombstones = tuple(None if d is None else np.flatnonzero(d) for d in self.dead)
        file.write({**file.definitions(self.catalogue), "tombstones": tombstones}, path)

    @classmethod
    def assembled(cls, head: str | os.PathLike[str], segments: Sequence[Segment], context: CompileContext) -> Plan:
        """The plan of a head and the segments it was saved with."""
        parts = dict(file.read(head))
        tombstones = parts.pop("tombstones", ())
        if len(tombstones) != len(segments):
            raise PlanError(f"{os.fspath(head)} is the head of another plan", file.AGAIN)
        dead: list[Dead | None] = []
        for segment, gone in zip(segments, tombstones, strict=True):
            mask = None if gone is None else np.zeros(len(segment), np.bool_)
            if mask is not None:
                mask[gone] = True
            dead.append(mask)
        catalogue = Catalogue(operators=Signatures(context.registry), **parts)
        return cls(catalogue, tuple(segments), tuple(dead), context).stateless

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
