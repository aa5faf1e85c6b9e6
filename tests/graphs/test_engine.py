"""The engine's side of the protocol."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.graphs.meaning import HEAD, PREFIXES, graph

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.errors import LanguageError, UsageError
from headgate.graphs import rdf
from headgate.graphs.engine import GraphEngine
from headgate.graphs.event import Limits
from headgate.graphs.ontology import Ontology
from headgate.graphs.pattern import Prefixes
from headgate.graphs.template import Template
from headgate.language import ast

EVENTS = [
    "_:H a :Sale ; :price 5 ; :item [ a :Desktop ] .",
    "not rdf",
    None,
    "_:H a :Sale ; :price 9 .",
]


def columns(events: Sequence[str | None] = EVENTS, **more: Sequence[str | None]) -> Columns:
    texts = {"g": events, **more}
    return Columns.of("sales", {n: ("graph", [e and HEAD + e for e in es]) for n, es in texts.items()})


def engine(ontology: str = "", limits: Limits | None = None) -> GraphEngine:
    return GraphEngine(Ontology.parse(HEAD + ontology), PREFIXES, ("g",), limits or Limits())


def rows(hits: Hits) -> list[tuple[int, int, dict[str, object]]]:
    assert hits.binding is not None
    return list(zip(hits.event.tolist(), hits.slot.tolist(), hits.binding, strict=True))


PATTERNS = [
    graph("GRAPH { _:H :price ?p }"),
    graph("GRAPH { _:H :item ?i . ?i a :Computer }"),
    graph("GRAPH { _:H a :Sale }"),
]


def test_hits_come_by_event_and_slot_with_bindings() -> None:
    e = engine(":Desktop rdfs:subClassOf :Computer .")
    hits = e.evaluate(e.compile(PATTERNS), columns())
    assert rows(hits) == [
        (0, 0, {"p": 5}), (0, 1, {"i": "_:b1"}), (0, 2, {}), (3, 0, {"p": 9}), (3, 2, {}),
    ]  # fmt: skip


def test_bad_and_missing_graphs_are_unknown_and_only_bad_ones_are_trouble() -> None:
    e = engine()
    hits = e.evaluate(e.compile(PATTERNS), columns())
    assert hits.unknown.tolist() == [1, 2]
    assert [(t.event, t.slot, t.code) for t in hits.problems] == [(1, None, "rdf")]
    assert "not turtle" in hits.problems[0].reason


def test_only_what_upstream_asks_for_is_answered_and_read() -> None:
    e = engine()
    asked = Hits(np.array([0, 3], np.int64), np.array([2, 0], np.int32))
    hits = e.evaluate(e.compile(PATTERNS), columns(), asked)
    assert rows(hits) == [(0, 2, {}), (3, 0, {"p": 9})]
    assert hits.unknown.tolist() == []
    assert list(hits.problems) == []


def test_every_binding_is_given_to_slots_that_join() -> None:
    e = engine()
    batch = columns(["_:H :price 5, 7, 6 ."])
    assert rows(e.evaluate(e.compile(PATTERNS[:1]), batch)) == [(0, 0, {"p": 5})]
    both = e.compile([*PATTERNS[:1], graph("GRAPH { _:H :price ?q }")], every=[1])
    assert rows(e.evaluate(both, batch)) == [(0, 0, {"p": 5}), (0, 1, {"q": 5}), (0, 1, {"q": 6}), (0, 1, {"q": 7})]


def test_identical_patterns_of_different_subscribers_are_one() -> None:
    e = engine()
    index = e.compile([graph(f"GRAPH {{ _:H a :Sale ; :price ?{name} }}") for name in ("a", "b", "c")])
    patterns = index.parts[0].matcher.index
    assert len(patterns.patterns) == 1
    assert rows(e.evaluate(index, columns()))[:3] == [(0, 0, {"a": 5}), (0, 1, {"b": 5}), (0, 2, {"c": 5})]


def test_the_least_binding_follows_the_names_of_each_subscriber() -> None:
    e = engine()
    batch = columns(["_:H :p 1, 2 ; :q 1, 2 . "])
    one, other = (
        graph("GRAPH { _:H :p ?a ; :q ?b . FILTER (?a <> ?b) }"),
        graph("GRAPH { _:H :p ?b ; :q ?a . FILTER (?b <> ?a) }"),
    )
    assert rows(e.evaluate(e.compile([one, other]), batch)) == [(0, 0, {"a": 1, "b": 2}), (0, 1, {"a": 1, "b": 2})]


def test_a_batch_is_read_once_for_several_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    e = engine()
    batch = columns(EVENTS[:1])
    read: list[str] = []
    original = rdf.read

    def counted(text: str) -> list[rdf.Triple]:
        read.append(text)
        return original(text)

    monkeypatch.setattr(rdf, "read", counted)
    for pattern in PATTERNS:
        e.evaluate(e.compile([pattern]), batch)
    assert len(read) == 1


def test_an_ontology_is_reloaded_without_compiling_again() -> None:
    e = engine()
    index = e.compile(PATTERNS[1:2])
    assert rows(e.evaluate(index, columns())) == []
    better = index.with_ontology(Ontology.parse(HEAD + ":Desktop rdfs:subClassOf :Computer ."))
    assert [r[:2] for r in rows(e.evaluate(better, columns()))] == [(0, 0)]
    assert rows(e.evaluate(index, columns())) == []


def test_a_pattern_may_name_its_column() -> None:
    e = engine()
    other = graph("GRAPH o { _:H :price ?p }")
    index = e.compile([PATTERNS[0], other])
    assert e.needs(index) == {("g",), ("o",)}
    batch = columns(["_:H :price 1 .", "_:H :x 1 ."], o=["_:H :price 2 .", "_:H :price 3 ."])
    assert rows(e.evaluate(index, batch)) == [(0, 0, {"p": 1}), (0, 1, {"p": 2}), (1, 1, {"p": 3})]


def test_a_stream_without_graphs_refuses_patterns() -> None:
    with pytest.raises(LanguageError, match="not clear which graph") as caught:
        GraphEngine(prefixes=PREFIXES).compile(PATTERNS)
    assert caught.value.at == 0
    with pytest.raises(UsageError, match="not a GRAPH"):
        engine().compile([ast.TRUE])


def test_plain_columns_join_through_a_template() -> None:
    template = Template.of(
        ast.Graph((ast.Triple(ast.Blank("H"), ast.Name(":price"), ast.Attribute(("price",))),)), Prefixes(PREFIXES)
    )
    e = GraphEngine(prefixes=PREFIXES, source=template)
    index = e.compile(PATTERNS[:1])
    assert e.needs(index) == {("price",)}
    hits = e.evaluate(index, Columns.of("s", {"price": ("double", [1.5, None])}))
    assert rows(hits) == [(0, 0, {"p": 1.5})]
    assert hits.unknown.tolist() == [1]
    assert list(hits.problems) == []


def test_too_many_bindings_are_trouble_of_their_slot() -> None:
    e = engine(limits=Limits(bindings=2))
    index = e.compile([PATTERNS[0], PATTERNS[2]], every=[0])
    hits = e.evaluate(index, columns(["_:H a :Sale ; :price 1, 2, 3 ."]))
    assert rows(hits) == [(0, 1, {})]
    assert [(t.event, t.slot, t.code) for t in hits.problems] == [(0, 0, "limit")]


def test_batches_larger_than_a_chunk_keep_their_rows() -> None:
    e = engine()
    batch = columns([f"_:H :price {i} ." if i % 3 else None for i in range(1300)])
    hits = e.evaluate(e.compile(PATTERNS[:1]), batch)
    assert rows(hits) == [(i, 0, {"p": i}) for i in range(1300) if i % 3]


def test_classes_that_nobody_asks_for_take_no_room() -> None:
    e = engine()
    index = e.compile(PATTERNS)
    e.evaluate(index, columns([f"_:H a :Odd{i} ; :odd{i} _:x . _:x a :Other{i} ." for i in range(50)]))
    tables = index.parts[0].matcher.index.dictionary.tables()
    assert len(tables[0]) < 5


def test_threads_share_an_index() -> None:
    e = engine()
    index = e.compile([graph(f"GRAPH {{ _:H a :C{i} ; :price ?p }}") for i in range(40)])
    batches = [columns([f"_:H a :C{(i * j) % 40}, :C{j} ; :price {i} ." for i in range(40)]) for j in range(8)]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda b: rows(e.evaluate(index, b)), batches))
    assert together == [
        rows(engine().evaluate(e.compile([graph(f"GRAPH {{ _:H a :C{i} ; :price ?p }}") for i in range(40)]), b))
        for b in batches
    ]


def test_engine_and_index_travel_to_other_processes() -> None:
    e = engine(":Desktop rdfs:subClassOf :Computer .")
    index = e.compile(PATTERNS)
    there, index2 = pickle.loads(pickle.dumps((e, index)))  # noqa: S301 - our own bytes
    assert rows(there.evaluate(index2, columns())) == rows(e.evaluate(index, columns()))
