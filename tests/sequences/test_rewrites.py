"""Each rewrite does what it says, and changes no match: the reference evaluator is asked before and after."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.sequences.book import STOCK, by_reference, events_of, spines_of
from tests.sequences.patterns import SCHEMAS, S, T, books, events

from headgate.language import ast
from headgate.language.ast import TRUE
from headgate.sequences.algebra import RULES, simplify
from headgate.sequences.spine import Spine, conjuncts


def spine(text: str) -> Spine:
    return spines_of({"s": text}, STOCK)["s"]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    texts=books(),
    s=events(),
    t=events(),
    rule=st.sampled_from(RULES),
    missing=st.sampled_from(["null", "strict", "default", "total"]),
)
def test_no_rule_changes_a_match(texts: dict[str, str], s: Any, t: Any, rule: Any, missing: str) -> None:
    spines = spines_of(texts, *SCHEMAS)
    streams = {"S": events_of(S, s), "T": events_of(T, t)}
    changed = {name: rule(spine, missing) for name, spine in spines.items()}
    assert by_reference(changed, streams, missing) == by_reference(spines, streams, missing)


def test_a_filter_on_the_first_event_moves_to_the_start() -> None:
    moved = simplify(spine("SELECT * FROM FILTER {e1.price > 5 AND e2.price > 6} (stock NEXT {TRUE} stock)"))
    assert moved.start.where != TRUE
    assert len(conjuncts(moved.steps[0].after)) == 1


def test_a_filter_that_asks_an_operator_stays_where_it_is() -> None:
    plain = spine("SELECT * FROM stock NEXT {TRUE} stock")
    asks = ast.Call("near", (ast.Attribute(("#0", "name")),))
    kept = simplify(replace(plain, steps=(replace(plain.steps[0], after=asks),)))
    assert kept.steps[0].after == asks


def test_a_filter_on_the_length_of_the_run_stays_where_it_is() -> None:
    kept = simplify(spine("SELECT * FROM FILTER {DUR > 5} (stock NEXT {TRUE} stock)"))
    assert kept.start.where == TRUE
    assert kept.steps[0].after != TRUE


def test_theta_of_absent_never_moves_to_the_left() -> None:
    kept = simplify(spine("SELECT * FROM stock ABSENT {e1.price > 5} stock WITHIN 3"))
    assert kept.start.where == TRUE


def test_a_filter_that_theta_implies_goes() -> None:
    gone = simplify(spine("SELECT * FROM FILTER {e2.name = e1.name} (stock NEXT {e2.name = e1.name} stock)"))
    assert gone.steps[0].after == TRUE


def test_a_keep_that_theta_implies_goes() -> None:
    gone = simplify(spine("SELECT * FROM stock FOLD {$2.name = $1.name, $2.name = $1.name AND $2.price > 1} stock"))
    assert len(conjuncts(gone.steps[0].keep)) == 1


UNION = "SELECT * FROM (FILTER {price > 5} (stock) UNION FILTER {vol > 5} (stock))"


def test_a_union_of_one_stream_is_one_filter() -> None:
    assert simplify(spine(UNION)).start.origin == "stock"


@pytest.mark.parametrize("missing", ["strict", "default"])
def test_a_union_of_one_stream_stays_where_the_mode_tells_the_difference(missing: str) -> None:
    assert simplify(spine(UNION), missing).start.origin != "stock"


def test_a_projection_of_single_events_is_read_from_its_stream() -> None:
    inlined = simplify(spine("SELECT p FROM (SELECT price AS p FROM FILTER {vol > 5} (stock)) NEXT {$1.p > 3} stock"))
    assert inlined.start.origin == "stock"
    assert inlined.items[0].expression.path == ("#0", "price")  # type: ignore[attr-defined]  # it is an attribute


def test_a_projection_that_names_an_attribute_twice_keeps_its_stream() -> None:
    kept = simplify(spine("SELECT p, q FROM (SELECT price AS p, price AS q FROM stock)"))
    assert isinstance(kept.start.origin, Spine)
