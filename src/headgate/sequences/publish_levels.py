"""Streams of streams: which patterns run together, and in which order (docs/semantics.md, section 5: PUBLISH, UNION, trap 4).

What a PUBLISHed name, a nested pattern or a UNION gives is a *derived stream*. A pattern belongs to the level of its
highest input; what it gives can be read one level up. A whole batch goes through one level, what that gives becomes
columns, and the next level sees them beside the base events, merged by time: so a publication is visible in the epoch
it belongs to. Equal nested patterns of different subscriptions are one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import xxhash

from headgate.errors import PlanError
from headgate.schema import Schema
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
    producers: list[Producer] = field(default_factory=list)
    unions: list[Joined] = field(default_factory=list)
    inputs: dict[str, Schema] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """What a plan tells those that run above it: the schemas of all streams and of base streams, which streams nested
    patterns give and which are published, the level from which each can be read, and how much there is below."""

    schemas: Mapping[str, Schema] = field(default_factory=dict)
    base: Mapping[str, Schema] = field(default_factory=dict)
    anonymous: tuple[str, ...] = ()
    published: tuple[str, ...] = ()
    reach: Mapping[str, int] = field(default_factory=dict)
    height: int = 0
    count: int = 0


class Levels:
    """The plan of a book's patterns; or of some more of them, which run in levels above those of a plan `below`."""

    def __init__(self, subscriptions: Sequence[Subscription], below: Levels | None = None) -> None:
        self.subscriptions = list(subscriptions)
        self.levels: list[Level] = []
        self._placed: dict[int, int] = {}
        self._start(Known() if below is None else below.known)
        spines = {str(i): s.spine for i, s in enumerate(self.subscriptions)}
        published = {s.spine.publish: s.spine.schema for s in self.subscriptions if s.spine.publish is not None}
        if twice := self.published & published.keys():
            raise PlanError(f"{min(twice)} is published already")
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
        self._times()

    def _start(self, known: Known) -> None:
        self.schemas: dict[str, Schema] = dict(known.schemas)
        self.base: dict[str, Schema] = dict(known.base)
        self.anonymous: set[str] = set(known.anonymous)
        self.published: set[str] = set(known.published)
        self._reach: dict[str, int] = dict(known.reach)
        self._first_level, self._first_number = known.height, known.count

    @classmethod
    def of(cls, known: Known) -> Levels:
        """A plan that was made elsewhere, for those that run above it."""
        made = cls(())
        made._start(known)
        return made

    @property
    def known(self) -> Known:
        names = tuple(sorted(self.anonymous)), tuple(sorted(self.published))
        return Known(self.schemas, self.base, *names, self._reach, self.height, self.count)

    @property
    def height(self) -> int:
        return self._first_level + len(self.levels)

    @property
    def count(self) -> int:
        return self._first_number + len(self.subscriptions)

    def _subscription(self, number: int) -> None:
        s = self.subscriptions[number]
        spine = simplify(s.spine, s.missing)
        at, streams = self._inputs(spine, s)
        producer = Producer(spine, streams, s.missing, s.quota, (self._first_number + number,), spine.publish, s.name)
        self._level(at).producers.append(producer)
        if spine.publish is not None:
            self.schemas[spine.publish] = spine.schema
            self._placed[number] = at

    def _settle(self, number: int) -> None:
        """What a level publishes can be read once all its publishers are placed."""
        s = self.subscriptions[number]
        if s.spine.publish is not None:
            at = self._placed[number] + 1
            self._reach[s.spine.publish] = max(self._reach.get(s.spine.publish, 0), at)

    def _level(self, number: int) -> Level:
        while self.height <= number:
            self.levels.append(Level())
        return self.levels[number - self._first_level]

    def _inputs(self, spine: Spine, s: Subscription) -> tuple[int, tuple[str, ...]]:
        """The level a spine runs in, and the streams it reads; they are entered as inputs there."""
        sources = (spine.start, *(step.source for step in spine.steps))
        named = [(self.stream(source, s), source) for source in sources]
        at = max(self._first_level, *(self._reach[name] for name, _ in named))
        for name, source in named:
            self._level(at).inputs.setdefault(name, source.schema)
        return at, tuple(name for name, _ in named)

    def stream(self, source: Source, s: Subscription) -> str:
        """The name of the stream a source reads; a derived one is planned when it is first met."""
        match source.origin:
            case str(name):
                if name not in self._reach:
                    self._reach[name] = 0
                    self.base[name] = source.schema
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
            self._level(at).producers.append(Producer(simple, streams, s.missing, s.quota, (), name))
            self._reach[name] = at + 1
            self.schemas[name] = spine.schema
            self.anonymous.add(name)
        return name

    def _union(self, merged: Merged, s: Subscription) -> str:
        name = "(union " + _digest(merged, s.missing, s.quota) + ")"
        if name not in self._reach:
            sides = [self._side(side, s) for side in (merged.left, merged.right)]
            at = max(self._first_level, *(self._reach[side.stream] for side in sides))
            self._reach[name] = at
            self.schemas[name] = merged.schema
            self.anonymous.add(name)
            self._level(at).unions.append(Joined(name, (sides[0], sides[1]), merged.schema, s.missing))
        return name

    def _side(self, side: Spine, s: Subscription) -> Side:
        if side.schema is side.start.schema and not side.steps:
            return Side(self.stream(side.start, s), side.start)
        return Side(self._nested(side, s), None)

    def _times(self) -> None:
        timed = {name for name, schema in self.base.items() if schema.time}
        if timed and timed != set(self.base):
            without = ", ".join(sorted(set(self.base) - timed))
            raise PlanError(
                f"these streams have no TIME, but others in the same sequences do: {without}",
                "declare TIME for all of them, or for none",
            )


def _columns(schema: Schema) -> Mapping[object, object]:
    return {a.path: a.type for a in schema}


def _digest(*parts: object) -> str:
    return xxhash.xxh3_64_hexdigest(repr(parts).encode())
