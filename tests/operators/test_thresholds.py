"""Thresholds on one call: decided together as each would be alone."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.language.parser import parse_body
from headgate.operators.answer import ERROR, FALSE, TRUE, Answer
from headgate.operators.bindings import CompiledJoin
from headgate.operators.body import Join, formula
from headgate.operators.kernels import PENDING
from headgate.operators.thresholds import OTHER, Thresholds
from headgate.predicates.rows import compile_truth

VALUES: list[Any] = [None, True, 1, 1.0, 2, 3.5, 2**63, float("nan"), float("inf"), "x"]
bodies = st.builds(
    lambda call, left, op, k: f"{call} AND " + (f"?x {op} {k}" if left else f"{k} {op} ?x"),
    st.sampled_from(["p(?x)", "p(?y, ?x)", "p(?x, ?y)", "q(?x)"]),
    st.booleans(),
    st.sampled_from(["<", "<=", ">", ">=", "="]),
    st.sampled_from(["1", "1.0", "2", "3.5", "9223372036854775807", "'x'"]),
)


def joins_of(texts: list[str]) -> list[Join]:
    made = [formula(parse_body(text)) for text in texts]
    assert all(isinstance(f, Join) for f in made)
    return made  # type: ignore[return-value]  # as asserted


@pytest.mark.parametrize("mode", ["null", "default"])
@settings(deadline=None, max_examples=150)
@given(
    texts=st.lists(bodies, min_size=1, max_size=12),
    rows=st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES)), max_size=4),
)
def test_thresholds_come_to_what_a_look_at_each_of_them_says(mode: str, texts: list[str], rows: list[Any]) -> None:
    joins = joins_of(texts)

    def ask(predicate: Any) -> Answer:
        wide = predicate.variables
        return Answer(TRUE if rows else FALSE, tuple(row[:wide] for row in rows))

    found = Thresholds(joins).decide(np.arange(len(joins), dtype=np.int32), ask).tolist()
    defaults: dict[Any, Any] | None = {} if mode == "default" else None
    alone = [
        CompiledJoin(join, partial(compile_truth, defaults=defaults)).look(ask, lambda path: None) for join in joins
    ]
    assert [a for a, f in zip(alone, found, strict=True) if f != OTHER] == [f for f in found if f != OTHER]
    assert all((f == OTHER) == (" = " in t or "'x'" in t) for t, f in zip(texts, found, strict=True))


def test_a_call_that_failed_or_was_not_made_decides_no_threshold() -> None:
    joins = joins_of(["p(?x) AND ?x > 1", "q(?x) AND ?x > 1"])

    def ask(predicate: Any) -> Answer | None:
        return Answer(ERROR) if predicate.name == "p" else None

    assert Thresholds(joins).decide(np.arange(2, dtype=np.int32), ask).tolist() == [ERROR, PENDING]
