"""FILTER by rank equals FILTER by value."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.graphs import conditions
from headgate.graphs.terms import literal_of, value_of
from headgate.language import ast
from headgate.language.ast import Node
from headgate.predicates import ranks
from headgate.predicates.ranks import Ranks
from headgate.predicates.values import OPAQUE

IT = ast.Variable("it")
_RAW = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**53, 2**53 + 1, float(2**53), 0.5, -0.0, math.inf, -math.inf]),
    st.sampled_from(["", "a", "b", "ab"]),
    st.booleans(),
)
_LITERALS = st.builds(ast.Literal, st.one_of(_RAW, st.none()))
_ATOMS: st.SearchStrategy[Node] = st.one_of(
    st.builds(ast.Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), st.just(IT), _LITERALS),
    st.builds(ast.Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), _LITERALS, st.just(IT)),
    st.builds(ast.Between, st.just(IT), _LITERALS, _LITERALS),
    st.builds(ast.In, st.just(IT), st.lists(_LITERALS, min_size=1, max_size=3).map(tuple)),
    st.just(ast.IsNull(IT)),
    st.just(IT),
    st.builds(ast.Compare, st.just("<"), st.just(IT), st.just(ast.Instant("2026-01-01T00:00:00Z"))),
)
_CONDITIONS = st.recursive(
    _ATOMS,
    lambda inner: st.one_of(
        st.builds(ast.Not, inner),
        st.builds(ast.And, st.lists(inner, min_size=2, max_size=3).map(tuple)),
        st.builds(ast.Or, st.lists(inner, min_size=2, max_size=3).map(tuple)),
    ),
    max_leaves=6,
)


@given(_CONDITIONS, st.one_of(_RAW, st.none(), st.just(math.nan)), st.lists(_RAW, max_size=4))
@settings(max_examples=500, deadline=None)
def test_a_rank_lies_in_the_intervals_where_the_condition_is_true(
    condition: Node, raw: object, others: list[object]
) -> None:
    value = None if raw is None else value_of(literal_of(raw))
    more = [v for v in (value_of(literal_of(o)) for o in others) if v is not None]
    assert ranks.comparable(condition)
    known = Ranks.of([*ranks.constants(condition), *more])
    rank = known.rank(value)
    held = any(low <= rank <= high for low, high in known.intervals(condition))
    assert held == (conditions.compiled(condition)({"it": OPAQUE if value is None else value}) is True)


def test_what_computes_is_not_comparable() -> None:
    assert not ranks.comparable(ast.Compare("<", ast.Arithmetic("+", IT, ast.Literal(1)), ast.Literal(5)))
    assert not ranks.comparable(ast.Test("MATCHES", (IT, ast.Literal("a"))))


def test_a_type_error_is_neither_true_nor_false() -> None:
    text = "text"
    assert conditions.compiled(ast.Compare("<", IT, ast.Literal(5)))({"it": text}) is None
    assert conditions.compiled(ast.Not(ast.Compare("<", IT, ast.Literal(5))))({"it": text}) is None
    assert conditions.compiled(ast.Test("MATCHES", (IT, ast.Literal("t"))))({"it": 5}) is None
