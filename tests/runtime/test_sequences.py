"""Sequences go on after a defect as if the events they raised on had never come."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from tests.sequences.book import columns_of, session_of, spines_of
from tests.sequences.patterns import SCHEMAS, S, T, books, events

from headgate.columns import Columns
from headgate.runtime import sequences
from headgate.sequences.engine import Session


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    texts=books(),
    s=events(),
    t=events(),
    cuts=st.lists(st.integers(0, 9), max_size=3),
    bad=st.sets(st.integers(0, 13), max_size=2),
    slack=st.sampled_from([0, 5, 1000]),
)
def test_a_session_that_survives_equals_one_without_the_events_that_were_set_aside(
    texts: dict[str, str], s: Any, t: Any, cuts: list[int], bad: set[int], slack: int
) -> None:
    note(str(texts))
    whole = {"S": columns_of(S, s), "T": columns_of(T, t)}
    edges = [*sorted(cuts), 10]

    def part(columns: Columns, number: int) -> Columns:
        ends = np.array([row[4] for row in (s if columns.stream == "S" else t)], np.int64)
        first = edges[number - 1] if number else -1
        return columns.take(np.flatnonzero((ends > first) & (ends <= edges[number])))

    def good(columns: Columns) -> Columns:
        poison = np.isin(columns.row_numbers, list(bad)) & (columns.stream == "S")
        return columns.take(np.flatnonzero(~poison))

    index = session_of(spines_of(texts, *SCHEMAS)).index
    honest = index.session()
    expected = [[dict(m) for m in honest.feed([good(part(c, n)) for c in whole.values()])] for n in range(len(edges))]
    original = Session.feed

    def feed(self: Session, batches: Any, *more: Any) -> Any:
        found = original(self, batches, *more)
        if any(len(good(columns)) < len(columns) for columns in batches):
            raise ZeroDivisionError("a defect")
        return found

    with patch.object(Session, "feed", feed), patch.object(sequences, "SLACK", slack):
        fed = sequences.Sequences(index)
        for number, wanted in enumerate(expected):
            got = fed.feed([part(c, number) for c in whole.values()], None, listing=True)
            assert str([dict(m) for m in got.found.matches]) == str(wanted)
            assert {p.event for p in got.problems if p.code == "quarantined"} == {
                int(row) for row in part(whole["S"], number).row_numbers if row in bad
            }
