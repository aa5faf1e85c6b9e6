from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.columns import Columns
from headgate.filters.compile import Options
from headgate.filters.dependencies import Dependencies
from headgate.filters.engine import FilterIndex, _Slice, compile_filters
from headgate.filters.program import FALSE_EDGE, TRUE_EDGE, Budget, Program
from headgate.filters.rows import prepare
from headgate.language.forms import cut
from headgate.language.parser import parse_body
from headgate.language.tokens import tokenise
from headgate.oracle.filters import truth
from headgate.schema import Schema

WORDS = ["", "a", "b", "aa", "ab", "ba", "bb", "aba", "bab", "aab"]
STREAM = Schema.of("s", {"i": "bigint", "t": "string"})
FIRM = Schema.of("s", {"i": "bigint", "t": "string"}, not_null=["i", "t"])
# One event for each pair of values, so that a formula is tried on all there is to know of it.
EVENTS = list(product([None, 0, 1, 2, 3, 4], [None, *WORDS]))


def events(schema: Schema) -> Columns:
    chosen = [e for e in EVENTS if None not in e] if schema is FIRM else EVENTS
    return Columns.of("s", {"i": ("bigint", [i for i, _ in chosen]), "t": ("string", [t for _, t in chosen])})


numbers = st.builds(
    lambda op, c: f"i {op} {c}", st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.sampled_from([0, 1, 2, 2.5, 3])
)
sets = st.lists(st.integers(0, 4), min_size=2, max_size=3, unique=True).map(
    lambda c: f"i IN ({', '.join(map(str, c))})"
)
words = st.builds(
    lambda test, c: test.format(c),
    st.sampled_from(
        [
            "t = '{}'",
            "t <> '{}'",
            "t < '{}'",
            "t CONTAINS '{}'",
            "t STARTS WITH '{}'",
            "t ENDS WITH '{}'",
            "'{}' CONTAINS t",
            "'{}' STARTS WITH t",
            "t LIKE '{}%'",
            "t LIKE '_{}'",
            "t ILIKE '%{}'",
            "t MATCHES '^{}'",
        ]
    ),
    st.sampled_from(WORDS),
)
atoms = st.one_of(numbers, sets, words, st.sampled_from(["i IS NULL", "t IS NULL", "t IS NOT NULL"]))


def formula(random: Random, pool: list[str], depth: int = 3) -> str:
    if depth == 0 or random.random() < 0.2:
        return random.choice(["", "NOT "]) + random.choice(pool)
    joint = random.choice([" AND ", " OR "])
    return "(" + joint.join(formula(random, pool, depth - 1) for _ in range(random.randint(2, 3))) + ")"


books = st.tuples(st.lists(atoms, min_size=2, max_size=6), st.integers(0, 2**32)).map(
    lambda drawn: [formula(Random(drawn[1] + n), drawn[0]) for n in range(4)]
)


def dense(texts: list[str], schema: Schema = STREAM, missing: str = "null", **options: Any) -> FilterIndex:
    items = [(cut(tokenise(t)), missing) for t in texts]
    return compile_filters(items, schema, None, Options(lanes="dense", **options))


def matches(index: FilterIndex, batch: Columns) -> list[tuple[int, int]]:
    hits = index.evaluate(batch)
    return list(zip(hits.event.tolist(), hits.slot.tolist(), strict=True))


def program(*texts: str, **options: Any) -> Program:
    return dense(list(texts), FIRM, **options).lanes.dense[0].program


@settings(max_examples=40, deadline=None)
@given(books, st.sampled_from([STREAM, FIRM]), st.sampled_from(["null", "strict", "default", "total"]))
def test_the_restriction_changes_no_match_of_an_event_that_can_be(texts: list[str], schema: Schema, mode: str) -> None:
    batch = events(schema)
    restricted = matches(dense(texts, schema, mode), batch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Dependencies, "care", lambda self, variables: None)
        assert matches(dense(texts, schema, mode), batch) == restricted
    bodies = list(map(parse_body, texts))
    truths = [[truth(b, batch.row(e), schema, mode) for b in bodies] for e in range(batch.rows)]
    assert restricted == [(e, s) for e, row in enumerate(truths) for s, found in enumerate(row) if found is True]


def truths_of(index: FilterIndex, batch: Columns) -> dict[int, Any]:
    """For each row of the dense program its truth on every event."""
    rows = index.lanes.dense[0].rows
    count = -(-batch.rows // 64)
    bits = np.zeros(len(rows) * count, np.uint64)
    prepare(rows, _Slice(index, batch).batch()).write(0, count, bits, count, 1)
    unpacked = np.unpackbits(bits.reshape(len(rows), count).view(np.uint8), axis=1, bitorder="little")
    return {row: unpacked[row, : batch.rows].astype(np.bool_) for row in range(rows.offset, len(rows))}


@settings(max_examples=80, deadline=None)
@given(st.lists(atoms, min_size=2, max_size=8))
def test_every_dependency_holds_for_every_event(texts: list[str]) -> None:
    index = dense([f"({' AND '.join(texts)}) OR NOT ({' OR '.join(texts)})"])
    if not index.lanes.dense:
        return  # it can never match
    lookup = index.lanes.lookup
    care = Dependencies(index.lanes.dense[0].rows, lookup.cells, lookup.tests).care(truths_of(index, events(STREAM)))
    assert care is None or care.all()


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("i = 1 AND i = 2", 0),
        ("i = 1 OR i <= 2", 1),
        ("i = 1 AND i >= 2", 0),
        ("t = 'aa' AND t CONTAINS 'a'", 1),
        ("t = 'aa' AND t CONTAINS 'b'", 0),
        ("t CONTAINS 'aba' AND t CONTAINS 'b'", 1),
        ("t STARTS WITH 'ab' AND t STARTS WITH 'a' AND t CONTAINS 'b'", 1),
        ("'a' CONTAINS t AND 'aba' CONTAINS t", 1),
        ("t = 'ab' AND t LIKE 'a_' AND t MATCHES '^a'", 1),
    ],
)
def test_what_an_atom_decides_is_not_asked_again(text: str, nodes: int) -> None:
    """Over NOT NULL attributes: `i <= 2` holds for `i = 1`, so one node is left of the two."""
    made = program(text, count=True)
    assert len(made.nodes) == nodes
    assert made.unrestricted >= 2


def test_equal_formulas_are_one_root() -> None:
    made = program("i < 3 AND t = 'a'", "t = 'a' AND i < 3", "NOT (i >= 3 OR t <> 'a')", "i < 3 AND (t = 'a' OR FALSE)")
    assert len(set(made.roots.tolist())) == 1
    assert len(made.nodes) == 2


def test_a_formula_and_its_complement_are_one_node() -> None:
    made = program("i < 3 AND t = 'a'", "NOT (i < 3 AND t = 'a')")
    first, second = made.roots.tolist()
    assert first ^ second == 1


def test_of_an_attribute_that_may_be_missing_the_complement_is_another_formula() -> None:
    made = dense(["i < 3", "NOT i < 3"]).lanes.dense[0].program
    first, second = made.roots.tolist()
    assert first >> 1 != second >> 1


def test_children_come_before_their_parents_in_every_program() -> None:
    random, pool = Random(5), ["i < 2", "i = 3", "t = 'a'", "t CONTAINS 'b'", "t IS NULL"]
    texts = [formula(random, pool, 4) for _ in range(50)]
    for mode, budget in product(["null", "strict"], [Budget(), Budget(variables=2), Budget(variables=0)]):
        made = dense(texts, STREAM, mode, budget=budget).lanes.dense[0].program
        for i, edges in enumerate(made.nodes.tolist()):
            assert max(edges) >> 1 < made.rows + i
        assert made.groups[-1] == len(made.nodes)
        assert len(made.supports) == len(made.groups) - 1


def test_without_a_budget_for_bdds_all_nodes_are_and_or_or() -> None:
    made = program("i = 0 AND (t = 'a' OR t = 'b') AND NOT (i = 1 OR t = 'ab')", budget=Budget(variables=0))
    assert len(made.nodes) == 4
    assert all(high == TRUE_EDGE or low == FALSE_EDGE for _, high, low in made.nodes.tolist())


def test_a_bdd_beyond_its_budget_of_nodes_stays_and_or_or() -> None:
    text = "(i = 0 AND t <> 'a') OR (i <> 0 AND t = 'a')"
    assert any(low != FALSE_EDGE and high != TRUE_EDGE for _, high, low in program(text).nodes.tolist())
    wide = program(text, budget=Budget(nodes_a_literal=0))
    assert all(high == TRUE_EDGE or low == FALSE_EDGE for _, high, low in wide.nodes.tolist())


def test_fallback_nodes_are_shared_by_structure() -> None:
    one = program("i = 0 AND t = 'a' AND i < 2", budget=Budget(variables=0))
    two = program("i = 0 AND t = 'a' AND i < 2", "i < 2 AND (t = 'a' AND i = 0)", budget=Budget(variables=0))
    assert len(two.nodes) == len(one.nodes)
    assert two.roots[0] == two.roots[1]


def test_the_supports_of_a_strict_program_tell_the_attributes_of_a_group() -> None:
    made = dense(["i = 1 AND t = 'a'", "i = 2"], missing="strict").lanes.dense[0]
    assert made.paths == (("i",), ("t",))
    assert made.program.supports.tolist() == [0b01, 0b11] or made.program.supports.tolist() == [0b01, 0b10, 0b11]


def test_the_paper_s_ranges_need_fewer_nodes_when_restricted() -> None:
    random = Random(1)
    texts = [
        " AND ".join(f"(i < {random.randint(0, 50)} OR i = {random.randint(0, 50)})" for _ in range(4))
        for _ in range(50)
    ]
    made = program(*texts, count=True)
    assert 0 < len(made.nodes) < made.unrestricted
