"""Streams of streams: which patterns run together, and in which order (docs/semantics.md, section 5: PUBLISH, UNION, trap 4).

What a PUBLISHed name, a nested pattern or a UNION gives is a *derived stream*. A pattern belongs to the level of its
highest input; what it gives can be read one level up. A whole batch goes through one level, what that gives becomes
columns, and the next level sees them beside the base events, merged by time: so a publication is visible in the epoch
it belongs to. Equal nested patterns of different subscriptions are one.

Streams keep one of three times: BIGINT ticks, TIMESTAMPs, or, without TIME, the order of input. They are not compared with
each other, so streams that meet in a pattern must keep the same one, and a level has patterns of one time only: patterns of
different times run side by side, and the time of one moves on nothing of another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import xxhash

from headgate.errors import PlanError
from headgate.schema import Kind, Schema
from headgate.sequences.algebra import simplify
from headgate.sequences.automaton import QUOTA
from headgate.sequences.spine import Merged, Source, Spine, publish_order


@dataclass(frozen=True, slots=True)
class Subscription:
    """`since`: the subscription was added when this epoch was closed, and sees only runs that begin later."""

    name: str
    spine: Spine
    missing: str = "null"
    quota: int = QUOTA
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Producer:
    """A pattern that runs in a level: of a subscription, or nested in one. It reads `streams`, by place; `gives` is the
    stream its rows form, if any."""

    spine: Spine
    streams: tuple[str, ...]
    missing: str
    quota: int
    subscriptions: tuple[int, ...] = ()
    gives: str | None = None
    publisher: str = ""


@dataclass(frozen=True)
class Side:
    """One side of a UNION: a stream, and the filter on it where the side is one primary."""

    stream: str
    source: Source | None


@dataclass(frozen=True)
class Joined:
    """A UNION as a derived stream."""

    name: str
    sides: tuple[Side, Side]
    schema: Schema
    missing: str


@dataclass
class Level:
    time: Kind | None
    producers: list[Producer] = field(default_factory=list)
    unions: list[Joined] = field(default_factory=list)
    inputs: dict[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """What a plan tells those that run above it: the schemas of all streams and of base streams, which streams nested
    patterns give and which are published, the level from which each can be read, a base stream whose time it keeps, and
    how many levels there are below."""

    schemas: Mapping[str, Schema] = field(default_factory=dict)
    base: Mapping[str, Schema] = field(default_factory=dict)
    anonymous: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    reach: Mapping[str, int] = field(default_factory=dict)
    clocks: Mapping[str, str] = field(default_factory=dict)
    height: int = 0


class Levels:
    """The plan of a book's patterns; or of some more of them, which run in levels above those of a plan `below`."""

    def __init__(self, subscriptions: Sequence[Subscription], below: Levels | None = None) -> None:
        self.subscriptions = list(subscriptions)
        self.levels: list[Level] = []
        self._placed: dict[int, int] = {}
        self._start(Known() if below is None else below.known)
        spines = {str(i): s.spine for i, s in enumerate(self.subscriptions)}
        published = {s.spine.publish: s.spine.schema for s in self.subscriptions if s.spine.publish is not None}
        if twice := (self.published | self.base.keys()) & published.keys():
            raise PlanError(f"{min(twice)} is published already, or read by levels below")
        self.published |= published.keys()
        for s in self.subscriptions:
            name = s.spine.publish
            if name is not None and _columns(s.spine.schema) != _columns(published[name]):
                raise PlanError(f"{s.name} publishes {name} with other columns than another subscription")
        for level in publish_order(spines, {str(i): s.name for i, s in enumerate(self.subscriptions)}):
            for i in map(int, level):
                self._subscription(i)
            for i in map(int, level):
                self._settle(i)

    def _start(self, known: Known) -> None:
        self.schemas: dict[str, Schema] = dict(known.schemas)
        self.base: dict[str, Schema] = dict(known.base)
        self.anonymous: set[str] = set(known.anonymous)
        self.published: set[str] = set(known.published)
        self._reach: dict[str, int] = dict(known.reach)
        self._clocks: dict[str, str] = dict(known.clocks)
        self._first_level = known.height

    @classmethod
    def of(cls, known: Known) -> Levels:
        """A plan that was made elsewhere, for those that run above it."""
        made = cls(())
        made._start(known)
        return made

    @property
    def known(self) -> Known:
        names = tuple(sorted(self.anonymous)), tuple(sorted(self.published))
        return Known(self.schemas, self.base, *names, self._reach, self._clocks, self.height)

    @property
    def height(self) -> int:
        return self._first_level + len(self.levels)

    def time(self, streams: Iterable[str]) -> Kind | None:
        """What the TIME of streams that meet in a pattern is; None where it is the order of input."""
        return self.base[self._clock(streams)].time_kind

    def _subscription(self, number: int) -> None:
        s = self.subscriptions[number]
        spine = simplify(s.spine, s.missing)
        at, streams = self._inputs(spine, s)
        producer = Producer(spine, streams, s.missing, s.quota, (number,), spine.publish, s.name)
        self._at(at).producers.append(producer)
        if spine.publish is not None:
            self.schemas[spine.publish] = spine.schema
            self._placed[number] = at
            self._clocks[spine.publish] = self._clock((self._clocks.get(spine.publish, streams[0]), *streams))

    def _settle(self, number: int) -> None:
        """What a level publishes can be read once all its publishers are placed."""
        s = self.subscriptions[number]
        if s.spine.publish is not None:
            at = self._placed[number] + 1
            self._reach[s.spine.publish] = max(self._reach.get(s.spine.publish, 0), at)

    def _level(self, least: int, time: Kind | None) -> int:
        """The first level from `least` on that keeps this time."""
        for at in range(least, self.height):
            if self.levels[at - self._first_level].time is time:
                return at
        self.levels.append(Level(time))
        return self.height - 1

    def _clock(self, streams: Iterable[str]) -> str:
        """The base stream whose time these keep together. One that nobody publishes any more has no events, so it fits
        any time."""
        known = [self._clocks[s] for s in streams]
        clocks = [c for c in known if not self.base[c].derived] or known
        for other in clocks[1:]:
            one, two = sorted((clocks[0], other), key=lambda name: self.base[name].time_kind is None)
            times = self.base[one].time_kind, self.base[two].time_kind
            if times[1] is None and times[0] is not None:
                message = f"{two} has no TIME, but {one} in the same sequence does"
                raise PlanError(message, "declare TIME for both of them, or for none")
            if times[0] is not times[1]:
                kinds = [str(time.value).upper() for time in times if time is not None]
                message = f"the TIME of {one} is {kinds[0]} and that of {two}, in the same sequence, is {kinds[1]}"
                raise PlanError(message, "use one kind for both of them")
        return clocks[0]

    def _at(self, number: int) -> Level:
        return self.levels[number - self._first_level]

    def _inputs(self, spine: Spine, s: Subscription) -> tuple[int, tuple[str, ...]]:
        """The level a spine runs in, and the streams it reads; they are entered as inputs there."""
        sources = (spine.start, *(step.source for step in spine.steps))
        named = [(self.stream(source, s), source) for source in sources]
        streams = tuple(name for name, _ in named)
        at = self._level(max(self._first_level, *(self._reach[name] for name in streams)), self.time(streams))
        for name, source in named:
            self._at(at).inputs.setdefault(name, source.schema)
        return at, streams

    def stream(self, source: Source, s: Subscription) -> str:
        """The name of the stream a source reads; a derived one is planned when it is first met."""
        match source.origin:
            case str(name):
                if name not in self._reach:
                    self._reach[name] = 0
                    self.base[name] = source.schema
                    self._clocks[name] = name
                self.schemas.setdefault(name, source.schema)
                return name
            case Spine():
                return self._nested(source.origin, s)
            case Merged():
                return self._union(source.origin, s)

    def _nested(self, spine: Spine, s: Subscription) -> str:
        simple = simplify(spine, s.missing)
        name = "(pattern " + _digest(simple, s.missing, s.quota) + ")"
        if name not in self._reach:
            at, streams = self._inputs(simple, s)
            self._at(at).producers.append(Producer(simple, streams, s.missing, s.quota, (), name))
            self._reach[name] = at + 1
            self._clocks[name] = self._clock(streams)
            self.schemas[name] = spine.schema
            self.anonymous.add(name)
        return name

    def _union(self, merged: Merged, s: Subscription) -> str:
        name = "(union " + _digest(merged, s.missing, s.quota) + ")"
        if name not in self._reach:
            sides = [self._side(side, s) for side in (merged.left, merged.right)]
            self._clocks[name] = self._clock([side.stream for side in sides])
            at = max(self._first_level, *(self._reach[side.stream] for side in sides))
            at = self._reach[name] = self._level(at, self.time((name,)))
            self.schemas[name] = merged.schema
            self.anonymous.add(name)
            self._at(at).unions.append(Joined(name, (sides[0], sides[1]), merged.schema, s.missing))
        return name

    def _side(self, side: Spine, s: Subscription) -> Side:
        if side.schema is side.start.schema and not side.steps:
            return Side(self.stream(side.start, s), side.start)
        return Side(self._nested(side, s), None)


def _columns(schema: Schema) -> Mapping[object, object]:
    return {a.path: a.type for a in schema}


def _digest(*parts: object) -> str:
    return xxhash.xxh3_64_hexdigest(repr(parts).encode())
