"""The engine against the oracle: the same matches, bindings and failures, whatever the scheduler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.columns import Columns
from headgate.engine import Hits
from headgate.errors import BindingProblem, LimitExceeded, PlanError, UnknownName
from headgate.language.ast import Node
from headgate.language.parser import parse_body
from headgate.operators import VAR, operator
from headgate.operators.engine import OperatorEngine
from headgate.oracle import filters
from headgate.oracle.operators import evaluate
from headgate.predicates.check import check_variables
from headgate.schema import Schema

SCHEMA = Schema.of("drone", {"a": "bigint", "b": "bigint", "area": "string"}, defaults={"b": 7})
SCHEDULERS = ["naive", "sequential", "suborder", "greedy"]
NAMES = ["p", "q", "r", "s"]
VALUES: list[Any] = [None, True, 1, 1.0, 2, 3.5, "x", "y"]

Table = dict[tuple[Any, ...], Any]


def operators(table: Table) -> dict[str, Callable[..., Any]]:
    """Operators that answer from a table: by name, arguments with their types, and variable pattern."""

    def make(name: str) -> Callable[..., Any]:
        def answer(event: Any, *arguments: Any) -> Any:
            wide = sum(a is VAR for a in arguments)
            key = (name, *(("?",) if a is VAR else (type(a).__name__, a) for a in arguments))
            found = table.get(key, table.get((name, wide), False))
            if isinstance(found, Exception):
                raise found
            return found

        answer.__name__ = name
        return answer

    return {name: make(name) for name in NAMES}


def early_by_oracle(parts: Sequence[tuple[Node, str]], columns: Columns) -> Hits:
    """The filters' part, decided by their oracle."""
    pairs = [
        (row, i)
        for row in range(columns.rows)
        for i, (node, mode) in enumerate(parts)
        if filters.truth(node, columns.row(row), SCHEMA, mode) is True
    ]
    return Hits(np.array([p[0] for p in pairs], np.int64), np.array([p[1] for p in pairs], np.int32))


def engine_for(table: Table, **options: Any) -> OperatorEngine:
    made = [operator(cost=1.0)(f) for f in operators(table).values()]
    return OperatorEngine(made, early=early_by_oracle, **options)


EVENT: dict[str, list[Any]] = {"a": [5], "b": [None], "area": ["x"]}


def columns_of(rows: dict[str, list[Any]] | None = None) -> Columns:
    rows = rows or EVENT
    kinds = {"a": "bigint", "b": "bigint", "area": "string"}
    return Columns.of("drone", {name: (kinds[name], values) for name, values in rows.items()})


# -- random bodies

variables = st.sampled_from(["?x", "?y", "?z"])
constants = st.sampled_from(["1", "1.0", "TRUE", "'x'", "a", "b", "area"])
calls = st.one_of(
    st.builds(lambda n: f"{n}()", st.sampled_from(NAMES)),
    st.builds(lambda n, c: f"{n}({c})", st.sampled_from(NAMES), constants),
    st.builds(lambda n, v: f"{n}({v})", st.sampled_from(NAMES), variables),
    st.builds(lambda n, v, w: f"{n}({v}, {w})", st.sampled_from(NAMES), variables, variables),
)
constraints = st.one_of(
    st.builds(
        lambda v, o, c: f"{v} {o} {c}",
        variables,
        st.sampled_from(["<", "=", "<>", ">="]),
        st.sampled_from(["1", "2.5", "'x'", "a", "b"]),
    ),
    st.builds(lambda v, w: f"{v} > 2 * {w}", variables, variables),
    st.builds(lambda v, w: f"{v} = {w}", variables, variables),
)
atoms = st.one_of(calls, calls, constraints, st.sampled_from(["a = 5", "b > 3", "area = 'y'", "a IS NULL"]))
bodies = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(lambda i: "(" + " AND ".join(i) + ")", st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda i: "(" + " OR ".join(i) + ")", st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda i: f"NOT {i}", inner),
    ),
    max_leaves=7,
)
rows_of = {
    0: st.booleans(),
    1: st.lists(st.tuples(st.sampled_from(VALUES)), max_size=3),
    2: st.lists(st.tuples(st.sampled_from(VALUES), st.sampled_from(VALUES)), max_size=3),
}


@st.composite
def tables(draw: st.DrawFn) -> Table:
    made: Table = {(n, w): draw(rows_of[w]) for n in NAMES for w in (0, 1, 2)}
    for n in NAMES:
        if draw(st.integers(0, 5)) == 0:
            made[(n, draw(st.sampled_from([0, 1, 2])))] = ValueError("broken")
    for c in [("int", 1), ("float", 1.0), ("bool", True), ("str", "x"), ("int", 5), ("int", 7)]:
        made[("p", c)] = draw(st.booleans())
    return made


events = st.fixed_dictionaries(
    {"a": st.sampled_from([None, 1, 5]), "b": st.sampled_from([None, 1, 4]), "area": st.sampled_from([None, "x", "y"])}
)


def sound(texts: list[str]) -> list[Node]:
    parsed = [parse_body(text) for text in texts]
    return [p for p in parsed if not check_variables(p)]


@pytest.mark.parametrize("schedule", SCHEDULERS)
@pytest.mark.parametrize("output", ["first", "all"])
@settings(deadline=None, max_examples=120)
@given(
    texts=st.lists(bodies, min_size=1, max_size=6),
    table=tables(),
    rows=st.lists(events, min_size=1, max_size=3),
    mode=st.sampled_from(["null", "strict", "default", "total"]),
)
def test_every_scheduler_gives_the_matches_bindings_and_failures_of_the_oracle(
    schedule: str, output: str, texts: list[str], table: Table, rows: list[dict[str, Any]], mode: str
) -> None:
    nodes = sound(texts)
    engine = engine_for(table, schedule=schedule, output=output)
    try:
        index = engine.compile(nodes, missing=[mode] * len(nodes), schema=SCHEMA)
    except LimitExceeded:
        return
    columns = columns_of({name: [row[name] for row in rows] for name in EVENT})
    outcome = engine.run(index, columns)
    bindings = outcome.hits.binding or [{}] * len(outcome.hits)
    found = [
        (e, s, b) for e, s, b in zip(outcome.hits.event.tolist(), outcome.hits.slot.tolist(), bindings, strict=True)
    ]
    expected, failures = [], []
    for e in range(len(rows)):
        for s, node in enumerate(nodes):
            verdict = evaluate(node, columns.row(e), SCHEMA, operators(table), mode, every=output == "all")
            expected += [(e, s, b) for b in verdict.bindings]
            if verdict.matched is None:
                failures.append((e, s))
    assert repr(found) == repr(expected)
    assert sorted((f.event, f.slot) for f in outcome.hits.problems) == failures


def counting(table: Table) -> tuple[list[Any], list[tuple[Any, ...]]]:
    called: list[tuple[Any, ...]] = []

    def wrap(name: str, f: Callable[..., Any]) -> Any:
        def count(event: Any, *arguments: Any) -> Any:
            called.append((name, *arguments))
            return f(event, *arguments)

        count.__name__ = name
        return operator(count)

    return [wrap(n, f) for n, f in operators(table).items()], called


def calls_of(texts: list[str], table: Table, **options: Any) -> list[tuple[Any, ...]]:
    made, called = counting(table)
    engine = OperatorEngine(made, early=early_by_oracle, **options)
    engine.run(engine.compile([parse_body(t) for t in texts], schema=SCHEMA), columns_of())
    return called


def test_one_call_serves_all_predicates_that_differ_only_in_names() -> None:
    table: Table = {("p", 1): [(1,)], ("p", 2): [(1, 1)]}
    assert calls_of(["p(?x) AND p(?y)", "p(?z) AND ?z > 0", "q() AND p(?w)"], table).count(("p", VAR)) == 1


def test_a_repeated_variable_keeps_the_rows_that_agree_and_shares_the_call() -> None:
    table: Table = {("p", 2): [(1, 2), (3, 3)]}
    engine = engine_for(table)
    outcome = engine.run(
        engine.compile([parse_body("p(?x, ?x)"), parse_body("p(?x, ?y)")], schema=SCHEMA), columns_of()
    )
    assert outcome.hits.binding == [{"x": 3}, {"x": 1, "y": 2}]
    assert outcome.calls == 1


def test_an_attribute_and_an_equal_literal_make_the_same_call_but_types_differ() -> None:
    assert calls_of(["p(area)", "p('x')"], {}) == [("p", "x")]
    assert len(calls_of(["p(1)", "p(1.0)", "p(TRUE)"], {})) == 3


def test_nothing_is_called_for_what_the_filters_decided() -> None:
    assert calls_of(["a = 6 AND p()", "a = 5 OR q()", "NOT (a = 5) AND r()"], {}) == []


def test_nothing_is_called_with_a_missing_argument() -> None:
    assert calls_of(["p(b)", "NOT p(b)"], {}) == []


def test_a_constraint_that_fails_saves_the_other_calls() -> None:
    table: Table = {("p", 1): [(10,)], ("q", 0): True}
    assert calls_of(["p(?n) AND ?n > 50 AND q()"], table, schedule="naive") == [("p", VAR)]


def test_a_failing_operator_spoils_only_the_subscriptions_that_need_it() -> None:
    engine = engine_for({("p", 0): RuntimeError("lens dirty"), ("q", 0): True})
    texts = ["p() AND q()", "q()", "p() OR q()", "p() AND r()"]
    outcome = engine.run(engine.compile([parse_body(t) for t in texts], schema=SCHEMA), columns_of())
    assert outcome.hits.slot.tolist() == [1, 2]
    assert [(f.slot, f.reason) for f in outcome.hits.problems] == [(0, "p raised RuntimeError: lens dirty")]


def test_only_the_pairs_asked_for_are_answered() -> None:
    engine = engine_for({("p", 0): True})
    index = engine.compile([parse_body("p()"), parse_body("p() OR q()")], schema=SCHEMA)
    asked = Hits(np.array([0]), np.array([1], np.int32))
    assert engine.run(index, columns_of(), asked).hits.slot.tolist() == [1]


def test_a_body_with_attributes_needs_filters() -> None:
    engine = OperatorEngine([operator(f) for f in operators({}).values()])
    with pytest.raises(PlanError, match="no filters were given"):
        engine.run(engine.compile([parse_body("a = 1 AND p()")], schema=SCHEMA), columns_of())


def test_an_unbound_variable_and_an_unknown_operator_are_refused() -> None:
    engine = engine_for({})
    with pytest.raises(BindingProblem, match=r"nothing binds \?x"):
        engine.compile([parse_body("p() AND ?x > 1")])
    with pytest.raises(UnknownName, match="no operator mob"):
        engine.compile([parse_body("mob(?x)")])


def test_too_many_disjuncts_over_shared_variables_are_refused_with_a_reason() -> None:
    pairs = " AND ".join("(p(?x) OR q(?x))" for _ in range(7))
    with pytest.raises(LimitExceeded, match="more than 64 disjuncts"):
        engine_for({}).compile([parse_body(pairs)])


def test_disjunctions_without_shared_variables_are_never_multiplied_out() -> None:
    body = " AND ".join("(p() OR q() OR r())" for _ in range(40))
    assert len(engine_for({}).compile([parse_body(body)])) == 1


def test_what_is_learned_changes_what_is_asked_first() -> None:
    engine = engine_for({("p", 0): True, ("q", 0): False})
    index = engine.compile([parse_body("p() AND q()")], schema=SCHEMA)
    columns = columns_of({"a": [1] * 30, "b": [1] * 30, "area": ["x"] * 30})
    outcome = engine.run(index, columns, trace=True)
    last = [str(index.predicates[a.predicate]) for a in outcome.asked[29]]
    assert last == ["q()"]
