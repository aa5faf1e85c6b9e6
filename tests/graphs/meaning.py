"""One way to ask engine and oracle the same question, so that one suite runs over both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headgate.graphs import rdf
from headgate.graphs.event import EventGraph
from headgate.graphs.index import build
from headgate.graphs.matching import Bindings, Matcher
from headgate.graphs.ontology import SAME_CLASS, SAME_PROPERTY, SUB_CLASS, SUB_PROPERTY, Ontology
from headgate.graphs.pattern import Prefixes, compile_pattern
from headgate.graphs.rdf import Triple
from headgate.language import ast
from headgate.language.parser import parse_body
from headgate.oracle import graphs as oracle
from headgate.oracle.graphs import Meaning

PREFIXES = {"": "http://example.org/", "units": "http://example.org/units/"}
HEAD = "".join(f"@prefix {name}: <{iri}> .\n" for name, iri in PREFIXES.items()) + (
    "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
    "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n"
    "@prefix owl: <http://www.w3.org/2002/07/owl#> .\n"
    "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
)

Answer = list[dict[str, Any]]
Ask = Callable[..., Answer]


def graph(text: str) -> ast.Graph:
    node = parse_body(text)
    assert isinstance(node, ast.Graph)
    return node


def meaning_of(triples: Sequence[Triple]) -> Meaning:
    def pairs(below: str, same: str) -> frozenset[tuple[str, str]]:
        stated = {(s, str(o)) for s, p, o in triples if p == below}
        equal = {(s, str(o)) for s, p, o in triples if p == same}
        return frozenset(stated | equal | {(b, a) for a, b in equal})

    return Meaning(pairs(SUB_CLASS, SAME_CLASS), pairs(SUB_PROPERTY, SAME_PROPERTY), PREFIXES)


def ontology_of(meaning: Meaning) -> Ontology:
    """The ontology whose hierarchies have exactly these pairs."""
    classes: list[Triple] = [(a, SUB_CLASS, b) for a, b in sorted(meaning.classes)]
    return Ontology.of([*classes, *((a, SUB_PROPERTY, b) for a, b in sorted(meaning.properties))])


def by_engine(pattern: str, event: str, ontology: str = "") -> Answer:
    """All bindings, least first; [] if the event does not match."""
    named = compile_pattern(graph(pattern), Prefixes(PREFIXES))
    read = EventGraph.of(rdf.read(HEAD + event))
    every = Matcher(build([named], Ontology.parse(HEAD + ontology), every=[0]))
    found = every.match([read])
    answer = list(Bindings(every.index, [read.terms], found))
    least = Matcher(build([named], Ontology.parse(HEAD + ontology)))
    assert list(Bindings(least.index, [read.terms], least.match([read]))) == answer[:1]
    return answer


def by_oracle(pattern: str, event: str, ontology: str = "") -> Answer:
    return oracle.bindings(graph(pattern), rdf.read(HEAD + event), meaning_of(rdf.read(HEAD + ontology)))
