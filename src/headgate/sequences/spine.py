"""The left-deep plan of one SELECT, in which every name has become a plain attribute.

The path of an attribute says who holds the value, so that an expression of a sequence is an ordinary filter expression
over the row of everything a run knows, and one evaluator, one printer and one normal form serve both. Paths begin with

    #k        the primary at place k of the spine, k from 0: the incoming event while step k decides
    #k DUR()  the length of that event itself
    $         the last iteration, inside the braces of a FOLD
    @         an aggregate's value before this iteration, inside the braces of its FOLD
    @k        the aggregates of the FOLD at place k, afterwards
    DUR()     the length of the run, the incoming event included

Durations with a unit have become ticks. A composite right operand has become an anonymous pattern (trap 4).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headgate.errors import PlanError
from headgate.language import ast
from headgate.language.ast import TRUE, Node
from headgate.schema import Path, Schema, Type


@dataclass(frozen=True, slots=True)
class Source:
    """A primary: events of `origin` for which `where` is TRUE. `where` speaks of `#k`, k the place of the primary."""

    origin: str | Spine | Merged
    where: Node
    schema: Schema
    alias: str


@dataclass(frozen=True)
class Merged:
    """A UNION: a set by identity, columns by name."""

    left: Spine
    right: Spine
    schema: Schema


@dataclass(frozen=True)
class Accumulator:
    """One aggregate of a FOLD. `start` is the operand on S1; a recurrence has `function` '' and `step` in `operand`."""

    function: str
    operand: Node | None
    start: Node | None
    name: str
    type: Type | None


@dataclass(frozen=True, slots=True)
class Step:
    """One NEXT, FOLD or ABSENT with its right operand; `after` is the FILTER around it."""

    kind: str
    source: Source
    theta: Node
    keep: Node = TRUE
    accumulators: tuple[Accumulator, ...] = ()
    within: int = 0
    after: Node = TRUE
    starts: Mapping[Path, Path | None] = field(default_factory=dict)
    """Of a FOLD: where `$.a` reads before the first iteration, as `$1.a` there; None: it is missing."""


@dataclass(frozen=True)
class Selected:
    name: str
    expression: Node
    type: Type | None


@dataclass(frozen=True, slots=True)
class Spine:
    """One resolved SELECT. `schema` describes the events it gives, should they be published."""

    start: Source
    steps: tuple[Step, ...]
    items: tuple[Selected, ...]
    publish: str | None
    schema: Schema
    rewritten: str | None = None
    """The missing-mode for which the rewrites of the algebra are done."""


def reads(spine: Spine) -> frozenset[str]:
    """The streams that a spine reads, published ones included, through what is nested in it."""
    found: set[str] = set()
    for source in (spine.start, *(step.source for step in spine.steps)):
        match source.origin:
            case str(name):
                found.add(name)
            case Spine():
                found |= reads(source.origin)
            case Merged(left, right):
                found |= reads(left) | reads(right)
    return frozenset(found)


def publish_order(spines: Mapping[str, Spine], names: Mapping[str, str] | None = None) -> list[list[str]]:
    """Subscriptions by level: a level reads only what levels before it PUBLISH. A cycle is refused, in the `names` that
    the user knows."""
    publishers: dict[str, set[str]] = {}
    for name, spine in spines.items():
        if spine.publish is not None:
            publishers.setdefault(spine.publish, set()).add(name)
    waits = {name: {p for s in reads(spine) for p in publishers.get(s, ())} for name, spine in spines.items()}
    levels: list[list[str]] = []
    done: set[str] = set()
    while len(done) < len(waits):
        level = [name for name, above in waits.items() if name not in done and above <= done]
        if not level:
            circle = [name if names is None else names[name] for name in _cycle(waits, done)]
            raise PlanError(
                "these subscriptions PUBLISH to each other in a circle: " + " -> ".join(circle),
                "break the circle: an event may not depend on itself",
            )
        levels.append(level)
        done.update(level)
    return levels


def _cycle(waits: Mapping[str, set[str]], done: set[str]) -> list[str]:
    at = min(name for name in waits if name not in done)
    path = [at]
    while True:
        at = min(waits[at] - done)
        if at in path:
            return [*path[path.index(at) :], at]
        path.append(at)


def conjuncts(node: Node) -> tuple[Node, ...]:
    """The parts of a conjunction; none for TRUE. Parts that share a variable are one part, as one binding serves all."""
    flat = _flat(node)
    bound = [variables(part) for part in flat] if len(flat) > 1 else []
    if not any(bound):
        return flat
    groups: list[tuple[frozenset[str], list[int]]] = []
    for i, names in enumerate(bound):
        joined = [g for g in groups if g[0] & names]
        groups = [g for g in groups if not g[0] & names]
        members = sorted([i, *(m for _, inside in joined for m in inside)])
        groups.append((names.union(*(known for known, _ in joined)), members))
    groups.sort(key=lambda g: g[1][0])
    return tuple(
        flat[members[0]] if len(members) == 1 else ast.And(tuple(flat[m] for m in members)) for _, members in groups
    )


def _flat(node: Node) -> tuple[Node, ...]:
    if isinstance(node, ast.And):
        return tuple(part for item in node.items for part in _flat(item))
    return () if node == TRUE else (node,)


def variables(node: Node) -> frozenset[str]:
    return frozenset(n.name for n in ast.walk(node) if isinstance(n, ast.Variable))


def conjunction(nodes: Iterable[Node]) -> Node:
    parts = tuple(dict.fromkeys(c for n in nodes for c in conjuncts(n)))
    return TRUE if not parts else parts[0] if len(parts) == 1 else ast.And(parts)


def attributes(node: Node, head: str) -> Iterable[ast.Attribute]:
    """The attributes whose paths begin with `head`."""
    return (n for n in ast.walk(node) if isinstance(n, ast.Attribute) and n.path[0] == head)
