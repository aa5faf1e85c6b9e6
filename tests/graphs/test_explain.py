"""Explanations and pictures."""

from __future__ import annotations

from tests.graphs.meaning import HEAD, PREFIXES, graph

from headgate.graphs import rdf
from headgate.graphs.event import EventGraph
from headgate.graphs.explain import GraphExplanation, explain
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import Prefixes, compile_pattern

EVENT = "_:H a :Selling ; :target _:pc ; :price _:m . _:pc a :Desktop . _:m :currency units:dollar ; rdf:value 450 ."
ONTOLOGY = ":Desktop rdfs:subClassOf :Computer ."


def explained(pattern: str, event: str = EVENT) -> GraphExplanation:
    prefixes = Prefixes(PREFIXES)
    named = compile_pattern(graph(pattern), prefixes)
    return explain(named, EventGraph.of(rdf.read(HEAD + event)), Ontology.parse(HEAD + ONTOLOGY), prefixes)


def test_a_match_shows_what_each_statement_found() -> None:
    found = explained("GRAPH { _:H :target ?t . ?t a :Computer }")
    assert str(found) == "matched\n  + _:H :target ?t (a :Computer): _:H :target _:pc\n  with ?t = '_:pc'"


def test_a_filter_that_blocks_is_shown_with_the_value() -> None:
    found = explained("GRAPH { _:H :price ?m . ?m rdf:value ?v . FILTER (?v < 400) }")
    assert not found.matched
    assert found.blocking == "?m rdf:value ?v: no statement of the event fits; _:m rdf:value 450: 450 < 400 is not true"
    assert [s.usable for s in found.statements] == [True, False]


def test_a_class_that_blocks_is_shown() -> None:
    assert "_:pc is :Desktop, not :Book" in str(explained("GRAPH { _:H :target ?t . ?t a :Book }"))


def test_a_constant_that_blocks_is_shown() -> None:
    found = explained("GRAPH { _:H :price ?m . ?m :currency units:euro }")
    assert "units:dollar is not units:euro" in str(found)


def test_a_type_error_is_called_so() -> None:
    assert "450 LIKE 'x%' is a type error" in str(
        explained("GRAPH { _:H :price ?m . ?m rdf:value ?v . FILTER (?v LIKE 'x%') }")
    )


def test_injectivity_that_blocks_is_named() -> None:
    assert "GRAPH HOM" in str(explained("GRAPH { _:H :target ?a ; :target ?b }").blocking)


def test_statements_that_do_not_hang_together_are_named() -> None:
    event = "_:H :p _:a ; :q _:b . _:a :r _:c . _:b :r _:d ."
    found = explained("GRAPH HOM { _:H :p ?a ; :q ?b . ?a :r ?c . ?b :r ?c . ?c :s 1 }", event + " _:c :s 1 .")
    assert not found.matched
    assert found.blocking == "every statement fits by itself, but no choice of them hangs together"


def test_a_filter_over_two_variables_that_blocks_is_named() -> None:
    event = "_:H :ask 9 ; :bid 7 ."
    found = explained("GRAPH { _:H :ask ?a ; :bid ?b . FILTER (?a < ?b) }", event)
    assert "FILTER over several variables" in str(found.blocking)


def test_the_first_statement_that_cannot_match_points_into_the_text() -> None:
    found = explained("GRAPH { _:H :target ?t . ?t :maker ?m }")
    (blocked,) = [s for s in found.statements if not s.usable]
    assert (blocked.text, blocked.at) == ("?t :maker ?m", 6)


def test_the_tree_is_drawn_for_graphviz_and_mermaid() -> None:
    found = explained("GRAPH { _:H :target ?t ; :price ?m . ?m rdf:value 1 }")
    drawn = found.picture("matching")
    assert drawn.graphviz.startswith('digraph "matching" {')
    assert '[label="_:H :target ?t from _:H", shape=box]' in drawn.graphviz
    assert '[label="?m rdf:value 1 from _:m", shape=box, style=dashed]' in drawn.graphviz
    assert drawn.mermaid.startswith("flowchart TD\n")
    assert '(["_:H = _:H"])' in drawn.mermaid
    assert "classDef dashed" in drawn.mermaid
