"""What patterns mean, asked of the engine and of the oracle alike (docs/semantics.md, section 4)."""

from __future__ import annotations

import pytest
from tests.graphs.meaning import Ask, by_engine, by_oracle

AUCTION = """
    :Desktop rdfs:subClassOf :Computer . :Notebook rdfs:subClassOf :Computer . :Computer rdfs:subClassOf :Product .
    :EBook rdfs:subClassOf :Book, :Digital . :cell rdfs:subPropertyOf :phone . :home rdfs:subPropertyOf :phone .
"""
SELLING = """
    _:H a :Selling ; :target [ a :Desktop ] ; :seller _:s ; :price _:p .
    _:p a :Money ; :currency units:dollar ; rdf:value 350.00 .
    _:s a :Customer ; :cell 123456789 .
"""


@pytest.fixture(params=[by_engine, by_oracle], ids=["engine", "oracle"])
def ask(request: pytest.FixtureRequest) -> Ask:
    asked: Ask = request.param
    return asked


def test_the_papers_subscription_finds_a_desktop_for_350_dollars(ask: Ask) -> None:
    pattern = """GRAPH { _:H a :Selling ; :target ?1 ; :price ?2 . ?1 a :Computer .
        ?2 a :Money ; :currency units:dollar ; rdf:value ?3 . ?3 a xsd:decimal . FILTER (?3 < 400.00) }"""
    assert [b["3"] for b in ask(pattern, SELLING, AUCTION)] == [350]


def test_tuple_notation_means_the_same(ask: Ask) -> None:
    pattern = """GRAPH { (_:H, ?1, (Selling, target, Computer)) . (_:H, ?2, (Selling, price, Money)) .
        (?2, units:dollar, (Money, currency, owl:Thing)) . (?2, ?3, (Money, rdf:value, xsd:decimal), ?3 < 400.00) }"""
    assert [b["3"] for b in ask(pattern, SELLING, AUCTION)] == [350]


def test_a_telephone_number_is_found_by_its_sub_property(ask: Ask) -> None:
    assert ask("GRAPH { _:H :seller ?s . ?s :phone 123456789 }", SELLING, AUCTION)
    assert not ask("GRAPH { _:H :seller ?s . ?s :home 123456789 }", SELLING, AUCTION)


def test_a_subclass_matches_upwards_only(ask: Ask) -> None:
    event = "_:H :target [ a :Computer ] ."
    assert ask("GRAPH { _:H :target ?t . ?t a :Product }", event, AUCTION)
    assert not ask("GRAPH { _:H :target ?t . ?t a :Desktop }", event, AUCTION)


def test_the_match_that_the_paper_misses(ask: Ask) -> None:
    event = "_:H :p _:a ; :q _:b . _:b :r _:a . _:a :s _:c ."
    assert ask("GRAPH { _:H :q ?1 . ?1 :r ?2 . ?2 :s ?3 }", event) == [{"1": "_:b", "2": "_:a", "3": "_:c"}]


def test_several_classes_must_all_hold(ask: Ask) -> None:
    event = "_:H :target [ a :EBook ] ."
    assert ask("GRAPH { _:H :target ?t . ?t a :Book, :Digital }", event, AUCTION)
    assert not ask("GRAPH { _:H :target ?t . ?t a :Book, :Computer }", event, AUCTION)


def test_any_of_several_stated_classes_will_do_and_gives_one_binding(ask: Ask) -> None:
    event = "_:H :target _:t . _:t a :Desktop, :Notebook ."
    assert ask("GRAPH { _:H :target ?t . ?t a :Computer }", event, AUCTION) == [{"t": "_:t"}]


def test_an_untyped_vertex_may_have_any_class(ask: Ask) -> None:
    assert ask("GRAPH { _:H a :Selling ; :target ?t . ?t a :Computer }", "_:H :target _:t .", AUCTION)


def test_unknown_classes_and_properties_match_themselves(ask: Ask) -> None:
    event = "_:H a :Odd ; :strange _:x . _:x a :Weird ."
    assert ask("GRAPH { _:H a :Odd ; :strange ?x . ?x a :Weird }", event, AUCTION)
    assert not ask("GRAPH { _:H a :Selling }", event, AUCTION)


def test_equivalent_classes_and_properties_are_one(ask: Ask) -> None:
    same = """:PC owl:equivalentClass :Computer . :Computer rdfs:subClassOf :Product .
        :goods owl:equivalentProperty :target ."""
    assert ask("GRAPH { _:H :goods ?t . ?t a :PC }", "_:H :target [ a :Computer ] .", same)
    assert ask("GRAPH { _:H :target ?t . ?t a :Product }", "_:H :goods [ a :PC ] .", same)


def test_a_cycle_of_classes_is_an_equivalence(ask: Ask) -> None:
    cycle = ":A rdfs:subClassOf :B . :B rdfs:subClassOf :C . :C rdfs:subClassOf :A ."
    assert ask("GRAPH { _:H a :A }", "_:H a :C .", cycle)


def test_a_class_is_no_arc_to_be_traversed(ask: Ask) -> None:
    assert not ask("GRAPH { _:H :p ?x . ?x :q ?y }", "_:H :p _:a . _:a a :C .")


def test_domain_and_range_infer_nothing(ask: Ask) -> None:
    rule = ":price rdfs:domain :Offer ; rdfs:range :Money ."
    assert not ask("GRAPH { _:H a :Offer }", "_:H a :Thing ; :price [ a :X ] .", rule)


@pytest.mark.parametrize(
    ("wanted", "holds"),
    [("xsd:integer", True), ("xsd:decimal", True), ("rdfs:Literal", True), ("rdfs:Resource", True),
     ("xsd:double", False), ("xsd:string", False), ("owl:Thing", False), (":Money", False)],
)  # fmt: skip
def test_on_a_literal_a_tests_the_datatype(ask: Ask, wanted: str, holds: bool) -> None:
    assert bool(ask(f"GRAPH {{ _:H :p ?v . ?v a {wanted} }}", "_:H :p 5 .")) is holds


def test_a_thing_is_a_thing_and_no_literal(ask: Ask) -> None:
    event = "_:H :p _:x . _:x a :C ."
    assert ask("GRAPH { _:H :p ?v . ?v a owl:Thing }", event)
    assert not ask("GRAPH { _:H :p ?v . ?v a rdfs:Literal }", event)


def test_two_variables_need_two_vertices_under_iso_but_not_under_hom(ask: Ask) -> None:
    event = "_:H :p _:a ."
    assert not ask("GRAPH { _:H :p ?x, ?y }", event)
    assert ask("GRAPH HOM { _:H :p ?x, ?y }", event) == [{"x": "_:a", "y": "_:a"}]


def test_a_variable_is_not_home_under_iso(ask: Ask) -> None:
    event = "_:H :p _:H ."
    assert not ask("GRAPH { _:H :p ?x }", event)
    assert ask("GRAPH HOM { _:H :p ?x }", event) == [{"x": "_:H"}]
    assert ask("GRAPH { _:H :p _:H }", event) == [{}]


def test_equal_literals_of_two_triples_are_two_vertices(ask: Ask) -> None:
    assert ask("GRAPH { _:H :price ?x ; :shipping ?y }", "_:H :price 5 ; :shipping 5 .") == [{"x": 5, "y": 5}]


def test_two_variables_need_two_triples(ask: Ask) -> None:
    below = ":cell rdfs:subPropertyOf :phone, :contact ."
    pattern = "{ _:H :phone ?x ; :contact ?y }"
    assert not ask(f"GRAPH {pattern}", "_:H :cell 5 .", below)
    assert ask(f"GRAPH HOM {pattern}", "_:H :cell 5 .", below)


def test_one_variable_on_several_arcs_needs_equal_terms(ask: Ask) -> None:
    pattern = "GRAPH { _:H :price ?x ; :shipping ?x }"
    assert ask(pattern, "_:H :price 5 ; :shipping 5 .") == [{"x": 5}]
    assert not ask(pattern, "_:H :price 5 ; :shipping 5.0 .")
    assert not ask(pattern, "_:H :price 5 ; :shipping 6 .")


def test_numeric_constants_match_by_value_and_others_by_term(ask: Ask) -> None:
    event = "_:H :n 5.0 ; :t 'a'@en ; :d '2026-01-01'^^xsd:date ."
    assert ask("GRAPH { _:H :n 5 }", event)
    assert ask("GRAPH { _:H :n '5e0'^^xsd:double }", event)
    assert ask("GRAPH { _:H :t 'a'@EN }", event)
    assert not ask("GRAPH { _:H :t 'a' }", event)
    assert ask("GRAPH { _:H :d '2026-01-01'^^xsd:date }", event)
    assert not ask("GRAPH { _:H :d '2026-01-01Z'^^xsd:date }", event)


def test_diamonds_and_cycles_close(ask: Ask) -> None:
    diamond = "GRAPH { _:H :p ?a ; :q ?b . ?a :r ?c . ?b :r ?c }"
    assert ask(diamond, "_:H :p _:a ; :q _:b . _:a :r _:c . _:b :r _:c .")
    assert not ask(diamond, "_:H :p _:a ; :q _:b . _:a :r _:c . _:b :r _:d .")
    cycle = "GRAPH { _:H :p ?a . ?a :q ?b . ?b :r _:H }"
    assert ask(cycle, "_:H :p _:a . _:a :q _:b . _:b :r _:H .")
    assert not ask(cycle, "_:H :p _:a . _:a :q _:b . _:b :r _:a .")


def test_arcs_may_share_a_statement(ask: Ask) -> None:
    below = ":p rdfs:subPropertyOf :r, :s ."
    assert ask("GRAPH { _:H :r ?x ; :s ?x }", "_:H :p _:a .", below) == [{"x": "_:a"}]


def test_a_type_error_in_a_filter_rejects_the_candidate_only(ask: Ask) -> None:
    event = "_:H :p 'text' ; :p 7 ; :p _:x ."
    assert ask("GRAPH { _:H :p ?v . FILTER (?v > 5) }", event) == [{"v": 7}]
    assert ask("GRAPH { _:H :p ?v . FILTER (NOT (?v > 5)) }", event) == []
    assert ask("GRAPH { _:H :p ?v . FILTER (?v > 5 OR ?v = 'text') }", event) == [{"v": 7}, {"v": "text"}]


def test_filters_compare_search_and_list(ask: Ask) -> None:
    event = "_:H :n 'ThinkPad'@en ; :y 2026 ; :at '2026-03-01T12:00:00+02:00'^^xsd:dateTime ."
    for condition in ("?n MATCHES 'ink.ad'", "?n LIKE 'Think%'", "?n IN ('x', 'ThinkPad')", "LENGTH(?n) = 8"):
        assert ask(f"GRAPH {{ _:H :n ?n . FILTER ({condition}) }}", event), condition
    assert ask("GRAPH { _:H :y ?y . FILTER (?y BETWEEN 2025 AND 2026.5) }", event)
    assert ask("GRAPH { _:H :at ?t . FILTER (?t = TIMESTAMP '2026-03-01T10:00:00Z') }", event)
    assert not ask("GRAPH { _:H :at ?t . FILTER (?t < TIMESTAMP '2026-03-01T10:00:00Z') }", event)


def test_a_filter_may_relate_two_variables(ask: Ask) -> None:
    event = "_:H :ask 5 ; :ask 9 ; :bid 7 ."
    assert ask("GRAPH { _:H :ask ?a ; :bid ?b . FILTER (?a < ?b) }", event) == [{"a": 5, "b": 7}]
    assert not ask("GRAPH { _:H :ask ?a ; :bid ?b . FILTER (?a > ?b * 2) }", event)


def test_the_least_binding_comes_first(ask: Ask) -> None:
    event = "_:H :p 10 ; :p 9 ; :p 'b' ; :p true ; :p :z ."
    found = [b["x"] for b in ask("GRAPH { _:H :p ?x }", event)]
    assert found == [True, 9, 10, "<http://example.org/z>", "b"]


def test_large_integers_are_compared_exactly(ask: Ask) -> None:
    event = "_:H :n 9007199254740993 ."
    assert not ask("GRAPH { _:H :n 9007199254740992.0 }", event)
    assert ask("GRAPH { _:H :n ?n . FILTER (?n > 9007199254740992.0) }", event)


def test_blank_nodes_of_a_pattern_are_variables_that_are_not_reported(ask: Ask) -> None:
    assert ask("GRAPH { _:H :p _:any . _:any :q ?v }", "_:H :p [ :q 1 ] .") == [{"v": 1}]


def test_a_pattern_may_ask_for_the_class_of_home_alone(ask: Ask) -> None:
    assert ask("GRAPH { _:H a :Product }", "_:H a :Notebook .", AUCTION) == [{}]
    assert not ask("GRAPH { _:H a :Book }", "_:H a :Notebook .", AUCTION)
