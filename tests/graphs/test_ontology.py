"""Hierarchies: several parents, equivalence, cycles, formats, speed."""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.graphs.meaning import HEAD

from headgate.graphs.ontology import Ontology, close


def name(local: str) -> str:
    return f"<http://example.org/{local}>"


def test_ancestors_run_over_several_parents() -> None:
    o = Ontology.parse(HEAD + ":EBook rdfs:subClassOf :Book, :Digital . :Book rdfs:subClassOf :Product .")
    assert o.classes.ancestors(name("EBook")) == {name(c) for c in ("EBook", "Book", "Digital", "Product")}
    assert o.classes.descendants(name("Product")) == {name(c) for c in ("EBook", "Book", "Product")}
    assert o.classes.below(name("EBook"), name("Product"))
    assert not o.classes.below(name("Product"), name("EBook"))


def test_a_name_that_nobody_stated_is_its_own_ancestor() -> None:
    o = Ontology.empty()
    assert o.classes.ancestors(name("X")) == {name("X")}
    assert o.classes.below(name("X"), name("X"))


def test_equivalent_names_collapse_without_a_warning() -> None:
    o = Ontology.parse(HEAD + ":PC owl:equivalentClass :Computer . :tel owl:equivalentProperty :phone .")
    assert o.classes.ancestors(name("PC")) == {name("PC"), name("Computer")}
    assert o.properties.below(name("phone"), name("tel"))
    assert o.warnings == ()


def test_a_cycle_is_an_equivalence_with_a_warning() -> None:
    o = Ontology.parse(HEAD + ":A rdfs:subClassOf :B . :B rdfs:subClassOf :A . :A rdfs:subClassOf :C .")
    assert o.classes.ancestors(name("B")) == {name("A"), name("B"), name("C")}
    assert o.warnings == (f"a cycle in the hierarchy makes these equivalent: {name('A')}, {name('B')}",)


def test_intersections_and_unions_of_named_classes_imply_subclasses() -> None:
    o = Ontology.parse(
        HEAD + ":Gift owl:equivalentClass [ owl:intersectionOf (:Product :Wrapped) ] ."
        ":Media owl:equivalentClass [ owl:unionOf (:Book :Film) ] ."
    )
    assert o.classes.below(name("Gift"), name("Wrapped"))
    assert o.classes.below(name("Film"), name("Media"))
    assert not o.classes.below(name("Media"), name("Film"))


def test_domains_and_ranges_give_meta_statements() -> None:
    o = Ontology.parse(HEAD + ":target rdfs:domain :Selling ; rdfs:range :Product . :price rdfs:domain :Selling .")
    assert o.meta_statements() == [(name("Selling"), name("target"), name("Product"))]


FORMATS = {
    "o.ttl": HEAD + ":A rdfs:subClassOf :B .",
    "o.nt": f"{name('A')} <http://www.w3.org/2000/01/rdf-schema#subClassOf> {name('B')} .\n",
    "o.owl": """<?xml version="1.0"?><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#"><rdf:Description rdf:about="http://example.org/A">
        <rdfs:subClassOf rdf:resource="http://example.org/B"/></rdf:Description></rdf:RDF>""",
    "o.jsonld": """{"@context": {"sub": {"@id": "http://www.w3.org/2000/01/rdf-schema#subClassOf", "@type": "@id"}},
        "@id": "http://example.org/A", "sub": "http://example.org/B"}""",
}


@pytest.mark.parametrize("file", FORMATS)
def test_every_format_is_read(file: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(FORMATS[file])
    assert Ontology.load(tmp_path / file).classes.below(name("A"), name("B"))


def test_several_files_make_one_ontology(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(HEAD + ":A rdfs:subClassOf :B .")
    (tmp_path / "b.ttl").write_text(HEAD + ":B rdfs:subClassOf :C .")
    assert Ontology.load(tmp_path / "a.ttl", tmp_path / "b.ttl").classes.below(name("A"), name("C"))


@given(st.integers(0, 2**32))
@settings(max_examples=100, deadline=None)
def test_the_closure_is_reachability(seed: int) -> None:
    random = Random(seed)
    nodes = [f"<n{i}>" for i in range(random.randrange(1, 90))]
    edges = [(random.choice(nodes), random.choice(nodes)) for _ in range(random.randrange(2 * len(nodes)))]
    closed, _ = close(edges, names=nodes)
    for start in random.sample(nodes, min(5, len(nodes))):
        reached, front = {start}, [start]
        for node in front:
            fresh = [b for a, b in edges if a == node and b not in reached]
            reached.update(fresh)
            front += dict.fromkeys(fresh)
        assert closed.ancestors(start) == reached
        assert all(closed.below(start, n) == (n in reached) for n in nodes)


def test_1000_classes_with_1500_properties_load_and_close_in_two_seconds() -> None:
    lines = [HEAD]
    lines += [f":C{i} a owl:Class ; rdfs:subClassOf :C{i // 2}, :C{i // 3} ." for i in range(1, 1000)]
    lines += [
        f":p{i} a owl:ObjectProperty ; rdfs:subPropertyOf :p{i // 2} ; rdfs:domain :C{i % 99} ; rdfs:range :C{i % 7} ."
        for i in range(1, 1500)
    ]
    started = time.perf_counter()
    o = Ontology.parse("\n".join(lines))
    assert time.perf_counter() - started < 2
    assert o.classes.below(name("C999"), name("C0"))
    assert len(o.meta_statements()) == 1499
