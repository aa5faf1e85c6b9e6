"""Event graphs from plain columns."""

from __future__ import annotations

import pytest

from headgate.columns import Columns
from headgate.errors import LanguageError
from headgate.graphs.event import BadGraph, EventGraph, Limits
from headgate.graphs.pattern import Prefixes
from headgate.graphs.template import Template
from headgate.graphs.terms import Term, literal_of
from headgate.language import ast
from headgate.language.parser import parse_script

COLUMNS = Columns.of(
    "offers",
    {
        "sku": ("string", ["a", "b", None]),
        "kind": ("string", ["Laptop", "shop:Phone", "http://example.org/other/Book"]),
        "price": ("double", [3.5, None, 2.0]),
        "count": ("bigint", [7, 8, None]),
        "at": ("timestamp", [0, None, None]),
        "seller.name": ("string", ["Ann", None, "Bo"]),
        "seller.city": ("string", [None, None, "Lund"]),
        "tags": ("array<string>", [["x", "y"], [], None]),
    },
)
TEMPLATE = """_:H a :Offer ; :item _:i ; :price price ; :count count ; :at at ; :seller _:s ; :tag tags .
    _:i a kind ; :sku sku . _:s a :Person ; :name seller.name ; :address _:a . _:a :city seller.city"""
BASE = "http://example.org/"


def template(body: str, prefixes: dict[str, str] | None = None) -> Template:
    (statement,) = parse_script(f"CREATE STREAM offers (sku STRING) AS GRAPH {{ {body} }};")
    assert isinstance(statement, ast.CreateStream)
    assert statement.graph is not None
    return Template.of(statement.graph, Prefixes({"": BASE, "shop": "http://shop/"} if prefixes is None else prefixes))


def triples(body: str, row: int) -> set[tuple[str, str, str]]:
    (event,) = template(body).read(COLUMNS, [row])
    assert isinstance(event, EventGraph)

    def shown(term: Term) -> str:
        return str(term).replace(f"<{BASE}", ":").replace("<http://www.w3.org/2001/XMLSchema#", "xsd:").rstrip(">")

    made = {(shown(event.terms[s]), shown(p), shown(event.terms[o])) for s, p, o in event.arcs}
    classes = {(shown(t), "a", shown(c)) for t, cs in zip(event.terms, event.classes, strict=True) for c in cs}
    return made | {c for c in classes if not c[0].startswith('"')}


def test_attributes_become_literals_of_their_types_and_classes() -> None:
    assert triples(TEMPLATE, 0) == {
        ("_:H", "a", ":Offer"),
        ("_:H", ":item", "_:i"),
        ("_:i", "a", ":Laptop"),
        ("_:i", ":sku", '"a"'),
        ("_:H", ":price", '"3.5"^^xsd:double'),
        ("_:H", ":count", '"7"^^xsd:integer'),
        ("_:H", ":at", '"1970-01-01T00:00:00Z"^^xsd:dateTime'),
        ("_:H", ":seller", "_:s"),
        ("_:s", "a", ":Person"),
        ("_:s", ":name", '"Ann"'),
        ("_:H", ":tag", '"x"'),
        ("_:H", ":tag", '"y"'),
    }


def test_a_struct_that_is_missing_leaves_no_trace() -> None:
    assert triples(TEMPLATE, 1) == {
        ("_:H", "a", ":Offer"),
        ("_:H", ":item", "_:i"),
        ("_:i", "a", "<http://shop/Phone"),
        ("_:i", ":sku", '"b"'),
        ("_:H", ":count", '"8"^^xsd:integer'),
    }


def test_a_node_is_there_if_anything_below_it_is() -> None:
    made = triples(TEMPLATE, 2)
    assert {("_:H", ":seller", "_:s"), ("_:s", ":address", "_:a"), ("_:a", ":city", '"Lund"')} < made
    assert ("_:i", "a", ":other/Book") in made


def test_an_attribute_that_is_a_subject_names_a_thing() -> None:
    made = triples("_:H a :Offer ; :item sku . sku a :Product ; :price price", 0)
    assert made == {
        ("_:H", "a", ":Offer"),
        ("_:H", ":item", ":a"),
        (":a", "a", ":Product"),
        (":a", ":price", '"3.5"^^xsd:double'),
    }
    assert triples("_:H a :Offer ; :item sku . sku a :Product ; :price price", 2) == {("_:H", "a", ":Offer")}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("_:x :p sku", "says nothing about the home vertex"),
        ("_:H :p sku . _:x :q sku", "cannot be reached"),
        ("_:H :p ?x", "no variables"),
        ("_:H :p sku . FILTER (1 = 1)", "no FILTER"),
        ("_:H a 'x'", "a class must be named"),
        ("_:H odd:p sku", "there is no prefix odd:"),
    ],
)
def test_a_template_that_cannot_work_is_refused(body: str, reason: str) -> None:
    with pytest.raises(LanguageError, match=reason):
        template(body)


def test_names_from_attributes_need_an_empty_prefix() -> None:
    with pytest.raises(LanguageError, match="need an empty prefix"):
        template("_:H a sku", {})


def test_a_template_says_what_it_needs() -> None:
    assert ("seller", "city") in template(TEMPLATE).needs()
    assert len(template(TEMPLATE).needs()) == 8


def test_an_event_without_any_attribute_of_its_graph_has_none() -> None:
    assert template("_:H :at at").read(COLUMNS, [1]) == [None]


def test_two_attributes_that_say_the_same_say_it_once() -> None:
    columns = Columns.of("s", {"one": ("string", ["x", "x"]), "two": ("string", ["x", "y"])})
    same, different = template("_:H :tag one, two").read(columns, [0, 1])
    assert isinstance(same, EventGraph)
    assert isinstance(different, EventGraph)
    assert (len(same.arcs), len(different.arcs)) == (1, 2)


def test_equal_elements_of_an_array_are_one_statement() -> None:
    columns = Columns.of("s", {"tags": ("array<string>", [["x", "y", "x"], ["z"]])})
    first, second = template("_:H :tag tags").read(columns, [0, 1])
    assert isinstance(first, EventGraph)
    assert isinstance(second, EventGraph)
    assert [len(first.arcs), len(second.arcs)] == [2, 1]


def test_events_of_one_shape_do_not_share_their_values() -> None:
    made = template("_:H a kind ; :price price").read(COLUMNS, [0, 2, 0])
    prices = [g.terms[1] for g in made if isinstance(g, EventGraph)]
    assert prices == [literal_of(3.5), literal_of(2.0), literal_of(3.5)]
    classes = [g.classes[0] for g in made if isinstance(g, EventGraph)]
    assert classes[:2] == [(f"<{BASE}Laptop>",), ("<http://example.org/other/Book>",)]


def test_a_graph_beyond_the_limits_is_an_error_of_its_event() -> None:
    (bad,) = template(TEMPLATE).read(COLUMNS, [0], Limits(vertices=3))
    assert isinstance(bad, BadGraph)
