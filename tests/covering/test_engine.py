"""Covering over the whole engine: what a compiled plan matches, the gates of a cover set let through."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.covering.texts import MODES, SCHEMA, filters

from headgate.covering.coverset import CoverSet
from headgate.covering.decision import Procedure
from headgate.schema import Schema
from headgate.subscriptions import Subscriptions

NAMES = ["x", "i", "t", "b"]
OPEN = Schema(SCHEMA.stream, {path: a for path, a in SCHEMA.attributes.items() if path[0] in NAMES})
VALUES: dict[str, list[Any]] = {
    "x": [None, 0.0, 1.0, 1.5, 2.0, 2.5, 3.0, math.inf, math.nan],
    "i": [None, -1, 0, 1, 2, 3, 9],
    "t": [None, "", "a", "ab", "abc", "b"],
    "b": [None, True, False],
}
EVENTS = st.lists(st.fixed_dictionaries({n: st.sampled_from(VALUES[n]) for n in NAMES}), min_size=20, max_size=20)


BOOKS = given(
    st.lists(st.tuples(filters(NAMES, 4), MODES), min_size=2, max_size=15),
    st.sets(st.integers(0, 14), max_size=5),
    EVENTS,
    st.sampled_from(["none", "pairwise", "group"]),
)


def check(texts: list[tuple[str, str]], removed: set[int], events: list[dict[str, Any]], demote: str) -> None:
    book, covers = Subscriptions(), CoverSet(OPEN, Procedure(budget=5.0), demote=demote)
    book.stream(OPEN.stream, OPEN)
    for i, (text, missing) in enumerate(texts):
        book.add(f"s{i}", text, missing=missing)
        covers.add(f"s{i}", text, missing)
    for i in removed & set(range(len(texts))):
        book.remove(f"s{i}")
        covers.remove(f"s{i}")
    matched: list[set[str]] = [set() for _ in events]
    table, _ = book.compile().match(events, errors="collect")
    for row in table.to_pylist():
        matched[row["event"]].add(row["subscription"])
    for names in matched:
        assert set(covers.matching(names.__contains__)) == names


@settings(max_examples=25, deadline=None)
@BOOKS
def test_a_plan_never_matches_behind_a_closed_gate(
    texts: list[tuple[str, str]], removed: set[int], events: list[dict[str, Any]], demote: str
) -> None:
    check(texts, removed, events, demote)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
@settings(max_examples=3000, deadline=None)
@BOOKS
def test_thousands_of_plans_never_match_behind_a_closed_gate(
    texts: list[tuple[str, str]], removed: set[int], events: list[dict[str, Any]], demote: str
) -> None:
    check(texts, removed, events, demote)
