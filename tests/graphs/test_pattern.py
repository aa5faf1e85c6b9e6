"""Patterns: what is refused and where, and which are the same."""

from __future__ import annotations

import pytest
from tests.graphs.meaning import PREFIXES, graph

from headgate.errors import LanguageError
from headgate.graphs.pattern import Named, Prefixes, compile_pattern
from headgate.language.tokens import tokenise


def compiled(text: str) -> Named:
    return compile_pattern(graph(text), Prefixes(PREFIXES))


@pytest.mark.parametrize(
    ("text", "token", "reason"),
    [
        ("GRAPH { _:H a :S . ?x :p ?y }", "?x", r"\?x cannot be reached from _:H"),
        ("GRAPH { ?x :p ?y }", "?x", "does not mention the home vertex"),
        ("GRAPH { _:H odd:p ?y }", "odd:p", "there is no prefix odd:"),
        ("GRAPH { _:H :p ?y . FILTER (?z < 5) }", "?z", r"\?z does not occur"),
        ("GRAPH { _:H :p ?y . FILTER (?y MATCHES '(') }", "?y", "regular expression is refused"),
        ("GRAPH { _:H :p ?y . FILTER (?y < TIMESTAMP 'soon') }", "TIMESTAMP", "no instant"),
        ("GRAPH { _:H :p ?y . FILTER (price < ?y) }", "price", "no place in a FILTER"),
        ("GRAPH { _:H :p name }", "name", "an attribute has no place"),
        ("GRAPH { _:H :p 5 . 5 :q ?x }", "5", "a literal cannot be the subject"),
        ("GRAPH { _:H a ?c }", "?c", "a class must be named"),
        ("GRAPH { _:H :p 'x'^^xsd:integer }", "'x'", "'x' is no integer"),
    ],
)
def test_a_mistake_is_shown_at_its_token(text: str, token: str, reason: str) -> None:
    with pytest.raises(LanguageError, match=reason) as caught:
        compiled(text)
    assert tokenise(text).raws[caught.value.at] == token


def test_the_empty_prefix_must_be_declared_like_others() -> None:
    with pytest.raises(LanguageError, match="there is no prefix :"):
        compile_pattern(graph("GRAPH { _:H :p ?x }"))


def test_names_and_order_do_not_make_a_pattern_different() -> None:
    one = compiled("GRAPH { _:H a :S ; :p ?x ; :q ?y . ?y :r ?x . ?x :n 5 . FILTER (?y IS NOT NULL) }")
    other = compiled("GRAPH { ?b :r ?a . ?a :n 5.0 . _:H :q ?b ; :p ?a ; a :S . FILTER (?b IS NOT NULL) }")
    assert one.pattern == other.pattern
    assert one.variables == (("x", 1), ("y", 2))
    assert other.variables == (("a", 1), ("b", 2))


def test_iso_and_hom_are_different_patterns() -> None:
    assert compiled("GRAPH { _:H :p ?x }").pattern != compiled("GRAPH HOM { _:H :p ?x }").pattern


def test_tuples_and_triples_are_the_same_pattern() -> None:
    tuples = compiled("GRAPH { (_:H, ?1, (Selling, price, xsd:decimal), ?1 < 5) }")
    assert (
        tuples.pattern == compiled("GRAPH { _:H a :Selling ; :price ?v . ?v a xsd:decimal . FILTER (?v < 5) }").pattern
    )


def test_a_vertex_that_may_be_a_literal_is_split_by_its_arcs() -> None:
    pattern = compiled("GRAPH { _:H :p ?x ; :q ?x }").pattern
    assert len(pattern.vertices) == 3
    assert pattern.group == (0, 1, 1)
    assert compiled("GRAPH { _:H :p ?x ; :q ?x . ?x :r 1 }").pattern.group == (0, 1, 2)
