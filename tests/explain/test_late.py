"""Explanations of subscriptions with operator calls and GRAPH patterns."""

from __future__ import annotations

from typing import Any

import pytest

import headgate as hg

calls: list[str] = []


@hg.operator(cost=5.0)
def loc_in(event: Any, area: str) -> bool:
    calls.append(f"loc_in {area}")
    return area == "Bronx"


@hg.operator(cost=1.0)
def people(event: Any, count: Any) -> list[tuple[int]]:
    calls.append("people")
    return [(10,), (60,)]


@hg.operator
def broken(event: Any) -> bool:
    raise ValueError("no camera")


EVENT = {"x": 5, "g": "_:H <http://e/p> 500 ."}
GRAPH = "x > 3 AND GRAPH { _:H <http://e/p> ?v . FILTER (?v < 400) }"


def plan(**texts: str) -> hg.Plan:
    book = hg.Subscriptions(operators=[loc_in, people, broken])
    book.stream("s", {"x": "bigint", "g": "graph"})
    for name, text in texts.items():
        book.add(name, text)
    return book.compile()


@pytest.fixture(autouse=True)
def no_calls() -> None:
    calls.clear()


def test_a_match_shows_what_every_call_answered() -> None:
    why = plan(m="x > 3 AND loc_in('Bronx') AND people(?n) AND ?n > 50").explain("m", EVENT)
    assert why.matched
    assert [(a.text, a.truth, a.note) for a in why.atoms] == [
        ("x > 3", True, ""),
        ("loc_in('Bronx')", True, ""),
        ("people(?n)", True, "2 row(s)"),
        ("?n > 50", True, "for some row"),
    ]
    assert why.blocking == ("x > 3",)


def test_the_calls_are_told_in_their_order_with_what_they_decided() -> None:
    made = plan(m="loc_in('Bronx') AND people(?n) AND ?n > 50", other="people(?n) AND ?n > 70")
    story = made.explain("m", EVENT).story
    assert story[0] == "the calls of this event, in their order:"
    assert story[1].startswith("  1. people(?0) -> TRUE, 2 row(s)")
    assert story[1].endswith("; decided other")
    assert story[2].startswith("  2. loc_in('Bronx') -> TRUE")
    assert story[2].endswith("; decided m")
    assert story[3].strip() == "2 call(s), 2 predicate(s) in the book"


def test_explaining_makes_the_calls_that_matching_makes() -> None:
    made = plan(m="loc_in('Bronx') AND people(?n) AND ?n > 50", other="loc_in('Bronx')")
    made.explain("m", EVENT)
    assert sorted(calls) == ["loc_in Bronx", "people"]


def test_a_miss_names_the_constraint_that_no_row_satisfies() -> None:
    why = plan(m="loc_in('Bronx') AND people(?n) AND ?n > 70").explain("m", EVENT)
    assert why.matched is False
    assert why.blocking == ("?n > 70",)


def test_what_the_attributes_decide_is_not_asked() -> None:
    why = plan(m="x > 3 AND loc_in('Bronx')").explain("m", {**EVENT, "x": 1})
    assert calls == []
    assert why.blocking == ("x > 3",)
    assert [a.note for a in why.atoms] == ["", "not asked"]
    assert why.story == ("no call for it: its conditions on attributes decided it",)


def test_constraints_that_hold_one_by_one_and_not_together_are_told() -> None:
    why = plan(m="people(?n) AND ?n > 50 AND ?n < 20").explain("m", EVENT)
    assert why.matched is False
    assert why.blocking == ("no choice of rows satisfies all conditions on the variables together",)


def test_a_call_that_fails_says_why() -> None:
    why = plan(m="broken()").explain("m", EVENT)
    assert why.matched is False
    assert why.atoms[0].truth is None
    assert "no camera" in why.atoms[0].note


def test_a_negated_call_blocks_if_it_holds() -> None:
    why = plan(m="x > 3 AND NOT loc_in('Bronx')").explain("m", EVENT)
    assert why.matched is False
    assert why.blocking == ("loc_in('Bronx')",)


def test_an_attribute_that_strict_asks_for_is_named() -> None:
    book = hg.Subscriptions(operators=[loc_in])
    book.stream("s", {"x": "bigint", "y": "bigint"})
    book.add("m", "(x > 3 OR y = 1) AND loc_in('Bronx')", missing="strict")
    assert book.compile().explain("m", {"x": 5}).blocking == ("y is missing",)


def test_a_graph_says_which_statement_could_not_be_matched() -> None:
    why = plan(g=GRAPH).explain("g", EVENT)
    assert why.matched is False
    assert why.blocking == ("GRAPH { _:H <http://e/p> ?v . FILTER (?v < 400) }",)
    assert "    _:H <http://e/p> 500: 500 < 400 is not true" in "\n".join(why.story)


def test_a_graph_that_matches_shows_its_binding() -> None:
    why = plan(g=GRAPH).explain("g", {**EVENT, "g": "_:H <http://e/p> 300 ."})
    assert why.matched
    assert "  with ?v = 300" in why.story


def test_a_graph_that_cannot_be_read_is_told() -> None:
    why = plan(g=GRAPH).explain("g", {**EVENT, "g": "not a graph"})
    assert why.matched is False
    assert why.atoms[1].truth is None
    assert why.story


def test_the_pictures_are_the_diagram_the_chains_and_the_matching_tree() -> None:
    made = plan(m="people(?n) AND ?n > 50", g=GRAPH, other="people(?k) AND ?k > 1")
    assert [p.title for p in made.explain("m", EVENT).pictures] == ["m", "chains of m"]
    assert [p.title for p in made.explain("g", EVENT).pictures] == ["g", "matching tree of g"]
    chains = made.explain("m").pictures[1]
    assert 'n1 -.->|"shared"| n3' in chains.mermaid
    assert 'n1 -> n3 [label="shared", style=dashed];' in chains.graphviz
