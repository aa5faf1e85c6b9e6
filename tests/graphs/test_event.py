"""Which graphs are events."""

from __future__ import annotations

import pytest
from tests.graphs.meaning import HEAD

from headgate.graphs import rdf
from headgate.graphs.event import BadGraph, EventGraph, Limits


def read(text: str, limits: Limits | None = None) -> EventGraph:
    return EventGraph.of(rdf.read(HEAD + text), limits or Limits())


def test_home_comes_first_and_each_literal_is_a_vertex() -> None:
    event = read("_:x :q 5 . _:H :p _:x ; :p 5 ; :q 5 .")
    assert event.terms[0] == "_:H"
    assert len(event.terms) == 5
    assert len(event.arcs) == 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("_:x :p 5 .", "no home vertex"),
        ("_:H :p 5 . _:x :q 6 .", "_:x cannot be reached from _:H"),
        ("_:x :p _:H .", "_:x cannot be reached from _:H"),
        ("_:H :p 5 . _:x a :Lost .", "_:x cannot be reached from _:H"),
        ("_:H a 'Selling' .", 'the class of _:H is "Selling", which is no name'),
        ("_:H a [] .", "which is no name"),
        ("_:H :price 'cheap'^^xsd:decimal .", "'cheap' is no decimal"),
    ],
)
def test_what_is_no_event_is_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(BadGraph, match=reason):
        read(text)


def test_a_graph_beyond_the_limits_is_refused() -> None:
    with pytest.raises(BadGraph, match="3 vertices and 2 arcs"):
        read("_:H :p 1, 2 .", Limits(vertices=2))


def test_a_home_with_a_class_alone_is_an_event() -> None:
    assert read("_:H a :Ping .").classes == [("<http://example.org/Ping>",)]
