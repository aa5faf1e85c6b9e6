"""RDF text to triples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from headgate.errors import UsageError
from headgate.graphs import rdf
from headgate.graphs.terms import HOME, TYPE, Literal, literal_of

CLASS, PRICE = "<http://example.org/Selling>", "<http://example.org/price>"
TEXTS = {
    "turtle": "@prefix : <http://example.org/> . _:H a :Selling ; :price 5 .",
    "n-triples": f'_:H {TYPE} {CLASS} .\n_:H {PRICE} "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n',
    "n-quads": f"_:H {TYPE} {CLASS} <http://g> .\n"
    f'_:H {PRICE} "5"^^<http://www.w3.org/2001/XMLSchema#integer> <http://g> .\n',
    "json-ld": '{"@context": {"@vocab": "http://example.org/"}, "@id": "_:H", "@type": "Selling", "price": 5}',
}


@pytest.mark.parametrize("format_", TEXTS)
def test_home_keeps_its_label_in_every_format(format_: str) -> None:
    text = TEXTS[format_]
    assert set(rdf.read(text)) == {(HOME, TYPE, CLASS), (HOME, PRICE, literal_of(5))}
    assert rdf.read(text, format_) == rdf.read(text)


def test_anonymous_nodes_have_the_same_names_each_time_and_avoid_those_in_use() -> None:
    text = "@prefix : <http://example.org/> . _:H :p [ :q [] ] ; :p _:b1 ."
    first, second = rdf.read(text), rdf.read(text)
    assert first == second
    nodes = {t for triple in first for t in (triple[0], triple[2])}
    assert len(nodes) == 4
    assert {HOME, "_:b1"} < nodes


def test_a_label_that_looks_random_is_kept() -> None:
    label = "0123456789abcdef0123456789abcdef"
    assert rdf.read(f"_:H <http://example.org/p> _:{label} .")[0][2] == f"_:{label}"


def test_a_repeated_statement_counts_once() -> None:
    assert len(rdf.read("_:H <http://p> 1 , 1 . _:H <http://p> 1 .")) == 1


def test_the_tag_of_a_language_is_lower_case() -> None:
    assert rdf.read("_:H <http://p> 'colour'@en-GB .")[0][2] == Literal(
        "colour", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>", "en-gb"
    )


def test_what_is_no_rdf_is_refused_with_the_place() -> None:
    with pytest.raises(rdf.BadRdf, match=r"not turtle.*line 1"):
        rdf.read("_:H oops .")
    with pytest.raises(rdf.BadRdf, match="not json-ld"):
        rdf.read('{"@id": "_:H", ')


def test_a_file_without_a_known_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="names no RDF format"):
        rdf.read_file(tmp_path / "market.txt")
    with pytest.raises(UsageError, match="cannot be read"):
        rdf.read_file(tmp_path / "absent.ttl")


def test_written_triples_read_back() -> None:
    triples = rdf.read(TEXTS["turtle"])
    assert rdf.read(rdf.write(triples), "n-triples") == triples


RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">{}</rdf:RDF>'
NESTED: dict[str, Callable[[int], str]] = {
    "json-ld": lambda n: '{"@id":"a:b","p:p":' * n + "1" + "}" * n,
    "json-ld lists": lambda n: '{"p:p":' + "[" * n + "1" + "]" * n + "}",
    "rdf-xml": lambda n: RDF.format("<rdf:Description><e:p>" * (n // 2) + "</e:p></rdf:Description>" * (n // 2)),
    "rdf-xml tricks": lambda n: RDF.format(
        "<!-- </a> --><rdf:Description e:q='/>'><e:p>" * (n // 2) + "</e:p></rdf:Description>" * (n // 2)
    ),
}


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize("levels", [300, 3_000, 100_000])
def test_nesting_has_a_limit(kind: str, levels: int) -> None:
    with pytest.raises(rdf.BadRdf, match="nested more than 200 levels deep"):
        rdf.read(NESTED[kind](levels), kind.partition(" ")[0])
    assert rdf.read(NESTED[kind](150), kind.partition(" ")[0])


@pytest.mark.parametrize("levels", [3_000, 100_000])
def test_turtle_may_be_nested(levels: int) -> None:
    assert len(rdf.read("_:H <http://e/p> " + "[ <http://e/p> " * levels + "1" + " ]" * levels + " .")) == levels + 1


ENTITY = '<!DOCTYPE r [<!ENTITY a0 "{}">{}]>' + RDF.format("<rdf:Description><e:p>{}</e:p></rdf:Description>")


def test_entities_that_blow_up_are_refused() -> None:
    laughs = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 9))
    with pytest.raises(rdf.BadRdf, match="the entity a1 is refused"):
        rdf.read(ENTITY.format("ha", laughs, "&a8;"), "rdf-xml")
    with pytest.raises(rdf.BadRdf, match="the entities stand for more than 10,000,000 characters"):
        rdf.read(ENTITY.format("x" * 20_000, "", "&a0;" * 1_000), "rdf-xml")
    with pytest.raises(rdf.BadRdf, match="the entity f is refused"):
        rdf.read(ENTITY.format("x", '<!ENTITY f SYSTEM "/etc/passwd">', "&f;"), "rdf-xml")
    assert rdf.read(ENTITY.format("plain", "", "&a0;"), "rdf-xml")[0][2] == literal_of("plain")
