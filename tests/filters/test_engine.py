from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from tests.filters.books_strategy import Case, Pairs, cases

from headgate.columns import Columns
from headgate.filters import engine, filing
from headgate.filters.compile import Options
from headgate.filters.engine import FilterIndex, compile_filters
from headgate.filters.program import Budget
from headgate.language.forms import cut
from headgate.language.tokens import tokenise
from headgate.schema import Kind, Schema, Type

OPTIONS = [
    Options(),
    Options(lanes="dense"),
    Options(lanes="sparse"),
    Options(lanes="dense", budget=Budget(variables=0)),
    Options(lanes="sparse", budget=Budget(variables=3, nodes_a_literal=0)),
]


def pairs_of(index: FilterIndex, batch: Columns) -> Pairs:
    hits = index.evaluate(batch)
    return list(zip(hits.event.tolist(), hits.slot.tolist(), strict=True))


def compare_with_oracle(case: Case) -> None:
    expected, batch = case.matches(), case.batch
    counts = np.bincount([slot for _, slot in expected], minlength=len(case.texts)).tolist()
    for options in OPTIONS:
        for sample in (None, batch) if options.lanes == "auto" else (None,):
            index = compile_filters(case.items, case.schema, sample, options)
            assert pairs_of(index, batch) == expected, options
            assert index.count(batch).tolist() == counts, options


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_every_lane_matches_what_the_oracle_matches_in_order_and_counts_the_same(case: Case) -> None:
    compare_with_oracle(case)


@pytest.mark.nightly
@settings(max_examples=5_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_every_lane_matches_what_the_oracle_matches_for_many_more_books(case: Case) -> None:
    compare_with_oracle(case)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases(sizes=(65, 513)))
def test_slices_and_full_buffers_change_nothing(case: Case) -> None:
    expected = case.matches()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "SLICE", 100)
        patch.setattr(engine, "PAIRS", engine._BLOCK)
        patch.setattr(filing, "PAIRS", 64)
        for options in OPTIONS[:3]:
            index = compile_filters(case.items, case.schema, None, options)
            assert pairs_of(index, case.batch) == expected
            assert index.count(case.batch).sum() == len(expected)


@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases(sizes=(65,)))
def test_the_attributes_an_index_asks_for_suffice(case: Case) -> None:
    for options in OPTIONS[:3]:
        index = compile_filters(case.items, case.schema, None, options)
        batch = case.batch
        needed = {path: column for path, column in batch.columns.items() if path in index.needs}
        assert pairs_of(index, Columns("s", batch.rows, needed)) == case.matches()


def index_of(*texts: str, missing: str = "null", schema: Schema, lanes: str = "auto") -> FilterIndex:
    return compile_filters([(cut(tokenise(t)), missing) for t in texts], schema, None, Options(lanes=lanes))


STREAM = Schema.of("s", {"i": "bigint", "d": "double"})


def test_an_index_without_subscriptions_matches_nothing() -> None:
    index = index_of(schema=STREAM)
    assert pairs_of(index, Columns.of("s", {"i": ("bigint", [1])})) == []
    assert index.count(Columns.of("s", {"i": ("bigint", [1])})).tolist() == []


def test_an_event_of_several_conjuncts_is_one_match() -> None:
    for lanes in ("dense", "sparse", "auto"):
        index = index_of("i = 1 OR d = 2 OR i < 5", schema=STREAM, lanes=lanes)
        batch = Columns.of("s", {"i": ("bigint", [1, 9]), "d": ("double", [2.0, 2.0])})
        assert pairs_of(index, batch) == [(0, 0), (1, 0)]
        assert index.count(batch).tolist() == [2]


@pytest.mark.parametrize("lanes", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d = 1e308 * 10", [2]),
        ("d = 1e308 * 10 - 1e308 * 10", [3]),
        ("d < 1e308 * 10 - 1e308 * 10", [0, 1, 2]),
        ("d <= 1e308 * 10 - 1e308 * 10", [0, 1, 2, 3]),
        ("d IN (1e308 * 10 - 1e308 * 10, 1.0)", [1, 3]),
        ("d NOT IN (1e308 * 10 - 1e308 * 10, 1.0)", [0, 2]),
        ("i < 1e308 * 10", [0, 1]),
        ("i >= -1e308 * 10", [0, 1]),
        ("i <= 1e308 * 10 - 1e308 * 10", [0, 1]),
        ("i = 1e308 * 10 - 1e308 * 10", []),
    ],
)
def test_constants_may_compute_to_infinity_and_nan(text: str, expected: list[int], lanes: str) -> None:
    doubles = [float("-inf"), 1.0, float("inf"), float("nan")]
    batch = Columns.of("s", {"i": ("bigint", [2**63 - 1, -(2**63), None, None]), "d": ("double", doubles)})
    assert pairs_of(index_of(text, schema=STREAM, lanes=lanes), batch) == [(event, 0) for event in expected]


@pytest.mark.parametrize("lanes", ["dense", "sparse"])
def test_in_total_mode_the_keys_of_a_map_may_be_missing(lanes: str) -> None:
    """A map's keys are not declared one by one, so they take no part in what `total` asks of an event."""
    schema = Schema("s", STREAM.attributes, open={("m",): Type(Kind.BIGINT)})
    index = index_of("m.k IS NULL", "NOT m.k > 1", "i = 1", missing="total", schema=schema, lanes=lanes)
    batch = Columns.of(
        "s", {"i": ("bigint", [1, 1, 1]), "d": ("double", [1.0, 1.0, None]), ("m", "k"): ("bigint", [None, 1, 1])}
    )
    assert pairs_of(index, batch) == [(0, 0), (0, 2), (1, 1), (1, 2)]
    assert index.needs >= {("i",), ("d",), ("m", "k")}
