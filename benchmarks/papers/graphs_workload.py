"""The workload of the OPS paper, section 6: classes with two properties each, no hierarchy, no filters.

A match rate of 3% does not arise from classes drawn at random, so subscriptions are planted: for each event a share
of them are rooted subgraphs of it, with the names of its classes and properties. The rest are drawn at random, as the
paper says. `rate` is the power law through the rates that the paper states, 23.8% at 2 classes and 1.3% at 20; it
gives the 3% at 10 classes that the paper also states.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from random import Random

from headgate.graphs.rdf import Triple
from headgate.graphs.terms import HOME, RDFS, TYPE
from headgate.language import ast

BASE = "http://example.org/"
__all__ = ["RDFS"]
PROPERTIES = 10
EVENT_VERTICES, EVENT_ARCS = 50, 55
PATTERN_VERTICES, PATTERN_ARCS = 10, 11


@dataclass(frozen=True)
class Drawn:
    """A graph of numbers: the class of each vertex, and arcs (subject, property, object). Vertex 0 is home."""

    classes: tuple[int, ...]
    arcs: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True)
class Workload:
    subscriptions: tuple[Drawn, ...]
    events: tuple[Drawn, ...]


def rate(classes: int) -> float:
    """The share of subscriptions that match an event, by the number of classes."""
    return 0.238 * math.pow(classes / 2, -math.log10(0.238 / 0.013))


def draw(random: Random, allowed: list[tuple[int, int]], vertices: int, arcs: int) -> Drawn:
    """A random graph that home reaches all of. An arc has one of the two properties of its subject's class."""
    classes = tuple(random.randrange(len(allowed)) for _ in range(vertices))
    made: dict[tuple[int, int, int], None] = {}
    for o in range(1, vertices):
        s = random.randrange(o)
        made[s, random.choice(allowed[classes[s]]), o] = None
    while len(made) < arcs:
        s, o = random.randrange(vertices), random.randrange(vertices)
        if s != o:
            made[s, random.choice(allowed[classes[s]]), o] = None
    return Drawn(classes, tuple(made))


def plant(random: Random, event: Drawn) -> Drawn | None:
    """A rooted subgraph of the event with as many vertices and arcs as a subscription has; None if this try found none.

    An event of 50 vertices has but 6 arcs beyond its tree, so two of them are chosen and what leads to them is
    taken."""
    parent = {}
    extra = []
    for s, p, o in event.arcs:
        if o and o not in parent and s < o:
            parent[o] = s
        else:
            extra.append((s, p, o))
    kept = {0}
    for s, _, o in random.sample(extra, min(len(extra), PATTERN_ARCS - PATTERN_VERTICES + 1)):
        for vertex in (s, o):
            at = vertex
            while at not in kept:
                kept.add(at)
                at = parent[at]
    if len(kept) > PATTERN_VERTICES:
        return None
    while len(kept) < PATTERN_VERTICES:
        kept.add(random.choice([o for o, s in parent.items() if s in kept and o not in kept]))
    inside = [a for a in event.arcs if a[0] in kept and a[2] in kept]
    if len(inside) < PATTERN_ARCS:
        return None
    tree = [a for a in inside if parent.get(a[2]) == a[0]]
    closing = [a for a in inside if a not in tree]
    arcs = tree + random.sample(closing, PATTERN_ARCS - len(tree)) if len(tree) <= PATTERN_ARCS else tree
    number = {v: i for i, v in enumerate(sorted(kept))}
    return Drawn(tuple(event.classes[v] for v in sorted(kept)), tuple((number[s], p, number[o]) for s, p, o in arcs))


def workload(seed: int, classes: int, subscriptions: int, events: int, share: float | None = None) -> Workload:
    """`share` of the subscriptions are planted in each event, different ones as far as there are; the rest is random.
    There are at most as many events as leave a tenth of the subscriptions random."""
    random = Random(seed)
    wanted = rate(classes) if share is None else share
    each = round(subscriptions * wanted)
    allowed = [(a, b) for a, b in (random.sample(range(PROPERTIES), 2) for _ in range(classes))]
    drawn: list[Drawn] = []
    made: list[Drawn] = []
    for _ in range(min(events, max(1, int(0.9 / wanted)))):
        event, planted = _planted(random, allowed, each)
        drawn.append(event)
        made += planted
    made += [draw(random, allowed, PATTERN_VERTICES, PATTERN_ARCS) for _ in range(subscriptions - len(made))]
    random.shuffle(made)
    return Workload(tuple(made), tuple(drawn))


def _planted(random: Random, allowed: list[tuple[int, int]], each: int) -> tuple[Drawn, list[Drawn]]:
    """An event with its planted subscriptions. An event whose extra arcs lie too deep for them is drawn again."""
    while True:
        event = draw(random, allowed, EVENT_VERTICES, EVENT_ARCS)
        found: dict[Drawn, None] = {}
        for _ in range(20 * each + 20):
            drawn = plant(random, event)
            if drawn is not None:
                found[drawn] = None
            if len(found) >= each:
                return event, list(found)[:each]


def _class(number: int) -> str:
    return f"C{number}"


def _property(number: int) -> str:
    return f"p{number}"


def pattern(drawn: Drawn) -> ast.Graph:
    """The subscription as the parser would give it."""
    name = [ast.Blank("H"), *(ast.Variable(str(i)) for i in range(1, len(drawn.classes)))]
    types = [
        ast.Triple(n, ast.Name("rdf:type"), ast.Name(":" + _class(c))) for n, c in zip(name, drawn.classes, strict=True)
    ]
    arcs = [ast.Triple(name[s], ast.Name(":" + _property(p)), name[o]) for s, p, o in drawn.arcs]
    return ast.Graph((*types, *arcs))


def text(drawn: Drawn) -> str:
    """The subscription as text."""
    name = ["_:H", *(f"?{i}" for i in range(1, len(drawn.classes)))]
    parts = [f"{n} a :{_class(c)}" for n, c in zip(name, drawn.classes, strict=True)]
    parts += [f"{name[s]} :{_property(p)} {name[o]}" for s, p, o in drawn.arcs]
    return "GRAPH { " + " . ".join(parts) + " }"


def triples(drawn: Drawn) -> list[Triple]:
    """The event."""
    name = [HOME, *(f"_:n{i}" for i in range(1, len(drawn.classes)))]
    made: list[Triple] = [(n, TYPE, f"<{BASE}{_class(c)}>") for n, c in zip(name, drawn.classes, strict=True)]
    return made + [(name[s], f"<{BASE}{_property(p)}>", name[o]) for s, p, o in drawn.arcs]


def ask(drawn: Drawn) -> str:
    """The subscription as SPARQL, for peers. Home is an IRI there: a blank node in a query is a variable."""
    name = ["<urn:home>", *(f"?v{i}" for i in range(1, len(drawn.classes)))]
    parts = [f"{name[0]} a <{BASE}{_class(drawn.classes[0])}>"]
    seen = {0}
    for s, p, o in drawn.arcs:
        parts.append(f"{name[s]} <{BASE}{_property(p)}> {name[o]}")
        if o not in seen:
            seen.add(o)
            parts.append(f"{name[o]} a <{BASE}{_class(drawn.classes[o])}>")
    return "ASK { " + " . ".join(parts) + " }"


def with_home(event: Drawn) -> list[Triple]:
    """The event for peers: home by name."""
    named = {HOME: "<urn:home>"}
    return [(named.get(s, s), p, named.get(str(o), o)) for s, p, o in triples(event)]


def spread(seed: int, classes: int, properties: int, subscriptions: int) -> list[ast.Graph]:
    """Subscriptions of 11 arcs over a large ontology, every class and property equally likely."""
    random = Random(seed)
    allowed = [(random.randrange(properties), random.randrange(properties)) for _ in range(classes)]
    return [pattern(draw(random, allowed, PATTERN_VERTICES, PATTERN_ARCS)) for _ in range(subscriptions)]
