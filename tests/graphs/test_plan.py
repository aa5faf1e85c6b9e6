"""GRAPH patterns in plans: what is read once, and what a new ontology changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import headgate as hg
from headgate.graphs import rdf
from headgate.graphs.ontology import Ontology
from headgate.operators.builtin.reasoning import OntologyClasses, class_operators

PREFIX = "@prefix : <http://example.org/> . "
EVENTS: list[dict[str, Any]] = [
    {"g": f"{PREFIX}_:H a :Sale ; :item [ a :Desktop ] ; :price {i} .", "vol": i} for i in range(6)
]
SCRIPT = """
PREFIX : <http://example.org/>;
CREATE STREAM sales (g GRAPH, vol BIGINT);
CREATE SUBSCRIPTION computers ON sales AS GRAPH { _:H :item ?i . ?i a :Computer };
"""
TEMPLATE = """
PREFIX : <http://example.org/>;
CREATE STREAM sales (kind STRING, price DOUBLE) AS GRAPH { _:H a :Sale ; :item _:i ; :price price . _:i a kind };
CREATE SUBSCRIPTION cheap ON sales AS GRAPH { _:H :price ?p . FILTER (?p < 3) };
"""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were parsed so far."""
    texts: list[str] = []
    original = rdf.read

    def counted(text: str, *more: Any) -> list[rdf.Triple]:
        texts.append(text)
        return original(text, *more)

    monkeypatch.setattr(rdf, "read", counted)
    return texts


def found(plan: hg.Plan, events: list[dict[str, Any]] | None = None) -> list[tuple[int, str]]:
    rows = plan.match(EVENTS if events is None else events).to_pylist()
    return [(r["event"], r["subscription"]) for r in rows]


def test_a_graph_is_read_once_for_all_segments_of_a_plan(read: list[str]) -> None:
    subs = hg.Subscriptions.parse(SCRIPT)
    subs.compile()
    for i in range(4):
        subs.add(f"p{i}", f"vol >= {i} AND GRAPH {{ _:H :price ?p . FILTER (?p > {i}) }}", on="sales")
        plan = subs.compile()
    assert len(plan.segments) == 5
    assert [e for e, name in found(plan) if name == "p2"] == [3, 4, 5]
    assert sorted(read) == sorted(e["g"] for e in EVENTS)


def test_a_sequence_reads_the_graphs_that_the_filters_have_read(read: list[str]) -> None:
    subs = hg.Subscriptions.parse(SCRIPT)
    subs.add("any", "GRAPH { _:H a :Sale }", on="sales")
    subs.add(
        "two",
        "SELECT x.vol AS v FROM FILTER {GRAPH { _:H :price 2 }} (sales) AS x NEXT {GRAPH { _:H :price 4 }} sales AS y",
    )
    assert (4, "two") in found(subs.compile())
    assert sorted(read) == sorted(e["g"] for e in EVENTS)


def test_graphs_of_a_template_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from headgate.graphs.template import Template

    made: list[int] = []
    original = Template.read

    def counted(self: Template, columns: Any, rows: Any, *more: Any) -> Any:
        made.extend(rows)
        return original(self, columns, rows, *more)

    monkeypatch.setattr(Template, "read", counted)
    subs = hg.Subscriptions.parse(TEMPLATE)
    subs.compile()
    subs.add("dear", "GRAPH { _:H :price ?p . FILTER (?p > 3) }", on="sales")
    events = [{"kind": "Desktop", "price": float(i)} for i in range(5)]
    assert found(subs.compile(), events) == [(0, "cheap"), (1, "cheap"), (2, "cheap"), (4, "dear")]
    assert made == [0, 1, 2, 3, 4]


def test_an_event_whose_graph_cannot_be_read_is_one_error_of_all_segments() -> None:
    subs = hg.Subscriptions.parse(SCRIPT)
    subs.compile()
    subs.add("any", "GRAPH { _:H a :Sale }", on="sales")
    matches, errors = subs.compile().match([EVENTS[0], {"g": "no graph"}], errors="collect")
    assert [(e["event"], e["code"]) for e in errors.to_pylist()] == [(1, "rdf")]
    assert matches.column("subscription").to_pylist() == ["any"]


def test_a_replaced_ontology_counts_from_the_next_compile_on(tmp_path: Path) -> None:
    ontology = tmp_path / "shop.ttl"
    ontology.write_text(f"{PREFIX}")
    subs = hg.Subscriptions.parse(SCRIPT + f"CREATE ONTOLOGY shop FROM '{ontology}';")
    before = subs.compile()
    assert found(before) == []
    ontology.write_text(
        f"{PREFIX} @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . :Desktop rdfs:subClassOf :Computer ."
    )
    subs.extend(f"DROP ONTOLOGY shop; CREATE ONTOLOGY shop FROM '{ontology}';")
    after = subs.compile()
    assert found(after) == [(i, "computers") for i in range(6)]
    assert found(before) == [], "a plan keeps the meaning it was compiled with"
    assert before.fingerprint != after.fingerprint, "workers must not take the one for the other"
    assert after.segments == before.segments, "nothing but the meaning is compiled again"


def test_a_dropped_ontology_means_nothing_from_the_next_compile_on(tmp_path: Path) -> None:
    ontology = tmp_path / "shop.nt"
    ontology.write_text(
        "<http://example.org/Desktop> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://example.org/Computer> ."
    )
    subs = hg.Subscriptions.parse(SCRIPT + f"CREATE ONTOLOGY shop FROM '{ontology}';")
    assert len(found(subs.compile())) == 6
    subs.extend("DROP ONTOLOGY shop;")
    assert found(subs.compile()) == []


def test_a_replaced_ontology_reaches_sequences_too(tmp_path: Path) -> None:
    ontology = tmp_path / "shop.ttl"
    ontology.write_text(PREFIX)
    subs = hg.Subscriptions.parse(SCRIPT.partition("CREATE SUBSCRIPTION")[0] + f"CREATE ONTOLOGY s FROM '{ontology}';")
    subs.add("s", "SELECT vol AS v FROM FILTER {GRAPH { _:H :item ?i . ?i a :Computer }} (sales)")
    assert found(subs.compile()) == []
    ontology.write_text(
        f"{PREFIX} @prefix owl: <http://www.w3.org/2002/07/owl#> . :Desktop owl:equivalentClass :Computer ."
    )
    subs.extend(f"DROP ONTOLOGY s; CREATE ONTOLOGY s FROM '{ontology}';")
    assert len(found(subs.compile())) == 6


def test_a_reasoning_operator_asks_the_ontology() -> None:
    ontology = Ontology.parse(
        f"{PREFIX} @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        ":Desktop rdfs:subClassOf :Computer . :Computer rdfs:subClassOf :Product, <http://other.org/Thing> ."
    )
    subs = hg.Subscriptions(class_operators(OntologyClasses(ontology, "http://example.org/"), "kind"))
    subs.stream("items", {"kind": "string"})
    subs.add("products", "is_a('Product')")
    subs.add("things", "is_a('http://other.org/Thing') AND NOT is_a('Book')")
    assert found(subs.compile(), [{"kind": k} for k in ("Desktop", "Book", None, "Product")]) == [
        (0, "products"),
        (0, "things"),
        (3, "products"),
    ]
