from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.filters.atoms_strategy import TYPES, atoms, batches, literals

from headgate.columns import Column, Columns
from headgate.language import ast
from headgate.language.ast import Node
from headgate.language.catalogue import Catalogue
from headgate.language.parser import parse_body
from headgate.oracle.filters import truth
from headgate.predicates.check import check_filter
from headgate.predicates.functions import FUNCTIONS
from headgate.predicates.modes import defaults_of
from headgate.predicates.normal import Lit
from headgate.predicates.vectors import evaluate
from headgate.schema import Schema, Type

STREAM = Schema.of("s", TYPES)


def by_oracle(lit: Lit, columns: Columns, schema: Schema) -> list[bool]:
    mode = "default" if lit.default else "null"
    return [truth(lit.atom, columns.row(i), schema, mode) is lit.truth for i in range(columns.rows)]


@given(atoms())
def test_the_atoms_that_the_tests_draw_are_well_typed(atom: Node) -> None:
    assert check_filter(atom, STREAM, Catalogue()) == []


def compare_with_oracle(lits: list[Lit], data: st.DataObject) -> None:
    columns, schema = data.draw(batches(lits))
    held = evaluate(lits, columns, defaults_of(schema))
    assert held.shape == (len(lits), columns.rows)
    assert held.dtype == np.bool_
    for lit, row in zip(lits, held.tolist(), strict=True):
        assert row == by_oracle(lit, columns, schema), lit


@settings(max_examples=1_500, deadline=None)
@given(st.lists(literals(), max_size=4), st.data())
def test_literals_hold_where_the_oracle_says_so(lits: list[Lit], data: st.DataObject) -> None:
    compare_with_oracle(lits, data)


@pytest.mark.nightly
@settings(max_examples=20_000, deadline=None)
@given(st.lists(literals(), max_size=6), st.data())
def test_many_more_literals_hold_where_the_oracle_says_so(lits: list[Lit], data: st.DataObject) -> None:
    compare_with_oracle(lits, data)


@settings(deadline=None)
@given(st.lists(literals(), min_size=1, max_size=3), st.data())
def test_a_slice_of_a_batch_is_evaluated_as_those_rows_of_the_batch(lits: list[Lit], data: st.DataObject) -> None:
    columns, schema = data.draw(batches(lits))
    start = data.draw(st.integers(0, columns.rows))
    stop = data.draw(st.integers(start, columns.rows))
    whole = evaluate(lits, columns, defaults_of(schema))
    part = evaluate(lits, columns.slice(start, stop), defaults_of(schema))
    assert part.tolist() == whole[:, start:stop].tolist()


Batch = Mapping[str | ast.Path, Column | tuple[str | Type, Sequence[Any]]]


def holds(text: str, columns: Batch, **defaults: object) -> list[bool]:
    """Where the atom is TRUE; with DEFAULTs, or an empty one, in `default` mode."""
    lit = Lit(parse_body(text), True, bool(defaults))
    found: list[bool] = evaluate([lit], Columns.of("s", columns), {(k,): v for k, v in defaults.items()})[0].tolist()
    return found


def false(text: str, columns: Batch) -> list[bool]:
    found: list[bool] = evaluate([Lit(parse_body(text), False)], Columns.of("s", columns), {})[0].tolist()
    return found


def test_a_whole_number_and_a_double_compare_by_value_beyond_what_a_double_holds() -> None:
    columns: Batch = {
        "i": ("bigint", [2**53 + 1, 2**63 - 1, -(2**63), 3]),
        "d": ("double", [2.0**53, 2.0**63, -(2.0**63), 2.5]),
    }
    assert holds("i > d", columns) == [True, False, False, True]
    assert holds("i = d", columns) == [False, False, True, False]
    assert holds("i > 2.5", columns) == [True, True, False, True]
    assert holds("d < 9007199254740993", columns) == [True, False, True, True]


def test_a_literal_beyond_bigint_is_above_every_bigint() -> None:
    assert holds("i < 9223372036854775808", {"i": ("bigint", [2**63 - 1, None])}) == [True, False]
    assert holds("i IN (1, 18446744073709551617)", {"i": ("bigint", [1, 2])}) == [True, False]


def test_nan_equals_itself_and_is_above_infinity() -> None:
    columns: Batch = {"d": ("double", [float("nan"), float("inf")]), "e": ("double", [float("nan"), float("nan")])}
    assert holds("d = e", columns) == [True, False]
    assert holds("d < e", columns) == [False, True]
    assert holds("d >= 0", columns) == [True, True]


@pytest.mark.parametrize(
    ("text", "i", "j"),
    [
        ("i + j", 2**63 - 1, 1),
        ("i - j", -(2**63), 1),
        ("i * j", 2**32, 2**31),
        ("i * j", -1, -(2**63)),
        ("i * j", -(2**63), -1),
        ("i / j", 1, 0),
        ("i % j", 1, 0),
        ("-(i + j)", -(2**63), 0),
        ("ABS(i + j)", -(2**63), 0),
    ],
)
def test_what_cannot_be_computed_is_null(text: str, i: int, j: int) -> None:
    assert holds(f"{text} IS NULL", {"i": ("bigint", [i, 7]), "j": ("bigint", [j, 3])}) == [True, False]


def test_the_least_bigint_has_no_remainder_by_minus_one() -> None:
    assert holds("i % j = 0", {"i": ("bigint", [-(2**63)]), "j": ("bigint", [-1])}) == [True]


def test_an_atom_over_a_missing_operand_is_neither_true_nor_false() -> None:
    columns: Batch = {"i": ("bigint", [1, None]), "s": ("string", ["a", None])}
    for text in ("i > 0", "s CONTAINS 'a'", "s LIKE '%a'", "s MATCHES 'a'", "i IN (1, 2)", "gone = 1"):
        assert [holds(text, columns)[1], false(text, columns)[1]] == [False, False]


def test_between_is_false_if_one_bound_fails_and_the_other_is_missing() -> None:
    assert false("5 BETWEEN i AND j", {"i": ("bigint", [7]), "j": ("bigint", [None])}) == [True]


def test_any_is_false_and_all_is_true_over_no_elements() -> None:
    columns: Batch = {"a": ("array<bigint>", [[], None, [1, None], [1, 2]])}
    assert holds("a >= 2", columns) == [False, False, False, True]
    assert false("a >= 2", columns) == [True, False, False, False]
    assert holds("ALL(a) >= 1", columns) == [True, False, False, True]
    assert false("ALL(a) >= 2", columns) == [False, False, True, True]


def test_one_element_satisfies_both_bounds_of_a_between() -> None:
    assert holds("a BETWEEN i AND 3", {"a": ("array<bigint>", [[1, 4], [1, 3]]), "i": ("bigint", [2, 2])}) == [
        False,
        True,
    ]


def test_an_array_is_null_if_it_is_missing_but_not_if_its_elements_are() -> None:
    columns: Batch = {"a": ("array<bigint>", [[], None, [None]])}
    assert holds("a IS NULL", columns) == [False, True, False]
    assert holds("a + 1 IS NULL", columns) == [False, True, True]


def test_in_default_mode_a_missing_operand_is_its_default() -> None:
    columns: Batch = {"i": ("bigint", [None, 9]), "s": ("string", [None, "b"]), "a": ("array<bigint>", [None, [1]])}
    assert holds("i = 5", columns, i=5) == [True, False]
    assert holds("LOWER(s) = 'x'", columns, s="X") == [True, False]
    assert holds("a = 7", columns, a=[None, 7]) == [True, False]
    assert holds("gone < 'b'", columns, gone="a") == [True, True]
    assert holds("gone = 7", columns, gone=[7]) == [True, True]


def test_in_default_mode_omega_equals_only_omega_and_has_no_order() -> None:
    columns: Batch = {"i": ("bigint", [None, None, 1]), "j": ("bigint", [None, 2, 2])}
    assert holds("i = j", columns, other=0) == [True, False, False]
    assert holds("i <> j", columns, other=0) == [False, True, True]
    assert holds("i <= j", columns, other=0) == [False, False, True]
    assert holds("i % 0 = j", columns, other=0) == [True, False, False]
    assert holds("i + 1 IS NULL", columns, other=0) == [True, True, False]


def test_in_default_mode_false_is_the_complement() -> None:
    columns = Columns.of("s", {"i": ("bigint", [None, 1, 9])})
    held = evaluate([Lit(parse_body("i < 5"), truth, True) for truth in (True, False)], columns, {})
    assert held.tolist() == [[False, True, False], [True, False, True]]


def test_a_text_function_is_asked_once_for_each_distinct_value(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def lower(text: str) -> str:
        asked.append(text)
        return text.lower()

    monkeypatch.setitem(FUNCTIONS, "LOWER", replace(FUNCTIONS["LOWER"], row=lower))
    columns = Columns.of("s", {"s": ("string", ["A", "B"] * 500)})
    lits = [Lit(parse_body(f"LOWER(s) = '{c}'")) for c in "abc"]
    assert evaluate(lits, columns, {}).sum(axis=1).tolist() == [500, 500, 0]
    assert sorted(asked) == ["A", "B"]


def test_a_batch_without_rows_has_no_truths() -> None:
    assert evaluate([Lit(parse_body("a < b"))], Columns("s", 0, {}), {}).shape == (1, 0)
    assert evaluate([], Columns.of("s", {"i": ("bigint", [1])}), {}).shape == (0, 1)
