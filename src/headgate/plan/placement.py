"""Which sequences may be spread over buckets by the value of an attribute, and which need every event in one place.

A sequence is *keyed* if an event can matter to a run only if it agrees with the run in one attribute: every theta
implies equality with the run in it, or every step asks the same constant of it. For each producer we collect what its
predicates make equal: (place, path) of the spine and constants. A class of equals that has a path at every place is a
key; through PUBLISH, nested patterns and UNION the key must pass in a column that holds it. One path must serve for all
places of a stream, else an event would have to be in two buckets, and could begin a run in the wrong one.

A subscription is placed by what it reads, all the way down, and never by who reads it: so a newcomer cannot move the
runs of others. Where its key differs from that of its producers, they run beside it once more, silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.language import ast
from headgate.language.ast import DUR
from headgate.runtime.stateful.group import GLOBAL, Keys
from headgate.schema import Path, Schema, format_path
from headgate.sequences.algebra import simplify
from headgate.sequences.parameterized import Parameterized
from headgate.sequences.publish_levels import Levels, Producer, Subscription
from headgate.sequences.spine import conjuncts, reads

Place = tuple[int, Path]


@dataclass(frozen=True)
class Placement:
    """Where a subscription runs. `component` is what spreads global ones."""

    group: str
    keys: Keys
    component: str
    members: tuple[int, ...]
    """Its own number and those of its producers."""

    @property
    def text(self) -> str:
        if self.group == GLOBAL:
            return "global: no attribute must be equal in all its steps, so one worker sees all its events"
        shown = ", ".join(f"{stream}.{format_path(path)}" for stream, path in sorted(self.keys.items()))
        return f"keyed by {shown}: runs are spread over the buckets by its value"


def placements(subscriptions: Sequence[Subscription]) -> list[Placement]:
    """One for each subscription, in their order."""
    publishers: dict[str, list[int]] = {}
    for i, s in enumerate(subscriptions):
        if s.spine.publish is not None:
            publishers.setdefault(s.spine.publish, []).append(i)
    made = []
    for i, s in enumerate(subscriptions):
        members, streams = _closure(i, subscriptions, publishers)
        keys = keys_of([subscriptions[m] for m in members])
        component = min(streams, default=s.name)
        made.append(Placement(group_name(keys), keys or {}, component, members))
    return made


def group_name(keys: Keys | None) -> str:
    if keys is None:
        return GLOBAL
    return ",".join(f"{stream}.{format_path(path)}" for stream, path in sorted(keys.items()))


def _closure(
    number: int, subscriptions: Sequence[Subscription], publishers: Mapping[str, Sequence[int]]
) -> tuple[tuple[int, ...], set[str]]:
    """A subscription and all that it reads from, and the streams that are published among them."""
    found, waiting, streams = {number}, [number], set[str]()
    while waiting:
        spine = subscriptions[waiting.pop()].spine
        if spine.publish is not None:
            streams.add(spine.publish)
        for stream in reads(spine):
            for p in publishers.get(stream, ()):
                streams.add(stream)
                if p not in found:
                    found.add(p)
                    waiting.append(p)
    return tuple(sorted(found)), streams


def keys_of(subscriptions: Sequence[Subscription]) -> Keys | None:
    """The key of each base stream under which these can run together; None if there is none."""
    if any(s.missing == "default" for s in subscriptions):
        return None  # there a missing value may equal another
    search = _plain_search(subscriptions[0]) if len(subscriptions) == 1 else None
    if search is None:
        levels = Levels(subscriptions)
        producers = [p for level in levels.levels for p in level.producers]
        unions = {u.name: (u.sides[0].stream, u.sides[1].stream) for level in levels.levels for u in level.unions}
        search = _Search(producers, unions, levels.base)
    found = next(search.solve(0, _Chosen()), None)
    if found is None:
        return None
    return {stream: path for stream, path in found.paths.items() if stream in search.base}


def _plain_search(s: Subscription) -> _Search | None:
    """Of a pattern over streams, as most are, without going through levels; None if something is nested in it."""
    spine = simplify(s.spine, s.missing)
    sources = (spine.start, *(step.source for step in spine.steps))
    base = {source.origin: source.schema for source in sources if isinstance(source.origin, str)}
    streams = tuple(source.origin for source in sources if isinstance(source.origin, str))
    if len(streams) < len(sources):
        return None
    return _Search([Producer(spine, streams, s.missing, s.quota, (), spine.publish)], {}, base)


@dataclass
class _Chosen:
    """A path for each stream so far; for what producers give, the columns that hold their key."""

    paths: dict[str, Path] = field(default_factory=dict)
    columns: dict[str, frozenset[Path]] = field(default_factory=dict)

    def copy(self) -> _Chosen:
        return _Chosen(dict(self.paths), dict(self.columns))


@dataclass
class _Search:
    producers: Sequence[Producer]
    unions: Mapping[str, tuple[str, str]]
    base: Mapping[str, Schema]

    def solve(self, at: int, chosen: _Chosen) -> Iterator[_Chosen]:
        if at == len(self.producers):
            yield chosen
            return
        producer = self.producers[at]
        for members in classes(producer):
            places = [{path for place, path in members if place == k} for k in range(len(producer.streams))]
            if not all(places):
                continue
            for one in self._choose(producer.streams, places, 0, chosen):
                if producer.gives is not None:
                    held = _held(producer, members)
                    one = one.copy()
                    known = one.columns.get(producer.gives)
                    one.columns[producer.gives] = held if known is None else known & held
                yield from self.solve(at + 1, one)

    def _choose(
        self, streams: Sequence[str], places: Sequence[set[Path]], k: int, chosen: _Chosen
    ) -> Iterator[_Chosen]:
        if k == len(streams):
            yield chosen
            return
        for path in sorted(places[k]):
            one = self._assign(streams[k], path, chosen)
            if one is not None:
                yield from self._choose(streams, places, k + 1, one)

    def _assign(self, stream: str, path: Path, chosen: _Chosen) -> _Chosen | None:
        known = chosen.paths.get(stream)
        if known is not None:
            return chosen if known == path else None
        if stream in self.unions:
            for side in self.unions[stream]:
                one = self._assign(side, path, chosen)
                if one is None:
                    return None
                chosen = one
        elif stream in self.base:
            attribute = self.base[stream].get(path)
            if attribute is None or attribute.type is None or attribute.type.array:
                return None
        elif path not in chosen.columns.get(stream, ()):
            return None
        made = chosen.copy()
        made.paths[stream] = path
        return made


def _held(producer: Producer, members: set[Place]) -> frozenset[Path]:
    """The columns of what it gives that hold its key."""
    spine = producer.spine
    names = set()
    for item in spine.items:
        path = item.expression.path if isinstance(item.expression, ast.Attribute) else ("",)
        if path[0].startswith("#") and (int(path[0][1:]), path[1:]) in members:
            names.add(item.name)
    return frozenset(a.path for a in spine.schema if ".".join(a.path) in names)


def classes(producer: Producer) -> list[set[Place]]:
    """The sets of (place, path) that every run of a producer has equal values in."""
    equals = _Equals()
    spine = producer.spine
    for path, constant in _equalities(spine.start.where, 0).constants:
        equals.constant(spine.start.where, 0, path, constant)
    for place, step in enumerate(spine.steps, start=1):
        found = _equalities(step.theta, place)
        for path, constant in found.constants:
            equals.constant(step.theta, place, path, constant)
        for incoming, held in found.pairs:
            if held[0] != "$":
                equals.join((place, incoming), (int(held[0][1:]), held[1:]))
            elif held[1:] == incoming and (start := step.starts.get(incoming)) is not None and start[0][0] == "#":
                # The last iteration agreed with the one before it, and the first with where `$` starts.
                equals.join((place, incoming), (int(start[0][1:]), start[1:]))
    return equals.classes()


@dataclass(frozen=True, slots=True)
class _Equalities:
    """What a conjunction makes equal: attributes of the incoming event to constants, and to paths of the run."""

    constants: list[tuple[Path, Any]]
    pairs: list[tuple[Path, Path]]


_known: dict[tuple[int, int], _Equalities] = {}
"""By skeleton, which is interned, and place."""


def _equalities(node: ast.Node, place: int) -> _Equalities:
    if not isinstance(node, Parameterized):
        return _found(node, place)
    key = (id(node.skeleton), place)
    known = _known.get(key)
    if known is None:
        known = _known[key] = _found(node.skeleton, place)
    return known


def _found(node: ast.Node, place: int) -> _Equalities:
    parts = conjuncts(node)
    return _Equalities(
        [found for c in parts for found in _constants(c, place)],
        [pair for c in parts if (pair := _pair(c, place)) is not None],
    )


def _constants(node: ast.Node, place: int) -> Iterator[tuple[Path, Any]]:
    """The attributes of the event at a place that equal a constant."""
    if not isinstance(node, ast.Compare) or node.op != "=":
        return
    for one, other in ((node.left, node.right), (node.right, node.left)):
        if not isinstance(one, ast.Attribute) or not isinstance(other, ast.Literal) or other.value is None:
            continue
        if one.path[0] == f"#{place}" and one.path[-1] != DUR:
            yield one.path[1:], other.value


def _pair(node: ast.Node, place: int) -> tuple[Path, Path] | None:
    """The path of the incoming event, and that of the run, if this is an equality of the two."""
    if not isinstance(node, ast.Compare) or node.op != "=":
        return None
    if not isinstance(node.left, ast.Attribute) or not isinstance(node.right, ast.Attribute):
        return None
    for one, other in ((node.left.path, node.right.path), (node.right.path, node.left.path)):
        head = other[0]
        earlier = head == "$" or (head[0] == "#" and int(head[1:]) < place)
        if one[0] == f"#{place}" and earlier and DUR not in (one[-1], other[-1]):
            return one[1:], other
    return None


class _Equals:
    """Union-find over places and constants."""

    def __init__(self) -> None:
        self._above: dict[Any, Any] = {}

    def _root(self, node: Any) -> Any:
        above = self._above.setdefault(node, node)
        while above != self._above[above]:
            above = self._above[above]
        self._above[node] = above
        return above

    def join(self, one: Any, other: Any) -> None:
        self._above[self._root(one)] = self._root(other)

    def constant(self, node: ast.Node, place: int, path: Path, value: Any) -> None:
        """Notes `attribute = constant` in a predicate on the event at a place."""
        if isinstance(value, ast.Hole):
            assert isinstance(node, Parameterized)
            value = node.values[value.token]
        kind = type(value) if isinstance(value, bool | str | bytes) else float
        self.join((place, path), ("constant", kind, value))

    def classes(self) -> list[set[Place]]:
        found: dict[Any, set[Place]] = {}
        for node in self._above:
            members = found.setdefault(self._root(node), set())
            if isinstance(node[0], int):
                members.add(node)
        return list(found.values())
