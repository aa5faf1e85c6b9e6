"""Random ontologies, events and patterns, small enough for brute force and dense enough to match about half the time.

A pattern grows from home over the arcs of one of the events, with names lifted in the hierarchies, vertices merged or
split, constants and filters added; so it often nearly matches, which is where mistakes hide.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from headgate.graphs.rdf import Triple
from headgate.graphs.terms import HOME, TYPE, Literal, literal_of
from headgate.language import ast
from headgate.language.parser import parse_body
from headgate.oracle.graphs import Meaning

BASE = "http://example.org/"
PREFIXES = {"": BASE}
_LITERALS = [
    literal_of(5),
    literal_of(5),
    literal_of(5.0),
    literal_of(7),
    literal_of("a"),
    literal_of("ab"),
    literal_of(True),
    Literal("a", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>", "en"),
    Literal("5.5", "<http://www.w3.org/2001/XMLSchema#decimal>"),
    Literal("2026-01-01T00:00:00Z", "<http://www.w3.org/2001/XMLSchema#dateTime>"),
    Literal("x", f"<{BASE}odd>"),
]
_CLASS_TESTS = ["xsd:integer", "xsd:decimal", "xsd:string", "rdfs:Literal", "owl:Thing"]
_FILTERS = [
    "{0} < 6",
    "{0} >= 5 AND {0} <= 5",
    "{0} <> 5",
    "{0} IN (5, 'a')",
    "{0} BETWEEN 5 AND 6",
    "NOT ({0} = 'a')",
    "{0} = 5 OR {0} = 'ab'",
    "{0} MATCHES '^a'",
    "{0} LIKE 'a%'",
    "{0} + 1 > 6",
    "LENGTH({0}) = 1",
    "{0}",
    "{0} IS NULL",
    "{0} < TIMESTAMP '2026-06-01T00:00:00Z'",
]
_JOINT = ["{0} = {1}", "{0} < {1}", "{0} + {1} >= 10", "{0} <> {1} OR {0} = 5"]


@dataclass(frozen=True)
class Case:
    meaning: Meaning
    events: tuple[tuple[Triple, ...], ...]
    texts: tuple[str, ...]

    @property
    def graphs(self) -> list[ast.Graph]:
        parsed = [parse_body(text) for text in self.texts]
        return [g for g in parsed if isinstance(g, ast.Graph)]


def iri(name: str) -> str:
    return f"<{BASE}{name}>"


def short(term: str) -> str:
    return ":" + term[len(BASE) + 1 : -1]


def hierarchy(random: Random, letter: str, size: int) -> frozenset[tuple[str, str]]:
    """Mostly acyclic, several parents; a pair in both directions now and then."""
    pairs = set()
    for low in range(1, size):
        for high in range(low):
            if random.random() < 0.35:
                pairs.add((iri(f"{letter}{low}"), iri(f"{letter}{high}")))
    if pairs and random.random() < 0.2:
        below, above = random.choice(sorted(pairs))
        pairs.add((above, below))
    return frozenset(pairs)


def event(random: Random, classes: int, properties: int, size: int) -> tuple[Triple, ...]:
    nodes = [HOME]
    triples: dict[Triple, None] = {}

    def arc(subject: str, object_: str | Literal) -> None:
        triples[subject, iri(f"p{random.randrange(properties)}"), object_] = None

    for i in range(random.randrange(size)):
        node = iri(f"i{i}") if random.random() < 0.4 else f"_:n{i}"
        arc(random.choice(nodes), node)
        nodes.append(node)
    for _ in range(random.randrange(size)):
        arc(random.choice(nodes), random.choice(nodes))
    for _ in range(random.randrange(4)):
        arc(random.choice(nodes), random.choice(_LITERALS))
    for node in nodes:
        for _ in range(random.choice([0, 1, 1, 1, 2])):
            triples[node, TYPE, iri(f"C{random.randrange(classes)}")] = None
    if not triples:
        triples[HOME, TYPE, iri("C0")] = None
    return tuple(triples)


def pattern(random: Random, meaning: Meaning, seed: tuple[Triple, ...], classes: int, properties: int) -> str:
    arcs = [t for t in seed if t[1] != TYPE]
    names: dict[object, str] = {HOME: "_:H"}
    written: list[str] = []
    literals: list[str] = []
    reached: list[object] = [HOME]
    for _ in range(random.randrange(1, 5)):
        ready = [t for t in arcs if t[0] in names] or [(HOME, iri("p0"), iri("i9"))]
        s, p, o = random.choice(ready)
        above = sorted(meaning.above(p, meaning.properties))
        name = random.choice(above) if random.random() < 0.9 else iri(f"p{random.randrange(properties)}")
        key: object = (s, p, o) if isinstance(o, Literal) else o
        if key not in names or random.random() < 0.15:
            spread = random.random()
            if isinstance(o, Literal) and literals and spread < 0.25:
                names[key] = random.choice(literals)
            elif isinstance(o, Literal) and spread < 0.5 and o.datatype.endswith(("integer", "string", "double")):
                names[key] = str(o.lexical) if o.datatype.endswith("integer") else f"'{o.lexical}'"
                if o.datatype.endswith("double"):
                    names[key] = o.lexical
            elif isinstance(o, str) and o.startswith("<") and spread < 0.4:
                names[key] = short(o)
            elif not isinstance(o, Literal) and spread < 0.5 and len(reached) > 1:
                names[key] = names[random.choice(reached)]
            else:
                names[key] = random.choice(["?v{}", "?v{}", "_:x{}"]).format(len(names))
        if isinstance(o, Literal):
            literals.append(names[key])
        else:
            reached.append(key)
        written.append(f"{names[s]} {short(name)} {names[key]}")
    subjects = sorted({w.split(" ")[0] for w in written} | {w.split(" ", 2)[2] for w in written})
    for subject in subjects:
        if subject[0] in "?_:" and random.random() < 0.5:
            wanted = random.choice(_CLASS_TESTS) if random.random() < 0.15 else f":C{random.randrange(classes)}"
            types = [c for s, p, c in seed if p == TYPE and names.get(s) == subject and isinstance(c, str)]
            if types and random.random() < 0.8:
                wanted = short(random.choice(sorted(meaning.above(random.choice(types), meaning.classes))))
            written.append(f"{subject} a {wanted}")
    variables = sorted({w for line in written for w in line.split(" ") if w[0] == "?"})
    valued = sorted({n for n in literals if n[0] == "?"})
    if variables and random.random() < 0.4:
        pool = valued if valued and random.random() < 0.9 else variables
        written.append(f"FILTER ({random.choice(_FILTERS).format(random.choice(pool))})")
    if len(variables) > 1 and random.random() < 0.15:
        pair = random.sample(valued if len(valued) > 1 else variables, 2)
        written.append(f"FILTER ({random.choice(_JOINT).format(*pair)})")
    random.shuffle(written)
    return f"GRAPH {random.choice(['', 'HOM '])}{{ {' . '.join(written)} }}"


def make(random: Random, size: int = 6, patterns: int = 5) -> Case:
    classes, properties = 4, 3
    meaning = Meaning(hierarchy(random, "C", classes), hierarchy(random, "p", properties), PREFIXES)
    events = tuple(event(random, classes, properties, size) for _ in range(2))
    texts = [pattern(random, meaning, random.choice(events), classes, properties) for _ in range(patterns)]
    return Case(meaning, events, tuple(texts))


def cases(size: int = 6) -> st.SearchStrategy[Case]:
    return st.builds(lambda seed: make(Random(seed), size), st.integers(0, 2**40))
